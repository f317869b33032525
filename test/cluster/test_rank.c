/* test_rank.c - which of several processes this one is, and what several cannot do. */
#include "cluster/launch/membership.h"
#include "config/diag.h"
#include "config/tree.h"
#include "support/test.h"
#include "train/config/config.h"
#include "train/config/run_bind.h"
#include "train/group/ranks.h"

typedef struct seat {
    tn_arena *arena;
    tn_diag diag;
    tn_binder b;
    const tn_tree *tree;
    tn_run run;
    tn_error err;
} seat;

static void be(const char *rank, const char *peers)
{
    // NOLINTBEGIN(concurrency-mt-unsafe): there is one thread
    assert_int_equal(unsetenv("TNET_RANK") | unsetenv("TNET_PEERS"), 0);
    if (rank != NULL) {
        assert_int_equal(setenv("TNET_RANK", rank, 1), 0);
    }
    if (peers != NULL) {
        assert_int_equal(setenv("TNET_PEERS", peers, 1), 0);
    }
    // NOLINTEND(concurrency-mt-unsafe)
}

static tn_status find(seat *s, const char *const *overrides)
{
    *s = (seat){.arena = tn_arena_new(1 << 16)};
    s->b = (tn_binder){.arena = s->arena, .diag = &s->diag};
    tn_config_in in = {
        .fields = tn_run_fields, .path = "test/golden/deepfm.yaml", .overrides = overrides};
    while (overrides[in.n_overrides] != NULL) {
        in.n_overrides++;
    }
    s->tree = tn_config_load(&in, s->arena, &s->diag);
    assert_non_null(s->tree);
    tn_run_bind(&s->b, s->tree, &s->run);
    assert_int_equal(s->diag.n_errors, 0);
    return tn_group_built()->find_rank(&s->b, s->tree, &s->run, NULL, &s->err);
}

static void done(seat *s)
{
    tn_diag_done(&s->diag);
    tn_arena_free(s->arena);
}

TEST(a_process_is_alone_unless_somebody_says_otherwise)
{
    seat s;
    be(NULL, NULL);
    assert_int_equal(find(&s, (const char *const[]){NULL}), TN_OK);
    assert_int_equal(s.run.cluster.size, 0);
    assert_null(s.run.cluster.membership);
    done(&s);
    assert_int_equal(find(&s, (const char *const[]){"cluster.peers=1", NULL}), TN_OK);
    assert_int_equal(s.run.cluster.size, 0);
    done(&s);
    assert_int_equal(find(&s, (const char *const[]){"cluster.peers=2", NULL}), TN_E_CONFIG);
    done(&s); /* two, but nobody says which one this is */
}

TEST(a_launcher_says_rank_and_size)
{
    seat s;
    be("2", "3");
    assert_int_equal(find(&s, (const char *const[]){"run.dir=/tmp/x", NULL}), TN_OK);
    assert_int_equal(s.run.cluster.rank, 2);
    assert_int_equal(s.run.cluster.size, 3);
    assert_string_equal(s.run.cluster.membership->how, "rank 2 of 3 by TNET_RANK");
    done(&s);
    assert_int_equal(find(&s, (const char *const[]){"cluster.peers=4", NULL}), TN_E_CONFIG);
    done(&s);
    be("7", "3");
    assert_int_equal(find(&s, (const char *const[]){NULL}), TN_E_CONFIG);
    done(&s);
}

TEST(what_several_processes_cannot_do_is_refused)
{
    static const struct {
        const char *option, *says;
    } refused[] = {
        {"cluster.staleness=1.5", "'cluster.staleness' is 1.5, not a whole number of steps or inf"},
        {"data.train=-", "standard input, which several processes cannot share"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        seat s;
        be("0", "2");
        const char *const opts[] = {refused[i].option, "train.epochs=1", NULL};
        assert_int_equal(find(&s, opts), TN_E_CONFIG);
        fail_if(strstr(tn_text_str(&s.diag.text), refused[i].says) == NULL, "%s: %s",
                refused[i].option, tn_text_str(&s.diag.text));
        done(&s);
        be(NULL, NULL);
        assert_int_equal(find(&s, opts), TN_OK);
        done(&s);
    }
}

TEST(a_folder_that_is_in_use_is_refused_before_anybody_starts)
{
    tn_lock *lock = NULL;
    tn_error err = {0};
    tn_run run = {0};
    TMPDIR(dir);
    run.run.dir = dir;
    PATH_IN(sockets, dir, "eval/sockets");
    assert_int_equal(tn_group_built()->prepare(&run, 2, NULL, &err), TN_OK);
    assert_int_equal(tn_lock_take(&lock, dir, 1, &err), TN_OK);
    assert_int_equal(tn_group_built()->prepare(&run, 2, NULL, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "' is in use by pid "));
    assert_int_equal(tn_group_built()->prepare(&run, 2, "eval", &err),
                     TN_OK); /* whoever trains hinders nobody */
    tn_lock_release(lock);
    assert_int_equal(tn_dir_make(sockets, &err), TN_OK);
    assert_int_equal(tn_lock_name(&lock, sockets, "3.lock", &err), TN_OK);
    assert_int_equal(tn_group_built()->prepare(&run, 2, NULL, &err), TN_OK);
    assert_int_equal(tn_group_built()->prepare(&run, 2, "eval", &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "in use by another group of processes: '3.lock' is locked"));
    tn_lock_release(lock);
}
