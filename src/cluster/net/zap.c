/* zap.c - the ZAP handler: requests of libzmq are received, judged and answered on a thread. */
#include "cluster/net/zap.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/core/number.h"
#include "base/thread/threads.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { VERSION, ID, DOMAIN, ADDRESS, ROUTING_ID, MECHANISM, CREDENTIALS };

/* libzmq writes the other end of an ipc connection as "localhost:uid:gid:pid", and addresses of TCP
 * connections without names. */
static const char ipc_peer[] = "localhost:";

/* ---- the rules ---- */

static bool is(const tn_bytes *frame, const char *text)
{
    size_t size = strlen(text);
    return frame->size == size && memcmp(frame->data, text, size) == 0;
}

const char *tn_zap_verdict_text(tn_zap_verdict v)
{
    static const char *const texts[] = {
        [TN_ZAP_ADMITTED] = "admitted",
        [TN_ZAP_MALFORMED] = "the request makes no sense",
        [TN_ZAP_FOREIGN] = "another domain",
        [TN_ZAP_MECHANISM] = "another mechanism than the one in use",
        [TN_ZAP_USER] = "another user",
        [TN_ZAP_ADDRESS] = "the address is in no trusted network",
        [TN_ZAP_KEY] = "the key is not on the list",
    };
    TN_ASSERT((size_t)v < sizeof texts / sizeof *texts);
    return texts[v];
}

static bool is_ipc(const tn_bytes *from)
{
    return from->size >= sizeof ipc_peer - 1 &&
           memcmp(from->data, ipc_peer, sizeof ipc_peer - 1) == 0;
}

static tn_zap_verdict judge_user(const tn_security *s, const tn_bytes *from)
{
    const char *uid = from->data + sizeof ipc_peer - 1;
    const char *end = memchr(uid, ':', from->size - (sizeof ipc_peer - 1));
    uint64_t value = 0;
    if (end == NULL || tn_read_u64(uid, (size_t)(end - uid), &value) != TN_NUM_OK) {
        return TN_ZAP_MALFORMED;
    }
    return value == s->uid ? TN_ZAP_ADMITTED : TN_ZAP_USER;
}

static tn_zap_verdict judge_address(const tn_security *s, const tn_bytes *from)
{
    char address[64];
    if (from->size >= sizeof address || memchr(from->data, '\0', from->size) != NULL) {
        return TN_ZAP_MALFORMED;
    }
    memcpy(address, from->data, from->size);
    address[from->size] = '\0';
    return tn_nets_have(s->net, s->n_nets, address) ? TN_ZAP_ADMITTED : TN_ZAP_ADDRESS;
}

static tn_zap_verdict judge_key(const tn_security *s, const tn_bytes *frame, uint32_t n,
                                uint32_t *rank)
{
    uint8_t key[TN_CURVE_BYTES];
    if (n != CREDENTIALS + 1 || frame[CREDENTIALS].size != sizeof key) {
        return TN_ZAP_MALFORMED;
    }
    memcpy(key, frame[CREDENTIALS].data, sizeof key);
    return tn_allow_find(s->allow, key, rank) ? TN_ZAP_ADMITTED : TN_ZAP_KEY;
}

tn_zap_verdict tn_zap_judge(const tn_security *s, const tn_bytes *frame, uint32_t n, uint32_t *rank)
{
    uint32_t whose = TN_RANK_ANY;
    tn_zap_verdict v = TN_ZAP_MECHANISM;
    if (n <= MECHANISM || n > TN_ZAP_FRAMES || !is(&frame[VERSION], "1.0")) {
        return TN_ZAP_MALFORMED;
    }
    if (!is(&frame[DOMAIN], TN_ZAP_DOMAIN)) {
        return TN_ZAP_FOREIGN;
    }
    if (is_ipc(&frame[ADDRESS])) {
        v = is(&frame[MECHANISM], "NULL") ? judge_user(s, &frame[ADDRESS]) : TN_ZAP_MECHANISM;
    } else if (is(&frame[MECHANISM], "NULL") && s->kind != TN_SECURITY_CURVE) {
        v = judge_address(s, &frame[ADDRESS]);
    } else if (is(&frame[MECHANISM], "CURVE") && s->kind == TN_SECURITY_CURVE) {
        v = judge_key(s, frame, n, &whose);
    }
    if (v == TN_ZAP_ADMITTED) {
        *rank = whose;
    }
    return v;
}

tn_zap_verdict tn_zap_judge_dialled(const tn_security *s, const char *address)
{
    const tn_bytes from = {.data = address, .size = strlen(address)};
    if (is_ipc(&from)) {
        return judge_user(s, &from);
    }
    return s->kind == TN_SECURITY_CURVE ? TN_ZAP_ADMITTED : judge_address(s, &from);
}

#define ZAP_ADDRESS "inproc://zeromq.zap.01"
#define ANY "any"

enum { LOG_EVERY_S = 60 };

struct tn_zap {
    tn_zmq z;
    const tn_security *security;
    void *context, *socket; /* socket: REP; the thread's once it runs */
    tn_thread *thread;
    double logged_s[TN_ZAP_VERDICTS]; /* when it was logged last; the thread's */
    _Atomic uint64_t count[TN_ZAP_VERDICTS];
};

/* One request, whole: the first TN_ZAP_FRAMES frames, and the last one after them. */
typedef struct request {
    zmq_msg_t message[TN_ZAP_FRAMES + 1];
    tn_bytes frame[TN_ZAP_FRAMES + 1];
    uint32_t n; /* how many there were */
} request;

/* ---- the thread ---- */

/* Waits for a request. False: the context ends. */
static bool receive(const tn_zap *zap, request *r)
{
    bool more = true;
    for (; more; r->n++) {
        const uint32_t i = r->n < TN_ZAP_FRAMES ? r->n : TN_ZAP_FRAMES;
        zmq_msg_t *message = &r->message[i];
        int got;
        do {
            got = zap->z.zmq_msg_recv(message, zap->socket, 0);
        } while (got < 0 && errno == EINTR);
        if (got < 0) {
            return false;
        }
        more = zap->z.zmq_msg_more(message) != 0;
        r->frame[i] =
            (tn_bytes){.data = zap->z.zmq_msg_data(message), .size = zap->z.zmq_msg_size(message)};
    }
    return true;
}

/* Answers; there is room for it: a REP has one request at a time. */
static void answer(const tn_zap *zap, const request *r, tn_zap_verdict v, uint32_t rank)
{
    const char *code = v == TN_ZAP_ADMITTED ? "200" : v == TN_ZAP_MALFORMED ? "500" : "400";
    char user[16] = "";
    if (v == TN_ZAP_ADMITTED && rank == TN_RANK_ANY) {
        memcpy(user, ANY, sizeof ANY);
    } else if (v == TN_ZAP_ADMITTED) {
        (void)snprintf(user, sizeof user, "%u", rank);
    }
    const char *const text[] = {"1.0", NULL, code, tn_zap_verdict_text(v), user, ""};
    const size_t last = sizeof text / sizeof *text - 1;
    for (size_t i = 0; i <= last; i++) {
        const tn_bytes frame = i == ID ? r->frame[ID] : (tn_bytes){text[i], strlen(text[i]), false};
        const int how = ZMQ_DONTWAIT | (i < last ? ZMQ_SNDMORE : 0);
        while (zap->z.zmq_send(zap->socket, frame.data, frame.size, how) < 0 && errno == EINTR) {
        }
    }
}

/* Rate-limits the log: a thousand attempts a second must not fill it. */
static void log_refusal(tn_zap *zap, const request *r, tn_zap_verdict v)
{
    char key[TN_CURVE_CHARS + 1] = "";
    double now = tn_clock_s();
    uint64_t count = atomic_load_explicit(&zap->count[v], memory_order_relaxed);
    if (v == TN_ZAP_ADMITTED || (count > 1 && now - zap->logged_s[v] < LOG_EVERY_S)) {
        return;
    }
    zap->logged_s[v] = now;
    const tn_bytes from = r->frame[ADDRESS];
    if (v == TN_ZAP_KEY) { /* as it is written in its .pub file */
        TN_ASSERT(r->n > CREDENTIALS && r->frame[CREDENTIALS].size == TN_CURVE_BYTES);
        (void)zap->z.zmq_z85_encode(key, (const uint8_t *)r->frame[CREDENTIALS].data,
                                    TN_CURVE_BYTES);
    }
    tn_log(TN_LOG_WARN, "refused a connection from '%.*s': %s (%llu so far)%s%s",
           (int)(from.size < 80 ? from.size : 80), from.data, tn_zap_verdict_text(v),
           (unsigned long long)count, key[0] != '\0' ? "; its public half is " : "", key);
}

/* Serves one request. Returns false when the context ends. */
static bool serve(tn_zap *zap)
{
    request r = {.n = 0};
    for (uint32_t i = 0; i <= TN_ZAP_FRAMES; i++) {
        (void)zap->z.zmq_msg_init(&r.message[i]);
        r.frame[i].data = "";
    }
    const bool is_request = receive(zap, &r);
    if (is_request) {
        uint32_t rank = TN_RANK_ANY;
        tn_zap_verdict v = tn_zap_judge(zap->security, r.frame, r.n, &rank);
        atomic_fetch_add_explicit(&zap->count[v], 1, memory_order_relaxed);
        answer(zap, &r, v, rank);
        log_refusal(zap, &r, v);
    }
    for (uint32_t i = 0; i <= TN_ZAP_FRAMES; i++) {
        (void)zap->z.zmq_msg_close(&r.message[i]);
    }
    return is_request;
}

static tn_status run(void *arg, tn_error *err)
{
    tn_zap *zap = arg;
    (void)err;
    while (serve(zap)) {
    }
    (void)zap->z.zmq_close(zap->socket);
    return TN_OK;
}

void tn_zap_close(tn_zap *zap)
{
    if (zap == NULL) {
        return;
    }
    if (zap->thread != NULL) {
        int failed = zap->z.zmq_ctx_shutdown(zap->context);
        TN_ASSERT(failed == 0);
        tn_status ended = tn_thread_join(zap->thread, NULL);
        TN_ASSERT(ended == TN_OK);
    } else if (zap->socket != NULL) {
        (void)zap->z.zmq_close(zap->socket);
    }
    tn_free(zap);
}

tn_status tn_zap_open(tn_zap **out, const tn_zmq *z, void *context, const tn_security *security,
                      tn_error *err)
{
    const int none = 0;
    *out = NULL;
    tn_zap *zap = NULL;
    TN_TRY(TN_ALLOC(zap, 1, "the door of the sockets", err));
    zap->z = *z;
    zap->security = security;
    zap->context = context;
    zap->socket = z->zmq_socket(context, ZMQ_REP);
    tn_status status = TN_OK;
    if (zap->socket == NULL) {
        status = tn_fail(err, TN_E_PEER, "cannot make a socket: %s", z->zmq_strerror(errno));
    } else if (z->zmq_setsockopt(zap->socket, ZMQ_LINGER, &none, sizeof none) != 0 ||
               z->zmq_bind(zap->socket, ZAP_ADDRESS) != 0) {
        status =
            tn_fail(err, TN_E_PEER, "cannot answer who may connect: %s", z->zmq_strerror(errno));
    } else {
        status = tn_thread_start(&zap->thread, "tn-zap", run, zap, err);
    }
    if (status != TN_OK) {
        tn_zap_close(zap);
        return status;
    }
    *out = zap;
    return TN_OK;
}

/* ---- counts, and messages ---- */

void tn_zap_counts(const tn_zap *zap, uint64_t out[TN_ZAP_VERDICTS])
{
    for (uint32_t v = 0; v < TN_ZAP_VERDICTS; v++) {
        out[v] = atomic_load_explicit(&zap->count[v], memory_order_relaxed);
    }
}

bool tn_zap_sender(const tn_zmq *z, const zmq_msg_t *message, uint32_t *rank)
{
    const char *user = z->zmq_msg_gets(message, "User-Id");
    const bool is_any = user != NULL && strcmp(user, ANY) == 0;
    uint64_t value = TN_RANK_ANY;
    if (!is_any && (user == NULL || tn_read_u64(user, strlen(user), &value) != TN_NUM_OK ||
                    value >= TN_RANK_ANY)) {
        return false;
    }
    *rank = (uint32_t)value;
    return true;
}

bool tn_zap_is_dialled(const tn_zmq *z, const tn_security *s, const zmq_msg_t *message)
{
    const char *from = z->zmq_msg_gets(message, "Peer-Address");
    return from != NULL && tn_zap_judge_dialled(s, from) == TN_ZAP_ADMITTED;
}
