/* test_zap.c - the door of a context: asked directly, as libzmq asks it. */
#include "cluster/net/zap.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "cluster/keys.h"
#include "support/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEADLINE_MS = 10000 };

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
    const tn_zap_rules rules = {.security = &f.security, .uid = geteuid()};
    assert_int_equal(tn_zap_open(&f.zap, f.z, f.context, &rules, NULL), TN_OK);
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
static const char *ask(const fixture *f, const char *const *frame, uint32_t n)
{
    static char out[500];
    size_t at = 0;
    int more = 1;
    size_t size = sizeof more;
    for (uint32_t i = 0; i < n; i++) {
        int flags = i + 1 < n ? ZMQ_SNDMORE : 0;
        assert_true(f->z->zmq_send(f->socket, frame[i], strlen(frame[i]), flags) >= 0);
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

static void answers_carry_the_id_and_the_user(void **state)
{
    const fixture *f = *state;
    const char *const frame[] = {"1.0", "7", "tnet", "127.0.0.1", "x", "NULL"};
    assert_string_equal(ask(f, frame, 6), "1.0|7|200|admitted|any|");
    const char *const other[] = {"1.0", "8", "tnet", "192.0.2.1", "x", "NULL"};
    assert_string_equal(ask(f, other, 6), "1.0|8|400|the address is in no trusted network||");
}

static void malformed_requests_are_answered_and_do_no_harm(void **state)
{
    const fixture *f = *state;
    static const char *const frame[40] = {
        "1.0", "9", "tnet", "127.0.0.1", "x", "NULL", "", "", "", "", "", "", "", "",
        "",    "",  "",     "",          "",  "",     "", "", "", "", "", "", "", "",
        "",    "",  "",     "",          "",  "",     "", "", "", "", "", ""};
    const char *const empty[] = {"", "", "", "", "", ""};
    static const uint32_t wrong[] = {1, 2, 5, 9, 40};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *id = wrong[i] > 1 ? "9" : "";
        char want[100];
        (void)snprintf(want, sizeof want, "1.0|%s|500|the request makes no sense||", id);
        assert_string_equal(ask(f, frame, wrong[i]), want);
    }
    assert_string_equal(ask(f, empty, 6), "1.0||500|the request makes no sense||");
    assert_string_equal(ask(f, frame, 6), "1.0|9|200|admitted|any|");
}

static void verdicts_are_counted_and_refusals_told_once(void **state)
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

static void a_second_door_is_refused(void **state)
{
    const fixture *f = *state;
    const tn_zap_rules rules = {.security = &f->security, .uid = geteuid()};
    tn_zap *second = NULL;
    tn_error err = {0};
    assert_int_equal(tn_zap_open(&second, f->z, f->context, &rules, &err), TN_E_PEER);
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

static void what_cannot_be_made_is_told(void **state)
{
    const fixture *f = *state;
    const tn_zap_rules rules = {.security = &f->security, .uid = geteuid()};
    tn_zap *zap = NULL;
    tn_error err = {0};
    tn_zmq z = *f->z;
    z.zmq_socket = no_socket;
    assert_int_equal(tn_zap_open(&zap, &z, f->context, &rules, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "cannot make a socket: Too many open files"));
    tn_alloc_fail_at(1);
    assert_int_equal(tn_zap_open(&zap, f->z, f->context, &rules, &err), TN_E_MEMORY);
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

static void the_user_of_a_message_is_a_rank_or_any(void **state)
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

static const char *address;

static const char *gets_address(const zmq_msg_t *message, const char *property)
{
    (void)message;
    assert_string_equal(property, "Peer-Address");
    return address;
}

static void the_other_end_of_a_dialled_connection_is_known_by_its_address(void **state)
{
    const fixture *f = *state;
    const tn_zap_rules rules = {.security = &f->security, .uid = geteuid()};
    zmq_msg_t message;
    assert_int_equal(f->z->zmq_msg_init(&message), 0);
    assert_false(tn_zap_is_dialled(f->z, &rules, &message)); /* of no connection */
    tn_zmq z = *f->z;
    z.zmq_msg_gets = gets_address;
    address = "127.0.0.1";
    assert_true(tn_zap_is_dialled(&z, &rules, &message));
    address = "192.0.2.1";
    assert_false(tn_zap_is_dialled(&z, &rules, &message));
    assert_int_equal(f->z->zmq_msg_close(&message), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_carry_the_id_and_the_user),
        TEST(malformed_requests_are_answered_and_do_no_harm),
        TEST(verdicts_are_counted_and_refusals_told_once),
        TEST(a_second_door_is_refused),
        TEST(what_cannot_be_made_is_told),
        TEST(the_user_of_a_message_is_a_rank_or_any),
        TEST(the_other_end_of_a_dialled_connection_is_known_by_its_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
