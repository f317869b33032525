/* scheme_webhdfs.c - WebHDFS and HttpFS: OPEN with offset and length, LISTSTATUS, GETFILESTATUS.
 *
 * The NameNode answers 307 with the address of a DataNode; that request carries what the NameNode
 * put into it, and nothing of ours.
 */
#include "extra/remote/scheme_webhdfs.h"

#include "base/codec/json.h"
#include "extra/remote/remote_client.h"

#include <fnmatch.h>
#include <string.h>

/* Returns host `node` of "a:1,b:2", counted round. */
static tn_bytes host_of(tn_bytes hosts, uint32_t node)
{
    uint32_t n = 1;
    for (size_t i = 0; i < hosts.size; i++) {
        n += hosts.data[i] == ',';
    }
    const char *at = hosts.data;
    const char *end = at + hosts.size;
    for (uint32_t i = node % n; i > 0; i--) {
        at = (const char *)memchr(at, ',', (size_t)(end - at)) + 1;
    }
    const char *comma = memchr(at, ',', (size_t)(end - at));
    return (tn_bytes){at, (size_t)((comma != NULL ? comma : end) - at), false};
}

/* Appends a secret. Returns false when there is none. */
static bool add_secret(tn_attempt *out, tn_secret which, const char *name)
{
    tn_text value = {0};
    const bool has = tn_secrets_add(out->secrets, which, &value);
    if (has) {
        tn_text_addf(&out->url, "&%s=", name);
        tn_uri_encode(&out->url, (tn_bytes){value.data, value.size, false}, false);
    }
    tn_text_done(&value);
    return has;
}

/* Appends the user, unless a ticket or a token names it: a NameNode refuses another user.name
 * beside them, which HADOOP_USER_NAME may hold for others. */
static void add_user(tn_attempt *out)
{
    const bool token = add_secret(out, TN_SECRET_HDFS_DELEGATION, "delegation");
    const bool kerberos = tn_secrets_is_true(out->secrets, TN_SECRET_HDFS_KERBEROS);
    out->kerberos = kerberos && !out->away;
    if (!token && !kerberos) {
        const bool named = add_secret(out, TN_SECRET_HDFS_USER, "user.name");
        (void)named; /* else the server knows one for nobody */
    }
}

/* Type of a body; HttpFS takes bytes by no other name. */
static const char octets[] = "application/octet-stream";

static void webhdfs_build(const tn_request *request, tn_attempt *out)
{
    const tn_bytes host = host_of(request->uri->host, out->node);
    tn_text_addf(&out->url, "%s://%.*s/webhdfs/v1/",
                 request->scheme == &tn_scheme_webhdfs ? "http" : "https", (int)host.size,
                 host.data);
    tn_uri_encode(&out->url, request->path, true);
    if (request->document != NULL) {
        tn_text_addf(&out->url, "?op=%s", request->document);
    } else {
        tn_text_addf(&out->url, "?op=OPEN&offset=%llu", (unsigned long long)out->next);
        if (out->end != UINT64_MAX) {
            tn_text_addf(&out->url, "&length=%llu", (unsigned long long)(out->end - out->next));
        }
    }
    add_user(out);
    if (request->body != NULL) {
        tn_attempt_header(out, "Content-Type", (tn_bytes){octets, sizeof octets - 1, false});
    }
}

/* Gives the first `name`, as in "offset=", of a query another value; a later '?' is part of one. */
static bool set_parameter(tn_text *url, const char *name, uint64_t value)
{
    tn_text made = {0};
    const char *all = tn_text_str(url);
    const char *at = all + strcspn(all, "?#");
    while ((*at == '?' || *at == '&') && strncmp(at + 1, name, strlen(name)) != 0) {
        at += 1 + strcspn(at + 1, "&#");
    }
    if (*at != '?' && *at != '&') {
        return false;
    }
    at += 1 + strlen(name);
    tn_text_addf(&made, "%.*s%llu%s", (int)(at - all), all, (unsigned long long)value,
                 at + strcspn(at, "&#"));
    tn_text_done(url);
    *url = made;
    return true;
}

/* Changes the range: a DataNode serves any bytes of a file, near or not. */
static bool webhdfs_move(tn_text *url, uint64_t from, uint64_t end)
{
    return set_parameter(url, "offset=", from) && set_parameter(url, "length=", end - from);
}

/* ---- answers of failure ---- */

enum { SAFE_MODE_S = 30 }; /* Hadoop stays in it that long after a restart, at least */

static bool has_word(tn_bytes body, const char *word)
{
    return body.size > 0 && memmem(body.data, body.size, word, strlen(word)) != NULL;
}

/* Adds the name of the exception that an answer describes. */
static void name_exception(tn_bytes body, tn_judgement *v)
{
    const tn_json *tree = NULL;
    tn_arena *arena = tn_arena_new(1 << 12);
    if (tn_json_parse(&tree, body.data, body.size, arena, "an answer", NULL) == TN_OK) {
        const tn_json *why = tn_json_get(tree, "RemoteException");
        const char *name = tn_json_as_str(tn_json_get(why, "exception"));
        tn_judgement_name(v, name != NULL ? name : "");
    }
    tn_arena_free(arena);
}

/* Puts an answer 401 that asks for Kerberos into words, with what to do. */
static void refuse_ticket(const tn_attempt *a, tn_judgement *v)
{
    tn_text_clear(&v->why);
    if (a->away) {
        tn_text_adds(&v->why,
                     "the place that the server redirects to wants Kerberos (401), and gets no "
                     "ticket\nhint: webhdfs_delegation in the file of data.secrets is sent on");
    } else if (!a->kerberos) {
        tn_text_adds(&v->why,
                     "the server wants Kerberos (401)\nhint: a line 'webhdfs_kerberos = true' in "
                     "the file of data.secrets, and a ticket: kinit");
    } else if (a->no_ticket[0] != '\0') {
        tn_text_addf(&v->why,
                     "the server wants Kerberos (401), and there is no ticket: %s\nhint: klist "
                     "shows the tickets, kinit gets one",
                     a->no_ticket);
    } else {
        tn_text_adds(&v->why, "the server refuses the Kerberos ticket (401)\nhint: klist shows the "
                              "tickets and whose they are");
    }
}

/* Asks the next NameNode where one is on standby or fails, and the same one again while it is in
 * safe mode: it has just begun, or refuses for a while by an administrator's command (403). */
static void webhdfs_judge(const tn_failed_answer *answer, tn_judgement *v)
{
    if (has_word(answer->body, "StandbyException")) {
        v->kind = TN_JUDGED_NEXT_HOST;
        tn_text_clear(&v->why);
        tn_text_adds(&v->why, "every NameNode is on standby");
    } else if (has_word(answer->body, "in safe mode") ||
               has_word(answer->body, "RetriableException")) {
        v->kind = TN_JUDGED_RETRY;
        v->pause_s = SAFE_MODE_S;
        tn_text_clear(&v->why);
        tn_text_adds(&v->why, "the NameNode is in safe mode");
    } else if (v->kind == TN_JUDGED_RETRY) {
        v->kind = TN_JUDGED_NEXT_HOST;
    } else if (answer->reply->status == 401 && answer->reply->negotiate) {
        refuse_ticket(answer->attempt, v);
    } else if (v->kind == TN_JUDGED_REFUSE) {
        name_exception(answer->body, v);
    }
}

/* ---- what is in a folder ---- */

bool tn_webhdfs_read(const tn_json *one, tn_webhdfs_status *out)
{
    const char *type = tn_json_as_str(tn_json_get(one, "type"));
    out->name = tn_json_as_str(tn_json_get(one, "pathSuffix"));
    out->folder = type != NULL && strcmp(type, "DIRECTORY") == 0;
    const bool sized = tn_json_as_u64(tn_json_get(one, "length"), &out->size);
    const bool dated = tn_json_as_u64(tn_json_get(one, "modificationTime"), &out->changed);
    return out->name != NULL && type != NULL && dated && (out->folder || sized) &&
           strchr(out->name, '/') == NULL;
}

static tn_status damaged(const tn_request *request, tn_error *err)
{
    return tn_fail(err, TN_E_DATA, "'%s': the NameNode's answer is damaged",
                   request->uri->scheme.data);
}

/* Asks for an answer, which becomes a tree in `arena`. */
static tn_status ask(tn_remote *client, const tn_request *request, const char *op, tn_arena *arena,
                     const tn_json **out, tn_error *err)
{
    tn_text answer = {0};
    tn_http_reply reply;
    const tn_request asked = {.scheme = request->scheme,
                              .uri = request->uri,
                              .path = request->path,
                              .document = op,
                              .end = UINT64_MAX,
                              .size = UINT64_MAX,
                              .stop = request->stop};
    tn_status status = tn_remote_ask(client, &asked, &answer, &reply, err);
    if (status == TN_OK &&
        tn_json_parse(out, tn_text_str(&answer), answer.size, arena, "an answer", NULL) != TN_OK) {
        status = damaged(request, err);
    }
    tn_text_done(&answer);
    return status;
}

static void name_tag(uint64_t changed, tn_text *out)
{
    tn_text_addf(out, "changed %llu", (unsigned long long)changed);
}

static tn_status webhdfs_look(tn_remote *client, const tn_request *request, uint64_t *size,
                              tn_text *tag, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 12);
    const tn_json *tree = NULL;
    tn_webhdfs_status s;
    tn_status status = ask(client, request, "GETFILESTATUS", arena, &tree, err);
    if (status == TN_OK && !tn_webhdfs_read(tn_json_get(tree, "FileStatus"), &s)) {
        status = damaged(request, err);
    }
    if (status == TN_OK && s.folder) {
        status = tn_fail(err, TN_E_DATA, "'%s' is a folder", request->uri->scheme.data);
    }
    if (status == TN_OK) {
        *size = s.size;
        name_tag(s.changed, tag);
        status = tn_text_check(tag, "the version of a file", err);
    }
    tn_arena_free(arena);
    return status;
}

/* One level of a pattern: all names in `folder` that match the part in front of `rest`. */
typedef struct level {
    tn_remote *client;
    const tn_request *request;
    tn_found *found;
    uint32_t depth;
} level;

enum { DEPTH_MAX = 100 };

static tn_status walk(const level *l, tn_bytes folder, tn_bytes rest, tn_error *err);

/* Matches a pattern that is one name, or "" for all but hidden ones; a file is listed as "" in
 * itself. */
static bool is_meant(tn_bytes pattern, const char *name)
{
    char copy[1024];
    if (pattern.size == 0) {
        return *name != '.' && *name != '_';
    }
    if (pattern.size >= sizeof copy) {
        return false;
    }
    memcpy(copy, pattern.data, pattern.size);
    copy[pattern.size] = '\0';
    return fnmatch(copy, name, FNM_PATHNAME | FNM_PERIOD) == 0;
}

static tn_status take(const level *l, tn_bytes folder, const tn_webhdfs_status *s, const char *rest,
                      tn_bytes left, tn_error *err)
{
    tn_text path = {0};
    tn_text tag = {0};
    tn_text_add(&path, folder.data, folder.size);
    const bool joint = folder.size > 0 && folder.data[folder.size - 1] != '/' && *s->name != '\0';
    tn_text_addf(&path, "%s%s", joint ? "/" : "", s->name);
    name_tag(s->changed, &tag);
    tn_status status = tn_text_check(&path, "a path", err);
    const tn_bytes full = {tn_text_str(&path), path.size, false};
    if (status == TN_OK && rest == NULL && !s->folder) {
        status = tn_found_add(l->found, l->request, full, s->size, &tag, err);
    } else if (status == TN_OK && rest != NULL && s->folder) {
        status = walk(&(level){l->client, l->request, l->found, l->depth + 1}, full, left, err);
    }
    tn_text_done(&path);
    tn_text_done(&tag);
    return status;
}

static tn_status walk(const level *l, tn_bytes folder, tn_bytes rest, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    const tn_json *tree = NULL;
    const char *slash = rest.size > 0 ? memchr(rest.data, '/', rest.size) : NULL;
    const tn_bytes name = {rest.data, slash != NULL ? (size_t)(slash - rest.data) : rest.size,
                           false};
    const tn_bytes left = {name.data + name.size + (slash != NULL),
                           rest.size - name.size - (slash != NULL), false};
    tn_status status =
        l->depth < DEPTH_MAX ? TN_OK : tn_fail(err, TN_E_LIMIT, "a path is too deep");
    tn_request listed = *l->request;
    listed.path = folder;
    status = status == TN_OK ? ask(l->client, &listed, "LISTSTATUS", arena, &tree, err) : status;
    const tn_json *list = tn_json_get(tn_json_get(tree, "FileStatuses"), "FileStatus");
    if (status == TN_OK && (list == NULL || list->kind != TN_JSON_LIST)) {
        status = damaged(l->request, err);
    }
    for (const tn_json *one = list != NULL ? list->first : NULL; one != NULL && status == TN_OK;
         one = one->next) {
        tn_webhdfs_status s;
        status = tn_found_count(l->found, l->request, 1, err);
        if (status == TN_OK && !tn_webhdfs_read(one, &s)) {
            status = damaged(l->request, err);
        } else if (status == TN_OK && is_meant(name, s.name)) {
            status = take(l, folder, &s, slash, left, err);
        }
    }
    tn_arena_free(arena);
    return status;
}

static tn_status webhdfs_list(tn_remote *client, const tn_request *request, tn_found *found,
                              tn_error *err)
{
    const level top = {client, request, found, 0};
    size_t plain = tn_uri_plain(request->path);
    if (plain == request->path.size) { /* a folder */
        return walk(&top, request->path, (tn_bytes){"", 0, false}, err);
    }
    while (plain > 0 && request->path.data[plain - 1] != '/') {
        plain--;
    }
    return walk(&top, (tn_bytes){request->path.data, plain, false},
                (tn_bytes){request->path.data + plain, request->path.size - plain, false}, err);
}

#define WEBHDFS(scheme_name)                                                                       \
    {                                                                                              \
        .name = (scheme_name), .range_in_url = true, .redirects_first = true, .redirects_max = 5,  \
        .build = webhdfs_build, .move = webhdfs_move, .judge = webhdfs_judge,                      \
        .list = webhdfs_list, .look = webhdfs_look, .put = tn_webhdfs_put                          \
    }

const tn_scheme tn_scheme_webhdfs = WEBHDFS("webhdfs");
const tn_scheme tn_scheme_swebhdfs = WEBHDFS("swebhdfs");
