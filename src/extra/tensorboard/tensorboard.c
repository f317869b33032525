/* tensorboard.c - points, histograms and texts of a run, and when they are written. */
#include "extra/tensorboard/tensorboard.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "config/diag.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "extra/tensorboard/event_file.h"
#include "nn/graph/params.h"
#include "ps/table/table.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HISTOGRAMS_APART_S 60.0

enum { ROWS_LOOKED_AT = 20000, TAG_SIZE = 320 };

/* TensorBoard calls these runs: a tag is one chart with a curve of each. */
enum { OF_TRAIN, OF_VALID, OF_TEST, OF_NEXT, RUNS };
static const char *const folders[RUNS] = {"tb/train", "tb/valid", "tb/test", "tb/next"};

struct tn_tensorboard {
    tn_tensorboard_opts opts;
    tn_event_file *file[RUNS]; /* NULL: not begun, or off */
    double drawn;              /* when histograms were; monotonic seconds */
    uint64_t step;             /* step of the last `train` record */
    uint64_t drawn_step;       /* step of the last one with histograms */
    bool off;
};

/* Whatever failed, once. */
static void give_up(tn_tensorboard *b, const tn_error *err)
{
    b->off = true;
    tn_log(TN_LOG_WARN, "nothing more is written for TensorBoard (log.tensorboard): %s", err->text);
}

/* The file of a run, opened when it is first needed. */
static tn_event_file *file_of(tn_tensorboard *b, uint32_t run)
{
    TN_ASSERT(run < RUNS);
    if (b->file[run] == NULL && !b->off) {
        char folder[TN_PATH_SIZE];
        tn_error err;
        tn_status status = tn_path_join(b->opts.dir, folders[run], folder, &err);
        if (status == TN_OK) {
            status = tn_event_file_open(&b->file[run], folder, tn_wall_s(), b->opts.first, &err);
        }
        if (status != TN_OK) {
            give_up(b, &err);
        }
    }
    return b->off ? NULL : b->file[run];
}

/* `data`: valid, test, or the day that comes next; NULL: a record of training. */
static uint32_t run_of(const char *data)
{
    return data == NULL                 ? OF_TRAIN
           : strcmp(data, "valid") == 0 ? OF_VALID
           : strcmp(data, "test") == 0  ? OF_TEST
                                        : OF_NEXT;
}

static void end_event(tn_tensorboard *b, tn_event_file *f)
{
    tn_error err;
    if (tn_event_end(f, &err) != TN_OK) {
        give_up(b, &err);
    }
}

/* ---- what does not change ---- */

/* Writes what the first file of a run begins with. */
static void describe(tn_tensorboard *b)
{
    tn_event_file *f = file_of(b, OF_TRAIN);
    if (f == NULL) {
        return;
    }
    tn_error err;
    tn_text text = {0};
    tn_diag diag = {0};
    const char *config = b->opts.text->config;
    const double now = tn_wall_s();
    tn_arena *arena = tn_arena_new(1 << 16);
    const tn_yaml_in in = {.text = config, .size = strlen(config), .source = "the configuration"};
    const tn_tree *tree = tn_yaml_read(arena, &diag, &in);
    tn_text_addf(&text, "```yaml\n%s```\n", config);
    tn_event_begin(f, now, 0);
    tn_event_text(f, "configuration", tn_text_str(&text));
    if (tree != NULL) {
        tn_event_hparams(f, tree, now);
    }
    end_event(b, f);
    if (!b->off && tn_event_graph(f, now, b->opts.worker->train_graph, &err) != TN_OK) {
        give_up(b, &err);
    }
    tn_text_done(&text);
    tn_diag_done(&diag);
    tn_arena_free(arena);
}

tn_tensorboard *tn_tensorboard_open(const tn_tensorboard_opts *opts)
{
    tn_error err;
    tn_tensorboard *b = NULL;
    TN_ASSERT(opts->worker->train_graph != NULL);
    if (TN_ALLOC(b, 1, "a writer for TensorBoard", &err) != TN_OK) {
        tn_log(TN_LOG_WARN, "nothing is written for TensorBoard: %s", err.text);
        return NULL;
    }
    b->opts = *opts;
    b->drawn = -(double)INFINITY;
    if (opts->first == 0) {
        describe(b);
    }
    return b;
}

/* ---- histograms ---- */

/* Weights of rows, group by group and segment by segment. */
typedef struct sample {
    const tn_worker *w;
    tn_text *values; /* floats, per group and segment */
    uint64_t rows;
} sample;

static tn_status add_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    sample *s = arg;
    TN_ASSERT(row->group < s->w->plan->layout->n_groups && !row->removed);
    const tn_layout *layout = s->w->plan->layout;
    const uint32_t record = layout->group[row->group].record;
    const tn_record *r = &layout->record[record];
    const bool waits = (r->waits & ~(uint32_t)row->present) != 0;
    for (uint32_t i = 0; i < r->n_segments; i++) {
        if ((row->present >> i & 1) != 0) {
            const tn_table *t = s->w->shard.table;
            const uint32_t at =
                waits ? tn_table_place_waiting(t, record, i) : tn_table_place(t, record, i).w;
            tn_text_add(&s->values[(size_t)row->group * TN_SEGMENTS_MAX + i], row->data + at,
                        r->segment[i].dim * sizeof(float));
        }
    }
    s->rows++;
    return TN_OK;
}

/* Whole partitions, until there are enough: keys are spread over them by their hash. */
static void draw_rows(tn_tensorboard *b, tn_event_file *f)
{
    const tn_worker *w = b->opts.worker;
    const tn_layout *layout = w->plan->layout;
    const size_t n = (size_t)layout->n_groups * TN_SEGMENTS_MAX;
    const uint32_t *own = w->shares->owners.from + w->rank;
    sample s = {.w = w, .values = tn_try_alloc(n, sizeof(tn_text), "a sample of rows", NULL)};
    tn_status status = s.values != NULL ? TN_OK : TN_E_MEMORY; /* then there is no picture */
    for (uint32_t p = own[0]; status == TN_OK && p < own[1] && s.rows < ROWS_LOOKED_AT; p++) {
        status = tn_table_walk(w->shard.table, p, add_row, &s, NULL);
    }
    for (size_t i = 0; s.values != NULL && i < n; i++) {
        const tn_share_group *group = &layout->group[i / TN_SEGMENTS_MAX];
        const tn_record *record = &layout->record[group->record];
        tn_text *values = &s.values[i];
        if (values->size > 0 && !values->failed) {
            char tag[TAG_SIZE];
            (void)snprintf(tag, sizeof tag, "embeddings/%s/%s", group->name,
                           record->segment[i % TN_SEGMENTS_MAX].name);
            tn_event_histogram(f, tag, values->size / sizeof(float),
                               (const float *)(const void *)values->data);
        }
        tn_text_done(values);
    }
    tn_free(s.values);
}

static void draw_params(tn_tensorboard *b, tn_event_file *f)
{
    tn_params *params = b->opts.worker->params;
    TN_ASSERT(tn_params_weights(params) != NULL && tn_params_grads(params) != NULL);
    for (uint32_t i = 0; i < tn_params_count(params); i++) {
        const tn_param_slice *s = tn_params_get(params, i);
        const size_t n = (size_t)s->rows * s->cols;
        char tag[TAG_SIZE];
        (void)snprintf(tag, sizeof tag, "weights/%s", s->name);
        tn_event_histogram(f, tag, n, tn_params_weights(params) + s->at);
        if (s->train) {
            (void)snprintf(tag, sizeof tag, "gradients/%s", s->name);
            tn_event_histogram(f, tag, n, tn_params_grads(params) + s->at);
        }
    }
}

/* As the last step has left them. */
static void draw(tn_tensorboard *b)
{
    TN_ASSERT(b->step >= b->drawn_step);
    tn_event_file *f = file_of(b, OF_TRAIN);
    if (f == NULL || b->step == b->drawn_step) {
        return;
    }
    tn_event_begin(f, tn_wall_s(), b->step);
    draw_params(b, f);
    draw_rows(b, f);
    end_event(b, f);
    b->drawn = tn_clock_s();
    b->drawn_step = b->step;
}

/* ---- curves ---- */

static bool is_among(const char *const *list, const char *key)
{
    while (*list != NULL && strcmp(*list, key) != 0) {
        list++;
    }
    return *list != NULL;
}

#define MACHINE "~system/" /* a group that TensorBoard shows last */

/* Numbers of a record, those of an inner object by its name. */
static void add_points(tn_event_file *f, const char *group, const tn_json *object)
{
    static const char *const place[] = {"t", "step", "epoch", "samples", "day", NULL};
    static const char *const machine[] = {
        "rows_per_s",   "keys",          "rss_bytes",   "wait_ms", "compute_ms", "pulled_bytes",
        "pushed_bytes", "staleness_max", "bad_records", "rows",    NULL};
    for (const tn_json *x = object->first; x != NULL; x = x->next) {
        const bool named = group[0] != '\0' || !is_among(machine, x->key);
        char tag[TAG_SIZE];
        (void)snprintf(tag, sizeof tag, "%s%s", named ? group : MACHINE, x->key);
        if (x->kind == TN_JSON_NUMBER && !is_among(place, x->key)) {
            tn_event_scalar(f, tag, x->number);
        } else if (x->kind == TN_JSON_OBJECT && strcmp(x->key, "wait_ms") == 0) {
            add_points(f, MACHINE "wait_ms/", x);
        }
    }
}

/* Figures of each task of an evaluation, "buy/auc". */
static void add_tasks(tn_event_file *f, const tn_json *eval)
{
    for (const tn_json *x = eval->first; x != NULL; x = x->next) {
        if (x->kind == TN_JSON_OBJECT && strcmp(x->key, "slices") != 0 &&
            tn_json_get(x, "rows") != NULL) {
            char group[TAG_SIZE];
            (void)snprintf(group, sizeof group, "%s/", x->key);
            add_points(f, group, x);
        }
    }
}

static void take_record(tn_tensorboard *b, const tn_json *top)
{
    static const struct {
        const char *kind, *group;
    } drawn[] = {
        {"train", ""}, {"eval", ""}, {"sweep", MACHINE "sweep/"}, {"ckpt", MACHINE "ckpt/"}};
    const char *kind = tn_json_as_str(tn_json_get(top, "kind"));
    const size_t n = sizeof drawn / sizeof *drawn;
    size_t k = 0;
    uint64_t step = 0;
    while (kind != NULL && k < n && strcmp(kind, drawn[k].kind) != 0) {
        k++;
    }
    if (kind == NULL || k == n || !tn_json_as_u64(tn_json_get(top, "step"), &step)) {
        return;
    }
    tn_event_file *f = file_of(b, run_of(tn_json_as_str(tn_json_get(top, "data"))));
    if (f == NULL) {
        return;
    }
    tn_event_begin(f, tn_wall_s(), step);
    add_points(f, drawn[k].group, top);
    if (strcmp(kind, "eval") == 0) {
        add_tasks(f, top);
    }
    end_event(b, f);
    if (strcmp(kind, "train") == 0) {
        b->step = step;
        if (tn_clock_s() - b->drawn >= HISTOGRAMS_APART_S) {
            draw(b);
        }
    }
}

void tn_tensorboard_record(tn_tensorboard *b, const tn_text *line)
{
    const tn_json *top = NULL;
    if (b == NULL || b->off) {
        return;
    }
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_error err;
    if (tn_json_parse(&top, line->data, line->size, arena, "a record", &err) == TN_OK) {
        take_record(b, top);
    } else {
        give_up(b, &err);
    }
    tn_arena_free(arena);
}

void tn_tensorboard_eval(tn_tensorboard *b, const char *data, const tn_metrics *m, uint64_t step)
{
    tn_event_file *f = b != NULL ? file_of(b, run_of(data)) : NULL;
    if (f != NULL) {
        tn_event_begin(f, tn_wall_s(), step);
        tn_event_pr_curve(f, "pr", m);
        end_event(b, f);
    }
}

void tn_tensorboard_close(tn_tensorboard *b, bool well)
{
    if (b == NULL) {
        return;
    }
    draw(b);
    tn_event_file *f = b->file[OF_TRAIN];
    if (!b->off && f != NULL) {
        tn_event_begin(f, tn_wall_s(), b->step);
        tn_event_hparams_end(f, well, tn_wall_s());
        end_event(b, f);
    }
    for (uint32_t i = 0; i < RUNS; i++) {
        tn_event_file_close(b->file[i]);
    }
    tn_free(b);
}
