/* generate_plan.c - which slots a world has: plain ids, Criteo's columns, films. */
#include "io/synth/generate_world.h"

#include <math.h>
#include <stdio.h>

enum { NAME_MAX_BYTES = 16 };

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

static void plan_criteo(tn_generator *g)
{
    g->n_slots = 39;
    g->slot = TN_NEW_ARRAY(g->arena, tn_gen_slot, g->n_slots);
    for (uint32_t i = 0; i < 13; i++) {
        g->slot[i] = (tn_gen_slot){
            .name = numbered(g->arena, "I", i + 1),
            .kind = TN_GEN_COUNT,
            .ids = GEN_LN2_BUCKETS,
            .values_max = 1,
            .missing = criteo_counts[i].missing,
            .centre = criteo_counts[i].centre,
            .width = criteo_counts[i].width,
            .least = criteo_counts[i].least,
        };
    }
    for (uint32_t i = 0; i < 26; i++) {
        g->slot[13 + i] = (tn_gen_slot){
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
    g->slot = TN_NEW_ARRAY(g->arena, tn_gen_slot, g->n_slots);
    for (uint32_t i = 0; i < g->n_slots; i++) {
        g->slot[i] = slots[i];
    }
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
    g->slot = TN_NEW_ARRAY(g->arena, tn_gen_slot, g->n_slots);
    for (uint32_t i = 0; i < o->slots; i++) {
        g->slot[i] = (tn_gen_slot){
            .name = numbered(g->arena, "s", i),
            .kind = TN_GEN_ID,
            .ids = o->ids,
            .first_sign = (uint64_t)i * o->ids,
            .values_max = i >= o->slots - o->multi ? o->values_max : 1,
            .missing = o->missing,
        };
    }
    for (uint32_t i = 0; i < o->numeric; i++) {
        g->slot[o->slots + i] = (tn_gen_slot){
            .name = numbered(g->arena, "x", i),
            .kind = TN_GEN_NUMBER,
            .width = 1,
            .missing = o->missing,
        };
    }
    return TN_OK;
}

/* What only `plain` understands must not be given with another preset. */
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

tn_status tn_gen_plan(tn_generator *g, tn_error *err)
{
    static const double rates[] = {0.2, 0.2562, 0.35};
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
    TN_TRY(refuse_plain_options(&g->opts, "movies", err));
    plan_movies(g);
    return TN_OK;
}
