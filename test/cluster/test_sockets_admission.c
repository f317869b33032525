/* test_sockets_admission.c - who gets in and who does not, with real sockets. */
#include "base/core/clock.h"
#include "cluster/keys.h"
#include "cluster/socketpeers.h"
#include "cluster/testdir.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static const tn_endpoint loopback = {.host = "127.0.0.1"};

static void assert_mechanism(void *socket, int want)
{
    int value = -1;
    size_t size = sizeof value;
    assert_int_equal(keys_zmq()->zmq_getsockopt(socket, ZMQ_MECHANISM, &value, &size), 0);
    assert_int_equal(value, want);
}

/* Waits until the door of `p` has refused somebody for that reason; nothing may arrive meanwhile.
 */
static void refuses(const peer *p, tn_zap_verdict why)
{
    received r;
    uint64_t count[TN_ZAP_VERDICTS] = {0};
    double until = peers_deadline();
    while (count[why] == 0) {
        assert_true(tn_clock_s() < until);
        assert_false(peers_receive(p->router, true, &r, 0));
        tn_zap_counts(tn_sockets_zap(p->sockets), count);
    }
    assert_false(peers_receive(p->router, true, &r, 0));
    assert_int_equal(count[TN_ZAP_ADMITTED], 0);
}

/* A socket that tells of these events at the door of `p`. */
static void *watch(const peer *p, int events)
{
    const tn_zmq *z = keys_zmq();
    void *monitor = z->zmq_socket(tn_sockets_context(p->sockets), ZMQ_PAIR);
    assert_non_null(monitor);
    assert_int_equal(z->zmq_socket_monitor(p->router, "inproc://watch", events), 0);
    assert_int_equal(z->zmq_connect(monitor, "inproc://watch"), 0);
    return monitor;
}

/* No event may be told while nobody listens: libzmq would wait for a listener, on its own thread.
 */
static void stop_watching(const peer *p, void *monitor)
{
    assert_int_equal(keys_zmq()->zmq_socket_monitor(p->router, NULL, 0), 0);
    assert_int_equal(keys_zmq()->zmq_close(monitor), 0);
}

FIXTURE(testdir_set_up, testdir_tear_down);

TEST(loopback_needs_no_keys)
{
    peer server CLEANUP(peers_close);
    peer client CLEANUP(peers_close);
    peers_open(&server, 0, NULL);
    peers_listen(&server, &loopback);
    peers_open(&client, 1, NULL);
    peers_dial(&client, &server, 0);
    peers_deliver(&client, &server, "hello", TN_RANK_ANY);
    uint64_t count[TN_ZAP_VERDICTS];
    tn_zap_counts(tn_sockets_zap(client.sockets), count);
    for (uint32_t v = 0; v < TN_ZAP_VERDICTS; v++) {
        assert_int_equal(count[v], 0); /* who dials asks nobody */
    }
}

TEST(an_address_outside_the_networks_is_refused)
{
    static const char *const item[] = {"10.0.0.0/8"};
    const tn_security_opts trusted = {.trusted_net = {1, item}};
    peer server CLEANUP(peers_close);
    peer client CLEANUP(peers_close);
    peers_open(&server, 0, &trusted);
    peers_listen(&server, &loopback);
    peers_open(&client, 1, NULL);
    peers_dial(&client, &server, 0);
    refuses(&server, TN_ZAP_ADDRESS);
}

TEST(ipc_is_for_the_same_user_and_never_encrypted)
{
    (void)keys_make(testdir, "rank-0");
    const tn_security_opts keys = {.key = keys_path(testdir, "rank-0.key"), .allow = testdir};
    tn_endpoint e = {.is_ipc = true};
    int length = snprintf(e.path, sizeof e.path, "%s/sockets/0.sock", testdir);
    assert_in_range(length, 1, 107);
    peer server CLEANUP(peers_close);
    peer client CLEANUP(peers_close);
    peers_open(&server, 0, &keys);
    peers_listen(&server, &e);
    assert_mechanism(server.router, ZMQ_NULL);
    peers_open(&client, 1, NULL);
    peers_dial(&client, &server, 0);
    peers_deliver(&client, &server, "hello", TN_RANK_ANY);
}

TEST(a_listed_key_comes_in_as_its_rank)
{
    (void)keys_make(testdir, "rank-0");
    (void)keys_make(testdir, "rank-3");
    const tn_security_opts zero = {.key = keys_path(testdir, "rank-0.key"), .allow = testdir};
    const tn_security_opts three = {.key = keys_path(testdir, "rank-3.key"), .allow = testdir};
    received r;
    peer server CLEANUP(peers_close);
    peer client CLEANUP(peers_close);
    peers_open(&server, 0, &zero);
    peers_listen(&server, &loopback);
    peers_open(&client, 3, &three);
    peers_dial(&client, &server, 0);
    assert_true(peers_send(client.dealer, "hello", peers_deadline()));
    assert_true(peers_receive(server.router, true, &r, peers_deadline()));
    assert_true(r.admitted);
    assert_int_equal(r.whose, 3); /* User-Id equals the rank */
    uint32_t rank = 0;
    uint64_t incarnation = 0;
    assert_true(tn_routing_id_read(r.id, r.id_size, &rank, &incarnation));
    assert_int_equal(rank, 3);
    assert_true(incarnation == 0xabcdef + 3);
}

/* Folder `name` below testdir. */
static const char *folder(const char *name, char out[300])
{
    (void)snprintf(out, 300, "%s/%s", testdir, name);
    assert_int_equal(tn_dir_make(out, NULL), TN_OK);
    return out;
}

static void copy_file(const char *from, const char *to)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(from, 1000, &text, NULL), TN_OK);
    keys_put(to, text.data, 0644);
}

static void await_greeting(tn_handshake_watch *g, tn_handshake want)
{
    const double until = peers_deadline();
    while (tn_handshake_watch_poll(g) != want) {
        assert_true(tn_clock_s() < until);
    }
}

TEST(an_unlisted_key_is_refused)
{
    char path[2][300];
    const char *ours = folder("ours", path[0]);
    const char *theirs = folder("theirs", path[1]); /* lists the server's key, and its own */
    (void)keys_make(ours, "rank-0");
    (void)keys_make(theirs, "rank-1");
    copy_file(keys_path(ours, "rank-0.pub"), keys_path(theirs, "rank-0.pub"));
    const tn_security_opts zero = {.key = keys_path(ours, "rank-0.key"), .allow = ours};
    const tn_security_opts one = {.key = keys_path(theirs, "rank-1.key"), .allow = theirs};
    peer server CLEANUP(peers_close);
    peer client CLEANUP(peers_close);
    peers_open(&server, 0, &zero);
    peers_listen(&server, &loopback);
    peers_open(&client, 1, &one);
    tn_handshake_watch g = {0};
    peers_dial_watched(&client, &server, 0, &g);
    refuses(&server, TN_ZAP_KEY);
    await_greeting(&g, TN_HANDSHAKE_REFUSED);
    tn_socket_events_close(&g.events);
}

/* A client that lists another key than the server has. */
TEST(a_server_with_another_key_is_told_from_one_that_refuses)
{
    char path[2][300];
    const char *ours = folder("ours", path[0]);
    const char *theirs = folder("theirs", path[1]);
    (void)keys_make(ours, "rank-0");
    (void)keys_make(ours, "rank-1");
    (void)keys_make(theirs, "rank-0");
    copy_file(keys_path(ours, "rank-1.pub"), keys_path(theirs, "rank-1.pub"));
    const tn_security_opts zero = {.key = keys_path(ours, "rank-0.key"), .allow = ours};
    const tn_security_opts one = {.key = keys_path(ours, "rank-1.key"), .allow = theirs};
    const tn_security_opts good = {.key = keys_path(ours, "rank-1.key"), .allow = ours};
    peer server CLEANUP(peers_close);
    peers_open(&server, 0, &zero);
    peers_listen(&server, &loopback);
    for (uint32_t i = 0; i < 2; i++) {
        peer client CLEANUP(peers_close);
        peers_open(&client, 1, i == 0 ? &one : &good);
        tn_handshake_watch g = {0};
        peers_dial_watched(&client, &server, 0, &g);
        await_greeting(&g, i == 0 ? TN_HANDSHAKE_BROKEN : TN_HANDSHAKE_DONE);
        assert_true((tn_handshake_text(tn_handshake_watch_poll(&g)) == NULL) == (i == 1));
        tn_socket_events_close(&g.events);
    }
}

/* Random bytes, written by hand into a connection of their own, until it is closed or all are out.
 */
static void throw_noise(const char *at, size_t size)
{
    tn_endpoint e;
    uint64_t x = 20240607;
    char noise[1000];
    assert_int_equal(tn_endpoint_read(at, 0, &e, NULL), TN_OK);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)e.port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const void *address = &to;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, address, sizeof to), 0);
    for (size_t sent = 0; sent < size; sent += sizeof noise) {
        for (size_t i = 0; i < sizeof noise; i++) {
            x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            noise[i] = (char)(x >> 56);
        }
        if (send(fd, noise, sizeof noise, MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    (void)close(fd);
}

TEST(noise_reaches_nobody_and_good_peers_still_come)
{
    (void)keys_make(testdir, "rank-0");
    (void)keys_make(testdir, "rank-1");
    const tn_security_opts zero = {.key = keys_path(testdir, "rank-0.key"), .allow = testdir};
    const tn_security_opts one = {.key = keys_path(testdir, "rank-1.key"), .allow = testdir};
    peer server CLEANUP(peers_close);
    peer client CLEANUP(peers_close);
    peers_open(&server, 0, &zero);
    peers_listen(&server, &loopback);
    for (int i = 0; i < 20; i++) {
        throw_noise(server.at, 100 << 10);
    }
    peers_open(&client, 1, &one);
    peers_dial(&client, &server, 0);
    peers_deliver(&client, &server, "hello", 1); /* the first message that anybody sees */
    uint64_t count[TN_ZAP_VERDICTS];
    tn_zap_counts(tn_sockets_zap(server.sockets), count);
    assert_true(count[TN_ZAP_ADMITTED] >= 1); /* more when a handshake took too long */
}

TEST(a_client_without_keys_gets_nowhere_at_a_curve_port)
{
    /* which of the two ends sees it first is chance */
    const int failed = ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
    (void)keys_make(testdir, "rank-0");
    const tn_security_opts zero = {.key = keys_path(testdir, "rank-0.key"), .allow = testdir};
    const tn_zmq *z = keys_zmq();
    received r;
    peer server CLEANUP(peers_close);
    peer client CLEANUP(peers_close);
    peers_open(&server, 0, &zero);
    peers_listen(&server, &loopback);
    void *monitor = watch(&server, failed);
    peers_open(&client, 1, NULL);
    peers_dial(&client, &server, 0);
    zmq_pollitem_t item = {.socket = monitor, .events = ZMQ_POLLIN};
    assert_int_equal(z->zmq_poll(&item, 1, PEERS_DEADLINE_MS), 1);
    assert_false(peers_receive(server.router, true, &r, 0));
    stop_watching(&server, monitor);
}

TEST(a_message_over_the_limit_ends_its_connection)
{
    const tn_zmq *z = keys_zmq();
    static char large[2000];
    received r;
    peer server CLEANUP(peers_close) = {0};
    peer client CLEANUP(peers_close);
    assert_int_equal(tn_security_init(&server.security, z, NULL, NULL), TN_OK);
    const tn_sockets_opts small = {
        .size = 4, .incarnation = 1, .max_msg_bytes = 1000, .security = &server.security};
    assert_int_equal(tn_sockets_open(&server.sockets, z, &small, NULL), TN_OK);
    peers_listen(&server, &loopback);
    void *monitor = watch(&server, ZMQ_EVENT_DISCONNECTED);
    peers_open(&client, 1, NULL);
    peers_dial(&client, &server, 0);
    peers_deliver(&client, &server, "small", TN_RANK_ANY);
    memset(large, 'x', sizeof large - 1);
    assert_true(peers_send(client.dealer, large, peers_deadline()));
    zmq_pollitem_t item = {.socket = monitor, .events = ZMQ_POLLIN};
    assert_int_equal(z->zmq_poll(&item, 1, PEERS_DEADLINE_MS), 1);
    assert_false(peers_receive(server.router, true, &r, 0));
    stop_watching(&server, monitor);
}

TEST(c8_an_open_address_without_keys_is_refused)
{
    static const char *const open[] = {"0.0.0.0:0", "*:0", "192.0.2.1:4770", "[::]:0", "gpu7:4770"};
    peer p CLEANUP(peers_close);
    peers_open(&p, 0, NULL);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        tn_endpoint e;
        tn_error err = {0};
        assert_int_equal(tn_endpoint_read(open[i], 0, &e, &err), TN_OK);
        assert_int_equal(tn_sockets_listen(p.sockets, &e, &p.router, p.at, &err), TN_E_CONFIG);
        assert_non_null(strstr(err.text, "is open to other machines, and cluster.security says"));
        assert_non_null(strstr(err.text, "hint: cluster.security: {key: PEER.key, allow: FOLDER}"));
        assert_int_equal(tn_sockets_dial(p.sockets, 1, &e, NULL, &p.dealer, &err), TN_E_CONFIG);
        assert_null(p.router);
        assert_null(p.dealer);
    }
}
