/* test_http_server.c - requests over sockets: limits, slow clients, and the end of the server. */
#include "base/thread/threads.h"
#include "extra/http/http_server.h"
#include "extra/http/listen.h"
#include "support/test.h"
#include "train/exportkit.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static exportkit kit;
static tn_exported exported;

GROUP_SET_UP
{
    exportkit_open(&kit, "{type: widedeep, hidden: [8]}", NULL);
    exportkit_train(&kit);
    exported = exportkit_export(&kit);
}

GROUP_TEAR_DOWN
{
    exportkit_close(&kit);
}

/* A server in a thread of its own, at a Unix socket. */
typedef struct running {
    char dir[256], path[300];
    tn_model_set *models;
    tn_service *service;
    tn_http_opts opts;
    atomic_bool stop;
    tn_thread *thread;
} running;

static tn_status run(void *arg, tn_error *err)
{
    running *r = arg;
    return tn_http_serve(r->service, &r->opts, &r->stop, err);
}

static int dial(const running *r)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const struct timeval most = {.tv_sec = 20};
    assert_true(fd >= 0 && strlen(r->path) < sizeof at.sun_path);
    memcpy(at.sun_path, r->path, strlen(r->path) + 1);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most), 0);
    for (int i = 0; i < 2000; i++) {
        const struct timespec pause = {.tv_nsec = 5000000};
        if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0) {
            return fd;
        }
        (void)nanosleep(&pause, NULL);
    }
    fail_msg("nobody listens at %s", r->path);
    return -1;
}

static void running_open(running *r, tn_http_opts opts)
{
    const char *const paths[] = {exported.path};
    static const char *const names[] = {"ads"};
    tn_error err = {0};
    const tn_model_set_opts set = {
        .paths = {1, paths}, .names = {1, names}, .served = {.hands = 2}, .poll_s = 1};
    memset(r, 0, sizeof *r);
    tn_tmpdir_make(r->dir);
    (void)snprintf(r->path, sizeof r->path, "%s/socket", r->dir);
    assert_ok(tn_model_set_open(&r->models, &set, &err), err.text);
    const tn_service_opts service = {.models = r->models, .workers = 2, .rows_max = 100};
    assert_ok(tn_service_new(&r->service, &service, &err), err.text);
    r->opts = opts;
    r->opts.unix_socket = r->path;
    r->opts.workers = 2;
    r->opts.header_max = 16384;
    r->opts.connections_max = 16;
    r->opts.keep_alive_s = 30;
    assert_ok(tn_thread_start(&r->thread, "test-serve", run, r, &err), err.text);
    (void)close(dial(r));
}

/* Stops the server; it must end well. */
static void running_close(running *r)
{
    tn_error err = {0};
    atomic_store(&r->stop, true);
    assert_ok(tn_thread_join(r->thread, &err), err.text);
    assert_false(tn_path_exists(r->path));
    tn_service_free(r->service);
    tn_model_set_close(r->models);
    tn_tmpdir_remove(r->dir);
}

static const tn_http_opts usual = {.body_max = 2000, .queue_max = 100, .read_s = 30, .drain_s = 5};

static void send_text(int fd, const char *text)
{
    const size_t size = strlen(text);
    assert_int_equal(send(fd, text, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Reads until `says` has come; all that came. */
static const char *receive(int fd, const char *says)
{
    static char text[65536];
    size_t n = 0;
    text[0] = '\0';
    while (strstr(text, says) == NULL) {
        const ssize_t got = recv(fd, text + n, sizeof text - 1 - n, 0);
        fail_if(got <= 0, "no '%s' in: %s", says, text);
        n += (size_t)got;
        text[n] = '\0';
    }
    return text;
}

#define POST "POST /v1/models/ads:predict HTTP/1.1\r\nHost: x\r\n"

TEST(requests_of_a_connection_are_answered_in_their_order)
{
    OPEN(running, r, usual);
    const int fd = dial(&r);
    send_text(fd, POST "Content-Length: 18\r\n\r\n{\"instances\":[{}]}"
                       "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    const char *text = receive(fd, "\"live\":true");
    assert_says(text, "HTTP/1.1 200 OK");
    assert_says(text, "Tnet-Model-Version: ");
    assert_true(strstr(text, "predictions") < strstr(text, "\"live\""));
    send_text(fd, POST
              "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"ins\r\nd\r\ntances\":[{}]}\r\n0\r\n\r\n");
    (void)receive(fd, "predictions");
    send_text(fd, "DELETE /health HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_says(receive(fd, "takes GET"), "Allow: GET, HEAD");
    (void)close(fd);
}

TEST(long_bodies_and_packed_ones_are_refused)
{
    OPEN(running, r, usual);
    int fd = dial(&r);
    send_text(fd, POST "Content-Length: 2001\r\n\r\n");
    assert_says(receive(fd, "}\n"), "HTTP/1.1 413 ");
    (void)close(fd);
    fd = dial(&r);
    send_text(fd, POST "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}");
    assert_says(receive(fd, "}\n"), "HTTP/1.1 415 ");
    (void)close(fd);
    fd = dial(&r);
    char chunk[2100] = POST "Transfer-Encoding: chunked\r\n\r\n7d1\r\n";
    send_text(fd, chunk);
    memset(chunk, ' ', 2001);
    memcpy(chunk + 2001, "\r\n0\r\n\r\n", 8);
    send_text(fd, chunk);
    assert_says(receive(fd, "}\n"), "HTTP/1.1 413 ");
    (void)close(fd);
}

/* Sends whole requests until one gets an answer with this code. A request counts until the server
 * is done with its answer, which may be a moment after the client has it. */
static const char *ask_until(int fd, const char *code)
{
    const char *text = "";
    for (int i = 0; i < 1000 && strstr(text, code) == NULL; i++) {
        send_text(fd, POST "Content-Length: 18\r\n\r\n{\"instances\":[{}]}");
        text = receive(fd, "}\n");
    }
    return text;
}

TEST(more_requests_at_once_than_the_queue_are_refused)
{
    static tn_http_opts opts; /* a test that fails leaves its server */
    opts = usual;
    opts.queue_max = 1;
    OPEN(running, r, opts);
    const int second = dial(&r);
    const char *text = "";
    for (int i = 0; i < 100 && strstr(text, " 200 OK") == NULL; i++) { /* it may come second */
        const int first = dial(&r);
        send_text(first, POST "Content-Length: 18\r\n\r\n{\"inst");
        text = ask_until(second, " 429 ");
        assert_says(text, "HTTP/1.1 429 ");
        assert_says(text, "Retry-After: 1");
        send_text(first, "ances\":[{}]}");
        text = receive(first, "}\n");
        (void)close(first);
    }
    assert_says(text, "HTTP/1.1 200 OK");
    assert_says(ask_until(second, " 200 OK"), "HTTP/1.1 200 OK");
    (void)close(second);
}

TEST(a_request_that_is_never_whole_is_ended)
{
    tn_http_opts opts = usual;
    opts.read_s = 0.2;
    OPEN(running, r, opts);
    const int fd = dial(&r);
    send_text(fd, POST "Content-Length: 18\r\n\r\n{\"inst");
    const char *text = receive(fd, "}\r\n");
    assert_says(text, "HTTP/1.1 408 ");
    assert_says(text, "{\"error\":\"the request took too long\"}\r\n");
    char more;
    assert_int_equal(recv(fd, &more, 1, 0), 0);
    (void)close(fd);
}

TEST(what_has_begun_is_answered_after_the_signal)
{
    OPEN(running, r, usual);
    const int fd = dial(&r);
    send_text(fd, POST "Content-Length: 18\r\n\r\n{\"inst");
    for (int i = 0; i < 2000 && !tn_service_is_draining(r.service); i++) {
        const struct timespec pause = {.tv_nsec = 5000000};
        atomic_store(&r.stop, true);
        (void)nanosleep(&pause, NULL);
    }
    send_text(fd, "ances\":[{}]}");
    assert_says(receive(fd, "}\n"), "HTTP/1.1 200 OK");
    (void)close(fd);
}

TEST(an_address_is_named_and_not_taken_twice)
{
    char name[TN_LISTEN_NAME_MAX];
    int fd = -1;
    int other = -1;
    tn_error err = {0};
    assert_ok(tn_listen("127.0.0.1", 0, NULL, &fd, name, &err), err.text);
    assert_memory_equal(name, "127.0.0.1:", 10);
    const uint32_t port = (uint32_t)strtoul(name + 10, NULL, 10);
    assert_true(port > 0);
    assert_int_equal(tn_listen("127.0.0.1", port, NULL, &other, name, &err), TN_E_IO);
    assert_says(err.text, "cannot listen on port");
    (void)close(fd);
    assert_int_equal(tn_listen("no such host", 0, NULL, &other, name, &err), TN_E_IO);
    char path[200];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(tn_listen(NULL, 0, path, &other, name, &err), TN_E_IO);
    assert_says(err.text, "the path of a Unix socket has 199 bytes");
}
