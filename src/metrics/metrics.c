/* metrics.c - the list of metrics, adding up, and merging. */
#include "metrics/metrics.h"

#include "base/core/alloc.h"
#include "io/rows/rows.h"
#include "metrics/metrics_state.h"

#include <string.h>

#define WEIGHT_SUM_MAX_BINS 0x1p46  /* keeps a class below 2^62 in units of 2^-16 */
#define WEIGHT_SUM_MAX_EXACT 0x1p38 /* the same in units of 2^-24 */

/* Flags in metrics.def: those of targets begin at TARGETS_AT. */
enum {
    LARGER = 1,
    GROUPS = 2,
    ONE = 4,
    NEITHER = 8,
    TARGETS_AT = 4,
    CLICKS = 1 << (TARGETS_AT + TN_TARGET_CLICK),
    SIDES = 1 << (TARGETS_AT + TN_TARGET_SIDE),
    NUMBERS = 1 << (TARGETS_AT + TN_TARGET_NUMBER),
    ORDERS = 1 << (TARGETS_AT + TN_TARGET_ORDER),
    RANKS = CLICKS | SIDES | ORDERS,
    ANY = RANKS | NUMBERS,
};

const tn_metric *const tn_all_metrics[] = {
#define TN_METRIC(id, flags, help_)                                                                \
    &(const tn_metric){.name = #id,                                                                \
                       .help = (help_),                                                            \
                       .value = tn_metric_##id,                                                    \
                       .targets = (uint32_t)(flags) >> TARGETS_AT,                                 \
                       .needs_groups = ((flags)&GROUPS) != 0,                                      \
                       .best = ((flags)&LARGER) != 0    ? TN_BEST_LARGEST                          \
                               : ((flags)&ONE) != 0     ? TN_BEST_NEAREST_ONE                      \
                               : ((flags)&NEITHER) != 0 ? TN_BEST_NONE                             \
                                                        : TN_BEST_SMALLEST},
#include "metrics/metrics.def"
#undef TN_METRIC
    NULL,
};

const tn_metric *tn_metric_find(const char *name)
{
    for (const tn_metric *const *metric = tn_all_metrics; *metric != NULL; metric++) {
        if (strcmp((*metric)->name, name) == 0) {
            return *metric;
        }
    }
    return NULL;
}

bool tn_metric_fits(const char *name, tn_target target)
{
    const tn_metric *metric = tn_metric_find(name);
    TN_ASSERT(metric != NULL);
    return (metric->targets >> target & 1) != 0;
}

const char *tn_metrics_one_class(const tn_metrics *m)
{
    const bool classes = m->opts.target == TN_TARGET_CLICK || m->opts.target == TN_TARGET_SIDE;
    const double rate = classes ? tn_metrics_get(m, "ctr") : (double)NAN;
    return rate == 0 ? "no row with a click" : rate == 1 ? "no row without a click" : NULL;
}

tn_target tn_metrics_target(const tn_metrics *m)
{
    return m->opts.target;
}

tn_status tn_metrics_new(tn_metrics **out, const tn_metrics_opts *opts, tn_error *err)
{
    TN_ASSERT(opts->ece_bins <= TN_ECE_BINS_MAX);
    TN_ASSERT(opts->sampling >= 0 && opts->sampling <= 1);
    TN_ASSERT(opts->clip >= 0 && opts->clip < 0.5);
    const uint32_t n_bins = opts->coarse ? TN_BINS >> TN_COARSE_SHIFT : TN_BINS;
    tn_metrics *m = tn_try_alloc(1, sizeof *m + 2 * (size_t)n_bins * sizeof m->cell[0],
                                 "histogram of scores", err);
    if (m == NULL) {
        return TN_E_MEMORY;
    }
    m->opts = *opts;
    m->scoring = tn_scoring_of(opts);
    m->n_bins = n_bins;
    if (opts->exact_auc || opts->grouped) {
        m->kept = tn_kept_new();
    }
    *out = m;
    return TN_OK;
}

void tn_metrics_free(tn_metrics *m)
{
    if (m != NULL) {
        tn_kept_free(m->kept);
        tn_free(m->block);
        tn_free(m);
    }
}

void tn_metrics_clear(tn_metrics *m)
{
    if (m->rows > 0 || m->flags != 0) { /* else the bins are not even touched */
        memset(m->cell, 0, 2 * (size_t)m->n_bins * sizeof m->cell[0]);
    }
    m->rows = 0;
    m->flags = 0;
    memset(m->sum, 0, sizeof m->sum);
    if (m->kept != NULL) {
        m->kept->n = 0;
        m->kept->order = TN_KEPT_UNSORTED;
    }
}

static tn_status check_weight(const tn_metrics *m, tn_error *err)
{
    double max = m->kept != NULL ? WEIGHT_SUM_MAX_EXACT : WEIGHT_SUM_MAX_BINS;
    double sum = (double)m->sum[TN_SUM_W] * 0x1p-32;
    if (sum < max) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_LIMIT, "row weights add up to %.6g, metrics hold less than %.6g", sum,
                   max);
}

static void add_cells(tn_metrics *m)
{
    const tn_score_block *b = m->block;
    uint32_t shift = m->opts.coarse ? TN_COARSE_SHIFT : 0;
    uint64_t *negatives = m->cell;
    uint64_t *positives = m->cell + m->n_bins;
    for (uint32_t i = 0; i < b->n; i++) {
        uint64_t *side = b->y[i] > 0.5 ? positives : negatives;
        side[(uint32_t)b->bin[i] >> shift] += (uint64_t)b->cell[i];
    }
}

static inline void add_band(tn_metrics *m, const tn_score_block *b, uint32_t row)
{
    tn_u128 *band = m->sum + TN_SUMS + (size_t)TN_BAND_SUMS * (uint32_t)b->band[row];
    for (uint32_t k = 0; k < TN_BAND_SUMS; k++) {
        band[k] += tn_score_term(b, k, row);
    }
}

static void keep_rows(tn_metrics *m, const tn_scored *rows, uint32_t from)
{
    for (uint32_t i = from; i < from + m->block->n; i++) {
        float weight = rows->weight != NULL ? rows->weight[i] : 1;
        if (weight > 0) {
            uint64_t group = rows->group != NULL ? rows->group[i] : TN_NO_GROUP;
            tn_kept_add(m->kept, (tn_kept_row){.group = group,
                                               .key = tn_kept_key(rows->logit[i]),
                                               .label = rows->label[i],
                                               .weight = weight});
        }
    }
}

static void add_block(tn_metrics *m)
{
    const tn_score_block *b = m->block;
    for (uint32_t k = 0; k < TN_SUMS; k++) {
        m->sum[k] += tn_score_block_total(b, k);
    }
    for (uint32_t i = 0; i < b->n; i++) {
        m->rows += b->w[i] > 0 ? 1 : 0;
        add_band(m, b, i);
    }
    m->flags |= (b->weighted ? TN_HAS_WEIGHTS : 0) | (b->soft ? TN_HAS_SOFT : 0);
    add_cells(m);
}

void tn_metrics_add_scored(tn_metrics *m, const tn_score_block *b, uint32_t row)
{
    TN_ASSERT(m->opts.coarse && m->kept == NULL);
    for (uint32_t k = 0; k < TN_SUMS; k++) {
        m->sum[k] += tn_score_term(b, (tn_sum)k, row);
    }
    add_band(m, b, row);
    m->rows += b->w[row] > 0 ? 1 : 0;
    m->flags |= (b->w[row] != 1 ? TN_HAS_WEIGHTS : 0) |
                (b->y[row] != 0 && b->y[row] != 1 ? TN_HAS_SOFT : 0);
    uint32_t bin = (uint32_t)b->bin[row] >> TN_COARSE_SHIFT;
    m->cell[(b->y[row] > 0.5 ? m->n_bins : 0) + bin] += (uint64_t)b->cell[row];
}

tn_status tn_metrics_add(tn_metrics *m, const tn_scored *rows, tn_error *err)
{
    if (m->block == NULL) {
        TN_TRY(TN_ALLOC(m->block, 1, "scores of a block of rows", err));
    }
    if (m->kept != NULL) {
        TN_TRY(tn_kept_reserve(m->kept, rows->n, err));
    }
    for (uint32_t from = 0; from < rows->n; from += TN_SCORE_BLOCK) {
        TN_TRY(tn_score_block_fill(m->block, &m->scoring, rows, from, err));
        add_block(m);
        if (m->kept != NULL) {
            keep_rows(m, rows, from);
        }
    }
    return check_weight(m, err);
}

tn_status tn_metrics_merge(tn_metrics *m, const tn_metrics *other, tn_error *err)
{
    TN_ASSERT(m != other && m->n_bins == other->n_bins && m->opts.target == other->opts.target);
    TN_ASSERT(m->scoring.n_bands == other->scoring.n_bands);
    TN_ASSERT(m->kept == NULL && other->kept == NULL);
    for (size_t i = 0; i < 2 * (size_t)m->n_bins; i++) {
        m->cell[i] += other->cell[i];
    }
    for (uint32_t k = 0; k < TN_ALL_SUMS; k++) {
        m->sum[k] += other->sum[k];
    }
    m->rows += other->rows;
    m->flags |= other->flags;
    return check_weight(m, err);
}

double tn_metrics_get(const tn_metrics *m, const char *name)
{
    const tn_metric *metric = tn_metric_find(name);
    TN_ASSERT(metric != NULL);
    const bool known =
        tn_metric_fits(name, m->opts.target) && (!metric->needs_groups || m->opts.grouped);
    return known ? metric->value(m) : (double)NAN;
}

uint64_t tn_metrics_rows(const tn_metrics *m)
{
    return m->rows;
}

double tn_ratio(double a, double b)
{
    return b == 0 ? (double)NAN : a / b;
}

const uint64_t *tn_metrics_histogram(const tn_metrics *m)
{
    return m->cell;
}

void tn_metrics_sums(const tn_metrics *m, uint64_t out[TN_SAVED_SUMS][2])
{
    memcpy(out, m->sum, TN_SAVED_SUMS * sizeof *m->sum);
}

void tn_metrics_restore(tn_metrics *m, const uint64_t *histogram, const uint64_t *sums)
{
    tn_metrics_clear(m);
    memcpy(m->cell, histogram, 2 * (size_t)m->n_bins * sizeof m->cell[0]);
    memcpy(m->sum, sums, TN_SAVED_SUMS * sizeof *m->sum);
    m->flags = TN_RESTORED;
}
