/* test_flood_guard.c - connections that never finish a message are cut, those that do are not. */
#include "cluster/net/flood_guard.h"

#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/thread/threads.h"
#include "cluster/attacks.h"
#include "cluster/keys.h"
#include "cluster/socketpeers.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 1 << 20, PART = MOST / 2 };

static const tn_endpoint loopback = {.host = "127.0.0.1"};
static const uint64_t patience_ns = UINT64_C(120000000000);
static uint32_t n_lines;

static void count_line(tn_log_level level, const char *line)
{
    (void)level;
    n_lines += strstr(line, "MB and no whole message") != NULL;
}

/* A ROUTER under watch. */
typedef struct fixture {
    peer server;
    tn_flood_guard *flood;
    uint64_t n_cut, n_messages;
} fixture;

static void open_fixture(fixture *x)
{
    tn_error err = {0};
    *x = (fixture){.n_cut = 0};
    peers_open(&x->server, 0, NULL);
    peers_listen(&x->server, &loopback);
    void *context = tn_sockets_context(x->server.sockets);
    fail_if(tn_flood_guard_open(&x->flood, keys_zmq(), context, x->server.router, MOST, &err) !=
                TN_OK,
            "%s", err.text);
}

static void close_fixture(fixture *x)
{
    tn_flood_guard_close(x->flood);
    peers_close(&x->server);
}

/* Reads what came and looks, as a net thread does. */
static void turn(fixture *x)
{
    const tn_zmq *z = keys_zmq();
    zmq_pollitem_t item = {.socket = x->server.router, .events = ZMQ_POLLIN};
    (void)z->zmq_poll(&item, 1, PEERS_SLICE_MS);
    for (;;) {
        zmq_msg_t m;
        assert_int_equal(z->zmq_msg_init(&m), 0);
        const bool got = z->zmq_msg_recv(&m, x->server.router, ZMQ_DONTWAIT) >= 0;
        if (got) {
            x->n_messages += z->zmq_msg_more(&m) == 0;
            tn_flood_guard_received(x->flood, &m);
        }
        assert_int_equal(z->zmq_msg_close(&m), 0);
        if (!got) {
            break;
        }
    }
    x->n_cut += tn_flood_guard_poll(x->flood);
}

typedef struct siege {
    attack_on on;
    attack_score score;
    atomic_bool stop;
} siege;

static tn_status flood(void *arg, tn_error *err)
{
    const siege *s = arg;
    (void)err;
    for (uint32_t i = 0; i < attack_count(); i++) {
        if (strcmp(attack_at(i)->name, "endless") == 0) {
            attack_at(i)->run(&s->on);
        }
    }
    return TN_OK;
}

TEST(who_never_finishes_a_message_is_cut)
{
    fixture x;
    siege s = {.score = {0}};
    tn_thread *thread = NULL;
    open_fixture(&x);
    s.on = (attack_on){.z = keys_zmq(), .stop = &s.stop, .score = &s.score};
    assert_int_equal(tn_endpoint_read(x.server.at, 0, &s.on.at, NULL), TN_OK);
    n_lines = 0;
    tn_log_set(count_line, TN_LOG_INFO);
    assert_int_equal(tn_thread_start(&thread, "flood", flood, &s, NULL), TN_OK);
    const uint64_t until = tn_clock_ns() + patience_ns;
    while (atomic_load(&s.score.cuts) < 3 && tn_clock_ns() < until) {
        turn(&x);
    }
    atomic_store(&s.stop, true);
    assert_int_equal(tn_thread_join(thread, NULL), TN_OK);
    tn_log_set(NULL, TN_LOG_INFO);
    assert_true(atomic_load(&s.score.cuts) >= 3);
    assert_true(x.n_cut >= 3);
    assert_int_equal(n_lines, x.n_cut);
    assert_int_equal(x.n_messages, 0);
    close_fixture(&x);
}

/* Twenty times what one message may have, in messages of half of it. */
static char told[200]; /* the last line of those that were not let in */

static void keep_failures(tn_log_level level, const char *line)
{
    (void)level;
    const char *at = strstr(line, "connections that broke off before they were let in: ");
    n_lines += at != NULL;
    (void)snprintf(told, sizeof told, "%s", at != NULL ? at : told);
}

/* Connects, and goes: after a word that no peer says, or after none. */
static void come_and_go(const peer *to, bool speaks)
{
    static const char word[] = "GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n";
    tn_endpoint e;
    assert_int_equal(tn_endpoint_read(to->at, 0, &e, NULL), TN_OK);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)e.port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const void *address = &at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, address, sizeof at), 0);
    if (speaks) {
        (void)send(fd, word, sizeof word - 1, MSG_NOSIGNAL);
    }
    (void)close(fd);
}

static void await_failures(fixture *x, uint64_t n)
{
    const uint64_t until = tn_clock_ns() + patience_ns;
    while (tn_flood_guard_failed(x->flood).n < n && tn_clock_ns() < until) {
        turn(x);
    }
    assert_int_equal(tn_flood_guard_failed(x->flood).n, n);
}

/* A thousand a second must leave a line, and not a thousand. */
TEST(who_is_never_let_in_is_counted_in_one_line)
{
    enum { STRANGERS = 300 };
    fixture x;
    peer client;
    open_fixture(&x);
    n_lines = 0;
    tn_log_set(keep_failures, TN_LOG_INFO);
    peers_open(&client, 1, NULL); /* it is let in, says nothing and goes: nothing to tell */
    peers_dial(&client, &x.server, 0);
    while (tn_flood_guard_watched(x.flood) == 0) {
        turn(&x);
    }
    for (uint32_t i = 0; i < STRANGERS; i++) { /* silent, foreign */
        come_and_go(&x.server, i % 2 == 1);
        if (i % 16 == 0) {
            turn(&x);
        }
    }
    await_failures(&x, STRANGERS);
    const uint64_t until = tn_clock_ns() + patience_ns;
    peers_close(&client);
    while (tn_flood_guard_watched(x.flood) > 0 && tn_clock_ns() < until) {
        turn(&x);
    }
    for (uint64_t i = 1; i <= 4; i++) {
        come_and_go(&x.server, i % 2 == 1);
        await_failures(&x, STRANGERS + i);
        assert_non_null(strstr(tn_flood_guard_failed(x.flood).why,
                               i % 2 == 1 ? "did not speak" : "closed, or was silent"));
    }
    assert_int_equal(n_lines, 1);
    close_fixture(&x);
    tn_log_set(NULL, TN_LOG_INFO);
    assert_int_equal(n_lines, 2); /* the count, at the end */
    assert_non_null(strstr(told, ": 304 so far; the last one "));
}

TEST(who_finishes_its_messages_is_left_alone)
{
    enum { MESSAGES = 40 };
    fixture x;
    peer client;
    char *part FREED(tn_free) = tn_alloc(PART, 1, "a message");
    uint32_t n_sent = 0;
    open_fixture(&x);
    peers_open(&client, 1, NULL);
    peers_dial(&client, &x.server, 0);
    const uint64_t until = tn_clock_ns() + patience_ns;
    while (x.n_messages < MESSAGES && tn_clock_ns() < until) {
        if (n_sent < MESSAGES && n_sent <= x.n_messages) {
            n_sent += keys_zmq()->zmq_send(client.dealer, part, PART, ZMQ_DONTWAIT) == PART;
        }
        turn(&x);
    }
    assert_int_equal(x.n_messages, MESSAGES);
    assert_int_equal(x.n_cut, 0);
    assert_int_equal(tn_flood_guard_watched(x.flood), 1);
    peers_close(&client);
    while (tn_flood_guard_watched(x.flood) > 0 && tn_clock_ns() < until) { /* it is gone */
        turn(&x);
    }
    assert_int_equal(tn_flood_guard_watched(x.flood), 0);
    close_fixture(&x);
}

static int calls_left; /* until one fails */

static bool fails(void)
{
    errno = EMFILE;
    return --calls_left == 0;
}

static void *try_socket(void *context, int type)
{
    return fails() ? NULL : keys_zmq()->zmq_socket(context, type);
}

static int try_setsockopt(void *s, int option, const void *value, size_t size)
{
    return fails() ? -1 : keys_zmq()->zmq_setsockopt(s, option, value, size);
}

static int try_monitor(void *s, const char *at, int events)
{
    return at != NULL && fails() ? -1 : keys_zmq()->zmq_socket_monitor(s, at, events);
}

static int try_connect(void *s, const char *at)
{
    return fails() ? -1 : keys_zmq()->zmq_connect(s, at);
}

TEST(what_cannot_be_watched_is_told)
{
    peer p CLEANUP(peers_close);
    tn_zmq z = *keys_zmq();
    tn_flood_guard *f = NULL;
    tn_error err = {0};
    z.zmq_socket = try_socket;
    z.zmq_setsockopt = try_setsockopt;
    z.zmq_socket_monitor = try_monitor;
    z.zmq_connect = try_connect;
    peers_open(&p, 0, NULL);
    peers_listen(&p, &loopback);
    void *context = tn_sockets_context(p.sockets);
    for (int nth = 1; nth <= 5; nth++) {
        calls_left = nth;
        assert_int_equal(tn_flood_guard_open(&f, &z, context, p.router, MOST, &err), TN_E_PEER);
        assert_non_null(strstr(err.text, "cannot watch connections: Too many open files"));
        assert_null(f);
    }
    tn_alloc_fail_at(1);
    assert_int_equal(tn_flood_guard_open(&f, &z, context, p.router, MOST, &err), TN_E_MEMORY);
    tn_alloc_fail_at(0);
    calls_left = 6;
    assert_int_equal(tn_flood_guard_open(&f, &z, context, p.router, MOST, &err), TN_OK);
    tn_flood_guard_close(f);
    tn_flood_guard_close(NULL);
}
