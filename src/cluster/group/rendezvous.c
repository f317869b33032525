/* rendezvous.c - rank 0 collects its group; how long a rank waits for that. */
#include "cluster/group/rendezvous.h"

#include "base/core/alloc.h"
#include "base/core/error.h"
#include "base/core/log.h"
#include "cluster/group/failure_detector.h"
#include "cluster/launch/endpoint.h"

#include <string.h>

enum {
    WORD = 256, /* longest version, hash or set of kernels, and its NUL */
    RUNS = 4,   /* runs of missing ranks that are listed one by one */
};

typedef struct member {
    uint64_t incarnation; /* 0: not in */
    uint64_t pid;
    uint64_t replaced[TN_RENDEZVOUS_STARTS]; /* a ring: the k-th at k % TN_RENDEZVOUS_STARTS */
    uint64_t n_replaced;
    char host[TN_ENDPOINT_HOST];
    char address[TN_ENDPOINT_SIZE];
} member;

struct tn_rendezvous {
    const tn_owners *owners;
    uint32_t n_in;
    char version[WORD], config_hash[WORD], structure[WORD], cpu[WORD]; /* rank 0's */
    /* lists of a welcome, by member; they follow the members in this block */
    const char **address, **host;
    uint64_t *incarnation, *owned_from;
    member member[]; /* all members of the group */
};

/* Returns whether a text is not NULL, of fewer than `size` bytes, and fit for a line of a log. */
static bool is_plain(const char *text, size_t size)
{
    size_t n = 0;
    while (text != NULL && n < size && (unsigned char)text[n] >= ' ' && text[n] != 0x7f) {
        n++;
    }
    return text != NULL && n < size && text[n] == 0;
}

static bool is_reachable(const char *address)
{
    tn_endpoint e;
    return is_plain(address, TN_ENDPOINT_SIZE) && tn_endpoint_read(address, 0, &e, NULL) == TN_OK &&
           (e.is_ipc || (e.port != 0 && strcmp(e.host, "*") != 0));
}

/* Returns the name of the first damaged field, or NULL. */
static const char *damage_of(const tn_hello_note *note)
{
    const struct {
        const char *name;
        bool ok;
    } check[] = {
        {"version", is_plain(note->version, WORD)},
        {"host", is_plain(note->host, TN_ENDPOINT_HOST) && note->host[0] != 0},
        {"address", is_reachable(note->address)},
        {"config_hash", is_plain(note->config_hash, WORD)},
        {"structure", is_plain(note->structure, WORD)},
        {"cpu", is_plain(note->cpu, WORD)},
    };
    for (size_t i = 0; i < sizeof check / sizeof check[0]; i++) {
        if (!check[i].ok) {
            return check[i].name;
        }
    }
    return NULL;
}

/* Copies a text to `to`, which has room for every text that damage_of accepts. */
static void keep(char *to, const char *text)
{
    memcpy(to, text, strlen(text) + 1);
}

static void let_in(tn_rendezvous *f, uint32_t rank, uint64_t incarnation, const tn_hello_note *note)
{
    TN_ASSERT(rank < f->owners->n_peers && incarnation != 0);
    member *m = &f->member[rank];
    if (m->incarnation == 0) {
        TN_ASSERT(f->n_in < f->owners->n_peers);
        f->n_in++;
    } else {
        m->replaced[m->n_replaced++ % TN_RENDEZVOUS_STARTS] = m->incarnation;
    }
    m->incarnation = f->incarnation[rank] = incarnation;
    m->pid = note->pid;
    keep(m->host, note->host);
    keep(m->address, note->address);
}

void tn_rendezvous_free(tn_rendezvous *f)
{
    tn_free(f);
}

tn_status tn_rendezvous_new(tn_rendezvous **out, const tn_owners *owners, uint64_t incarnation,
                            const tn_hello_note *own, tn_error *err)
{
    TN_ASSERT(owners->n_peers > 0 && incarnation != 0);
    *out = NULL;
    const char *damage = damage_of(own);
    if (damage != NULL) {
        return tn_fail(err, TN_E_CONFIG, "the '%s' of this peer cannot be told to others", damage);
    }
    const size_t n = owners->n_peers;
    const size_t each = sizeof(member) + 2 * sizeof(uint64_t) + 2 * sizeof(char *);
    tn_rendezvous *f =
        tn_try_alloc(1, sizeof *f + n * each + sizeof *f->owned_from, "the group that forms", err);
    if (f == NULL) {
        return TN_E_MEMORY;
    }
    f->owners = owners;
    f->incarnation = (uint64_t *)(void *)(f->member + n);
    f->owned_from = f->incarnation + n;
    f->address = (const char **)(void *)(f->owned_from + n + 1);
    f->host = f->address + n;
    for (uint32_t r = 0; r < owners->n_peers; r++) {
        f->address[r] = f->member[r].address;
        f->host[r] = f->member[r].host;
    }
    for (uint32_t r = 0; r <= owners->n_peers; r++) {
        f->owned_from[r] = owners->from[r];
    }
    keep(f->version, own->version);
    keep(f->config_hash, own->config_hash);
    keep(f->structure, own->structure);
    keep(f->cpu, own->cpu);
    let_in(f, 0, incarnation, own);
    *out = f;
    return TN_OK;
}

/* Returns a refusal unless it is the same program with the same work; else 0. */
static uint32_t compare(const tn_rendezvous *f, uint32_t rank, const tn_hello_note *note,
                        tn_text *why)
{
    const struct {
        const char *name, *theirs, *ours, *hint;
    } trait[] = {
        {"version", note->version, f->version, ""},
        {"configuration", note->config_hash, f->config_hash,
         "\nhint: all peers need the same options; compare --print-config"},
        {"structure of the model", note->structure, f->structure, ""},
    };
    for (uint32_t i = 0; i < sizeof trait / sizeof trait[0]; i++) {
        if (i > 0 && note->peers != f->owners->n_peers) {
            tn_text_addf(why,
                         "rank %u on host '%s' takes the group for one of %llu peers, rank 0 on "
                         "host '%s' for one of %u",
                         rank, note->host, (unsigned long long)note->peers, f->member[0].host,
                         f->owners->n_peers);
            return TN_REFUSAL_CONFIG;
        }
        if (strcmp(trait[i].theirs, trait[i].ours) != 0) {
            tn_text_addf(
                why,
                "the %s of rank %u on host '%s' is '%s', that of rank 0 on host '%s' is '%s'%s",
                trait[i].name, rank, note->host, trait[i].theirs, f->member[0].host, trait[i].ours,
                trait[i].hint);
            return i == 0 ? TN_REFUSAL_VERSION : TN_REFUSAL_CONFIG;
        }
    }
    return 0;
}

static bool was_replaced(const member *m, uint64_t incarnation)
{
    for (uint64_t i = 0; i < m->n_replaced && i < TN_RENDEZVOUS_STARTS; i++) {
        if (m->replaced[i] == incarnation) {
            return true;
        }
    }
    return false;
}

static uint32_t refuse_taken(const tn_rendezvous *f, uint32_t rank, const tn_hello_note *note,
                             tn_text *why)
{
    const member *m = &f->member[rank];
    tn_text_addf(why,
                 "rank %u of host '%s', pid %llu is taken by host '%s', pid %llu\n"
                 "hint: was the same rank started twice?",
                 rank, note->host, (unsigned long long)note->pid, m->host,
                 (unsigned long long)m->pid);
    return TN_REFUSAL_RANK;
}

static void log_arrival(const tn_rendezvous *f, uint32_t rank, const tn_hello_note *note)
{
    if (f->member[rank].n_replaced > 0) {
        tn_log(TN_LOG_INFO, "rank %u was started again: host '%s', pid %llu", rank, note->host,
               (unsigned long long)note->pid);
    }
    if (strcmp(note->cpu, f->cpu) != 0) {
        tn_log(TN_LOG_WARN,
               "rank %u on host '%s' computes with '%s', rank 0 on host '%s' with '%s': the same "
               "bits run after run only if every rank stays on its kind of processor",
               rank, note->host, note->cpu, f->member[0].host, f->cpu);
    }
}

bool tn_rendezvous_is_whole(const tn_rendezvous *f)
{
    return f->n_in == f->owners->n_peers;
}

uint32_t tn_rendezvous_hello(tn_rendezvous *f, uint32_t rank, uint64_t incarnation,
                             const tn_hello_note *note, tn_text *why)
{
    const char *damage = incarnation == 0 ? "incarnation" : damage_of(note);
    if (damage != NULL) {
        tn_text_addf(why, "rank %u says hello with a damaged '%s'", rank, damage);
        return TN_REFUSAL_DAMAGED;
    }
    uint32_t refusal = compare(f, rank, note, why);
    if (refusal != 0) {
        return refusal;
    }
    if (rank >= f->owners->n_peers) {
        tn_text_addf(why, "rank %u on host '%s' is none of %u peers", rank, note->host,
                     f->owners->n_peers);
        return TN_REFUSAL_RANK;
    }
    const member *m = &f->member[rank];
    if (m->incarnation == incarnation) {
        bool same = rank != 0 && m->pid == note->pid && strcmp(m->host, note->host) == 0;
        return same ? 0 : refuse_taken(f, rank, note, why);
    }
    if (rank == 0 || tn_rendezvous_is_whole(f) || was_replaced(m, incarnation)) {
        return refuse_taken(f, rank, note, why);
    }
    let_in(f, rank, incarnation, note);
    log_arrival(f, rank, note);
    return 0;
}

bool tn_rendezvous_is_in(const tn_rendezvous *f, uint32_t rank)
{
    return rank < f->owners->n_peers && f->member[rank].incarnation != 0;
}

bool tn_rendezvous_gives_up(const tn_rendezvous *f, uint32_t rank, uint64_t incarnation)
{
    if (rank == 0 || rank >= f->owners->n_peers || incarnation == 0) {
        return false;
    }
    const member *m = &f->member[rank];
    return m->incarnation == incarnation ||
           (!tn_rendezvous_is_whole(f) && !was_replaced(m, incarnation));
}

void tn_rendezvous_welcome(const tn_rendezvous *f, tn_welcome_note *out)
{
    TN_ASSERT(tn_rendezvous_is_whole(f));
    const size_t n = f->owners->n_peers;
    *out = (tn_welcome_note){.address = {f->address, n},
                             .host = {f->host, n},
                             .incarnation = {f->incarnation, n},
                             .owned_from = {f->owned_from, n + 1}};
}

/* Counts missing ranks from `rank` on that are listed together: a run of three or more, or one. */
static uint32_t run_from(const tn_rendezvous *f, uint32_t rank)
{
    uint32_t end = rank;
    while (end < f->owners->n_peers && f->member[end].incarnation == 0) {
        end++;
    }
    return end - rank > 2 ? end - rank : 1;
}

void tn_rendezvous_missing(const tn_rendezvous *f, tn_text *out)
{
    uint32_t left = f->owners->n_peers - f->n_in;
    uint32_t rank = 0;
    if (left > 0) {
        tn_text_adds(out, left == 1 ? "rank " : "ranks ");
    }
    for (uint32_t i = 0; left > 0; i++) {
        TN_ASSERT(rank < f->owners->n_peers);
        while (f->member[rank].incarnation != 0) {
            rank++;
        }
        uint32_t n = run_from(f, rank);
        const char *before = i == 0 ? "" : i == RUNS || n == left ? " and " : ", ";
        if (i == RUNS && n < left) {
            tn_text_addf(out, "%s%u others", before, left);
            return;
        }
        tn_text_addf(out, "%s%u", before, rank);
        if (n > 1) {
            tn_text_addf(out, "..%u", rank + n - 1);
        }
        rank += n;
        TN_ASSERT(n <= left);
        left -= n;
    }
}

/* ---- the wait ---- */

tn_rendezvous_timer_verdict tn_rendezvous_timer_poll(tn_rendezvous_timer *w, uint64_t now_ns)
{
    TN_ASSERT(now_ns >= w->looked_ns);
    const uint64_t passed = now_ns - w->looked_ns;
    w->waited_ns += passed < TN_FAILURE_GAP_NS ? passed : TN_FAILURE_GAP_NS;
    w->looked_ns = now_ns;
    if (w->waited_ns > w->patience_ns) {
        return TN_RENDEZVOUS_TIMER_OVER;
    }
    if (w->waited_ns - w->told_ns < TN_RENDEZVOUS_TIMER_TELL_NS) {
        return TN_RENDEZVOUS_TIMER_ON;
    }
    w->told_ns = w->waited_ns;
    return TN_RENDEZVOUS_TIMER_TELL;
}
