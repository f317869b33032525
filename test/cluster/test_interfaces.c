/* test_interfaces.c - which address of this machine a peer binds; loopback is all that is sure. */
#include "cluster/launch/interfaces.h"

#include "base/core/log.h"
#include "cluster/launch/membership.h"
#include "support/test.h"

#include <netdb.h>

/* The name and the address of an interface that others could reach, of the list in the error of a
 * wrong address. False: the machine has none. */
static bool find_open(char name[TN_INTERFACE_NAME], char address[64])
{
    tn_endpoint e = {.host = "192.0.2.77"};
    tn_error err = {0};
    int size = 0;
    assert_int_equal(tn_interfaces_choose(&e, NULL, name, &err), TN_E_CONFIG);
    const char *at = strstr(err.text, "interfaces:");
    assert_non_null(at);
    at += strlen("interfaces:");
    while (sscanf(at, " %15s (%63[^)])%n", name, address, &size) == 2) { // NOLINT(cert-err34-c)
        if (strcmp(name, "lo") != 0) {
            return true;
        }
        at += size;
    }
    return false;
}

static void assert_chosen(const char *host, const char *want)
{
    tn_endpoint e = {.port = 7};
    char name[TN_INTERFACE_NAME];
    tn_error err = {0};
    (void)snprintf(e.host, sizeof e.host, "%s", host);
    assert_ok(tn_interfaces_choose(&e, NULL, name, &err), err.text);
    assert_string_equal(e.host, want);
    assert_int_equal(e.port, 7);
}

/* It is one of /etc/hosts, which a bare container has not. */
static bool localhost_is_known(void)
{
    struct addrinfo *found = NULL;
    const bool known = getaddrinfo("localhost", NULL, NULL, &found) == 0;
    if (known) {
        freeaddrinfo(found);
    }
    return known;
}

TEST(numbers_and_interfaces_are_taken_as_they_are)
{
    assert_chosen("127.0.0.1", "127.0.0.1");
    assert_chosen("lo", "127.0.0.1");
    if (localhost_is_known()) {
        assert_chosen("localhost", "127.0.0.1");
    }
    assert_chosen("*", "*");
    char open[TN_INTERFACE_NAME];
    char address[64];
    if (find_open(open, address)) {
        assert_chosen(open, address);
        assert_chosen(address, address);
    }
    tn_endpoint ipc = {.is_ipc = true, .path = "/x/0.sock"};
    char name[TN_INTERFACE_NAME] = "x";
    assert_int_equal(tn_interfaces_choose(&ipc, NULL, name, NULL), TN_OK);
    assert_string_equal(name, "");
}

TEST(a_name_nobody_knows_is_the_way_to_rank_0)
{
    /* loopback leads to loopback, whatever else the machine has */
    tn_endpoint e = {.host = "no-such-machine.invalid", .port = 7};
    tn_endpoint toward = {.host = "127.0.0.1", .port = 9};
    char name[TN_INTERFACE_NAME];
    assert_int_equal(tn_interfaces_choose(&e, &toward, name, NULL), TN_OK);
    assert_string_equal(e.host, "127.0.0.1");
    assert_string_equal(name, "lo");
}

TEST(another_machines_number_is_an_error_that_lists_the_own)
{
    tn_endpoint e = {.host = "192.0.2.77", .port = 7}; /* TEST-NET-1 */
    tn_endpoint toward = {.host = "127.0.0.1", .port = 9};
    char name[TN_INTERFACE_NAME];
    tn_error err = {0};
    assert_int_equal(tn_interfaces_choose(&e, &toward, name, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "'192.0.2.77' is no address of this machine"));
    assert_non_null(strstr(err.text, "hint: set TNET_BIND to one of its interfaces:"));
    assert_non_null(strstr(err.text, " lo (127.0.0.1)"));
    assert_string_equal(e.host, "192.0.2.77");
}

TEST(own_names_and_addresses_are_known)
{
    assert_true(tn_interfaces_have("127.0.0.1"));
    assert_int_equal(tn_interfaces_have("localhost"), localhost_is_known());
    assert_false(tn_interfaces_have("192.0.2.77"));
    assert_false(tn_interfaces_have("no-such-machine.invalid"));
}

static char logged[300];

static void keep_line(tn_log_level level, const char *line)
{
    (void)level;
    (void)snprintf(logged, sizeof logged, "%s", line);
}

static tn_status place(const char *root, const char *bind, tn_endpoint *out, tn_error *err)
{
    const char *const address[] = {root, NULL};
    const tn_membership r = {
        .rank = 1, .size = 2, .address = address, .bind = bind, .how = "rank 1 of 2 by Slurm"};
    return tn_membership_place(&r, out, err);
}

TEST(c7_the_chosen_interface_is_told)
{
    tn_endpoint e;
    tn_error err = {0};
    tn_log_set(keep_line, TN_LOG_INFO);
    assert_int_equal(place("tcp://127.0.0.1:9", "tcp://no-such-machine.invalid:0", &e, &err),
                     TN_OK);
    assert_string_equal(logged, "rank 1 of 2 by Slurm: at tcp://127.0.0.1:0, interface lo");
    assert_string_equal(e.host, "127.0.0.1");
    assert_int_equal(place(NULL, "ipc:///run/x/1.sock", &e, &err), TN_OK);
    assert_string_equal(logged, "rank 1 of 2 by Slurm: at ipc:///run/x/1.sock");
    tn_log_set(NULL, TN_LOG_INFO);
    assert_int_equal(place(NULL, "tcp://192.0.2.77:0", &e, &err), TN_E_CONFIG);
    assert_int_equal(place(NULL, "a b", &e, &err), TN_E_CONFIG);
    assert_int_equal(place("a b", "tcp://127.0.0.1:0", &e, &err), TN_E_CONFIG);
}

TEST(a_real_process_asks_its_real_environment)
{
    char host[TN_ENDPOINT_HOST];
    const tn_peers_opts opts = {.n = 3};
    tn_membership_in in = tn_membership_here(&opts, "runs/x", host);
    assert_string_not_equal(in.env.host, "");
    assert_int_equal(in.peers.n, 3);
    assert_string_equal(in.run_dir, "runs/x");
    assert_int_equal(setenv("TNET_TEST_WORD", "here", 1), 0); // NOLINT(concurrency-mt-unsafe)
    assert_string_equal(in.env.get(in.env.ctx, "TNET_TEST_WORD"), "here");
    assert_true(in.is_local(in.env.ctx, "127.0.0.1"));
    assert_false(in.is_local(in.env.ctx, "192.0.2.77"));
}
