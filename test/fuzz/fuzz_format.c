/* fuzz_format.c - any bytes as a file of every format: windows of any size give the same rows.
 *
 * The first byte picks a configuration: a row of the list below, or one for each row of
 * formats.def, so that a new format is fuzzed without a row here. The rest is the file.
 */
#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/format/format.h"
#include "io/read/dataset.h"
#include "io/read/schema_inference.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

#define SLOTS                                                                                      \
    "slots: [{name: a, field: 0, range: [0, 10], max_len: 3, duplicates: sum}, {name: b, field: "  \
    "1, type: str, range: [10, 20], absent: key}, {name: c, field: 2, type: hex, range: [20, "     \
    "30]}, {name: I1, field: 3, type: int, transform: ln2_bucket, range: [30, 40]}, {name: v, "    \
    "field: 4, as: value, transform: log, range: [40, 50]}, {name: w, field: 5, as: weighted, "    \
    "non_finite: absent, range: [50, 60]}]}"

static const char *const configs[] = {
    "{data: {format: libsvm, record_bytes_max: 500B}}",
    "{data: {format: libsvm, unknown_field: ignore, index_base: 1}, " SLOTS,
    "{data: {format: libffm, row_norm: true}, " SLOTS,
    "{data: {format: libffm, label: none, unknown_field: ignore}, " SLOTS,
    "{data: {format: csv, list: ';', weight: w}, " SLOTS,
    "{data: {format: csv, quote: multiline, trim: true, comment: '#', short_rows: pad, columns: "
    "[a, "
    "b, c, I1, v, w, label], header: false}, " SLOTS,
    "{data: {format: tsv, columns: [label, a, b, c, I1, v, w], 'null': ['', NA], group: a, "
    "record_id: b}, " SLOTS,
    "{data: {format: criteo}, slots: [{name: I1, type: int, transform: ln2_bucket}, {name: C1, "
    "type: hex}]}",
    "{data: {format: tfrecord, record_bytes_max: 300B, weight: w}, slots: [{name: a, values: x}, "
    "{name: b, type: str}, {name: c, as: value}]}",
};

enum { CONFIGS = sizeof configs / sizeof *configs, FORMATS_MAX = 32 };

static uint32_t n_configs(void)
{
    uint32_t n = 0;
    while (tn_all_formats[n] != NULL) {
        n++;
    }
    TN_ASSERT(n <= FORMATS_MAX);
    return CONFIGS + n;
}

static const char *config_at(tn_arena *arena, uint32_t which)
{
    enum { BYTES = 1024 };
    if (which < CONFIGS) {
        return configs[which];
    }
    char *text = TN_NEW_ARRAY(arena, char, BYTES);
    int n =
        snprintf(text, BYTES, "{data: {format: %s, columns: [label, a, b, c, I1, v, w]}, " SLOTS,
                 tn_all_formats[which - CONFIGS]->name);
    TN_ASSERT(n > 0 && n < BYTES);
    return text;
}

/* What one walk found. */
typedef struct outcome {
    uint32_t rows, entries, bad, blank;
    uint64_t hash;
} outcome;

static uint64_t mixed(uint64_t hash, uint64_t x)
{
    return (hash ^ x) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
}

static void look_at(const tn_rows *rows, outcome *o)
{
    o->rows = rows->n;
    o->entries = rows->n_entries;
    for (uint32_t i = 0; i < rows->n_entries; i++) {
        uint32_t x;
        memcpy(&x, &rows->entry[i].value, sizeof x);
        o->hash = mixed(mixed(o->hash, rows->entry[i].key), x);
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        TN_ASSERT(rows->row[i].weight >= 0);
        TN_ASSERT(rows->row[i].first <= tn_rows_end_of(rows, i));
        o->hash = mixed(o->hash, rows->row[i].group ^ rows->row[i].first);
    }
}

/* One walk over the bytes, shown in windows that grow by `step`. */
typedef struct walk {
    const tn_schema *schema;
    const tn_format *format;
    const char *data;
    size_t size;
    size_t step;
    size_t from;
    size_t to;
    tn_record_location place;
} walk;

static bool grow(walk *w)
{
    size_t left = w->size - w->to;
    w->to += left < w->step ? left : w->step;
    return left > 0;
}

static tn_bytes window_of(const walk *w)
{
    return (tn_bytes){w->data + w->from, w->to - w->from, false};
}

static bool take_head(walk *w, tn_head *head)
{
    while (w->format->head != NULL) {
        tn_bytes window = window_of(w);
        tn_status status =
            w->format->head(&window, w->to == w->size, w->schema, &w->place, head, NULL);
        if (status == TN_OK) {
            w->from = w->to - window.size;
            break;
        }
        if (status != TN_END || !grow(w)) {
            return false;
        }
    }
    return true;
}

static void pass_damage(walk *w)
{
    bool found = false;
    while (!found) {
        size_t skip = w->format->resync(window_of(w), w->to == w->size, w->schema, &found);
        TN_ASSERT(skip <= w->to - w->from);
        w->from += skip;
        TN_ASSERT(found || w->to < w->size);
        if (!found) {
            (void)grow(w);
        }
    }
}

static void take_record(const walk *w, tn_bytes record, tn_rows *rows, outcome *o)
{
    tn_error err = {0};
    uint32_t before = rows->n;
    uint32_t entries = rows->n_entries;
    tn_status status = w->format->parse(record, w->schema, &w->place, rows, &err);
    TN_ASSERT(rows->n == before + (status == TN_OK));
    TN_ASSERT(status == TN_OK || rows->n_entries == entries);
    TN_ASSERT(status == TN_OK || status == TN_END || err.text[0] != '\0');
    o->bad += status != TN_OK && status != TN_END;
    o->blank += status == TN_END;
}

static outcome run(walk *w, tn_rows *rows, tn_head *head)
{
    outcome o = {.hash = 1};
    tn_rows_clear(rows);
    if (!take_head(w, head)) {
        return o;
    }
    w->place.head = w->format->head != NULL ? head : NULL;
    for (;;) {
        tn_bytes window = window_of(w);
        tn_bytes record;
        tn_status status = w->format->cut(&window, w->to == w->size, w->schema, &record, NULL);
        if (status == TN_OK) {
            w->from = w->to - window.size;
            take_record(w, record, rows, &o);
        } else if (status != TN_END) {
            o.bad++;
            pass_damage(w);
        } else if (!grow(w)) {
            TN_ASSERT(w->from == w->size);
            break;
        }
    }
    look_at(rows, &o);
    return o;
}

/* A schema and a block of rows of each configuration, made on first use and kept. */
static tn_rows *rows_of(uint32_t which)
{
    static struct {
        tn_dataset c;
        tn_arena *arena;
        tn_rows *rows;
    } made[CONFIGS + FORMATS_MAX];
    if (made[which].rows == NULL) {
        tn_arena *arena = tn_arena_new(1 << 16);
        tn_diag diag = {0};
        tn_binder b = {.arena = arena, .diag = &diag};
        tn_error err = {0};
        const tn_schema *schema = NULL;
        tn_dataset *c = &made[which].c;
        made[which].arena = arena;
        tn_fields_bind(&b, tn_dataset_fields,
                       tn_tree_read_flow(arena, config_at(arena, which), "fuzz"), c);
        TN_ASSERT(tn_schema_new(&schema, &c->data, &c->slots, &b, &err) == TN_OK);
        TN_ASSERT(tn_rows_new(&made[which].rows, schema, TN_ROWS_IDS, &err) == TN_OK);
        tn_diag_done(&diag);
    }
    return made[which].rows;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    static const size_t steps[] = {1, 7, 4096, 1 << 20};
    if (size < 1 || size > 1 << 16) {
        return 0;
    }
    tn_rows *rows = rows_of(data[0] % n_configs());
    const tn_schema *schema = rows->schema;
    tn_head head = {.column =
                        tn_try_alloc(schema->columns->n, sizeof *head.column, "a head", NULL)};
    TN_ASSERT(head.column != NULL);
    outcome first = {.rows = 0};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        walk w = {.schema = schema,
                  .format = tn_format_find(schema->data->format),
                  .data = (const char *)data + 1,
                  .size = size - 1,
                  .step = steps[i],
                  .place = {.source = "fuzz", .line = 1}};
        outcome o = run(&w, rows, &head);
        first = i == 0 ? o : first;
        TN_ASSERT(memcmp(&first, &o, sizeof o) == 0);
    }
    tn_free(head.column);
    return 0;
}
