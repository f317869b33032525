/* test_membership_options.c - what cluster.peers may be. */
#include "cluster/launch/membership.h"
#include "support/test.h"

#include <string.h>

static tn_arena *arena;
static tn_diag diag;
static const tn_origin here = {"a.yaml", 3, 5, "  peers: .."};

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
    tn_diag_done(&diag);
    diag = (tn_diag){0};
    return 0;
}

static tn_peers_opts bound(const tn_tree *tree)
{
    tn_peers_opts o = {.n = 77};
    tn_peers_bind(&(tn_binder){.arena = arena, .diag = &diag}, tree, &o);
    return o;
}

static tn_tree *list_of(const char *const *texts)
{
    tn_tree *list = tn_tree_new(arena, TN_TREE_LIST, here);
    for (; *texts != NULL; texts++) {
        tn_tree_append(list, tn_tree_scalar(arena, *texts, here));
    }
    return list;
}

static void a_number_auto_and_nothing_are_understood(void **state)
{
    (void)state;
    assert_int_equal(bound(NULL).n, 0);
    assert_int_equal(bound(tn_tree_new(arena, TN_TREE_NULL, here)).n, 0);
    assert_int_equal(bound(tn_tree_scalar(arena, "auto", here)).n, 0);
    assert_int_equal(bound(tn_tree_scalar(arena, "4", here)).n, 4);
    assert_int_equal(bound(tn_tree_scalar(arena, "1024", here)).n, 1024);
    assert_int_equal(diag.n_errors, 0);
}

static void a_list_is_addresses_by_rank(void **state)
{
    (void)state;
    static const char *const texts[] = {"a:1", "[fd00::7]:2", NULL};
    tn_peers_opts o = bound(list_of(texts));
    assert_int_equal(diag.n_errors, 0);
    assert_int_equal(o.n, 2);
    assert_int_equal(o.address.n, 2);
    assert_string_equal(o.address.item[1], "[fd00::7]:2");
}

static void faults_have_a_place(void **state)
{
    (void)state;
    static const char *const texts[] = {"a:1", "a b", NULL};
    (void)bound(list_of(texts));
    assert_int_equal(diag.n_errors, 1);
    assert_non_null(
        strstr(diag.text.data, "a.yaml:3:5: error: 'cluster.peers': 'a b' is no address"));
    (void)bound(tn_tree_scalar(arena, "0", here));
    assert_int_equal(diag.n_errors, 2);
    (void)bound(tn_tree_scalar(arena, "1025", here));
    assert_int_equal(diag.n_errors, 3);
    (void)bound(tn_tree_scalar(arena, "several", here));
    assert_int_equal(diag.n_errors, 4);
    assert_non_null(strstr(diag.text.data, "cluster.peers"));
}

static void too_many_addresses_are_a_fault(void **state)
{
    (void)state;
    tn_tree *list = tn_tree_new(arena, TN_TREE_LIST, here);
    for (uint32_t i = 0; i < TN_PEERS_MAX + 1; i++) {
        tn_tree_append(list, tn_tree_scalar(arena, "a:1", here));
    }
    (void)bound(list);
    assert_non_null(strstr(diag.text.data, "holds 1025 addresses, more than 1024"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_number_auto_and_nothing_are_understood),
        TEST(a_list_is_addresses_by_rank),
        TEST(faults_have_a_place),
        TEST(too_many_addresses_are_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
