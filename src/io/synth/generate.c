/* generate.c - the options of a planted world, and building one. */
#include "io/synth/generate.h"

#include "base/core/alloc.h"
#include "io/synth/generate_world.h"

#include <math.h>

static const char *const presets[] = {"plain", "criteo", "movies", NULL};
static const char *const models[] = {"lr", "fm", "deep", NULL};

const tn_field tn_gen_fields[] = {
    TN_FIELD_CHOICE(tn_gen_opts, preset, "plain", presets,
                    "slots and formats: plain ids, Criteo's columns, or films with genres"),
    TN_FIELD_CHOICE(tn_gen_opts, model, "lr", models, "what is planted: lr, fm or deep"),
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
                 "fm, deep: share of the logit's variance that is not linear"),
    TN_FIELD_U32(tn_gen_opts, dim, "4", 1, 256, "", "fm, deep: width of the planted vectors"),
    TN_FIELD_BOOL(tn_gen_opts, truth, "false",
                  "csv, tsv, tfrecord: a column `truth` with the planted probability"),
    TN_FIELD_END,
};

static tn_status make_laws(tn_generator *g, tn_error *err)
{
    g->law = TN_NEW_ARRAY(g->arena, tn_zipf *, g->n_slots);
    g->weights = TN_NEW_ARRAY(g->arena, uint64_t, g->n_slots);
    for (uint32_t s = 0; s < g->n_slots; s++) {
        const tn_gen_slot *slot = &g->slot[s];
        g->weights[s] = tn_stream3(g->opts.seed, TN_RNG_GENERATE, GEN_WEIGHT, s);
        g->values_max += slot->kind == TN_GEN_NUMBER ? 0 : slot->values_max;
        if (slot->kind != TN_GEN_NUMBER && slot->kind != TN_GEN_COUNT) {
            double s_law = slot->kind == TN_GEN_SMALL ? 0 : g->opts.zipf;
            TN_TRY(tn_zipf_new(&g->law[s], slot->ids, s_law, err));
        }
    }
    return TN_OK;
}

/* The hidden layer of `deep`: uniform weights of variance 4 / inputs, outgoing ones of variance 1.
 */
static void make_hidden(tn_generator *g)
{
    uint32_t inputs = g->n_slots * g->opts.dim;
    uint32_t stride = inputs + 1;
    g->hidden = TN_NEW_ARRAY(g->arena, double, (size_t)GEN_HIDDEN_UNITS *stride);
    uint64_t stream = tn_stream2(g->opts.seed, TN_RNG_GENERATE, GEN_HIDDEN);
    double width = 3.4641016151377544 / sqrt((double)inputs);
    for (uint32_t i = 0; i < GEN_HIDDEN_UNITS * stride; i++) {
        double unit = 2 * tn_unit(tn_draw(stream, i)) - 1;
        g->hidden[i] = i % stride == inputs ? unit : unit * width;
    }
}

tn_status tn_generator_new(tn_generator **out, const tn_gen_opts *opts, tn_team *team,
                           tn_error *err)
{
    *out = NULL;
    tn_generator *g = tn_alloc(1, sizeof *g, "a generator");
    g->opts = *opts;
    g->arena = tn_arena_new(1 << 16);
    tn_status status = tn_gen_plan(g, err);
    if (status == TN_OK) {
        status = make_laws(g, err);
    }
    if (status != TN_OK) {
        goto fail;
    }
    make_hidden(g);
    status = tn_gen_fit(g, team, err);
    if (status != TN_OK) {
        goto fail;
    }
    *out = g;
    return TN_OK;
fail:
    tn_generator_free(g);
    return status;
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

const tn_gen_opts *tn_generator_opts(const tn_generator *g)
{
    return &g->opts;
}

uint32_t tn_generator_n_slots(const tn_generator *g)
{
    return g->n_slots;
}

const tn_gen_slot *tn_generator_slot(const tn_generator *g, uint32_t i)
{
    TN_ASSERT(i < g->n_slots);
    return &g->slot[i];
}

tn_gen_truth tn_generator_truth(const tn_generator *g)
{
    return g->truth;
}
