/* test_security.c - the section cluster.security: what it may say, and what it loads. */
#include "config/diag.h"
#include "config/tree.h"
#include "support/test.h"

#include "cluster/keys.h"
#include "cluster/security/security.h"

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
    fail_if(f->diag.n_errors > 0, "%s", f->diag.text.data);
    return o;
}

TEST_WITH(set_up, tear_down, nothing_set_lets_in_this_host_only)
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

TEST_WITH(set_up, tear_down, keys_and_their_folder_are_loaded)
{
    fixture *f = *state;
    tn_curve_pair pair = keys_make(f->dir, "rank-0");
    const char *const words[] = {"key", keys_path(f->dir, "rank-0.key"), "allow", f->dir, NULL};
    tn_security_opts o = bound(f, words);
    tn_security s;
    assert_int_equal(tn_security_init(&s, keys_zmq(), &o, NULL), TN_OK);
    assert_int_equal(s.kind, TN_SECURITY_CURVE);
    assert_memory_equal(&s.pair, &pair, sizeof pair);
    tn_security_done(&s);
    static const tn_curve_pair zeros;
    assert_memory_equal(&s.pair, &zeros, sizeof zeros);
}

TEST_WITH(set_up, tear_down, a_peer_that_the_others_would_refuse_does_not_start)
{
    fixture *f = *state;
    (void)keys_make(f->dir, "mine");
    PATH_IN(others, f->dir, "others");
    assert_int_equal(tn_dir_make(others, NULL), TN_OK);
    (void)keys_make(others, "rank-0");
    const char *const words[] = {"key", keys_path(f->dir, "mine.key"), "allow", others, NULL};
    tn_security_opts o = bound(f, words);
    tn_security s CLEANUP(tn_security_done);
    tn_error err = {0};
    assert_int_equal(tn_security_init(&s, keys_zmq(), &o, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "the others would not let this peer in"));
}

TEST_WITH(set_up, tear_down, trusted_networks_are_read)
{
    fixture *f = *state;
    const char *const words[] = {"trusted_net", "10.1.0.0/16", "trusted_net", "fd00::/8", NULL};
    tn_security_opts o = bound(f, words);
    tn_security s CLEANUP(tn_security_done);
    assert_int_equal(tn_security_init(&s, keys_zmq(), &o, NULL), TN_OK);
    assert_int_equal(s.kind, TN_SECURITY_NET);
    assert_int_equal(s.n_nets, 2);
    assert_true(tn_nets_have(s.net, s.n_nets, "10.1.255.1"));
    assert_false(tn_nets_have(s.net, s.n_nets, "127.0.0.1"));
}

static void assert_fault(fixture *f, const tn_tree *tree, const char *want)
{
    tn_security_opts o;
    tn_security_bind(&f->binder, tree, &o);
    assert_int_not_equal(f->diag.n_errors, 0);
    assert_says(tn_text_str(&f->diag.text), want);
    tn_diag_done(&f->diag);
    f->diag = (tn_diag){0};
}

TEST_WITH(set_up, tear_down, contradictions_are_faults_with_a_place_and_a_hint)
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

TEST_WITH(set_up, tear_down, files_at_fault_and_no_memory_are_told)
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

static char dir[256];

static int make_folder(void **state)
{
    (void)state;
    tn_tmpdir_make(dir);
    return 0;
}

static int remove_folder(void **state)
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
    assert_ok(tn_allow_open(&a, keys_zmq(), dir, &err), err.text);
    return a;
}

static void assert_refused(tn_status want, const char *sentence)
{
    tn_error err = {0};
    tn_allow *a = NULL;
    assert_int_equal(tn_allow_open(&a, keys_zmq(), dir, &err), want);
    assert_null(a);
    assert_says(err.text, sentence);
}

TEST_WITH(make_folder, remove_folder, keys_belong_to_the_ranks_that_their_files_name)
{
    enum { N = 20 };
    tn_curve_pair pair[N];
    for (uint32_t r = 0; r < N; r++) {
        char name[32];
        (void)snprintf(name, sizeof name, "rank-%u", r);
        pair[r] = keys_make(dir, name);
    }
    tn_allow *a = opened();
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

TEST_WITH(make_folder, remove_folder, one_key_may_be_everybodys)
{
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

TEST_WITH(make_folder, remove_folder, other_files_are_not_looked_at)
{
    (void)keys_make(dir, "rank-0");
    keys_put(keys_path(dir, "README"), "hello", 0644);
    keys_put(keys_path(dir, ".pub"), "no stem", 0644);
    keys_put(keys_path(dir, "old.pub.bak"), "no key", 0644);
    tn_allow *a = opened();
    tn_allow_free(a);
}

TEST_WITH(make_folder, remove_folder, names_that_begin_with_rank_must_name_one)
{
    static const char *const names[] = {"rank-.pub", "rank-007.pub", "rank-x.pub",
                                        "rank-4294967295.pub", "rank--1.pub"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        keys_put(keys_path(dir, names[i]), "0000000000000000000000000000000000000000", 0644);
        assert_refused(TN_E_CONFIG, "names no rank, as rank-7.pub does");
        assert_int_equal(tn_remove_file(keys_path(dir, names[i]), NULL), TN_OK);
    }
}

TEST_WITH(make_folder, remove_folder, two_keys_without_a_rank_are_refused)
{
    (void)keys_make(dir, "a");
    (void)keys_make(dir, "b");
    assert_refused(TN_E_CONFIG, "has two keys without a rank: 'a.pub' and 'b.pub'");
}

TEST_WITH(make_folder, remove_folder, one_key_of_two_ranks_is_refused)
{
    keys_put(keys_path(dir, "rank-1.pub"), "0000000000000000000000000000000000000001", 0644);
    keys_put(keys_path(dir, "rank-2.pub"), "0000000000000000000000000000000000000001", 0644);
    assert_refused(TN_E_CONFIG, "are the same key");
}

TEST_WITH(make_folder, remove_folder, folders_that_let_nobody_in_are_refused)
{
    assert_refused(TN_E_CONFIG, "nobody could come in\nhint: tnet-keygen ");
    keys_put(keys_path(dir, "rank-0.pub"), "nonsense", 0644);
    assert_refused(TN_E_CONFIG, "rank-0.pub' is no key");
    tn_error err = {0};
    tn_allow *a = NULL;
    assert_int_equal(tn_allow_open(&a, keys_zmq(), keys_path(dir, "none"), &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(err.code, TN_E_CONFIG);
}

TEST_WITH(make_folder, remove_folder, no_memory_is_an_ordinary_failure)
{
    (void)keys_make(dir, "rank-0");
    tn_alloc_fail_at(1);
    assert_refused(TN_E_MEMORY, "");
}
