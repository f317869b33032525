/* generate_fit.c - scales and bias of a planted world, found on a sample of rows that is never
 * written: the logit gets the asked deviation, p the asked mean.
 *
 * Sums run over tiles of a fixed size, tile after tile, so that the world does not depend on the
 * number of threads.
 */
#include "base/core/alloc.h"
#include "base/math/fmath.h"
#include "base/thread/range.h"
#include "io/synth/generate_world.h"

#include <math.h>

enum { SAMPLE_ROWS = 65536, TILE_ROWS = 1024, HALVINGS = 60 };

#define BIAS_MAX 400.0

typedef struct sample {
    const tn_generator *g;
    double linear[SAMPLE_ROWS];
    double mixed[SAMPLE_ROWS];
    bool failed[SAMPLE_ROWS / TILE_ROWS];
} sample;

static void sample_tile(void *job, uint32_t tile)
{
    sample *s = job;
    tn_gen_row row;
    if (tn_gen_row_init(&row, s->g, NULL) != TN_OK) {
        s->failed[tile] = true;
        return;
    }
    tn_range rows = tn_tile(SAMPLE_ROWS, TILE_ROWS, tile);
    for (uint32_t i = rows.from; i < rows.to; i++) {
        uint64_t draws = 0;
        uint64_t stream = tn_stream3(s->g->opts.seed, TN_RNG_GENERATE, GEN_SAMPLE, i);
        tn_gen_parts parts = tn_gen_row_fill(&row, s->g, stream, &draws);
        s->linear[i] = parts.linear;
        s->mixed[i] = parts.mixed;
    }
    tn_gen_row_done(&row);
}

static double deviation(const double *x)
{
    double mean = 0;
    for (uint32_t i = 0; i < SAMPLE_ROWS; i++) {
        mean += x[i];
    }
    mean /= SAMPLE_ROWS;
    double squares = 0;
    for (uint32_t i = 0; i < SAMPLE_ROWS; i++) {
        squares += (x[i] - mean) * (x[i] - mean);
    }
    return sqrt(squares / SAMPLE_ROWS);
}

/* Scales both parts to their share of the variance, then their sum; leaves the sum in `linear`. */
static void scale(const tn_gen_opts *o, sample *s, tn_gen_truth *truth)
{
    double share = o->model == TN_GEN_LR ? 0 : o->interaction;
    double d_linear = deviation(s->linear);
    double d_mixed = deviation(s->mixed);
    truth->linear = d_linear > 0 ? sqrt(1 - share) / d_linear : 0;
    truth->mixed = d_mixed > 0 ? sqrt(share) / d_mixed : 0;
    for (uint32_t i = 0; i < SAMPLE_ROWS; i++) {
        s->linear[i] = truth->linear * s->linear[i] + truth->mixed * s->mixed[i];
    }
    double d = deviation(s->linear);
    double factor = d > 0 ? o->spread / d : 0;
    truth->linear *= factor;
    truth->mixed *= factor;
    for (uint32_t i = 0; i < SAMPLE_ROWS; i++) {
        s->linear[i] *= factor;
    }
}

static double mean_p(const double *logit, double bias)
{
    double sum = 0;
    for (uint32_t i = 0; i < SAMPLE_ROWS; i++) {
        sum += tn_sigmoid(logit[i] + bias);
    }
    return sum / SAMPLE_ROWS;
}

/* The mean of p rises with the bias: halve the interval that holds the asked rate. */
static double find_bias(const double *logit, double rate)
{
    double low = -BIAS_MAX;
    double high = BIAS_MAX;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (mean_p(logit, middle) < rate) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (low + high) / 2;
}

tn_status tn_gen_fit(tn_generator *g, tn_team *team, tn_error *err)
{
    sample *s = tn_try_alloc(1, sizeof *s, "a sample of generated rows", err);
    if (s == NULL) {
        return TN_E_MEMORY;
    }
    s->g = g;
    uint32_t tiles = tn_tile_count(SAMPLE_ROWS, TILE_ROWS);
    tn_team_run(team, tiles, sample_tile, s);
    for (uint32_t i = 0; i < tiles; i++) {
        if (s->failed[i]) {
            tn_free(s);
            return tn_fail(err, TN_E_MEMORY, "no memory for a sample of generated rows");
        }
    }
    scale(&g->opts, s, &g->truth);
    g->truth.bias = find_bias(s->linear, g->opts.rate);
    g->truth.rate = mean_p(s->linear, g->truth.bias);
    tn_free(s);
    return TN_OK;
}
