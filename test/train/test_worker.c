/* test_worker.c - a worker is made for every model, a step for every batch, whatever they lack. */
#include "config/diag.h"
#include "io/read/reader.h"
#include "nn/graph/params.h"
#include "ps/optim/optim.h"
#include "ps/optim/rule.h"
#include "support/test.h"
#include "train/config/run.h"
#include "train/golden.h"
#include "train/step/model_plan.h"
#include "train/step/step_prefetch.h"
#include "train/step/worker.h"

#include <sched.h>

/* All its weights are rows. */
TEST(a_model_without_dense_weights_has_a_worker)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const char *const model[] = {"model={type: graph, inputs: {wide: {embed: all, dim: 1}}, "
                                 "layers: [{name: z, sum: wide}], output: z}",
                                 NULL};
    const tn_model_plan *plan = golden_plan(arena, "lr", model);
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    tn_worker *w = NULL;
    assert_int_equal(tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, &b, NULL), TN_OK);
    assert_int_equal(tn_params_size(w->params), 0);
    tn_worker_free(w);
}

TEST(a_worker_keeps_its_thread_to_a_processor_while_it_is_pinned)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const char *const pinned[] = {"compute.pin=true", "train.threads=1", NULL};
    const tn_model_plan *plan = golden_plan(arena, "lr", pinned);
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    tn_worker *w = NULL;
    cpu_set_t before;
    cpu_set_t now;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, &b, NULL), TN_OK);
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_int_equal(CPU_COUNT(&now), 1);
    tn_worker_free(w);
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_true(CPU_EQUAL(&now, &before));
}

static void write_row_without_keys(const char *path)
{
    static const char text[] =
        "id\tprice\tlabel\tweight\tuser\titem\thist\ttags\ttags_x\tcity\trare\n"
        "r001\t\t1\t\t\t\t\t\t\t\t\n";
    tn_file *f = NULL;
    assert_int_equal(tn_file_create(&f, path, NULL), TN_OK);
    assert_int_equal(tn_file_write(f, text, sizeof text - 1, NULL), TN_OK);
    assert_int_equal(tn_file_commit(f, NULL), TN_OK);
}

/* Rows are addressed by sums that begin with `rows`: it may not be NULL. */
TEST(a_first_batch_without_keys_has_rows)
{
    char train[320];
    TMPDIR(dir);
    PATH_IN(path, dir, "one.tsv");
    (void)snprintf(train, sizeof train, "data.train=%s", path);
    write_row_without_keys(path);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const tn_model_plan *plan = golden_plan(arena, "deepfm", (const char *const[]){train, NULL});
    tn_reader_opts opts = {.paths = plan->run->data.train, .batch_rows = 32, .training = true};
    tn_step_prefetch_opts feeding = {.plan = plan, .ahead = 1, .training = true};
    tn_step_prefetch *feeder = NULL;
    tn_step *step = NULL;
    assert_int_equal(tn_step_prefetch_open(&feeder, &feeding, &opts, NULL), TN_OK);
    assert_int_equal(tn_step_prefetch_next(feeder, &step, NULL), TN_OK);
    assert_int_equal(step->batch->rows, 1);
    assert_int_equal(step->local->keys.n, 0);
    assert_non_null(step->rows);
    assert_non_null(step->grads);
    tn_step_prefetch_recycle(feeder, step);
    tn_step_prefetch_close(feeder);
}

/* Servers that are told a loss, and do nothing. */
static tn_status note_loss(void *self, tn_team *team, const tn_client_gradients *grads,
                           const tn_push *push, tn_client_update *out, tn_error *err)
{
    (void)team;
    (void)push;
    (void)err;
    *(double *)self = grads->loss;
    *out = (tn_client_update){0};
    return TN_OK;
}

/* Of the first 32 rows, as rank `rank` of three that do not wait for each other sees them. */
static double loss_of_first_batch(uint32_t rank, const char *dropout)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const char *const opts[] = {dropout, "cluster.staleness=1", NULL};
    const tn_model_plan *plan = golden_plan_of(arena, "deepfm", opts, rank, 3);
    tn_reader_opts reading = {.paths = plan->run->data.train, .batch_rows = 32, .training = true};
    tn_step_prefetch_opts feeding = {.plan = plan, .ahead = 1, .training = true};
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    tn_step_prefetch *feeder = NULL;
    tn_step *step = NULL;
    tn_worker *w = NULL;
    double loss = 0;
    assert_int_equal(tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, &b, NULL), TN_OK);
    assert_int_equal(tn_step_prefetch_open(&feeder, &feeding, &reading, NULL), TN_OK);
    assert_int_equal(tn_step_prefetch_next(feeder, &step, NULL), TN_OK);
    for (size_t i = 0; i < step->local->keys.floats; i++) {
        step->rows[i] = (float)(i % 7) * .1F;
    }
    const tn_client_ops servers = {.push = note_loss};
    const tn_joint_batch batch = {.rows = 32, .weight_sum = 32};
    tn_learned learned;
    w->client = (tn_client){&servers, &loss};
    assert_int_equal(tn_step_update(w, step, &batch, 1, &learned, NULL), TN_OK);
    w->client = (tn_client){0};
    tn_step_prefetch_recycle(feeder, step);
    tn_step_prefetch_close(feeder);
    tn_worker_free(w);
    return loss;
}

/* Else each unit that one leaves out would be left out of every batch of that step. */
TEST(ranks_that_do_not_wait_drop_units_of_their_own)
{
    double loss[3];
    for (uint32_t r = 0; r < 3; r++) {
        loss[r] = loss_of_first_batch(r, "model.dropout=0.5");
        assert_true(loss_of_first_batch(r, "model.dropout=0.5") == loss[r]);
        assert_true(loss_of_first_batch(r, "model.dropout=0") ==
                    loss_of_first_batch(0, "model.dropout=0"));
    }
    assert_true(loss[0] != loss[1] && loss[1] != loss[2] && loss[0] != loss[2]);
}

/* What --print-config shows as {lr: 5} is the default rule with that rate. */
TEST(a_rate_alone_changes_the_default_rule)
{
    static const char *const rates[][4] = {
        {"slots=[{name: user}]", "model={type: fm}", NULL, NULL},
        {"slots=[{name: user}]", "model={type: fm}", "train.sparse.lr=5", NULL}};
    for (uint32_t i = 0; i < 2; i++) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
        const tn_model_plan *plan = golden_plan(arena, "common", rates[i]);
        const tn_rule_opts *o = tn_rule_common(&plan->rules->rule[0]);
        assert_string_equal(plan->rules->rule[0].optim->choice.name, "adagrad");
        assert_float_equal((float)o->lr, i == 0 ? 0.1F : 5, 1e-6F);
        assert_int_equal(o->grad_scale, TN_SCALE_SUM);
    }
}
