/* generate_file.c - rows of a world into a file: the configuration that reads it, rounds of blocks,
 * made in parallel and written in order, so that neither threads nor their number show, and the
 * truth about them as JSON.
 *
 * A block holds texts and values, as if a parser had kept them, but no keys: writers do not look at
 * keys unless they are asked to write signs.
 *
 * Parameters are counted by a bit for every id of every slot, set when a row holds it. Not all that
 * occur are free. A slot that always has exactly one value adds a constant to itself and takes it
 * from the bias, so it has one weight less; the same holds for its vectors, whose constant part
 * moves into the weights of the other slots. And the vectors of fm may be rotated together:
 * k (k - 1) / 2 directions change nothing, k^2 when only two slots meet.
 */
#include "io/synth/generate_file.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/core/text.h"
#include "base/math/rng.h"
#include "base/thread/team.h"
#include "io/rows/rows.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "io/synth/generate.h"
#include "io/write/writer.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct gen_block {
    tn_rows rows;
    tn_text text;
    uint32_t rows_max;
    uint32_t entries_max;
    tn_gen_row row; /* the last one that was added */
} gen_block;

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

/* One block of the round under way. */
typedef struct piece {
    gen_block block;
    tn_text text;
    tn_status status;
    tn_error err;
} piece;

typedef struct work {
    const tn_generator *g;
    const tn_writer *writer;
    params *params;
    tn_oracle_row *judged;
    uint64_t n_judged;
    uint64_t done; /* rows of earlier rounds */
    uint64_t rows;
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
    if (tn_generator_opts(g)->truth) {
        return tn_fail(err, TN_E_CONFIG,
                       "format '%s' has no column for 'truth'; csv, tsv and tfrecord have", format);
    }
    if (tn_generator_opts(g)->preset == TN_GEN_CRITEO && strcmp(format, "criteo") == 0) {
        return TN_OK;
    }
    if (tn_generator_opts(g)->preset == TN_GEN_PLAIN) {
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
    uint64_t ids = tn_generator_opts(g)->ids;
    uint64_t behind = ids * tn_generator_opts(g)->slots;
    return tn_generator_slot(g, s)->kind == TN_GEN_NUMBER ? behind + s
                                                          : tn_generator_slot(g, s)->first_sign;
}

static void describe_slot(const tn_generator *g, uint32_t s, const spelling *how, tn_text *out)
{
    const tn_gen_slot *slot = tn_generator_slot(g, s);
    tn_text_addf(out, "  - {name: %s, type: %s", slot->name, type_of(slot));
    if (slot->kind == TN_GEN_COUNT) {
        tn_text_adds(out, ", transform: ln2_bucket");
    }
    if (slot->kind == TN_GEN_NUMBER) {
        tn_text_addf(out, ", as: %s%s",
                     tn_generator_opts(g)->model == TN_GEN_DEEP ? "value" : "weighted",
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
    for (uint32_t s = 0; s < tn_generator_n_slots(g); s++) {
        tn_text_addf(out, ", %s", tn_generator_slot(g, s)->name);
    }
    tn_text_adds(out, tn_generator_opts(g)->truth ? ", truth]\n" : "]\n");
}

/* The model of TNet that can hold what was planted. */
static void describe_model(const tn_generator *g, tn_text *out)
{
    static const char *const models[] = {"lr", "fm", "deepfm"};
    tn_text_addf(out, "model:\n  type: %s\n", models[tn_generator_opts(g)->model]);
    if (tn_generator_opts(g)->model != TN_GEN_LR) {
        tn_text_addf(out, "embedding:\n  dim: %u\n", tn_generator_opts(g)->dim);
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
    for (uint32_t s = 0; s < tn_generator_n_slots(g); s++) {
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
    const tn_gen_opts *o = tn_generator_opts(g);
    tn_json_open(out, '{');
    tn_json_str(out, "format", "tnet-truth");
    tn_json_raw(out, "version", "[1,0]");
    tn_json_str(out, "preset", presets[o->preset]);
    tn_json_str(out, "model", models[o->model]);
    tn_json_count(out, "seed", o->seed);
    tn_json_count(out, "first_row", o->first_row);
    tn_json_count(out, "rows", report->rows);
    tn_json_f64(out, "bias", tn_generator_truth(g).bias);
    tn_json_f64(out, "linear", tn_generator_truth(g).linear);
    tn_json_f64(out, "mixed", tn_generator_truth(g).mixed);
    tn_json_f64(out, "rate", tn_generator_truth(g).rate);
    tn_json_count(out, "parameters", report->parameters);
    tn_json_count(out, "free_parameters", report->free_parameters);
    oracle_json(&report->oracle, out);
    tn_json_close(out, '}');
    tn_text_addc(out, '\n');
}

/* How many rows a block should hold, for about a megabyte. */
static uint32_t rows_of_block(const tn_generator *g)
{
    uint32_t rows = ENTRIES_NEAR / (tn_generator_values_max(g) + tn_generator_n_slots(g));
    if (rows < 1) {
        return 1;
    }
    return rows < ROWS_MOST ? rows : ROWS_MOST;
}

static void block_done(gen_block *block)
{
    tn_free(block->rows.row);
    tn_free(block->rows.entry);
    tn_free(block->rows.token);
    tn_free(block->rows.numeric);
    tn_free(block->rows.numeric_token);
    tn_gen_row_done(&block->row);
    tn_text_done(&block->text);
    *block = (gen_block){0};
}

/* `schema` has one spec for each slot of the generator, in the same order, and `truth` behind them
 * when the options ask for it. It must outlive the block. */
static tn_status block_init(gen_block *block, const tn_generator *g, const tn_schema *schema,
                            uint32_t rows_max, tn_error *err)
{
    TN_ASSERT(schema->n_specs == tn_generator_n_slots(g) + (tn_generator_opts(g)->truth ? 1 : 0));
    *block = (gen_block){.rows_max = rows_max};
    tn_rows *rows = &block->rows;
    rows->schema = schema;
    block->entries_max = rows_max * (tn_generator_values_max(g) + tn_generator_n_slots(g));
    size_t numbers = (size_t)rows_max * schema->n_numeric + 1;
    const char *what = "a block of generated rows";
    rows->row = tn_try_alloc(rows_max, sizeof *rows->row, what, err);
    rows->entry = tn_try_alloc(block->entries_max, sizeof *rows->entry, what, err);
    rows->token = tn_try_alloc(block->entries_max, sizeof *rows->token, what, err);
    rows->numeric = tn_try_alloc(numbers, sizeof *rows->numeric, what, err);
    rows->numeric_token = tn_try_alloc(numbers, sizeof *rows->numeric_token, what, err);
    tn_status status = tn_gen_row_init(&block->row, g, err);
    if (status != TN_OK || rows->row == NULL || rows->entry == NULL || rows->token == NULL ||
        rows->numeric == NULL || rows->numeric_token == NULL) {
        block_done(block);
        return TN_E_MEMORY;
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

static void add_token(gen_block *block, const tn_generator *g, uint32_t s, uint64_t id)
{
    const tn_gen_slot *slot = tn_generator_slot(g, s);
    switch (slot->kind) {
    case TN_GEN_ID:
    case TN_GEN_SMALL:
        tn_text_add_u64(&block->text, slot->first_sign + id);
        return;
    case TN_GEN_HEX:
        add_hex(&block->text, scramble((uint32_t)id, tn_generator_stream(g, s)));
        return;
    case TN_GEN_STR:
        tn_text_adds(&block->text, slot->words[id]);
        return;
    case TN_GEN_COUNT:
        add_int(&block->text, (int64_t)block->row.number[s]);
        return;
    case TN_GEN_NUMBER:
        add_thousandths(&block->text, block->row.number[s]);
        return;
    }
}

static void add_entry(gen_block *block, const tn_generator *g, uint32_t s, uint64_t id)
{
    tn_rows *rows = &block->rows;
    uint32_t at = (uint32_t)block->text.size;
    add_token(block, g, s, id);
    tn_token token = {at, (uint32_t)block->text.size - at};
    const tn_slot_spec *spec = &rows->schema->spec[s];
    if (spec->numeric != TN_NOWHERE) {
        rows->numeric_token[(size_t)rows->n * rows->schema->n_numeric + spec->numeric] = token;
        return;
    }
    TN_ASSERT(rows->n_entries < block->entries_max);
    bool number = tn_generator_slot(g, s)->kind == TN_GEN_NUMBER;
    rows->entry[rows->n_entries] = (tn_entry){
        .slot = spec->slot,
        .value = number ? (float)block->row.number[s] : 1,
    };
    rows->token[rows->n_entries++] = token;
}

static void add_truth(gen_block *block, const tn_generator *g)
{
    tn_rows *rows = &block->rows;
    const tn_slot_spec *spec = &rows->schema->spec[tn_generator_n_slots(g)];
    uint32_t at = (uint32_t)block->text.size;
    tn_text_addf(&block->text, "%.*g", TRUTH_DIGITS, block->row.p);
    rows->numeric_token[(size_t)rows->n * rows->schema->n_numeric + spec->numeric] =
        (tn_token){at, (uint32_t)block->text.size - at};
}

static void add_row(gen_block *block, const tn_generator *g)
{
    tn_rows *rows = &block->rows;
    const tn_gen_row *row = &block->row;
    rows->row[rows->n] = (tn_parsed_row){
        .label = row->click ? 1 : 0,
        .weight = 1,
        .first = rows->n_entries,
        .group = TN_NO_GROUP,
    };
    for (uint32_t c = 0; c < rows->schema->n_numeric; c++) {
        rows->numeric_token[(size_t)rows->n * rows->schema->n_numeric + c] =
            (tn_token){0, TN_TOKEN_NONE};
    }
    for (uint32_t s = 0; s < tn_generator_n_slots(g); s++) {
        for (uint32_t i = row->first[s]; i < row->first[s + 1]; i++) {
            add_entry(block, g, s, row->id[i]);
        }
        if (tn_generator_slot(g, s)->kind == TN_GEN_NUMBER && !isnan(row->number[s])) {
            add_entry(block, g, s, 0);
        }
    }
    if (tn_generator_opts(g)->truth) {
        add_truth(block, g);
    }
    rows->n++;
}

/* Rows first .. first + n - 1 of the world replace what the block held; n <= rows_max. */
static tn_status block_fill(gen_block *block, const tn_generator *g, uint64_t first, uint32_t n,
                            tn_error *err)
{
    TN_ASSERT(n <= block->rows_max);
    block->rows.n = 0;
    block->rows.n_entries = 0;
    tn_text_clear(&block->text);
    for (uint32_t i = 0; i < n; i++) {
        tn_gen_row_draw(&block->row, g, first + i);
        add_row(block, g);
    }
    TN_TRY(tn_text_check(&block->text, "a block of generated rows", err));
    block->rows.text = block->text.data;
    block->rows.text_size = (uint32_t)block->text.size;
    return TN_OK;
}

static uint64_t ids_of(const tn_gen_slot *slot)
{
    return slot->kind == TN_GEN_NUMBER ? 1 : slot->ids;
}

/* NULL is fine */
static void params_free(params *p)
{
    if (p != NULL) {
        tn_free(p->at);
        tn_free(p->bits);
        tn_free(p);
    }
}

/* On failure *out is NULL. The generator must outlive it. */
static tn_status params_new(params **out, const tn_generator *g, tn_error *err)
{
    *out = NULL;
    params *p = tn_alloc(1, sizeof *p, "a count of parameters");
    p->g = g;
    uint64_t n = 0;
    for (uint32_t s = 0; s < tn_generator_n_slots(g); s++) {
        n += ids_of(tn_generator_slot(g, s));
    }
    if (n > BITS_MAX) {
        *out = p;
        return TN_OK;
    }
    p->at = tn_try_alloc((size_t)tn_generator_n_slots(g) + 1, sizeof *p->at,
                         "a count of parameters", err);
    p->bits = tn_try_alloc(n / 64 + 1, sizeof *p->bits, "a count of parameters", err);
    if (p->at == NULL || p->bits == NULL) {
        params_free(p);
        return TN_E_MEMORY;
    }
    for (uint32_t s = 0; s < tn_generator_n_slots(g); s++) {
        p->at[s + 1] = p->at[s] + ids_of(tn_generator_slot(g, s));
    }
    *out = p;
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
    for (uint32_t s = 0; s < tn_generator_n_slots(p->g); s++) {
        for (uint32_t i = row->first[s]; i < row->first[s + 1]; i++) {
            set_bit(p, p->at[s] + row->id[i]);
        }
        if (tn_generator_slot(p->g, s)->kind == TN_GEN_NUMBER && !isnan(row->number[s])) {
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

static bool always_one(const tn_gen_slot *slot)
{
    return slot->kind != TN_GEN_NUMBER && slot->values_max == 1 && slot->missing <= 0;
}

/* Parameters that occur, and those of them that the rows can tell apart; 0: not known. */
static uint64_t params_count(const params *p, uint64_t *distinguishable)
{
    *distinguishable = 0;
    if (p->at == NULL) {
        return 0;
    }
    uint64_t dim = tn_generator_opts(p->g)->model == TN_GEN_LR ? 0 : tn_generator_opts(p->g)->dim;
    uint64_t occurring = 0;
    uint64_t apart = 0;
    uint32_t slots = 0;
    for (uint32_t s = 0; s < tn_generator_n_slots(p->g); s++) {
        uint64_t n = count_slot(p, s);
        occurring += n;
        apart += n > 0 && always_one(tn_generator_slot(p->g, s)) ? n - 1 : n;
        slots += n > 0;
    }
    if (tn_generator_opts(p->g)->model == TN_GEN_LR || slots < 2) {
        *distinguishable = 1 + apart;
    } else if (tn_generator_opts(p->g)->model == TN_GEN_FM) {
        uint64_t turns = slots == 2 ? dim * dim : dim * (dim - 1) / 2;
        *distinguishable = 1 + apart + (apart * dim > turns ? apart * dim - turns : 0);
    }
    return 1 + occurring * (1 + dim);
}

/* Rows of the i-th block of this round: none behind the last row. */
static uint32_t block_rows(const work *w, uint32_t i, uint64_t *first)
{
    *first = w->done + (uint64_t)i * w->rows_in_block;
    if (*first >= w->rows) {
        return 0;
    }
    uint64_t left = w->rows - *first;
    return left < w->rows_in_block ? (uint32_t)left : w->rows_in_block;
}

static tn_status make_rows(work *w, piece *p, uint64_t first, uint32_t n)
{
    const tn_gen_opts *o = tn_generator_opts(w->g);
    for (uint32_t i = 0; i < n; i++) {
        TN_TRY(block_fill(&p->block, w->g, o->first_row + first + i, 1, &p->err));
        TN_TRY(tn_writer_row(w->writer, &p->block.rows, 0, &p->text, &p->err));
        if (first + i < w->n_judged) {
            w->judged[first + i] = (tn_oracle_row){p->block.row.logit, p->block.row.click};
        }
        params_see(w->params, &p->block.row);
    }
    return tn_text_check(&p->text, "generated rows", &p->err);
}

static void make_block(void *job, uint32_t i)
{
    work *w = job;
    piece *p = &w->piece[i];
    uint64_t first = 0;
    uint32_t n = block_rows(w, i, &first);
    tn_text_clear(&p->text);
    p->status = make_rows(w, p, first, n);
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
    double rounds = made < w->rows ? (double)w->rows / (double)made : 1;
    return tn_sink_expect(sink, (uint64_t)(0.95 * bytes * rounds), err);
}

static tn_status run_rounds(work *w, tn_sink *sink, tn_team *team, uint64_t *bytes, tn_error *err)
{
    for (w->done = 0; w->done < w->rows;) {
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
    }
    return TN_OK;
}

static void free_work(work *w)
{
    for (uint32_t i = 0; i < BLOCKS_IN_ROUND; i++) {
        block_done(&w->piece[i].block);
        tn_text_done(&w->piece[i].text);
    }
    params_free(w->params);
    tn_free(w->judged);
    tn_free(w);
}

static tn_status new_work(work **out, const tn_generator *g, const tn_schema *schema,
                          const tn_writer *writer, tn_error *err)
{
    *out = NULL;
    work *w = tn_alloc(1, sizeof *w, "a generator's threads");
    w->g = g;
    w->writer = writer;
    w->rows = tn_generator_opts(g)->rows;
    w->rows_in_block = rows_of_block(g);
    w->n_judged = w->rows < TN_GEN_ORACLE_ROWS ? w->rows : TN_GEN_ORACLE_ROWS;
    tn_status status = TN_OK;
    if (w->n_judged > 0) {
        w->judged = tn_try_alloc(w->n_judged, sizeof *w->judged, "rows to judge", err);
        status = w->judged == NULL ? TN_E_MEMORY : TN_OK;
    }
    if (status == TN_OK) {
        status = params_new(&w->params, g, err);
    }
    for (uint32_t i = 0; status == TN_OK && i < BLOCKS_IN_ROUND; i++) {
        status = block_init(&w->piece[i].block, g, schema, 1, err);
    }
    if (status != TN_OK) {
        free_work(w);
        return status;
    }
    *out = w;
    return TN_OK;
}

tn_status tn_gen_write(const tn_generator *g, const tn_schema *schema, tn_sink *sink, tn_team *team,
                       tn_gen_report *out, tn_error *err)
{
    work *w = NULL;
    tn_writer *writer = NULL;
    tn_text head = {0};
    tn_gen_report report = {.rows = tn_generator_opts(g)->rows};
    tn_status status = tn_writer_new(&writer, schema->data->format, schema, 0, err);
    if (status != TN_OK) {
        goto done;
    }
    status = new_work(&w, g, schema, writer, err);
    if (status != TN_OK) {
        goto done;
    }
    tn_writer_head(writer, &head);
    report.bytes = head.size;
    status = tn_sink_add(sink, tn_text_str(&head), head.size, err);
    if (status == TN_OK) {
        status = run_rounds(w, sink, team, &report.bytes, err);
    }
    if (status == TN_OK) {
        report.oracle = tn_oracle_judge(w->judged, w->n_judged);
        report.parameters = params_count(w->params, &report.free_parameters);
        *out = report;
    }
    free_work(w);
done:
    tn_text_done(&head);
    tn_writer_free(writer);
    return status;
}
