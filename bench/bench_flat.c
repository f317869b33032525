/* bench_flat.c - P7: what the unbounded table costs end to end, beside a plain array of rows.
 *
 *     bench_flat [--json] CONFIG IDS [SECONDS] [key=value ..]      default 1 second a turn
 *
 * CONFIG's slots hold IDS ids each, the first one 0 .. IDS-1, the next one those behind, as
 * `tnet-data gen preset=plain` makes them. Two models of it are trained in turns on the same
 * batches: one as it is, the other with its rows in one array, slot after slot, where a row is
 * found by its number alone. The array has the same weights and sums, no header, no counts, no key;
 * where the rows of a batch lie in it is worked out before the clock runs. Both hold all IDS x
 * slots rows from the start. All else is the same code: localizing, forward, backward, the
 * optimizer's update of rows, the dense weights.
 */
#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/keys/record.h"
#include "base/math/key.h"
#include "base/thread/team.h"
#include "base/thread/threads.h"
#include "figure.h"
#include "io/rows/batch.h"
#include "machine.h"
#include "nn/graph/embed.h"
#include "nn/graph/params.h"
#include "ps/optim/optim.h"
#include "ps/optim/rule.h"
#include "ps/table/table.h"
#include "rig.h"

#include "base/core/clock.h"
#include "nn/graph/graph.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TURNS = 9, OVERRIDES = 12, BATCHES = 200, TILE = 1024, AHEAD = 16, FLOATS = 16 };

/* Rows of FLOATS floats, a cache line each: weights of all segments, then one sum per segment. */
typedef struct flat {
    tn_rig *rig;
    const tn_record *record;
    uint64_t n;
    float *rows;
    uint32_t **place; /* per batch: the number of each of its keys' rows */
    uint32_t next;    /* batch, as the rig hands them out */
    /* of the step that is under way */
    const tn_keyset *keys;
    const uint32_t *at;
    float *copy;        /* pull fills it */
    const float *grads; /* push reads it */
} flat;

static void fail(const char *why)
{
    (void)fprintf(stderr, "bench_flat: %s\n", why);
    exit(1); // NOLINT(concurrency-mt-unsafe): the main thread
}

static void *big_pages(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        fail("not enough memory");
    }
    (void)madvise(p, size, MADV_HUGEPAGE);
    return p;
}

/* The row of every key of every batch, found by its slot and its id. */
static void number_batches(flat *f)
{
    tn_rig *rig = f->rig;
    const tn_layout *layout = rig->plan->layout;
    f->place = tn_alloc(rig->learned.n, sizeof(uint32_t *), "batches");
    for (uint32_t b = 0; b < rig->learned.n; b++) {
        tn_step *step = tn_rig_next(rig);
        const tn_keyset *keys = &step->local->keys;
        f->place[b] = tn_alloc(keys->n, sizeof(uint32_t), "rows of a batch");
        for (uint32_t i = 0; i < keys->n; i++) {
            uint64_t id = tn_sign_of(keys->key[i], layout->group[keys->group[i]].salt);
            if (id >= f->n) {
                fail("an id of the data is not below IDS x slots");
            }
            f->place[b][i] = (uint32_t)id;
        }
        tn_rig_done(rig, step);
    }
}

static void open_flat(flat *f, tn_rig *rig, uint64_t ids)
{
    const tn_layout *layout = rig->plan->layout;
    *f = (flat){.rig = rig, .record = &layout->record[0], .n = ids * layout->n_groups};
    if (layout->n_records != 1 || f->record->width + f->record->n_segments > FLOATS) {
        fail("wants one record of at most 16 floats, sums included");
    }
    f->rows = big_pages(f->n * FLOATS * sizeof(float));
    for (uint64_t i = 0; i < f->n; i++) {
        float *row = f->rows + i * FLOATS;
        for (uint32_t k = 0; k < FLOATS; k++) {
            row[k] = k < f->record->width ? 1e-3F * (float)((i + k) % 16) : 0.1F;
        }
    }
    number_batches(f);
}

/* All IDS rows of every slot in the table, as a long run leaves them. */
static void fill_table(tn_rig *rig, uint64_t ids)
{
    tn_error err = {0};
    const tn_layout *layout = rig->plan->layout;
    float data[FLOATS] = {0};
    for (uint32_t k = 0; k < layout->record[0].n_segments; k++) {
        tn_place_in_row at = tn_table_place(rig->worker->shard.table, 0, k);
        data[at.state[0]] = 0.1F;
    }
    tn_row_view row = {.present = (uint16_t)((1U << layout->record[0].n_segments) - 1),
                       .data = data,
                       .n_floats = layout->record[0].width + layout->record[0].n_segments};
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        for (uint64_t id = 0; id < ids; id++) {
            row.key = tn_key_of(g * ids + id, layout->group[g].salt);
            row.group = (uint16_t)g;
            if (tn_table_restore(rig->worker->shard.table, &row, &err) != TN_OK) {
                fail(err.text);
            }
        }
    }
}

static void pull_tile(void *job, uint32_t tile)
{
    const flat *f = job;
    tn_range r = tn_tile(f->keys->n, TILE, tile);
    uint32_t width = f->record->width;
    for (uint32_t i = r.from; i < r.to; i++) {
        uint32_t next = i + AHEAD < r.to ? i + AHEAD : i;
        __builtin_prefetch(f->rows + (size_t)f->at[next] * FLOATS, 1);
        const float *row = f->rows + (size_t)f->at[i] * FLOATS;
        float *to = f->copy + f->keys->at[i];
        for (uint32_t k = 0; k < width; k++) {
            to[k] = row[k];
        }
    }
}

/* The rows of one rule's run, segment by segment. */
static void update_run(const flat *f, uint32_t from, uint32_t n)
{
    float *w[TN_ROWS_MAX];
    const float *grad[TN_ROWS_MAX];
    const tn_rules *rules = f->rig->plan->rules;
    for (uint32_t s = 0; s < f->record->n_segments; s++) {
        const tn_segment *segment = &f->record->segment[s];
        const tn_rule *rule = &rules->rule[s]; /* all groups have the same */
        for (uint32_t i = 0; i < n; i++) {
            w[i] = f->rows + (size_t)f->at[from + i] * FLOATS + segment->at;
            grad[i] = f->grads + f->keys->at[from + i] + segment->at;
        }
        tn_row_run run = {.n = n,
                          .dim = segment->dim,
                          .w = w,
                          .grad = grad,
                          .state = {f->record->width + s - segment->at}};
        tn_update u = {.lr = tn_rule_common(rule)->lr, .t = 1, .step = 1};
        rule->optim->update_rows(rule->opts, &u, &run);
    }
}

static void push_tile(void *job, uint32_t tile)
{
    const flat *f = job;
    tn_range r = tn_tile(f->keys->n, TILE, tile);
    for (uint32_t i = r.from; i < r.to; i += TN_ROWS_MAX) {
        uint32_t n = r.to - i < TN_ROWS_MAX ? r.to - i : (uint32_t)TN_ROWS_MAX;
        uint32_t behind = i + n + TN_ROWS_MAX < r.to ? i + n + TN_ROWS_MAX : r.to;
        for (uint32_t k = i + n; k < behind; k++) {
            __builtin_prefetch(f->rows + (size_t)f->at[k] * FLOATS, 1);
        }
        update_run(f, i, n);
    }
}

/* What tn_step_learn does, with the array in the table's place. */
static void learn_flat(flat *f, tn_step *s)
{
    static const uint32_t none_first[TN_PARTITIONS + 1] = {0};
    tn_error err = {0};
    tn_worker *w = f->rig->worker;
    f->keys = &s->local->keys;
    f->copy = s->rows;
    f->grads = s->grads;
    uint32_t tiles = tn_tile_count(f->keys->n, TILE);
    tn_team_run(w->team, tiles, pull_tile, f);
    tn_sparse sparse = {.floats = f->keys->floats,
                        .rows = s->rows,
                        .grads = s->grads,
                        .bag = s->local->bag,
                        .block = s->local->block,
                        .n_blocks = s->local->n_blocks};
    tn_graph_feed feed = {.rows = s->batch->rows,
                          .sparse = &sparse,
                          .numeric = s->batch->numeric,
                          .label = s->batch->label,
                          .weight = s->batch->weight,
                          .info = {.seed = 1, .step = w->steps, .training = true}};
    tn_forward(w->train_graph, &feed);
    tn_backward(w->train_graph);
    tn_keyset none = {.owners = &f->rig->plan->owners, .first = none_first};
    tn_push push = {.step = w->steps, .weight_sum = s->weight_sum, .lr_factor = 1};
    const tn_gradients grads = {&none, s->grads, tn_params_grads(w->params), false};
    double norm = 0;
    if (tn_shard_push(&w->shard, w->team, &grads, &push, &norm, &err) != TN_OK) {
        fail(err.text);
    }
    tn_team_run(w->team, tiles, push_tile, f);
    w->steps++;
    tn_scored rows = {.n = s->batch->rows, .logit = w->train_logit->val, .label = s->batch->label};
    if (tn_metrics_add(f->rig->metrics, &rows, &err) != TN_OK) {
        fail(err.text);
    }
}

static tn_turn train_flat(flat *f, double seconds)
{
    tn_rig *rig = f->rig;
    tn_turn t = {0};
    double rate = 0;
    do {
        tn_turn_begin(&t);
        double from = tn_clock_s();
        uint64_t steps = 0;
        do {
            tn_step *step = tn_rig_next(rig);
            f->at = f->place[f->next];
            learn_flat(f, step);
            tn_rig_done(rig, step);
            f->next = (f->next + 1) % rig->learned.n;
            steps++;
        } while (tn_clock_s() - from < seconds);
        rate = (double)(steps * rig->run.train.batch) / (tn_clock_s() - from);
    } while (tn_turn_end(&t, rate));
    return t;
}

static void close_flat(flat *f)
{
    for (uint32_t b = 0; b < f->rig->learned.n; b++) {
        tn_free(f->place[b]);
    }
    tn_free(f->place);
    (void)munmap(f->rows, f->n * FLOATS * sizeof(float));
}

static void measure(const char *config, uint32_t n, const char *const *set, uint64_t ids,
                    double seconds, bool json)
{
    static tn_rig table;
    static tn_rig array;
    static flat f;
    static tn_samples ours;
    static tn_samples theirs;
    static tn_samples ratio;
    char what[128];
    char beside[64];
    ours.n = theirs.n = ratio.n = 0;
    tn_rig_open(&table, config, n, set);
    tn_rig_load(&table, BATCHES);
    fill_table(&table, ids);
    tn_rig_open(&array, config, n, set);
    tn_rig_load(&array, BATCHES);
    open_flat(&f, &array, ids);
    for (int i = 0; i < TURNS; i++) {
        double a = tn_rig_turn(&table, tn_rig_train_memory, seconds).rate;
        double b = train_flat(&f, seconds).rate;
        double c = tn_rig_turn(&table, tn_rig_train_memory, seconds).rate;
        tn_sample(&ours, (a + c) / 2e3);
        tn_sample(&theirs, b / 1e3);
        tn_sample(&ratio, 100 * (2 * b / (a + c) - 1));
    }
    (void)snprintf(beside, sizeof beside, "k rows/s with the array; the table's %.1f",
                   tn_spread_of(&ours).median);
    (void)snprintf(what, sizeof what, "table of %.1f M rows, %s: slower than an array",
                   1e-6 * (double)f.n, set[0]);
    tn_figure_print(&(tn_figure){.row = "P7",
                                 .what = what,
                                 .unit = "%",
                                 .is = tn_spread_of(&ratio),
                                 .yardstick = tn_spread_of(&theirs).median,
                                 .yardstick_is = beside,
                                 .target = 5,
                                 .at_most = true},
                    json);
    close_flat(&f);
    tn_rig_close(&table);
    tn_rig_close(&array);
}

int main(int argc, char **argv)
{
    bool json = tn_json_wanted(&argc, argv);
    uint64_t ids = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    double seconds = 1;
    const char *set[OVERRIDES + 1] = {"model.hidden=[128, 64, 32]"};
    uint32_t n = 1;
    if (ids == 0) {
        (void)fputs("usage: bench_flat [--json] CONFIG IDS [SECONDS] [key=value ..]\n", stderr);
        return 2;
    }
    tn_flush_denormals();
    int at = 3;
    if (argc > 3 && tn_read_f64(argv[3], strlen(argv[3]), &seconds) == TN_NUM_OK) {
        at++;
    }
    while (at < argc && n <= OVERRIDES) {
        set[n++] = argv[at++];
    }
    measure(argv[1], n, set, ids, seconds, json);
    set[0] = "model.hidden=[400, 400, 400]";
    measure(argv[1], n, set, ids, seconds, json);
    return 0;
}
