/* fuzz_tfexample.c - any bytes as a tf.Example: refused with a sentence, or the same rows each
 * time. */
#include "base/core/arena.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/format/tfexample.h"
#include "io/read/dataset.h"
#include "io/read/schema_inference.h"
#include "io/schema/dataopts.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

static const char yaml[] =
    "{data: {format: tfrecord, weight: weight, group: user, record_id: uniq_id}, slots: [{name: "
    "user}, {name: ids}, {name: tags, values: tags_x, duplicates: sum}, {name: s, type: str}, "
    "{name: n, type: int}, {name: x, as: value}, {name: hist, max_len: 2}, {name: h, type: hex}]}";

/* Made on first use and kept. */
static tn_rows *rows_of_schema(void)
{
    static tn_rows *rows;
    static tn_arena *arena;
    static tn_dataset c;
    if (rows == NULL) {
        arena = tn_arena_new(1 << 16);
        tn_diag diag = {0};
        tn_binder b = {.arena = arena, .diag = &diag};
        tn_error err = {0};
        const tn_schema *schema = NULL;
        tn_fields_bind(&b, tn_dataset_fields, tn_tree_read_flow(arena, yaml, "fuzz"), &c);
        TN_ASSERT(tn_schema_new(&schema, &c.data, &c.slots, &b, &err) == TN_OK);
        TN_ASSERT(tn_rows_new(&rows, schema, TN_ROWS_IDS | TN_ROWS_SIGNS, &err) == TN_OK);
        tn_diag_done(&diag);
    }
    return rows;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    tn_rows *rows = rows_of_schema();
    const tn_schema *schema = rows->schema;
    const tn_record_location place = {.source = "fuzz", .offset = 12};
    tn_error err = {0};
    tn_rows_clear(rows);
    tn_bytes record = {(const char *)data, size, false};
    tn_status first = tn_tfexample_parse(record, schema, &place, rows, &err);
    uint32_t n = rows->n_entries;
    tn_status again = tn_tfexample_parse(record, schema, &place, rows, NULL);
    TN_ASSERT(first == again);
    TN_ASSERT(rows->n == (first == TN_OK ? 2 : 0));
    TN_ASSERT(rows->n_entries == 2 * n);
    TN_ASSERT(first == TN_OK || strstr(err.text, "fuzz:@12: error: ") == err.text);
    for (uint32_t i = 0; i < n; i++) {
        TN_ASSERT(rows->entry[i].key == rows->entry[n + i].key);
        TN_ASSERT(rows->token[i].size == TN_TOKEN_NONE ||
                  rows->token[i].at + rows->token[i].size <= rows->text_size);
    }
    return 0;
}
