/* generate.c - a planted world: its options, its slots, its rows, and how its scales are found.
 *
 * A preset says which slots a world has: plain ids, Criteo's columns, films. Draw number k of a row
 * is tn_draw(stream, k): two words for an id, one for everything else, taken in the order of the
 * slots. Weights are draws of the slot's stream at id * (1 + dim): the linear one, then the vector,
 * uniform with variance 1.
 *
 * Scales and bias are found on a sample of rows that is never written: the logit gets the asked
 * deviation, p the asked mean. Sums run over tiles of a fixed size, tile after tile, so that the
 * world does not depend on the number of threads.
 */
#include "extra/synth/generate.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/math/fmath.h"
#include "base/math/rng.h"
#include "base/thread/range.h"
#include "base/thread/team.h"
#include "config/field.h"
#include "extra/synth/histories.h"
#include "extra/synth/zipf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Second words of the streams. */
enum {
    STREAM_ROW = 1,
    STREAM_WEIGHT = 2,
    STREAM_HIDDEN = 3,
    STREAM_SAMPLE = 4,
    STREAM_DRIFT = 5,
    STREAM_BOUGHT = 6
};

enum { HIDDEN_UNITS = 16, LN2_BUCKETS = 1024 };

/* The 13 numbers: share missing, mean and deviation of the logarithm, smallest value. Close to the
 * Kaggle set: I2 is never missing and goes below zero, I12 is missing in three rows of four. */
static const struct {
    double missing, centre, width;
    int32_t least;
} criteo_counts[13] = {
    {0.454, 0.5, 1.3, 0}, {0, 2.2, 2.0, -2},    {0.215, 1.8, 1.4, 0}, {0.217, 1.5, 0.9, 0},
    {0.026, 7.5, 2.4, 0}, {0.224, 3.5, 1.6, 0}, {0.043, 1.5, 1.5, 0}, {0.001, 1.9, 1.1, 0},
    {0.043, 3.8, 1.4, 0}, {0.454, 0.2, 0.5, 0}, {0.043, 0.8, 0.9, 0}, {0.765, 0.1, 0.8, 0},
    {0.217, 1.6, 0.9, 0},
};

/* The two parts of the logit before scaling. */
typedef struct logit_parts {
    double linear, mixed;
} logit_parts;

enum { NAME_MAX_BYTES = 16 };

#define ROOT_3 1.7320508075688772
#define LN2_BUCKET_SMALL 1000 /* numbers up to 2 follow the buckets, as 1000 + v */

enum { NUMBER_MAX = 2147483647 };

enum { SAMPLE_ROWS = 65536, TILE_ROWS = 1024, HALVINGS = 60 };

#define BIAS_MAX 400.0

typedef struct sample {
    const tn_generator *g;
    double linear[SAMPLE_ROWS];
    double mixed[SAMPLE_ROWS];
    double bought[SAMPLE_ROWS];
    bool failed[SAMPLE_ROWS / TILE_ROWS];
} sample;

static const char *numbered(tn_arena *arena, const char *prefix, uint32_t number)
{
    char *name = TN_NEW_ARRAY(arena, char, NAME_MAX_BYTES);
    (void)snprintf(name, NAME_MAX_BYTES, "%s%u", prefix, number);
    return name;
}

/* Ids of the 26 columns of the Criteo Kaggle set. */
static const uint32_t criteo_ids[26] = {
    1460, 583,   10131227, 2202608, 305,  24,   12517, 633,     3,  93145, 5683,   8351593, 3194,
    27,   14992, 5461306,  10,      5652, 2173, 4,     7046547, 18, 15,    286181, 105,     142572,
};

static void plan_criteo(tn_generator *g)
{
    tn_gen_slot *slot = TN_NEW_ARRAY(g->arena, tn_gen_slot, 39);
    g->n_slots = 39;
    g->slot = slot;
    for (uint32_t i = 0; i < 13; i++) {
        slot[i] = (tn_gen_slot){
            .name = numbered(g->arena, "I", i + 1),
            .kind = TN_GEN_COUNT,
            .ids = LN2_BUCKETS,
            .values_max = 1,
            .missing = criteo_counts[i].missing,
            .centre = criteo_counts[i].centre,
            .width = criteo_counts[i].width,
            .least = criteo_counts[i].least,
        };
    }
    for (uint32_t i = 0; i < 26; i++) {
        slot[13 + i] = (tn_gen_slot){
            .name = numbered(g->arena, "C", i + 1),
            .kind = TN_GEN_HEX,
            .ids = criteo_ids[i],
            .values_max = 1,
            .missing = i == 18 || i == 19 || i == 24 || i == 25 ? 0.44 : 0,
        };
    }
}

static const char *const genres[] = {
    "Drama",  "Comedy",  "Thriller", "Action",    "Romance",  "Adventure", "Crime",
    "Sci-Fi", "Horror",  "Fantasy",  "Animation", "Children", "Mystery",   "Documentary",
    "War",    "Musical", "Western",  "Film-Noir", "IMAX",     "Short",
};

static const char *const devices[] = {"phone", "tv", "tablet", "laptop", "console", "watch"};

static void plan_movies(tn_generator *g)
{
    static const tn_gen_slot slots[] = {
        {.name = "user", .kind = TN_GEN_ID, .ids = 20000, .first_sign = 1, .values_max = 1},
        {.name = "movie", .kind = TN_GEN_ID, .ids = 4000, .first_sign = 1, .values_max = 1},
        {.name = "genres",
         .kind = TN_GEN_STR,
         .ids = 20,
         .words = genres,
         .values_max = 4,
         .missing = 0.02},
        {.name = "device", .kind = TN_GEN_STR, .ids = 6, .words = devices, .values_max = 1},
        {.name = "hour", .kind = TN_GEN_SMALL, .ids = 24, .values_max = 1},
        {.name = "price",
         .kind = TN_GEN_NUMBER,
         .centre = 2,
         .width = 0.7,
         .missing = 0.05,
         .log = true},
    };
    g->n_slots = sizeof slots / sizeof slots[0];
    g->slot = slots;
}

static void plan_histories(tn_generator *g)
{
    static const tn_gen_slot slots[TN_HISTORY_SLOTS] = {
        {.name = "user", .kind = TN_GEN_ID, .ids = TN_HISTORY_USERS, .values_max = 1},
        {.name = "item", .kind = TN_GEN_ID, .ids = TN_HISTORY_ITEMS, .values_max = 1},
        {.name = "cate", .kind = TN_GEN_ID, .ids = TN_HISTORY_CATES, .values_max = 1},
        {.name = "hist_item",
         .kind = TN_GEN_ID,
         .ids = TN_HISTORY_ITEMS,
         .values_max = TN_HISTORY_LEN,
         .pair = "item"},
        {.name = "hist_cate",
         .kind = TN_GEN_ID,
         .ids = TN_HISTORY_CATES,
         .values_max = TN_HISTORY_LEN,
         .pair = "cate"},
    };
    g->n_slots = TN_HISTORY_SLOTS;
    g->slot = slots;
}

/* s0, s1, .. hold ids of ranges that follow each other, so that the libsvm family can keep them
 * apart; x0, x1, .. are standard normal. The last `multi` slots hold several values. */
static tn_status plan_plain(tn_generator *g, tn_error *err)
{
    tn_gen_opts *o = &g->opts;
    o->slots = o->slots == TN_UNSET_U32 ? 8 : o->slots;
    o->ids = o->ids == TN_UNSET_U32 ? 1000 : o->ids;
    o->multi = o->multi == TN_UNSET_U32 ? 0 : o->multi;
    o->values_max = o->values_max == TN_UNSET_U32 ? 3 : o->values_max;
    o->numeric = o->numeric == TN_UNSET_U32 ? 0 : o->numeric;
    o->missing = isnan(o->missing) ? 0 : o->missing;
    if (o->multi > o->slots) {
        return tn_fail(err, TN_E_CONFIG, "'multi' is %u, more than the %u slots", o->multi,
                       o->slots);
    }
    g->n_slots = o->slots + o->numeric;
    tn_gen_slot *slot = TN_NEW_ARRAY(g->arena, tn_gen_slot, g->n_slots);
    g->slot = slot;
    for (uint32_t i = 0; i < o->slots; i++) {
        slot[i] = (tn_gen_slot){
            .name = numbered(g->arena, "s", i),
            .kind = TN_GEN_ID,
            .ids = o->ids,
            .first_sign = (uint64_t)i * o->ids,
            .values_max = i >= o->slots - o->multi ? o->values_max : 1,
            .missing = o->missing,
        };
    }
    for (uint32_t i = 0; i < o->numeric; i++) {
        slot[o->slots + i] = (tn_gen_slot){
            .name = numbered(g->arena, "x", i),
            .kind = TN_GEN_NUMBER,
            .width = 1,
            .missing = o->missing,
        };
    }
    return TN_OK;
}

/* Options of preset `plain` must not be given with another preset. */
static tn_status refuse_plain_options(const tn_gen_opts *o, const char *preset, tn_error *err)
{
    const struct {
        const char *key;
        bool given;
    } own[] = {
        {"slots", o->slots != TN_UNSET_U32},     {"ids", o->ids != TN_UNSET_U32},
        {"multi", o->multi != TN_UNSET_U32},     {"values_max", o->values_max != TN_UNSET_U32},
        {"numeric", o->numeric != TN_UNSET_U32}, {"missing", !isnan(o->missing)},
    };
    for (uint32_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (own[i].given) {
            return tn_fail(err, TN_E_USAGE,
                           "'%s' does not go with preset '%s', whose columns are fixed", own[i].key,
                           preset);
        }
    }
    return TN_OK;
}

/* The slots of the preset, in the arena, and the options that were left open. TN_E_CONFIG. */
static tn_status plan_slots(tn_generator *g, tn_error *err)
{
    static const double rates[] = {0.2, 0.2562, 0.35, 0.3};
    const bool histories = g->opts.preset == TN_GEN_HISTORIES;
    if (histories && g->opts.buy > 0) {
        return tn_fail(err, TN_E_USAGE, "'buy' does not go with preset 'histories'");
    }
    if (histories != (g->opts.model == TN_GEN_ATTENTION) && g->opts.model != TN_GEN_LR) {
        return tn_fail(err, TN_E_USAGE,
                       "model '%s' does not go with preset '%s': 'histories' has 'attention' or "
                       "'lr', and no other has 'attention'",
                       tn_gen_models[g->opts.model], tn_gen_presets[g->opts.preset]);
    }
    if (isnan(g->opts.rate)) {
        g->opts.rate = rates[g->opts.preset];
    }
    if (g->opts.preset == TN_GEN_PLAIN) {
        return plan_plain(g, err);
    }
    if (g->opts.preset == TN_GEN_CRITEO) {
        TN_TRY(refuse_plain_options(&g->opts, "criteo", err));
        plan_criteo(g);
        return TN_OK;
    }
    TN_TRY(refuse_plain_options(&g->opts, tn_gen_presets[g->opts.preset], err));
    if (g->opts.preset == TN_GEN_HISTORIES) {
        plan_histories(g);
        return g->opts.drift > 0
                   ? tn_fail(err, TN_E_USAGE, "'drift' does not go with preset 'histories'")
                   : TN_OK;
    }
    plan_movies(g);
    return TN_OK;
}

void tn_gen_row_done(tn_gen_row *row)
{
    tn_free(row->id);
    *row = (tn_gen_row){0};
}

tn_status tn_gen_row_init(tn_gen_row *row, const tn_generator *g, tn_error *err)
{
    size_t n = g->n_slots;
    size_t words = g->values_max + n + n * g->opts.dim + n / 2 + 1;
    *row = (tn_gen_row){0};
    TN_TRY(TN_ALLOC(row->id, words, "a generated row", err));
    row->number = (double *)(void *)(row->id + g->values_max);
    row->scratch = row->number + n;
    row->first = (uint32_t *)(void *)(row->scratch + n * g->opts.dim);
    return TN_OK;
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

uint64_t tn_gen_day(const tn_generator *g, uint64_t index)
{
    return g->opts.day_rows > 0 ? index / g->opts.day_rows : 0;
}

static uint64_t last_day(const tn_generator *g)
{
    const tn_gen_opts *o = &g->opts;
    return tn_gen_day(g, o->first_row + (o->rows > 0 ? o->rows - 1 : 0));
}

uint64_t tn_gen_ids_ever(const tn_generator *g, uint32_t slot)
{
    const uint64_t ids = g->slot[slot].ids;
    const bool drifts = g->opts.drift > 0 && tn_gen_drifts(&g->slot[slot]);
    return drifts ? ids * ((uint64_t)(g->opts.drift * (double)last_day(g)) + 2) : ids;
}

/* The id that holds a place of the slot on a day. */
static uint64_t id_on(const tn_generator *g, uint32_t s, uint64_t place, uint64_t day)
{
    if (g->opts.drift <= 0 || day == 0 || !tn_gen_drifts(&g->slot[s])) {
        return place;
    }
    const double phase = tn_unit(tn_draw(g->phases[s], place));
    return place + g->slot[s].ids * (uint64_t)(g->opts.drift * (double)day + phase);
}

/* Draws the values of one slot; returns how many ids it appended. */
static uint32_t draw_slot(const tn_generator *g, uint32_t s, tn_gen_row *row, uint64_t stream,
                          uint64_t *draws)
{
    const tn_gen_slot *slot = &g->slot[s];
    uint64_t *id = row->id + row->first[s];
    double *number = &row->number[s];
    *number = (double)NAN;
    bool missing = slot->missing > 0 && tn_unit(tn_draw(stream, (*draws)++)) < slot->missing;
    if (missing) {
        return 0;
    }
    if (slot->kind == TN_GEN_NUMBER) {
        /* Normal to three places, or log-normal to two (a price): what is planted is written. */
        double x = slot->centre + slot->width * tn_normal(tn_draw(stream, (*draws)++));
        *number = slot->log ? floor(tn_exp(x) * 100 + 0.5) / 100 : floor(x * 1000 + 0.5) / 1000;
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
        id[i] = id_on(g, s, tn_zipf_id(g->law[s], x, tn_draw(stream, (*draws)++)), row->day);
    }
    return n;
}

/* The slot's vector of `dim`: the sum over its ids, or the number's times it. Returns what its
 * linear weights add up to. */
static double pool_slot(const tn_generator *g, const tn_gen_row *row, uint32_t s, uint32_t dim,
                        double *vector)
{
    const uint64_t stream = g->weights[s];
    double linear = 0;
    if (g->slot[s].pair != NULL) {
        return 0;
    }
    memset(vector, 0, dim * sizeof *vector);
    for (uint32_t i = row->first[s]; i < row->first[s + 1]; i++) {
        uint64_t at = row->id[i] * ((uint64_t)g->opts.dim + 1);
        linear += weight(stream, at);
        for (uint32_t j = 0; j < dim; j++) {
            vector[j] += weight(stream, at + 1 + j);
        }
    }
    if (g->slot[s].kind == TN_GEN_NUMBER && !isnan(row->number[s])) {
        double x = g->slot[s].log ? tn_log1p(row->number[s]) : row->number[s];
        linear += x * weight(stream, 0);
        for (uint32_t j = 0; j < dim; j++) {
            vector[j] += x * weight(stream, 1 + j);
        }
    }
    return linear;
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
    for (uint32_t h = 0; h < HIDDEN_UNITS; h++) {
        const double *w = g->hidden + (size_t)h * (inputs + 1);
        double in = 0;
        for (uint32_t i = 0; i < inputs; i++) {
            in += w[i] * pooled[i];
        }
        sum += w[inputs] * tn_tanh(in);
    }
    return sum;
}

/* Everything of the row but click, logit and p. `stream` is the row's. */
static logit_parts fill_row(tn_gen_row *row, const tn_generator *g, uint64_t stream,
                            uint64_t *draws)
{
    const bool histories = g->opts.preset == TN_GEN_HISTORIES;
    const uint32_t dim = histories || g->opts.model == TN_GEN_LR ? 0 : g->opts.dim;
    logit_parts parts = {0, 0};
    row->first[0] = 0;
    if (histories) {
        parts.mixed = tn_history_draw(row->id, row->first, stream, draws);
    }
    for (uint32_t s = 0; s < g->n_slots; s++) {
        if (!histories) {
            row->first[s + 1] = row->first[s] + draw_slot(g, s, row, stream, draws);
        }
        parts.linear += pool_slot(g, row, s, dim, row->scratch + (size_t)s * dim);
    }
    TN_ASSERT(row->first[g->n_slots] <= g->values_max);
    if (dim == 0) {
        return parts;
    }
    parts.mixed = g->opts.model == TN_GEN_FM ? pairs(row->scratch, g->n_slots, g->opts.dim)
                                             : hidden_layer(g, row->scratch);
    return parts;
}

/* The sum of the row's weights for purchases. */
static double sum_bought(const tn_generator *g, const tn_gen_row *row)
{
    double sum = 0;
    for (uint32_t s = 0; s < g->n_slots && g->opts.buy > 0; s++) {
        const tn_gen_slot *slot = &g->slot[s];
        for (uint32_t i = row->first[s]; i < row->first[s + 1] && slot->pair == NULL; i++) {
            sum += weight(g->bought[s], row->id[i]);
        }
        if (slot->kind == TN_GEN_NUMBER && !isnan(row->number[s])) {
            sum +=
                weight(g->bought[s], 0) * (slot->log ? tn_log1p(row->number[s]) : row->number[s]);
        }
    }
    return sum;
}

void tn_gen_row_draw(tn_gen_row *row, const tn_generator *g, uint64_t index)
{
    uint64_t stream = tn_stream3(g->opts.seed, TN_RNG_GENERATE, STREAM_ROW, index);
    uint64_t draws = 0;
    row->day = tn_gen_day(g, index);
    logit_parts parts = fill_row(row, g, stream, &draws);
    const tn_gen_truth *t = &g->truth;
    row->logit = t->bias + t->linear * parts.linear + t->mixed * parts.mixed;
    row->p = tn_sigmoid(row->logit);
    row->click = tn_unit(tn_draw(stream, draws)) < row->p;
    if (g->opts.buy > 0) {
        row->buy_logit = tn_purchase_logit(&g->purchases, row->logit, sum_bought(g, row));
        row->buy = row->click && tn_unit(tn_draw(stream, draws + 1)) < tn_sigmoid(row->buy_logit);
    }
}

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
        uint64_t stream = tn_stream3(s->g->opts.seed, TN_RNG_GENERATE, STREAM_SAMPLE, i);
        logit_parts parts = fill_row(&row, s->g, stream, &draws);
        s->linear[i] = parts.linear;
        s->mixed[i] = parts.mixed;
        s->bought[i] = sum_bought(s->g, &row);
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

/* Sets g->truth from a sample of its own. */
static tn_status fit_truth(tn_generator *g, tn_team *team, tn_error *err)
{
    sample *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a sample of generated rows", err));
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
    if (g->opts.buy > 0) {
        for (uint32_t i = 0; i < SAMPLE_ROWS; i++) {
            s->linear[i] += g->truth.bias;
        }
        tn_purchases_fit(g->opts.buy, g->opts.selection, s->linear, s->bought, SAMPLE_ROWS,
                         &g->purchases);
    }
    tn_free(s);
    return TN_OK;
}

const char *const tn_gen_presets[] = {"plain", "criteo", "movies", "histories", NULL};
const char *const tn_gen_models[] = {"lr", "fm", "deep", "attention", NULL};

const tn_field tn_gen_fields[] = {
    TN_FIELD_CHOICE(tn_gen_opts, preset, "plain", tn_gen_presets,
                    "slots and formats: plain ids, Criteo's columns, films with genres, or "
                    "histories of clicks"),
    TN_FIELD_CHOICE(tn_gen_opts, model, "lr", tn_gen_models,
                    "what is planted: lr, fm or deep; histories: lr or attention"),
    TN_FIELD_U64(tn_gen_opts, rows, "100k", 0, 1e15, "rows", "how many rows are written"),
    TN_FIELD_U64(tn_gen_opts, first_row, "0", 0, 1e15, "",
                 "index of the first one; another range of the same seed is a test set"),
    TN_FIELD_U64(tn_gen_opts, seed, "1", 0, 9e15, "", "selects the world and its rows"),
    TN_FIELD_U32(tn_gen_opts, slots, "~", 1, 1024, "slots", "plain: slots of ids; ~ is 8"),
    TN_FIELD_U32(tn_gen_opts, ids, "~", 1, 4e9, "ids", "plain: ids of each slot; ~ is 1000"),
    TN_FIELD_U32(tn_gen_opts, multi, "~", 0, 1024, "slots",
                 "plain: how many of the slots hold several values; ~ is 0"),
    TN_FIELD_U32(tn_gen_opts, values_max, "~", 1, 1000, "values",
                 "plain: most values in a row of such a slot; ~ is 3"),
    TN_FIELD_U32(tn_gen_opts, numeric, "~", 0, 1024, "columns",
                 "plain: numeric columns beside the slots; ~ is 0"),
    TN_FIELD_F64(tn_gen_opts, missing, "~", 0, 1, "", "plain: share of empty slots; ~ is 0"),
    TN_FIELD_F64(tn_gen_opts, zipf, "1.05", 0, 8, "",
                 "exponent of the popularity of ids; 0 makes all equally likely"),
    TN_FIELD_F64(tn_gen_opts, rate, "~", 1e-6, 0.999999, "",
                 "share of clicks; ~ is .2, criteo .2562, movies .35"),
    TN_FIELD_F64(tn_gen_opts, spread, "1.2", 0, 20, "", "standard deviation of the planted logit"),
    TN_FIELD_F64(tn_gen_opts, interaction, "0.5", 0, 1, "",
                 "fm, deep, attention: share of the logit's variance that is not linear"),
    TN_FIELD_U32(tn_gen_opts, dim, "4", 1, 256, "", "fm, deep: width of the planted vectors"),
    TN_FIELD_F64(tn_gen_opts, buy, "0", 0, 0.999, "",
                 "csv, tsv, tfrecord: a column `buy` of purchases, which share of clicks they are"),
    TN_FIELD_F64(tn_gen_opts, selection, "0.5", -1, 1, "",
                 "correlation of the logits of a click and of a purchase given one"),
    TN_FIELD_BOOL(tn_gen_opts, truth, "false",
                  "csv, tsv, tfrecord: a column `truth` with the planted probability"),
    TN_FIELD_F64(tn_gen_opts, drift, "0", 0, 1, "",
                 "share of each slot's ids that new ones replace every day; words, hours and "
                 "numbers stay"),
    TN_FIELD_U32(tn_gen_opts, days, "0", 0, 100000, "days",
                 "days that the rows are of, each as many; 0: as `day_rows` says"),
    TN_FIELD_U64(tn_gen_opts, day_rows, "0", 0, 1e15, "rows",
                 "rows of a day, for a range of days; 0: rows / days"),
    TN_FIELD_END,
};

static tn_status make_laws(tn_generator *g, tn_error *err)
{
    g->law = TN_NEW_ARRAY(g->arena, tn_zipf *, g->n_slots);
    g->weights = TN_NEW_ARRAY(g->arena, uint64_t, g->n_slots);
    g->bought = TN_NEW_ARRAY(g->arena, uint64_t, g->n_slots);
    g->phases = TN_NEW_ARRAY(g->arena, uint64_t, g->n_slots);
    for (uint32_t s = 0; s < g->n_slots; s++) {
        const tn_gen_slot *slot = &g->slot[s];
        g->weights[s] = tn_stream3(g->opts.seed, TN_RNG_GENERATE, STREAM_WEIGHT, s);
        g->bought[s] = tn_stream3(g->opts.seed, TN_RNG_GENERATE, STREAM_BOUGHT, s);
        g->phases[s] = tn_stream3(g->opts.seed, TN_RNG_GENERATE, STREAM_DRIFT, s);
        g->values_max += slot->kind == TN_GEN_NUMBER ? 0 : slot->values_max;
        if (slot->kind != TN_GEN_NUMBER && slot->kind != TN_GEN_COUNT) {
            double s_law = slot->kind == TN_GEN_SMALL ? 0 : g->opts.zipf;
            TN_TRY(tn_zipf_new(&g->law[s], slot->ids, s_law, err));
        }
    }
    return TN_OK;
}

/* The hidden layer of `deep`: uniform weights, variance 4 / inputs; outgoing ones, variance 1. */
static void make_hidden(tn_generator *g)
{
    uint32_t inputs = g->n_slots * g->opts.dim;
    uint32_t stride = inputs + 1;
    g->hidden = TN_NEW_ARRAY(g->arena, double, (size_t)HIDDEN_UNITS *stride);
    uint64_t stream = tn_stream2(g->opts.seed, TN_RNG_GENERATE, STREAM_HIDDEN);
    double width = 3.4641016151377544 / sqrt((double)inputs);
    for (uint32_t i = 0; i < HIDDEN_UNITS * stride; i++) {
        double unit = 2 * tn_unit(tn_draw(stream, i)) - 1;
        g->hidden[i] = i % stride == inputs ? unit : unit * width;
    }
}

void tn_generator_free(tn_generator *g)
{
    if (g == NULL) {
        return;
    }
    for (uint32_t s = 0; g->law != NULL && s < g->n_slots; s++) {
        tn_zipf_free(g->law[s]);
    }
    tn_arena_free(g->arena);
    tn_free(g);
}

/* How many rows a day has. */
static tn_status plan_days(tn_gen_opts *o, tn_error *err)
{
    if (o->days > 0 && o->day_rows > 0) {
        return tn_fail(err, TN_E_USAGE, "'days' and 'day_rows' both say how long a day is");
    }
    if (o->days > 0 && (o->first_row > 0 || o->rows == 0 || o->rows % o->days != 0)) {
        return tn_fail(err, TN_E_USAGE,
                       "'days' cuts all rows into %u equal days; here are %llu rows from row %llu "
                       "on\nhint: 'day_rows' says how long a day is, for any range of rows",
                       o->days, (unsigned long long)o->rows, (unsigned long long)o->first_row);
    }
    o->day_rows = o->days > 0 ? o->rows / o->days : o->day_rows;
    return o->drift > 0 && o->day_rows == 0
               ? tn_fail(err, TN_E_USAGE,
                         "'drift' is per day, and neither 'days' nor 'day_rows' "
                         "says what a day is")
               : TN_OK;
}

/* Hex ids are words of 32 bits, and what zipf draws from is less, too. */
static tn_status check_ids_ever(const tn_generator *g, tn_error *err)
{
    for (uint32_t s = 0; s < g->n_slots; s++) {
        const uint64_t most = g->slot[s].kind == TN_GEN_HEX ? UINT64_C(1) << 32 : UINT64_C(1) << 62;
        const double ever = (double)g->slot[s].ids * (g->opts.drift * (double)last_day(g) + 2);
        if (g->opts.drift > 0 && tn_gen_drifts(&g->slot[s]) && ever > (double)most) {
            return tn_fail(err, TN_E_USAGE,
                           "slot '%s' needs about %.0f ids in %llu days, and its format tells "
                           "%llu apart\nhint: a smaller 'drift', or fewer days",
                           g->slot[s].name, ever, (unsigned long long)last_day(g) + 1,
                           (unsigned long long)most);
        }
    }
    return TN_OK;
}

static tn_status make_world(tn_generator *g, tn_team *team, tn_error *err)
{
    TN_TRY(plan_days(&g->opts, err));
    TN_TRY(plan_slots(g, err));
    TN_TRY(check_ids_ever(g, err));
    TN_TRY(make_laws(g, err));
    make_hidden(g);
    return fit_truth(g, team, err);
}

tn_status tn_generator_new(tn_generator **out, const tn_gen_opts *opts, tn_team *team,
                           tn_error *err)
{
    *out = NULL;
    tn_generator *g = tn_alloc(1, sizeof *g, "a generator");
    g->opts = *opts;
    g->arena = tn_arena_new(1 << 16);
    tn_status status = make_world(g, team, err);
    if (status != TN_OK) {
        tn_generator_free(g);
        return status;
    }
    *out = g;
    return TN_OK;
}
