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
    TELL_S = 2,
    TELL_AGAIN_S = 60,
    SAFE_MODE_S = 30, /* Hadoop stays in it that long after a restart, at least */
    FAULT_BYTES_MAX = 1 << 16,
    RECEIVE_BYTES = 1 << 20
};

#define SECOND_NS UINT64_C(1000000000)

static const uint64_t first_pause_ns = SECOND_NS / 5;
static const uint64_t longest_pause_ns = 30 * SECOND_NS;

/* What a server gets of such a time; of what takes back what was sent less, since somebody may be
 * waiting for the end. */
static uint64_t patience_ns(const tn_flight *f, uint64_t ns)
{
    return f->wish.once && tn_failpoint("remote.hurry") == 0 ? ONCE_S * SECOND_NS
                                                             : tn_silence_ns(ns);
}

/* ---- the end of a flight ---- */

static const char *shown(const tn_flight *f)
{
    return f->wish.uri->scheme.data; /* a URI holds no secrets: uri.h */
}

static const char *verb(const tn_flight *f)
{
    return f->wish.method != NULL ? "write" : "read";
}

/* The first failure counts. */
static void fail(tn_flight *f, tn_status status, const char *what)
{
    if (f->state != TN_FLIGHT_FAILED) {
        (void)tn_fail(&f->err, status, "'%s': %s", shown(f), what);
        f->state = TN_FLIGHT_FAILED;
    }
}

static void changed(tn_flight *f)
{
    fail(f, TN_E_DATA, "changed while being read");
}

/* ---- the answer ---- */

/* The whole length of the object, as this answer has it; UINT64_MAX: it does not say. */
static uint64_t total_of(const tn_flight *f)
{
    const tn_http_reply *r = &f->reply;
    if (r->status == 206 || r->status == 416) {
        const bool empty = r->status == 416 && f->next == 0; /* no first byte; S3 says no more */
        return r->has_total ? r->total : empty ? 0 : UINT64_MAX;
    }
    const bool whole = r->has_length && !f->wish.scheme->addressed;
    return whole ? r->length : UINT64_MAX;
}

static bool is_other_version(const tn_flight *f)
{
    const uint64_t total = total_of(f);
    const bool other_size = f->size != UINT64_MAX && total != UINT64_MAX && total != f->size;
    return other_size || !tn_http_reply_fits(&f->reply, f->tag);
}

/* What a first answer says holds for those after it. */
static void adopt_version(tn_flight *f)
{
    if (f->size == UINT64_MAX) {
        f->size = total_of(f);
    }
    if (f->tag[0] == '\0' && !f->wish.scheme->addressed) {
        (void)snprintf(f->tag, sizeof f->tag, "%s", tn_http_reply_tag(&f->reply));
    }
}

/* An answer that does not name its range must at least be as long. */
static void fail_length(tn_flight *f)
{
    char what[160];
    (void)snprintf(what, sizeof what,
                   "the server answers with %llu bytes where %llu were asked for, so these are not "
                   "the ones",
                   (unsigned long long)f->reply.length,
                   (unsigned long long)(f->wish.end - f->next));
    fail(f, TN_E_IO, what);
}

/* The header of an answer with bytes of the object, before the first of them is taken. */
static void judge_bytes(tn_flight *f)
{
    const tn_http_reply *r = &f->reply;
    if (is_other_version(f) || (f->tag[0] == '"' && r->etag[0] == '\0')) {
        changed(f);
    } else if (r->status == 206 && (!r->has_range || r->first != f->next)) {
        fail(f, TN_E_DATA, "the server answers with other bytes than it was asked for");
    } else if (r->status == 200 && !r->has_length && !r->chunked) {
        fail(f, TN_E_DATA,
             "the server does not say how long the answer is, so that a cut would "
             "not be noticed");
    } else if (!f->wish.scheme->addressed && f->next > 0 && f->tag[0] == '\0') {
        fail(f, TN_E_DATA,
             "the connection broke, and it cannot be read on: the server names "
             "no versions of it");
    } else if (f->wish.scheme->addressed && r->has_length && f->wish.end != UINT64_MAX &&
               r->length != f->wish.end - f->next) {
        fail_length(f);
    } else {
        f->skip = r->status == 200 && !f->wish.scheme->addressed ? f->next : 0;
        adopt_version(f);
    }
}

/* Returns how many bytes a document may have. */
static size_t document_max(const tn_flight *f)
{
    const uint32_t max = f->wish.scheme->document_bytes_max;
    return max != 0 ? max : TN_DOCUMENT_BYTES_MAX;
}

static void fail_size(tn_flight *f)
{
    char what[80];
    (void)snprintf(what, sizeof what, "the answer has more than %zu bytes", document_max(f));
    fail(f, TN_E_LIMIT, what);
}

static void judge(tn_flight *f)
{
    const uint32_t status = f->reply.status;
    if (f->judged) {
        return;
    }
    f->judged = true;
    f->refused = f->wish.method != NULL
                     ? status / 100 != 2
                     : status != 200 && (status != 206 || f->wish.document != NULL);
    if (!f->refused && f->reply.torn) {
        fail(f, TN_E_DATA, "the server tells several lengths of one answer");
    } else if (!f->refused && f->wish.document == NULL) {
        judge_bytes(f);
    } else if (!f->refused && f->reply.has_length && f->reply.length > document_max(f)) {
        fail_size(f);
    }
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
    tn_flight *f = arg;
    tn_http_reply_line(&f->reply, line, size * n);
    return size * n;
}

/* Bytes of the object into the buffer; how many of them were taken. */
static size_t take_bytes(tn_flight *f, const char *data, size_t size)
{
    const uint64_t wanted = f->wish.end - f->next;
    size = size < wanted ? size : (size_t)wanted;
    if (size > TN_FLIGHT_BYTES - f->have && f->read > 0) {
        memmove(f->buffer, f->buffer + f->read, f->have - f->read);
        f->have -= f->read;
        f->read = 0;
    }
    if (size > TN_FLIGHT_BYTES - f->have) {
        f->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    memcpy(f->buffer + f->have, data, size);
    f->have += size;
    f->next += size;
    return size;
}

/* Fewer bytes taken than there are end the transfer. */
static size_t on_body(char *data, size_t one, size_t n, void *arg)
{
    tn_flight *f = arg;
    const size_t size = one * n;
    judge(f);
    if (f->state == TN_FLIGHT_FAILED) {
        return 0;
    }
    if (f->refused) {
        const size_t room = FAULT_BYTES_MAX - f->fault.size;
        tn_text_add(&f->fault, data, size < room ? size : room);
        return size;
    }
    if (f->wish.document != NULL) {
        tn_text_add(&f->body, data, size);
        return f->body.failed ? 0 : size;
    }
    if (f->wish.scheme->addressed && size > f->wish.end - f->next) {
        fail(f, TN_E_IO, "the server answers with more bytes than it was asked for");
        return 0;
    }
    const size_t skipped = f->skip < size ? (size_t)f->skip : size;
    if (skipped == size) {
        f->skip -= skipped;
        f->skipped += skipped;
        return size;
    }
    const size_t taken = take_bytes(f, data + skipped, size - skipped);
    if (taken == CURL_WRITEFUNC_PAUSE) {
        return taken;
    }
    f->skip = 0;
    f->skipped += skipped;
    return skipped + taken;
}

/* ---- what is sent ---- */

/* Of a store that names the host for it: only there. */
static const tn_sending *sent_now(const tn_flight *f)
{
    return f->wish.scheme->addressed && !f->request.away ? NULL : f->wish.sends;
}

static size_t on_send(char *data, size_t one, size_t n, void *arg)
{
    tn_flight *f = arg;
    const tn_sending *s = f->wish.sends;
    const uint64_t left = s->size - f->sent;
    const size_t size = one * n < left ? one * n : (size_t)left;
    if (s->file == NULL) {
        memcpy(data, s->text.data + f->sent, size);
    } else if (tn_infile_read(s->file, s->from + f->sent, data, size, &f->err) != TN_OK) {
        f->state = TN_FLIGHT_FAILED;
        return CURL_READFUNC_ABORT;
    }
    f->sent += size;
    return size;
}

/* A PUT or a POST says its length, also of nothing. */
static void set_method(tn_flight *f)
{
    const tn_curl *c = f->wire->curl;
    const tn_sending *s = sent_now(f);
    if (f->wish.method == NULL) {
        return;
    }
    (void)c->curl_easy_setopt(f->easy, CURLOPT_CUSTOMREQUEST, f->wish.method);
    if (strcmp(f->wish.method, "DELETE") != 0) {
        (void)c->curl_easy_setopt(f->easy, CURLOPT_UPLOAD, 1L);
        (void)c->curl_easy_setopt(f->easy, CURLOPT_READFUNCTION, on_send);
        (void)c->curl_easy_setopt(f->easy, CURLOPT_READDATA, (void *)f);
        (void)c->curl_easy_setopt(f->easy, CURLOPT_INFILESIZE_LARGE,
                                  (curl_off_t)(s != NULL ? s->size : 0));
    }
}

/* ---- the request ---- */

void tn_request_header(tn_request *r, const char *name, tn_bytes value)
{
    tn_text line = {0};
    tn_text_addf(&line, "%s%s%.*s", name, *name != '\0' ? ": " : "", (int)value.size, value.data);
    struct curl_slist *more =
        line.failed ? NULL : r->curl->curl_slist_append(r->headers, tn_text_str(&line));
    r->failed = r->failed || more == NULL;
    r->headers = more != NULL ? more : r->headers;
    if (line.data != NULL) {
        explicit_bzero(line.data, line.size);
    }
    tn_text_done(&line);
}

static void clear_request(tn_request *r)
{
    if (r->user.data != NULL) {
        explicit_bzero(r->user.data, r->user.size);
    }
    tn_text_clear(&r->url);
    tn_text_clear(&r->sign);
    tn_text_clear(&r->user);
    r->curl->curl_slist_free_all(r->headers);
    r->headers = NULL;
    r->netrc = false;
    r->kerberos = false;
    r->failed = false;
}

/* "from-last", or "from-" of an open end. */
static void name_range(const tn_flight *f, char out[64])
{
    const unsigned long long from = f->next;
    const unsigned long long last = f->wish.end - 1;
    (void)(f->wish.end == UINT64_MAX ? snprintf(out, 64, "%llu-", from)
                                     : snprintf(out, 64, "%llu-%llu", from, last));
}

static void build(tn_flight *f)
{
    tn_request *r = &f->request;
    const char *version = f->wish.scheme->version_header;
    clear_request(r);
    f->secrets = tn_secrets_version(f->wire->secrets);
    r->next = f->next;
    r->end = f->wish.end;
    r->away = f->moved.size > 0;
    f->wish.scheme->build(&f->wish, r);
    if (r->away) {
        tn_text_clear(&r->url);
        tn_text_add(&r->url, f->moved.data, f->moved.size);
    }
    const bool ranged = f->wish.document == NULL && (f->next > 0 || f->wish.end != UINT64_MAX);
    if (ranged && version != NULL && f->tag[0] != '\0') {
        tn_request_header(r, version, (tn_bytes){f->tag, strlen(f->tag), false});
    }
}

static void set_options(tn_flight *f)
{
    const tn_curl *c = f->wire->curl;
    const tn_request *r = &f->request;
    const bool ranged = f->wish.document == NULL && !f->wish.scheme->addressed &&
                        (f->next > 0 || f->wish.end != UINT64_MAX);
    char range[64];
    name_range(f, range);
    c->curl_easy_reset(f->easy);
    (void)c->curl_easy_setopt(f->easy, CURLOPT_URL, tn_text_str(&r->url));
    (void)c->curl_easy_setopt(f->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)c->curl_easy_setopt(f->easy, CURLOPT_HTTPHEADER, r->headers);
    (void)c->curl_easy_setopt(f->easy, CURLOPT_RANGE, ranged ? range : NULL);
    (void)c->curl_easy_setopt(f->easy, CURLOPT_PATH_AS_IS, 1L);
    (void)c->curl_easy_setopt(f->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)c->curl_easy_setopt(f->easy, CURLOPT_USERAGENT, "tnet/" TN_VERSION);
    (void)c->curl_easy_setopt(f->easy, CURLOPT_NOSIGNAL, 1L);
    (void)c->curl_easy_setopt(f->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)c->curl_easy_setopt(f->easy, CURLOPT_BUFFERSIZE, (long)RECEIVE_BYTES);
    (void)c->curl_easy_setopt(
        f->easy, CURLOPT_CONNECTTIMEOUT_MS,
        (long)(patience_ns(f, CONNECT_MS * (SECOND_NS / 1000)) / 1000000 + 1));
    (void)c->curl_easy_setopt(f->easy, CURLOPT_ERRORBUFFER, f->why);
    (void)c->curl_easy_setopt(f->easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)c->curl_easy_setopt(f->easy, CURLOPT_HEADERDATA, (void *)f);
    (void)c->curl_easy_setopt(f->easy, CURLOPT_WRITEFUNCTION, on_body);
    (void)c->curl_easy_setopt(f->easy, CURLOPT_WRITEDATA, (void *)f);
    set_method(f);
    if (r->netrc) {
        (void)c->curl_easy_setopt(f->easy, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    }
    TN_ASSERT(!r->kerberos || !r->away);
    if (r->kerberos) {
        tn_error err = {0};
        const tn_status status = tn_kerberos_set(c, f->easy, f->no_ticket, &err);
        if (status != TN_OK) {
            fail(f, status, err.text);
        }
    }
    if (r->sign.size > 0) {
        (void)c->curl_easy_setopt(f->easy, CURLOPT_AWS_SIGV4, tn_text_str(&r->sign));
        (void)c->curl_easy_setopt(f->easy, CURLOPT_USERPWD, tn_text_str(&r->user));
    }
}

/* Bytes that have passed, either way. */
static uint64_t passed(const tn_flight *f)
{
    return f->next + f->skipped + f->body.size + f->sent;
}

static void open_window(tn_flight *f, uint64_t now)
{
    f->window_ns = now;
    f->window_bytes = passed(f);
}

static void start(tn_flight *f, uint64_t now)
{
    build(f);
    const tn_request *r = &f->request;
    if (r->failed || r->url.failed || r->user.failed || r->sign.failed) {
        fail(f, TN_E_MEMORY, "no memory for a request");
        return;
    }
    set_options(f);
    if (f->state == TN_FLIGHT_FAILED) {
        return;
    }
    f->reply = (tn_http_reply){0};
    f->judged = f->refused = f->paused = false;
    f->skip = f->skipped = f->sent = 0;
    f->reached = f->next;
    f->why[0] = '\0';
    tn_text_clear(&f->fault);
    tn_text_clear(&f->body);
    f->body.size_max = document_max(f);
    open_window(f, now);
    if (f->wire->curl->curl_multi_add_handle(f->wire->multi, f->easy) != CURLM_OK) {
        fail(f, TN_E_MEMORY, "no memory for a request");
        return;
    }
    f->state = TN_FLIGHT_RUNS;
}

static void leave_multi(tn_flight *f)
{
    if (f->easy != NULL) {
        (void)f->wire->curl->curl_multi_remove_handle(f->wire->multi, f->easy);
    }
}

/* ---- where a redirect has led ---- */

/* A place that has brought a range is where the ranges behind it go at once. */
static void keep_place(const tn_flight *f)
{
    tn_wire *w = f->wire;
    const uint64_t part = f->wish.from / KEPT_BYTES;
    const bool newer = w->kept.size == 0 || part > w->kept_part;
    if (f->moved.size > 0 && f->wish.document == NULL && f->wish.scheme->move != NULL && newer &&
        !w->keeps_none) {
        tn_text_clear(&w->kept);
        tn_text_add(&w->kept, f->moved.data, f->moved.size);
        w->kept_part = part;
    }
}

static void use_place(tn_flight *f)
{
    const tn_wire *w = f->wire;
    tn_text_clear(&f->moved);
    f->kept =
        w->kept.size > 0 && f->wish.document == NULL && f->wish.from / KEPT_BYTES == w->kept_part;
    if (f->kept) {
        tn_text_add(&f->moved, w->kept.data, w->kept.size);
        f->kept = f->wish.scheme->move(&f->moved, f->wish.from, f->wish.end);
    }
    if (!f->kept) {
        tn_text_clear(&f->moved);
    }
}

static void forget_place(tn_flight *f)
{
    tn_text_clear(&f->wire->kept);
    tn_text_clear(&f->moved);
    f->kept = false;
}

/* ---- once more, or not ---- */

/* Until the next attempt: as the server says, else at random. *told_s: what it asked for. */
static uint64_t pause_ns(const tn_flight *f, uint64_t *told_s)
{
    const tn_http_reply *r = &f->reply;
    tn_wire *w = f->wire;
    const uint32_t k = f->tries - 1;
    const uint64_t doubled = k < 16 ? first_pause_ns << k : longest_pause_ns;
    const uint64_t most = doubled < longest_pause_ns ? doubled : longest_pause_ns;
    uint64_t pause = tn_below(tn_draw(w->random, w->drawn++), most);
    if (r->has_retry) {
        const uint64_t now = (uint64_t)tn_wall_s();
        const uint64_t at =
            r->retry_at ? r->retry_s - (r->retry_s < now ? r->retry_s : now) : r->retry_s;
        *told_s = at;
        const uint64_t told = (at < RETRY_AFTER_MAX_S ? at : RETRY_AFTER_MAX_S) * SECOND_NS;
        pause = pause > told ? pause : told;
    }
    return pause;
}

/* Notes why this attempt is made, which the log tells while it is waited for. */
static void note_trouble(tn_flight *f, const char *what, uint64_t pause, uint64_t told_s)
{
    const int size = snprintf(f->trouble, sizeof f->trouble, "%s, attempt %u of %d", what,
                              (unsigned)f->tries, TRIES_MAX);
    if (told_s > 0 && size > 0 && (size_t)size < sizeof f->trouble) {
        (void)snprintf(f->trouble + size, sizeof f->trouble - (size_t)size,
                       "; the server asks for a pause of %llu s, the next one is in %llu s",
                       (unsigned long long)told_s, (unsigned long long)(pause / SECOND_NS));
    }
}

static void try_again(tn_flight *f, const char *what)
{
    if (f->next - f->reached >= SLOW_BYTES_PER_S) { /* a byte each time would have no end */
        f->tries = 0;
        f->renewed = false;
    }
    if (f->state == TN_FLIGHT_FAILED) {
        return;
    }
    if (++f->tries >= TRIES_MAX || f->wish.once) {
        (void)tn_fail(&f->err, TN_E_IO, "cannot %s '%s': %s, %u times without progress", verb(f),
                      shown(f), what, (unsigned)f->tries);
        f->state = TN_FLIGHT_FAILED;
        return;
    }
    f->redirects = 0;
    forget_place(f);
    f->state = TN_FLIGHT_WAITS;
    uint64_t told_s = 0;
    const uint64_t pause = pause_ns(f, &told_s);
    note_trouble(f, what, pause, told_s);
    f->start_ns = tn_clock_ns() + tn_timer_ns(pause);
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

static void follow(tn_flight *f)
{
    char *to = NULL;
    const char *from = tn_text_str(&f->request.url);
    const uint32_t most = f->wish.scheme->redirects_max;
    (void)f->wire->curl->curl_easy_getinfo(f->easy, CURLINFO_REDIRECT_URL, &to);
    if (f->redirects == most || to == NULL) {
        char what[200];
        const char *region = f->reply.region;
        (void)snprintf(what, sizeof what,
                       most == 0 ? "the store answers %u, the bucket is elsewhere%s%s"
                                 : "the server redirects (%u) %s%s",
                       (unsigned)f->reply.status,
                       most == 0    ? *region != '\0' ? ", in region " : ""
                       : to == NULL ? "to no place"
                                    : "more often than is followed",
                       most == 0 ? region : "");
        fail(f, TN_E_DATA, what);
        return;
    }
    if (strncmp(from, "https:", 6) == 0 && strncmp(to, "https:", 6) != 0) {
        fail(f, TN_E_DATA, "the server redirects from https to another protocol");
        return;
    }
    f->redirects++;
    tn_text_clear(&f->moved);
    tn_text_adds(&f->moved, to);
    f->state = TN_FLIGHT_WAITS;
    f->start_ns = 0;
}

static void refuse_ticket(tn_flight *f)
{
    char what[600];
    const tn_request *r = &f->request;
    const tn_kerberos_asked asked = r->away       ? TN_KERBEROS_AWAY
                                    : r->kerberos ? TN_KERBEROS_TRIED
                                                  : TN_KERBEROS_UNUSED;
    tn_kerberos_explain(asked, f->no_ticket, what, sizeof what);
    fail(f, TN_E_DATA, what);
}

/* A final answer, in words: the status, and what the store calls it. */
static void refuse(tn_flight *f)
{
    char what[300];
    tn_text word = {0};
    const uint32_t status = f->reply.status;
    if (f->wish.scheme->explain != NULL && f->fault.size > 0) {
        f->wish.scheme->explain((tn_bytes){f->fault.data, f->fault.size, false}, &word);
    }
    if (word.size > 0) {
        tn_make_printable(word.data, "");
    }
    (void)snprintf(what, sizeof what, "%s%u%s%.*s%s",
                   status == 404 ? "is not there: the server answers " : "the server answers ",
                   (unsigned)status, word.size > 0 ? " (" : "", (int)word.size, tn_text_str(&word),
                   word.size > 0 ? ")" : "");
    fail(f, TN_E_DATA, what);
    tn_text_done(&word);
}

/* A refusal may be of a token that has expired and was renewed in its file. */
static bool renews(tn_flight *f)
{
    const uint32_t status = f->reply.status;
    const bool may = (status == 400 || status == 401 || status == 403) && !f->renewed;
    f->renewed = f->renewed || may;
    return may && tn_secrets_refresh(f->wire->secrets, f->secrets);
}

static bool says(const tn_flight *f, const char *word)
{
    return f->fault.size > 0 && memmem(f->fault.data, f->fault.size, word, strlen(word)) != NULL;
}

/* Another NameNode, where this one is on standby or cannot be reached. */
static bool is_standby(const tn_flight *f)
{
    return f->wish.scheme->addressed && says(f, "StandbyException");
}

/* A NameNode that has just begun, and what it is told by hand to refuse: 403, and over soon. */
static bool is_in_safe_mode(const tn_flight *f)
{
    return f->wish.scheme->addressed && (says(f, "in safe mode") || says(f, "RetriableException"));
}

/* What a store calls bytes that have come late, or not as they were sent. */
static bool is_spoilt(const tn_flight *f)
{
    return f->reply.status == 400 && f->wish.sends != NULL &&
           (says(f, "RequestTimeout") || says(f, "IncompleteBody") || says(f, "BadDigest") ||
            says(f, "XAmzContentSHA256Mismatch"));
}

static void settle_status(tn_flight *f)
{
    const uint32_t status = f->reply.status;
    const bool past_end = status == 416 && f->wish.document == NULL;
    char what[60];
    (void)snprintf(what, sizeof what, "the server answers %u", (unsigned)status);
    if (f->kept) { /* good for one request alone, or no longer: who named it is asked anew */
        f->wire->keeps_none = true;
        forget_place(f);
        f->state = TN_FLIGHT_WAITS;
    } else if (is_standby(f)) {
        f->request.node++;
        try_again(f, "every NameNode is on standby");
    } else if (is_in_safe_mode(f)) {
        f->reply.has_retry = true; /* as if it had said when */
        f->reply.retry_at = false;
        f->reply.retry_s = SAFE_MODE_S;
        try_again(f, "the NameNode is in safe mode");
    } else if (is_passing_status(status) || is_spoilt(f)) {
        f->request.node += f->wish.scheme->addressed;
        try_again(f, what);
    } else if (is_redirect(status)) {
        follow(f);
    } else if (status == 412 || (past_end && (is_other_version(f) || total_of(f) < f->next))) {
        changed(f);
    } else if (past_end && total_of(f) == f->next) {
        f->state = TN_FLIGHT_LANDED;
    } else if (renews(f)) {
        try_again(f, what);
    } else if (status == 401 && f->reply.negotiate && f->wish.scheme->addressed) {
        refuse_ticket(f);
    } else {
        refuse(f);
    }
}

/* Whether the object ends where the answer has ended. */
static bool is_at_end(const tn_flight *f)
{
    const uint64_t total = total_of(f);
    const bool marked =
        f->reply.status == 200 ? !f->wish.scheme->addressed : f->wish.end == UINT64_MAX;
    const bool ends = total != UINT64_MAX ? total == f->next : marked;
    return ends && (f->size == UINT64_MAX || f->size == f->next);
}

/* Whether what has come is all that was wanted. libcurl has compared it with the length that was
 * announced when the code is good. */
static bool is_complete(const tn_flight *f, CURLcode code)
{
    if (f->wish.document != NULL) {
        return code == CURLE_OK;
    }
    return f->next == f->wish.end || (code == CURLE_OK && is_at_end(f));
}

static void settle(tn_flight *f, CURLcode code)
{
    judge(f);
    tn_make_printable(f->why, ""); /* it may quote the server */
    if (f->state == TN_FLIGHT_FAILED) {
        return;
    }
    if (f->body.over_max) {
        fail_size(f);
    } else if (f->body.failed || f->fault.failed) {
        fail(f, TN_E_MEMORY, "no memory for the answer");
    } else if (!f->refused && f->reply.status != 0 && is_complete(f, code)) {
        f->state = TN_FLIGHT_LANDED;
        f->tries = 0;
        keep_place(f);
    } else if (code == CURLE_OK && f->refused) {
        settle_status(f);
    } else if (code == CURLE_OK || is_passing_error(code)) {
        f->request.node += f->wish.scheme->addressed && f->moved.size == 0;
        try_again(f, code == CURLE_OK    ? "the answer is shorter than it was to be"
                     : f->why[0] != '\0' ? f->why
                                         : f->wire->curl->curl_easy_strerror(code));
    } else {
        (void)tn_fail(&f->err, TN_E_IO, "cannot %s '%s': %s", verb(f), shown(f),
                      f->why[0] != '\0' ? f->why : f->wire->curl->curl_easy_strerror(code));
        f->state = TN_FLIGHT_FAILED;
    }
}

/* ---- many of them ---- */

/* Times in which nobody called count for nothing. A store that has been sent a file may be busy
 * with it, and shows by a blank now and then that it is. */
static void guard(tn_flight *f, uint64_t now, bool rested)
{
    const uint64_t came = passed(f) - f->window_bytes;
    const uint64_t least = f->wish.method != NULL ? 1 : (uint64_t)SLOW_S * SLOW_BYTES_PER_S;
    if (!rested && !f->paused && now - f->window_ns < patience_ns(f, SLOW_S * SECOND_NS)) {
        return;
    }
    if (rested || f->paused || came >= least) {
        open_window(f, now);
        return;
    }
    leave_multi(f);
    try_again(f, "the server stalls");
}

/* Tells who waits for a server by what, some seconds after something came last, and again after a
 * while, or when its silence has become an answer. */
static void tell(tn_flight *f, uint64_t now, bool rested)
{
    tn_wire *w = f->wire;
    if (rested || f->paused || f->came_ns == 0 || passed(f) != f->came_bytes) {
        f->came_ns = now;
        f->came_bytes = passed(f);
        return;
    }
    const bool has_trouble = f->trouble[0] != '\0';
    const bool is_news = w->told_ns == 0 || (has_trouble && !w->told_trouble) ||
                         now - w->told_ns >= tn_timer_ns(TELL_AGAIN_S * SECOND_NS);
    if (is_news && now - f->came_ns >= tn_timer_ns(TELL_S * SECOND_NS)) {
        w->told_ns = now;
        w->told_trouble = has_trouble;
        tn_log(TN_LOG_INFO, "waiting for '%s': %s", shown(f),
               has_trouble ? f->trouble : "the server is silent");
    }
}

static void collect(tn_wire *w)
{
    int left = 0;
    for (CURLMsg *m; (m = w->curl->curl_multi_info_read(w->multi, &left)) != NULL;) {
        for (uint32_t i = 0; i < TN_FLIGHTS && m->msg == CURLMSG_DONE; i++) {
            tn_flight *f = &w->flight[i];
            if (f->easy == m->easy_handle) {
                const CURLcode code = m->data.result;
                leave_multi(f); /* `m` is gone */
                settle(f, code);
                break;
            }
        }
    }
}

void tn_wire_work(tn_wire *w)
{
    int running = 0;
    const uint64_t now = tn_clock_ns();
    const bool rested = now - w->worked_ns > tn_silence_ns(SLOW_S * SECOND_NS) / 4;
    w->worked_ns = now;
    for (uint32_t i = 0; i < TN_FLIGHTS; i++) {
        tn_flight *f = &w->flight[i];
        if (f->state == TN_FLIGHT_WAITS && now >= f->start_ns) {
            start(f, now);
        }
    }
    (void)w->curl->curl_multi_perform(w->multi, &running);
    collect(w);
    for (uint32_t i = 0; i < TN_FLIGHTS; i++) {
        tn_flight *f = &w->flight[i];
        if (f->state == TN_FLIGHT_RUNS) {
            guard(f, now, rested);
        }
        if (f->state == TN_FLIGHT_RUNS || f->state == TN_FLIGHT_WAITS) {
            tell(f, now, rested);
        }
    }
}

tn_status tn_wire_wait(tn_wire *w, const atomic_bool *stop, tn_error *err)
{
    uint64_t most = SLICE_MS;
    const uint64_t now = tn_clock_ns();
    if (tn_stop_is(stop)) {
        return tn_fail(err, TN_E_STOPPED, "stopped by a signal while waiting for a server");
    }
    for (uint32_t i = 0; i < TN_FLIGHTS; i++) {
        const tn_flight *f = &w->flight[i];
        if (f->state == TN_FLIGHT_WAITS) {
            const uint64_t ms = f->start_ns > now ? (f->start_ns - now) / 1000000 + 1 : 0;
            most = ms < most ? ms : most;
        }
    }
    const CURLMcode code = w->curl->curl_multi_poll(w->multi, NULL, 0, (int)most, NULL);
    w->worked_ns = tn_clock_ns(); /* a silence in here is the server's */
    return code == CURLM_OK ? TN_OK : tn_fail(err, TN_E_IO, "cannot wait for a server");
}

tn_status tn_flight_begin(tn_flight *f, const tn_wish *wish, tn_error *err)
{
    TN_ASSERT(f->state == TN_FLIGHT_IDLE || f->state == TN_FLIGHT_LANDED);
    TN_ASSERT(wish->from < wish->end);
    TN_ASSERT(wish->end == UINT64_MAX || wish->end - wish->from <= TN_FLIGHT_BYTES);
    if (f->easy == NULL) {
        f->easy = f->wire->curl->curl_easy_init();
    }
    if (f->easy == NULL) {
        return tn_fail(err, TN_E_MEMORY, "no memory for a request");
    }
    if (wish->document == NULL && f->buffer == NULL) {
        TN_TRY(TN_ALLOC(f->buffer, TN_FLIGHT_BYTES, "bytes of remote data", err));
    }
    f->wish = *wish;
    f->next = wish->from;
    f->size = wish->size;
    (void)snprintf(f->tag, sizeof f->tag, "%s", wish->tag != NULL ? wish->tag : "");
    f->have = f->read = 0;
    f->tries = f->redirects = 0;
    f->renewed = false;
    f->start_ns = f->came_ns = 0;
    f->trouble[0] = '\0';
    use_place(f);
    f->state = TN_FLIGHT_WAITS;
    return TN_OK;
}

void tn_flight_resume(tn_flight *f)
{
    if (f->paused && f->state == TN_FLIGHT_RUNS && f->read > TN_FLIGHT_BYTES / 2) {
        f->paused = false;
        (void)f->wire->curl->curl_easy_pause(f->easy, CURLPAUSE_CONT); /* calls on_body */
    }
}

tn_status tn_wire_open(tn_wire **out, const tn_curl *curl, tn_secrets *secrets, tn_error *err)
{
    tn_wire *w = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(w, 1, "connections to a server", err));
    w->curl = curl;
    w->secrets = secrets;
    w->random = tn_random_id(); /* pauses shall differ, the bytes do not */
    w->multi = curl->curl_multi_init();
    if (w->multi == NULL) {
        tn_free(w);
        return tn_fail(err, TN_E_MEMORY, "no memory for connections to a server");
    }
    for (uint32_t i = 0; i < TN_FLIGHTS; i++) {
        w->flight[i].wire = w;
        w->flight[i].request.curl = curl;
        w->flight[i].request.secrets = secrets;
    }
    *out = w;
    return TN_OK;
}

void tn_wire_reset(tn_wire *w)
{
    for (uint32_t i = 0; i < TN_FLIGHTS; i++) {
        tn_flight *f = &w->flight[i];
        if (f->state == TN_FLIGHT_RUNS) {
            leave_multi(f);
        }
        clear_request(&f->request);
        f->state = TN_FLIGHT_IDLE;
    }
    tn_text_clear(&w->kept);
    w->keeps_none = false;
}

void tn_wire_close(tn_wire *w)
{
    if (w == NULL) {
        return;
    }
    tn_wire_reset(w);
    for (uint32_t i = 0; i < TN_FLIGHTS; i++) {
        tn_flight *f = &w->flight[i];
        if (f->easy != NULL) {
            w->curl->curl_easy_cleanup(f->easy);
        }
        tn_text_done(&f->request.url);
        tn_text_done(&f->request.sign);
        tn_text_done(&f->request.user);
        tn_text_done(&f->moved);
        tn_text_done(&f->fault);
        tn_text_done(&f->body);
        tn_free(f->buffer);
    }
    (void)w->curl->curl_multi_cleanup(w->multi);
    tn_text_done(&w->kept);
    tn_free(w);
}
