/* ckptrun.c - see ckptrun.h. */
#include "ckptrun.h"

#include "base/core/clock.h"
#include "base/keys/record.h"
#include "base/math/key.h"
#include "base/math/rng.h"
#include "base/thread/threads.h"
#include "config/diag.h"
#include "io/format/format.h"
#include "models/model.h"
#include "nn/graph/op.h"
#include "ps/table/table.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 1024, SLOTS = 39 };

void tn_bench_check(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        (void)fprintf(stderr, "bench_checkpoint: %s\n", err->text);
        exit(1); // NOLINT(concurrency-mt-unsafe): nothing else matters then
    }
}

/* Ids as speed.yaml has them: 13 small slots, 26 of 38,411 ids. */
static void write_data(const char *path)
{
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        perror(path);
        exit(1); // NOLINT(concurrency-mt-unsafe): as above
    }
    uint64_t stream = tn_stream2(1, TN_RNG_ROW, 0);
    for (uint64_t row = 0; row < (uint64_t)TN_BENCH_BATCHES * BATCH; row++) {
        (void)fprintf(f, "%u", (unsigned)(row % 4 == 0));
        for (uint64_t s = 0; s < SLOTS; s++) {
            uint64_t size = s < 13 ? 100 : 38411;
            uint64_t first = s < 13 ? 1 + 100 * s : 1301 + 38411 * (s - 13);
            uint64_t id = first + tn_below(tn_draw(stream, row * SLOTS + s), size);
            (void)fprintf(f, " %llu:1", (unsigned long long)id);
        }
        (void)fputc('\n', f);
    }
    (void)fclose(f);
}

static const char *format_preset(const char *name)
{
    const tn_format *f = tn_format_find(name);
    return f != NULL ? f->preset : NULL;
}

static void configure(tn_bench_run *b, uint32_t n_more, char *const *more)
{
    static const tn_presets presets = {.format = format_preset, .model = tn_model_preset};
    const char **set = TN_NEW_ARRAY(b->arena, const char *, n_more + 8);
    char *train = TN_NEW_ARRAY(b->arena, char, TN_PATH_SIZE + 16);
    char *dir = TN_NEW_ARRAY(b->arena, char, TN_PATH_SIZE + 16);
    (void)snprintf(train, TN_PATH_SIZE + 16, "data.train=%s", b->data);
    (void)snprintf(dir, TN_PATH_SIZE + 16, "run.dir=%s", b->dir);
    uint32_t n = 0;
    set[n++] = train;
    set[n++] = dir;
    set[n++] = "model.hidden=[128, 64, 32]";
    set[n++] = "train.threads=1";
    set[n++] = "checkpoint.delta_every=1step";
    set[n++] = "checkpoint.keep=1";
    for (uint32_t i = 0; i < n_more; i++) {
        set[n++] = more[i];
    }
    tn_config_in in = {.fields = tn_run_fields,
                       .presets = &presets,
                       .path = "bench/configs/speed.yaml",
                       .overrides = set,
                       .n_overrides = n};
    tn_binder binder = {.arena = b->arena, .diag = &b->diag};
    tn_error err = {0};
    const tn_tree *tree = tn_config_load(&in, b->arena, &b->diag);
    if (tree != NULL) {
        tn_run_bind(&binder, tree, &b->run);
    }
    (void)fputs(tn_text_str(&b->diag.text), stderr);
    tn_bench_check(tn_diag_check(&b->diag, &err), &err);
    tn_bench_check(tn_model_plan_new(&b->plan, &b->run, &binder, &err), &err);
    tn_bench_check(
        tn_worker_new(&b->worker, b->plan, &(tn_worker_opts){.training = true}, &binder, &err),
        &err);
}

static void open_run(tn_bench_run *b)
{
    static const tn_run_text text = {
        .config = "bench\n",
        .hash = "0000000000000000000000000000000000000000000000000000000000000000"};
    tn_error err = {0};
    tn_metrics_opts metrics = {0};
    tn_reader_opts opts = {.paths = b->run.data.train,
                           .batch_rows = BATCH,
                           .training = true,
                           .prefetch = TN_BENCH_BATCHES};
    tn_bench_check(tn_metrics_new(&b->metrics, &metrics, &err), &err);
    tn_bench_check(tn_checkpoints_open(&b->checkpoints, b->plan, &text, &err), &err);
    tn_bench_check(tn_reader_open(&b->reader, b->plan->schema, &opts, &err), &err);
    tn_bench_check(tn_step_new(&b->step, b->plan, true, &err), &err);
    b->state.data = tn_epoch_parts_of(b->reader, NULL, b->arena);
    while (b->n < TN_BENCH_BATCHES && tn_reader_next(b->reader, &b->batch[b->n], &err) == TN_OK) {
        b->n++;
    }
}

/* Rows that training does not meet. */
static void fill_table(tn_bench_run *b, uint64_t rows)
{
    float data[TN_DIM_MAX] = {0};
    tn_error err = {0};
    const tn_layout *layout = b->plan->layout;
    const tn_record *record = tn_record_of(layout, 0);
    tn_row_view view = {.present = (uint16_t)((1U << record->n_segments) - 1), .data = data};
    for (uint32_t s = 0; s < record->n_segments; s++) {
        tn_place_in_row place = tn_table_place(b->worker->shard.table, layout->group[0].record, s);
        view.n_floats += record->segment[s].dim;
        for (uint32_t i = 0; i < place.n_states; i++) {
            view.n_floats += place.spec[i].per_row ? 1 : record->segment[s].dim;
        }
    }
    TN_ASSERT(view.n_floats > 0);
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        tn_refill r;
        tn_refill_begin(&r, b->worker->shard.table, p);
        for (uint64_t i = 0; i < rows / TN_PARTITIONS; i++) {
            view.key = (uint64_t)p << 54 | (tn_mix(i + 1) >> 10);
            // cppcheck-suppress unreadVariable // through view.data
            data[i % view.n_floats] = (float)(view.key & 0xffff) * 1e-5F;
            tn_bench_check(tn_refill_add(&r, &view, &err), &err);
        }
        tn_refill_end(&r);
    }
}

void tn_bench_run_learn(tn_bench_run *b)
{
    tn_error err = {0};
    tn_learned learned;
    double begin = tn_clock_s();
    tn_bench_check(tn_step_prepare(b->step, b->batch[b->next], &err), &err);
    b->next = (b->next + 1) % b->n;
    tn_bench_check(tn_step_learn(b->worker, b->step, 1, &learned, &err), &err);
    tn_scored rows = {.n = b->step->batch->rows,
                      .logit = b->worker->train_logit->val,
                      .label = b->step->batch->label,
                      .weight = b->step->batch->weight};
    tn_bench_check(tn_metrics_add(b->metrics, &rows, &err), &err);
    b->state.steps = b->worker->steps;
    b->state.samples += BATCH;
    b->step_s[b->n_steps++ % TN_BENCH_STEPS_MAX] = tn_clock_s() - begin;
}

void tn_bench_run_open(tn_bench_run *b, uint64_t rows, uint32_t n_more, char *const *more)
{
    tn_flush_denormals();
    b->arena = tn_arena_new(1 << 18);
    write_data(b->data);
    configure(b, n_more, more);
    open_run(b);
    fill_table(b, rows);
}

void tn_bench_run_close(tn_bench_run *b)
{
    tn_step_free(b->step);
    tn_reader_close(b->reader);
    tn_checkpoints_close(b->checkpoints);
    tn_metrics_free(b->metrics);
    tn_worker_free(b->worker);
    tn_diag_done(&b->diag);
    tn_arena_free(b->arena);
}
