/* test_security.c - the section cluster.security: what it may say, and what it loads. */
#include "cluster/security/security.h"

#include "base/core/alloc.h"
#include "base/file/file.h"
#include "cluster/keys.h"
#include "support/test.h"
#include "support/tmpdir.h"

#include <stdio.h>
#include <string.h>

typedef struct fixture {
    char dir[256];
    tn_arena *arena;
    tn_diag diag;
    tn_binder binder;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f = (fixture){.arena = tn_arena_new(4096)};
    f.binder = (tn_binder){.arena = f.arena, .diag = &f.diag};
    tn_tmpdir_make(f.dir);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tn_diag_done(&f->diag);
    tn_arena_free(f->arena);
    tn_tmpdir_remove(f->dir);
    tn_alloc_fail_at(0);
    return 0;
}

static const tn_origin here = {"a.yaml", 3, 5, "  security: .."};

/* {key: value} pairs up to a NULL; "trusted_net" again and again is a list. */
static const tn_tree *map_of(fixture *f, const char *const *words)
{
    tn_tree *map = tn_tree_new(f->arena, TN_TREE_MAP, here);
    tn_tree *list = tn_tree_new(f->arena, TN_TREE_LIST, here);
    for (; words[0] != NULL; words += 2) {
        tn_tree *value = tn_tree_scalar(f->arena, words[1], here);
        if (strcmp(words[0], "trusted_net") == 0) {
            tn_tree_append(list, value);
        } else {
            tn_tree_put(f->arena, map, words[0], value);
        }
    }
    if (list->first != NULL) {
        tn_tree_put(f->arena, map, "trusted_net", list);
    }
    return map;
}

static tn_security_opts bound(fixture *f, const char *const *words)
{
    tn_security_opts o;
    tn_security_bind(&f->binder, map_of(f, words), &o);
    if (f->diag.n_errors > 0) {
        fail_msg("%s", f->diag.text.data);
    }
    return o;
}

static void nothing_set_lets_in_this_host_only(void **state)
{
    fixture *f = *state;
    tn_security_opts o = {.key = "left over"};
    tn_security s;
    tn_security_bind(&f->binder, NULL, &o);
    assert_null(o.key);
    tn_security_bind(&f->binder, tn_tree_new(f->arena, TN_TREE_NULL, here), &o);
    assert_int_equal(f->diag.n_errors, 0);
    assert_int_equal(tn_security_init(&s, keys_zmq(), &o, NULL), TN_OK);
    assert_int_equal(s.kind, TN_SECURITY_HOST);
    assert_true(tn_nets_have(s.net, s.n_nets, "127.0.0.1"));
    assert_true(tn_nets_have(s.net, s.n_nets, "::1"));
    assert_false(tn_nets_have(s.net, s.n_nets, "10.0.0.1"));
    tn_security_done(&s);
    assert_int_equal(tn_security_init(&s, keys_zmq(), NULL, NULL), TN_OK);
    assert_int_equal(s.kind, TN_SECURITY_HOST);
    tn_security_done(&s);
}

static void keys_and_their_folder_are_loaded(void **state)
{
    fixture *f = *state;
    tn_curve_pair pair = keys_make(f->dir, "rank-0");
    const char *const words[] = {"key", keys_path(f->dir, "rank-0.key"), "allow", f->dir, NULL};
    tn_security_opts o = bound(f, words);
    tn_security s;
    assert_int_equal(tn_security_init(&s, keys_zmq(), &o, NULL), TN_OK);
    assert_int_equal(s.kind, TN_SECURITY_CURVE);
    assert_memory_equal(&s.pair, &pair, sizeof pair);
    assert_int_equal(tn_allow_count(s.allow), 1);
    tn_security_done(&s);
    static const tn_curve_pair zeros;
    assert_memory_equal(&s.pair, &zeros, sizeof zeros);
}

static void a_peer_that_the_others_would_refuse_does_not_start(void **state)
{
    fixture *f = *state;
    char others[300];
    (void)keys_make(f->dir, "mine");
    (void)snprintf(others, sizeof others, "%s/others", f->dir);
    assert_int_equal(tn_dir_make(others, NULL), TN_OK);
    (void)keys_make(others, "rank-0");
    const char *const words[] = {"key", keys_path(f->dir, "mine.key"), "allow", others, NULL};
    tn_security_opts o = bound(f, words);
    tn_security s;
    tn_error err = {0};
    assert_int_equal(tn_security_init(&s, keys_zmq(), &o, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "the others would not let this peer in"));
    tn_security_done(&s);
}

static void trusted_networks_are_read(void **state)
{
    fixture *f = *state;
    const char *const words[] = {"trusted_net", "10.1.0.0/16", "trusted_net", "fd00::/8", NULL};
    tn_security_opts o = bound(f, words);
    tn_security s;
    assert_int_equal(tn_security_init(&s, keys_zmq(), &o, NULL), TN_OK);
    assert_int_equal(s.kind, TN_SECURITY_NET);
    assert_int_equal(s.n_nets, 2);
    assert_true(tn_nets_have(s.net, s.n_nets, "10.1.255.1"));
    assert_false(tn_nets_have(s.net, s.n_nets, "127.0.0.1"));
    tn_security_done(&s);
}

static void assert_fault(fixture *f, const tn_tree *tree, const char *want)
{
    tn_security_opts o;
    tn_security_bind(&f->binder, tree, &o);
    assert_int_not_equal(f->diag.n_errors, 0);
    if (strstr(tn_text_str(&f->diag.text), want) == NULL) {
        fail_msg("'%s', not '%s'", tn_text_str(&f->diag.text), want);
    }
    tn_diag_done(&f->diag);
    f->diag = (tn_diag){0};
}

static void contradictions_are_faults_with_a_place_and_a_hint(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *words[8];
        const char *want;
    } cases[] = {
        {{"key", "a.key", NULL}, "a.yaml:3:5: error: 'cluster.security' has no 'allow'"},
        {{"allow", "peers/", NULL}, "'cluster.security' has no 'key'"},
        {{NULL}, "'cluster.security' has no 'key, nor trusted_net'"},
        {{NULL}, "hint: {key: peer.key, allow: peers/}"},
        {{"key", "a", "allow", "b", "trusted_net", "10.0.0.0/8", NULL},
         "'cluster.security' has both keys and trusted_net"},
        {{"trusted_net", "10.0.0.0/8", "trusted_net", "10.0.0.1/8", NULL},
         "'cluster.security.trusted_net': '10.0.0.1/8' has bits set behind its prefix"},
        {{"keys", "a", NULL}, "'keys' (did you mean 'key'?)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_fault(f, map_of(f, cases[i].words), cases[i].want);
    }
    assert_fault(f, tn_tree_scalar(f->arena, "peer.key", here), "'cluster.security' is no map");
}

static void files_at_fault_and_no_memory_are_told(void **state)
{
    fixture *f = *state;
    const char *const words[] = {"key", keys_path(f->dir, "no.key"), "allow", f->dir, NULL};
    tn_security_opts o = bound(f, words);
    tn_security s;
    tn_error err = {0};
    assert_int_equal(tn_security_init(&s, keys_zmq(), &o, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "no.key"));
    tn_security_done(&s);
    tn_alloc_fail_at(1);
    assert_int_equal(tn_security_init(&s, keys_zmq(), NULL, &err), TN_E_MEMORY);
    tn_security_done(&s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_set_lets_in_this_host_only),
        TEST(keys_and_their_folder_are_loaded),
        TEST(a_peer_that_the_others_would_refuse_does_not_start),
        TEST(trusted_networks_are_read),
        TEST(contradictions_are_faults_with_a_place_and_a_hint),
        TEST(files_at_fault_and_no_memory_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
