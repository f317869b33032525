/* dryrun.c - builds a model and scores one batch of each data set. */
#include "train/run/dryrun.h"

#include "base/core/arena.h"
#include "base/keys/record.h"
#include "base/thread/threads.h"
#include "base/trace/trace.h"
#include "config/absent.h"
#include "io/read/reader.h"
#include "models/layerlist.h"
#include "nn/graph/params.h"
#include "nn/passes/plan.h"
#include "ps/snapshot/snapshot.h"
#include "train/begin/begun.h"
#include "train/begin/import.h"
#include "train/checkpoint/ckpt_moment.h"
#include "train/config/data_checks.h"
#include "train/config/run.h"
#include "train/group/ranks.h"
#include "train/report/progress.h"
#include "train/report/step_forecast.h"
#include "train/report/text_tables.h"
#include "train/step/memory_cap.h"
#include "train/step/model_plan.h"
#include "train/step/step_prefetch.h"
#include "train/step/worker.h"

#include <string.h>

/* Says whether an input takes feature `i`, a slot or a number. */
static bool takes(const tn_model_input *in, bool numeric, uint32_t i)
{
    for (uint32_t k = 0; in->numeric == numeric && k < in->n; k++) {
        if (in->item[k] == i) {
            return true;
        }
    }
    return false;
}

/* "wide, deep": the inputs that a slot is in, as many as a table has room for. */
static void list_inputs(const tn_model_plan *plan, bool numeric, uint32_t which, tn_text *out)
{
    enum { USED_MAX = 24 };
    const size_t begin = out->size;
    for (uint32_t i = 0; i < plan->inputs->n && out->size - begin <= USED_MAX; i++) {
        const tn_model_input *in = &plan->inputs->input[i];
        if (takes(in, numeric, which)) {
            const char *comma = out->size > begin ? ", " : "";
            bool fits = out->size - begin + strlen(comma) + strlen(in->name) <= USED_MAX;
            tn_text_addf(out, "%s%s", comma, fits ? in->name : "..");
            if (!fits) {
                break;
            }
        }
    }
    if (out->size == begin && !numeric) { /* only for such uses may a slot have no input */
        const bool sliced = tn_strs_has(&plan->run->eval.slices, plan->features->slot[which].name);
        tn_text_adds(out, sliced ? "eval.slices" : "data.group");
    }
}

/* Bytes of a row of the first record, with states, as a snapshot holds it. */
static uint32_t row_bytes(const tn_worker *w)
{
    uint32_t words = 0;
    tn_arena *arena = tn_arena_new(1 << 14);
    const tn_row_schema schema = tn_moment_row_schema(w, arena);
    const tn_row_record *record = &schema.record[schema.group[0].record];
    for (uint32_t s = 0; s < record->n_segments; s++) {
        words += record->segment[s].dim;
        for (uint32_t k = 0; k < record->segment[s].n_states; k++) {
            words += record->segment[s].state[k].words;
        }
    }
    tn_arena_free(arena);
    return TN_SNAPSHOT_ROW_BYTES + words * 4;
}

/* The table that a run begins with: a line about the whole model and a row per slot and number. */
static void model_table(const tn_worker *w, tn_text *out)
{
    static const char *const names[] = {"slot", "share", "dim", "pool", "used by"};
    enum { COLS = sizeof names / sizeof names[0] };
    const tn_model_plan *plan = w->plan;
    const tn_features *f = plan->features;
    tn_text_addf(out, "model %s: %u slots, %llu dense parameters, 0 rows of %u bytes (0 bytes)\n",
                 plan->run->model.choice->name, f->n_slots,
                 (unsigned long long)tn_params_trained(w->params), row_bytes(w));
    tn_sheet s = {.cols = COLS, .cell_max = TN_CELL_MAX};
    for (uint32_t c = 0; c < COLS; c++) {
        tn_sheet_word(&s, names[c]);
    }
    for (uint32_t i = 0; i < f->n_slots; i++) {
        const tn_model_slot *slot = &f->slot[i];
        tn_sheet_word(&s, slot->name);
        tn_sheet_word(&s, f->group[slot->group].name);
        tn_text_add_u64(&s.cells, slot->dim);
        tn_sheet_next(&s);
        tn_sheet_word(&s, tn_pool_words[slot->pool]);
        list_inputs(plan, false, i, &s.cells);
        tn_sheet_next(&s);
    }
    for (uint32_t i = 0; i < f->n_numbers; i++) {
        tn_sheet_word(&s, f->number[i].name);
        tn_sheet_word(&s, NULL);
        tn_text_add_u64(&s.cells, f->number[i].cols);
        tn_sheet_next(&s);
        tn_sheet_word(&s, f->number[i].cols > 1 ? "vector" : "number");
        list_inputs(plan, true, i, &s.cells);
        tn_sheet_next(&s);
    }
    tn_sheet_end(&s, NULL, out);
}

/* Bytes that rows may take, in each of the processes. */
static tn_status tell_memory(tn_worker *w, const tn_binder *b, tn_text *out, tn_error *err)
{
    tn_memory_cap memory;
    TN_TRY(tn_memory_cap_init(&memory, w, tn_group_built()->peers_here(b, w->plan->run), err));
    tn_text_adds(out, "rows   ");
    tn_memory_cap_text(&memory, out);
    tn_text_addc(out, '\n');
    return TN_OK;
}

/* Scores the first batch of one data set. */
static tn_status try_batch(tn_worker *w, tn_step_prefetch *data, const char *name, tn_text *out,
                           tn_error *err)
{
    tn_step *step = NULL;
    const float *logit = NULL;
    tn_status status = tn_step_prefetch_next(data, &step, err);
    if (status == TN_END) {
        return tn_fail(err, TN_E_DATA, "data.%s holds no records", name);
    }
    TN_TRY(status);
    TN_ASSERT(step->batch->rows > 0 && step->local != NULL);
    TN_TRY(tn_step_score(w, step, &logit, err));
    const uint32_t sources = tn_reader_n_sources(tn_step_prefetch_reader(data));
    tn_text_addf(out, "%-6s %u source%s, first batch of %u rows with %u different keys\n", name,
                 sources, sources == 1 ? "" : "s", step->batch->rows, step->local->keys.n);
    tn_step_prefetch_recycle(data, step);
    return TN_OK;
}

static tn_status try_data(tn_worker *w, const char *name, const tn_strs *paths, tn_text *out,
                          tn_error *err)
{
    if (paths->n == 0) {
        return TN_OK;
    }
    const tn_run *run = w->plan->run;
    const bool trained = paths == &run->data.train;
    const tn_reader_opts reader = {.paths = *paths,
                                   .batch_rows = trained ? run->train.batch : run->eval.batch,
                                   .held =
                                       paths == &run->data.valid && run->data.held != TN_HELD_NONE,
                                   .seed = run->run.seed,
                                   .prefetch = 1};
    const tn_step_prefetch_opts opts = {.plan = w->plan, .team = w->team, .ahead = 1};
    tn_step_prefetch *data = NULL;
    TN_TRY(tn_step_prefetch_open(&data, &opts, &reader, err));
    tn_status status = try_batch(w, data, name, out, err);
    tn_step_prefetch_close(data);
    return status;
}

static tn_status try_all(tn_worker *w, tn_text *out, tn_error *err)
{
    const tn_run *run = w->plan->run;
    const tn_tree *from = run->checkpoint.from;
    if (!tn_tree_is_null(from)) {
        tn_begun begun = {0};
        const tn_status status = tn_import(from, w, &begun, err);
        tn_text_adds(out, tn_text_str(&begun.table));
        tn_begun_done(&begun);
        TN_TRY(status);
    }
    TN_TRY(try_data(w, "train", &run->data.train, out, err));
    TN_TRY(try_data(w, "valid", &run->data.valid, out, err));
    tn_text which = {0};
    if (tn_data_is_trained(&run->data, NULL, &run->data.valid, &which)) {
        tn_text_addf(out,
                     "warning: data.valid: %s; rows that are trained on tell nothing of others\n",
                     tn_text_str(&which));
    }
    tn_text_done(&which);
    return try_data(w, "test", &run->data.test, out, err);
}

tn_status tn_dry_run(const tn_model_plan *plan, const tn_binder *b, tn_text *out, tn_error *err)
{
    tn_worker *w = NULL;
    TN_TRY(tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, b, err));
    model_table(w, out);
    tn_status status = tell_memory(w, b, out, err);
    if (status == TN_OK) {
        status = try_all(w, out, err);
    }
    tn_worker_free(w);
    return status;
}

/* Describes what every node costs, and how long a step will take. */
static tn_status describe(tn_worker *w, tn_trace *trace, const tn_binder *b, tn_text *out,
                          tn_error *err)
{
    double products = 0;
    const tn_forecast_kind *forecast = tn_forecast_built();
    TN_TRY(tn_measure_products(w->train_graph, &products, err));
    tn_graph_print(w->train_graph, products, out);
    TN_TRY(tell_memory(w, b, out, err));
    if (forecast == NULL) {
        tn_text_addf(out, TN_ABSENT_FORM "\n", "forecast");
        return TN_OK;
    }
    return forecast->plan(w, trace, out, err);
}

tn_status tn_describe_graph(const tn_model_plan *plan, const tn_binder *b, bool dot, tn_text *out,
                            tn_error *err)
{
    const bool foresees = tn_run_threads(plan->run) > tn_cpu_count();
    const tn_worker_opts opts = {.training = true, .threads = foresees ? 1 : 0};
    tn_worker *w = NULL;
    TN_TRY(tn_worker_new(&w, plan, &opts, b, err));
    tn_trace *trace = NULL;
    tn_status status = foresees && !dot ? tn_trace_open(&trace, 1, err) : TN_OK;
    if (status == TN_OK && dot) {
        tn_graph_dot(w->train_graph, out);
    } else if (status == TN_OK) {
        status = describe(w, trace, b, out, err);
    }
    tn_worker_free(w);
    tn_trace_close(trace);
    return status == TN_OK ? tn_text_check(out, "the plan", err) : status;
}
