/* membership.c - the rank and the group of this process, by the user and the launchers.
 *
 *     what the user says     cluster.peers, TNET_PEERS, TNET_PEER_LIST: must agree
 *     the launcher           the first that knows a rank; later ones complete it
 *     where the others are   the list  <  TNET_ROOT  <  the launcher  <  this host  <  a file
 *
 * The last line is an order of looking: the first that is there is taken.
 */
#include "cluster/launch/membership.h"

#include "base/core/arena.h"
#include "base/core/log.h"
#include "base/math/rng.h"
#include "cluster/launch/interfaces.h"
#include "cluster/launch/ipcdir.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The findings of the search so far. */
typedef struct search {
    const tn_membership_in *in;
    tn_arena *arena;
    tn_error *err;
    tn_strs list;          /* addresses of all, by rank; n 0: none */
    uint32_t size;         /* size that the user gives */
    const char *size_from; /* name of the place that gives it */
    tn_launched found;
    const char *by; /* name of the launcher */
    bool by_hand;   /* no launcher but TNET_RANK */
    const char *note;
} search;

/* ---- what the user and launchers say ---- */

static tn_status set_size(search *s, uint32_t size, const char *from)
{
    if (size == 0) {
        return tn_fail(s->err, TN_E_CONFIG, "%s is 0, not at least 1", from);
    }
    if (s->size != TN_UNSET_U32 && s->size != size) {
        return tn_fail(s->err, TN_E_CONFIG, "%s says %u peers, but %s %u", s->size_from, s->size,
                       from, size);
    }
    s->size = size;
    s->size_from = from;
    return TN_OK;
}

/* Splits "a:1,b:2" into a list. */
static tn_status split(search *s, const char *text)
{
    uint32_t n = 1;
    for (const char *at = text; *at != '\0'; at++) {
        n += *at == ',' ? 1 : 0;
    }
    if (n > TN_PEERS_MAX) {
        return tn_fail(s->err, TN_E_CONFIG, "TNET_PEER_LIST holds %u addresses, more than %d", n,
                       TN_PEERS_MAX);
    }
    const char **item = TN_NEW_ARRAY(s->arena, const char *, n);
    for (uint32_t i = 0; i < n; i++) {
        size_t size = strcspn(text, ",");
        item[i] = tn_arena_text(s->arena, "%.*s", (int)size, text);
        text += size + 1;
    }
    s->list = (tn_strs){n, item};
    return TN_OK;
}

static tn_status read_user(search *s)
{
    uint32_t n = TN_UNSET_U32;
    const char *list = tn_env(&s->in->env, "TNET_PEER_LIST");
    s->list = s->in->peers.address;
    if (s->in->peers.n > 0) {
        TN_TRY(set_size(s, s->in->peers.n, "cluster.peers"));
    }
    TN_TRY(tn_env_u32(&s->in->env, "TNET_PEERS", TN_PEERS_MAX + 1, &n, s->err));
    if (n != TN_UNSET_U32) {
        TN_TRY(set_size(s, n, "TNET_PEERS"));
    }
    if (list != NULL) {
        TN_TRY(split(s, list)); /* the environment is nearer than the file */
        TN_TRY(set_size(s, s->list.n, "TNET_PEER_LIST"));
    }
    if (list != NULL && s->list.n == 1) { /* all addresses have a comma between them */
        tn_log(TN_LOG_WARN, "TNET_PEER_LIST names one peer, '%s', so this process is alone", list);
    }
    return TN_OK;
}

static bool agree(uint32_t a, uint32_t b)
{
    return a == TN_UNSET_U32 || b == TN_UNSET_U32 || a == b;
}

/* Adds to `known` what `more` says about the same process. False: nothing about where the others
 * are, or it is about another process, such as the one that started this one. */
static bool complete(tn_launched *known, const tn_launched *more)
{
    if (!agree(known->rank, more->rank) || !agree(known->size, more->size)) {
        return false;
    }
    known->size = known->size == TN_UNSET_U32 ? more->size : known->size;
    known->one_host = known->one_host || more->one_host;
    known->root = known->root == NULL ? more->root : known->root;
    known->address = known->address == NULL ? more->address : known->address;
    known->host = known->host == NULL ? more->host : known->host;
    known->job = known->job == NULL ? more->job : known->job;
    return more->job != NULL || more->root != NULL || more->address != NULL;
}

static tn_status ask_launchers(search *s)
{
    for (const tn_launcher *const *at = tn_launchers; *at != NULL; at++) {
        tn_launched l = {.rank = TN_UNSET_U32, .size = TN_UNSET_U32};
        TN_TRY((*at)->find(&s->in->env, s->size, s->arena, &l, s->err));
        if (!l.is_here) {
            s->note = s->note == NULL ? l.note : s->note;
            continue;
        }
        if (s->by == NULL) {
            s->found = l;
            s->by = (*at)->name;
            s->by_hand = *at == &tn_launcher_plain;
        } else {
            s->by_hand = !complete(&s->found, &l) && s->by_hand;
        }
    }
    return TN_OK;
}

/* Takes the only address of the list that is of this machine. */
static tn_status rank_by_address(search *s)
{
    uint32_t rank = TN_UNSET_U32;
    for (uint32_t r = 0; r < s->list.n; r++) {
        tn_endpoint e;
        TN_TRY(tn_endpoint_read(s->list.item[r], TN_ENDPOINT_PORT, &e, s->err));
        if (e.is_ipc || !s->in->is_local(s->in->env.ctx, e.host)) {
            continue;
        }
        if (rank != TN_UNSET_U32) {
            return tn_fail(s->err, TN_E_CONFIG,
                           "both '%s' and '%s' are this machine's addresses\n"
                           "hint: say by TNET_RANK which of them this process is",
                           s->list.item[rank], s->list.item[r]);
        }
        rank = r;
    }
    s->found.rank = rank;
    s->by = "address";
    return TN_OK;
}

static tn_status find_rank(search *s)
{
    tn_launched *l = &s->found;
    if (l->rank == TN_UNSET_U32 && s->list.n > 0) {
        TN_TRY(rank_by_address(s));
    }
    if (l->rank == TN_UNSET_U32) {
        return tn_fail(s->err, TN_E_CONFIG,
                       "%s says %u peers, but nothing says which of them this process is\n"
                       "hint: tnet-train --peers %u, a launcher, or TNET_RANK from 0 to %u",
                       s->size_from, s->size, s->size, s->size - 1);
    }
    if (s->size == TN_UNSET_U32 && l->size == TN_UNSET_U32) {
        return tn_fail(s->err, TN_E_CONFIG,
                       "%s says rank %u, but nothing says how many peers there are\n"
                       "hint: set TNET_PEERS",
                       s->by, l->rank);
    }
    if (l->size != TN_UNSET_U32) {
        TN_TRY(set_size(s, l->size, s->by));
    }
    if (l->rank >= s->size) {
        return tn_fail(s->err, TN_E_CONFIG, "rank %u is none of %u peers: ranks count from 0",
                       l->rank, s->size);
    }
    return TN_OK;
}

/* ---- addresses ---- */

/* Returns an address in ZeroMQ's words. */
static const char *written(const search *s, const tn_endpoint *e)
{
    char *text = TN_NEW_ARRAY(s->arena, char, TN_ENDPOINT_SIZE);
    tn_endpoint_write(e, text);
    return text;
}

static tn_status normal(search *s, const char *text, uint32_t rank, const char **out)
{
    tn_endpoint e;
    TN_TRY(tn_endpoint_read(text, TN_ENDPOINT_PORT, &e, s->err));
    if (!e.is_ipc && (e.port == 0 || strcmp(e.host, "*") == 0)) {
        return tn_fail(s->err, TN_E_CONFIG, "the others cannot find rank %u by '%s'", rank, text);
    }
    *out = written(s, &e);
    return TN_OK;
}

static tn_status take_all(search *s, const char *const *text, const char **address)
{
    for (uint32_t r = 0; r < s->size; r++) {
        TN_TRY(normal(s, text[r], r, &address[r]));
        for (uint32_t i = 0; i < r; i++) {
            if (strcmp(address[i], address[r]) == 0) {
                return tn_fail(s->err, TN_E_CONFIG, "ranks %u and %u have the same address '%s'", i,
                               r, address[r]);
            }
        }
    }
    return TN_OK;
}

static void take_sockets(search *s, uint64_t job, const char **address)
{
    const tn_ipc_place place = {.run_dir = s->in->run_dir,
                                .runtime_dir = tn_env(&s->in->env, "XDG_RUNTIME_DIR"),
                                .job = job,
                                .uid = s->in->uid};
    char dir[TN_ENDPOINT_PATH];
    tn_ipc_dir(&place, dir);
    for (uint32_t r = 0; r < s->size; r++) {
        address[r] = tn_arena_text(s->arena, "ipc://%s/%u.sock", dir, r);
    }
}

static tn_status find_meeting(search *s, tn_membership *out)
{
    if (s->in->run_dir == NULL || s->found.job == NULL) {
        return tn_fail(s->err, TN_E_CONFIG,
                       "%s says rank %u of %u, but nothing says where rank 0 is\n"
                       "hint: set TNET_ROOT=host:port of rank 0, or TNET_PEER_LIST",
                       s->by, s->found.rank, s->size);
    }
    out->meet = tn_arena_text(s->arena, "%s/peers.root", s->in->run_dir);
    return TN_OK;
}

static tn_status find_addresses(search *s, tn_membership *out)
{
    const tn_launched *l = &s->found;
    const char **address = TN_NEW_ARRAY(s->arena, const char *, s->size);
    const char *root = tn_env(&s->in->env, "TNET_ROOT");
    root = root != NULL ? root : l->address == NULL ? l->root : NULL;
    out->address = address;
    if (s->list.n > 0) {
        return take_all(s, s->list.item, address);
    }
    if (root != NULL) {
        return normal(s, root, 0, &address[0]);
    }
    if (l->address != NULL) {
        return take_all(s, l->address, address);
    }
    if (l->one_host || s->by_hand) {
        take_sockets(s, out->job, address);
        return TN_OK;
    }
    return find_meeting(s, out);
}

/* Returns a number that all peers of this run have in common, and no others. */
static uint64_t name_run(const search *s)
{
    const char *job = s->found.job;
    tn_text text = {0};
    tn_text_addf(&text, "%u %s", s->size, job != NULL ? job : "");
    for (uint32_t i = 0; i < s->list.n && job == NULL; i++) {
        tn_text_addf(&text, " %s", s->list.item[i]);
    }
    if (job == NULL && s->list.n == 0 && s->in->run_dir != NULL) {
        tn_text_addf(&text, " %s", s->in->run_dir);
    }
    uint64_t name = tn_name64(tn_text_str(&text));
    tn_text_done(&text);
    return name != 0 ? name : 1;
}

/* Finds the own address: known to the others, or any port of the interface that TNET_BIND or the
 * name of the machine means. */
static tn_status find_bind(search *s, tn_membership *out)
{
    TN_ASSERT(out->rank < out->size && out->size == s->size);
    const char *known = out->address[out->rank];
    const char *wish = tn_env(&s->in->env, "TNET_BIND");
    tn_endpoint e;
    tn_endpoint own;
    if (known != NULL && wish == NULL) {
        out->bind = known;
        return TN_OK;
    }
    TN_TRY(tn_endpoint_read(wish != NULL ? wish : s->in->env.host, 0, &e, s->err));
    if (known != NULL) {
        TN_TRY(tn_endpoint_read(known, 0, &own, s->err));
        if (own.is_ipc || e.is_ipc) {
            return tn_fail(s->err, TN_E_CONFIG, "TNET_BIND is '%s', but rank %u is at '%s'", wish,
                           out->rank, known);
        }
        e.port = e.port != 0 ? e.port : own.port;
    }
    out->bind = written(s, &e);
    return TN_OK;
}

static bool same_machine(const char *a, const char *b)
{
    tn_endpoint x;
    tn_endpoint y;
    return a != NULL && b != NULL && tn_endpoint_read(a, TN_ENDPOINT_PORT, &x, NULL) == TN_OK &&
           tn_endpoint_read(b, TN_ENDPOINT_PORT, &y, NULL) == TN_OK && x.is_ipc == y.is_ipc &&
           (x.is_ipc || strcmp(x.host, y.host) == 0);
}

static uint32_t count_here(const tn_membership *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->size; i++) {
        const char *own = r->host[r->rank];
        const bool named = own != NULL && r->host[i] != NULL && strcmp(own, r->host[i]) == 0;
        n += i == r->rank || named || same_machine(r->address[i], r->address[r->rank]) ? 1 : 0;
    }
    return n;
}

tn_status tn_membership_find(tn_membership *out, const tn_membership_in *in, tn_arena *arena,
                             tn_error *err)
{
    search s = {.in = in, .arena = arena, .err = err, .size = TN_UNSET_U32};
    tn_membership r = {.size = 1, .n_here = 1, .how = "alone"};
    s.found = (tn_launched){.rank = TN_UNSET_U32, .size = TN_UNSET_U32};
    TN_TRY(read_user(&s));
    if (s.size != 1) {
        TN_TRY(ask_launchers(&s));
    }
    bool alone = s.size == 1 || (s.by == NULL && s.size == TN_UNSET_U32);
    if (!alone) {
        TN_TRY(find_rank(&s));
    }
    if (alone || s.size == 1) {
        r.how = s.note != NULL ? tn_arena_text(arena, "alone: %s", s.note) : r.how;
        *out = r;
        return TN_OK;
    }
    const char *job = tn_env(&in->env, "TNET_JOB");
    s.found.job = job != NULL ? job : s.found.job;
    r.rank = s.found.rank;
    r.size = s.size;
    r.job = name_run(&s);
    r.host = s.found.host != NULL ? s.found.host : TN_NEW_ARRAY(arena, const char *, s.size);
    TN_TRY(find_addresses(&s, &r));
    TN_ASSERT(r.job != 0 && (r.address[0] == NULL) == (r.meet != NULL));
    r.n_here = count_here(&r);
    TN_TRY(find_bind(&s, &r));
    r.how =
        tn_arena_text(arena, "rank %u of %u by %s%s%s", r.rank, r.size, s.by,
                      s.found.job != NULL ? ", job " : "", s.found.job != NULL ? s.found.job : "");
    *out = r;
    return TN_OK;
}

typedef struct peers_words {
    uint32_t peers;
    tn_strs list;
} peers_words;

/* ---- the option cluster.peers ---- */

static const char *const auto_words[] = {"auto", NULL};

static const tn_field number[] = {
    TN_FIELD_U32W(peers_words, peers, "auto", 1, TN_PEERS_MAX, "", auto_words, "processes"),
    TN_FIELD_END,
};

static const tn_field addresses[] = {
    TN_FIELD_STRS(peers_words, list, "~", "addresses"),
    TN_FIELD_END,
};

static void check_list(const tn_binder *b, const tn_tree *tree, const tn_strs *list)
{
    if (list->n > TN_PEERS_MAX) {
        tn_diag_error(b->diag, &tree->at, "'cluster.peers' holds %u addresses, more than %d",
                      list->n, TN_PEERS_MAX);
        return;
    }
    const tn_tree *item = tree->first;
    for (uint32_t i = 0; i < list->n && item != NULL; i++, item = item->next) {
        tn_endpoint e;
        tn_error err = {0};
        if (tn_endpoint_read(list->item[i], TN_ENDPOINT_PORT, &e, &err) != TN_OK) {
            tn_diag_error(b->diag, &item->at, "'cluster.peers': %s", err.text);
        }
    }
}

void tn_peers_bind(const tn_binder *b, const tn_tree *tree, tn_peers_opts *out)
{
    tn_binder inner = *b;
    inner.path = b->path != NULL ? b->path : "cluster";
    *out = (tn_peers_opts){0};
    if (tn_tree_is_null(tree)) {
        return;
    }
    peers_words words = {0};
    if (tree->kind == TN_TREE_LIST) {
        tn_fields_bind(&inner, addresses, tn_tree_wrap(b->arena, "list", tree), &words);
        check_list(&inner, tree, &words.list);
        *out = (tn_peers_opts){.n = words.list.n, .address = words.list};
        return;
    }
    tn_fields_bind(&inner, number, tn_tree_wrap(b->arena, "peers", tree), &words);
    out->n = words.peers == TN_AUTO ? 0 : words.peers;
}

/* ---- a real process ---- */

tn_status tn_membership_place(const tn_membership *r, tn_endpoint *out, tn_error *err)
{
    TN_ASSERT(r->size > 1 && r->rank < r->size && r->bind != NULL);
    tn_endpoint own;
    tn_endpoint root;
    char name[TN_INTERFACE_NAME];
    char text[TN_ENDPOINT_SIZE];
    const char *first = r->rank > 0 ? r->address[0] : NULL;
    TN_TRY(tn_endpoint_read(r->bind, 0, &own, err));
    if (first != NULL) {
        TN_TRY(tn_endpoint_read(first, 0, &root, err));
    }
    TN_TRY(tn_interfaces_choose(&own, first != NULL ? &root : NULL, name, err));
    tn_endpoint_write(&own, text);
    tn_log(TN_LOG_INFO, "%s: at %s%s%s", r->how, text, name[0] != '\0' ? ", interface " : "", name);
    *out = own;
    return TN_OK;
}

static const char *get_env(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name); // NOLINT(concurrency-mt-unsafe): nobody sets it
}

static bool is_local(void *ctx, const char *host)
{
    (void)ctx;
    return tn_interfaces_have(host);
}

tn_membership_in tn_membership_here(const tn_peers_opts *opts, const char *run_dir,
                                    char host[TN_ENDPOINT_HOST])
{
    if (gethostname(host, TN_ENDPOINT_HOST) != 0) {
        memcpy(host, "localhost", sizeof "localhost");
    }
    host[TN_ENDPOINT_HOST - 1] = '\0';
    return (tn_membership_in){.env = {.get = get_env, .host = host},
                              .is_local = is_local,
                              .peers = *opts,
                              .run_dir = run_dir,
                              .uid = geteuid()};
}
