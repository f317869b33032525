/* generate_file.c - rows of a world into a file: the configuration that reads it, rounds of blocks,
 * made in parallel and written in order, so that neither threads nor their number show, and the
 * truth about them as JSON.
 *
 * A row holds texts and values, as if a parser had kept them, but no keys: writers do not look at
 * keys unless they are asked to write signs.
 *
 * Parameters are counted by a bit for every id of every slot, set when a row holds it. Not all that
 * occur are free. A slot that always has exactly one value adds a constant to itself and takes it
 * from the bias, so it has one weight less; the same holds for its vectors, whose constant part
 * moves into the weights of the other slots. And the vectors of fm may be rotated together:
 * k (k - 1) / 2 directions change nothing, k^2 when only two slots meet.
 */
#include "extra/synth/generate_file.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/math/fmath.h"
#include "base/thread/team.h"
#include "io/rows/rows.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "io/write/writer.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* How each format keeps slots apart. */
typedef struct spelling {
    bool names;  /* by column names, listed in the configuration */
    bool ranges; /* by ranges of indices */
    bool fields; /* by field numbers */
    bool lists;  /* several values need a separator */
} spelling;

enum { ENTRIES_NEAR = 16384, ROWS_MOST = 512, HEX_DIGITS = 8, TRUTH_DIGITS = 9 };

#define BITS_MAX (UINT64_C(1) << 32) /* half a gigabyte */

/* How many planted parameters show in the rows that are written. */
typedef struct params {
    const tn_generator *g;
    uint64_t *at; /* n_slots + 1: first bit of each slot; NULL: too many ids to count */
    _Atomic uint64_t *bits;
} params;

enum { BLOCKS_IN_ROUND = 16 };

/* One block of the round under way, which is made row by row. */
typedef struct piece {
    tn_gen_row row;
    tn_rows rows; /* the row alone, as if a parser had kept its texts and values */
    tn_text token;
    tn_text text; /* the records of the block */
    tn_status status;
    tn_error err;
} piece;

typedef struct work {
    const tn_generator *g;
    const tn_writer *writer;
    tn_arena *arena; /* holds what the rows point to */
    params params;
    tn_oracle_row *judged;
    tn_oracle_row *bought; /* the same of purchases; NULL: there are none */
    uint64_t n_judged;
    uint64_t done; /* rows of earlier rounds */
    uint32_t rows_in_block;
    piece piece[BLOCKS_IN_ROUND];
} work;

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
    if (g->opts.truth || g->opts.buy > 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "format '%s' has no column for '%s'; csv, tsv and tfrecord have", format,
                       g->opts.truth ? "truth" : "buy");
    }
    if (g->opts.preset == TN_GEN_CRITEO && strcmp(format, "criteo") == 0) {
        return TN_OK;
    }
    if (g->opts.preset == TN_GEN_PLAIN) {
        out->ranges = strcmp(format, "libsvm") == 0;
        out->fields = strcmp(format, "libffm") == 0;
    }
    if (out->ranges && g->opts.drift > 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "format 'libsvm' keeps slots apart by ranges of indices, which ids that "
                       "come and go leave\nhint: libffm, csv, tsv or tfrecord");
    }
    if (!out->ranges && !out->fields) {
        return tn_fail(err, TN_E_CONFIG,
                       "this preset is not written as '%s'; try csv, tsv or tfrecord", format);
    }
    return TN_OK;
}

/* Returns the first index of a slot in a libsvm file: that of ids is theirs, numbers follow them.
 */
static uint64_t first_index(const tn_generator *g, uint32_t s)
{
    uint64_t ids = g->opts.ids;
    uint64_t behind = ids * g->opts.slots;
    return g->slot[s].kind == TN_GEN_NUMBER ? behind + s : g->slot[s].first_sign;
}

static void describe_slot(const tn_generator *g, uint32_t s, const spelling *how, tn_text *out)
{
    static const char *const types[] = {"id", "int", "hex", "str", "int", "float"};
    const tn_gen_slot *slot = &g->slot[s];
    tn_text_addf(out, "  - {name: %s, type: %s", slot->name, types[slot->kind]);
    if (slot->kind == TN_GEN_COUNT) {
        tn_text_adds(out, ", transform: ln2_bucket");
    }
    if (slot->kind == TN_GEN_NUMBER) {
        tn_text_addf(out, ", as: %s%s", g->opts.model == TN_GEN_DEEP ? "value" : "weighted",
                     slot->log ? ", transform: log" : "");
    }
    if (slot->pair != NULL) {
        tn_text_addf(out, ", share: %s%s, pool: mean", slot->pair,
                     how->lists ? ", list: \"|\"" : "");
    } else if (slot->values_max > 1) {
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
    tn_text_adds(out, g->opts.buy > 0 ? ", buy" : "");
    tn_text_adds(out, g->opts.truth ? ", truth]\n" : "]\n");
}

/* Writes the planted model itself, of weights alone: one for each id and task. */
static void describe_sums(tn_text *out)
{
    tn_text_adds(out, "model:\n"
                      "  type: graph\n"
                      "  inputs:\n"
                      "    wide: {embed: all, dim: 1}\n"
                      "    bought: {embed: all, dim: 1}\n"
                      "  layers:\n"
                      "    - {name: clicks, sum: wide}\n"
                      "    - {name: purchases, sum: bought}\n"
                      "    - {name: click, bias: clicks}\n"
                      "    - {name: buy, bias: purchases}\n"
                      "  output: {click: click, buy: buy}\n");
}

static void describe_purchases(const tn_generator *g, tn_text *out)
{
    if (g->opts.model == TN_GEN_LR) {
        describe_sums(out);
    } else {
        tn_text_addf(out, "model:\n  type: esmm\nembedding:\n  dim: %u\n", 2 * g->opts.dim);
    }
    tn_text_adds(out, "tasks:\n  click: {label: label}\n  buy: {of: click}\n");
}

/* The model of TNet that can hold what was planted. */
static void describe_model(const tn_generator *g, tn_text *out)
{
    static const char *const models[] = {"lr", "fm", "deepfm", "din"};
    if (g->opts.buy > 0) {
        describe_purchases(g, out);
        return;
    }
    tn_text_addf(out, "model:\n  type: %s\n", models[g->opts.model]);
    if (g->opts.preset == TN_GEN_HISTORIES) {
        tn_text_adds(out, "sequences:\n  clicks: {slots: [hist_item, hist_cate], target: [item, "
                          "cate], max_len: 50}\n");
    } else if (g->opts.model != TN_GEN_LR) {
        tn_text_addf(out, "embedding:\n  dim: %u\n", g->opts.dim);
    }
}

tn_status tn_gen_config(const tn_generator *g, const tn_gen_place *at, tn_text *out, tn_error *err)
{
    spelling how;
    TN_TRY(spell(g, at->format, &how, err));
    tn_text_addf(out, "data:\n  format: %s\n  train: \"", at->format);
    for (const char *c = at->path; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            tn_text_addc(out, '\\');
        }
        tn_text_addc(out, *c);
    }
    tn_text_adds(out, "\"\n");
    if (at->days != NULL) {
        tn_text_addf(out, "  days: %s\n", at->days);
    }
    tn_text_adds(out, "  label: label\n");
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

/* ---- what the planted probability reaches ---- */

/* Sums over rows of one score, then over everything below it. */
typedef struct tally {
    double clicks, others; /* as thrown */
    double p, q, pq;       /* as expected; pq: pairs of a row with itself */
} tally;

static int by_logit(const void *a, const void *b)
{
    const tn_oracle_row *x = a;
    const tn_oracle_row *y = b;
    return (x->logit > y->logit) - (x->logit < y->logit);
}

static tally tie_from(const tn_oracle_row *row, size_t n, size_t *i)
{
    tally t = {0, 0, 0, 0, 0};
    double logit = row[*i].logit;
    double p = tn_sigmoid(logit);
    double q = tn_sigmoid(-logit);
    for (; *i < n && row[*i].logit == logit; (*i)++) {
        t.clicks += row[*i].click ? 1 : 0;
        t.others += row[*i].click ? 0 : 1;
        t.p += p;
        t.q += q;
        t.pq += p * q;
    }
    return t;
}

static void judge_auc(const tn_oracle_row *row, size_t n, tn_oracle *out)
{
    tally below = {0, 0, 0, 0, 0};
    double won = 0;
    double won_expected = 0;
    for (size_t i = 0; i < n;) {
        tally tie = tie_from(row, n, &i);
        won += tie.clicks * (below.others + tie.others / 2);
        won_expected += tie.p * below.q + (tie.p * tie.q - tie.pq) / 2;
        below.clicks += tie.clicks;
        below.others += tie.others;
        below.p += tie.p;
        below.q += tie.q;
        below.pq += tie.pq;
    }
    out->clicks = (uint64_t)below.clicks;
    double tried = below.clicks * below.others;
    double tried_expected = below.p * below.q - below.pq;
    out->auc = tried > 0 ? won / tried : (double)NAN;
    out->auc_expected = tried_expected > 0 ? won_expected / tried_expected : (double)NAN;
}

static void judge_logloss(const tn_oracle_row *row, size_t n, tn_oracle *out)
{
    double loss = 0;
    double expected = 0;
    for (size_t i = 0; i < n; i++) {
        double if_click = tn_log1p_exp(-row[i].logit);
        double if_not = tn_log1p_exp(row[i].logit);
        loss += row[i].click ? if_click : if_not;
        expected += tn_sigmoid(row[i].logit) * if_click + tn_sigmoid(-row[i].logit) * if_not;
    }
    out->logloss = n > 0 ? loss / (double)n : (double)NAN;
    out->logloss_expected = n > 0 ? expected / (double)n : (double)NAN;
}

tn_oracle tn_oracle_judge(tn_oracle_row *row, size_t n)
{
    tn_oracle out = {.rows = n};
    if (n > 0) {
        qsort(row, n, sizeof *row, by_logit);
    }
    judge_auc(row, n, &out);
    judge_logloss(row, n, &out);
    return out;
}

/* The member `purchases` of the truth. */
static void put_purchases(const tn_generator *g, const tn_oracle *oracle, tn_text *out)
{
    const tn_gen_purchases *t = &g->purchases;
    tn_json_open_key(out, "purchases", '{');
    tn_json_f64(out, "selection", g->opts.selection);
    tn_json_f64(out, "click", t->click);
    tn_json_f64(out, "bias", t->bias);
    tn_json_f64(out, "own", t->own);
    tn_json_f64(out, "rate", t->rate);
    tn_json_f64(out, "rate_all", t->rate_all);
    tn_json_count(out, "purchases", oracle->clicks);
    tn_json_f64(out, "auc", oracle->auc);
    tn_json_f64(out, "auc_expected", oracle->auc_expected);
    tn_json_f64(out, "logloss", oracle->logloss);
    tn_json_f64(out, "logloss_expected", oracle->logloss_expected);
    tn_json_close(out, '}');
}

void tn_gen_truth_json(const tn_generator *g, const tn_gen_report *report, tn_text *out)
{
    const tn_gen_opts *o = &g->opts;
    tn_json_open(out, '{');
    tn_json_str(out, "format", "tnet-truth");
    tn_json_raw(out, "version", "[1,0]");
    tn_json_str(out, "preset", tn_gen_presets[o->preset]);
    tn_json_str(out, "model", tn_gen_models[o->model]);
    tn_json_count(out, "seed", o->seed);
    tn_json_count(out, "first_row", o->first_row);
    tn_json_count(out, "rows", report->rows);
    if (o->day_rows > 0) {
        tn_json_f64(out, "drift", o->drift);
        tn_json_count(out, "day_rows", o->day_rows);
        tn_json_count(out, "day", tn_gen_day(g, o->first_row));
    }
    tn_json_f64(out, "bias", g->truth.bias);
    tn_json_f64(out, "linear", g->truth.linear);
    tn_json_f64(out, "mixed", g->truth.mixed);
    tn_json_f64(out, "rate", g->truth.rate);
    tn_json_count(out, "parameters", report->parameters);
    tn_json_count(out, "free_parameters", report->free_parameters);
    tn_json_open_key(out, "oracle", '{');
    tn_json_count(out, "rows", report->oracle.rows);
    tn_json_count(out, "clicks", report->oracle.clicks);
    tn_json_f64(out, "auc", report->oracle.auc);
    tn_json_f64(out, "auc_expected", report->oracle.auc_expected);
    tn_json_f64(out, "logloss", report->oracle.logloss);
    tn_json_f64(out, "logloss_expected", report->oracle.logloss_expected);
    tn_json_close(out, '}');
    if (o->buy > 0) {
        put_purchases(g, &report->purchases, out);
    }
    tn_json_close(out, '}');
    tn_text_addc(out, '\n');
}

/* ---- rows ---- */

/* `schema` has one spec for each slot of the generator, in the same order, and then `buy` and
 * `truth` when the options ask for them. */
static tn_status init_pieces(work *w, const tn_schema *schema, tn_error *err)
{
    const tn_generator *g = w->g;
    size_t entries = g->values_max + (size_t)g->n_slots;
    size_t numbers = (size_t)schema->n_numeric + 1;
    size_t bytes = sizeof(tn_parsed_row) + entries * (sizeof(tn_entry) + sizeof(tn_token)) +
                   numbers * (sizeof(float) + sizeof(tn_token)) + 64;
    TN_ASSERT(schema->n_specs == g->n_slots + (g->opts.buy > 0) + g->opts.truth);
    TN_TRY(tn_arena_open(&w->arena, BLOCKS_IN_ROUND * bytes, "a block of generated rows", err));
    for (uint32_t i = 0; i < BLOCKS_IN_ROUND; i++) {
        w->piece[i].rows = (tn_rows){
            .schema = schema,
            .n = 1,
            .row = TN_NEW(w->arena, tn_parsed_row),
            .entry = TN_NEW_ARRAY(w->arena, tn_entry, entries),
            .token = TN_NEW_ARRAY(w->arena, tn_token, entries),
            .numeric = TN_NEW_ARRAY(w->arena, float, numbers),
            .numeric_token = TN_NEW_ARRAY(w->arena, tn_token, numbers),
        };
        TN_TRY(tn_gen_row_init(&w->piece[i].row, g, err));
    }
    return TN_OK;
}

/* A bijection of 32-bit words, another one for each slot: hex ids never meet within a slot. */
static uint32_t scramble(uint32_t x, uint64_t slot_stream)
{
    x ^= (uint32_t)slot_stream;
    x = (x ^ (x >> 16)) * 0x7feb352dU;
    x = (x ^ (x >> 15)) * 0x846ca68bU;
    return x ^ (x >> 16);
}

static void add_hex(tn_text *text, uint32_t value)
{
    char *at = tn_text_grow(text, HEX_DIGITS);
    for (uint32_t i = 0; at != NULL && i < HEX_DIGITS; i++) {
        at[i] = "0123456789abcdef"[(value >> (28 - 4 * i)) & 15];
    }
}

static void add_int(tn_text *text, int64_t value)
{
    if (value < 0) {
        tn_text_addc(text, '-');
    }
    tn_text_add_u64(text, (uint64_t)(value < 0 ? -value : value));
}

/* A multiple of 1/1000, without zeros at its end. */
static void add_thousandths(tn_text *text, double value)
{
    uint64_t n = (uint64_t)llrint(fabs(value) * 1000);
    if (value < 0 && n > 0) {
        tn_text_addc(text, '-');
    }
    tn_text_add_u64(text, n / 1000);
    uint32_t rest = (uint32_t)(n % 1000);
    const char digits[] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
                           (char)('0' + rest % 10)};
    size_t size = rest == 0 ? 0 : rest % 100 == 0 ? 2 : rest % 10 == 0 ? 3 : 4;
    tn_text_add(text, digits, size);
}

static void add_text(piece *p, const tn_generator *g, uint32_t s, uint64_t id)
{
    const tn_gen_slot *slot = &g->slot[s];
    switch (slot->kind) {
    case TN_GEN_ID:
    case TN_GEN_SMALL:
        tn_text_add_u64(&p->token, slot->first_sign + id);
        return;
    case TN_GEN_HEX:
        add_hex(&p->token, scramble((uint32_t)id, g->weights[s]));
        return;
    case TN_GEN_STR:
        tn_text_adds(&p->token, slot->words[id]);
        return;
    case TN_GEN_COUNT:
        add_int(&p->token, (int64_t)p->row.number[s]);
        return;
    case TN_GEN_NUMBER:
        add_thousandths(&p->token, p->row.number[s]);
        return;
    }
}

/* Returns the text that was appended from `at` on. */
static tn_token token_from(const piece *p, size_t at)
{
    return (tn_token){(uint32_t)at, (uint32_t)(p->token.size - at)};
}

static void add_entry(piece *p, const tn_generator *g, uint32_t s, uint64_t id)
{
    tn_rows *rows = &p->rows;
    const tn_slot_spec *spec = &rows->schema->spec[s];
    size_t at = p->token.size;
    add_text(p, g, s, id);
    if (spec->numeric != TN_NOWHERE) {
        rows->numeric_token[spec->numeric] = token_from(p, at);
        return;
    }
    TN_ASSERT(rows->n_entries < g->values_max + g->n_slots);
    bool number = g->slot[s].kind == TN_GEN_NUMBER;
    rows->entry[rows->n_entries] =
        (tn_entry){.slot = spec->slot, .value = number ? (float)p->row.number[s] : 1};
    rows->token[rows->n_entries++] = token_from(p, at);
}

/* Columns beside the slots: `buy`, then `truth`. */
static void add_columns(piece *p, const tn_generator *g)
{
    tn_rows *rows = &p->rows;
    uint32_t next = g->n_slots;
    if (g->opts.buy > 0) {
        const size_t at = p->token.size;
        tn_text_addc(&p->token, p->row.buy ? '1' : '0');
        rows->numeric_token[rows->schema->spec[next++].numeric] = token_from(p, at);
    }
    if (g->opts.truth) {
        const size_t at = p->token.size;
        tn_text_addf(&p->token, "%.*g", TRUTH_DIGITS, p->row.p);
        rows->numeric_token[rows->schema->spec[next].numeric] = token_from(p, at);
    }
}

/* Row `index` of the world takes the place of the last one. */
static tn_status next_row(piece *p, const tn_generator *g, uint64_t index)
{
    tn_rows *rows = &p->rows;
    const tn_gen_row *row = &p->row;
    tn_gen_row_draw(&p->row, g, index);
    tn_text_clear(&p->token);
    rows->n_entries = 0;
    rows->row[0] = (tn_parsed_row){.label = row->click ? 1 : 0, .weight = 1, .group = TN_NO_GROUP};
    for (uint32_t c = 0; c < rows->schema->n_numeric; c++) {
        rows->numeric_token[c] = (tn_token){0, TN_TOKEN_NONE};
    }
    for (uint32_t s = 0; s < g->n_slots; s++) {
        for (uint32_t i = row->first[s]; i < row->first[s + 1]; i++) {
            add_entry(p, g, s, row->id[i]);
        }
        if (g->slot[s].kind == TN_GEN_NUMBER && !isnan(row->number[s])) {
            add_entry(p, g, s, 0);
        }
    }
    add_columns(p, g);
    TN_TRY(tn_text_check(&p->token, "a block of generated rows", &p->err));
    rows->text = p->token.data;
    rows->text_size = (uint32_t)p->token.size;
    return TN_OK;
}

static uint64_t ids_of(const tn_generator *g, uint32_t s)
{
    return g->slot[s].kind == TN_GEN_NUMBER ? 1 : tn_gen_ids_ever(g, s);
}

/* The generator must outlive it. */
static tn_status params_init(params *p, const tn_generator *g, tn_error *err)
{
    uint64_t n = 0;
    p->g = g;
    for (uint32_t s = 0; s < g->n_slots; s++) {
        n += ids_of(g, s);
    }
    if (n > BITS_MAX) {
        return TN_OK;
    }
    TN_TRY(TN_ALLOC(p->bits, n / 64 + 1, "a count of parameters", err));
    TN_TRY(TN_ALLOC(p->at, (size_t)g->n_slots + 1, "a count of parameters", err));
    for (uint32_t s = 0; s < g->n_slots; s++) {
        p->at[s + 1] = p->at[s] + ids_of(g, s);
    }
    return TN_OK;
}

static void set_bit(params *p, uint64_t i)
{
    _Atomic uint64_t *word = &p->bits[i / 64];
    uint64_t bit = UINT64_C(1) << (i % 64);
    if ((atomic_load_explicit(word, memory_order_relaxed) & bit) == 0) {
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    }
}

/* Any thread, at any time. */
static void params_see(params *p, const tn_gen_row *row)
{
    if (p->at == NULL) {
        return;
    }
    for (uint32_t s = 0; s < p->g->n_slots; s++) {
        for (uint32_t i = row->first[s]; i < row->first[s + 1]; i++) {
            set_bit(p, p->at[s] + row->id[i]);
        }
        if (p->g->slot[s].kind == TN_GEN_NUMBER && !isnan(row->number[s])) {
            set_bit(p, p->at[s]);
        }
    }
}

static uint64_t count_slot(const params *p, uint32_t s)
{
    uint64_t n = 0;
    for (uint64_t i = p->at[s]; i < p->at[s + 1]; i++) {
        uint64_t word = atomic_load_explicit(&p->bits[i / 64], memory_order_relaxed);
        n += (word >> (i % 64)) & 1;
    }
    return n;
}

/* Counts the parameters that occur, and those of them that rows can identify; 0: not known. */
static uint64_t params_count(const params *p, uint64_t *distinguishable)
{
    *distinguishable = 0;
    if (p->at == NULL) {
        return 0;
    }
    const bool plants_vectors =
        p->g->opts.model != TN_GEN_LR && p->g->opts.model != TN_GEN_ATTENTION;
    uint64_t dim = plants_vectors ? p->g->opts.dim : 0;
    uint64_t occurring = 0;
    uint64_t apart = 0;
    uint32_t slots = 0;
    for (uint32_t s = 0; s < p->g->n_slots; s++) {
        const tn_gen_slot *slot = &p->g->slot[s];
        if (slot->pair != NULL) {
            continue;
        }
        bool one = slot->kind != TN_GEN_NUMBER && slot->values_max == 1 && slot->missing <= 0;
        uint64_t n = count_slot(p, s);
        occurring += n;
        apart += n > 0 && one ? n - 1 : n; /* always one value: a constant is the bias's */
        slots += n > 0;
    }
    if (!plants_vectors || slots < 2) {
        *distinguishable = 1 + apart;
    } else if (p->g->opts.model == TN_GEN_FM) {
        uint64_t turns = slots == 2 ? dim * dim : dim * (dim - 1) / 2;
        *distinguishable = 1 + apart + (apart * dim > turns ? apart * dim - turns : 0);
    }
    return 1 + occurring * (1 + dim);
}

static tn_status make_rows(work *w, piece *p, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        TN_TRY(next_row(p, w->g, w->g->opts.first_row + i));
        TN_TRY(tn_writer_row(w->writer, &p->rows, 0, &p->text, &p->err));
        if (i < w->n_judged) {
            w->judged[i] = (tn_oracle_row){p->row.logit, p->row.click};
        }
        if (i < w->n_judged && w->bought != NULL) {
            const double both = tn_purchase_both(p->row.logit, p->row.buy_logit);
            w->bought[i] = (tn_oracle_row){both, p->row.buy};
        }
        params_see(&w->params, &p->row);
    }
    return tn_writer_pack(w->writer, &p->text, &p->err);
}

/* Makes the i-th block of this round; after the last row it is empty. */
static void make_block(void *job, uint32_t i)
{
    work *w = job;
    piece *p = &w->piece[i];
    uint64_t from = w->done + (uint64_t)i * w->rows_in_block;
    uint64_t to = from + w->rows_in_block;
    tn_text_clear(&p->text);
    p->status = make_rows(w, p, from, to < w->g->opts.rows ? to : w->g->opts.rows);
}

/* Rows are about as long as those of the first round; a little less is asked for, so that nothing
 * is refused that would have had room. */
static tn_status check_room(const work *w, const tn_sink *sink, tn_error *err)
{
    uint64_t made = (uint64_t)BLOCKS_IN_ROUND * w->rows_in_block;
    double bytes = 0;
    for (uint32_t i = 0; i < BLOCKS_IN_ROUND; i++) {
        bytes += (double)w->piece[i].text.size;
    }
    double rounds = made < w->g->opts.rows ? (double)w->g->opts.rows / (double)made : 1;
    return tn_sink_expect(sink, (uint64_t)(0.95 * bytes * rounds), err);
}

static tn_status run_rounds(work *w, tn_sink *sink, tn_team *team, uint64_t *bytes, tn_error *err)
{
    for (w->done = 0; w->done < w->g->opts.rows;) {
        tn_team_run(team, BLOCKS_IN_ROUND, make_block, w);
        if (w->done == 0) {
            TN_TRY(check_room(w, sink, err));
        }
        for (uint32_t i = 0; i < BLOCKS_IN_ROUND; i++) {
            piece *p = &w->piece[i];
            if (p->status != TN_OK) {
                return tn_fail(err, p->status, "%s", p->err.text);
            }
            TN_TRY(tn_sink_add(sink, p->text.data, p->text.size, err));
            *bytes += p->text.size;
        }
        w->done += (uint64_t)BLOCKS_IN_ROUND * w->rows_in_block;
        if (w->g->show != NULL && w->done < w->g->opts.rows) {
            w->g->show(w->done, w->g->opts.rows);
        }
    }
    return TN_OK;
}

static void free_work(work *w)
{
    for (uint32_t i = 0; i < BLOCKS_IN_ROUND; i++) {
        tn_gen_row_done(&w->piece[i].row);
        tn_text_done(&w->piece[i].token);
        tn_text_done(&w->piece[i].text);
    }
    tn_arena_free(w->arena);
    tn_free(w->params.at);
    tn_free(w->params.bits);
    tn_free(w->judged);
    tn_free(w->bought);
    tn_free(w);
}

/* Makes everything that rounds need, runs them, and judges their rows. */
static tn_status run(work *w, const tn_schema *schema, tn_sink *sink, tn_team *team,
                     tn_gen_report *out, tn_error *err)
{
    TN_TRY(params_init(&w->params, w->g, err));
    TN_TRY(TN_ALLOC(w->judged, w->n_judged + 1, "rows to judge", err));
    if (w->g->opts.buy > 0) {
        TN_TRY(TN_ALLOC(w->bought, w->n_judged + 1, "rows to judge", err));
    }
    TN_TRY(init_pieces(w, schema, err));
    tn_writer_head(w->writer, &w->piece[0].text);
    out->bytes = w->piece[0].text.size;
    TN_TRY(tn_sink_add(sink, tn_text_str(&w->piece[0].text), out->bytes, err));
    TN_TRY(run_rounds(w, sink, team, &out->bytes, err));
    out->oracle = tn_oracle_judge(w->judged, w->n_judged);
    if (w->bought != NULL) {
        out->purchases = tn_oracle_judge(w->bought, w->n_judged);
    }
    out->parameters = params_count(&w->params, &out->free_parameters);
    return TN_OK;
}

tn_status tn_gen_write(const tn_generator *g, const tn_schema *schema, tn_sink *sink, tn_team *team,
                       tn_gen_report *out, tn_error *err)
{
    tn_writer *writer = NULL;
    tn_gen_report report = {.rows = g->opts.rows};
    const uint32_t rows_near = ENTRIES_NEAR / (g->values_max + g->n_slots); /* about a megabyte */
    TN_TRY(tn_writer_new(&writer, schema->data->format, schema, 0, err));
    work *w = tn_alloc(1, sizeof *w, "a generator's threads");
    w->g = g;
    w->writer = writer;
    w->rows_in_block = rows_near < 1 ? 1 : rows_near < ROWS_MOST ? rows_near : (uint32_t)ROWS_MOST;
    w->n_judged = g->opts.rows < TN_GEN_ORACLE_ROWS ? g->opts.rows : TN_GEN_ORACLE_ROWS;
    tn_status status = run(w, schema, sink, team, &report, err);
    if (status == TN_OK) {
        *out = report;
    }
    free_work(w);
    tn_writer_free(writer);
    return status;
}
