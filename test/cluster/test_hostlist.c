/* test_hostlist.c - Slurm's lists of hosts and of counts. */
#include "cluster/launch/hostlist.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static tn_arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = tn_arena_new(4096);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tn_arena_free(arena);
    return 0;
}

static void assert_hosts(const char *text, const char *want)
{
    const char *const *host = NULL;
    uint32_t n = 0;
    tn_error err = {0};
    char joined[1000] = "";
    size_t at = 0;
    if (tn_hostlist_read(text, arena, &host, &n, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    for (uint32_t i = 0; i < n; i++) {
        at += (size_t)snprintf(joined + at, sizeof joined - at, "%s%s", i > 0 ? " " : "", host[i]);
    }
    assert_string_equal(joined, want);
}

static void lists_are_expanded_in_their_order(void **state)
{
    (void)state;
    assert_hosts("n1", "n1");
    assert_hosts("login", "login");
    assert_hosts("n[01-03,7],gpu5", "n01 n02 n03 n7 gpu5");
    assert_hosts("n[8-11]", "n8 n9 n10 n11");
    assert_hosts("n[098-101]", "n098 n099 n100 n101");
    assert_hosts("r[1-2]n[0-1]-ib", "r1n0-ib r1n1-ib r2n0-ib r2n1-ib");
    assert_hosts("b,a,b", "b a b");
    assert_hosts("n[3,1]", "n3 n1");
    assert_hosts("a[1-2],b[7],c", "a1 a2 b7 c");
    assert_hosts("[1-2]", "1 2");
    assert_hosts("node[5-5].cluster.example", "node5.cluster.example");
}

static void lists_that_cannot_be_read_are_told(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",      "a,",     ",a",    "n[",       "n[1",           "n]",
        "n[]",   "n[1,]",  "n[-3]", "n[3-]",    "n[3-1]",        "n[a-b]",
        "n[1-2", "n[[1]]", "n[1]]", "n[1-2-3]", "n[1234567890]", "a[1][1][1][1][1][1][1][1][1]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *const *host = NULL;
        uint32_t n = 0;
        tn_error err = {0};
        assert_int_equal(tn_hostlist_read(texts[i], arena, &host, &n, &err), TN_E_CONFIG);
        assert_non_null(strstr(err.text, "cannot read the list of hosts"));
        assert_null(host);
    }
}

static void lists_are_bounded_in_number_and_length(void **state)
{
    (void)state;
    const char *const *host = NULL;
    uint32_t n = 0;
    tn_error err = {0};
    assert_int_equal(tn_hostlist_read("n[1-65536]", arena, &host, &n, &err), TN_OK);
    assert_int_equal(n, 65536);
    assert_string_equal(host[65535], "n65536");
    assert_int_equal(tn_hostlist_read("n[1-65537]", arena, &host, &n, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "more than 65536 hosts"));
    assert_int_equal(tn_hostlist_read("n[1-999999999]m[1-999999999]", arena, &host, &n, &err),
                     TN_E_CONFIG);
    char text[300];
    memset(text, 'h', sizeof text);
    (void)snprintf(text + 255, sizeof text - 255, "%s", "");
    assert_int_equal(tn_hostlist_read(text, arena, &host, &n, &err), TN_OK);
    (void)snprintf(text + 255, sizeof text - 255, "[1]");
    assert_int_equal(tn_hostlist_read(text, arena, &host, &n, &err), TN_E_CONFIG);
    (void)snprintf(text + 255, sizeof text - 255, "h");
    assert_int_equal(tn_hostlist_read(text, arena, &host, &n, &err), TN_E_CONFIG);
}

static void counts_are_repeated_as_they_say(void **state)
{
    (void)state;
    static const uint32_t want[] = {2, 2, 2, 1, 16};
    const uint32_t *count = NULL;
    uint32_t n = 0;
    assert_int_equal(tn_counts_read("2(x3),1,16", arena, &count, &n, NULL), TN_OK);
    assert_int_equal(n, 5);
    assert_memory_equal(count, want, sizeof want);
    assert_int_equal(tn_counts_read("4", arena, &count, &n, NULL), TN_OK);
    assert_int_equal(n, 1);
    assert_int_equal(count[0], 4);
}

static void counts_that_cannot_be_read_are_told(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "2,",
                                        ",2",
                                        "0",
                                        "2(x0)",
                                        "2(x",
                                        "2(3)",
                                        "(x3)",
                                        "2(x3",
                                        "2(x3)4",
                                        "x",
                                        "65537",
                                        "1(x65537)",
                                        "1(x40000),1(x40000)",
                                        "2(x18446744073709551615)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const uint32_t *count = NULL;
        uint32_t n = 0;
        tn_error err = {0};
        assert_int_equal(tn_counts_read(texts[i], arena, &count, &n, &err), TN_E_CONFIG);
        assert_non_null(strstr(err.text, "cannot read the counts"));
        assert_null(count);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lists_are_expanded_in_their_order),      TEST(lists_that_cannot_be_read_are_told),
        TEST(lists_are_bounded_in_number_and_length), TEST(counts_are_repeated_as_they_say),
        TEST(counts_that_cannot_be_read_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
