/* test_allow.c - folders of public keys: whose they are, and which folders are refused. */
#include "cluster/security/allow.h"

#include "base/core/alloc.h"
#include "base/file/file.h"
#include "cluster/keys.h"
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
    tn_alloc_fail_at(0);
    return 0;
}

static tn_allow *opened(void)
{
    tn_error err = {0};
    tn_allow *a = NULL;
    if (tn_allow_open(&a, keys_zmq(), dir, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    return a;
}

static void assert_refused(tn_status want, const char *sentence)
{
    tn_error err = {0};
    tn_allow *a = NULL;
    assert_int_equal(tn_allow_open(&a, keys_zmq(), dir, &err), want);
    assert_null(a);
    if (strstr(err.text, sentence) == NULL) {
        fail_msg("'%s', not '%s'", err.text, sentence);
    }
}

static void keys_belong_to_the_ranks_that_their_files_name(void **state)
{
    (void)state;
    enum { N = 20 };
    tn_curve_pair pair[N];
    for (uint32_t r = 0; r < N; r++) {
        char name[32];
        (void)snprintf(name, sizeof name, "rank-%u", r);
        pair[r] = keys_make(dir, name);
    }
    tn_allow *a = opened();
    assert_int_equal(tn_allow_count(a), N);
    for (uint32_t r = 0; r < N; r++) {
        uint32_t rank = TN_RANK_ANY;
        uint8_t key[TN_CURVE_BYTES];
        assert_true(tn_allow_find(a, pair[r].open, &rank));
        assert_int_equal(rank, r);
        assert_false(tn_allow_find(a, pair[r].secret, &rank));
        assert_int_equal(tn_allow_key_of(a, r, key, NULL), TN_OK);
        assert_memory_equal(key, pair[r].open, sizeof key);
    }
    tn_error err = {0};
    uint8_t key[TN_CURVE_BYTES];
    assert_int_equal(tn_allow_key_of(a, N, key, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "no public key of rank 20 in"));
    tn_allow_free(a);
}

static void one_key_may_be_everybodys(void **state)
{
    (void)state;
    tn_curve_pair shared = keys_make(dir, "team");
    tn_curve_pair own = keys_make(dir, "rank-3");
    tn_allow *a = opened();
    uint32_t rank = 0;
    uint8_t key[TN_CURVE_BYTES];
    assert_true(tn_allow_find(a, shared.open, &rank));
    assert_int_equal(rank, TN_RANK_ANY);
    assert_int_equal(tn_allow_key_of(a, 9, key, NULL), TN_OK);
    assert_memory_equal(key, shared.open, sizeof key);
    assert_int_equal(tn_allow_key_of(a, 3, key, NULL), TN_OK);
    assert_memory_equal(key, own.open, sizeof key);
    tn_allow_free(a);
}

static void other_files_are_not_looked_at(void **state)
{
    (void)state;
    (void)keys_make(dir, "rank-0");
    keys_put(keys_path(dir, "README"), "hello", 0644);
    keys_put(keys_path(dir, ".pub"), "no stem", 0644);
    keys_put(keys_path(dir, "old.pub.bak"), "no key", 0644);
    tn_allow *a = opened();
    assert_int_equal(tn_allow_count(a), 1);
    tn_allow_free(a);
}

static void names_that_begin_with_rank_must_name_one(void **state)
{
    (void)state;
    static const char *const names[] = {"rank-.pub", "rank-007.pub", "rank-x.pub",
                                        "rank-4294967295.pub", "rank--1.pub"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        keys_put(keys_path(dir, names[i]), "0000000000000000000000000000000000000000", 0644);
        assert_refused(TN_E_CONFIG, "names no rank, as rank-7.pub does");
        assert_int_equal(tn_remove_file(keys_path(dir, names[i]), NULL), TN_OK);
    }
}

static void two_keys_without_a_rank_are_refused(void **state)
{
    (void)state;
    (void)keys_make(dir, "a");
    (void)keys_make(dir, "b");
    assert_refused(TN_E_CONFIG, "has two keys without a rank: 'a.pub' and 'b.pub'");
}

static void one_key_of_two_ranks_is_refused(void **state)
{
    (void)state;
    keys_put(keys_path(dir, "rank-1.pub"), "0000000000000000000000000000000000000001", 0644);
    keys_put(keys_path(dir, "rank-2.pub"), "0000000000000000000000000000000000000001", 0644);
    assert_refused(TN_E_CONFIG, "are the same key");
}

static void folders_that_let_nobody_in_are_refused(void **state)
{
    (void)state;
    assert_refused(TN_E_CONFIG, "nobody could come in\nhint: tnet-keygen ");
    keys_put(keys_path(dir, "rank-0.pub"), "nonsense", 0644);
    assert_refused(TN_E_CONFIG, "rank-0.pub' is no key");
    tn_error err = {0};
    tn_allow *a = NULL;
    assert_int_equal(tn_allow_open(&a, keys_zmq(), keys_path(dir, "none"), &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(err.code, TN_E_CONFIG);
}

static void no_memory_is_an_ordinary_failure(void **state)
{
    (void)state;
    (void)keys_make(dir, "rank-0");
    tn_alloc_fail_at(1);
    assert_refused(TN_E_MEMORY, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys_belong_to_the_ranks_that_their_files_name),
        TEST(one_key_may_be_everybodys),
        TEST(other_files_are_not_looked_at),
        TEST(names_that_begin_with_rank_must_name_one),
        TEST(two_keys_without_a_rank_are_refused),
        TEST(one_key_of_two_ranks_is_refused),
        TEST(folders_that_let_nobody_in_are_refused),
        TEST(no_memory_is_an_ordinary_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
