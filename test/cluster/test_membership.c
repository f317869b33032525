/* test_membership.c - who a process is in its group, from its environment and the option
 * cluster.peers. */
#include "support/test.h"

#include "cluster/fakeenv.h"
#include "config/diag.h"
#include "config/tree.h"

static int tear_down(void **state)
{
    (void)state;
    fakeenv_done();
    return 0;
}

static const char *const three[] = {"a:1", "b:2", "[fd00::3]"};

static const tn_peers_opts three_peers = {.n = 3, .address = {.n = 3, .item = three}};

TEST_WITH(NULL, tear_down, nothing_said_is_alone)
{
    tn_membership r = fakeenv_membership(&(fakeenv){.words = NULL});
    assert_int_equal(r.rank, 0);
    assert_int_equal(r.size, 1);
    assert_string_equal(r.how, "alone");
    assert_null(r.bind);
    const char *const empty[] = {"TNET_RANK=", "TNET_PEERS=", NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = empty}).size, 1);
}

TEST_WITH(NULL, tear_down, one_peer_is_alone_under_any_launcher)
{
    const char *const words[] = {"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = words, .peers = {.n = 1}}).size, 1);
    const char *const one[] = {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1", NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = one}).size, 1);
}

TEST_WITH(NULL, tear_down, a_list_tells_the_rank_by_the_own_address)
{
    tn_membership r = fakeenv_membership(&(fakeenv){.peers = three_peers, .local = "b"});
    assert_int_equal(r.rank, 1);
    assert_int_equal(r.size, 3);
    assert_string_equal(r.address[2], "tcp://[fd00::3]:4770");
    assert_string_equal(r.bind, "tcp://b:2");
    assert_string_equal(r.how, "rank 1 of 3 by address");
    assert_int_equal(r.n_here, 1);
    assert_int_equal(fakeenv_membership(&(fakeenv){.peers = three_peers, .local = "fd00::3"}).rank,
                     2);
    fakeenv_refused(&(fakeenv){.peers = three_peers}, "nothing says which of them this process is");
}

TEST_WITH(NULL, tear_down, two_own_addresses_need_a_rank)
{
    static const char *const same[] = {"a:1", "a:2"};
    const tn_peers_opts twice = {.n = 2, .address = {.n = 2, .item = same}};
    fakeenv_refused(&(fakeenv){.peers = twice, .local = "a"},
                    "both 'a:1' and 'a:2' are this machine's addresses\nhint: say by TNET_RANK");
    const char *const words[] = {"TNET_RANK=1", NULL};
    tn_membership r = fakeenv_membership(&(fakeenv){.words = words, .peers = twice, .local = "a"});
    assert_string_equal(r.bind, "tcp://a:2");
    assert_int_equal(r.n_here, 2);
}

/* They share its memory. */
TEST_WITH(NULL, tear_down, processes_of_one_machine_are_counted)
{
    static const char *const mixed[] = {"a:1", "b:1", "a:2", "c:1", "a:3"};
    const tn_peers_opts five = {.n = 5, .address = {.n = 5, .item = mixed}};
    const char *const third[] = {"TNET_RANK=2", NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = third, .peers = five}).n_here, 3);
    const char *const second[] = {"TNET_RANK=1", NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = second, .peers = five}).n_here, 1);
    const char *const sockets[] = {"TNET_RANK=1", "TNET_PEERS=4", NULL};
    assert_int_equal(fakeenv_membership(&(fakeenv){.words = sockets}).n_here, 4);
}

TEST_WITH(NULL, tear_down, addresses_that_nobody_can_find_are_refused)
{
    static const struct {
        const char *list, *want;
    } cases[] = {
        {"a:0,b:1", "the others cannot find rank 0 by 'a:0'"},
        {"a:1,*:1", "the others cannot find rank 1 by '*:1'"},
        {"a:1,tcp://a:1", "ranks 0 and 1 have the same address 'tcp://a:1'"},
        {"a:1,,", "TNET_PEERS says 2 peers, but TNET_PEER_LIST 3"},
        {"a:1,", "'' is no address of a peer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const words[] = {"TNET_RANK=0", "TNET_PEERS=2", "TNET_PEER_LIST", cases[i].list,
                                     NULL};
        fakeenv_refused(&(fakeenv){.words = words}, cases[i].want);
    }
}

TEST_WITH(NULL, tear_down, sizes_must_agree)
{
    const char *const peers[] = {"TNET_PEERS=4", "TNET_RANK=0", NULL};
    fakeenv_refused(&(fakeenv){.words = peers, .peers = {.n = 3}},
                    "cluster.peers says 3 peers, but TNET_PEERS 4");
    const char *const mpi[] = {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4", NULL};
    fakeenv_refused(&(fakeenv){.words = mpi, .peers = three_peers},
                    "cluster.peers says 3 peers, but MPI 4");
    const char *const two[] = {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4", "TNET_PEERS=2",
                               NULL};
    fakeenv_refused(&(fakeenv){.words = two}, "TNET_PEERS says 2 peers, but MPI 4");
}

TEST_WITH(NULL, tear_down, a_number_without_a_launcher_says_how_to_start)
{
    fakeenv_refused(&(fakeenv){.peers = {.n = 4}},
                    "cluster.peers says 4 peers, but nothing says which of them this process is\n"
                    "hint: tnet-train --peers 4, a launcher, or TNET_RANK from 0 to 3");
}

TEST_WITH(NULL, tear_down, a_bind_of_another_kind_is_a_contradiction)
{
    const char *const words[] = {"TNET_RANK=0", "TNET_PEERS=2", "TNET_BIND=eth0", NULL};
    fakeenv_refused(&(fakeenv){.words = words}, "TNET_BIND is 'eth0', but rank 0 is at 'ipc://");
    const char *const port[] = {"TNET_RANK=0", "TNET_PEER_LIST=a:1,b:2", "TNET_BIND=10.0.0.1",
                                NULL};
    assert_string_equal(fakeenv_membership(&(fakeenv){.words = port}).bind, "tcp://10.0.0.1:1");
    const char *const both[] = {"TNET_RANK=0", "TNET_PEER_LIST=a:1,b:2", "TNET_BIND=eth0:9", NULL};
    assert_string_equal(fakeenv_membership(&(fakeenv){.words = both}).bind, "tcp://eth0:9");
    const char *const bad[] = {"TNET_RANK=0", "TNET_PEER_LIST=a:1,b:2", "TNET_BIND=a b", NULL};
    fakeenv_refused(&(fakeenv){.words = bad}, "'a b' is no address of a peer");
}

TEST_WITH(NULL, tear_down, many_addresses_are_bounded)
{
    static char text[5 * 4100];
    for (size_t i = 0; i < 4097; i++) {
        (void)snprintf(text + 2 * i, sizeof text - 2 * i, "a,");
    }
    const char *const words[] = {"TNET_RANK=0", "TNET_PEER_LIST", text, NULL};
    fakeenv_refused(&(fakeenv){.words = words}, "TNET_PEER_LIST holds 4098 addresses, more than");
}

TEST_WITH(NULL, tear_down, the_name_of_a_run_is_the_same_for_all_and_for_no_other)
{
    tn_membership a = fakeenv_membership(&(fakeenv){.peers = three_peers, .local = "a"});
    tn_membership b =
        fakeenv_membership(&(fakeenv){.peers = three_peers, .local = "b", .host = "other"});
    assert_true(a.job == b.job && a.job != 0);
    const char *const words[] = {"TNET_JOB=second", NULL};
    tn_membership c =
        fakeenv_membership(&(fakeenv){.words = words, .peers = three_peers, .local = "a"});
    assert_true(c.job != a.job);
}

static tn_arena *arena;

static tn_diag diag;

static const tn_origin here = {"a.yaml", 3, 5, "  peers: .."};

static int options_set_up(void **state)
{
    (void)state;
    arena = tn_arena_new(4096);
    return 0;
}

static int options_tear_down(void **state)
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

TEST_WITH(options_set_up, options_tear_down, a_number_auto_and_nothing_are_understood)
{
    assert_int_equal(bound(NULL).n, 0);
    assert_int_equal(bound(tn_tree_new(arena, TN_TREE_NULL, here)).n, 0);
    assert_int_equal(bound(tn_tree_scalar(arena, "auto", here)).n, 0);
    assert_int_equal(bound(tn_tree_scalar(arena, "4", here)).n, 4);
    assert_int_equal(bound(tn_tree_scalar(arena, "1024", here)).n, 1024);
    assert_int_equal(diag.n_errors, 0);
}

TEST_WITH(options_set_up, options_tear_down, a_list_is_addresses_by_rank)
{
    static const char *const texts[] = {"a:1", "[fd00::7]:2", NULL};
    tn_peers_opts o = bound(list_of(texts));
    assert_int_equal(diag.n_errors, 0);
    assert_int_equal(o.n, 2);
    assert_int_equal(o.address.n, 2);
    assert_string_equal(o.address.item[1], "[fd00::7]:2");
}

TEST_WITH(options_set_up, options_tear_down, faults_have_a_place)
{
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

TEST_WITH(options_set_up, options_tear_down, too_many_addresses_are_a_fault)
{
    tn_tree *list = tn_tree_new(arena, TN_TREE_LIST, here);
    for (uint32_t i = 0; i < TN_PEERS_MAX + 1; i++) {
        tn_tree_append(list, tn_tree_scalar(arena, "a:1", here));
    }
    (void)bound(list);
    assert_non_null(strstr(diag.text.data, "holds 1025 addresses, more than 1024"));
}
