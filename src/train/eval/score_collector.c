/* score_collector.c - see score_collector.h. */
#include "train/eval/score_collector.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/math/key.h"
#include "io/schema/label.h"

#include <string.h>

/* One slot whose values get metrics of their own, and room for its signs. */
typedef struct slicer {
    uint32_t slot;
    uint64_t salt;
    uint64_t *sign;
    uint32_t capacity;
} slicer;

static tn_status find_slot(const tn_schema *schema, const char *name, slicer *out, tn_error *err)
{
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        if (strcmp(schema->slot[i]->name, name) == 0) {
            out->slot = i;
            out->salt = schema->slot[i]->salt;
            return TN_OK;
        }
    }
    return tn_fail(err, TN_E_CONFIG, "eval.slices: no slot '%s' with keys", name);
}

static tn_status make_slices(tn_judging *j, tn_error *err)
{
    const tn_run *run = j->run;
    tn_evaluation *out = j->out;
    uint32_t n = run->eval.slices.n;
    if (n == 0) {
        return TN_OK;
    }
    out->slices = tn_alloc(n, sizeof(tn_slices *), "slices");
    j->slicer = tn_alloc(n, sizeof *j->slicer, "slices");
    out->n_slices = n;
    for (uint32_t i = 0; i < n; i++) {
        TN_TRY(find_slot(j->schema, run->eval.slices.item[i], &j->slicer[i], err));
        tn_slices_opts opts = {
            .slices_max = 1 << 12, .rows_min = run->eval.slices_min_rows, .sampling = j->sampling};
        TN_TRY(tn_slices_new(&out->slices[i], &opts, err));
    }
    return TN_OK;
}

static tn_status add_slices(tn_judging *j, const tn_batch *batch, const tn_scored *rows,
                            tn_error *err)
{
    for (uint32_t i = 0; i < j->out->n_slices; i++) {
        slicer *s = &j->slicer[i];
        const tn_slot *slot = &batch->slot[s->slot];
        uint32_t n = slot->offset[batch->rows];
        if (n > s->capacity) {
            tn_free(s->sign);
            s->capacity = 0;
            s->sign = tn_try_alloc(n, sizeof *s->sign, "slices", err);
            if (s->sign == NULL) {
                return TN_E_MEMORY;
            }
            s->capacity = n;
        }
        for (uint32_t k = 0; k < n; k++) {
            s->sign[k] = tn_sign_of(slot->key[k], s->salt);
        }
        TN_TRY(tn_slices_add(j->out->slices[i], rows,
                             &(tn_slice_keys){.sign = s->sign, .start = slot->offset}, err));
    }
    return TN_OK;
}

tn_status tn_judging_begin(tn_judging *j, tn_error *err)
{
    *j->out = (tn_evaluation){0};
    j->began = tn_clock_s();
    if (j->request->only_scores) {
        return TN_OK;
    }
    tn_metrics_opts opts = tn_metrics_opts_of(j->run, j->schema);
    opts.sampling = j->sampling;
    TN_TRY(tn_metrics_new(&j->out->metrics, &opts, err));
    return make_slices(j, err);
}

tn_status tn_judging_add(tn_judging *j, const tn_scores *scores, tn_error *err)
{
    const tn_batch *batch = scores->batch;
    if (j->out->metrics != NULL && !j->schema->label->none) {
        tn_scored rows = {.n = batch->rows,
                          .logit = scores->logit,
                          .label = batch->label,
                          .weight = batch->weight,
                          .group = batch->group};
        TN_TRY(tn_metrics_add(j->out->metrics, &rows, err));
        TN_TRY(add_slices(j, batch, &rows, err));
    }
    if (j->request->sink != NULL) {
        TN_TRY(j->request->sink(j->request->sink_arg, scores, err));
    }
    if (j->request->stop != NULL && atomic_load(j->request->stop)) {
        return tn_fail(err, TN_E_STOPPED, "stopped by a signal while evaluating");
    }
    return TN_OK;
}

void tn_judging_end(tn_judging *j, tn_status status)
{
    for (uint32_t i = 0; j->slicer != NULL && i < j->out->n_slices; i++) {
        tn_free(j->slicer[i].sign);
    }
    tn_free(j->slicer);
    j->slicer = NULL;
    j->out->seconds = tn_clock_s() - j->began;
    if (status != TN_OK) {
        tn_evaluation_done(j->out);
    }
}

tn_reader_opts tn_judging_reader(const tn_judging *j)
{
    return (tn_reader_opts){.paths = *j->request->paths,
                            .batch_rows = j->run->eval.batch,
                            .want_ids = j->request->want_ids,
                            .seed = j->run->run.seed,
                            .prefetch = j->run->train.prefetch,
                            .use_cache = true};
}
