/* choices.c - passes, batch, early stop and buckets, from a look at the data or from a checkpoint.
 */
#include "train/config/choices.h"

#include "base/core/arena.h"
#include "base/core/number.h"
#include "base/core/text.h"
#include "base/math/key.h"
#include "base/math/rng.h"
#include "config/diag.h"
#include "config/fieldtree.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "io/format/format.h"
#include "io/read/bad_record_limit.h"
#include "io/read/fileset.h"
#include "io/read/row_scan.h"
#include "io/read/schema_inference.h"
#include "io/rows/rows.h"
#include "io/schema/dataopts.h"
#include "io/schema/number_sample.h"
#include "io/schema/schema.h"
#include "models/model.h"
#include "nn/loss/loss.h"
#include "train/config/config.h"
#include "train/config/data_checks.h"
#include "train/config/run_bind.h"
#include "train/config/run_loss.h"
#include "train/config/value_size_look.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FEW_ROWS = 100000, /* rows of a pass; measured: docs/models.md, Defaults */
    FEW_ROWS_UNSTOPPED =
        250000, /* the same, when nothing stops the passes that larger steps need */
    BATCH_OF_FEW = 256,
    BATCH = 1024,
    STEPS_ENOUGH = 2000,
    EARLY_STEPS = 64,     /* steps of a first pass that is evaluated within */
    PASSES_UNSTOPPED = 4, /* but for a linear model; more make others know their rows by heart */
    PASSES_MAX = 20,
    STEPS_MIN = 1000,    /* 20 passes of few rows make fewer steps: then there are more passes */
    PASSES_OF_FEW = 100, /* at most so many, and a stop that ends them */
    WINDOW = 65536,      /* rows of data.shuffle */
    WINDOW_OF_FEW = TN_SHUFFLE_OF_PART, /* holds a small file as a whole */
    WINDOW_MAX = 16777216,              /* the option takes no more */
    LOOK_ROWS = 262144,                 /* for bounds of buckets: what a sample of numbers holds */
    ROWS_OF_BUCKET = 200,               /* fewer hold more noise than news */
    BUCKETS_MIN = 5,
};

#define PAIRED_VALUES 10. /* in a row: more of them want a smaller rate than RATE */
#define RATE 0.1          /* the one of TN_ROW_RULE; measured: docs/models.md, Defaults */
/* The rule for rows of length 1, as those of tf-idf are; measured: docs/models.md, Defaults */
#define UNIT_RULE "{type: adagrad, rowwise: true, lr: 0.3, n0: 10, l2: 0.02, grad_scale: sum}"
#define ORDERED 0.05 /* share of the labels' variance; mixed rows have about .001 */
/* bytes of parsed rows in the window; fixed, so that no machine is another run */
#define WINDOW_BYTES (1024. * 1048576)

/* Choices under way. */
typedef struct choosing {
    const tn_binder *b;
    tn_run *run;
    const tn_tree *tree; /* the configuration as written */
    const tn_tree *past; /* configuration of the checkpoint; NULL: none */
    const tn_schema *schema;
    double rows; /* rows of a pass; negative: not known */
    bool is_counted;
    tn_row_sample sample;                  /* set when `rows` is known */
    uint32_t shuffle;                      /* the window that was chosen now; 0: none */
    bool valid_is_known, valid_is_trained; /* whether a file of data.valid is one of data.train */
    tn_tree *data, *train, *eval, *slots;  /* sections of the layer that is made */
} choosing;

static const tn_origin chosen_at = {.source = "chosen by the data"};

static tn_tree *make(const choosing *c, tn_tree_kind kind)
{
    return tn_tree_new(c->b->arena, kind, chosen_at);
}

static void put(const choosing *c, tn_tree *map, const char *key, tn_tree *value)
{
    tn_tree_put(c->b->arena, map, key, value);
}

static void put_text(const choosing *c, tn_tree *map, const char *key, const char *text)
{
    put(c, map, key, tn_tree_scalar(c->b->arena, text, chosen_at));
}

static tn_tree *number(const choosing *c, double value)
{
    char text[TN_NUMBER_TEXT_MAX] = "";
    (void)tn_write_f64(text, value);
    return tn_tree_scalar(c->b->arena, text, chosen_at);
}

static void put_number(const choosing *c, tn_tree *map, const char *key, double value)
{
    put(c, map, key, number(c, value));
}

static void put_copy(const choosing *c, tn_tree *map, const char *key, const tn_tree *value)
{
    put(c, map, key, tn_tree_copy(c->b->arena, value));
}

/* ---- what is open ---- */

/* A number that goes where only keys are read becomes the key of a bucket. */
static bool becomes_key(const tn_run *run, const tn_slot_opts *slot)
{
    const tn_model *model = run->model.choice->impl;
    return slot->as == TN_AS_VALUE && slot->type != TN_TYPE_VECTOR && model->keys_only;
}

/* Buckets whose bounds are open. */
static uint32_t parts_of(const tn_run *run, const tn_slot_opts *slot)
{
    return becomes_key(run, slot)
               ? TN_TRANSFORM_PARTS
               : tn_transform_parts(slot->transform,
                                    slot->as == TN_AS_KEY && slot->type == TN_SIGN_FLOAT);
}

static const tn_slot_opts *slot_at(const tn_run *run, uint32_t i)
{
    return (const tn_slot_opts *)run->slots.item + i;
}

static uint32_t open_slots(const tn_run *run)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->slots.n; i++) {
        n += parts_of(run, slot_at(run, i)) > 0;
    }
    return n;
}

/* ---- from the checkpoint ---- */

/* The text of one value of the checkpoint's configuration; NULL: it says none. */
static const char *past_value(const choosing *c, const char *path)
{
    const tn_tree *t = c->past != NULL ? tn_tree_at(c->past, path) : NULL;
    return t != NULL && t->kind == TN_TREE_SCALAR && !tn_tree_is_null(t) ? t->text : NULL;
}

static bool take_past(const choosing *c, tn_tree *section, const char *key, const char *path)
{
    const char *value = past_value(c, path);
    if (value != NULL) {
        put_text(c, section, key, value);
    }
    return value != NULL;
}

static const tn_tree *past_slot(const choosing *c, const char *name)
{
    const tn_tree *slots = c->past != NULL ? tn_tree_get(c->past, "slots") : NULL;
    for (const tn_tree *t = slots != NULL ? slots->first : NULL; t != NULL; t = t->next) {
        const tn_tree *its = tn_tree_get(t, "name");
        if (its != NULL && its->kind == TN_TREE_SCALAR && strcmp(its->text, name) == 0) {
            return t;
        }
    }
    return NULL;
}

/* ---- passes, batch, early stop ---- */

/* Once. */
static tn_status open_schema(choosing *c, tn_error *err)
{
    return c->schema != NULL || c->run->data.train.n == 0
               ? TN_OK
               : tn_schema_new(&c->schema, &c->run->data, &c->run->slots, c->b, err);
}

/* Once, and only where something is open: the rows of a pass. */
static tn_status count_rows(choosing *c, tn_error *err)
{
    if (c->is_counted || c->run->data.train.n == 0) {
        return TN_OK;
    }
    TN_TRY(open_schema(c, err));
    TN_TRY(tn_row_scan_sample(&c->run->data.train, c->schema, TN_ROW_SCAN_ESTIMATE_BLOCKS,
                              &c->sample, err));
    c->rows = c->sample.rows;
    c->is_counted = true;
    return TN_OK;
}

/* Whether data.valid can end the passes. Rows that are trained on cannot. */
static bool is_validated(choosing *c)
{
    const tn_data_opts *data = &c->run->data;
    if (data->valid.n > 0 && !c->valid_is_known) {
        tn_text which = {0};
        c->valid_is_known = true;
        c->valid_is_trained = tn_data_is_trained(data, NULL, &data->valid, &which);
        tn_text_done(&which);
    }
    return data->valid.n > 0 && !c->valid_is_trained;
}

static uint32_t passes_of(choosing *c, double steps)
{
    if (c->rows < 0 || c->run->data.pattern.n > 0 /* each day once */ || steps >= STEPS_ENOUGH) {
        return 1;
    }
    if (is_validated(c)) {
        return (uint32_t)fmax(PASSES_MAX, fmin(PASSES_OF_FEW, ceil(STEPS_MIN / fmax(steps, 1))));
    }
    const tn_model *model = c->run->model.choice->impl;
    const double most = model->linear ? PASSES_MAX : PASSES_UNSTOPPED;
    return (uint32_t)fmin(most, ceil(STEPS_ENOUGH / fmax(steps, 1)));
}

/* The metric that is watched: train.reduce_on_plateau may have named it. */
static const char *monitor_of(const tn_run *run)
{
    const tn_plateau_opts *plateau = &run->train.reduce_on_plateau;
    if (run->train.stop.monitor != NULL) {
        return run->train.stop.monitor;
    }
    return plateau->monitor != NULL ? plateau->monitor : tn_run_watched(run);
}

static void add_stop(choosing *c, const char *monitor)
{
    if (is_validated(c)) { /* whoever evaluates or exports may have no data.valid */
        tn_tree *stop = make(c, TN_TREE_MAP);
        put_text(c, stop, "monitor", monitor);
        put(c, c->train, "stop", stop);
    }
}

/* Within the first pass over rows of which many are the same a model knows all by heart. */
static void add_early_looks(choosing *c, double steps)
{
    const bool is_free = strcmp(c->run->eval.every, "1epoch") == 0 &&
                         tn_tree_is_null(tn_tree_at(c->tree, "eval.at"));
    if (!is_free || !is_validated(c) || steps < EARLY_STEPS) {
        return;
    }
    tn_tree *at = make(c, TN_TREE_LIST);
    for (int part = 8; part > 1; part /= 2) {
        char text[TN_NUMBER_TEXT_MAX] = "";
        (void)tn_write_f64(text, floor(steps / part));
        tn_tree_append(at, tn_tree_scalar(c->b->arena, text, chosen_at));
    }
    put(c, c->eval, "at", at);
}

static void take_past_looks(choosing *c)
{
    const tn_tree *at = c->past != NULL ? tn_tree_at(c->past, "eval.at") : NULL;
    if (at != NULL && tn_tree_is_null(tn_tree_at(c->tree, "eval.at"))) {
        put_copy(c, c->eval, "at", at);
    }
}

/* Returns whether rows are in the order of their labels, as in files of clicks and others. */
static bool is_ordered(const choosing *c)
{
    const bool classes =
        c->run->data.target == TN_TARGET_CLICK || c->run->data.target == TN_TARGET_SIDE;
    return classes && c->rows >= 0 && c->sample.order > ORDERED;
}

/* The window of rows that are permuted: all that were counted, if it can hold them. Of rows that
 * are ordered by their labels as many as a gigabyte holds, over all files. */
static uint32_t window_of(const choosing *c)
{
    if (is_ordered(c)) {
        const double fit = WINDOW_BYTES / (c->sample.row_bytes + 2 * sizeof(uint64_t));
        const double most = fmin(WINDOW_MAX, fmax(fit, WINDOW_OF_FEW + 1));
        double size = 2. * WINDOW_OF_FEW;
        while (size < 1.1 * c->sample.all && size < WINDOW_MAX) { /* an estimate */
            size *= 2;
        }
        return (uint32_t)fmin(size, most);
    }
    return c->rows > WINDOW && c->rows <= WINDOW_OF_FEW ? WINDOW_OF_FEW : WINDOW;
}

/* The window does not hang on what else is left open: rows are counted for it, too. */
static tn_status choose_shuffle(choosing *c, tn_error *err)
{
    tn_data_opts *data = &c->run->data;
    uint32_t window = data->shuffle;
    if (data->shuffle == TN_AUTO && !take_past(c, c->data, "shuffle", "data.shuffle")) {
        const bool pairs =
            data->target == TN_TARGET_ORDER; /* pairs are made of rows near each other */
        tn_error why;                        /* ignored: the reader of the rows reports it */
        const tn_status status = pairs ? TN_OK : count_rows(c, &why);
        if (status != TN_OK && status != TN_E_DATA && status != TN_E_IO) {
            return tn_fail(err, status, "%s", why.text);
        }
        window = pairs ? 0 : window_of(c);
        put_number(c, c->data, "shuffle", window);
        c->shuffle = window;
    }
    data->ordered = is_ordered(c) && window != TN_AUTO &&
                    (window <= TN_SHUFFLE_OF_PART || window < c->sample.all);
    return TN_OK;
}

/* Says what was chosen here and now; `passes` 0: not the epochs, `batch` 0: not the batch. */
static void tell(choosing *c, uint32_t batch, uint32_t passes, double steps, tn_text *said)
{
    if ((batch == 0 && passes == 0) || (c->rows >= 0 && c->rows < 1)) {
        return; /* no rows: training on them reports why */
    }
    tn_text_adds(said, "chosen for ");
    if (c->rows < 0) {
        tn_text_adds(said, "data that come by a pipe:");
    } else {
        tn_text_addf(said, "about %.0f rows:", c->rows);
    }
    if (batch > 0) {
        tn_text_addf(said, " train.batch=%u%s", batch, passes > 0 ? "," : "");
    }
    if (passes > 0) {
        tn_text_addf(said, " train.epochs=%u", passes);
    }
    if (passes > 0 && c->rows >= 0) {
        tn_text_addf(said, " of %.0f steps", steps);
    }
    const char *next = passes > 0 ? ",\n " : ",";
    if (passes > 1 && is_validated(c)) {
        tn_text_addf(said, "%s fewer when %s is no better %u times in a row", next,
                     monitor_of(c->run), c->run->train.stop.patience);
        next = ",";
    }
    if (c->shuffle > WINDOW && c->shuffle <= WINDOW_OF_FEW) { /* more: tell_of_order */
        tn_text_addf(said, "%s data.shuffle=%u", next, c->shuffle);
    }
}

/* Returns joint steps of all peers, unless each has steps of its own. */
static double steps_of(const choosing *c, uint32_t batch)
{
    const tn_cluster_opts *cluster = &c->run->cluster;
    const bool joint = cluster->staleness == 0 && cluster->size > 1;
    return ceil(c->rows / ((double)batch * (joint ? cluster->size : 1)));
}

static uint32_t batch_of(choosing *c)
{
    const double few = is_validated(c) ? FEW_ROWS : FEW_ROWS_UNSTOPPED;
    const uint32_t chosen = c->rows >= 0 && c->rows < few ? BATCH_OF_FEW : BATCH;
    return c->run->train.batch == TN_AUTO ? chosen : c->run->train.batch;
}

static void tell_of_order(const choosing *c, tn_text *said)
{
    if (c->shuffle > WINDOW_OF_FEW) {
        tn_text_addf(said, "%sthe labels come in order: data.shuffle=%u mixes %s rows of all files",
                     said->size > 0 ? "\n" : "", c->shuffle,
                     c->run->data.ordered ? "that many" : "the");
    }
}

/* Passes that the checkpoint's run has chosen. An import that trained nothing said 0, which is not
 * for those that go on. */
static bool take_past_epochs(choosing *c)
{
    const char *past = past_value(c, "train.epochs");
    const bool imported = past != NULL && strcmp(past, "0") == 0;
    return !imported && take_past(c, c->train, "epochs", "train.epochs");
}

static tn_status choose_passes(choosing *c, tn_text *said, tn_error *err)
{
    tn_train_opts *t = &c->run->train;
    const bool open_batch = t->batch == TN_AUTO && !take_past(c, c->train, "batch", "train.batch");
    const bool open_epochs = t->epochs == TN_AUTO && !take_past_epochs(c);
    const bool free_stop = t->epochs == TN_AUTO && t->stop.monitor == NULL;
    uint32_t passes = 0;
    double steps = 0;
    if (open_batch || open_epochs) {
        TN_TRY(count_rows(c, err));
    }
    const uint32_t batch = batch_of(c);
    if (open_batch) {
        put_number(c, c->train, "batch", batch);
    }
    const char *monitor = NULL;
    if (open_epochs) {
        steps = steps_of(c, batch);
        passes = passes_of(c, steps);
        put_number(c, c->train, "epochs", passes);
        monitor = passes > 1 ? monitor_of(c->run) : NULL;
        if (passes > 1) {
            add_early_looks(c, steps);
        }
    } else {
        monitor = past_value(c, "train.stop.monitor");
        take_past_looks(c);
    }
    if (free_stop && monitor != NULL) {
        add_stop(c, monitor);
    }
    TN_TRY(choose_shuffle(c, err));
    tell(c, open_batch ? batch : 0, passes, steps, said);
    tell_of_order(c, said);
    return TN_OK;
}

/* ---- bounds of buckets ---- */

/* The open slots alone, as keys whose texts are numbers. */
static void slots_to_look_at(const choosing *c, tn_tables *out)
{
    tn_slot_opts *slot = TN_NEW_ARRAY(c->b->arena, tn_slot_opts, open_slots(c->run));
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->run->slots.n; i++) {
        const tn_slot_opts *o = slot_at(c->run, i);
        if (parts_of(c->run, o) > 0) {
            slot[n] = *o;
            slot[n].as = TN_AS_KEY;
            slot[n].type = o->type == TN_SIGN_INT ? TN_SIGN_INT : TN_SIGN_FLOAT;
            slot[n].transform = tn_tree_scalar(c->b->arena, "quantiles", (tn_origin){0});
            slot[n].absent = NULL;
            slot[n++].share = NULL;
        }
    }
    *out = (tn_tables){.n = n, .item = slot};
}

typedef struct look {
    const tn_schema *schema; /* has the open slots alone; NULL: nothing was looked at yet */
    tn_numbers *numbers;     /* schema->n_slots */
    uint64_t rows;
    uint64_t bad;
    tn_text fault; /* the first bad record */
} look;

static tn_status look_at(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    look *l = ctx;
    const tn_rows *rows = block->rows;
    (void)err;
    for (uint32_t r = 0; r < rows->n; r++) {
        for (uint32_t i = rows->row[r].first; i < tn_rows_end_of(rows, r); i++) {
            if (!isnan(rows->real[i])) {
                tn_numbers_add(&l->numbers[rows->entry[i].slot], rows->real[i],
                               rows->row[r].weight);
            }
        }
    }
    l->rows += tn_rows_that_count(rows);
    return l->rows < LOOK_ROWS ? TN_OK : TN_END;
}

static tn_status note_fault(void *ctx, const char *text, tn_error *err)
{
    look *l = ctx;
    (void)err;
    tn_text_adds(&l->fault, l->bad++ == 0 ? text : "");
    return TN_OK;
}

static tn_status look_at_numbers(const choosing *c, look *l, tn_error *err)
{
    tn_tables slots;
    tn_data_opts data = c->run->data;
    slots_to_look_at(c, &slots);
    data.unknown_field = TN_FIELD_IS_IGNORED; /* for other slots */
    TN_TRY(tn_schema_new(&l->schema, &data, &slots, c->b, err));
    l->numbers = TN_NEW_ARRAY(c->b->arena, tn_numbers, l->schema->n_slots);
    for (uint32_t i = 0; i < l->schema->n_slots; i++) {
        l->numbers[i].sample_max = tn_numbers_max(l->schema->n_slots);
    }
    const tn_row_scan_visitor visitor = {.ctx = l, .block = look_at, .fault = note_fault};
    const tn_row_scan_in in = {.schema = l->schema, .paths = &data.train, .keep = TN_ROWS_REALS};
    tn_row_scan_counts counts;
    tn_status status = tn_row_scan_run(&in, &visitor, &counts, err);
    return status == TN_END ? TN_OK : status;
}

/* Adds `slot: {transform: {buckets: [..]}}`. */
static void add_buckets(const choosing *c, const tn_slot_opts *slot, tn_tree *bounds)
{
    tn_tree *options = make(c, TN_TREE_MAP);
    tn_tree *transform = make(c, TN_TREE_MAP);
    if (becomes_key(c->run, slot)) {
        put_text(c, options, "as", "key");
        put_text(c, options, "type", slot->type == TN_SIGN_INT ? "int" : "float");
        put(c, options, "absent", make(c, TN_TREE_NULL));
    }
    put(c, transform, "buckets", bounds);
    put(c, options, "transform", transform);
    put(c, c->slots, slot->name, options);
}

static tn_tree *list_bounds(const choosing *c, tn_numbers *x, uint32_t parts)
{
    double *bound = TN_NEW_ARRAY(c->b->arena, double, parts);
    const uint32_t n = tn_numbers_bounds(x, parts, bound);
    tn_tree *list = make(c, TN_TREE_LIST);
    for (uint32_t i = 0; i < n; i++) {
        tn_tree_append(list, number(c, bound[i]));
    }
    if (n == 0) { /* a column of one value */
        tn_tree_append(list, number(c, 0));
    }
    return list;
}

/* Returns false when the checkpoint has none for the slot. */
static bool take_past_buckets(const choosing *c, const tn_slot_opts *slot)
{
    const tn_tree *transform = tn_tree_get(past_slot(c, slot->name), "transform");
    const tn_tree *list = transform != NULL ? tn_tree_get(transform, "buckets") : NULL;
    if (list != NULL) {
        add_buckets(c, slot, tn_tree_copy(c->b->arena, list));
    }
    return list != NULL;
}

static tn_status refuse_pipe(const tn_slot_opts *slot, tn_error *err)
{
    return tn_fail(err, TN_E_CONFIG,
                   "slot '%s': the bounds of its buckets are found in the data before training "
                   "begins, and data.train comes by a pipe\nhint: write them as 'transform: "
                   "{buckets: [..]}'",
                   slot->name);
}

/* Checks that a slot holds numbers. When it holds none the true reason may be that records are bad,
 * or that there are none, which training on them reports. */
static tn_status check_numbers(const choosing *c, const look *l, uint32_t slot, tn_error *err)
{
    tn_bad_record_limit limit;
    TN_ASSERT(l->numbers != NULL && slot < l->schema->n_slots);
    if (l->numbers[slot].weighed > 0 || (l->rows == 0 && l->bad == 0)) {
        return TN_OK;
    }
    TN_TRY(tn_bad_record_limit_read(c->run->data.bad_records_max, &limit, err));
    if (l->bad > 0 &&
        (l->rows == 0 || !tn_bad_record_limit_allows(&limit, l->rows + l->bad, l->bad))) {
        return tn_fail(err, TN_E_DATA, "%s", tn_text_str(&l->fault));
    }
    return tn_fail(err, TN_E_DATA,
                   "slot '%s' holds no numbers to make its buckets from\nhint: "
                   "'type: str' makes a key of any text, 'transform: {buckets: [..]}' sets bounds",
                   l->schema->slot[slot]->name);
}

/* Returns how many of `parts` remain when nobody has said how many, and rows are few. */
static uint32_t parts_of_few(const choosing *c, const tn_slot_opts *slot, uint32_t parts)
{
    const tn_tree *t = becomes_key(c->run, slot) ? NULL : slot->transform;
    const bool own = t != NULL && t->kind == TN_TREE_MAP; /* {quantiles: n} */
    const double few = fmax(BUCKETS_MIN, floor(c->rows / ROWS_OF_BUCKET));
    return own || few >= parts ? parts : (uint32_t)few;
}

enum { SLOTS_TOLD = 6 };

/* "chosen: buckets of 'a', 'b'", with their number where it is not the usual one. */
static void tell_slot(const choosing *c, const tn_slot_opts *slot, uint32_t parts, uint32_t n_told,
                      tn_text *said)
{
    const uint32_t n = parts_of_few(c, slot, parts);
    if (n_told == 0) {
        tn_text_addf(said, "%schosen: buckets of", said->size > 0 ? "\n" : "");
    }
    if (n_told >= SLOTS_TOLD) {
        return;
    }
    tn_text_addf(said, "%s'%s'", n_told == 0 ? " " : ", ", slot->name);
    if (n < parts) {
        tn_text_addf(said, " (%u, of so few rows)", n);
    }
}

static tn_status choose_buckets(choosing *c, tn_text *said, tn_error *err)
{
    look l = {.schema = NULL};
    tn_status status = TN_OK;
    uint32_t n_told = 0;
    uint32_t n_open = 0;
    for (uint32_t i = 0; i < c->run->slots.n && status == TN_OK; i++) {
        const tn_slot_opts *slot = slot_at(c->run, i);
        const uint32_t parts = parts_of(c->run, slot);
        const uint32_t at = n_open; /* slots_to_look_at lists the open ones alone */
        n_open += parts > 0;
        if (parts == 0 || take_past_buckets(c, slot)) {
            continue;
        }
        status = count_rows(c, err);
        if (status != TN_OK) {
            break;
        }
        if (c->rows < 0) {
            status = refuse_pipe(slot, err);
        } else {
            tell_slot(c, slot, parts, n_told++, said);
            status = l.schema == NULL ? look_at_numbers(c, &l, err) : TN_OK;
        }
        status = status == TN_OK ? check_numbers(c, &l, at, err) : status;
        TN_ASSERT(status != TN_OK || strcmp(l.schema->slot[at]->name, slot->name) == 0);
        if (status == TN_OK) {
            const uint32_t n = parts_of_few(c, slot, parts);
            add_buckets(c, slot, list_bounds(c, &l.numbers[at], n));
        }
    }
    if (n_told > SLOTS_TOLD) {
        tn_text_addf(said, " and %u more", n_told - SLOTS_TOLD);
    }
    for (uint32_t i = 0; l.schema != NULL && i < l.schema->n_slots; i++) {
        tn_numbers_done(&l.numbers[i]);
    }
    tn_text_done(&l.fault);
    return status;
}

/* ---- rates of rows ---- */

static bool is_of_pairs(const tn_run *run)
{
    const tn_format *format = tn_format_find(run->data.format);
    return format != NULL && format->pairs;
}

static bool attends(const tn_run *run)
{
    const tn_model *model = run->model.choice->impl;
    return model->attends;
}

/* Data in which a value can count for anything but 1. */
static bool has_x(const tn_run *run)
{
    bool has = is_of_pairs(run);
    for (uint32_t i = 0; i < run->slots.n; i++) {
        const tn_slot_opts *slot = slot_at(run, i);
        has |= slot->values != NULL || slot->as == TN_AS_WEIGHTED ||
               tn_pool_is_mean(slot, run->embedding.pool, attends(run));
    }
    return has;
}

static bool has_lists(const tn_run *run)
{
    bool has = false;
    for (uint32_t i = 0; i < run->slots.n; i++) {
        has |= slot_at(run, i)->list != NULL;
    }
    return has;
}

/* The input whose vectors the score adds all pairs of, as they are; NULL: none. */
static const char *paired_input(const tn_run *run, const tn_tree *tree)
{
    static const char *const kinds[] = {"fm", "fwfm"};
    const tn_model *model = run->model.choice->impl;
    const tn_tree *layers = tn_tree_at(tree, "model.layers");
    const tn_tree *in = NULL;
    for (const tn_tree *t = layers != NULL ? layers->first : NULL; t != NULL; t = t->next) {
        for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds && in == NULL; i++) {
            in = tn_tree_get(t, kinds[i]);
        }
    }
    const bool is_named = in != NULL && in->kind == TN_TREE_SCALAR;
    return model->sums_pairs ? "deep" : is_named ? in->text : NULL;
}

/* Vectors whose pairs add up to a score learn the faster the more of them a row has. Columns count
 * as they are listed, but for lists in them. */
static tn_status choose_rate(choosing *c, const char *input, tn_text *said, tn_error *err)
{
    const bool columns = !is_of_pairs(c->run);
    TN_TRY(!columns || has_lists(c->run) ? count_rows(c, err) : open_schema(c, err));
    const bool is_known = c->is_counted && c->rows >= 0;
    const double listed = columns || !is_known ? c->schema->n_slots : 0;
    const double values = fmax(listed, is_known ? c->sample.values : 0);
    TN_ASSERT(values >= 0);
    if (values > PAIRED_VALUES) {
        char rate[TN_NUMBER_TEXT_MAX] = "";
        (void)tn_write_f64(rate, rint(1e4 * PAIRED_VALUES / values * RATE) / 1e4);
        tn_text rule = {0};
        tn_text_addf(&rule, TN_ROW_RULE_OF("%s"), rate);
        tn_tree *sparse = make(c, TN_TREE_MAP);
        put(c, sparse, input, tn_tree_read_flow(c->b->arena, tn_text_str(&rule), chosen_at.source));
        put(c, c->train, "sparse", sparse);
        tn_text_done(&rule);
        tn_text_addf(said, "%schosen for pairs of %.0f values a row: train.sparse.%s.lr=%s",
                     said->size > 0 ? "\n" : "", values, input, rate);
    }
    return TN_OK;
}

/* A model that adds up weights and pairs, and has no network. */
static bool is_sum(const tn_run *run)
{
    const tn_model *model = run->model.choice->impl;
    return model->linear || (model->keys_only && model->sums_pairs);
}

/* The score of a row of length 1 moves by no more than its weights do, so that steps need less
 * damping; and a penalty weighs more where values are small. */
static void choose_unit_rule(const choosing *c, tn_text *said)
{
    put(c, c->train, "sparse", tn_tree_read_flow(c->b->arena, UNIT_RULE, chosen_at.source));
    tn_text_addf(said, "%schosen for rows whose values have squares that sum to 1: train.sparse=%s",
                 said->size > 0 ? "\n" : "", UNIT_RULE);
}

/* Chooses what is open of the rules of rows. A checkpoint's run goes on by those that it had. */
static tn_status choose_rules(choosing *c, tn_text *said, tn_error *err)
{
    static const char *const learned[] = {"sparse", "value_sizes"};
    const char *input = paired_input(c->run, c->tree);
    const bool has_sizes =
        has_x(c->run) && tn_tree_is_null(tn_tree_at(c->tree, "train.value_sizes"));
    if (!tn_tree_is_null(tn_tree_at(c->tree, "train.sparse")) || !(input != NULL || has_sizes)) {
        return TN_OK;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const tn_tree *was = tn_tree_get(tn_tree_get(c->past, "train"), learned[i]);
        if (was != NULL) {
            put_copy(c, c->train, learned[i], was);
        }
    }
    if (tn_tree_get(c->past, "train") != NULL) {
        return TN_OK;
    }
    if (c->run->data.train.n == 0) {
        return TN_OK;
    }
    TN_TRY(has_sizes ? count_rows(c, err) : TN_OK);
    const tn_value_size_in in = {c->b->arena,         c->schema,
                                 &c->run->data.train, c->run->embedding.pool,
                                 attends(c->run),     !is_sum(c->run)};
    tn_value_size_found found = {.sizes = NULL};
    if (has_sizes && c->rows > 0 /* a pipe is read once */) {
        TN_TRY(tn_value_size_look(&in, &found, said, err));
    }
    if (found.sizes != NULL) {
        put(c, c->train, "value_sizes", found.sizes);
    }
    if (found.unit_rows && is_sum(c->run)) {
        choose_unit_rule(c, said);
        return TN_OK;
    }
    return input != NULL ? choose_rate(c, input, said, err) : TN_OK;
}

/* ---- the whole ---- */

static bool is_open(const tn_run *run, const tn_tree *tree)
{
    return run->train.epochs == TN_AUTO || run->train.batch == TN_AUTO ||
           run->data.shuffle == TN_AUTO || open_slots(run) > 0 || has_x(run) ||
           paired_input(run, tree) != NULL;
}

/* Lays the layer on top of *tree, and changes the run as it says. */
static tn_status lay(const choosing *c, const tn_tree **tree, tn_error *err)
{
    tn_run chosen;
    tn_tree *over = make(c, TN_TREE_MAP);
    put(c, over, "data", c->data);
    put(c, over, "train", c->train);
    put(c, over, "eval", c->eval);
    if (c->slots->first != NULL) {
        put(c, over, "slots", c->slots);
    }
    *tree = tn_fields_merge(c->b, tn_run_fields, *tree, over);
    tn_run_bind(c->b, *tree, &chosen);
    c->run->data.shuffle = chosen.data.shuffle;
    c->run->train = chosen.train;
    c->run->eval.at = chosen.eval.at;
    c->run->slots = c->run->slots.n > 0 ? chosen.slots : c->run->slots;
    return tn_diag_check(c->b->diag, err);
}

/* A model whose scores are of another target is another model, its sums of metrics others. Of one
 * whose weights a new run begins with only the slots are here: the loss may be any. */
static tn_status check_past_loss(const choosing *c, tn_error *err)
{
    const tn_target was = tn_loss_target(c->past);
    const tn_target now = c->run->data.target;
    return was == now || tn_tree_get(c->past, "loss") == NULL
               ? TN_OK
               : tn_fail(err, TN_E_CONFIG,
                         "the checkpoint is of a loss of target '%s', and loss '%s' has "
                         "target '%s'\nhint: another run.dir, or --fresh, begins anew",
                         tn_target_words[was], c->run->loss.choice->name, tn_target_words[now]);
}

tn_status tn_choices_make(const tn_binder *b, const char *past, const tn_tree **tree, tn_run *run,
                          tn_text *said, tn_error *err)
{
    choosing c = {.b = b, .run = run, .tree = *tree, .rows = -1};
    const tn_train_opts asked = run->train;
    if (past[0] != '\0') {
        const tn_yaml_in in = {.text = past, .size = strlen(past), .source = "config.yaml"};
        tn_diag unheard = {0};
        c.past = tn_yaml_read(b->arena, &unheard, &in);
        tn_diag_done(&unheard);
        TN_TRY(check_past_loss(&c, err));
    }
    if (!is_open(run, *tree)) {
        return TN_OK;
    }
    c.data = make(&c, TN_TREE_MAP);
    c.train = make(&c, TN_TREE_MAP);
    c.eval = make(&c, TN_TREE_MAP);
    c.slots = make(&c, TN_TREE_MAP);
    tn_status status = choose_passes(&c, said, err);
    if (status == TN_OK) {
        status = choose_buckets(&c, said, err);
    }
    if (status == TN_OK) {
        status = choose_rules(&c, said, err);
    }
    if (status == TN_OK) {
        status = lay(&c, tree, err);
    }
    run->train.epochs_chosen = asked.epochs == TN_AUTO;
    run->train.batch_chosen = asked.batch == TN_AUTO;
    return status;
}
