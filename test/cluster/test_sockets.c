/* test_sockets.c - options, addresses and faults of real sockets. */
#include "cluster/socketpeers.h"
#include "cluster/testdir.h"

#include "base/core/clock.h"
#include "cluster/keys.h"
#include "support/test.h"

#include <errno.h>

static const tn_endpoint loopback = {.host = "127.0.0.1"};

typedef struct wanted {
    int option;
    int64_t value;
} wanted;

static void assert_option(void *socket, wanted w)
{
    int value = -77;
    size_t size = sizeof value;
    assert_int_equal(keys_zmq()->zmq_getsockopt(socket, w.option, &value, &size), 0);
    assert_int_equal(value, w.value);
}

static void assert_bytes(void *socket, int option, const void *want, size_t want_size)
{
    char value[64];
    size_t size = want_size; /* some options want it exact */
    assert_true(want_size <= sizeof value);
    assert_int_equal(keys_zmq()->zmq_getsockopt(socket, option, value, &size), 0);
    assert_int_equal(size, want_size);
    assert_memory_equal(value, want, want_size);
}

FIXTURE(testdir_set_up, testdir_tear_down);

TEST(every_option_reads_back)
{
    static const wanted all[] = {
        {ZMQ_LINGER, 0},
        {ZMQ_IMMEDIATE, 1},
        {ZMQ_SNDHWM, 256},
        {ZMQ_RCVHWM, 256},
        {ZMQ_HANDSHAKE_IVL, 5000},
        {ZMQ_CONNECT_TIMEOUT, 2000},
        {ZMQ_RECONNECT_IVL_MAX, 2000},
        {ZMQ_SNDTIMEO, 0},
        {ZMQ_RCVTIMEO, 0},
        {ZMQ_BACKLOG, 1024},
        {ZMQ_IPV6, 0},
        {ZMQ_MECHANISM, ZMQ_NULL},
    };
    static const uint8_t id[] = {'T', 2, 0, 0, 0, 0xf1, 0xcd, 0xab, 0, 0, 0, 0, 0};
    const int64_t bytes_max = 64 << 20;
    peer p CLEANUP(peers_close);
    peers_open(&p, 2, NULL);
    peers_listen(&p, &loopback);
    peers_dial(&p, &p, 0);
    void *const sockets[] = {p.router, p.dealer};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            assert_option(sockets[k], all[i]);
        }
        assert_bytes(sockets[k], ZMQ_MAXMSGSIZE, &bytes_max, sizeof bytes_max);
        assert_bytes(sockets[k], ZMQ_ROUTING_ID, id, sizeof id);
    }
    assert_option(p.dealer, (wanted){ZMQ_HEARTBEAT_IVL, 2000});
    assert_option(p.dealer, (wanted){ZMQ_HEARTBEAT_TIMEOUT, 6000});
    assert_option(p.dealer, (wanted){ZMQ_HEARTBEAT_TTL, 6000});
    assert_option(p.router, (wanted){ZMQ_HEARTBEAT_IVL, 0});
    assert_bytes(p.router, ZMQ_ZAP_DOMAIN, "tnet", sizeof "tnet");
    assert_bytes(p.dealer, ZMQ_ZAP_DOMAIN, "", 1); /* who dials asks nobody */
    void *context = tn_sockets_context(p.sockets);
    assert_int_equal(keys_zmq()->zmq_ctx_get(context, ZMQ_MAX_SOCKETS), 4 * 4 + 64);
    assert_int_equal(keys_zmq()->zmq_ctx_get(context, ZMQ_IO_THREADS), 1);
}

TEST(keys_are_set_on_both_sides)
{
    tn_curve_pair pair = keys_make(testdir, "rank-0");
    const tn_security_opts keys = {.key = keys_path(testdir, "rank-0.key"), .allow = testdir};
    peer p CLEANUP(peers_close);
    peers_open(&p, 0, &keys);
    peers_listen(&p, &loopback);
    peers_dial(&p, &p, 0);
    assert_option(p.router, (wanted){ZMQ_MECHANISM, ZMQ_CURVE});
    assert_option(p.router, (wanted){ZMQ_CURVE_SERVER, 1});
    assert_bytes(p.router, ZMQ_CURVE_SECRETKEY, pair.secret, sizeof pair.secret);
    assert_option(p.dealer, (wanted){ZMQ_MECHANISM, ZMQ_CURVE});
    assert_option(p.dealer, (wanted){ZMQ_CURVE_SERVER, 0});
    assert_bytes(p.dealer, ZMQ_CURVE_SECRETKEY, pair.secret, sizeof pair.secret);
    assert_bytes(p.dealer, ZMQ_CURVE_PUBLICKEY, pair.open, sizeof pair.open);
    assert_bytes(p.dealer, ZMQ_CURVE_SERVERKEY, pair.open, sizeof pair.open);
    assert_int_equal(keys_zmq()->zmq_ctx_get(tn_sockets_context(p.sockets), ZMQ_IO_THREADS), 2);
    tn_error err = {0};
    void *dealer = NULL;
    assert_int_equal(tn_sockets_dial(p.sockets, 9, &loopback, NULL, &dealer, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "no public key of rank 9"));
    assert_null(dealer);
}

TEST(a_message_to_nobody_is_an_error)
{
    uint8_t id[TN_ROUTING_ID];
    peer p CLEANUP(peers_close);
    peers_open(&p, 0, NULL);
    peers_listen(&p, &loopback);
    tn_routing_id(3, 1, id);
    assert_int_equal(keys_zmq()->zmq_send(p.router, id, sizeof id, ZMQ_SNDMORE), -1);
    assert_int_equal(errno, EHOSTUNREACH); /* ROUTER_MANDATORY */
}

/* A DEALER of that rank that does not come again when its connection is taken away. */
static void *dial_once(const peer *p, const char *at, uint32_t rank)
{
    const tn_zmq *z = keys_zmq();
    const int never = -1;
    const int last_ms = 1000;
    uint8_t id[TN_ROUTING_ID];
    void *dealer = z->zmq_socket(tn_sockets_context(p->sockets), ZMQ_DEALER);
    assert_non_null(dealer);
    tn_routing_id(rank, 0xabcdef + rank, id);
    assert_int_equal(z->zmq_setsockopt(dealer, ZMQ_LINGER, &last_ms, sizeof last_ms), 0);
    assert_int_equal(z->zmq_setsockopt(dealer, ZMQ_RECONNECT_IVL, &never, sizeof never), 0);
    assert_int_equal(z->zmq_setsockopt(dealer, ZMQ_ROUTING_ID, id, sizeof id), 0);
    assert_int_equal(z->zmq_connect(dealer, at), 0);
    return dealer;
}

TEST(a_returning_peer_takes_its_place_over)
{
    peer server CLEANUP(peers_close);
    peer old CLEANUP(peers_close);
    peer back CLEANUP(peers_close);
    received r;
    peers_open(&server, 0, NULL);
    peers_listen(&server, &loopback);
    peers_open(&old, 1, NULL);
    void *dealer = dial_once(&old, server.at, 1);
    assert_true(peers_send(dealer, "old", peers_deadline()));
    assert_true(peers_receive(server.router, true, &r, peers_deadline()));
    assert_string_equal(r.text, "old");
    peers_open(&back, 1, NULL); /* same rank, same incarnation, while the old connection stands */
    peers_dial(&back, &server, 0);
    peers_deliver(&back, &server, "back", TN_RANK_ANY);
    uint8_t id[TN_ROUTING_ID];
    tn_routing_id(1, 0xabcdef + 1, id);
    assert_int_equal(keys_zmq()->zmq_send(server.router, id, sizeof id, ZMQ_SNDMORE), sizeof id);
    assert_int_equal(keys_zmq()->zmq_send(server.router, "hello", 5, 0), 5);
    assert_true(peers_receive(back.dealer, false, &r, peers_deadline()));
    assert_string_equal(r.text, "hello");
    assert_int_equal(keys_zmq()->zmq_close(dealer), 0);
}

/* libzmq 4.3.4 aborts when its heartbeat comes to a connection that another one has replaced, that
 * has sent since, and that has ended: 2 s and 4 s after it began. */
TEST(what_comes_late_from_a_replaced_connection_harms_nobody)
{
    peer server CLEANUP(peers_close);
    peer old;
    peer back CLEANUP(peers_close);
    received r;
    peers_open(&server, 0, NULL);
    peers_listen(&server, &loopback);
    peers_open(&old, 1, NULL);
    void *dealer = dial_once(&old, server.at, 1);
    assert_true(peers_send(dealer, "old", peers_deadline()));
    assert_true(peers_receive(server.router, true, &r, peers_deadline()));
    peers_open(&back, 1, NULL);
    peers_dial(&back, &server, 0);
    peers_deliver(&back, &server, "back", TN_RANK_ANY);
    assert_true(peers_send(dealer, "late", peers_deadline()));
    assert_int_equal(keys_zmq()->zmq_close(dealer), 0);
    peers_close(&old);
    assert_false(peers_receive(server.router, true, &r, tn_clock_s() + 5));
    peers_deliver(&back, &server, "well", TN_RANK_ANY);
}

TEST(c7_fifty_contexts_at_once_bind_free_ports)
{
    enum { N = 50 };
    static peer all[N];
    for (uint32_t i = 0; i < N; i++) {
        peers_open(&all[i], 0, NULL);
        peers_listen(&all[i], &loopback);
        for (uint32_t k = 0; k < i; k++) {
            assert_string_not_equal(all[k].at, all[i].at);
        }
    }
    for (uint32_t i = 0; i < N; i++) {
        peers_close(&all[i]);
    }
}

TEST(an_address_that_is_taken_says_so)
{
    peer first CLEANUP(peers_close);
    peer second CLEANUP(peers_close);
    tn_endpoint e;
    tn_error err = {0};
    peers_open(&first, 0, NULL);
    peers_listen(&first, &loopback);
    peers_open(&second, 1, NULL);
    assert_int_equal(tn_endpoint_read(first.at, 0, &e, NULL), TN_OK);
    assert_int_equal(tn_sockets_listen(second.sockets, &e, &second.router, second.at, &err),
                     TN_E_PEER);
    assert_non_null(strstr(err.text, "Address already in use\nhint: choose another port"));
    assert_null(second.router);
    tn_endpoint name = {.host = "localhost", .port = 1}; /* no number */
    assert_int_equal(tn_sockets_listen(second.sockets, &name, &second.router, second.at, &err),
                     TN_E_PEER);
    assert_non_null(strstr(err.text, "cannot listen at 'tcp://localhost:1'"));
}

TEST(routing_ids_read_back)
{
    uint8_t id[TN_ROUTING_ID];
    uint32_t rank = 0;
    uint64_t incarnation = 0;
    tn_routing_id(0x01020304, UINT64_C(0x1112131415161718), id);
    static const uint8_t want[] = {'T',  0x04, 0x03, 0x02, 0x01, 0x18, 0x17,
                                   0x16, 0x15, 0x14, 0x13, 0x12, 0x11};
    assert_memory_equal(id, want, sizeof want);
    assert_true(tn_routing_id_read(id, sizeof id, &rank, &incarnation));
    assert_int_equal(rank, 0x01020304);
    assert_false(tn_routing_id_read(id, sizeof id - 1, &rank, &incarnation));
    id[0] = 0;
    assert_false(tn_routing_id_read(id, sizeof id, &rank, &incarnation));
}

static int calls_left; /* until one fails */

static bool fails(void)
{
    errno = ENOMEM;
    return --calls_left == 0;
}

static void *try_ctx_new(void)
{
    return fails() ? NULL : keys_zmq()->zmq_ctx_new();
}

static int try_ctx_set(void *context, int option, int value)
{
    return fails() ? -1 : keys_zmq()->zmq_ctx_set(context, option, value);
}

static void *try_socket(void *context, int type)
{
    return fails() ? NULL : keys_zmq()->zmq_socket(context, type);
}

static int try_setsockopt(void *s, int option, const void *value, size_t size)
{
    return fails() ? -1 : keys_zmq()->zmq_setsockopt(s, option, value, size);
}

static int try_bind(void *s, const char *at)
{
    return fails() ? -1 : keys_zmq()->zmq_bind(s, at);
}

static int try_connect(void *s, const char *at)
{
    return fails() ? -1 : keys_zmq()->zmq_connect(s, at);
}

static int try_getsockopt(void *s, int option, void *value, size_t *size)
{
    return fails() ? -1 : keys_zmq()->zmq_getsockopt(s, option, value, size);
}

/* Opens, listens and dials; everything is closed again, whatever failed. */
static tn_status try_all(const tn_zmq *z, const tn_security *security, tn_error *err)
{
    const tn_sockets_opts o = {.size = 4, .incarnation = 1, .security = security};
    tn_sockets *s = NULL;
    void *router = NULL;
    void *dealer = NULL;
    char at[TN_ENDPOINT_SIZE];
    tn_status status = tn_sockets_open(&s, z, &o, err);
    if (status == TN_OK) {
        status = tn_sockets_listen(s, &loopback, &router, at, err);
    }
    if (status == TN_OK) {
        tn_endpoint e;
        status = tn_endpoint_read(at, 0, &e, err);
        assert_int_equal(status, TN_OK);
        status = tn_sockets_dial(s, 0, &e, NULL, &dealer, err);
    }
    tn_sockets_hang_up(s, dealer);
    tn_sockets_hang_up(s, router);
    tn_sockets_close(s);
    return status;
}

TEST(every_call_may_fail_once)
{
    (void)keys_make(testdir, "rank-0");
    const tn_security_opts keys = {.key = keys_path(testdir, "rank-0.key"), .allow = testdir};
    tn_security security CLEANUP(tn_security_done);
    assert_int_equal(tn_security_init(&security, keys_zmq(), &keys, NULL), TN_OK);
    tn_zmq z = *keys_zmq();
    z.zmq_ctx_new = try_ctx_new;
    z.zmq_ctx_set = try_ctx_set;
    z.zmq_socket = try_socket;
    z.zmq_setsockopt = try_setsockopt;
    z.zmq_getsockopt = try_getsockopt;
    z.zmq_bind = try_bind;
    z.zmq_connect = try_connect;
    int nth = 1;
    for (tn_status status = TN_E_PEER; status != TN_OK; nth++) {
        tn_error err = {0};
        calls_left = nth;
        status = try_all(&z, &security, &err);
        assert_true(status == TN_OK || (status == TN_E_PEER && err.text[0] != '\0'));
    }
    assert_in_range(nth, 40, 80);
    for (uint64_t i = 1; i <= 2; i++) {
        tn_error err = {0};
        tn_alloc_fail_at(i);
        assert_int_equal(try_all(keys_zmq(), &security, &err), TN_E_MEMORY);
    }
}
