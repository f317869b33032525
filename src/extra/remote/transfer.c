/* transfer.c - attempts of a request: what is sent, how answers are judged, what is tried again. */
#include "extra/remote/transfer.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/failpoint.h"
#include "base/core/log.h"
#include "base/core/stop.h"
#include "base/file/file.h"
#include "base/math/rng.h"

#include <stdio.h>
#include <string.h>

enum {
    TRIES_MAX = 8,
    SLICE_MS = 50,
    CONNECT_MS = 10000,
    SLOW_BYTES_PER_S = 1024,
    SLOW_S = 30,
    KEPT_BYTES = 64 << 20, /* half a block of HDFS */
    ONCE_S = 3,
    RETRY_AFTER_MAX_S = 300,
    LOG_S = 2,
    LOG_AGAIN_S = 60,
    FAULT_BYTES_MAX = 1 << 16,
    RECEIVE_BYTES = 1 << 20
};

#define SECOND_NS UINT64_C(1000000000)

static const uint64_t first_pause_ns = SECOND_NS / 5;
static const uint64_t longest_pause_ns = 30 * SECOND_NS;

struct tn_transfer {
    tn_transfer_state state;
    tn_error err; /* why it has FAILED */
    tn_http_pool *pool;
    tn_request request;
    CURL *easy;
    tn_attempt attempt;

    char *buffer;          /* TN_TRANSFER_BYTES, owned; NULL before the first bytes are wanted */
    size_t have, read;     /* bytes in the buffer; of these, bytes that the reader has taken */
    tn_text answer;        /* body of a document */
    tn_text fault;         /* body of an answer of failure */
    tn_http_reply reply;   /* header of the answer */
    uint64_t next;         /* position of the next byte in the object */
    uint64_t size;         /* size of the object: the request's, or that of the first answer */
    char tag[TN_TAG_SIZE]; /* version of the object, from the same places; "": not known */
    uint64_t skip;         /* bytes of this answer that are left in front of `next` */
    uint64_t skipped;      /* bytes of this answer that were passed over */
    uint64_t sent;         /* bytes of request.body that this attempt has sent */
    uint64_t reached;      /* `next` when the attempt began */

    bool judged;   /* the header of this answer was checked */
    bool refused;  /* this answer is a failure, and its body goes to `fault` */
    bool paused;   /* the buffer is full */
    bool renewed;  /* secrets were read again for this failure */
    bool kept;     /* `moved` was taken from the pool */
    tn_text moved; /* URL of the last redirect; empty: none */
    uint32_t redirects;
    uint32_t tries;   /* attempts in a row without progress */
    uint32_t secrets; /* version of the secrets in this attempt */

    uint64_t start_ns; /* time of the next attempt */
    uint64_t window_ns,
        window_bytes;             /* begin of the window in which a server must send something */
    uint64_t came_ns, came_bytes; /* time of the last byte, and all bytes by then */
    char trouble[200];            /* why the last attempt failed; "": there was none */
    char why[CURL_ERROR_SIZE];
};

struct tn_http_pool {
    tn_http_pool *next; /* link of a client's list */
    const tn_curl *curl;
    tn_secrets *secrets;
    CURLM *multi;
    uint64_t worked_ns;
    uint64_t logged_ns;     /* time of the last line about a wait; 0: none */
    bool logged_trouble;    /* whether that line named the failure of an attempt */
    uint64_t random, drawn; /* stream of random pauses, and how many were drawn */
    tn_text kept;           /* URL of a redirect that brought a range of this object; empty: none */
    uint64_t kept_part;     /* the KEPT_BYTES of the object that it is used for */
    bool keeps_none;        /* a kept URL has failed: none is kept any more */
    tn_transfer transfer[TN_TRANSFERS];
};

/* Scales a silence of the server; a clean-up request gets 3 s, since somebody may be waiting for
 * the end. */
static uint64_t patience_ns(const tn_transfer *t, uint64_t ns)
{
    return t->request.once && tn_failpoint("remote.hurry") == 0 ? ONCE_S * SECOND_NS
                                                                : tn_silence_ns(ns);
}

/* ---- the end of a transfer ---- */

static const char *shown(const tn_transfer *t)
{
    return t->request.uri->scheme.data; /* a URI holds no secrets: uri.h */
}

static const char *verb(const tn_transfer *t)
{
    return t->request.method != NULL ? "write" : "read";
}

/* Keeps the first failure. */
static void fail(tn_transfer *t, tn_status status, const char *what)
{
    if (t->state != TN_TRANSFER_FAILED) {
        (void)tn_fail(&t->err, status, "'%s': %s", shown(t), what);
        t->state = TN_TRANSFER_FAILED;
    }
}

static void changed(tn_transfer *t)
{
    fail(t, TN_E_DATA, "changed while being read");
}

/* ---- the answer ---- */

/* Returns the whole length of the object, as this answer has it; UINT64_MAX: it has none. */
static uint64_t total_of(const tn_transfer *t)
{
    const tn_http_reply *r = &t->reply;
    if (r->status == 206 || r->status == 416) {
        const bool empty = r->status == 416 && t->next == 0; /* no first byte; S3 says no more */
        return r->has_total ? r->total : empty ? 0 : UINT64_MAX;
    }
    const bool whole = r->has_length && !t->request.scheme->range_in_url;
    return whole ? r->length : UINT64_MAX;
}

static bool is_other_version(const tn_transfer *t)
{
    const uint64_t total = total_of(t);
    const bool other_size = t->size != UINT64_MAX && total != UINT64_MAX && total != t->size;
    return other_size || !tn_http_reply_fits(&t->reply, t->tag);
}

/* Takes size and tag of the first answer, which later ones must have, too. */
static void adopt_version(tn_transfer *t)
{
    if (t->size == UINT64_MAX) {
        t->size = total_of(t);
    }
    if (t->tag[0] == '\0' && !t->request.scheme->range_in_url) {
        (void)snprintf(t->tag, sizeof t->tag, "%s", tn_http_reply_tag(&t->reply));
    }
}

/* Refuses an answer that does not name its range and has another length. */
static void fail_length(tn_transfer *t)
{
    char what[160];
    (void)snprintf(what, sizeof what,
                   "the server answers with %llu bytes where %llu were asked for, so these are not "
                   "the ones",
                   (unsigned long long)t->reply.length,
                   (unsigned long long)(t->request.end - t->next));
    fail(t, TN_E_IO, what);
}

/* Checks the header of an answer with bytes of the object, before the first of them is taken. */
static void judge_bytes(tn_transfer *t)
{
    const tn_http_reply *r = &t->reply;
    if (is_other_version(t) || (t->tag[0] == '"' && r->etag[0] == '\0')) {
        changed(t);
    } else if (r->status == 206 && (!r->has_range || r->first != t->next)) {
        fail(t, TN_E_DATA, "the server answers with other bytes than it was asked for");
    } else if (r->status == 200 && !r->has_length && !r->chunked) {
        fail(t, TN_E_DATA,
             "the server does not say how long the answer is, so that a cut would "
             "not be noticed");
    } else if (!t->request.scheme->range_in_url && t->next > 0 && t->tag[0] == '\0') {
        fail(t, TN_E_DATA,
             "the connection broke, and it cannot be read on: the server names "
             "no versions of it");
    } else if (t->request.scheme->range_in_url && r->has_length && t->request.end != UINT64_MAX &&
               r->length != t->request.end - t->next) {
        fail_length(t);
    } else {
        t->skip = r->status == 200 && !t->request.scheme->range_in_url ? t->next : 0;
        adopt_version(t);
    }
}

/* Returns how many bytes a document may have. */
static size_t document_max(const tn_transfer *t)
{
    const uint32_t max = t->request.scheme->document_bytes_max;
    return max != 0 ? max : TN_DOCUMENT_BYTES_MAX;
}

static void fail_size(tn_transfer *t)
{
    char what[80];
    (void)snprintf(what, sizeof what, "the answer has more than %zu bytes", document_max(t));
    fail(t, TN_E_LIMIT, what);
}

static void judge(tn_transfer *t)
{
    const uint32_t status = t->reply.status;
    if (t->judged) {
        return;
    }
    t->judged = true;
    t->refused = t->request.method != NULL
                     ? status / 100 != 2
                     : status != 200 && (status != 206 || t->request.document != NULL);
    if (!t->refused && t->reply.torn) {
        fail(t, TN_E_DATA, "the server tells several lengths of one answer");
    } else if (!t->refused && t->request.document == NULL) {
        judge_bytes(t);
    } else if (!t->refused && t->reply.has_length && t->reply.length > document_max(t)) {
        fail_size(t);
    }
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
    tn_transfer *t = arg;
    tn_http_reply_line(&t->reply, line, size * n);
    return size * n;
}

/* Copies bytes of the object into the buffer; returns how many of them were taken. */
static size_t take_bytes(tn_transfer *t, const char *data, size_t size)
{
    const uint64_t wanted = t->request.end - t->next;
    size = size < wanted ? size : (size_t)wanted;
    if (size > TN_TRANSFER_BYTES - t->have && t->read > 0) {
        memmove(t->buffer, t->buffer + t->read, t->have - t->read);
        t->have -= t->read;
        t->read = 0;
    }
    if (size > TN_TRANSFER_BYTES - t->have) {
        t->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    memcpy(t->buffer + t->have, data, size);
    t->have += size;
    t->next += size;
    return size;
}

/* Receives a body. Taking fewer bytes than there are ends the transfer. */
static size_t on_body(char *data, size_t one, size_t n, void *arg)
{
    tn_transfer *t = arg;
    const size_t size = one * n;
    judge(t);
    if (t->state == TN_TRANSFER_FAILED) {
        return 0;
    }
    if (t->refused) {
        const size_t room = FAULT_BYTES_MAX - t->fault.size;
        tn_text_add(&t->fault, data, size < room ? size : room);
        return size;
    }
    if (t->request.document != NULL) {
        tn_text_add(&t->answer, data, size);
        return t->answer.failed ? 0 : size;
    }
    if (t->request.scheme->range_in_url && size > t->request.end - t->next) {
        fail(t, TN_E_IO, "the server answers with more bytes than it was asked for");
        return 0;
    }
    const size_t skipped = t->skip < size ? (size_t)t->skip : size;
    if (skipped == size) {
        t->skip -= skipped;
        t->skipped += skipped;
        return size;
    }
    const size_t taken = take_bytes(t, data + skipped, size - skipped);
    if (taken == CURL_WRITEFUNC_PAUSE) {
        return taken;
    }
    t->skip = 0;
    t->skipped += skipped;
    return skipped + taken;
}

/* ---- what is sent ---- */

/* Returns the body to send now; a NameNode gets none, but the host that it redirects to. */
static const tn_request_body *body_now(const tn_transfer *t)
{
    return t->request.scheme->redirects_first && !t->attempt.away ? NULL : t->request.body;
}

static size_t on_send(char *data, size_t one, size_t n, void *arg)
{
    tn_transfer *t = arg;
    const tn_request_body *s = t->request.body;
    const uint64_t left = s->size - t->sent;
    const size_t size = one * n < left ? one * n : (size_t)left;
    if (s->file == NULL) {
        memcpy(data, s->text.data + t->sent, size);
    } else if (tn_infile_read(s->file, s->from + t->sent, data, size, &t->err) != TN_OK) {
        t->state = TN_TRANSFER_FAILED;
        return CURL_READFUNC_ABORT;
    }
    t->sent += size;
    return size;
}

/* Sets method and length: a PUT or a POST has one, also of nothing. */
static void set_method(tn_transfer *t)
{
    const tn_curl *c = t->pool->curl;
    const tn_request_body *s = body_now(t);
    if (t->request.method == NULL) {
        return;
    }
    (void)c->curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, t->request.method);
    if (strcmp(t->request.method, "DELETE") != 0) {
        (void)c->curl_easy_setopt(t->easy, CURLOPT_UPLOAD, 1L);
        (void)c->curl_easy_setopt(t->easy, CURLOPT_READFUNCTION, on_send);
        (void)c->curl_easy_setopt(t->easy, CURLOPT_READDATA, (void *)t);
        (void)c->curl_easy_setopt(t->easy, CURLOPT_INFILESIZE_LARGE,
                                  (curl_off_t)(s != NULL ? s->size : 0));
    }
}

/* ---- the attempt ---- */

/* Writes "from-last", or "from-" of an open end. */
static void name_range(const tn_transfer *t, char out[64])
{
    const unsigned long long from = t->next;
    const unsigned long long last = t->request.end - 1;
    (void)(t->request.end == UINT64_MAX ? snprintf(out, 64, "%llu-", from)
                                        : snprintf(out, 64, "%llu-%llu", from, last));
}

static void build(tn_transfer *t)
{
    tn_attempt *a = &t->attempt;
    const char *version = t->request.scheme->version_header;
    tn_attempt_clear(a);
    t->secrets = tn_secrets_version(t->pool->secrets);
    a->next = t->next;
    a->end = t->request.end;
    a->away = t->moved.size > 0;
    t->request.scheme->build(&t->request, a);
    if (a->away) {
        tn_text_clear(&a->url);
        tn_text_add(&a->url, t->moved.data, t->moved.size);
    }
    const bool ranged =
        t->request.document == NULL && (t->next > 0 || t->request.end != UINT64_MAX);
    if (ranged && version != NULL && t->tag[0] != '\0') {
        tn_attempt_header(a, version, (tn_bytes){t->tag, strlen(t->tag), false});
    }
}

static void set_options(tn_transfer *t)
{
    const tn_curl *c = t->pool->curl;
    const tn_attempt *a = &t->attempt;
    const bool ranged = t->request.document == NULL && !t->request.scheme->range_in_url &&
                        (t->next > 0 || t->request.end != UINT64_MAX);
    char range[64];
    name_range(t, range);
    c->curl_easy_reset(t->easy);
    (void)c->curl_easy_setopt(t->easy, CURLOPT_URL, tn_text_str(&a->url));
    (void)c->curl_easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)c->curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, a->headers);
    (void)c->curl_easy_setopt(t->easy, CURLOPT_RANGE, ranged ? range : NULL);
    (void)c->curl_easy_setopt(t->easy, CURLOPT_PATH_AS_IS, 1L);
    (void)c->curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)c->curl_easy_setopt(t->easy, CURLOPT_USERAGENT, "tnet/" TN_VERSION);
    (void)c->curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
    (void)c->curl_easy_setopt(t->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)c->curl_easy_setopt(t->easy, CURLOPT_BUFFERSIZE, (long)RECEIVE_BYTES);
    (void)c->curl_easy_setopt(
        t->easy, CURLOPT_CONNECTTIMEOUT_MS,
        (long)(patience_ns(t, CONNECT_MS * (SECOND_NS / 1000)) / 1000000 + 1));
    (void)c->curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->why);
    (void)c->curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)c->curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, (void *)t);
    (void)c->curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body);
    (void)c->curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, (void *)t);
    set_method(t);
    if (a->netrc) {
        (void)c->curl_easy_setopt(t->easy, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    }
    TN_ASSERT(!a->kerberos || !a->away);
    if (a->kerberos) {
        tn_error err = {0};
        const tn_status status = tn_kerberos_set(c, t->easy, t->attempt.no_ticket, &err);
        if (status != TN_OK) {
            fail(t, status, err.text);
        }
    }
    if (a->sign.size > 0) {
        (void)c->curl_easy_setopt(t->easy, CURLOPT_AWS_SIGV4, tn_text_str(&a->sign));
        (void)c->curl_easy_setopt(t->easy, CURLOPT_USERPWD, tn_text_str(&a->user));
    }
}

/* Returns the bytes that have passed, either way. */
static uint64_t passed(const tn_transfer *t)
{
    return t->next + t->skipped + t->answer.size + t->sent;
}

static void open_window(tn_transfer *t, uint64_t now)
{
    t->window_ns = now;
    t->window_bytes = passed(t);
}

static void start(tn_transfer *t, uint64_t now)
{
    build(t);
    if (tn_attempt_is_short(&t->attempt)) {
        fail(t, TN_E_MEMORY, "no memory for a request");
        return;
    }
    set_options(t);
    if (t->state == TN_TRANSFER_FAILED) {
        return;
    }
    t->reply = (tn_http_reply){0};
    t->judged = t->refused = t->paused = false;
    t->skip = t->skipped = t->sent = 0;
    t->reached = t->next;
    t->why[0] = '\0';
    tn_text_clear(&t->fault);
    tn_text_clear(&t->answer);
    t->answer.size_max = document_max(t);
    open_window(t, now);
    if (t->pool->curl->curl_multi_add_handle(t->pool->multi, t->easy) != CURLM_OK) {
        fail(t, TN_E_MEMORY, "no memory for a request");
        return;
    }
    t->state = TN_TRANSFER_RUNS;
}

static void leave_multi(tn_transfer *t)
{
    if (t->easy != NULL) {
        (void)t->pool->curl->curl_multi_remove_handle(t->pool->multi, t->easy);
    }
}

/* ---- where a redirect has led ---- */

/* Keeps the URL of a redirect that has brought a range: the next ranges go there at once. */
static void keep_place(const tn_transfer *t)
{
    tn_http_pool *p = t->pool;
    const uint64_t part = t->request.from / KEPT_BYTES;
    const bool newer = p->kept.size == 0 || part > p->kept_part;
    if (t->moved.size > 0 && t->request.document == NULL && t->request.scheme->move != NULL &&
        newer && !p->keeps_none) {
        tn_text_clear(&p->kept);
        tn_text_add(&p->kept, t->moved.data, t->moved.size);
        p->kept_part = part;
    }
}

static void use_place(tn_transfer *t)
{
    const tn_http_pool *p = t->pool;
    tn_text_clear(&t->moved);
    t->kept = p->kept.size > 0 && t->request.document == NULL &&
              t->request.from / KEPT_BYTES == p->kept_part;
    if (t->kept) {
        tn_text_add(&t->moved, p->kept.data, p->kept.size);
        t->kept = t->request.scheme->move(&t->moved, t->request.from, t->request.end);
    }
    if (!t->kept) {
        tn_text_clear(&t->moved);
    }
}

static void forget_place(tn_transfer *t)
{
    tn_text_clear(&t->pool->kept);
    tn_text_clear(&t->moved);
    t->kept = false;
}

/* ---- once more, or not ---- */

/* Returns the time until the next attempt: as the server says, else at random. *asked_s: the pause
 * that it asked for. */
static uint64_t pause_ns(const tn_transfer *t, uint64_t *asked_s)
{
    const tn_http_reply *r = &t->reply;
    tn_http_pool *p = t->pool;
    const uint32_t k = t->tries - 1;
    const uint64_t doubled = k < 16 ? first_pause_ns << k : longest_pause_ns;
    const uint64_t most = doubled < longest_pause_ns ? doubled : longest_pause_ns;
    uint64_t pause = tn_below(tn_draw(p->random, p->drawn++), most);
    if (r->has_retry) {
        const uint64_t now = (uint64_t)tn_wall_s();
        const uint64_t at =
            r->retry_at ? r->retry_s - (r->retry_s < now ? r->retry_s : now) : r->retry_s;
        *asked_s = at;
        const uint64_t asked = (at < RETRY_AFTER_MAX_S ? at : RETRY_AFTER_MAX_S) * SECOND_NS;
        pause = pause > asked ? pause : asked;
    }
    return pause;
}

/* Notes why this attempt is made, for the log line about the wait. */
static void note_trouble(tn_transfer *t, const char *what, uint64_t pause, uint64_t asked_s)
{
    const int size = snprintf(t->trouble, sizeof t->trouble, "%s, attempt %u of %d", what,
                              (unsigned)t->tries, TRIES_MAX);
    if (asked_s > 0 && size > 0 && (size_t)size < sizeof t->trouble) {
        (void)snprintf(t->trouble + size, sizeof t->trouble - (size_t)size,
                       "; the server asks for a pause of %llu s, the next one is in %llu s",
                       (unsigned long long)asked_s, (unsigned long long)(pause / SECOND_NS));
    }
}

static void try_again(tn_transfer *t, const char *what)
{
    if (t->next - t->reached >= SLOW_BYTES_PER_S) { /* a byte in each attempt would have no end */
        t->tries = 0;
        t->renewed = false;
    }
    if (t->state == TN_TRANSFER_FAILED) {
        return;
    }
    if (++t->tries >= TRIES_MAX || t->request.once) {
        (void)tn_fail(&t->err, TN_E_IO, "cannot %s '%s': %s, %u times without progress", verb(t),
                      shown(t), what, (unsigned)t->tries);
        t->state = TN_TRANSFER_FAILED;
        return;
    }
    t->redirects = 0;
    forget_place(t);
    t->state = TN_TRANSFER_WAITS;
    uint64_t asked_s = 0;
    const uint64_t pause = pause_ns(t, &asked_s);
    note_trouble(t, what, pause, asked_s);
    t->start_ns = tn_clock_ns() + tn_timer_ns(pause);
}

static bool is_passing_error(CURLcode code)
{
    static const CURLcode passing[] = {CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,
                                       CURLE_PARTIAL_FILE,         CURLE_OPERATION_TIMEDOUT,
                                       CURLE_SSL_CONNECT_ERROR,    CURLE_GOT_NOTHING,
                                       CURLE_SEND_ERROR,           CURLE_RECV_ERROR,
                                       CURLE_HTTP2_STREAM,         CURLE_SEND_FAIL_REWIND};
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
        if (code == passing[i]) {
            return true;
        }
    }
    return false;
}

static bool is_passing_status(uint32_t status)
{
    return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

static bool is_redirect(uint32_t status)
{
    return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

static void follow(tn_transfer *t)
{
    char *to = NULL;
    const char *from = tn_text_str(&t->attempt.url);
    (void)t->pool->curl->curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &to);
    if (t->redirects == t->request.scheme->redirects_max || to == NULL) {
        char what[100];
        (void)snprintf(what, sizeof what, "the server redirects (%u) %s", (unsigned)t->reply.status,
                       to == NULL ? "to no place" : "more often than is followed");
        fail(t, TN_E_DATA, what);
        return;
    }
    if (strncmp(from, "https:", 6) == 0 && strncmp(to, "https:", 6) != 0) {
        fail(t, TN_E_DATA, "the server redirects from https to another protocol");
        return;
    }
    t->redirects++;
    tn_text_clear(&t->moved);
    tn_text_adds(&t->moved, to);
    t->state = TN_TRANSFER_WAITS;
    t->start_ns = 0;
}

/* Reads secrets again: a token may have expired and been renewed in its file. */
static bool renews(tn_transfer *t)
{
    const uint32_t status = t->reply.status;
    const bool may = (status == 400 || status == 401 || status == 403) && !t->renewed;
    t->renewed = t->renewed || may;
    return may && tn_secrets_refresh(t->pool->secrets, t->secrets);
}

/* Judges an answer by HTTP's rules, then by the scheme's. */
static tn_judgement judge_answer(const tn_transfer *t)
{
    const uint32_t status = t->reply.status;
    const tn_failed_answer answer = {
        &t->request, &t->attempt, &t->reply, {tn_text_str(&t->fault), t->fault.size, false}};
    tn_judgement v = {.kind = is_passing_status(status) ? TN_JUDGED_RETRY
                              : is_redirect(status)     ? TN_JUDGED_REDIRECT
                                                        : TN_JUDGED_REFUSE};
    tn_text_addf(&v.why, "%sthe server answers %u", status == 404 ? "is not there: " : "",
                 (unsigned)status);
    if (t->request.scheme->judge != NULL) {
        t->request.scheme->judge(&answer, &v);
    }
    return v;
}

static void refuse(tn_transfer *t, const char *why)
{
    const uint32_t status = t->reply.status;
    const bool past_end = status == 416 && t->request.document == NULL;
    if (status == 412 || (past_end && (is_other_version(t) || total_of(t) < t->next))) {
        changed(t);
    } else if (past_end && total_of(t) == t->next) {
        t->state = TN_TRANSFER_DONE;
    } else if (renews(t)) {
        try_again(t, why);
    } else {
        fail(t, TN_E_DATA, why);
    }
}

static void settle_status(tn_transfer *t)
{
    if (t->kept) { /* good for one request alone, or no longer: who named it is asked anew */
        t->pool->keeps_none = true;
        forget_place(t);
        t->state = TN_TRANSFER_WAITS;
        return;
    }
    tn_judgement v = judge_answer(t);
    if (v.kind == TN_JUDGED_REDIRECT) {
        follow(t);
    } else if (v.kind == TN_JUDGED_REFUSE) {
        refuse(t, tn_text_str(&v.why));
    } else {
        t->attempt.node += v.kind == TN_JUDGED_NEXT_HOST;
        if (v.pause_s > 0) { /* as if the answer had said so */
            t->reply.has_retry = true;
            t->reply.retry_at = false;
            t->reply.retry_s = v.pause_s;
        }
        try_again(t, tn_text_str(&v.why));
    }
    tn_text_done(&v.why);
}

/* Returns whether the object ends where the answer has ended. */
static bool is_at_end(const tn_transfer *t)
{
    const uint64_t total = total_of(t);
    const bool marked =
        t->reply.status == 200 ? !t->request.scheme->range_in_url : t->request.end == UINT64_MAX;
    const bool ends = total != UINT64_MAX ? total == t->next : marked;
    return ends && (t->size == UINT64_MAX || t->size == t->next);
}

/* Returns whether all bytes have come. libcurl has compared them with the announced length when the
 * code is good. */
static bool is_complete(const tn_transfer *t, CURLcode code)
{
    if (t->request.document != NULL) {
        return code == CURLE_OK;
    }
    return t->next == t->request.end || (code == CURLE_OK && is_at_end(t));
}

static void settle(tn_transfer *t, CURLcode code)
{
    judge(t);
    tn_make_printable(t->why, ""); /* it may quote the server */
    if (t->state == TN_TRANSFER_FAILED) {
        return;
    }
    if (t->answer.over_max) {
        fail_size(t);
    } else if (t->answer.failed || t->fault.failed) {
        fail(t, TN_E_MEMORY, "no memory for the answer");
    } else if (!t->refused && t->reply.status != 0 && is_complete(t, code)) {
        t->state = TN_TRANSFER_DONE;
        t->tries = 0;
        keep_place(t);
    } else if (code == CURLE_OK && t->refused) {
        settle_status(t);
    } else if (code == CURLE_OK || is_passing_error(code)) {
        t->attempt.node += t->moved.size == 0;
        try_again(t, code == CURLE_OK    ? "the answer is shorter than it was to be"
                     : t->why[0] != '\0' ? t->why
                                         : t->pool->curl->curl_easy_strerror(code));
    } else {
        (void)tn_fail(&t->err, TN_E_IO, "cannot %s '%s': %s", verb(t), shown(t),
                      t->why[0] != '\0' ? t->why : t->pool->curl->curl_easy_strerror(code));
        t->state = TN_TRANSFER_FAILED;
    }
}

/* ---- many of them ---- */

/* Ends an attempt in which the server stalls. Times in which nobody called do not count. A store
 * that has got a file may be busy with it, and sends a blank now and then to show that it is. */
static void guard(tn_transfer *t, uint64_t now, bool rested)
{
    const uint64_t came = passed(t) - t->window_bytes;
    const uint64_t least = t->request.method != NULL ? 1 : (uint64_t)SLOW_S * SLOW_BYTES_PER_S;
    if (!rested && !t->paused && now - t->window_ns < patience_ns(t, SLOW_S * SECOND_NS)) {
        return;
    }
    if (rested || t->paused || came >= least) {
        open_window(t, now);
        return;
    }
    leave_multi(t);
    try_again(t, "the server stalls");
}

/* Logs that somebody waits for a server and why, some seconds after the last byte, and again after
 * a while, or when its silence has become an answer. */
static void log_wait(tn_transfer *t, uint64_t now, bool rested)
{
    tn_http_pool *p = t->pool;
    if (rested || t->paused || t->came_ns == 0 || passed(t) != t->came_bytes) {
        t->came_ns = now;
        t->came_bytes = passed(t);
        return;
    }
    const bool has_trouble = t->trouble[0] != '\0';
    const bool is_news = p->logged_ns == 0 || (has_trouble && !p->logged_trouble) ||
                         now - p->logged_ns >= tn_timer_ns(LOG_AGAIN_S * SECOND_NS);
    if (is_news && now - t->came_ns >= tn_timer_ns(LOG_S * SECOND_NS)) {
        p->logged_ns = now;
        p->logged_trouble = has_trouble;
        tn_log(TN_LOG_INFO, "waiting for '%s': %s", shown(t),
               has_trouble ? t->trouble : "the server is silent");
    }
}

static void collect(tn_http_pool *p)
{
    int left = 0;
    for (CURLMsg *m; (m = p->curl->curl_multi_info_read(p->multi, &left)) != NULL;) {
        for (uint32_t i = 0; i < TN_TRANSFERS && m->msg == CURLMSG_DONE; i++) {
            tn_transfer *t = &p->transfer[i];
            if (t->easy == m->easy_handle) {
                const CURLcode code = m->data.result;
                leave_multi(t); /* `m` is gone */
                settle(t, code);
                break;
            }
        }
    }
}

void tn_http_pool_work(tn_http_pool *p)
{
    int running = 0;
    const uint64_t now = tn_clock_ns();
    const bool rested = now - p->worked_ns > tn_silence_ns(SLOW_S * SECOND_NS) / 4;
    p->worked_ns = now;
    for (uint32_t i = 0; i < TN_TRANSFERS; i++) {
        tn_transfer *t = &p->transfer[i];
        if (t->state == TN_TRANSFER_WAITS && now >= t->start_ns) {
            start(t, now);
        }
    }
    (void)p->curl->curl_multi_perform(p->multi, &running);
    collect(p);
    for (uint32_t i = 0; i < TN_TRANSFERS; i++) {
        tn_transfer *t = &p->transfer[i];
        if (t->state == TN_TRANSFER_RUNS) {
            guard(t, now, rested);
        }
        if (t->state == TN_TRANSFER_RUNS || t->state == TN_TRANSFER_WAITS) {
            log_wait(t, now, rested);
        }
    }
}

tn_status tn_http_pool_wait(tn_http_pool *p, const atomic_bool *stop, tn_error *err)
{
    uint64_t most = SLICE_MS;
    const uint64_t now = tn_clock_ns();
    if (tn_stop_is(stop)) {
        return tn_fail(err, TN_E_STOPPED, "stopped by a signal while waiting for a server");
    }
    for (uint32_t i = 0; i < TN_TRANSFERS; i++) {
        const tn_transfer *t = &p->transfer[i];
        if (t->state == TN_TRANSFER_WAITS) {
            const uint64_t ms = t->start_ns > now ? (t->start_ns - now) / 1000000 + 1 : 0;
            most = ms < most ? ms : most;
        }
    }
    const CURLMcode code = p->curl->curl_multi_poll(p->multi, NULL, 0, (int)most, NULL);
    p->worked_ns = tn_clock_ns(); /* a silence within this call is the server's */
    return code == CURLM_OK ? TN_OK : tn_fail(err, TN_E_IO, "cannot wait for a server");
}

tn_status tn_transfer_begin(tn_transfer *t, const tn_request *request, tn_error *err)
{
    TN_ASSERT(t->state == TN_TRANSFER_IDLE || t->state == TN_TRANSFER_DONE);
    TN_ASSERT(request->from < request->end);
    TN_ASSERT(request->end == UINT64_MAX || request->end - request->from <= TN_TRANSFER_BYTES);
    if (t->easy == NULL) {
        t->easy = t->pool->curl->curl_easy_init();
    }
    if (t->easy == NULL) {
        return tn_fail(err, TN_E_MEMORY, "no memory for a request");
    }
    if (request->document == NULL && t->buffer == NULL) {
        TN_TRY(TN_ALLOC(t->buffer, TN_TRANSFER_BYTES, "bytes of remote data", err));
    }
    t->request = *request;
    t->next = request->from;
    t->size = request->size;
    (void)snprintf(t->tag, sizeof t->tag, "%s", request->tag != NULL ? request->tag : "");
    t->have = t->read = 0;
    t->tries = t->redirects = 0;
    t->renewed = false;
    t->start_ns = t->came_ns = 0;
    t->trouble[0] = '\0';
    use_place(t);
    t->state = TN_TRANSFER_WAITS;
    return TN_OK;
}

tn_transfer_state tn_transfer_state_of(const tn_transfer *t)
{
    return t->state;
}

const tn_error *tn_transfer_error(const tn_transfer *t)
{
    TN_ASSERT(t->state == TN_TRANSFER_FAILED);
    return &t->err;
}

const tn_http_reply *tn_transfer_reply(const tn_transfer *t)
{
    return &t->reply;
}

tn_bytes tn_transfer_bytes(const tn_transfer *t)
{
    return t->request.document != NULL ? (tn_bytes){t->answer.data, t->answer.size, false}
                                       : (tn_bytes){t->buffer + t->read, t->have - t->read, false};
}

void tn_transfer_consume(tn_transfer *t, size_t size)
{
    TN_ASSERT(size <= t->have - t->read);
    t->read += size;
    if (t->paused && t->state == TN_TRANSFER_RUNS && t->read > TN_TRANSFER_BYTES / 2) {
        t->paused = false;
        (void)t->pool->curl->curl_easy_pause(t->easy, CURLPAUSE_CONT); /* calls on_body */
    }
}

void tn_transfer_end(tn_transfer *t)
{
    TN_ASSERT(t->state == TN_TRANSFER_DONE);
    t->state = TN_TRANSFER_IDLE;
}

tn_transfer *tn_http_pool_transfer(tn_http_pool *p, uint32_t i)
{
    return &p->transfer[i % TN_TRANSFERS];
}

tn_http_pool **tn_http_pool_next(tn_http_pool *p)
{
    return &p->next;
}

tn_status tn_http_pool_open(tn_http_pool **out, const tn_curl *curl, tn_secrets *secrets,
                            tn_error *err)
{
    tn_http_pool *p = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(p, 1, "connections to a server", err));
    p->curl = curl;
    p->secrets = secrets;
    p->random = tn_random_id(); /* pauses shall differ, the bytes do not */
    p->multi = curl->curl_multi_init();
    if (p->multi == NULL) {
        tn_free(p);
        return tn_fail(err, TN_E_MEMORY, "no memory for connections to a server");
    }
    for (uint32_t i = 0; i < TN_TRANSFERS; i++) {
        p->transfer[i].pool = p;
        p->transfer[i].attempt.curl = curl;
        p->transfer[i].attempt.secrets = secrets;
    }
    *out = p;
    return TN_OK;
}

void tn_http_pool_reset(tn_http_pool *p)
{
    for (uint32_t i = 0; i < TN_TRANSFERS; i++) {
        tn_transfer *t = &p->transfer[i];
        if (t->state == TN_TRANSFER_RUNS) {
            leave_multi(t);
        }
        tn_attempt_clear(&t->attempt);
        t->state = TN_TRANSFER_IDLE;
    }
    tn_text_clear(&p->kept);
    p->keeps_none = false;
}

void tn_http_pool_close(tn_http_pool *p)
{
    if (p == NULL) {
        return;
    }
    tn_http_pool_reset(p);
    for (uint32_t i = 0; i < TN_TRANSFERS; i++) {
        tn_transfer *t = &p->transfer[i];
        if (t->easy != NULL) {
            p->curl->curl_easy_cleanup(t->easy);
        }
        tn_attempt_done(&t->attempt);
        tn_text_done(&t->moved);
        tn_text_done(&t->fault);
        tn_text_done(&t->answer);
        tn_free(t->buffer);
    }
    (void)p->curl->curl_multi_cleanup(p->multi);
    tn_text_done(&p->kept);
    tn_free(p);
}
