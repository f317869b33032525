/* generate_row.c - one example: draw its values, add up its logit, throw the coin.
 *
 * Draw number k of a row is tn_draw(stream, k): two words for an id, one for everything else, taken
 * in the order of the slots. Weights are draws of the slot's stream at id * (1 + dim): the linear
 * one, then the vector, uniform with variance 1.
 */
#include "base/core/alloc.h"
#include "base/math/fmath.h"
#include "io/synth/generate_world.h"

#include <math.h>
#include <string.h>

#define ROOT_3 1.7320508075688772
#define LN2_BUCKET_SMALL 1000 /* numbers up to 2 stand behind the buckets, as 1000 + v */

enum { NUMBER_MAX = 2147483647 };

tn_status tn_gen_row_init(tn_gen_row *row, const tn_generator *g, tn_error *err)
{
    uint32_t n = g->n_slots;
    *row = (tn_gen_row){0};
    row->first = tn_try_alloc((size_t)n + 1, sizeof *row->first, "a generated row", err);
    row->id = tn_try_alloc((size_t)g->values_max + 1, sizeof *row->id, "a generated row", err);
    row->number = tn_try_alloc(n, sizeof *row->number, "a generated row", err);
    row->scratch =
        tn_try_alloc((size_t)n + 2, g->opts.dim * sizeof(double), "a generated row", err);
    if (row->first == NULL || row->id == NULL || row->number == NULL || row->scratch == NULL) {
        tn_gen_row_done(row);
        return TN_E_MEMORY;
    }
    return TN_OK;
}

void tn_gen_row_done(tn_gen_row *row)
{
    tn_free(row->first);
    tn_free(row->id);
    tn_free(row->number);
    tn_free(row->scratch);
    *row = (tn_gen_row){0};
}

static double weight(uint64_t stream, uint64_t at)
{
    return ROOT_3 * (2 * tn_unit(tn_draw(stream, at)) - 1);
}

/* The row of the ln2 bucket transform as a small number: bucket, or 1000 + v for v <= 2. */
static uint64_t bucket_of(double v)
{
    if (v > 2) {
        double ln = tn_ln(v);
        return (uint64_t)(ln * ln);
    }
    return (uint64_t)(LN2_BUCKET_SMALL + (int64_t)v);
}

static double count_value(const tn_gen_slot *slot, uint64_t word)
{
    double v = floor(tn_exp(slot->centre + slot->width * tn_normal(word))) - 1 + slot->least;
    if (v < slot->least) {
        v = slot->least;
    }
    return v > NUMBER_MAX ? NUMBER_MAX : v;
}

/* Normal to three places, or log-normal to two (a price): what is planted is what is written. */
static double real_value(const tn_gen_slot *slot, uint64_t word)
{
    double x = slot->centre + slot->width * tn_normal(word);
    return slot->log ? floor(tn_exp(x) * 100 + 0.5) / 100 : floor(x * 1000 + 0.5) / 1000;
}

/* The values of one slot; returns how many ids it put at `id`. */
static uint32_t draw_slot(const tn_generator *g, uint32_t s, uint64_t stream, uint64_t *draws,
                          uint64_t *id, double *number)
{
    const tn_gen_slot *slot = &g->slot[s];
    *number = (double)NAN;
    bool missing = slot->missing > 0 && tn_unit(tn_draw(stream, (*draws)++)) < slot->missing;
    if (missing) {
        return 0;
    }
    if (slot->kind == TN_GEN_NUMBER) {
        *number = real_value(slot, tn_draw(stream, (*draws)++));
        return 0;
    }
    if (slot->kind == TN_GEN_COUNT) {
        *number = count_value(slot, tn_draw(stream, (*draws)++));
        id[0] = bucket_of(*number);
        return 1;
    }
    uint32_t n = 1;
    if (slot->values_max > 1) {
        n += (uint32_t)tn_below(tn_draw(stream, (*draws)++), slot->values_max);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x = tn_draw(stream, (*draws)++);
        id[i] = tn_zipf_id(g->law[s], x, tn_draw(stream, (*draws)++));
    }
    return n;
}

/* The slot's vector: the sum over its ids, or the number's times it. */
static void pool_slot(const tn_generator *g, const tn_gen_row *row, uint32_t s, double *vector)
{
    uint32_t dim = g->opts.dim;
    uint64_t stride = (uint64_t)dim + 1;
    memset(vector, 0, dim * sizeof *vector);
    for (uint32_t i = row->first[s]; i < row->first[s + 1]; i++) {
        for (uint32_t j = 0; j < dim; j++) {
            vector[j] += weight(g->weights[s], row->id[i] * stride + 1 + j);
        }
    }
    if (g->slot[s].kind == TN_GEN_NUMBER && !isnan(row->number[s])) {
        double x = g->slot[s].log ? tn_log1p(row->number[s]) : row->number[s];
        for (uint32_t j = 0; j < dim; j++) {
            vector[j] += x * weight(g->weights[s], 1 + j);
        }
    }
}

/* Sum over s < t of E_s . E_t = (|sum E|^2 - sum |E|^2) / 2. */
static double pairs(const double *pooled, uint32_t n, uint32_t dim)
{
    double twice = 0;
    for (uint32_t j = 0; j < dim; j++) {
        double sum = 0;
        double squares = 0;
        for (uint32_t s = 0; s < n; s++) {
            double v = pooled[s * dim + j];
            sum += v;
            squares += v * v;
        }
        twice += sum * sum - squares;
    }
    return twice / 2;
}

static double hidden_layer(const tn_generator *g, const double *pooled)
{
    uint32_t inputs = g->n_slots * g->opts.dim;
    double sum = 0;
    for (uint32_t h = 0; h < GEN_HIDDEN_UNITS; h++) {
        const double *w = g->hidden + (size_t)h * (inputs + 1);
        double in = 0;
        for (uint32_t i = 0; i < inputs; i++) {
            in += w[i] * pooled[i];
        }
        sum += w[inputs] * tn_tanh(in);
    }
    return sum;
}

static double linear_part(const tn_generator *g, const tn_gen_row *row, uint32_t s)
{
    uint64_t stride = (uint64_t)g->opts.dim + 1;
    double sum = 0;
    for (uint32_t i = row->first[s]; i < row->first[s + 1]; i++) {
        sum += weight(g->weights[s], row->id[i] * stride);
    }
    if (g->slot[s].kind == TN_GEN_NUMBER && !isnan(row->number[s])) {
        double x = g->slot[s].log ? tn_log1p(row->number[s]) : row->number[s];
        sum += x * weight(g->weights[s], 0);
    }
    return sum;
}

tn_gen_parts tn_gen_row_fill(tn_gen_row *row, const tn_generator *g, uint64_t stream,
                             uint64_t *draws)
{
    tn_gen_parts parts = {0, 0};
    row->first[0] = 0;
    for (uint32_t s = 0; s < g->n_slots; s++) {
        uint32_t at = row->first[s];
        row->first[s + 1] = at + draw_slot(g, s, stream, draws, row->id + at, &row->number[s]);
        parts.linear += linear_part(g, row, s);
    }
    TN_ASSERT(row->first[g->n_slots] <= g->values_max);
    if (g->opts.model == TN_GEN_LR) {
        return parts;
    }
    for (uint32_t s = 0; s < g->n_slots; s++) {
        pool_slot(g, row, s, row->scratch + (size_t)s * g->opts.dim);
    }
    parts.mixed = g->opts.model == TN_GEN_FM ? pairs(row->scratch, g->n_slots, g->opts.dim)
                                             : hidden_layer(g, row->scratch);
    return parts;
}

void tn_gen_row_draw(tn_gen_row *row, const tn_generator *g, uint64_t index)
{
    uint64_t stream = tn_stream3(g->opts.seed, TN_RNG_GENERATE, GEN_ROW, index);
    uint64_t draws = 0;
    tn_gen_parts parts = tn_gen_row_fill(row, g, stream, &draws);
    const tn_gen_truth *t = &g->truth;
    row->logit = t->bias + t->linear * parts.linear + t->mixed * parts.mixed;
    row->p = tn_sigmoid(row->logit);
    row->click = tn_unit(tn_draw(stream, draws)) < row->p;
}
