/* importance.c - reads blocks, deals a slot at a time, and judges the scores. */
#include "train/eval/importance.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"
#include "io/rows/batch_gather.h"
#include "io/schema/schema.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/step_prefetch.h"
#include "train/step/worker.h"

#include <math.h>

enum { BLOCK_ROWS = 1 << 16 };

/* The metrics that are looked at, by the target. */
static const char *const metrics_of[TN_TARGETS][TN_IMPORTANCE_METRICS] = {
    [TN_TARGET_CLICK] = {"auc", "logloss"},
    [TN_TARGET_SIDE] = {"auc", "accuracy"},
    [TN_TARGET_NUMBER] = {"rmse", "mae"},
    [TN_TARGET_ORDER] = {"auc", NULL},
};

/* One judge for each slot, and a last one for the rows as they are. */
typedef struct slot_judge {
    tn_score_collector collector;
    tn_evaluation result;
} slot_judge;

typedef struct measuring {
    tn_worker *w;
    const tn_eval_request *request;
    const tn_schema *schema;
    tn_run run; /* without slices and metrics of the user's */
    uint32_t repeats;
    tn_eval_request judged; /* request of each judge */
    slot_judge *judge;      /* n_judged + 1 */
    uint32_t n_judges;      /* judges with an open collector */
    tn_step *step;
    tn_batch_gather *gather;
    uint32_t *deal; /* BLOCK_ROWS */
    uint64_t blocks, rows;
    tn_reader *reader;
    tn_reader_stopper *stopper; /* NULL: nobody can stop it */
} measuring;

/* Crosses are dealt as they are, like columns of their own. */
static uint32_t n_judged(const tn_schema *schema)
{
    return schema->n_specs + schema->n_crosses;
}

/* Scores a block in batches, for the judge of `spec`; TN_NOWHERE: as it is. */
static tn_status score_block(measuring *m, const tn_batch *block, uint32_t spec, tn_error *err)
{
    slot_judge *judge = &m->judge[spec != TN_NOWHERE ? spec : n_judged(m->schema)];
    tn_gathered what = {.spec = spec, .deal = m->deal};
    while (what.first < block->rows) {
        const uint32_t left = block->rows - what.first;
        tn_batch *batch = NULL;
        const float *logit = NULL;
        what.n = left < m->run.eval.batch ? left : m->run.eval.batch;
        TN_TRY(tn_batch_gather_rows(m->gather, block, &what, &batch, err));
        TN_TRY(tn_step_prepare(m->step, batch, err));
        TN_TRY(tn_step_score(m->w, m->step, &logit, err));
        const tn_scores scores = {
            .batch = batch, .logit = logit, .unknown = m->step->unknown_slots};
        TN_TRY(tn_score_collector_add(&judge->collector, &scores, err));
        what.first += what.n;
    }
    return TN_OK;
}

/* Labels and factors of tasks are read as slots are, and are none. */
static bool is_slot(const tn_slot_spec *spec)
{
    return spec->label == NULL && !spec->weighs;
}

static tn_status measure_block(measuring *m, const tn_batch *block, tn_error *err)
{
    TN_ASSERT(block->rows <= BLOCK_ROWS);
    TN_TRY(score_block(m, block, TN_NOWHERE, err));
    for (uint32_t spec = 0; spec < n_judged(m->schema); spec++) {
        const uint64_t name = tn_name64(m->schema->spec[spec].name);
        for (uint32_t r = 0; is_slot(&m->schema->spec[spec]) && r < m->repeats; r++) {
            for (uint32_t i = 0; i < block->rows; i++) {
                m->deal[i] = i;
            }
            tn_shuffle(tn_stream3(m->run.run.seed, TN_RNG_IMPORTANCE, name,
                                  m->blocks * TN_IMPORTANCE_REPEATS + r),
                       m->deal, block->rows);
            TN_TRY(score_block(m, block, spec, err));
        }
    }
    m->blocks++;
    m->rows += block->rows;
    return TN_OK;
}

static tn_status open_reader(measuring *m, tn_error *err)
{
    const uint64_t most = m->request->rows_max;
    const tn_reader_opts opts = {.paths = *m->request->paths,
                                 .batch_rows =
                                     most > 0 && most < BLOCK_ROWS ? (uint32_t)most : BLOCK_ROWS,
                                 .held = m->request->held,
                                 .seed = m->run.run.seed,
                                 .prefetch = 1};
    TN_TRY(tn_reader_open(&m->reader, m->schema, &opts, err));
    return m->request->stop != NULL
               ? tn_reader_stopper_start(&m->stopper, m->reader, m->request->stop, err)
               : TN_OK;
}

static tn_status open_judges(measuring *m, tn_error *err)
{
    m->judged = (tn_eval_request){.calibration = m->request->calibration, .stop = m->request->stop};
    TN_TRY(TN_ALLOC(m->judge, (size_t)n_judged(m->schema) + 1, "metrics of slots", err));
    for (; m->n_judges <= n_judged(m->schema); m->n_judges++) {
        slot_judge *judge = &m->judge[m->n_judges];
        judge->collector = (tn_score_collector){.run = &m->run,
                                                .schema = m->schema,
                                                .request = &m->judged,
                                                .sampling = m->run.data.negative_sampling,
                                                .out = &judge->result};
        const tn_status status = tn_score_collector_begin(&judge->collector, err);
        if (status != TN_OK) {
            tn_score_collector_end(&judge->collector, status);
            return status;
        }
    }
    return TN_OK;
}

static tn_status open_all(measuring *m, tn_error *err)
{
    TN_TRY(open_judges(m, err));
    TN_TRY(tn_step_new(&m->step, m->w->plan, false, err));
    TN_TRY(tn_batch_gather_new(&m->gather, m->schema, err));
    TN_TRY(TN_ALLOC(m->deal, BLOCK_ROWS, "rows to deal", err));
    return open_reader(m, err);
}

static void close_all(measuring *m, tn_status status)
{
    tn_reader_stopper_end(m->stopper);
    tn_reader_close(m->reader);
    for (uint32_t i = 0; i < m->n_judges; i++) {
        tn_score_collector_end(&m->judge[i].collector, status);
        tn_evaluation_done(&m->judge[i].result);
    }
    tn_free(m->judge);
    tn_step_free(m->step);
    tn_batch_gather_free(m->gather);
    tn_free(m->deal);
}

static tn_status read_all(measuring *m, tn_error *err)
{
    const uint64_t most = m->request->rows_max;
    tn_batch *block = NULL;
    tn_status status = TN_OK;
    while (status == TN_OK && (most == 0 || m->rows < most) &&
           (status = tn_reader_next(m->reader, &block, err)) == TN_OK) {
        status = measure_block(m, block, err);
        tn_reader_recycle(m->reader, block);
    }
    if (m->request->stop != NULL && atomic_load(m->request->stop)) {
        return tn_fail(err, TN_E_STOPPED, "stopped by a signal while slots were dealt");
    }
    return status == TN_END ? TN_OK : status;
}

static void sum_up(const measuring *m, tn_importance *out)
{
    const slot_judge *base = &m->judge[n_judged(m->schema)];
    out->rows = m->rows;
    for (uint32_t k = 0; k < TN_IMPORTANCE_METRICS; k++) {
        const char *name = metrics_of[m->run.data.target][k];
        out->metric[k] = name;
        out->value[k] = name != NULL ? tn_metrics_get(base->result.metrics, name) : (double)NAN;
        const bool larger = name != NULL && tn_metric_find(name)->best == TN_BEST_LARGEST;
        out->n = 0;
        for (uint32_t i = 0; i < n_judged(m->schema); i++) {
            if (is_slot(&m->schema->spec[i])) {
                const double value =
                    name != NULL ? tn_metrics_get(m->judge[i].result.metrics, name) : (double)NAN;
                tn_slot_importance *slot = &out->slot[out->n++];
                slot->slot = m->schema->spec[i].name;
                slot->lost[k] = larger ? out->value[k] - value : value - out->value[k];
            }
        }
    }
}

tn_status tn_importance_measure(tn_worker *w, const tn_eval_request *request, uint32_t repeats,
                                tn_importance *out, tn_error *err)
{
    TN_ASSERT(repeats > 0 && repeats <= TN_IMPORTANCE_REPEATS);
    measuring m = {.w = w,
                   .request = request,
                   .schema = w->plan->schema,
                   .run = *w->plan->run,
                   .repeats = repeats};
    *out = (tn_importance){.n = n_judged(m.schema)};
    m.run.eval.auc = 0;
    m.run.eval.slices.n = 0;
    m.run.eval.metrics.n = 0;
    m.run.train.stop.monitor = m.run.train.reduce_on_plateau.monitor = NULL;
    tn_status status = TN_ALLOC(out->slot, out->n, "importance of slots", err);
    status = status == TN_OK ? open_all(&m, err) : status;
    status = status == TN_OK ? read_all(&m, err) : status;
    if (status == TN_OK) {
        sum_up(&m, out);
    } else {
        tn_importance_done(out);
    }
    close_all(&m, status);
    return status;
}

void tn_importance_done(tn_importance *found)
{
    tn_free(found->slot);
    *found = (tn_importance){0};
}
