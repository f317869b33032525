/* test_golden.c - eight small models train like an independent program that works in double.
 *
 * Start weights and rows come from test/golden/models.tar.gz (test/golden/README.md); every
 * step's loss and gradient norm, the gradients of step 1, the predictions after each epoch, all
 * final weights, states and counters are compared within the tolerances of each case.
 */
#include "base/core/number.h"
#include "base/keys/record.h"
#include "base/math/crc32c.h"
#include "base/math/key.h"
#include "config/absent.h"
#include "config/diag.h"
#include "config/tree.h"
#include "io/schema/schema.h"
#include "nn/graph/params.h"
#include "ps/optim/optim.h"
#include "ps/optim/schedule.h"
#include "ps/shard/dense.h"
#include "ps/table/table.h"
#include "support/test.h"
#include "train/begin/import.h"
#include "train/config/run.h"
#include "train/eval/evaluate.h"
#include "train/golden.h"
#include "train/model_hash.h"
#include "train/step/model_plan.h"
#include "train/step/step_prefetch.h"
#include "train/step/worker.h"

TMPDIR_UNPACKED(models, "models");

typedef struct trial {
    golden_case c;
    char folder[300];
    const tn_model_plan *plan;
    tn_worker *w;
    golden_table steps, pred;
    uint32_t row; /* of pred, while evaluating */
    const char *logit_column;
    uint32_t bits; /* CRC of every loss, norm and logit so far */
} trial;

static void check(tn_status status, const tn_error *err)
{
    assert_ok(status, err->text);
}

static void compare(trial *t, const char *file, const char *name, const char *where, double got,
                    double want)
{
    golden_compare(&t->c, file, name, where, (const double[]){got, want});
}

/* ---- start ---- */

static void load_start(trial *t)
{
    PATH_IN(rows, t->c.folder, "init.tsv");
    PATH_IN(dense, t->c.folder, "init.safetensors");
    tn_origin at = {.source = "test"};
    tn_tree *from = tn_tree_new(t->c.arena, TN_TREE_MAP, at);
    tn_tree_put(t->c.arena, from, "rows", tn_tree_scalar(t->c.arena, rows, at));
    tn_tree_put(t->c.arena, from, "dense", tn_tree_scalar(t->c.arena, dense, at));
    tn_error err = {0};
    check(tn_import(from, t->w, NULL, &err), &err);
}

static void set_up(trial *t, const char *name, const char *const *overrides)
{
    *t = (trial){.c = {.arena = tn_arena_new(1 << 20), .folder = t->folder}};
    (void)snprintf(t->folder, sizeof t->folder, "%s/%s", models, name);
    t->c.tolerance = golden_read(&t->c, "tolerance.tsv");
    t->steps = golden_read(&t->c, "steps.tsv");
    t->pred = golden_read(&t->c, "pred.tsv");
    t->plan = golden_plan(t->c.arena, name, overrides);
    tn_diag diag = {0};
    tn_error err = {0};
    tn_binder b = {.arena = t->c.arena, .diag = &diag};
    check(tn_worker_new(&t->w, t->plan, &(tn_worker_opts){.training = true}, &b, &err), &err);
    load_start(t);
}

static void tear_down(trial *t)
{
    tn_worker_free(t->w);
    tn_arena_free(t->c.arena);
}

/* ---- gradients of step 1 ---- */

static void compare_dense_gradients(trial *t)
{
    tn_safetensors want = golden_tensors(&t->c, "grad.safetensors");
    for (uint32_t i = 0; i < want.n_tensors; i++) {
        const tn_tensor *tensor = &want.tensor[i];
        const tn_param_slice *s = tn_params_find(t->w->params, tensor->name);
        if (s == NULL) {
            fail_msg("no parameter '%s'", tensor->name);
            return;
        }
        size_t n = (size_t)s->rows * s->cols;
        assert_int_equal(tensor->size, n * sizeof(float));
        for (size_t k = 0; k < n && s->train; k++) {
            float value = 0;
            memcpy(&value, tensor->data + k * sizeof value, sizeof value);
            compare(t, "grad.safetensors", tensor->name, "",
                    (double)tn_params_grads(t->w->params)[s->at + k], (double)value);
        }
    }
}

static uint64_t key_of(const golden_table *table, uint32_t row)
{
    const char *sign = golden_field(table, row, "sign");
    uint64_t value = 0;
    assert_int_equal(tn_read_u64(sign, strlen(sign), &value), TN_NUM_OK);
    return tn_key_of(value, tn_salt(golden_field(table, row, "group")));
}

/* Numbers with blanks between them; returns how many. */
static uint32_t read_vector(const char *text, double *out, uint32_t n_max)
{
    uint32_t n = 0;
    while (*text != '\0') {
        size_t size = strcspn(text, " ");
        assert_true(n < n_max);
        assert_int_equal(tn_read_f64(text, size, &out[n++]), TN_NUM_OK);
        text += size + (text[size] == ' ');
    }
    return n;
}

static void compare_row_gradients(trial *t, const tn_step *step)
{
    golden_table want = golden_read(&t->c, "grad.tsv");
    const tn_keyset *keys = &step->local->keys;
    for (uint32_t r = 0; r < want.n_rows; r++) {
        uint64_t key = key_of(&want, r);
        uint32_t i = 0;
        while (i < keys->n && keys->key[i] != key) {
            i++;
        }
        assert_true(i < keys->n);
        const char *name = golden_field(&want, r, "segment");
        const tn_record *record = tn_record_of(t->plan->layout, keys->group[i]);
        uint32_t s = 0;
        while (strcmp(record->segment[s].name, name) != 0) {
            s++;
        }
        double value[64] = {0};
        uint32_t n = read_vector(golden_field(&want, r, "gradient"), value, 64);
        assert_int_equal(n, record->segment[s].dim);
        for (uint32_t k = 0; k < n; k++) {
            compare(t, "grad.tsv", name, golden_field(&want, r, "sign"),
                    (double)step->grads[keys->at[i] + record->segment[s].at + k], value[k]);
        }
    }
}

/* ---- predictions ---- */

static tn_status compare_scores(void *arg, const tn_scores *scores, tn_error *err)
{
    (void)err;
    trial *t = arg;
    for (uint32_t i = 0; i < scores->batch->rows; i++) {
        const char *id = golden_field(&t->pred, t->row, "id");
        const tn_batch *batch = scores->batch;
        assert_memory_equal(batch->id_text + batch->id_offset[i], id, strlen(id));
        compare(t, "pred.tsv", t->logit_column, id, (double)scores->logit[i],
                golden_number(&t->pred, t->row, t->logit_column));
        t->row++;
    }
    t->bits = tn_crc32c(t->bits, scores->logit, scores->batch->rows * sizeof *scores->logit);
    return TN_OK;
}

static void evaluate(trial *t, uint32_t epoch)
{
    static const char *const columns[] = {"logit0", "logit1", "logit2", "logit3"};
    t->row = 0;
    t->logit_column = columns[epoch];
    tn_eval_request request = {.paths = &t->plan->run->data.valid,
                               .want_ids = true,
                               .sink = compare_scores,
                               .sink_arg = t};
    tn_evaluation result CLEANUP(tn_evaluation_done);
    tn_error err = {0};
    uint64_t rows = tn_table_rows(t->w->shard.table);
    check(tn_evaluate(t->w, &request, &result, &err), &err);
    assert_int_equal(t->row, t->pred.n_rows);
    assert_int_equal(tn_table_rows(t->w->shard.table), rows); /* r4: evaluation makes no row */
    golden_table want = golden_read(&t->c, "metrics.tsv");
    compare(t, "metrics.tsv", "auc_hist_w", "", tn_metrics_get(result.metrics, "auc"),
            golden_number(&want, epoch, "auc_hist_w"));
    compare(t, "metrics.tsv", "logloss_w", "", tn_metrics_get(result.metrics, "logloss"),
            golden_number(&want, epoch, "logloss_w"));
    compare(t, "metrics.tsv", "copc_w", "", tn_metrics_get(result.metrics, "copc"),
            golden_number(&want, epoch, "copc_w"));
}

/* ---- steps ---- */

static void learn(trial *t, tn_step *step)
{
    uint32_t row = (uint32_t)t->w->steps;
    char where[32];
    (void)snprintf(where, sizeof where, "step %u", row + 1);
    assert_true(row < t->steps.n_rows);
    assert_int_equal(step->batch->rows, (uint32_t)golden_number(&t->steps, row, "rows"));
    const tn_rule_opts *dense = t->plan->run->train.optimizer.opts;
    double factor = tn_schedule_factor(&dense->schedule, t->w->steps, 24);
    double want = golden_number(&t->steps, row, "lr_factor");
    assert_true(fabs(factor - want) <= 1e-9 * fmax(1, want));
    tn_learned learned;
    tn_error err = {0};
    check(tn_step_learn(t->w, step, factor, &learned, &err), &err);
    compare(t, "steps.tsv", "loss", where, learned.loss, golden_number(&t->steps, row, "loss"));
    compare(t, "steps.tsv", "grad_norm", where, learned.grad_norm,
            golden_number(&t->steps, row, "grad_norm"));
    t->bits = tn_crc32c(t->bits, &learned.loss, sizeof learned.loss);
    t->bits = tn_crc32c(t->bits, &learned.grad_norm, sizeof learned.grad_norm);
    if (row == 0) {
        compare_dense_gradients(t);
        compare_row_gradients(t, step);
    }
}

static void run_epoch(trial *t, uint32_t epoch)
{
    const tn_run *run = t->plan->run;
    tn_reader_opts opts = {.paths = run->data.train,
                           .batch_rows = run->train.batch,
                           .training = true,
                           .seed = run->run.seed,
                           .from = {.epoch = epoch},
                           .prefetch = 2};
    tn_step_prefetch *feeder = NULL;
    tn_error err = {0};
    tn_step_prefetch_opts feeding = {
        .plan = t->plan, .team = t->w->team, .ahead = 2, .training = true};
    check(tn_step_prefetch_open(&feeder, &feeding, &opts, &err), &err);
    tn_step *step = NULL;
    tn_status status;
    while ((status = tn_step_prefetch_next(feeder, &step, &err)) == TN_OK) {
        learn(t, step);
        tn_step_prefetch_recycle(feeder, step);
    }
    fail_if(status != TN_END, "%s", err.text);
    tn_step_prefetch_close(feeder);
}

/* ---- the end ---- */

static void compare_dense(trial *t)
{
    tn_safetensors want = golden_tensors(&t->c, "final.safetensors");
    tn_state spec[TN_STATES_MAX];
    uint32_t n_states = tn_dense_states(t->w->shard.dense, spec);
    for (uint32_t i = 0; i < want.n_tensors; i++) {
        const tn_tensor *tensor = &want.tensor[i];
        const float *got = NULL;
        const tn_param_slice *s = tn_params_find(t->w->params, tensor->name);
        if (s != NULL) {
            got = tn_params_weights(t->w->params) + s->at;
        }
        for (uint32_t k = 0; k < n_states && got == NULL; k++) {
            size_t cut = strlen(tensor->name) - strlen(spec[k].name) - 1;
            char name[200];
            (void)snprintf(name, sizeof name, "%.*s", (int)cut, tensor->name);
            s = strcmp(tensor->name + cut + 1, spec[k].name) == 0
                    ? tn_params_find(t->w->params, name)
                    : NULL;
            got = s != NULL ? tn_dense_state(t->w->shard.dense, k) + s->at : NULL;
        }
        if (got == NULL) {
            fail_msg("no parameter or state '%s'", tensor->name);
            return;
        }
        for (size_t k = 0; k < tensor->size / sizeof(float); k++) {
            float value = 0;
            memcpy(&value, tensor->data + k * sizeof value, sizeof value);
            compare(t, "final.safetensors", tensor->name, "", (double)got[k], (double)value);
        }
    }
}

typedef struct walk {
    trial *t;
    golden_table want;
    uint32_t row;
} walk;

static void compare_array(walk *w, const char *column, const float *got, uint32_t n)
{
    double value[64] = {0};
    const char *sign = golden_field(&w->want, w->row, "sign");
    uint32_t n_want = read_vector(golden_field(&w->want, w->row, column), value, 64);
    assert_int_equal(n_want, n);
    for (uint32_t k = 0; k < n; k++) {
        compare(w->t, "final.tsv", column, sign, (double)got[k], value[k]);
    }
}

static void compare_count(walk *w, const char *column, const float *got)
{
    uint32_t count = 0;
    memcpy(&count, got, sizeof count);
    assert_int_equal(count, (uint32_t)golden_number(&w->want, w->row, column));
}

static tn_status compare_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    walk *w = arg;
    const tn_layout *layout = w->t->plan->layout;
    assert_true(w->row < w->want.n_rows);
    assert_true(row->key == key_of(&w->want, w->row)); /* the same rows, in order of keys */
    assert_string_equal(layout->group[row->group].name, golden_field(&w->want, w->row, "group"));
    assert_true(row->show == golden_number(&w->want, w->row, "show"));
    assert_true(row->click == golden_number(&w->want, w->row, "click"));
    const tn_record *record = tn_record_of(layout, row->group);
    for (uint32_t s = 0; s < record->n_segments; s++) {
        tn_place_in_row at =
            tn_table_place(w->t->w->shard.table, layout->group[row->group].record, s);
        const char *name = record->segment[s].name;
        compare_array(w, name, row->data + at.w, record->segment[s].dim);
        for (uint32_t k = 0; k < at.n_states; k++) {
            char column[64];
            (void)snprintf(column, sizeof column, "%s.%s", name, at.spec[k].name);
            const float *state = row->data + at.state[k];
            if (at.spec[k].count) {
                compare_count(w, column, state);
            } else {
                compare_array(w, column, state, at.spec[k].per_row ? 1 : record->segment[s].dim);
            }
        }
    }
    w->row++;
    return TN_OK;
}

static void compare_rows(trial *t)
{
    walk w = {.t = t, .want = golden_read(&t->c, "final.tsv")};
    tn_error err = {0};
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        check(tn_table_walk(t->w->shard.table, p, compare_row, &w, &err), &err);
    }
    assert_int_equal(w.row, w.want.n_rows);
}

/* All that a run computed, as bits. */
typedef struct outcome {
    uint32_t learned; /* weights, states, counters: model_hash */
    uint32_t seen;    /* losses, norms, logits */
} outcome;

static outcome trains_like(const char *name, const char *threads)
{
    trial t CLEANUP(tear_down);
    outcome out = {0};
    tn_error err = {0};
    set_up(&t, name, (const char *const[]){threads, NULL});
    evaluate(&t, 0);
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        run_epoch(&t, epoch);
        evaluate(&t, epoch + 1);
    }
    compare_dense(&t);
    compare_rows(&t);
    print_message("    %-16s largest deviation %.2f of its tolerance, %s\n", name, t.c.worst,
                  threads);
    assert_int_equal(t.c.n_failed, 0);
    check(model_hash(t.w, &out.learned, &err), &err);
    out.seen = t.bits;
    return out;
}

/* Within the tolerances, and the same bits, at 1, 2 and 4 threads. */
static void trains_like_at_any_number_of_threads(const char *name)
{
    static const char *const threads[] = {"train.threads=1", "train.threads=2", "train.threads=4"};
    outcome alone = trains_like(name, threads[0]);
    for (uint32_t i = 1; i < 3; i++) {
        outcome team = trains_like(name, threads[i]);
        assert_int_equal(team.seen, alone.seen);
        assert_int_equal(team.learned, alone.learned);
    }
}

#define GOLDEN(name)                                                                               \
    TEST(golden_##name)                                                                            \
    {                                                                                              \
        if (tn_is_absent("dump")) {                                                                \
            skip(); /* their first rows are a dump */                                              \
            return;                                                                                \
        }                                                                                          \
        trains_like_at_any_number_of_threads(#name);                                               \
    }

GOLDEN(lr)
GOLDEN(fm)
GOLDEN(widedeep)
GOLDEN(widedeep_concat)
GOLDEN(deepfm)
GOLDEN(deepfm_bn)
GOLDEN(dcn)
GOLDEN(dcnv2)
