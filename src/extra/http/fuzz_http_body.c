/* fuzz_http_body.c - any bytes as the body of a request: rows, or a fault with a sentence.
 *
 * The first byte picks the route's reader, the second cuts off what follows a JSON header. What the
 * strict reader of JSON takes (base/codec/json.h) the cursor takes, too, and a value on one line is
 * the value.
 */
#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "extra/http/body_rows.h"
#include "extra/http/route.h"
#include "io/read/schema_inference.h"
#include "io/rows/rows.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

enum { ROWS_MAX = 50, READERS = 7, FLAGS = 16 };

static const char *const configs[] = {
    "{data: {format: jsonl, label: none}, slots: [{name: a}, {name: s, type: str}, {name: v, as: "
    "value}, {name: d, column: u.id}, {name: c, cross: [a, s]}]}",
    "{data: {format: csv, label: none}, slots: [{name: a}, {name: s, type: str}]}",
};

/* A schema with room for its rows. */
typedef struct fixture {
    tn_arena *arena;
    tn_diag diag;
    tn_data_opts data;
    tn_schema *schema;
    tn_row_sink to;
    tn_head head;
    tn_text record;
} fixture;

static void open_fixture(fixture *f, const char *config)
{
    static const tn_field slots_field[] = {
        {.kind = TN_KIND_TABLES,
         .key = "slots",
         .table = tn_slot_fields,
         .size = sizeof(tn_slot_opts)},
        TN_FIELD_END,
    };
    tn_tables slots = {0};
    tn_error err = {0};
    memset(f, 0, sizeof *f);
    f->arena = tn_arena_new(1 << 14);
    const tn_binder b = {.arena = f->arena, .diag = &f->diag};
    const tn_tree *tree = tn_tree_read_flow(f->arena, config, "fuzz");
    tn_fields_bind(&b, tn_data_fields, tn_tree_get(tree, "data"), &f->data);
    tn_fields_bind_some(&b, slots_field, tree, &slots);
    const tn_schema *schema = NULL;
    tn_status status = tn_schema_new(&schema, &f->data, &slots, &b, &err);
    TN_ASSERT(status == TN_OK);
    status = tn_rows_new(&f->to.rows, schema, 0, &err);
    TN_ASSERT(status == TN_OK);
    f->head.column = tn_alloc(schema->columns->n + (size_t)1, sizeof(uint32_t), "a head");
    f->to.format = tn_format_find(f->data.format);
    f->to.schema = schema;
    f->to.head = &f->head;
    f->to.record = &f->record;
    f->to.rows_max = ROWS_MAX;
    f->to.source = "fuzz";
}

static void close_fixture(fixture *f)
{
    tn_rows_free(f->to.rows);
    tn_free(f->head.column);
    tn_text_done(&f->record);
    tn_diag_done(&f->diag);
    tn_arena_free(f->arena);
}

/* A value on one line, read again, is the same line. */
static void flatten_twice(const tn_json_span *span)
{
    tn_text once = {0};
    tn_text twice = {0};
    tn_json_span again;
    if (tn_json_flatten(span, &once, NULL) == TN_OK) {
        tn_json_cursor c = tn_json_cursor_of(tn_text_str(&once), once.size);
        const bool good = tn_json_cursor_value(&c, &again);
        TN_ASSERT(good && again.size == once.size);
        const tn_status status = tn_json_flatten(&again, &twice, NULL);
        TN_ASSERT(status == TN_OK);
        TN_ASSERT(memchr(once.data, '{', once.size) != NULL ||
                  (twice.size == once.size && memcmp(once.data, twice.data, once.size) == 0));
    }
    tn_text_done(&once);
    tn_text_done(&twice);
}

/* The cursor takes all that the strict reader takes. */
static void compare_readers(const tn_json_body *b, tn_bytes body, tn_status status)
{
    const tn_json *tree = NULL;
    tn_arena *arena = tn_arena_new(1 << 12);
    if (tn_json_parse(&tree, body.data, body.size, arena, "fuzz", NULL) == TN_OK &&
        tree->kind == TN_JSON_OBJECT) {
        const tn_json *instances = tn_json_get(tree, "instances");
        TN_ASSERT(status == TN_OK);
        TN_ASSERT(b->instances.data == NULL || instances != NULL);
        TN_ASSERT(instances == NULL || b->instances.data == NULL ||
                  b->instances.size == instances->end - instances->begin);
    }
    tn_arena_free(arena);
}

static tn_status read_rows(fixture *f, uint8_t reader, const tn_json_body *b, tn_bytes binary,
                           tn_error *err)
{
    if (reader == 0 && b->instances.data != NULL) {
        flatten_twice(&b->instances);
        return tn_rows_of_objects(&f->to, &b->instances, err);
    }
    if (reader == 1 && b->inputs.data != NULL) {
        return tn_rows_of_columns(&f->to, &b->inputs, err);
    }
    if (reader == 2 && b->dataframe_split.data != NULL) {
        return tn_rows_of_frame(&f->to, &b->dataframe_split, err);
    }
    if (reader == 3 && b->inputs.data != NULL) {
        return tn_rows_of_tensors(&f->to, &b->inputs, binary, err);
    }
    if (reader == 4 && b->context.data != NULL) {
        bool slot[FLAGS] = {false};
        bool numeric[FLAGS] = {false};
        return tn_mark_members(f->to.schema, &b->context, slot, numeric, err);
    }
    return TN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    static const tn_route_aliases aliases = {"/p", "/h"};
    fixture f;
    tn_json_body b;
    tn_error err = {0};
    if (size < 2) {
        return 0;
    }
    const uint8_t reader = data[0] % READERS;
    tn_bytes body = {(const char *)data + 2, size - 2, false};
    tn_status status = TN_OK;
    open_fixture(&f, configs[reader == 6]);
    if (reader >= 5) {
        status = tn_rows_of_lines(&f.to, body, &err);
    } else {
        const size_t cut = data[1] < body.size ? data[1] : 0;
        const tn_bytes binary = {body.data + body.size - cut, cut, false};
        body.size -= cut;
        status = tn_json_body_read(&b, body, &err);
        compare_readers(&b, body, status);
        status = status == TN_OK ? read_rows(&f, reader, &b, binary, &err) : status;
    }
    TN_ASSERT(f.to.rows->n <= ROWS_MAX);
    TN_ASSERT(status == TN_OK || err.text[0] != '\0');
    tn_text path = {0};
    tn_text_add(&path, body.data, body.size);
    const tn_route_match match = tn_route_find(tn_text_str(&path), &aliases);
    TN_ASSERT(match.name.size + match.version.size <= path.size);
    tn_text_done(&path);
    close_fixture(&f);
    return 0;
}
