/* generate_block.c - see generate_block.h. */
#include "io/synth/generate_block.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"
#include "io/synth/generate_world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ENTRIES_NEAR = 16384, ROWS_MOST = 512, HEX_DIGITS = 8, TRUTH_DIGITS = 9 };

uint32_t tn_gen_block_rows(const tn_generator *g)
{
    uint32_t rows = ENTRIES_NEAR / (g->values_max + g->n_slots);
    if (rows < 1) {
        return 1;
    }
    return rows < ROWS_MOST ? rows : ROWS_MOST;
}

tn_status tn_gen_block_init(tn_gen_block *block, const tn_generator *g, const tn_schema *schema,
                            uint32_t rows_max, tn_error *err)
{
    TN_ASSERT(schema->n_specs == g->n_slots + (g->opts.truth ? 1 : 0));
    *block = (tn_gen_block){.rows_max = rows_max};
    tn_rows *rows = &block->rows;
    rows->schema = schema;
    block->entries_max = rows_max * (g->values_max + g->n_slots);
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
        tn_gen_block_done(block);
        return TN_E_MEMORY;
    }
    return TN_OK;
}

void tn_gen_block_done(tn_gen_block *block)
{
    tn_free(block->rows.row);
    tn_free(block->rows.entry);
    tn_free(block->rows.token);
    tn_free(block->rows.numeric);
    tn_free(block->rows.numeric_token);
    tn_gen_row_done(&block->row);
    tn_text_done(&block->text);
    *block = (tn_gen_block){0};
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

static void add_token(tn_gen_block *block, const tn_generator *g, uint32_t s, uint64_t id)
{
    const tn_gen_slot *slot = &g->slot[s];
    switch (slot->kind) {
    case TN_GEN_ID:
    case TN_GEN_SMALL:
        tn_text_add_u64(&block->text, slot->first_sign + id);
        return;
    case TN_GEN_HEX:
        add_hex(&block->text, scramble((uint32_t)id, g->weights[s]));
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

static void add_entry(tn_gen_block *block, const tn_generator *g, uint32_t s, uint64_t id)
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
    bool number = g->slot[s].kind == TN_GEN_NUMBER;
    rows->entry[rows->n_entries] = (tn_entry){
        .slot = spec->slot,
        .value = number ? (float)block->row.number[s] : 1,
    };
    rows->token[rows->n_entries++] = token;
}

static void add_truth(tn_gen_block *block, const tn_generator *g)
{
    tn_rows *rows = &block->rows;
    const tn_slot_spec *spec = &rows->schema->spec[g->n_slots];
    uint32_t at = (uint32_t)block->text.size;
    tn_text_addf(&block->text, "%.*g", TRUTH_DIGITS, block->row.p);
    rows->numeric_token[(size_t)rows->n * rows->schema->n_numeric + spec->numeric] =
        (tn_token){at, (uint32_t)block->text.size - at};
}

static void add_row(tn_gen_block *block, const tn_generator *g)
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
    for (uint32_t s = 0; s < g->n_slots; s++) {
        for (uint32_t i = row->first[s]; i < row->first[s + 1]; i++) {
            add_entry(block, g, s, row->id[i]);
        }
        if (g->slot[s].kind == TN_GEN_NUMBER && !isnan(row->number[s])) {
            add_entry(block, g, s, 0);
        }
    }
    if (g->opts.truth) {
        add_truth(block, g);
    }
    rows->n++;
}

tn_status tn_gen_block_fill(tn_gen_block *block, const tn_generator *g, uint64_t first, uint32_t n,
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
