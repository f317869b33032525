/* test_joint_stats.c - a model with every kind of statistics, trained by one process and by
 * several on threads, over real sockets: batch norm, dice, data norm and a running zscore are those
 * of the joint batch. */

#include "cluster/launch/membership.h"
#include "config/diag.h"
#include "support/test.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/config.h"
#include "train/config/run_bind.h"
#include "train/model_hash.h"
#include "train/report/report.h"
#include "train/run/trainer.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <pthread.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

enum { PEERS_MAX = 3, BATCH = 8, STEPS = 10, PATH = 300, OVERRIDES = 6 };

static const char config[] =
    "data:\n"
    "  format: tsv\n"
    "  header: true\n"
    "  shuffle: 0\n"
    "  quote: multiline\n" /* a file is one part */
    "  label: {column: label}\n"
    "slots:\n"
    "  - {name: user}\n"
    "  - {name: item}\n"
    "  - {name: price, type: float, as: value, transform: zscore}\n"
    "embedding: {dim: 4, init: {normal: [0, 0.3]}}\n"
    "model:\n"
    "  type: graph\n"
    "  bias_init: 0\n"
    "  inputs:\n"
    "    deep: {embed: all}\n"
    "    num: {numeric: all}\n"
    "  layers:\n"
    "    - {name: past, data_norm: deep}\n"
    "    - {name: h1, dense: [past, num], units: 8, activation: relu, batch_norm: true, dropout: "
    "0.1}\n"
    "    - {name: h2, dense: h1, units: 6, activation: dice}\n"
    "    - {name: logit, dense: h2, units: 1}\n"
    "  output: logit\n"
    "train: {epochs: 2, optimizer: {type: sgd, lr: 0.1}, threads: 2}\n"
    "eval: {metrics: [auc, logloss]}\n"
    "log: {progress: false}\n";

static char dir[256];

/* ---- data ---- */

static void write_row(FILE *f, uint64_t i)
{
    const uint64_t stream = tn_stream2(5, 5, i);
    const double u = tn_unit(tn_draw(stream, 0));
    const uint32_t user = (uint32_t)(u * 9);
    const bool click = tn_unit(tn_draw(stream, 1)) < 0.2 + 0.06 * user;
    (void)fprintf(f, "%d\t%u\t%u\t%.3f\n", click, user, (uint32_t)(tn_draw(stream, 2) % 7),
                  tn_unit(tn_draw(stream, 3)) * 40);
}

/* Of a joint batch of `n` ranks, the rows of rank `rank`; n = 1: all of them. `ranks`: whose joint
 * batches they are. */
static void write_part(const char *name, uint32_t ranks, uint32_t rank, bool all)
{
    char path[PATH];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("label\tuser\titem\tprice\n", f);
    for (uint64_t i = 0; i < (uint64_t)BATCH * STEPS * ranks; i++) {
        if (all || i / BATCH % ranks == rank) {
            write_row(f, i);
        }
    }
    assert_int_equal(fclose(f), 0);
}

GROUP_SET_UP
{
    tn_tmpdir_make(dir);
    PATH_IN(path, dir, "c.yaml");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(config, f);
    assert_int_equal(fclose(f), 0);
    for (uint32_t n = 2; n <= PEERS_MAX; n++) {
        char name[32];
        (void)snprintf(name, sizeof name, "all%u.tsv", n);
        write_part(name, n, 0, true);
        for (uint32_t r = 0; r < n; r++) {
            (void)snprintf(name, sizeof name, "part%u-%u.tsv", n, r);
            write_part(name, n, r, false);
        }
    }
}

GROUP_TEAR_DOWN
{
    tn_tmpdir_remove(dir);
}

/* ---- runs ---- */

typedef struct rank_run {
    tn_arena *arena;
    const tn_model_plan *plan;
    tn_diag diag;
    tn_binder b;
    tn_status status;
    tn_error err;
    tn_outcome out;
    const atomic_bool *stop;
    pthread_t thread;
} rank_run;

typedef struct result {
    double logloss;
    uint64_t rows, steps;
    uint32_t hash;
} result;

static const tn_membership *membership_of(tn_arena *arena, const char *name, uint32_t rank,
                                          uint32_t n)
{
    tn_membership *r = TN_NEW(arena, tn_membership);
    const char **address = TN_NEW_ARRAY(arena, const char *, n);
    const char **host = TN_NEW_ARRAY(arena, const char *, n);
    for (uint32_t i = 0; i < n; i++) {
        char *at = TN_NEW_ARRAY(arena, char, PATH);
        (void)snprintf(at, PATH, "ipc://%s/%s-%u.sock", dir, name, i);
        address[i] = at;
    }
    *r = (tn_membership){.rank = rank,
                         .size = n,
                         .job = 77,
                         .address = address,
                         .host = host,
                         .bind = address[rank],
                         .how = "by hand"};
    return r;
}

static void plan_rank(rank_run *x, const char *const *overrides, const char *name, uint32_t rank,
                      uint32_t n)
{
    *x = (rank_run){.arena = tn_arena_new(1 << 16)};
    PATH_IN(path, dir, "c.yaml");
    tn_config_in in = {.fields = tn_run_fields, .path = path, .overrides = overrides};
    while (overrides[in.n_overrides] != NULL) {
        in.n_overrides++;
    }
    x->b = (tn_binder){.arena = x->arena, .diag = &x->diag};
    tn_run *run = TN_NEW(x->arena, tn_run);
    const tn_tree *tree = tn_config_load(&in, x->arena, &x->diag);
    if (tree != NULL) {
        tn_run_bind(&x->b, tree, run);
        if (n > 1) {
            run->cluster.rank = rank;
            run->cluster.size = n;
            run->cluster.membership = membership_of(x->arena, name, rank, n);
        }
    }
    fail_if(x->diag.n_errors > 0 || tn_model_plan_new(&x->plan, run, &x->b, &x->err) != TN_OK,
            "%s%s", tn_text_str(&x->diag.text), x->err.text);
}

static void *train(void *arg)
{
    rank_run *x = arg;
    const tn_run_text text = {.config = "test\n", .hash = HASH};
    const tn_watch watch = {.stop = x->stop};
    x->status = tn_train(x->plan, &text, &watch, &x->b, &x->out, &x->err);
    return NULL;
}

/* What the newest checkpoint holds, read by one process. */
static uint32_t hash_of(const char *const *overrides, const char *run_dir)
{
    rank_run x;
    tn_worker *w = NULL;
    tn_saved which;
    uint32_t hash = 0;
    plan_rank(&x, overrides, "", 0, 1);
    if (tn_worker_new(&w, x.plan, &(tn_worker_opts){.training = true}, &x.b, &x.err) != TN_OK ||
        tn_checkpoint_load(run_dir, w, &which, &x.err) != TN_OK ||
        model_hash(w, &hash, &x.err) != TN_OK) {
        fail_msg("%s", x.err.text);
    }
    tn_worker_free(w);
    tn_diag_done(&x.diag);
    tn_arena_free(x.arena);
    return hash;
}

/* `n` ranks train on the parts of `of`, `n` of them or one; all must succeed. */
static result run_ranks(const char *name, uint32_t n, const char *train_data, uint32_t batch,
                        const char *valid)
{
    rank_run x[PEERS_MAX];
    char word[4][PATH + 16];
    char run_dir[PATH];
    (void)snprintf(run_dir, sizeof run_dir, "%s/%s", dir, name);
    (void)snprintf(word[0], sizeof word[0], "run.dir=%s", run_dir);
    (void)snprintf(word[1], sizeof word[1], "data.train=%s/%s", dir, train_data);
    (void)snprintf(word[2], sizeof word[2], "data.valid=%s/%s", dir, valid);
    (void)snprintf(word[3], sizeof word[3], "train.batch=%u", batch);
    const char *overrides[OVERRIDES] = {word[0], word[1], word[2], word[3], NULL};
    for (uint32_t r = 0; r < n; r++) {
        plan_rank(&x[r], overrides, name, r, n);
    }
    for (uint32_t r = 0; r < n; r++) {
        assert_int_equal(pthread_create(&x[r].thread, NULL, train, &x[r]), 0);
    }
    for (uint32_t r = 0; r < n; r++) {
        assert_int_equal(pthread_join(x[r].thread, NULL), 0);
    }
    for (uint32_t r = 0; r < n; r++) {
        fail_if(x[r].status != TN_OK, "rank %u of %u: %s", r, n, x[r].err.text);
        assert_int_equal(x[r].out.steps, x[0].out.steps);
    }
    assert_non_null(x[0].out.valid.metrics);
    result out = {.logloss = tn_metrics_get(x[0].out.valid.metrics, "logloss"),
                  .rows = tn_metrics_rows(x[0].out.valid.metrics),
                  .steps = x[0].out.steps,
                  .hash = hash_of(overrides, run_dir)};
    for (uint32_t r = 0; r < n; r++) {
        tn_outcome_done(&x[r].out);
        tn_diag_done(&x[r].diag);
        tn_arena_free(x[r].arena);
    }
    return out;
}

static void assert_same_to_rounding(const result *got, const result *want)
{
    assert_int_equal(got->steps, want->steps);
    assert_int_equal(got->rows, want->rows);
    fail_if(!(fabs(got->logloss - want->logloss) <= 1e-6 * want->logloss), "%.17g, not %.17g",
            got->logloss, want->logloss);
}

/* ---- tests ---- */

TEST(statistics_of_several_ranks_are_those_of_the_joint_batch)
{
    for (uint32_t n = 2; n <= PEERS_MAX; n++) {
        char all[32];
        char parts[32];
        (void)snprintf(all, sizeof all, "all%u.tsv", n);
        (void)snprintf(parts, sizeof parts, "part%u-*.tsv", n);
        const result one = run_ranks(n == 2 ? "one2" : "one3", 1, all, BATCH * n, all);
        const result many = run_ranks(n == 2 ? "many2" : "many3", n, parts, BATCH, all);
        assert_int_equal(one.steps, 2 * STEPS);
        assert_same_to_rounding(&many, &one);
    }
}

/* Those without data make the same exchanges. */
TEST(ranks_without_data_change_nothing)
{
    const result one = run_ranks("alone", 1, "part2-0.tsv", BATCH, "all2.tsv");
    const result many = run_ranks("idle", PEERS_MAX, "part2-0.tsv", BATCH, "all2.tsv");
    assert_same_to_rounding(&many, &one);
}

TEST(two_runs_of_three_ranks_have_the_same_bits)
{
    const result a = run_ranks("bits-a", PEERS_MAX, "part3-*.tsv", BATCH, "all3.tsv");
    const result b = run_ranks("bits-b", PEERS_MAX, "part3-*.tsv", BATCH, "all3.tsv");
    assert_int_equal(a.hash, b.hash);
    assert_true(a.logloss >= b.logloss && a.logloss <= b.logloss);
}
