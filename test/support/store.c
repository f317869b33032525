/* store.c - a thread per connection, a file per object, faults by the name of a path. */
#include "support/store_request.h"

#include "base/codec/json.h"
#include "base/core/text.h"
#include "base/math/sha256.h"
#include "support/sigv4.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CREEP = 100000,
    CRUMB = 100,
    HEAD_BYTES = 1 << 15,
    CHANGED_AFTER = 4,
    BITS = 100000,
    PROBE = 64
};

typedef struct listener {
    store *s;
    int i;
} listener;

typedef struct caller {
    store *s;
    int fd;
    bool standby;
} caller;

bool store_is_fault(const ask *a, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = a->plain; (at = strchr(at, '!')) != NULL; at++) {
        if (strncmp(at + 1, word, n) == 0 && (at[n + 1] == '/' || at[n + 1] == '\0')) {
            return true;
        }
    }
    return false;
}

/* ---- bytes out ---- */

bool store_send(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        const ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
        if (n <= 0) {
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* A whole answer of text; `more` are header lines. True: the connection goes on. */
bool store_answer(const ask *a, const char *status, const char *more, const char *body)
{
    char head[2048];
    const int n = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n%s\r\n",
                           status, strlen(body), more);
    return store_send(a->fd, head, (size_t)n) && store_send(a->fd, body, strlen(body));
}

/* Until the other side leaves, or the store does. */
void store_hold(const ask *a)
{
    struct pollfd waited = {.fd = a->fd, .events = POLLIN | POLLRDHUP};
    atomic_fetch_add(&a->s->held, 1);
    while (!atomic_load(&a->s->stop) && poll(&waited, 1, 20) == 0) {
    }
}

bool store_header(const ask *a, const char *name, char *out, size_t size)
{
    return sigv4_header(a->headers, name, out, size) != 0;
}

/* ---- objects ---- */

bool store_load(const ask *a, const char *path, object *out)
{
    struct stat st;
    char full[8192];
    (void)snprintf(full, sizeof full, "%s/%s", a->s->dir, path);
    const int fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return false;
    }
    *out = (object){.size = (size_t)st.st_size};
    out->data = mmap(NULL, out->size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    out->changed =
        (store_is_fault(a, "change") || store_is_fault(a, "sneak")) && a->nth >= CHANGED_AFTER;
    const bool good = out->data != MAP_FAILED;
    for (size_t i = 0; good && out->changed && i < out->size; i++) {
        out->data[i] ^= 1;
    }
    (void)snprintf(out->tag, sizeof out->tag, "\"%llx-%llx%s\"", (unsigned long long)st.st_size,
                   (unsigned long long)st.st_mtim.tv_nsec, out->changed ? "-2" : "");
    (void)snprintf(out->date, sizeof out->date, "Mon, 02 Jan 2006 15:04:05 GMT");
    (void)close(fd);
    return good;
}

void store_unload(object *o)
{
    if (o->data != NULL) {
        (void)munmap(o->data, o->size + 1);
    }
}

/* The half, and later ones with that half slowly. */
static bool put_creeping(const ask *a, const char *data, size_t size)
{
    const size_t half = size / 2;
    for (size_t at = 0; a->nth > 2 && at < half; at += CREEP) {
        if (!store_send(a->fd, data + at, half - at < CREEP ? half - at : CREEP)) {
            return false;
        }
        (void)poll(NULL, 0, 30);
    }
    return a->nth > 2 ? store_send(a->fd, data + half, size - half)
                      : store_send(a->fd, data, half) && false;
}

/* Every few bytes. */
static bool put_drops(const ask *a, const char *data, size_t size)
{
    for (size_t at = 0; at < size && !atomic_load(&a->s->stop); at += 16) {
        if (!store_send(a->fd, data + at, size - at < 16 ? size - at : 16)) {
            return false;
        }
        (void)poll(NULL, 0, 5);
    }
    return true;
}

/* Half of it, none, or drop by drop; false: the connection ends. */
static bool put_body(const ask *a, const char *data, size_t size, size_t announced)
{
    if (store_is_fault(a, "cut") && a->nth % 2 == 0) {
        (void)store_send(a->fd, data, size / 2);
        return false;
    }
    if (store_is_fault(a, "crumbs") && size > CRUMB) {
        (void)store_send(a->fd, data, CRUMB);
        return false;
    }
    if (store_is_fault(a, "bits") && size > BITS) {
        (void)store_send(a->fd, data, BITS);
        return false;
    }
    if (store_is_fault(a, "stall") && a->nth % 3 == 0) {
        (void)store_send(a->fd, data, size / 2);
        store_hold(a);
        return false;
    }
    if (store_is_fault(a, "creep") && a->nth > 1) { /* the first was a look */
        return put_creeping(a, data, size);
    }
    if (store_is_fault(a, "slow") && a->nth % 4 == 0) {
        return put_drops(a, data, size);
    }
    return store_send(a->fd, data, size) && announced == size;
}

static bool put_chunked(const ask *a, const char *data, size_t size)
{
    char mark[32];
    const size_t step = BITS;
    for (size_t at = 0; at < size; at += step) {
        const size_t n = size - at < step ? size - at : step;
        (void)snprintf(mark, sizeof mark, "%zx\r\n", n);
        if (!store_send(a->fd, mark, strlen(mark)) || !store_send(a->fd, data + at, n) ||
            !store_send(a->fd, "\r\n", 2)) {
            return false;
        }
    }
    return store_send(a->fd, "0\r\n\r\n", 5);
}

/* "bytes=a-b" or "bytes=a-" of an object; false: the whole of it. */
static bool wanted(const ask *a, const object *o, size_t *from, size_t *to)
{
    char range[100];
    char condition[100];
    if (store_is_fault(a, "noranges") || store_is_fault(a, "chunked") ||
        store_is_fault(a, "nolength") || !store_header(a, "Range", range, sizeof range) ||
        strncmp(range, "bytes=", 6) != 0) {
        return false;
    }
    if (!store_is_fault(a, "sneak") && store_header(a, "If-Range", condition, sizeof condition) &&
        strcmp(condition, o->tag) != 0 && strcmp(condition, o->date) != 0) {
        return false;
    }
    char *end = NULL;
    *from = strtoull(range + 6, &end, 10);
    *to = end[1] != '\0' ? strtoull(end + 1, NULL, 10) + 1 : o->size;
    *to = *to < o->size ? *to : o->size;
    return true;
}

static void name_length(const ask *a, size_t announced, char out[64])
{
    const int n = snprintf(out, 64, "Content-Length: %zu\r\n", announced);
    if (store_is_fault(a, "twice")) {
        (void)snprintf(out + n, 64 - (size_t)n, "Content-Length: %zu\r\n", announced / 2);
    }
}

/* Whether the answer names its version. */
static bool is_tagged(const ask *a)
{
    return !store_is_fault(a, "notag") && (!store_is_fault(a, "forget") || a->nth <= 2);
}

static bool put_object(const ask *a, const object *o)
{
    char head[1024];
    char condition[100];
    char length[64];
    size_t from = 0;
    size_t to = o->size;
    if (!store_is_fault(a, "sneak") && store_header(a, "If-Match", condition, sizeof condition) &&
        strcmp(condition, o->tag) != 0) {
        return store_answer(a, "412 Precondition Failed", "", "");
    }
    const bool part = wanted(a, o, &from, &to);
    if (part && from >= o->size) {
        (void)snprintf(head, sizeof head, "Content-Range: bytes */%zu\r\n", o->size);
        if (store_is_fault(a, "bare")) {
            head[0] = '\0';
        }
        return store_answer(a, "416 Range Not Satisfiable", head, "");
    }
    from += part && store_is_fault(a, "shift") && from > 0;
    const size_t size = to - from;
    const size_t announced = size + (store_is_fault(a, "wrong") ? 10 : 0);
    name_length(a, announced, length);
    int n =
        snprintf(head, sizeof head, "HTTP/1.1 %s\r\n%s", part ? "206 Partial Content" : "200 OK",
                 store_is_fault(a, "chunked")    ? "Transfer-Encoding: chunked\r\n"
                 : store_is_fault(a, "nolength") ? "Connection: close\r\n"
                                                 : length);
    if (is_tagged(a)) {
        n += snprintf(head + n, sizeof head - (size_t)n, "ETag: %s\r\nLast-Modified: %s\r\n",
                      o->tag, o->date);
    }
    if (part) {
        n += snprintf(head + n, sizeof head - (size_t)n, "Content-Range: bytes %zu-%zu/%zu\r\n",
                      from, to - 1, o->size + (store_is_fault(a, "wrong") ? 10 : 0));
    }
    n += snprintf(head + n, sizeof head - (size_t)n, "\r\n");
    if (!store_send(a->fd, head, (size_t)n)) {
        return false;
    }
    if (store_is_fault(a, "chunked")) {
        return put_chunked(a, o->data, o->size);
    }
    return put_body(a, o->data + from, size, announced) && !store_is_fault(a, "nolength");
}

static bool serve_object(const ask *a, const char *path)
{
    object o;
    if (!store_load(a, path, &o)) {
        return store_answer(a, "404 Not Found", "",
                            "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code></Error>");
    }
    const bool goes_on = put_object(a, &o);
    store_unload(&o);
    return goes_on;
}

/* ---- S3 ---- */

static void decode(const char *from, char *to, size_t size)
{
    size_t n = 0;
    for (; *from != '\0' && n + 1 < size; from++) {
        char digits[3] = {0};
        if (from[0] == '%' && from[1] != '\0') {
            digits[0] = from[1];
            digits[1] = from[2];
        }
        char *end = NULL;
        const unsigned long byte = strtoul(digits, &end, 16);
        if (*from == '%' && end == digits + 2) {
            to[n++] = (char)byte;
            from += 2;
        } else {
            to[n++] = *from;
        }
    }
    to[n] = '\0';
}

/* A parameter of the query, decoded; "" when there is none. */
void store_parameter(const ask *a, const char *name, char *out, size_t size)
{
    const size_t n = strlen(name);
    out[0] = '\0';
    for (const char *at = a->query; *at != '\0';) {
        const size_t part = strcspn(at, "&");
        if (part > n && at[n] == '=' && strncmp(at, name, n) == 0) {
            char raw[4096];
            (void)snprintf(raw, sizeof raw, "%.*s", (int)(part - n - 1), at + n + 1);
            decode(raw, out, size);
            return;
        }
        at += part + (at[part] == '&');
    }
}

/* Whether the Authorization of a request is that of AKID. */
static bool is_signed(const ask *a)
{
    char line[2048];
    char names[512] = "";
    char signature[80] = "";
    char region[64] = "";
    char date[64] = "";
    char hash[80] = "";
    char good[65];
    if (!store_header(a, "Authorization", line, sizeof line) ||
        !store_header(a, "x-amz-date", date, sizeof date) ||
        !store_header(a, "x-amz-content-sha256", hash, sizeof hash) ||
        sscanf(line,
               "AWS4-HMAC-SHA256 Credential=AKID/%*8s/%63[^/]/s3/aws4_request, "
               "SignedHeaders=%511[^,], Signature=%79s",
               region, names, signature) != 3) {
        return false;
    }
    sigv4_sign(
        &(sigv4_request){a->path, a->query, a->headers, names, date, region, hash, a->method},
        STORE_SECRET, good);
    return strcmp(signature, good) == 0;
}

static bool is_expired(const ask *a)
{
    char token[100] = "";
    (void)store_header(a, "x-amz-security-token", token, sizeof token);
    return store_is_fault(a, "expire") && a->nth >= CHANGED_AFTER && strcmp(token, "new") != 0;
}

/* ---- WebHDFS ---- */

static void add_status(const ask *a, const char *path, const char *suffix, tn_text *out)
{
    struct stat st = {0};
    char full[8192];
    (void)snprintf(full, sizeof full, "%s/%s%s%s", a->s->dir, path, *suffix != '\0' ? "/" : "",
                   suffix);
    (void)stat(full, &st);
    const bool changed = store_is_fault(a, "change") && a->nth >= CHANGED_AFTER;
    tn_text_adds(out, "{");
    tn_json_str(out, "pathSuffix", suffix);
    tn_text_addf(out, ",\"type\":\"%s\",\"length\":%llu,\"modificationTime\":%llu}",
                 S_ISDIR(st.st_mode) ? "DIRECTORY" : "FILE",
                 S_ISDIR(st.st_mode) ? 0ULL : (unsigned long long)st.st_size,
                 (unsigned long long)st.st_mtim.tv_nsec / 1000 + (changed ? 1 : 0));
}

static bool serve_statuses(const ask *a, const char *path)
{
    tn_text out = {0};
    char full[8192];
    (void)snprintf(full, sizeof full, "%s/%s", a->s->dir, path);
    DIR *dir = opendir(full);
    uint32_t n = 0;
    tn_text_adds(&out, "{\"FileStatuses\":{\"FileStatus\":[");
    if (dir == NULL) {
        add_status(a, path, "", &out);
    }
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this thread's */
    for (struct dirent *e = NULL; dir != NULL && (e = readdir(dir)) != NULL;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            tn_text_adds(&out, n++ > 0 ? "," : "");
            add_status(a, path, e->d_name, &out);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    tn_text_adds(&out, "]}}");
    const bool goes_on = store_answer(a, "200 OK", "", tn_text_str(&out));
    tn_text_done(&out);
    return goes_on;
}

/* The DataNode: bytes by offset and length, and no version. */
static bool serve_block(const ask *a, const char *path)
{
    object o;
    char number[32];
    char head[200];
    store_parameter(a, "offset", number, sizeof number);
    size_t from = strtoull(number, NULL, 10);
    store_parameter(a, "length", number, sizeof number);
    size_t size = strtoull(number, NULL, 10);
    if (!store_load(a, path, &o)) {
        return store_answer(a, "404 Not Found", "", "");
    }
    const bool chunked = store_is_fault(a, "chunked");
    if (store_is_fault(a, "whole") && size > PROBE) {
        from = 0;
        size = o.size;
    }
    size = size < o.size - from ? size : o.size - from;
    if (chunked) {
        (void)snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    } else {
        (void)snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", size);
    }
    const bool goes_on =
        store_send(a->fd, head, strlen(head)) &&
        (chunked ? put_chunked(a, o.data + from, size) : put_body(a, o.data + from, size, size));
    store_unload(&o);
    return goes_on;
}

static const char wants_ticket[] = "WWW-Authenticate: Negotiate\r\n";

/* Whether a ticket comes along; this server could not read it. */
static bool has_ticket(const ask *a)
{
    char line[2048];
    return store_header(a, "Authorization", line, sizeof line) &&
           strncmp(line, "Negotiate YII", 13) == 0;
}

/* Who asks, by a ticket or a token if that is what tells. False: it was answered; *goes_on. */
static bool know_user(const ask *a, char user[40], bool *goes_on)
{
    const bool ticket = has_ticket(a);
    char token[40];
    store_parameter(a, "user.name", user, 40);
    store_parameter(a, "delegation", token, sizeof token);
    atomic_fetch_add(&a->s->tickets, ticket ? 1 : 0);
    const bool secure = store_is_fault(a, "kerberos") || store_is_fault(a, "badticket");
    if (!secure && *token == '\0') {
        return true;
    }
    if ((!ticket && *token == '\0') || store_is_fault(a, "badticket")) {
        *goes_on = store_answer(a, "401 Unauthorized", wants_ticket, "");
        return false;
    }
    if (*user != '\0') {
        *goes_on = store_answer(a, "403 Forbidden", "", "");
        return false;
    }
    (void)snprintf(user, 40, "hdfs");
    return true;
}

static bool serve_webhdfs(const ask *a)
{
    char op[40];
    char user[40];
    bool goes_on = false;
    char full[8192];
    char head[8400];
    const char *path = a->plain + strlen("webhdfs/v1/");
    store_parameter(a, "op", op, sizeof op);
    if (!know_user(a, user, &goes_on)) {
        return goes_on;
    }
    if (a->standby) {
        const bool sick = store_is_fault(a, "sick");
        return store_answer(a, sick ? "500 Internal Server Error" : "403 Forbidden", "",
                            sick ? ""
                                 : "{\"RemoteException\":{\"exception\":\"StandbyException\"}}");
    }
    if (store_is_fault(a, "safe") && a->nth <= 2) {
        return store_answer(a, "403 Forbidden", "",
                            a->nth == 1
                                ? "{\"RemoteException\":{\"exception\":\"RetriableException\"}}"
                                : "{\"RemoteException\":{\"exception\":\"RemoteException\","
                                  "\"message\":\"Name node is in safe mode.\"}}");
    }
    (void)snprintf(full, sizeof full, "%s/%s", a->s->dir, path);
    if (!store_is_read(a) && strcmp(user, "hdfs") == 0) {
        return store_serve_hdfs(a, path, op);
    }
    if (strcmp(user, "hdfs") != 0 || access(full, R_OK) != 0) {
        return store_answer(a, "404 Not Found", "",
                            "{\"RemoteException\":{\"exception\":\"FileNotFoundException\"}}");
    }
    if (strcmp(op, "LISTSTATUS") == 0) {
        return serve_statuses(a, path);
    }
    if (strcmp(op, "GETFILESTATUS") == 0) {
        tn_text out = {0};
        tn_text_adds(&out, "{\"FileStatus\":");
        add_status(a, path, "", &out);
        tn_text_adds(&out, "}");
        goes_on = store_answer(a, "200 OK", "", tn_text_str(&out));
        tn_text_done(&out);
        return goes_on;
    }
    (void)snprintf(head, sizeof head, "Location: http://127.0.0.1:%u/block/%s?%s&ticket=%u\r\n",
                   a->s->port[0], a->path + strlen("/webhdfs/v1/"), a->query, a->nth);
    return store_answer(a, "307 Temporary Redirect", head, "");
}

/* ---- requests ---- */

static bool redirect(const ask *a)
{
    char head[4300];
    char to[4200];
    (void)snprintf(to, sizeof to, "%s", a->path);
    char *hop = strstr(to, "!hop/");
    if (store_is_fault(a, "hop") && hop != NULL) {
        memmove(hop, hop + 5, strlen(hop + 5) + 1);
    }
    (void)snprintf(head, sizeof head, "Location: http://localhost:%u%s\r\n%s", a->s->port[0], to,
                   store_is_fault(a, "rude") ? "x-amz-bucket-region: \033[2J\a\r\n" : "");
    return store_answer(a, "302 Found", head, "");
}

static bool is_block(const ask *a)
{
    return strncmp(a->plain, "block/", 6) == 0;
}

/* There is room for the first part of several. */
static bool is_full(const ask *a)
{
    char part[16];
    store_parameter(a, "partNumber", part, sizeof part);
    return store_is_fault(a, "full") && strcmp(a->method, "PUT") == 0 && strcmp(part, "1") != 0 &&
           (is_block(a) || strncmp(a->plain, "webhdfs", 7) != 0);
}

/* A file of a DataNode grows while its bytes come, and may be removed meanwhile. False: the
 * connection ends. */
static bool take_body(ask *a)
{
    char expect[200];
    const bool early = store_is_fault(a, "flood") || store_is_fault(a, "denied") || is_full(a);
    const bool waits = store_header(a, "Expect", expect, sizeof expect);
    if (store_is_read(a)) {
        return true;
    }
    a->grows = is_block(a) && !early;
    if (a->grows) {
        (void)store_keep(a, a->plain + 6, "", 0);
    }
    const bool whole = (early && waits) || store_read_body(a);
    store_grow(a);
    return whole;
}

/* A DataNode that sees a ticket refuses, so that programs see it, too. */
static bool has_stray_ticket(const ask *a)
{
    char line[4096];
    return is_block(a) && store_header(a, "Authorization", line, sizeof line);
}

static bool is_denied(const ask *a)
{
    return store_is_fault(a, "denied") || has_stray_ticket(a) || is_expired(a) ||
           (store_is_fault(a, "once") && is_block(a) && a->nth > 1) ||
           (strncmp(a->plain, "signed", 6) == 0 && !is_signed(a));
}

static void count_leaks(const ask *a)
{
    char value[200];
    if (store_header(a, "Host", value, sizeof value) && strncmp(value, "localhost", 9) == 0 &&
        store_header(a, "X-Secret", value, sizeof value)) {
        atomic_fetch_add(&a->s->leaks, 1);
    }
    if (has_stray_ticket(a)) {
        atomic_fetch_add(&a->s->leaks, 1);
    }
}

static bool serve_as_asked(const ask *a)
{
    if (strncmp(a->plain, "webhdfs/v1/", 11) == 0) {
        return serve_webhdfs(a);
    }
    if (is_block(a) && store_is_fault(a, "httpfs")) {
        return store_answer(a, "401 Unauthorized", wants_ticket, "");
    }
    if (is_block(a)) {
        return store_is_read(a) ? serve_block(a, a->plain + 6)
                                : store_answer_done(a, "201 Created", "", "");
    }
    if (!store_is_read(a)) {
        return store_serve_s3(a);
    }
    return strstr(a->query, "list-type=2") != NULL ? store_serve_list(a)
                                                   : serve_object(a, a->plain);
}

static bool be_rude(const ask *a)
{
    return store_answer(a, "403 Forbidden", "",
                        strncmp(a->plain, "webhdfs", 7) == 0
                            ? "{\"RemoteException\":{\"exception\":\"\\u001b[2J\\nerror: x\"}}"
                            : "<Error><Code>\033[2J&#10;error: x\a</Code></Error>");
}

/* Whether every request is put off, or this one. */
static bool is_busy(const ask *a)
{
    return store_is_fault(a, "flood") || (store_is_fault(a, "busy") && a->nth <= 2);
}

static bool serve(ask *a)
{
    if (store_is_fault(a, "dead") || strcmp(a->plain, "deadlist") == 0) {
        (void)store_keep(a, "asked", "", 0);
        store_hold(a);
        return false;
    }
    if (!take_body(a)) {
        return false;
    }
    if (is_full(a)) {
        const bool block = is_block(a);
        (void)store_answer(
            a, block ? "403 Forbidden" : "507 Insufficient Storage", "",
            block ? "{\"RemoteException\":{\"exception\":\"DSQuotaExceededException\"}}"
                  : "<Error><Code>XMinioStorageFull</Code></Error>");
        return false;
    }
    if (store_is_fault(a, "later")) {
        return store_answer(a, "503 Slow Down", "Retry-After: 3600\r\n", "");
    }
    if (is_busy(a)) {
        return store_answer(a, "503 Slow Down", "Retry-After: 1\r\n", "") && store_is_read(a);
    }
    if (store_is_fault(a, "loop") || store_is_fault(a, "hop")) {
        return redirect(a);
    }
    if (store_is_fault(a, "rude")) {
        return be_rude(a);
    }
    count_leaks(a);
    if (is_denied(a)) {
        return store_answer(a, "403 Forbidden", "",
                            is_expired(a) ? "<Error><Code>ExpiredToken</Code></Error>"
                                          : "<Error><Code>AccessDenied</Code></Error>");
    }
    return serve_as_asked(a);
}

/* How often a path was asked for. */
static void count(ask *a)
{
    unsigned sum = 0;
    for (const char *c = a->plain; *c != '\0'; c++) {
        sum = sum * 31 + (unsigned char)*c;
    }
    char range[5000] = "";
    if (!store_is_read(a)) {
        const bool ends = strcmp(a->method, "POST") == 0 && strncmp(a->query, "uploadId", 8) == 0;
        (void)snprintf(range, sizeof range, "%s?%s", a->method, ends ? "" : a->query);
    } else if (store_is_fault(a, "busy")) {
        (void)store_header(a, "Range", range, sizeof range);
    } else if (store_is_fault(a, "once")) {
        store_parameter(a, "ticket", range, sizeof range);
    }
    for (const char *c = range; *c != '\0'; c++) {
        sum = sum * 31 + (unsigned char)*c;
    }
    a->nth = atomic_fetch_add(&a->s->passed[sum % WORDS], 1) + 1;
}

static bool take_request(const caller *c, char *head, size_t have)
{
    store *s = c->s;
    ask a = {.s = s, .fd = c->fd, .standby = c->standby};
    char target[4096];
    atomic_fetch_add(&s->requests, 1);
    char *line_end = strstr(head, "\r\n");
    char *head_end = strstr(head, "\r\n\r\n") + 4;
    a.headers = line_end + 2;
    head_end[-2] = '\0'; /* behind the last line */
    a.n_early = have - (size_t)(head_end - head);
    a.early = head_end;
    if (sscanf(head, "%7s %4095s HTTP/1.1", a.method, target) != 2) {
        return false;
    }
    (void)snprintf(a.path, sizeof a.path, "%.*s", (int)strcspn(target, "?"), target);
    (void)snprintf(a.query, sizeof a.query, "%s",
                   strchr(target, '?') != NULL ? strchr(target, '?') + 1 : "");
    decode(a.path + 1, a.plain, sizeof a.plain);
    count(&a);
    const bool goes_on = serve(&a);
    free(a.body);
    return goes_on;
}

static void *talk(void *arg)
{
    caller *c = arg;
    char *head = malloc(HEAD_BYTES + 1);
    size_t have = 0;
    bool goes_on = head != NULL;
    while (goes_on && !atomic_load(&c->s->stop)) {
        struct pollfd waited = {.fd = c->fd, .events = POLLIN};
        if (poll(&waited, 1, 20) <= 0) {
            continue;
        }
        const ssize_t n = recv(c->fd, head + have, HEAD_BYTES - have, 0);
        if (n <= 0) {
            break;
        }
        have += (size_t)n;
        head[have] = '\0';
        if (strstr(head, "\r\n\r\n") != NULL) { /* nobody sends the next one before its answer */
            goes_on = take_request(c, head, have);
            have = 0;
        }
    }
    (void)close(c->fd);
    free(head);
    atomic_fetch_sub(&c->s->connections_open, 1);
    free(c);
    return NULL;
}

static void *accept_all(void *arg)
{
    listener *l = arg;
    while (!atomic_load(&l->s->stop)) {
        struct pollfd waited = {.fd = l->s->listening[l->i], .events = POLLIN};
        if (poll(&waited, 1, 20) <= 0) {
            continue;
        }
        atomic_fetch_add(&l->s->connections_open,
                         1); /* before it leaves the queue: store_await_idle */
        const int fd = accept4(waited.fd, NULL, NULL, SOCK_CLOEXEC);
        caller *c = malloc(sizeof *c);
        pthread_t thread;
        if (fd < 0 || c == NULL) {
            atomic_fetch_sub(&l->s->connections_open, 1);
            free(c);
            continue;
        }
        const int one = 1; /* an answer's second half waits for nothing, as on real servers */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        *c = (caller){l->s, fd, l->i == 1};
        atomic_fetch_add(&l->s->connections, 1);
        if (pthread_create(&thread, NULL, talk, c) == 0) {
            (void)pthread_detach(thread);
        }
    }
    free(l);
    return NULL;
}

static bool listen_on(store *s, int i)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    s->listening[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return s->listening[i] >= 0 && bind(s->listening[i], (struct sockaddr *)&at, sizeof at) == 0 &&
           listen(s->listening[i], 64) == 0 &&
           getsockname(s->listening[i], (struct sockaddr *)&at, &size) == 0 &&
           (s->port[i] = ntohs(at.sin_port)) != 0;
}

store *store_open(const char *dir)
{
    store *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    s->dir = dir;
    for (int i = 0; i < 2; i++) {
        listener *l = malloc(sizeof *l);
        if (l == NULL || !listen_on(s, i)) {
            abort(); /* the test ends */
        }
        *l = (listener){s, i};
        if (pthread_create(&s->thread[i], NULL, accept_all, l) != 0) {
            abort();
        }
    }
    return s;
}

void store_close(store *s)
{
    atomic_store(&s->stop, true);
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(s->thread[i], NULL);
        (void)close(s->listening[i]);
    }
    while (atomic_load(&s->connections_open) > 0) {
        (void)poll(NULL, 0, 1);
    }
    free(s);
}

void store_await_idle(const store *s)
{
    struct pollfd queues[2] = {{.fd = s->listening[0], .events = POLLIN},
                               {.fd = s->listening[1], .events = POLLIN}};
    while (poll(queues, 2, 0) != 0 || atomic_load(&s->connections_open) > 0) {
        (void)poll(NULL, 0, 1);
    }
}

unsigned store_port(const store *s)
{
    return s->port[0];
}

unsigned store_standby_port(const store *s)
{
    return s->port[1];
}

uint64_t store_requests(const store *s)
{
    return atomic_load(&s->requests);
}

uint64_t store_held(const store *s)
{
    return atomic_load(&s->held);
}

uint64_t store_connections(const store *s)
{
    return atomic_load(&s->connections);
}

uint64_t store_leaks(const store *s)
{
    return atomic_load(&s->leaks);
}

uint64_t store_tickets(const store *s)
{
    return atomic_load(&s->tickets);
}
