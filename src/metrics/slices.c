/* slices.c - an open-addressed table from signs to coarse metrics. A block of rows is scored once,
 * then each row is dealt out. */
#include "metrics/slices.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/math/key.h"
#include "metrics/metrics_state.h"

#include <stdlib.h>

typedef struct slice {
    tn_metrics *metrics; /* owned */
    uint64_t sign;
    uint64_t seen; /* last row that counted */
} slice;

struct tn_slices {
    tn_slices_opts opts;
    tn_scoring scoring;
    tn_arena *arena; /* memory of the arrays */
    slice *slice;    /* n of at most slices_max; then the rest, for values without a place */
    uint64_t row;    /* number of the row that is dealt out, from 1 */
    uint32_t n;
    uint32_t *index; /* 1 + number of a slice, 0 when free; at most half full */
    uint32_t index_mask;
    tn_metrics *joined; /* owned; the rest and small slices: "other" in a report */
    tn_score_block block;
};

static tn_status new_metrics(const tn_slices *s, tn_metrics **out, tn_error *err)
{
    const tn_metrics_opts opts = {
        .coarse = true, .sampling = s->opts.sampling, .target = s->opts.target};
    return tn_metrics_new(out, &opts, err);
}

static tn_status allocate(tn_slices *s, tn_error *err)
{
    size_t places = 2;
    while (places < 2 * (size_t)s->opts.slices_max) {
        places *= 2;
    }
    const size_t most = s->opts.slices_max;
    size_t bytes = places * sizeof *s->index + (most + 1) * sizeof *s->slice + TN_CACHE_LINE;
    TN_TRY(tn_arena_open(&s->arena, bytes, "slices", err));
    s->index_mask = (uint32_t)places - 1;
    s->slice = TN_NEW_ARRAY(s->arena, slice, most + 1);
    s->index = TN_NEW_ARRAY(s->arena, uint32_t, places);
    TN_TRY(new_metrics(s, &s->slice[most].metrics, err));
    return new_metrics(s, &s->joined, err);
}

tn_status tn_slices_new(tn_slices **out, const tn_slices_opts *opts, tn_error *err)
{
    TN_ASSERT(opts->slices_max >= 1 && opts->slices_max <= TN_SLICES_MAX);
    tn_slices *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "slices", err));
    s->opts = *opts;
    s->scoring =
        tn_scoring_of(&(tn_metrics_opts){.sampling = opts->sampling, .target = opts->target});
    tn_status status = allocate(s, err);
    if (status != TN_OK) {
        tn_slices_free(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void tn_slices_free(tn_slices *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; s->slice != NULL && i <= s->opts.slices_max; i++) {
        tn_metrics_free(s->slice[i].metrics);
    }
    tn_metrics_free(s->joined);
    tn_arena_free(s->arena);
    tn_free(s);
}

uint32_t tn_slices_count(const tn_slices *s)
{
    return s->n;
}

/* Finds a value's slice: its own, a new one while there are places, else the rest. */
static tn_status find(tn_slices *s, uint64_t sign, slice **out, tn_error *err)
{
    uint32_t at = (uint32_t)tn_mix(sign) & s->index_mask;
    while (s->index[at] != 0 && s->slice[s->index[at] - 1].sign != sign) {
        at = (at + 1) & s->index_mask;
    }
    if (s->index[at] == 0 && s->n < s->opts.slices_max) {
        TN_TRY(new_metrics(s, &s->slice[s->n].metrics, err));
        s->slice[s->n++].sign = sign;
        s->index[at] = s->n;
    }
    *out = &s->slice[s->index[at] != 0 ? s->index[at] - 1 : s->opts.slices_max];
    return TN_OK;
}

/* Adds rows to slices. A row counts once in a slice, however often the value occurs in it. */
static tn_status deal(tn_slices *s, uint32_t from, const tn_slice_keys *keys, tn_error *err)
{
    for (uint32_t i = 0; i < s->block.n; i++) {
        uint32_t row = from + i;
        uint32_t at = keys->start != NULL ? keys->start[row] : row;
        uint32_t end = keys->start != NULL ? keys->start[row + 1] : row + 1;
        s->row++;
        for (; at < end; at++) {
            slice *of = NULL;
            TN_TRY(find(s, keys->sign[at], &of, err));
            if (of->seen != s->row) {
                of->seen = s->row;
                tn_metrics_add_scored(of->metrics, &s->block, i);
            }
        }
    }
    return TN_OK;
}

tn_status tn_slices_add(tn_slices *s, const tn_scored *rows, const tn_slice_keys *keys,
                        tn_error *err)
{
    for (uint32_t from = 0; from < rows->n; from += TN_SCORE_BLOCK) {
        TN_TRY(tn_score_block_fill(&s->block, &s->scoring, rows, from, err));
        TN_TRY(deal(s, from, keys, err));
    }
    return TN_OK;
}

static int by_rows(const void *a, const void *b)
{
    const tn_slice *x = a;
    const tn_slice *y = b;
    uint64_t n_x = tn_metrics_rows(x->metrics);
    uint64_t n_y = tn_metrics_rows(y->metrics);
    if (n_x != n_y) {
        return n_x > n_y ? -1 : 1;
    }
    return x->sign < y->sign ? -1 : x->sign > y->sign;
}

tn_status tn_slices_report(tn_slices *s, tn_slice *out, uint32_t *n, tn_error *err)
{
    uint32_t used = 0;
    tn_metrics_clear(s->joined);
    TN_TRY(tn_metrics_merge(s->joined, s->slice[s->opts.slices_max].metrics, err));
    for (uint32_t i = 0; i < s->n; i++) {
        const slice *one = &s->slice[i];
        if (tn_metrics_rows(one->metrics) < s->opts.rows_min) {
            TN_TRY(tn_metrics_merge(s->joined, one->metrics, err));
        } else {
            out[used++] = (tn_slice){.sign = one->sign, .metrics = one->metrics};
        }
    }
    qsort(out, used, sizeof *out, by_rows);
    if (tn_metrics_rows(s->joined) > 0) {
        out[used++] = (tn_slice){.is_other = true, .metrics = s->joined};
    }
    *n = used;
    return TN_OK;
}
