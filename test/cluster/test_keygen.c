/* test_keygen.c - what tnet-keygen writes, and what it does not. */
#include "cluster/security/keygen.h"

#include "cluster/security/curvekeys.h"
#include "support/test.h"
#include "support/tmpdir.h"

#include <stdio.h>
#include <string.h>

static char dir[256];

static int set_up(void **state)
{
    (void)state;
    tn_tmpdir_make(dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tn_tmpdir_remove(dir);
    return 0;
}

static void a_pair_stands_in_a_new_folder(void **state)
{
    (void)state;
    char peers[300];
    tn_keygen_paths paths;
    tn_error err = {0};
    (void)snprintf(peers, sizeof peers, "%s/some/peers", dir);
    assert_int_equal(tn_keygen(peers, "rank-0", &paths, &err), TN_OK);
    assert_non_null(strstr(paths.secret, "/some/peers/rank-0.key"));
    assert_non_null(strstr(paths.open, "/some/peers/rank-0.pub"));
    tn_zmq z;
    tn_curve_pair pair;
    uint8_t open[TN_CURVE_BYTES];
    assert_int_equal(tn_zmq_load(&z, &err), TN_OK);
    assert_int_equal(tn_curve_read(&z, paths.secret, &pair, &err), TN_OK);
    assert_int_equal(tn_curve_read_open(&z, paths.open, open, &err), TN_OK);
    assert_memory_equal(open, pair.open, sizeof open);
    /* a second one of the same name is refused, whichever half is left */
    assert_int_equal(tn_keygen(peers, "rank-0", &paths, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "rank-0.key' is there already"));
    assert_int_equal(tn_remove_file(paths.secret, &err), TN_OK);
    assert_int_equal(tn_keygen(peers, "rank-0", &paths, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "rank-0.pub' is there already"));
    assert_false(tn_path_exists(paths.secret));
}

static void names_that_leave_the_folder_or_hide_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",         "..",
        ".hidden",  "-v",
        "a/b",      "../a",
        "a b",      "a\n",
        "\xc3\xa4", "a1234567890123456789012345678901234567890123456789012345678901234"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tn_keygen_paths paths;
        tn_error err = {0};
        assert_int_equal(tn_keygen(dir, names[i], &paths, &err), TN_E_USAGE);
        assert_non_null(strstr(err.text, "cannot name a key"));
    }
}

static void a_folder_that_cannot_be_made_is_told(void **state)
{
    (void)state;
    tn_keygen_paths paths;
    tn_error err = {0};
    assert_int_equal(tn_keygen("/proc/nowhere", "a", &paths, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "/proc/nowhere"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pair_stands_in_a_new_folder),
        TEST(names_that_leave_the_folder_or_hide_are_refused),
        TEST(a_folder_that_cannot_be_made_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
