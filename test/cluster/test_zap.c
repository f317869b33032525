/* test_zap.c - who is let in: the judgements, and the thread that gives them to libzmq. */
#include "support/test.h"

#include "base/core/log.h"
#include "cluster/keys.h"
#include "cluster/net/zap.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

enum { DEADLINE_MS = 60000 };

typedef struct fixture {
    const tn_zmq *z;
    void *context, *socket; /* a REQ that asks */
    tn_security security;
    tn_zap *zap;
} fixture;

static _Atomic uint32_t lines;

static void count_line(tn_log_level level, const char *line)
{
    (void)level;
    assert_non_null(strstr(line, "refused a connection from '192.0.2.1': "));
    atomic_fetch_add(&lines, 1);
}

static int set_up(void **state)
{
    static fixture f;
    f = (fixture){.z = keys_zmq()};
    f.context = f.z->zmq_ctx_new();
    assert_non_null(f.context);
    assert_int_equal(tn_security_init(&f.security, f.z, NULL, NULL), TN_OK);
    assert_int_equal(tn_zap_open(&f.zap, f.z, f.context, &f.security, NULL), TN_OK);
    f.socket = f.z->zmq_socket(f.context, ZMQ_REQ);
    assert_int_equal(f.z->zmq_connect(f.socket, "inproc://zeromq.zap.01"), 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tn_log_set(NULL, TN_LOG_INFO);
    assert_int_equal(f->z->zmq_close(f->socket), 0);
    tn_zap_close(f->zap);
    assert_int_equal(f->z->zmq_ctx_term(f->context), 0);
    tn_security_done(&f->security);
    return 0;
}

/* Sends `n` frames and joins the answer's with '|'. */
static const char *ask(const fixture *f, const char *const *frames, uint32_t n)
{
    static char out[500];
    size_t at = 0;
    int more = 1;
    size_t size = sizeof more;
    for (uint32_t i = 0; i < n; i++) {
        int flags = i + 1 < n ? ZMQ_SNDMORE : 0;
        assert_true(f->z->zmq_send(f->socket, frames[i], strlen(frames[i]), flags) >= 0);
    }
    zmq_pollitem_t item = {.socket = f->socket, .events = ZMQ_POLLIN};
    assert_int_equal(f->z->zmq_poll(&item, 1, DEADLINE_MS), 1);
    while (more != 0) {
        int got = f->z->zmq_recv(f->socket, out + at, sizeof out - at - 2, ZMQ_DONTWAIT);
        assert_true(got >= 0);
        at += (size_t)got;
        assert_int_equal(f->z->zmq_getsockopt(f->socket, ZMQ_RCVMORE, &more, &size), 0);
        out[at++] = more != 0 ? '|' : '\0';
    }
    return out;
}

TEST_WITH(set_up, tear_down, answers_carry_the_id_and_the_user)
{
    const fixture *f = *state;
    const char *const frames[] = {"1.0", "7", "tnet", "127.0.0.1", "x", "NULL"};
    assert_string_equal(ask(f, frames, 6), "1.0|7|200|admitted|any|");
    const char *const other[] = {"1.0", "8", "tnet", "192.0.2.1", "x", "NULL"};
    assert_string_equal(ask(f, other, 6), "1.0|8|400|the address is in no trusted network||");
}

TEST_WITH(set_up, tear_down, malformed_requests_are_answered_and_do_no_harm)
{
    const fixture *f = *state;
    static const char *const frames[40] = {
        "1.0", "9", "tnet", "127.0.0.1", "x", "NULL", "", "", "", "", "", "", "", "",
        "",    "",  "",     "",          "",  "",     "", "", "", "", "", "", "", "",
        "",    "",  "",     "",          "",  "",     "", "", "", "", "", ""};
    const char *const empty[] = {"", "", "", "", "", ""};
    static const uint32_t wrong[] = {1, 2, 5, 9, 40};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *id = wrong[i] > 1 ? "9" : "";
        char want[100];
        (void)snprintf(want, sizeof want, "1.0|%s|500|the request makes no sense||", id);
        assert_string_equal(ask(f, frames, wrong[i]), want);
    }
    assert_string_equal(ask(f, empty, 6), "1.0||500|the request makes no sense||");
    assert_string_equal(ask(f, frames, 6), "1.0|9|200|admitted|any|");
}

TEST_WITH(set_up, tear_down, verdicts_are_counted_and_refusals_told_once)
{
    const fixture *f = *state;
    const char *const good[] = {"1.0", "1", "tnet", "127.0.0.1", "x", "NULL"};
    const char *const bad[] = {"1.0", "1", "tnet", "192.0.2.1", "x", "NULL"};
    const char *const plain[] = {"1.0", "1", "tnet", "192.0.2.1", "x", "PLAIN", "u", "p"};
    uint64_t count[TN_ZAP_VERDICTS];
    atomic_store(&lines, 0);
    tn_log_set(count_line, TN_LOG_INFO);
    for (int i = 0; i < 5; i++) {
        (void)ask(f, good, 6);
        (void)ask(f, bad, 6);
        (void)ask(f, plain, 8);
    }
    /* an answer is told after it was sent: one more request, and all before it are told */
    (void)ask(f, good, 6);
    tn_zap_counts(f->zap, count);
    assert_int_equal(count[TN_ZAP_ADMITTED], 6);
    assert_int_equal(count[TN_ZAP_ADDRESS], 5);
    assert_int_equal(count[TN_ZAP_MECHANISM], 5);
    assert_int_equal(count[TN_ZAP_MALFORMED], 0);
    assert_int_equal(atomic_load(&lines), 2);
}

TEST_WITH(set_up, tear_down, a_second_door_is_refused)
{
    const fixture *f = *state;
    tn_zap *second = NULL;
    tn_error err = {0};
    assert_int_equal(tn_zap_open(&second, f->z, f->context, &f->security, &err), TN_E_PEER);
    assert_null(second);
    assert_non_null(strstr(err.text, "cannot answer who may connect: Address already in use"));
}

static void *no_socket(void *context, int type)
{
    (void)context;
    (void)type;
    errno = EMFILE;
    return NULL;
}

TEST_WITH(set_up, tear_down, what_cannot_be_made_is_told)
{
    const fixture *f = *state;
    tn_zap *zap = NULL;
    tn_error err = {0};
    tn_zmq z = *f->z;
    z.zmq_socket = no_socket;
    assert_int_equal(tn_zap_open(&zap, &z, f->context, &f->security, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "cannot make a socket: Too many open files"));
    tn_alloc_fail_at(1);
    assert_int_equal(tn_zap_open(&zap, f->z, f->context, &f->security, &err), TN_E_MEMORY);
    assert_null(zap);
    tn_zap_close(NULL);
}

static const char *user;

static const char *gets(const zmq_msg_t *message, const char *property)
{
    (void)message;
    assert_string_equal(property, "User-Id");
    return user;
}

TEST_WITH(set_up, tear_down, the_user_of_a_message_is_a_rank_or_any)
{
    const fixture *f = *state;
    uint32_t rank = 77;
    zmq_msg_t message;
    assert_int_equal(f->z->zmq_msg_init(&message), 0);
    assert_false(tn_zap_sender(f->z, &message, &rank)); /* of no connection */
    tn_zmq z = *f->z;
    z.zmq_msg_gets = gets;
    static const char *const bad[] = {"", "x", "-1", "4294967295", "1 "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        user = bad[i];
        assert_false(tn_zap_sender(&z, &message, &rank));
    }
    assert_int_equal(rank, 77);
    user = "1023";
    assert_true(tn_zap_sender(&z, &message, &rank));
    assert_int_equal(rank, 1023);
    user = "any";
    assert_true(tn_zap_sender(&z, &message, &rank));
    assert_int_equal(rank, TN_RANK_ANY);
    assert_int_equal(f->z->zmq_msg_close(&message), 0);
}

static const char *peer_address;

static const char *gets_address(const zmq_msg_t *message, const char *property)
{
    (void)message;
    assert_string_equal(property, "Peer-Address");
    return peer_address;
}

TEST_WITH(set_up, tear_down, the_other_end_of_a_dialled_connection_is_known_by_its_address)
{
    const fixture *f = *state;
    zmq_msg_t message;
    assert_int_equal(f->z->zmq_msg_init(&message), 0);
    assert_false(tn_zap_is_dialled(f->z, &f->security, &message)); /* of no connection */
    tn_zmq z = *f->z;
    z.zmq_msg_gets = gets_address;
    peer_address = "127.0.0.1";
    assert_true(tn_zap_is_dialled(&z, &f->security, &message));
    peer_address = "192.0.2.1";
    assert_false(tn_zap_is_dialled(&z, &f->security, &message));
    assert_int_equal(f->z->zmq_msg_close(&message), 0);
}

enum { UID = 1000, N = 7 };

static char dir[256];

static tn_curve_pair pair0, pair3;

static tn_security host, net, curve;

static tn_bytes frame[TN_ZAP_FRAMES + 1];

GROUP_SET_UP
{
    static const char *const item[] = {"10.0.0.0/8"};
    const tn_security_opts trusted = {.trusted_net = {1, item}};
    tn_tmpdir_make(dir);
    pair0 = keys_make(dir, "rank-0");
    pair3 = keys_make(dir, "rank-3");
    const tn_security_opts keys = {.key = keys_path(dir, "rank-0.key"), .allow = dir};
    tn_status status = tn_security_init(&host, keys_zmq(), NULL, NULL);
    assert_int_equal(status, TN_OK);
    status = tn_security_init(&net, keys_zmq(), &trusted, NULL);
    assert_int_equal(status, TN_OK);
    status = tn_security_init(&curve, keys_zmq(), &keys, NULL);
    assert_int_equal(status, TN_OK);
}

GROUP_TEAR_DOWN
{
    tn_security_done(&host);
    tn_security_done(&net);
    tn_security_done(&curve);
    tn_tmpdir_remove(dir);
}

static tn_bytes text(const char *t)
{
    return (tn_bytes){.data = t, .size = strlen(t)};
}

static void request(const char *address, const char *mechanism, tn_bytes credentials)
{
    static const char zeros[13];
    frame[0] = text("1.0");
    frame[1] = text("id");
    frame[2] = text("tnet");
    frame[3] = text(address);
    frame[4] = (tn_bytes){.data = zeros, .size = sizeof zeros};
    frame[5] = text(mechanism);
    frame[6] = credentials;
}

static tn_zap_verdict judged(const tn_security *s, uint32_t n, uint32_t *rank)
{
    tn_security of = *s;
    of.uid = UID;
    return tn_zap_judge(&of, frame, n, rank);
}

static void assert_verdict(const tn_security *s, uint32_t n, tn_zap_verdict want)
{
    uint32_t rank = 77;
    assert_string_equal(tn_zap_verdict_text(judged(s, n, &rank)), tn_zap_verdict_text(want));
    assert_int_equal(rank, want == TN_ZAP_ADMITTED ? TN_RANK_ANY : 77);
}

TEST(processes_of_the_same_user_come_in_over_ipc)
{
    const tn_security *const all[] = {&host, &net, &curve};
    for (size_t i = 0; i < 3; i++) {
        request("localhost:1000:1000:4321", "NULL", text(""));
        assert_verdict(all[i], 6, TN_ZAP_ADMITTED);
        request("localhost:1001:1000:4321", "NULL", text(""));
        assert_verdict(all[i], 6, TN_ZAP_USER);
        request("localhost:0:0:1", "NULL", text(""));
        assert_verdict(all[i], 6, TN_ZAP_USER);
        request("localhost:1000:1000:4321", "PLAIN", text("user"));
        assert_verdict(all[i], 7, TN_ZAP_MECHANISM);
    }
}

TEST(addresses_of_trusted_networks_come_in_without_keys)
{
    request("127.0.0.1", "NULL", text(""));
    assert_verdict(&host, 6, TN_ZAP_ADMITTED);
    assert_verdict(&net, 6, TN_ZAP_ADDRESS);
    assert_verdict(&curve, 6, TN_ZAP_MECHANISM);
    request("::1", "NULL", text(""));
    assert_verdict(&host, 6, TN_ZAP_ADMITTED);
    request("10.200.0.1", "NULL", text(""));
    assert_verdict(&host, 6, TN_ZAP_ADDRESS);
    assert_verdict(&net, 6, TN_ZAP_ADMITTED);
    request("::ffff:10.200.0.1", "NULL", text(""));
    assert_verdict(&net, 6, TN_ZAP_ADMITTED);
    request("192.0.2.1", "NULL", text(""));
    assert_verdict(&net, 6, TN_ZAP_ADDRESS);
    request("", "NULL", text(""));
    assert_verdict(&net, 6, TN_ZAP_ADDRESS);
}

static void assert_dialled(const tn_security *s, const char *address, tn_zap_verdict want)
{
    tn_security of = *s;
    of.uid = UID;
    assert_string_equal(tn_zap_verdict_text(tn_zap_judge_dialled(&of, address)),
                        tn_zap_verdict_text(want));
}

TEST(who_was_dialled_is_judged_by_its_address)
{
    const tn_security *const all[] = {&host, &net, &curve};
    for (size_t i = 0; i < 3; i++) {
        assert_dialled(all[i], "localhost:1000:1000:4321", TN_ZAP_ADMITTED);
        assert_dialled(all[i], "localhost:1001:1000:4321", TN_ZAP_USER);
        assert_dialled(all[i], "localhost:", TN_ZAP_MALFORMED);
    }
    assert_dialled(&host, "127.0.0.1", TN_ZAP_ADMITTED);
    assert_dialled(&host, "10.0.0.1", TN_ZAP_ADDRESS);
    assert_dialled(&net, "10.0.0.1", TN_ZAP_ADMITTED);
    assert_dialled(&net, "127.0.0.1", TN_ZAP_ADDRESS);
    assert_dialled(&curve, "192.0.2.1", TN_ZAP_ADMITTED); /* it had the key */
}

TEST(keys_of_the_list_come_in_as_their_rank)
{
    uint32_t rank = 77;
    tn_curve_pair stranger;
    const void *bytes = pair3.open;
    request("192.0.2.1", "CURVE", (tn_bytes){.data = bytes, .size = TN_CURVE_BYTES});
    assert_int_equal(judged(&curve, N, &rank), TN_ZAP_ADMITTED);
    assert_int_equal(rank, 3);
    assert_verdict(&net, N, TN_ZAP_MECHANISM);
    assert_verdict(&host, N, TN_ZAP_MECHANISM);
    assert_int_equal(tn_curve_make(keys_zmq(), &stranger, NULL), TN_OK);
    bytes = stranger.open;
    request("127.0.0.1", "CURVE", (tn_bytes){.data = bytes, .size = TN_CURVE_BYTES});
    assert_verdict(&curve, N, TN_ZAP_KEY);
}

TEST(requests_that_make_no_sense_are_malformed)
{
    static char large[300];
    const void *bytes = pair3.open;
    memset(large, '1', sizeof large - 1);
    for (uint32_t n = 0; n < 6; n++) {
        request("127.0.0.1", "NULL", text(""));
        assert_verdict(&host, n, TN_ZAP_MALFORMED);
    }
    assert_verdict(&host, TN_ZAP_FRAMES + 1, TN_ZAP_MALFORMED);
    frame[0] = text("2.0");
    assert_verdict(&host, 6, TN_ZAP_MALFORMED);
    frame[0] = text("");
    assert_verdict(&host, 6, TN_ZAP_MALFORMED);
    request(large, "NULL", text(""));
    assert_verdict(&host, 6, TN_ZAP_MALFORMED);
    request("127.0.0.1", "NULL", text(""));
    frame[3] = (tn_bytes){.data = "127.0.0.1\0x", .size = 11};
    assert_verdict(&host, 6, TN_ZAP_MALFORMED);
    static const char *const users[] = {"localhost:", "localhost:1000", "localhost::1:2",
                                        "localhost:x:1:2", "localhost:-1:1:2"};
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        request(users[i], "NULL", text(""));
        assert_verdict(&host, 6, TN_ZAP_MALFORMED);
    }
    for (size_t size = 0; size < 40; size++) {
        request("10.0.0.1", "CURVE", (tn_bytes){.data = large, .size = size});
        assert_verdict(&curve, N, size == TN_CURVE_BYTES ? TN_ZAP_KEY : TN_ZAP_MALFORMED);
    }
    request("10.0.0.1", "CURVE", (tn_bytes){.data = bytes, .size = TN_CURVE_BYTES});
    assert_verdict(&curve, 6, TN_ZAP_MALFORMED);
    assert_verdict(&curve, 8, TN_ZAP_MALFORMED);
}

TEST(other_domains_and_mechanisms_are_refused)
{
    static const char *const mechanisms[] = {"PLAIN", "GSSAPI", "", "null", "NULLX", "CURV"};
    for (size_t i = 0; i < sizeof mechanisms / sizeof *mechanisms; i++) {
        request("127.0.0.1", mechanisms[i], text("x"));
        assert_verdict(&host, N, TN_ZAP_MECHANISM);
        assert_verdict(&curve, N, TN_ZAP_MECHANISM);
    }
    request("127.0.0.1", "NULL", text(""));
    frame[2] = text("");
    assert_verdict(&host, 6, TN_ZAP_FOREIGN);
    frame[2] = text("tnet2");
    assert_verdict(&host, 6, TN_ZAP_FOREIGN);
}

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

TEST(no_random_request_is_admitted)
{
    uint64_t seed = 20240607;
    print_message("seed %llu\n", (unsigned long long)seed);
    static char noise[64];
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof noise; i++) {
            noise[i] = (char)draw(&seed);
        }
        uint32_t n = (uint32_t)(draw(&seed) % (TN_ZAP_FRAMES + 1));
        request("192.0.2.1", "CURVE", text("x"));
        for (uint32_t i = 0; i < TN_ZAP_FRAMES; i++) {
            if (draw(&seed) % 2 == 0) {
                frame[i] = (tn_bytes){.data = noise, .size = draw(&seed) % sizeof noise};
            }
        }
        uint32_t rank = 0;
        assert_int_not_equal(judged(&curve, n, &rank), TN_ZAP_ADMITTED);
        assert_int_not_equal(judged(&host, n, &rank), TN_ZAP_ADMITTED);
    }
}
