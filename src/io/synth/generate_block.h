/* generate_block.h - generated rows as a block that writers take; only src/io/generate*.c and tests
 * include this.
 *
 * The block holds texts and values, as if a parser had kept them, but no keys:
 * writers do not look at keys unless they are asked to write signs.
 */
#ifndef TN_IO_GENERATE_BLOCK_H
#define TN_IO_GENERATE_BLOCK_H

#include "base/core/text.h"
#include "io/rows/rows.h"
#include "io/synth/generate.h"

typedef struct tn_gen_block {
    tn_rows rows;
    tn_text text;
    uint32_t rows_max;
    uint32_t entries_max;
    tn_gen_row row; /* the last one that was added */
} tn_gen_block;

/* `schema` has one spec for each slot of the generator, in the same order, and `truth` behind them
 * when the options ask for it. It must outlive the block. */
tn_status tn_gen_block_init(tn_gen_block *block, const tn_generator *g, const tn_schema *schema,
                            uint32_t rows_max, tn_error *err) TN_MUST_USE;
void tn_gen_block_done(tn_gen_block *block);

/* How many rows a block should hold, for about a megabyte. */
uint32_t tn_gen_block_rows(const tn_generator *g);

/* Rows first .. first + n - 1 of the world replace what the block held; n <= rows_max. */
tn_status tn_gen_block_fill(tn_gen_block *block, const tn_generator *g, uint64_t first, uint32_t n,
                            tn_error *err) TN_MUST_USE;

#endif
