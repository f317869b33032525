/* generate_config.c - what a generated file looks like, as the configuration that reads it; what
 * was planted, as JSON. */
#include "base/codec/json.h"
#include "io/synth/generate_file.h"
#include "io/synth/generate_world.h"

#include <math.h>
#include <string.h>

/* How each format keeps slots apart. */
typedef struct spelling {
    bool names;  /* by column names, listed in the configuration */
    bool ranges; /* by ranges of indices */
    bool fields; /* by field numbers */
    bool lists;  /* several values need a separator */
} spelling;

static tn_status spell(const tn_generator *g, const char *format, spelling *out, tn_error *err)
{
    *out = (spelling){0};
    bool csv = strcmp(format, "csv") == 0;
    bool tsv = strcmp(format, "tsv") == 0;
    if (csv || tsv || strcmp(format, "tfrecord") == 0) {
        out->names = tsv;
        out->lists = csv || tsv;
        return TN_OK;
    }
    if (g->opts.truth) {
        return tn_fail(err, TN_E_CONFIG,
                       "format '%s' has no column for 'truth'; csv, tsv and tfrecord have", format);
    }
    if (g->opts.preset == TN_GEN_CRITEO && strcmp(format, "criteo") == 0) {
        return TN_OK;
    }
    if (g->opts.preset == TN_GEN_PLAIN) {
        out->ranges = strcmp(format, "libsvm") == 0;
        out->fields = strcmp(format, "libffm") == 0;
    }
    if (!out->ranges && !out->fields) {
        return tn_fail(err, TN_E_CONFIG,
                       "this preset is not written as '%s'; try csv, tsv or tfrecord", format);
    }
    return TN_OK;
}

static const char *type_of(const tn_gen_slot *slot)
{
    static const char *const types[] = {"id", "int", "hex", "str", "int", "float"};
    return types[slot->kind];
}

/* Indices of the libsvm file: ids where they are, numbers behind all of them. */
static uint64_t first_index(const tn_generator *g, uint32_t s)
{
    uint64_t ids = g->opts.ids;
    uint64_t behind = ids * g->opts.slots;
    return g->slot[s].kind == TN_GEN_NUMBER ? behind + s : g->slot[s].first_sign;
}

static void describe_slot(const tn_generator *g, uint32_t s, const spelling *how, tn_text *out)
{
    const tn_gen_slot *slot = &g->slot[s];
    tn_text_addf(out, "  - {name: %s, type: %s", slot->name, type_of(slot));
    if (slot->kind == TN_GEN_COUNT) {
        tn_text_adds(out, ", transform: ln2_bucket");
    }
    if (slot->kind == TN_GEN_NUMBER) {
        tn_text_addf(out, ", as: %s%s", g->opts.model == TN_GEN_DEEP ? "value" : "weighted",
                     slot->log ? ", transform: log" : "");
    }
    if (slot->values_max > 1) {
        tn_text_adds(out, how->lists ? ", list: \"|\", pool: sum" : ", pool: sum");
    }
    if (how->ranges) {
        unsigned long long from = first_index(g, s);
        unsigned long long to = from + (slot->kind == TN_GEN_NUMBER ? 1 : slot->ids);
        tn_text_addf(out, ", range: [%llu, %llu]", from, to);
    }
    if (how->fields) {
        tn_text_addf(out, ", field: %u", s);
    }
    tn_text_adds(out, "}\n");
}

/* Without a header, columns are known by their place. */
static void describe_columns(const tn_generator *g, tn_text *out)
{
    tn_text_adds(out, "  columns: [label");
    for (uint32_t s = 0; s < g->n_slots; s++) {
        tn_text_addf(out, ", %s", g->slot[s].name);
    }
    tn_text_adds(out, g->opts.truth ? ", truth]\n" : "]\n");
}

/* The model of TNet that can hold what was planted. */
static void describe_model(const tn_generator *g, tn_text *out)
{
    static const char *const models[] = {"lr", "fm", "deepfm"};
    tn_text_addf(out, "model:\n  type: %s\n", models[g->opts.model]);
    if (g->opts.model != TN_GEN_LR) {
        tn_text_addf(out, "embedding:\n  dim: %u\n", g->opts.dim);
    }
}

tn_status tn_gen_config(const tn_generator *g, const char *format, const char *path, tn_text *out,
                        tn_error *err)
{
    spelling how;
    TN_TRY(spell(g, format, &how, err));
    tn_text_addf(out, "data:\n  format: %s\n  train: \"", format);
    for (const char *c = path; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            tn_text_addc(out, '\\');
        }
        tn_text_addc(out, *c);
    }
    tn_text_adds(out, "\"\n  label: label\n");
    if (how.names) {
        describe_columns(g, out);
    }
    tn_text_adds(out, "slots:\n");
    for (uint32_t s = 0; s < g->n_slots; s++) {
        describe_slot(g, s, &how, out);
    }
    describe_model(g, out);
    return tn_text_check(out, "a configuration", err);
}

static void oracle_json(const tn_oracle *oracle, tn_text *out)
{
    tn_json_open_key(out, "oracle", '{');
    tn_json_count(out, "rows", oracle->rows);
    tn_json_count(out, "clicks", oracle->clicks);
    tn_json_f64(out, "auc", oracle->auc);
    tn_json_f64(out, "auc_expected", oracle->auc_expected);
    tn_json_f64(out, "logloss", oracle->logloss);
    tn_json_f64(out, "logloss_expected", oracle->logloss_expected);
    tn_json_close(out, '}');
}

void tn_gen_truth_json(const tn_generator *g, const tn_gen_report *report, tn_text *out)
{
    static const char *const presets[] = {"plain", "criteo", "movies"};
    static const char *const models[] = {"lr", "fm", "deep"};
    const tn_gen_opts *o = &g->opts;
    tn_json_open(out, '{');
    tn_json_str(out, "format", "tnet-truth");
    tn_json_raw(out, "version", "[1,0]");
    tn_json_str(out, "preset", presets[o->preset]);
    tn_json_str(out, "model", models[o->model]);
    tn_json_count(out, "seed", o->seed);
    tn_json_count(out, "first_row", o->first_row);
    tn_json_count(out, "rows", report->rows);
    tn_json_f64(out, "bias", g->truth.bias);
    tn_json_f64(out, "linear", g->truth.linear);
    tn_json_f64(out, "mixed", g->truth.mixed);
    tn_json_f64(out, "rate", g->truth.rate);
    tn_json_count(out, "parameters", report->parameters);
    tn_json_count(out, "free_parameters", report->free_parameters);
    oracle_json(&report->oracle, out);
    tn_json_close(out, '}');
    tn_text_addc(out, '\n');
}
