/* test_crb.c - compressed row blocks: those that liblz4 has written, records cut at the magic,
 * fields in the bits of indices, and damage. */
#include "base/core/bytes.h"
#include "base/core/text.h"
#include "io/read/blocks.h"
#include "io/rows/rows.h"
#include "io/setup.h"
#include "support/test.h"

#define MAGIC UINT32_C(0xced7230a)
#define BLOCK UINT32_C(0x474ba8c7)

/* Adds the size of an LZ4 block, then the block, which has nothing but literals. */
static void add_block(tn_text *out, const void *bytes, size_t size)
{
    tn_text block CLEANUP(tn_text_done) = {0};
    tn_text_addc(&block, (char)((size < 15 ? size : 15) << 4));
    if (size >= 15) {
        size_t left = size - 15;
        for (; left >= 255; left -= 255) {
            tn_text_addc(&block, (char)255);
        }
        tn_text_addc(&block, (char)left);
    }
    tn_text_add(&block, bytes, size);
    tn_text_add_u32le(out, (uint32_t)block.size);
    tn_text_add(out, block.data, block.size);
}

/* Three rows: label 1, keys 5 and 2^63 + 9; label 0, none; label 1, key 7. */
typedef struct made {
    bool labels, offsets, indices, values, weights;
    uint32_t index_bytes, rows;
    float value;
    float weight;
    uint64_t offset[4];
} made;

static const made usual = {
    .labels = true,
    .offsets = true,
    .indices = true,
    .index_bytes = 8,
    .rows = 3,
    .value = 0.5F,
    .weight = 2,
    .offset = {11, 13, 13, 14}, /* a block may begin anywhere in its data */
};

static void add_payload(tn_text *out, const made *m)
{
    const float label[] = {1, 0, 1};
    const float value[] = {1, m->value, 3};
    const float weight[] = {1, m->weight, 1};
    const uint64_t index[] = {5, UINT64_C(0x8000000000000009), 7};
    const uint32_t narrow[] = {5, 0x80000009, 7};
    tn_text_add_u32le(out, BLOCK);
    tn_text_add_u32le(out, m->index_bytes);
    tn_text_add_u32le(out, m->rows);
    const bool wide = m->index_bytes != 4;
    const struct {
        bool there;
        const void *data;
        size_t size;
    } arrays[] = {
        {m->labels, label, sizeof label},
        {m->offsets, m->offset, sizeof m->offset},
        {m->indices, wide ? (const void *)index : (const void *)narrow,
         wide ? sizeof index : sizeof narrow},
        {m->values, value, sizeof value},
        {m->weights, weight, sizeof weight},
    };
    for (uint32_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        if (arrays[i].there) {
            add_block(out, arrays[i].data, arrays[i].size);
        } else {
            tn_text_add_u32le(out, 0);
        }
    }
}

static void add_piece(tn_text *out, uint32_t flag, const char *bytes, size_t size)
{
    tn_text_add_u32le(out, MAGIC);
    tn_text_add_u32le(out, flag << 29 | (uint32_t)size);
    tn_text_add(out, bytes, size);
    while (out->size % 4 != 0) {
        tn_text_addc(out, 0);
    }
}

static void add_record(tn_text *out, const made *m)
{
    tn_text payload CLEANUP(tn_text_done) = {0};
    add_payload(&payload, m);
    add_piece(out, 0, payload.data, payload.size);
}

/* The rows of a file, as "label*weight slot:sign:x .."; its fault. */
static void dump(const char *config, const tn_text *file, tn_text *out)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    OPEN(setup, s, config);
    setup_parse(&s, tn_text_str(file), file->size, &parsed);
    const tn_rows *rows = parsed.rows;
    tn_text_clear(out);
    for (uint32_t r = 0; r < rows->n; r++) {
        tn_text_addf(out, "%g*%g", (double)rows->row[r].label, (double)rows->row[r].weight);
        for (uint32_t i = rows->row[r].first; i < tn_rows_end_of(rows, r); i++) {
            const tn_entry *e = &rows->entry[i];
            const tn_slot_spec *spec = s.schema->slot[e->slot];
            tn_text_addf(out, " %s:%llx:%g", spec->name,
                         (unsigned long long)tn_sign_of(e->key, spec->salt), (double)e->value);
        }
        tn_text_addc(out, '\n');
    }
    for (uint32_t i = 0; i < parsed.n_messages; i++) {
        tn_text_addf(out, "%s\n", tn_parsed_message(&parsed, i));
    }
    tn_text_adds(out, parsed.fault != TN_OK ? parsed.err.text : "");
}

static const char one_slot[] = "{data: {format: crb}}";

static void check(const char *config, const made *m, const char *want)
{
    tn_text file CLEANUP(tn_text_done) = {0};
    tn_text have CLEANUP(tn_text_done) = {0};
    add_record(&file, m);
    dump(config, &file, &have);
    assert_says(tn_text_str(&have), want);
}

TEST(labels_weights_indices_and_values_are_taken)
{
    made m = usual;
    check(one_slot, &m, "1*1 _:5:1 _:8000000000000009:1\n0*1\n1*1 _:7:1\n");
    m.values = true;
    m.weights = true;
    check(one_slot, &m, "1*1 _:5:1 _:8000000000000009:0.5\n0*2\n1*1 _:7:3\n");
    m.index_bytes = 4;
    check(one_slot, &m, "1*1 _:5:1 _:80000009:0.5\n");
    m.rows = 0;
    m.offset[1] = m.offset[0];
    m.labels = m.offsets = m.indices = m.values = m.weights = false;
    tn_text file = {0};
    tn_text have CLEANUP(tn_text_done) = {0};
    dump(one_slot, &file, &have); /* nothing at all */
    assert_string_equal(tn_text_str(&have), "");
}

TEST(slots_are_told_apart_by_ranges_or_by_bits)
{
    const made m = usual;
    check("{data: {format: crb}, slots: [{name: a, range: [0, 6]}, {name: b, range: [6, 1e19]}]}",
          &m, "1*1 a:5:1 b:8000000000000009:1\n0*1\n1*1 b:7:1\n");
    check("{data: {format: crb, slot_bits: high 10}, slots: [{name: a, field: 0}, {name: b, field: "
          "512}]}",
          &m, "1*1 a:5:1 b:8000000000000009:1\n0*1\n1*1 a:7:1\n");
    made narrow = usual;
    narrow.index_bytes = 4;
    check("{data: {format: crb, slot_bits: high 10}, slots: [{name: a, field: 0}, {name: b, field: "
          "512}]}",
          &narrow, "1*1 a:5:1 b:80000009:1\n");
    check("{data: {format: crb, slot_bits: low 3, unknown_field: ignore}, slots: [{name: a, field: "
          "5}, {name: b, field: 1, type: str}]}",
          &m, "1*1 a:5:1 b:");
    check("{data: {format: crb, slot_bits: low 3}, slots: [{name: a, field: 5}]}", &m,
          "no slot takes index 9223372036854775817");
    check("{data: {format: crb}, slots: [{name: v, type: float, as: weighted, range: [0, 6]}, "
          "{name: b, range: [6, 1e19]}]}",
          &m, "1*1 v:0:1 b:8000000000000009:1");
}

TEST(slot_bits_are_checked)
{
    static const char *const wrong[] = {"high", "high 0", "low 17", "mid 3", "low x"};
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char config[200];
        setup s CLEANUP(setup_close);
        (void)snprintf(config, sizeof config, "{data: {format: crb, slot_bits: '%s'}, slots: [a]}",
                       wrong[i]);
        assert_int_equal(setup_try(&s, config), TN_E_CONFIG);
        assert_non_null(strstr(tn_text_str(&s.diag.text), "slot_bits must be 'high N' or 'low N'"));
    }
}

/* A payload that holds the magic is cut there; the magic is put back. */
TEST(records_cut_at_the_magic_are_put_together)
{
    made m = usual;
    const uint32_t magic = MAGIC;
    m.weights = true;
    memcpy(&m.weight, &magic, sizeof m.weight); /* a large negative number */
    tn_text payload CLEANUP(tn_text_done) = {0};
    tn_text file CLEANUP(tn_text_done) = {0};
    tn_text have CLEANUP(tn_text_done) = {0};
    add_payload(&payload, &m);
    const char *at = memmem(payload.data, payload.size, &magic, sizeof magic);
    assert_non_null(at);
    const size_t first = (size_t)(at - payload.data);
    for (uint32_t pieces = 2; pieces <= 3; pieces++) {
        /* a middle piece without bytes would be a second magic */
        tn_text_clear(&file);
        add_piece(&file, 1, payload.data, first);
        if (pieces == 3) {
            add_piece(&file, 2, "", 0);
        }
        add_piece(&file, 3, payload.data + first + 4, payload.size - first - 4);
        dump(one_slot, &file, &have);
        if (pieces == 2) {
            assert_non_null(
                strstr(tn_text_str(&have), "expected a weight from 0 to 1048576, found \"-"));
        } else {
            assert_non_null(strstr(tn_text_str(&have), "corrupt crb stream"));
        }
    }
    tn_text_clear(&file);
    add_piece(&file, 1, payload.data, first); /* its last piece never comes */
    add_record(&file, &usual);
    dump(one_slot, &file, &have);
    assert_non_null(strstr(tn_text_str(&have), "corrupt crb stream"));
}

TEST(damage_is_found)
{
    static const struct {
        made m;
        const char *want;
    } cases[] = {
        {{.labels = true, .indices = true, .index_bytes = 8, .rows = 3}, "corrupt crb stream"},
        {{.labels = true, .offsets = true, .index_bytes = 8, .rows = 3, .offset = {0, 2, 2, 3}},
         "corrupt crb stream"},
        {{.labels = true,
          .offsets = true,
          .indices = true,
          .index_bytes = 8,
          .rows = 3,
          .offset = {0, 3, 2, 3}},
         "corrupt crb stream"},
        {{.labels = true,
          .offsets = true,
          .indices = true,
          .index_bytes = 8,
          .rows = 3,
          .offset = {0, 2, 9, 3}},
         "corrupt crb stream"},
        {{.labels = true,
          .offsets = true,
          .indices = true,
          .index_bytes = 8,
          .rows = 4,
          .offset = {0, 2, 2, 3}},
         "corrupt crb stream"},
        {{.labels = true, .offsets = true, .indices = true, .index_bytes = 5, .rows = 3},
         "corrupt crb stream"},
        {{.offsets = true, .indices = true, .index_bytes = 8, .rows = 3, .offset = {0, 2, 2, 3}},
         "the label is missing"},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(one_slot, &cases[i].m, cases[i].want);
    }
    made m = usual;
    m.values = true;
    m.value = NAN;
    check(one_slot, &m, "number is not finite, in slot '_'");
    check("{data: {format: crb}, slots: [{name: a, non_finite: absent}]}", &m, "1*1 a:5:1\n0*1\n");
    check("{data: {format: crb, label: none}, slots: [a]}", &usual, "nan*1 a:5:1");
}

TEST(every_cut_is_a_fault_or_the_rows_before_it)
{
    tn_text file CLEANUP(tn_text_done) = {0};
    tn_text have CLEANUP(tn_text_done) = {0};
    add_record(&file, &usual);
    const size_t whole = file.size;
    add_record(&file, &usual);
    for (size_t size = 1; size < file.size; size++) {
        const tn_text cut = {.data = file.data, .size = size};
        dump(one_slot, &cut, &have);
        const bool truncated = strstr(tn_text_str(&have), "truncated crb stream") != NULL;
        fail_if(truncated != (size != whole), "%zu of %zu bytes: %s", size, file.size,
                tn_text_str(&have));
    }
}

/* Rows with the label 1 and one index each, more than are made at once. */
static void add_long_record(tn_text *out, uint32_t rows)
{
    tn_text payload CLEANUP(tn_text_done) = {0};
    tn_text array[3] = {{0}, {0}, {0}};
    for (uint32_t r = 0; r <= rows; r++) {
        tn_text_add_u64le(&array[1], r);
        if (r < rows) {
            tn_text_add_f32le(&array[0], 1);
            tn_text_add_u64le(&array[2], r);
        }
    }
    tn_text_add_u32le(&payload, BLOCK);
    tn_text_add_u32le(&payload, 8);
    tn_text_add_u32le(&payload, rows);
    for (uint32_t i = 0; i < 3; i++) {
        add_block(&payload, array[i].data, array[i].size);
        tn_text_done(&array[i]);
    }
    tn_text_add_u32le(&payload, 0);
    tn_text_add_u32le(&payload, 0);
    add_piece(out, 0, payload.data, payload.size);
}

static void read_as(const char *config, const tn_text *file, tn_text *out, tn_error *err)
{
    OPEN(setup, s, config);
    const char *path = setup_file(&s, "rows", file->data, file->size);
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 1000, .prefetch = 1};
    tn_text_clear(out);
    *err = (tn_error){0};
    if (setup_drain(&s, &opts, err) == TN_END) {
        setup_dump(&s, &opts, out);
    }
}

TEST(a_long_block_gives_all_its_rows_unless_it_is_larger_than_allowed)
{
    enum { ROWS = 30000 };
    tn_text file CLEANUP(tn_text_done) = {0};
    tn_text have CLEANUP(tn_text_done) = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text want CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    add_long_record(&file, ROWS); /* 600 kB, and as many in arrays */
    add_record(&file, &usual);
    for (uint32_t r = 0; r < ROWS; r++) {
        tn_text_addf(&text, "1 %u:1\n", r);
    }
    tn_text_adds(&text, "1 5:1 9223372036854775817:1\n0\n1 7:1\n");
    read_as("{data: {format: libsvm, shuffle: 0}}", &text, &want, &err);
    read_as("{data: {format: crb, shuffle: 0, record_bytes_max: 1300000B}}", &file, &have, &err);
    assert_string_equal(tn_text_str(&have), tn_text_str(&want));
    assert_true(have.size > ROWS);
    read_as("{data: {format: crb, record_bytes_max: 1100000B}}", &file, &have, &err);
    assert_non_null(
        strstr(err.text, ": error: a block of more than data.record_bytes_max (1100000)"));
    read_as("{data: {format: crb, record_bytes_max: 500000B}}", &file, &have, &err); /* packed */
    assert_non_null(
        strstr(err.text, ": error: a block of more than data.record_bytes_max (500000)"));
}

/* clicks.crb: rows 1 to 200 of clicks.libsvm in two blocks, of indices of 8 and 4 bytes, written
 * with liblz4. */
TEST(blocks_of_liblz4_hold_the_rows_of_the_text)
{
    tn_text crb CLEANUP(tn_text_done) = {0};
    tn_text svm CLEANUP(tn_text_done) = {0};
    tn_text have CLEANUP(tn_text_done) = {0};
    tn_text want CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all("test/io/data/clicks.crb", 1 << 20, &crb, NULL), TN_OK);
    assert_int_equal(tn_file_read_all("datasets/samples/clicks.libsvm", 1 << 20, &svm, NULL),
                     TN_OK);
    const char *end = svm.data;
    for (uint32_t i = 0; i < 200; i++) {
        end = strchr(end, '\n') + 1;
    }
    svm.size = (size_t)(end - svm.data);
    dump(one_slot, &crb, &have);
    dump("{data: {format: libsvm}}", &svm, &want);
    assert_true(want.size > 5000);
    assert_string_equal(tn_text_str(&have), tn_text_str(&want));
}

TEST(another_compression_around_it_is_refused)
{
    tn_text file CLEANUP(tn_text_done) = {0};
    tn_text have CLEANUP(tn_text_done) = {0};
    add_record(&file, &usual);
    dump("{data: {format: crb, compression: gzip}}", &file, &have);
    assert_non_null(strstr(tn_text_str(&have), "files of format 'crb' are compressed within"));
}
