/* http_server.c - libmicrohttpd's side of the server: connections, bodies, limits, time.
 *
 * A connection is in one of four states, which its worker and the thread that looks after time
 * change by compare and exchange:
 *
 *     IDLE -> READING -> ANSWERING -> IDLE        the worker
 *             READING -> LATE                     the other thread, which then answers 408
 */
#include "extra/http/http_server.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/machine/limits.h"
#include "extra/http/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    SPARES_MAX = 64, /* requests that a worker keeps for the next ones */
    SPARE_BYTES_MAX = 1 << 20,
    TICK_MS = 100,
    OTHER_FILES = 256, /* beside connections: sockets of the library, exports that are opened */
    SWALLOWED = 8,     /* times body_max of a refused body are read before the connection is cut */
};
static const uint64_t quiet_ns = 1000000000; /* without a request, before a drained server ends */

typedef enum conn_state { CONN_IDLE, CONN_READING, CONN_ANSWERING, CONN_LATE } conn_state;

typedef struct worker worker;

typedef struct conn {
    worker *worker;
    int fd;
    _Atomic int state; /* conn_state */
    _Atomic uint64_t since_ns;
    struct conn *before, *next;
} conn;

/* A request that is read. */
typedef struct reading {
    tn_text body;
    uint64_t begun_ns, received;
    uint32_t refused; /* code of the refusal that waits for the end of the body; 0: none */
    struct reading *next;
} reading;

typedef struct server {
    tn_service *service;
    const tn_http_opts *opts;
    atomic_uint in_flight;     /* requests from their head to their answer */
    _Atomic uint64_t asked_ns; /* the last time that a request came, but for questions of health */
    worker *worker;
} server;

struct worker {
    server *server;
    uint32_t number;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock; /* guards the list of connections */
    conn *first;
    reading *spare;
    uint32_t n_spares;
    tn_reply reply;
};

/* ---- connections ---- */

static conn *conn_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static void begin_conn(worker *w, struct MHD_Connection *connection, void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    conn *c = tn_try_alloc(1, sizeof *c, "a connection", NULL);
    *context = c;
    if (c == NULL || info == NULL) {
        return; /* its requests are refused for want of memory */
    }
    c->worker = w;
    c->fd = info->connect_fd;
    atomic_store(&c->since_ns, tn_clock_ns());
    (void)atomic_fetch_add(tn_serve_connections(tn_service_metrics(w->server->service)), 1);
    (void)pthread_mutex_lock(&w->lock);
    c->next = w->first;
    if (c->next != NULL) {
        c->next->before = c;
    }
    w->first = c;
    (void)pthread_mutex_unlock(&w->lock);
}

static void end_conn(worker *w, conn *c)
{
    if (c == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&w->lock);
    if (c->before != NULL) {
        c->before->next = c->next;
    } else {
        w->first = c->next;
    }
    if (c->next != NULL) {
        c->next->before = c->before;
    }
    (void)pthread_mutex_unlock(&w->lock);
    (void)atomic_fetch_sub(tn_serve_connections(tn_service_metrics(w->server->service)), 1);
    tn_free(c);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        begin_conn(cls, connection, context);
    } else {
        end_conn(cls, *context);
        *context = NULL;
    }
}

/* A request line was read: from here on the time of the request counts. */
static void *on_line(void *cls, const char *uri, struct MHD_Connection *connection)
{
    conn *c = conn_of(connection);
    (void)cls;
    (void)uri;
    if (c != NULL) {
        atomic_store(&c->since_ns, tn_clock_ns());
        atomic_store(&c->state, CONN_READING);
    }
    return NULL;
}

/* ---- bodies ---- */

static reading *begin_reading(worker *w)
{
    reading *r = w->spare;
    if (r != NULL) {
        w->spare = r->next;
        w->n_spares--;
    } else {
        r = tn_try_alloc(1, sizeof *r, "a request", NULL);
    }
    if (r != NULL) {
        r->begun_ns = tn_clock_ns();
        r->received = 0;
        r->refused = 0;
        r->body.size_max = w->server->opts->body_max;
        tn_text_clear(&r->body);
        (void)atomic_fetch_add(&w->server->in_flight, 1);
    }
    return r;
}

static void end_reading(worker *w, reading *r)
{
    (void)atomic_fetch_sub(&w->server->in_flight, 1);
    if (r->body.capacity > SPARE_BYTES_MAX) {
        tn_text_done(&r->body);
    }
    if (w->n_spares == SPARES_MAX) {
        tn_text_done(&r->body);
        tn_free(r);
        return;
    }
    r->next = w->spare;
    w->spare = r;
    w->n_spares++;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode code)
{
    conn *c = conn_of(connection);
    (void)code;
    if (c != NULL) {
        atomic_store(&c->since_ns, tn_clock_ns());
        atomic_store(&c->state, CONN_IDLE);
    }
    if (*request != NULL) {
        end_reading(cls, *request);
        *request = NULL;
    }
}

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

/* Hands the reply of a worker to the library. */
static enum MHD_Result send_reply(worker *w, struct MHD_Connection *connection, const reading *r)
{
    tn_reply *reply = &w->reply;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(reply->body.size, reply->body.data, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) {
        return MHD_NO;
    }
    add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    if (reply->allow != NULL) {
        add_header(response, MHD_HTTP_HEADER_ALLOW, reply->allow);
    }
    if (reply->version[0] != '\0') {
        add_header(response, "Tnet-Model-Version", reply->version);
    }
    if (reply->json_bytes > 0) {
        char number[32];
        (void)snprintf(number, sizeof number, "%zu", reply->json_bytes);
        add_header(response, "Inference-Header-Content-Length", number);
    }
    if (reply->code == MHD_HTTP_TOO_MANY_REQUESTS || reply->code == MHD_HTTP_SERVICE_UNAVAILABLE) {
        add_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    if (tn_service_is_draining(w->server->service)) {
        add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    const enum MHD_Result result = MHD_queue_response(connection, reply->code, response);
    MHD_destroy_response(response);
    const uint64_t begun_ns = r != NULL ? r->begun_ns : tn_clock_ns();
    tn_count_answer(tn_service_metrics(w->server->service), w->number, reply->route, reply->code,
                    (double)(tn_clock_ns() - begun_ns) * 1e-9);
    return result;
}

static enum MHD_Result refuse(worker *w, struct MHD_Connection *connection, const reading *r,
                              uint32_t code)
{
    const tn_http_opts *opts = w->server->opts;
    tn_serve_metrics *metrics = tn_service_metrics(w->server->service);
    w->reply.route = TN_ROUTE_NONE;
    w->reply.version[0] = '\0';
    w->reply.allow = NULL;
    if (code == MHD_HTTP_CONTENT_TOO_LARGE) {
        tn_count_rejection(metrics, w->number, TN_REJECT_BODY);
        tn_reply_error(&w->reply, code, "a body of more than %llu bytes",
                       (unsigned long long)opts->body_max);
    } else if (code == MHD_HTTP_TOO_MANY_REQUESTS) {
        tn_count_rejection(metrics, w->number, TN_REJECT_QUEUE);
        tn_reply_error(&w->reply, code, "more than %u requests at once", opts->queue_max);
    } else if (code == MHD_HTTP_UNSUPPORTED_MEDIA_TYPE) {
        tn_reply_error(&w->reply, code, "a body with a Content-Encoding is not read");
    } else {
        tn_reply_error(&w->reply, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory for the request");
    }
    return send_reply(w, connection, r);
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* The head of a request is there: refuses what its length or number forbids. */
static enum MHD_Result begin_request(worker *w, struct MHD_Connection *connection,
                                     const char *method, void **request)
{
    const tn_http_opts *opts = w->server->opts;
    const char *length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *encoding = header_of(connection, MHD_HTTP_HEADER_CONTENT_ENCODING);
    uint64_t bytes = 0;
    reading *r = begin_reading(w);
    *request = r;
    if (r == NULL) {
        return refuse(w, connection, NULL, MHD_HTTP_SERVICE_UNAVAILABLE);
    }
    if (length != NULL && tn_read_u64(length, strlen(length), &bytes) == TN_NUM_OK &&
        bytes > opts->body_max) {
        return refuse(w, connection, r, MHD_HTTP_CONTENT_TOO_LARGE);
    }
    if (encoding != NULL && strcmp(encoding, "identity") != 0) {
        return refuse(w, connection, r, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE);
    }
    if (strcmp(method, "POST") == 0 && atomic_load(&w->server->in_flight) > opts->queue_max) {
        r->refused = MHD_HTTP_TOO_MANY_REQUESTS;
    }
    return MHD_YES;
}

/* Takes some bytes of a body; one that is refused is passed over, up to a limit. */
static enum MHD_Result read_more(const worker *w, reading *r, const char *data, size_t *size)
{
    r->received += *size;
    if (r->refused == 0) {
        tn_text_add(&r->body, data, *size);
        if (r->body.failed) {
            r->refused =
                r->body.over_max ? MHD_HTTP_CONTENT_TOO_LARGE : MHD_HTTP_SERVICE_UNAVAILABLE;
        }
    }
    *size = 0;
    return r->received / SWALLOWED <= w->server->opts->body_max ? MHD_YES : MHD_NO;
}

static const char *argument_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

static enum MHD_Result answer(worker *w, struct MHD_Connection *connection,
                              const tn_http_request *line, const reading *r)
{
    tn_http_request request = *line;
    request.content_type = header_of(connection, MHD_HTTP_HEADER_CONTENT_TYPE);
    request.accept = header_of(connection, MHD_HTTP_HEADER_ACCEPT);
    request.json_bytes = header_of(connection, "Inference-Header-Content-Length");
    request.model = argument_of(connection, "model");
    request.format = argument_of(connection, "format");
    request.label = argument_of(connection, "label");
    request.body = (tn_bytes){tn_text_str(&r->body), r->body.size, false};
    tn_service_answer(w->server->service, w->number, &request, &w->reply);
    if (w->reply.body.failed) {
        return MHD_NO;
    }
    if (strcmp(request.method, "POST") == 0) {
        atomic_store_explicit(&w->server->asked_ns, tn_clock_ns(), memory_order_relaxed);
    }
    return send_reply(w, connection, r);
}

// NOLINTNEXTLINE(readability-function-size): the library's form
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **request)
{
    worker *w = cls;
    reading *r = *request;
    conn *c = conn_of(connection);
    int reading_now = CONN_READING;
    (void)version;
    if (r == NULL) {
        return begin_request(w, connection, method, request);
    }
    if (*size > 0) {
        return read_more(w, r, data, size);
    }
    if (c == NULL || !atomic_compare_exchange_strong(&c->state, &reading_now, CONN_ANSWERING)) {
        return MHD_NO; /* it was late, and is answered */
    }
    const tn_http_request line = {.method = method, .path = url};
    return r->refused != 0 ? refuse(w, connection, r, r->refused) : answer(w, connection, &line, r);
}

/* ---- workers ---- */

static tn_status start_worker(worker *w, int listening, tn_error *err)
{
    const tn_http_opts *opts = w->server->opts;
    const int own = fcntl(listening, F_DUPFD_CLOEXEC, 0); /* the library closes it */
    const unsigned seconds = (unsigned)(opts->keep_alive_s + 1);
    const uint32_t connections = (opts->connections_max + opts->workers - 1) / opts->workers;
    if (own < 0) {
        return tn_fail(err, TN_E_IO, "cannot listen: %s", strerrordesc_np(errno));
    }
    w->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_TURBO, 0, NULL, NULL, on_request, w,
        MHD_OPTION_LISTEN_SOCKET, own, MHD_OPTION_CONNECTION_LIMIT, connections,
        MHD_OPTION_CONNECTION_TIMEOUT, seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)opts->header_max, MHD_OPTION_NOTIFY_CONNECTION, on_connection, w,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, w, MHD_OPTION_URI_LOG_CALLBACK, on_line, w,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (w->daemon == NULL) {
        (void)close(own);
        return tn_fail(err, TN_E_IO, "cannot start a worker of the server: %s",
                       strerrordesc_np(errno));
    }
    return TN_OK;
}

static void stop_worker(worker *w)
{
    if (w->daemon != NULL) {
        MHD_stop_daemon(w->daemon);
    }
    while (w->spare != NULL) {
        reading *r = w->spare;
        w->spare = r->next;
        tn_text_done(&r->body);
        tn_free(r);
    }
    tn_text_done(&w->reply.body);
    (void)pthread_mutex_destroy(&w->lock);
}

/* ---- time ---- */

/* Answers 408 in the place of the worker, which writes nothing while it reads. */
static void end_late(conn *c)
{
    static const char text[] = "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\n"
                               "Content-Length: 39\r\nConnection: close\r\n\r\n"
                               "{\"error\":\"the request took too long\"}\r\n";
    int reading_now = CONN_READING;
    if (atomic_compare_exchange_strong(&c->state, &reading_now, CONN_LATE)) {
        ssize_t sent = send(c->fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)sent;
        (void)shutdown(c->fd, SHUT_RDWR);
    }
}

/* Ends the requests that take too long to be read, and connections whose next request never comes
 * whole. */
static void end_late_requests(server *s)
{
    const uint64_t read_ns = (uint64_t)(s->opts->read_s * 1e9);
    const uint64_t idle_ns = read_ns + (uint64_t)(s->opts->keep_alive_s * 1e9);
    for (uint32_t i = 0; i < s->opts->workers; i++) {
        worker *w = &s->worker[i];
        (void)pthread_mutex_lock(&w->lock);
        const uint64_t now = tn_clock_ns();
        for (conn *c = w->first; c != NULL; c = c->next) {
            const uint64_t since = atomic_load(&c->since_ns);
            const uint64_t age = now > since ? now - since : 0;
            const int state = atomic_load(&c->state);
            if (state == CONN_READING && age > read_ns) {
                tn_count_rejection(tn_service_metrics(s->service), s->opts->workers,
                                   TN_REJECT_TIME);
                end_late(c);
            } else if (state == CONN_IDLE && age > idle_ns) {
                (void)shutdown(c->fd, SHUT_RDWR);
            }
        }
        (void)pthread_mutex_unlock(&w->lock);
    }
}

static void tick(server *s)
{
    const struct timespec pause = {.tv_nsec = TICK_MS * 1000000L};
    (void)nanosleep(&pause, NULL);
    end_late_requests(s);
}

/* Answers what still comes, until a second goes by without a request. */
static void drain(server *s)
{
    const uint64_t begun = tn_clock_ns();
    const uint64_t most = begun + (uint64_t)(s->opts->drain_s * 1e9);
    tn_service_drain(s->service);
    tn_log(TN_LOG_INFO, "draining: not ready any more, answering what still comes");
    for (uint64_t now = begun; now < most; now = tn_clock_ns()) {
        const uint64_t asked = atomic_load(&s->asked_ns);
        const uint64_t last = asked > begun ? asked : begun;
        if (atomic_load(&s->in_flight) == 0 && now > last + quiet_ns) {
            return;
        }
        tick(s);
    }
    tn_log(TN_LOG_WARN, "%u requests are cut: they were not answered within %g s",
           atomic_load(&s->in_flight), s->opts->drain_s);
}

tn_status tn_http_serve(tn_service *service, const tn_http_opts *opts, const atomic_bool *stop,
                        tn_error *err)
{
    server s = {.service = service, .opts = opts};
    char name[TN_LISTEN_NAME_MAX];
    int listening = -1;
    (void)snprintf(name, sizeof name, "%u connections", opts->connections_max);
    TN_TRY(tn_descriptors_need(opts->connections_max + (uint64_t)OTHER_FILES, name, err));
    TN_TRY(TN_ALLOC(s.worker, opts->workers, "workers", err));
    tn_status status = tn_listen(opts->host, opts->port, opts->unix_socket, &listening, name, err);
    for (uint32_t i = 0; i < opts->workers; i++) {
        s.worker[i].server = &s;
        s.worker[i].number = i;
        (void)pthread_mutex_init(&s.worker[i].lock, NULL);
        status = status == TN_OK ? start_worker(&s.worker[i], listening, err) : status;
    }
    if (status == TN_OK) {
        tn_log(TN_LOG_INFO, "listening on %s, %u threads", name, opts->workers);
        while (!atomic_load(stop)) {
            tick(&s);
        }
        drain(&s);
    }
    if (listening >= 0) {
        (void)close(listening);
    }
    for (uint32_t i = 0; i < opts->workers; i++) {
        stop_worker(&s.worker[i]);
    }
    if (opts->unix_socket != NULL && listening >= 0) {
        (void)(tn_remove_file(opts->unix_socket, NULL) == TN_OK);
    }
    tn_free(s.worker);
    return status;
}
