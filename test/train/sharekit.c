/* sharekit.c - see sharekit.h. */
#include "train/sharekit.h"

#include "base/core/failpoint.h"
#include "base/math/crc32c.h"
#include "metrics/metrics.h"
#include "nn/graph/params.h"
#include "ps/optim/rule.h"
#include "ps/shard/dense.h"
#include "ps/table/table.h"
#include "support/test.h"
#include "train/checkpoint/ckptfiles.h"
#include "train/config/run.h"
#include "train/golden.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

enum { OVERRIDES_MAX = 16 };

static const tn_run_text text = {
    .config = "test\n", .hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};

/* ---- orders ---- */

static tn_status announce(void *arg, const tn_ckpt_order *order, tn_error *err)
{
    sharekit *k = arg;
    tn_status status = TN_OK;
    k->orders++;
    for (uint32_t r = 1; r < k->n && status == TN_OK; r++) {
        bool broken = r == k->broken;
        assert_int_equal(tn_failpoint_set(broken ? "io.fsync:ENOSPC" : NULL, NULL), TN_OK);
        status = tn_ckptshare_begin(&k->share[r], k->w[r], k->dir, order, err);
        tn_ckpt_wrote wrote;
        if (broken && status == TN_OK) { /* all of it, while its disk is full */
            tn_status ended = tn_ckptshare_end(k->share[r], &wrote, NULL);
            assert_int_equal(ended, TN_E_IO);
        }
    }
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    return status;
}

static tn_status collect(void *arg, tn_ckpt_files *files, tn_error *err)
{
    sharekit *k = arg;
    for (uint32_t r = k->n - 1; r > 0; r--) { /* they are ready in any order */
        tn_ckpt_wrote wrote;
        TN_TRY(tn_ckptshare_end(k->share[r], &wrote, err));
        assert_true(tn_ckptshare_written(k->share[r]));
        if (r != k->silent) {
            TN_TRY(tn_ckpt_files_add(files, &wrote, err));
        }
    }
    return TN_OK;
}

static void drop_shares(sharekit *k)
{
    for (uint32_t r = 1; r < k->n; r++) {
        tn_ckptshare_free(k->share[r]);
        k->share[r] = NULL;
    }
}

static void abandon(void *arg)
{
    sharekit *k = arg;
    k->abandoned++;
    drop_shares(k);
}

static tn_status load(void *arg, const char *path, bool goes_on, tn_error *err)
{
    sharekit *k = arg;
    k->loads++;
    for (uint32_t r = 1; r < k->n; r++) {
        tn_epoch_position stand = {0};
        assert_int_equal(tn_failpoint_set(r == k->hiccup ? "io.open:ESTALE" : NULL, NULL), TN_OK);
        tn_status status = tn_ckptshare_load(k->w[r], path, goes_on ? &stand : NULL, err);
        assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
        tn_epoch_position_done(&stand);
        TN_TRY(status);
    }
    return TN_OK;
}

/* ---- a group ---- */

static const tn_model_plan *plan_of(const sharekit *k, uint32_t rank, const char *const *more)
{
    char where[300];
    (void)snprintf(where, sizeof where, "run.dir=%s", k->dir);
    const char *overrides[OVERRIDES_MAX] = {where, "run.deterministic=true"};
    for (uint32_t i = 0; more != NULL && more[i] != NULL; i++) {
        assert_true(i + 3 < OVERRIDES_MAX);
        overrides[i + 2] = more[i];
    }
    return golden_plan_of(k->arena, "deepfm_bn", overrides, rank, k->n);
}

static void open_data(sharekit *k)
{
    tn_worker *w = k->w[0];
    tn_reader_opts reader = {.paths = w->plan->run->data.train, .batch_rows = 16, .training = true};
    tn_step_prefetch_opts opts = {.plan = w->plan, .ahead = 1, .training = true};
    assert_int_equal(tn_step_prefetch_open(&k->feeder, &opts, &reader, NULL), TN_OK);
    k->state.data = tn_epoch_parts_of(tn_step_prefetch_reader(k->feeder), NULL, k->arena);
}

void sharekit_open(sharekit *k, const char *dir, uint32_t n, const char *const *more)
{
    *k = (sharekit){.n = n, .arena = tn_arena_new(1 << 16)};
    (void)snprintf(k->dir, sizeof k->dir, "%s", dir);
    tn_binder b = {.arena = k->arena, .diag = &k->diag};
    tn_error err = {0};
    for (uint32_t r = 0; r < n; r++) {
        tn_worker_opts opts = {.training = true};
        assert_ok(tn_worker_new(&k->w[r], plan_of(k, r, more), &opts, &b, &err), err.text);
    }
    assert_ok(tn_checkpoints_open(&k->checkpoints, k->w[0]->plan, &text, &err), err.text);
    const tn_ckpt_peers peers = {announce, collect, abandon, load, k};
    if (n > 1) {
        tn_checkpoints_set_peers(k->checkpoints, &peers);
    }
    tn_metrics_opts metrics = {0};
    assert_int_equal(tn_metrics_new(&k->metrics, &metrics, NULL), TN_OK);
    k->dense = tn_try_alloc(tn_params_size(k->w[0]->params) + 1, sizeof *k->dense, "", NULL);
    assert_non_null(k->dense);
    open_data(k);
}

void sharekit_close(sharekit *k)
{
    tn_checkpoints_close(k->checkpoints);
    drop_shares(k);
    tn_step_prefetch_close(k->feeder);
    tn_metrics_free(k->metrics);
    tn_epoch_position_done(&k->state.stand);
    for (uint32_t r = 0; r < k->n; r++) {
        tn_worker_free(k->w[r]);
    }
    tn_free(k->dense);
    tn_diag_done(&k->diag);
    tn_arena_free(k->arena);
}

/* ---- steps ---- */

static float gradient(size_t i, uint64_t step)
{
    return (float)((i * 7 + step * 3) % 11) * 0.01F - 0.05F;
}

/* One worker's part of a step. */
static void learn_own(const sharekit *k, tn_worker *w, const tn_step *step)
{
    const size_t *cut = w->shares->dense + w->rank;
    uint32_t first[TN_PARTITIONS + 1];
    const tn_keyset slice = tn_shares_slice(&step->local->keys, w->rank, first);
    const tn_gradients grads = {.keys = &slice, .rows = step->grads, .dense = k->dense + cut[0]};
    const tn_push push = {.step = w->steps, .weight_sum = 1, .lr_factor = 1, .day = 7};
    assert_int_equal(tn_shard_pull(&w->shard, NULL, &slice, step->rows, NULL), TN_OK);
    assert_int_equal(tn_shard_apply(&w->shard, NULL, &grads, &push, 1, NULL), TN_OK);
    w->steps++;
    w->day = push.day;
}

/* Everybody sees the weights of all. */
static void spread_weights(const sharekit *k)
{
    for (uint32_t r = 0; k->n > 1 && r < k->n; r++) {
        const size_t *cut = k->w[r]->shares->dense + r;
        for (uint32_t to = 0; to < k->n; to++) {
            memcpy(tn_params_weights(k->w[to]->params) + cut[0], k->w[r]->own,
                   (cut[1] - cut[0]) * sizeof(float));
        }
    }
}

void sharekit_learn(sharekit *k, uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        tn_step *step = NULL;
        const uint64_t number = k->w[0]->steps;
        assert_int_equal(tn_step_prefetch_next(k->feeder, &step, NULL), TN_OK);
        for (size_t j = 0; j < step->local->keys.floats; j++) {
            step->grads[j] = gradient(j, number);
        }
        for (size_t j = 0; j < tn_params_size(k->w[0]->params); j++) {
            k->dense[j] = gradient(j, number);
        }
        for (uint32_t r = 0; r < k->n; r++) {
            learn_own(k, k->w[r], step);
        }
        spread_weights(k);
        k->state.progress = step->batch->progress;
        k->state.samples += step->batch->rows;
        k->state.steps = k->w[0]->steps;
        tn_step_prefetch_recycle(k->feeder, step);
    }
}

/* ---- checkpoints ---- */

tn_status sharekit_save(sharekit *k, bool delta, tn_saved *out, tn_error *err)
{
    const tn_ckpt_want want = {.state = &k->state, .metrics = k->metrics, .delta = delta};
    tn_status status = tn_checkpoints_begin(k->checkpoints, k->w[0], &want, err);
    if (status == TN_OK) {
        status = tn_checkpoints_end(k->checkpoints, out, err);
    }
    drop_shares(k);
    return status;
}

tn_status sharekit_resume(sharekit *k, tn_saved *out, tn_error *err)
{
    return tn_checkpoints_resume(k->checkpoints, k->w[0], &k->state, k->metrics, out, err);
}

static tn_status add_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    uint32_t *crc = arg;
    *crc = tn_crc32c(*crc, &row->key, sizeof row->key);
    *crc = tn_crc32c(*crc, &row->show, sizeof row->show);
    *crc = tn_crc32c(*crc, &row->click, sizeof row->click);
    *crc = tn_crc32c(*crc, row->data, row->n_floats * sizeof *row->data);
    return TN_OK;
}

static void check_copies(const sharekit *k)
{
    const size_t size = tn_params_size(k->w[0]->params) * sizeof(float);
    for (uint32_t r = 0; r < k->n; r++) {
        const tn_worker *w = k->w[r];
        const size_t *cut = w->shares->dense + r;
        const float *weights = tn_params_weights(w->params);
        assert_memory_equal(weights, tn_params_weights(k->w[0]->params), size);
        assert_true(w->own == NULL ||
                    memcmp(w->own, weights + cut[0], (cut[1] - cut[0]) * sizeof *weights) == 0);
        assert_int_equal(tn_dense_t(w->shard.dense), tn_dense_t(k->w[0]->shard.dense));
        assert_int_equal(w->steps, k->w[0]->steps);
    }
}

uint32_t sharekit_hash(const sharekit *k)
{
    const tn_worker *w0 = k->w[0];
    tn_state spec[TN_STATES_MAX];
    const uint32_t n_states = tn_dense_states(w0->shard.dense, spec);
    check_copies(k);
    uint32_t crc =
        tn_crc32c(0, tn_params_weights(w0->params), tn_params_size(w0->params) * sizeof(float));
    for (uint32_t i = 0; i < n_states; i++) {
        for (uint32_t r = 0; r < k->n; r++) {
            const size_t *cut = w0->shares->dense + r;
            crc = tn_crc32c(crc, tn_dense_state(k->w[r]->shard.dense, i),
                            (cut[1] - cut[0]) * sizeof(float));
        }
    }
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        for (uint32_t r = 0; r < k->n; r++) { /* all but the owner's add nothing */
            assert_int_equal(tn_table_walk(k->w[r]->shard.table, p, add_row, &crc, NULL), TN_OK);
        }
    }
    return crc;
}
