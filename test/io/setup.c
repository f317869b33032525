/* setup.c - schemas, files and rows for the tests of io. */
#include "setup.h"
#include "config/field.h"
#include "io/read/dataset.h"
#include "io/read/fileset.h"
#include "io/rows/rows.h"

#include "base/core/number.h"
#include "config/tree.h"
#include "io/read/schema_inference.h"
#include "support/test.h"

#include <inttypes.h>

tn_status setup_try(setup *s, const char *text)
{
    tn_dataset c = {0};
    memset(s, 0, sizeof *s);
    s->arena = tn_arena_new(1 << 16);
    tn_tmpdir_make(s->dir);
    tn_binder b = {.arena = s->arena, .diag = &s->diag};
    tn_fields_bind(&b, tn_dataset_fields, tn_tree_read_flow(s->arena, text, "test"), &c);
    s->data = c.data;
    s->slots = c.slots;
    if (s->diag.n_errors > 0) {
        return TN_E_CONFIG;
    }
    return tn_schema_new(&s->schema, &s->data, &s->slots, &b, &s->err);
}

void setup_open(setup *s, const char *text)
{
    tn_status status = setup_try(s, text);
    if (status != TN_OK) {
        (void)fprintf(stderr, "%s\n%s\n", s->err.text, tn_text_str(&s->diag.text));
    }
    assert_int_equal(status, TN_OK);
}

void setup_close(setup *s)
{
    tn_diag_done(&s->diag);
    tn_arena_free(s->arena);
    tn_tmpdir_remove(s->dir);
}

const char *setup_file(const setup *s, const char *name, const void *bytes, size_t size)
{
    char *path = tn_arena_alloc(s->arena, 4096, 1, 1);
    int n = snprintf(path, 4096, "%s/%s", s->dir, name);
    assert_true(n > 0 && n < 4096);
    assert_int_equal(tn_file_replace(path, bytes, size, NULL), TN_OK);
    return path;
}

void setup_parse(const setup *s, const char *bytes, size_t size, tn_parsed *out)
{
    const char *path = setup_file(s, "parsed", bytes, size);
    const tn_strs paths = {1, &path};
    tn_fileset *files = NULL;
    tn_block_reader *feed = NULL;
    tn_error err = {0};
    memset(out, 0, sizeof *out);
    assert_int_equal(tn_rows_new(&out->rows, s->schema, TN_ROWS_IDS, &err), TN_OK);
    tn_status status = tn_fileset_new(&files, &paths, s->schema, 1, &err);
    if (status != TN_OK) {
        out->fault = status;
        out->err = err;
        return;
    }
    assert_int_equal(tn_block_reader_new(&feed, s->schema, files, NULL, &err), TN_OK);
    tn_block block = {.n_records = 0};
    tn_block_reader_go(feed, 0);
    tn_block_reader_next(feed, &block);
    assert_true(block.last || block.damage);
    tn_block_parse(&block, s->schema, files, 64, out);
    tn_block_done(&block);
    tn_block_reader_free(feed);
    tn_fileset_free(files);
}

void setup_parse_str(const setup *s, const char *text, tn_parsed *out)
{
    setup_parse(s, text, strlen(text), out);
}

void setup_parsed_free(tn_parsed *parsed)
{
    tn_rows_free(parsed->rows);
    tn_parsed_done(parsed);
}

const char *setup_fault(const setup *s, const char *text)
{
    static char message[1600];
    tn_parsed parsed CLEANUP(setup_parsed_free);
    setup_parse_str(s, text, &parsed);
    message[0] = '\0';
    const char *found = parsed.fault != TN_OK    ? parsed.err.text
                        : parsed.n_messages == 1 ? tn_parsed_message(&parsed, 0)
                                                 : "";
    const char *name = strstr(found, "parsed:"); /* the folder differs from run to run */
    (void)snprintf(message, sizeof message, "%s", name != NULL ? name : found);
    return message;
}

static void dump_row(const tn_batch *b, uint32_t r, tn_text *out)
{
    tn_text_addf(out, "%.9g %.9g", (double)b->label[r],
                 b->weight != NULL ? (double)b->weight[r] : 1.0);
    for (uint32_t k = 0; k < b->n_numeric; k++) {
        tn_text_addf(out, " %.9g", (double)b->numeric[r * b->n_numeric + k]);
    }
    for (uint32_t s = 0; s < b->n_slots; s++) {
        const tn_slot *slot = &b->slot[s];
        tn_text_adds(out, " |");
        for (uint32_t i = slot->offset[r]; i < slot->offset[r + 1]; i++) {
            tn_text_addf(out, " %016" PRIx64, slot->key[i]);
            if (slot->value != NULL && slot->value[i] != 1) {
                tn_text_addf(out, ":%.9g", (double)slot->value[i]);
            }
        }
    }
    if (b->group != NULL) {
        tn_text_addf(out, " g%" PRIu64, b->group[r]);
    }
    if (b->id_offset != NULL) {
        tn_text_adds(out, " #");
        tn_text_add(out, b->id_text + b->id_offset[r], b->id_offset[r + 1] - b->id_offset[r]);
    }
    tn_text_addc(out, '\n');
}

void setup_dump_batch(const tn_batch *batch, tn_text *out)
{
    for (uint32_t r = 0; r < batch->rows; r++) {
        dump_row(batch, r, out);
    }
}

void setup_dump(const setup *s, const tn_reader_opts *opts, tn_text *out)
{
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_error err = {0};
    assert_int_equal(tn_reader_open(&reader, s->schema, opts, &err), TN_OK);
    tn_status status;
    while ((status = tn_reader_next(reader, &batch, &err)) == TN_OK) {
        setup_dump_batch(batch, out);
        tn_reader_recycle(reader, batch);
    }
    if (status != TN_END) {
        (void)fprintf(stderr, "%s\n", err.text);
    }
    assert_int_equal(status, TN_END);
    tn_reader_close(reader);
}

tn_status setup_drain(const setup *s, const tn_reader_opts *opts, tn_error *err)
{
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_status status = tn_reader_open(&reader, s->schema, opts, err);
    while (status == TN_OK) {
        status = tn_reader_next(reader, &batch, err);
        if (status == TN_OK) {
            tn_reader_recycle(reader, batch);
        }
    }
    tn_reader_close(reader);
    return status;
}

uint64_t setup_bytes_read(void)
{
    static const char name[] = "rchar: ";
    tn_text text CLEANUP(tn_text_done) = {0};
    uint64_t bytes = 0;
    assert_int_equal(tn_file_read_all("/proc/self/io", 4096, &text, NULL), TN_OK);
    const char *from = strstr(tn_text_str(&text), name);
    assert_non_null(from);
    from += sizeof name - 1;
    assert_int_equal(tn_read_u64(from, strcspn(from, "\n"), &bytes), TN_NUM_OK);
    return bytes;
}
