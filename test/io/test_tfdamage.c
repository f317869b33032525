/* test_tfdamage.c - what is damaged in a TFRecord file is counted once, however it is cut into
 * parts. */
#include "base/codec/proto.h"
#include "base/math/crc32c.h"
#include "setup.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum { RECORDS = 5 };

static void add_frame(tn_text *out, const void *data, size_t size)
{
    char header[12];
    tn_store_u64(header, size);
    tn_store_u32(header + 8, tn_crc_mask(tn_crc32c(0, header, 8)));
    tn_text_add(out, header, sizeof header);
    tn_text_add(out, data, size);
    tn_text_add_u32le(out, tn_crc_mask(tn_crc32c(0, data, size)));
}

/* Records of equal size, each with a label alone. */
static void add_records(tn_text *out)
{
    tn_text message = {0};
    size_t features = tn_proto_begin(&message, 1);
    size_t entry = tn_proto_begin(&message, 1);
    tn_proto_add_str(&message, 1, "label");
    tn_proto_add_bytes(&message, 2, "\x1a\x03\x0a\x01\x01", 5);
    tn_proto_end(&message, entry);
    tn_proto_end(&message, features);
    for (uint32_t i = 0; i < RECORDS; i++) {
        add_frame(out, message.data, message.size);
    }
    tn_text_done(&message);
}

typedef struct outcome {
    uint64_t rows, bad;
} outcome;

static outcome read_file(const tn_text *bytes, uint64_t part_bytes, bool training)
{
    setup s;
    char config[200];
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_read_counts counts;
    outcome o = {0, 0};
    (void)snprintf(config, sizeof config,
                   "{data: {format: tfrecord, bad_records_max: 100, part_bytes: %lluB, shuffle: 3, "
                   "record_bytes_max: 1000B}, slots: [{name: a}]}",
                   (unsigned long long)part_bytes);
    setup_open(&s, config);
    const char *path = setup_file(&s, "damaged", bytes->data, bytes->size);
    const tn_reader_opts opts = {.paths = {1, &path},
                                 .batch_rows = 4,
                                 .prefetch = 1,
                                 .training = training,
                                 .seed = part_bytes};
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    while (tn_reader_next(reader, &batch, NULL) == TN_OK) {
        o.rows += batch->rows;
        tn_reader_recycle(reader, batch);
    }
    tn_reader_counts(reader, &counts);
    o.bad = counts.bad;
    tn_reader_close(reader);
    setup_close(&s);
    return o;
}

static void check_everywhere(const tn_text *bytes, uint64_t rows, uint64_t bad)
{
    /* every place of the first record, then every eleventh */
    for (uint64_t part = 1; part <= bytes->size + 1; part += part < 40 ? 1 : 11) {
        for (uint32_t training = 0; training < 2; training++) {
            outcome o = read_file(bytes, part, training != 0);
            if (o.rows != rows || o.bad != bad) {
                (void)fprintf(stderr, "parts of %llu bytes, of %zu%s\n", (unsigned long long)part,
                              bytes->size, training != 0 ? ", shuffled" : "");
            }
            assert_int_equal(o.rows, rows);
            assert_int_equal(o.bad, bad);
        }
    }
}

static void a_whole_file_has_no_damage(void **state)
{
    (void)state;
    tn_text bytes = {0};
    add_records(&bytes);
    check_everywhere(&bytes, RECORDS, 0);
    tn_text_done(&bytes);
}

static void a_wrong_byte_costs_one_record_in_any_part(void **state)
{
    (void)state;
    const size_t places[] = {0, 9, 14}; /* length, its crc, data */
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (size_t record = 0; record < RECORDS; record += 2) {
            tn_text bytes = {0};
            add_records(&bytes);
            bytes.data[record * (bytes.size / RECORDS) + places[i]] ^= 1;
            check_everywhere(&bytes, RECORDS - 1, 1);
            tn_text_done(&bytes);
        }
    }
}

static void a_cut_file_costs_one_record_in_any_part(void **state)
{
    (void)state;
    const size_t left[] = {1, 11, 12, 15, 20}; /* of the last record */
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        tn_text bytes = {0};
        add_records(&bytes);
        bytes.size = (RECORDS - 1) * (bytes.size / RECORDS) + left[i];
        check_everywhere(&bytes, RECORDS - 1, 1);
        tn_text_done(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_file_has_no_damage),
        cmocka_unit_test(a_wrong_byte_costs_one_record_in_any_part),
        cmocka_unit_test(a_cut_file_costs_one_record_in_any_part),
    };
    return cmocka_run_group_tests_name("io/tfdamage", tests, NULL, NULL);
}
