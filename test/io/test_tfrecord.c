/* test_tfrecord.c - framing, damage, and the protobuf inside; bytes of docs/formats.md, section 2.
 */
#include "base/codec/proto.h"
#include "base/keys/record.h"
#include "base/math/crc32c.h"
#include "base/math/key.h"
#include "io/format/format.h"
#include "setup.h"
#include "support/test.h"

/* The Example of 107 bytes and the SequenceExample of 45. */
static const char example_hex[] =
    "0a690a0e0a056c6162656c12051a030a01010a180a0369647312111a0f0a0d03ac02ffffffffffffffffff010a1a0a"
    "047569647312121a10080308ac0208ffffffffffffffffff010a110a0178120c120a0a080000003f000080bf0a0e0a"
    "017312090a070a01610a026263";
static const char sequence_hex[] =
    "0a100a0e0a056c6162656c12051a030a010112190a170a0468697374120f0a051a030a01070a061a040a020809";

static void add_hex(tn_text *out, const char *hex)
{
    for (; hex[0] != '\0'; hex += 2) {
        static const char digits[] = "0123456789abcdef";
        tn_text_addc(out, (char)((strchr(digits, hex[0]) - digits) * 16 +
                                 (strchr(digits, hex[1]) - digits)));
    }
}

static void add_frame(tn_text *out, const void *data, size_t size)
{
    char header[12];
    tn_store_u64(header, size);
    tn_store_u32(header + 8, tn_crc_mask(tn_crc32c(0, header, 8)));
    tn_text_add(out, header, sizeof header);
    tn_text_add(out, data, size);
    tn_text_add_u32le(out, tn_crc_mask(tn_crc32c(0, data, size)));
}

static void add_framed_hex(tn_text *out, const char *hex)
{
    tn_text bytes CLEANUP(tn_text_done) = {0};
    add_hex(&bytes, hex);
    add_frame(out, tn_text_str(&bytes), bytes.size);
}

/* Cuts all records off some bytes, in windows that grow by `step`; the number of them. */
static uint32_t cut_all(const setup *s, const tn_text *bytes, size_t step, tn_error *err)
{
    const tn_format *format = tn_format_find("tfrecord");
    size_t from = 0;
    size_t to = 0;
    uint32_t n = 0;
    for (;;) {
        tn_bytes window = {bytes->data + from, to - from, false};
        tn_bytes record;
        bool last = to == bytes->size;
        tn_status status = format->cut(&window, last, s->schema, &record, err);
        if (status == TN_OK) {
            from = (size_t)(window.data - bytes->data);
            n++;
        } else if (status == TN_END && !last) {
            to = to + step < bytes->size ? to + step : bytes->size;
        } else {
            return n;
        }
    }
}

static void open_plain(setup *s)
{
    setup_open(s, "{data: {format: tfrecord}, slots: [{name: ids}, {name: uids}, "
                  "{name: s, type: str}]}");
}

TEST(golden_tfrecord_frames)
{
    setup s CLEANUP(setup_close);
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    open_plain(&s);
    add_hex(&bytes, "000000000000000029039807d8ea82a2");
    add_hex(&bytes, "040000000000000042455204544e657441543729");
    size_t steps[] = {1, 7, 4096, 1 << 20};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(cut_all(&s, &bytes, steps[i], &err), 2);
    }
    assert_int_equal(err.code, TN_OK);
}

static uint64_t sign_of(const setup *s, const tn_rows *rows, uint32_t entry)
{
    const tn_slot_spec *spec = s->schema->slot[rows->entry[entry].slot];
    return tn_sign_of(rows->entry[entry].key, spec->salt);
}

TEST(golden_example_of_107_bytes)
{
    setup s CLEANUP(setup_close);
    tn_parsed parsed CLEANUP(setup_parsed_free);
    tn_text bytes CLEANUP(tn_text_done) = {0};
    open_plain(&s);
    add_framed_hex(&bytes, example_hex);
    assert_int_equal(bytes.size, 107 + 16);
    assert_int_equal(tn_load_u32(bytes.data + 8), 0xe1a6ef87);
    assert_int_equal(tn_load_u32(bytes.data + 119), 0x99bd85d3);
    assert_int_equal(tn_crc32c(0, bytes.data + 12, 107), 0x4d7dfb9d);
    setup_parse(&s, bytes.data, bytes.size, &parsed);
    const tn_rows *rows = parsed.rows;
    assert_int_equal(rows->n, 1);
    assert_int_equal(rows->n_entries, 8);
    for (uint32_t i = 0; i < 2; i++) { /* packed, and not */
        assert_int_equal(sign_of(&s, rows, 3 * i), 3);
        assert_int_equal(sign_of(&s, rows, 3 * i + 1), 300);
        assert_true(sign_of(&s, rows, 3 * i + 2) == UINT64_MAX);
    }
    assert_true(sign_of(&s, rows, 6) == UINT64_C(0xd24ec4f1a98c6e5b));
    assert_true(rows->row[0].label == 1 && rows->row[0].at == 12);
}

TEST(golden_sequence_example_of_45_bytes)
{
    tn_parsed parsed;
    tn_text bytes CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, "{data: {format: tfrecord}, slots: [{name: hist}]}");
    add_framed_hex(&bytes, sequence_hex);
    assert_int_equal(bytes.size, 45 + 16);
    setup_parse(&s, bytes.data, bytes.size, &parsed);
    assert_int_equal(parsed.n_bad, 1); /* its second step has two values */
    assert_non_null(
        strstr(tn_parsed_message(&parsed, 0), "a step of several values in feature list 'hist'"));
    setup_parsed_free(&parsed);
    /* The same with one value per step. */
    tn_text_clear(&bytes);
    add_framed_hex(&bytes, "0a100a0e0a056c6162656c12051a030a010112180a160a0468697374120e"
                           "0a051a030a01070a051a030a0108");
    setup_parse(&s, bytes.data, bytes.size, &parsed);
    assert_int_equal(parsed.rows->n_entries, 2);
    assert_int_equal(sign_of(&s, parsed.rows, 1), 8);
    setup_parsed_free(&parsed);
}

TEST(steps_of_several_values_are_joined_where_the_slot_says_so)
{
    tn_text bytes CLEANUP(tn_text_done) = {0};
    static const char *const slots[] = {"{name: hist, step_pool: concat}",
                                        "{name: hist, step_pool: concat, max_len: 2}",
                                        "{name: hist, step_pool: concat, max_len: 2, keep: first}"};
    static const uint64_t want[][3] = {{7, 8, 9}, {8, 9}, {7, 8}};
    add_framed_hex(&bytes, sequence_hex);
    for (uint32_t i = 0; i < 3; i++) {
        setup s CLEANUP(setup_close);
        tn_parsed parsed CLEANUP(setup_parsed_free);
        char config[200];
        (void)snprintf(config, sizeof config, "{data: {format: tfrecord}, slots: [%s]}", slots[i]);
        setup_open(&s, config);
        setup_parse(&s, bytes.data, bytes.size, &parsed);
        assert_int_equal(parsed.n_bad, 0);
        assert_int_equal(parsed.rows->n_entries, i == 0 ? 3 : 2);
        for (uint32_t k = 0; k < parsed.rows->n_entries; k++) {
            assert_int_equal(sign_of(&s, parsed.rows, k), want[i][k]);
        }
    }
}

/* One feature with the given bytes as its Feature, beside a label. */
static void add_example(tn_text *out, const char *name, const void *feature, size_t size)
{
    tn_text message CLEANUP(tn_text_done) = {0};
    size_t features = tn_proto_begin(&message, 1);
    size_t entry = tn_proto_begin(&message, 1);
    tn_proto_add_bytes(&message, 2, "\x1a\x03\x0a\x01\x01", 5); /* the value before the key */
    tn_proto_add_bytes(&message, 1, "label", strlen("label"));
    tn_proto_end(&message, entry);
    entry = tn_proto_begin(&message, 1);
    tn_proto_add_bytes(&message, 1, name, strlen(name));
    tn_proto_add_bytes(&message, 2, feature, size);
    tn_proto_end(&message, entry);
    tn_proto_end(&message, features);
    add_frame(out, message.data, message.size);
}

typedef struct sample {
    const char *feature; /* hex */
    uint32_t values;     /* of slot `a`; UINT32_MAX: the record is bad */
} sample;

static void check_samples(const char *config, const sample *samples, uint32_t n)
{
    OPEN(setup, s, config);
    for (uint32_t i = 0; i < n; i++) {
        tn_text feature CLEANUP(tn_text_done) = {0};
        tn_text bytes CLEANUP(tn_text_done) = {0};
        tn_parsed parsed CLEANUP(setup_parsed_free);
        add_hex(&feature, samples[i].feature);
        add_example(&bytes, "a", tn_text_str(&feature), feature.size);
        setup_parse(&s, bytes.data, bytes.size, &parsed);
        if (samples[i].values == UINT32_MAX) {
            assert_int_equal(parsed.n_bad, 1);
        } else {
            assert_int_equal(parsed.n_bad, 0);
            assert_int_equal(parsed.rows->n_entries, samples[i].values);
        }
    }
}

TEST(features_are_taken_in_every_form_they_may_have)
{
    static const sample ids[] = {
        {"", 0},                              /* no kind: missing */
        {"1a00", 0},                          /* present and empty */
        {"1a020a00", 0},                      /* an empty run */
        {"1a030a0107", 1},                    /* packed */
        {"1a020807", 1},                      /* not */
        {"1a0708070a0208090808", UINT32_MAX}, /* a length that reaches too far */
        {"1a0808070a0208090808", 4},          /* mixed */
        {"1a030a01071a030a0108", 2},          /* the same kind twice is one list */
        {"12021200"
         "1a030a0107",
         1}, /* the last kind wins */
        {"1a030a0107"
         "12020a00",
         UINT32_MAX},          /* .. and floats do not suit */
        {"0a050a03313233", 1}, /* bytes are read as decimal */
        {"0a050a03313278", UINT32_MAX},
        {"0a020a00", 0}, /* no bytes are no value */
        {"2a00"
         "1a030a0107"
         "3800",
         1},                                          /* unknown fields are passed over */
        {"03", UINT32_MAX},                           /* wire type 3 */
        {"1a030a0187", UINT32_MAX},                   /* a varint without end */
        {"1a0c0a0affffffffffffffffff02", UINT32_MAX}, /* a tenth byte above 1 */
        {"1a0c0a0affffffffffffffffff01", 1},
    };
    check_samples("{data: {format: tfrecord}, slots: [{name: a}]}", ids, sizeof ids / sizeof *ids);
    static const sample floats[] = {
        {"12060a040000003f", 1},
        {"12050d0000003f", 1},
        {"12050a030000003f", UINT32_MAX},
        {"120a0d0000003f0d0000003f", UINT32_MAX},
        {"1a030a0107", 1},
        {"0a030a0131", UINT32_MAX},
        {"12060a040000c07f", UINT32_MAX}, /* nan */
    };
    check_samples("{data: {format: tfrecord}, slots: [{name: a, as: weighted}]}", floats,
                  sizeof floats / sizeof *floats);
    static const sample texts[] = {{"0a060a01610a0162", 2},
                                   {"0a050a000a0162", 1},
                                   {"0a020a00", 0},
                                   {"1a030a0107", UINT32_MAX}};
    check_samples("{data: {format: tfrecord}, slots: [{name: a, type: str}]}", texts, 4);
}

TEST(a_group_of_no_bytes_is_none)
{
    static const struct {
        const char *feature;
        bool has;
    } rows[] = {{"0a020a00", false}, {"0a030a0162", true}};
    OPEN(setup, s, "{data: {format: tfrecord, group: a}, slots: [{name: a, type: str}]}");
    for (uint32_t i = 0; i < 2; i++) {
        tn_text feature CLEANUP(tn_text_done) = {0};
        tn_text bytes CLEANUP(tn_text_done) = {0};
        tn_parsed parsed CLEANUP(setup_parsed_free);
        add_hex(&feature, rows[i].feature);
        add_example(&bytes, "a", tn_text_str(&feature), feature.size);
        setup_parse(&s, bytes.data, bytes.size, &parsed);
        assert_int_equal(parsed.rows->n, 1);
        assert_int_equal(parsed.rows->row[0].group != TN_NO_GROUP, rows[i].has);
    }
}

TEST(a_wrong_kind_is_named_with_its_key)
{
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_parsed parsed CLEANUP(setup_parsed_free);
    OPEN(setup, s, "{data: {format: tfrecord}, slots: [{name: a}]}");
    add_example(&bytes, "a", "\x12\x06\x0a\x04\x00\x00\x00\x3f", 8);
    setup_parse(&s, bytes.data, bytes.size, &parsed);
    const char *text = strstr(tn_parsed_message(&parsed, 0), "parsed:");
    assert_string_equal(text,
                        "parsed:@12: error: feature 'a' holds floats, expected int64s or bytes");
}

TEST(a_text_that_is_no_label_is_shown)
{
    setup s;
    tn_text bytes = {0};
    tn_parsed parsed;
    setup_open(&s,
               "{data: {format: tfrecord, label: {column: y, values: {yes: 1}}}, slots: [{name: "
               "a}]}");
    add_example(&bytes, "y", "\x0a\x05\x0a\x03no\x01", 7);
    add_example(&bytes, "y", "\x1a\x03\x0a\x01\x07", 5);
    setup_parse(&s, bytes.data, bytes.size, &parsed);
    assert_int_equal(parsed.n_bad, 2);
    assert_non_null(strstr(tn_parsed_message(&parsed, 0), "expected a label, found \"no\\x01\""));
    assert_non_null(strstr(tn_parsed_message(&parsed, 1), "expected a label, found \"7\""));
    setup_parsed_free(&parsed);
    tn_text_done(&bytes);
    setup_close(&s);
    setup_open(&s, "{data: {format: tfrecord, label: y}, slots: [{name: b, column: y}]}");
    add_example(&bytes, "y", "\x1a\x03\x0a\x01\x07", 5);
    add_example(&bytes, "y", "\x0a\x05\x0a\x03no\x01", 7);
    setup_parse(&s, bytes.data, bytes.size, &parsed);
    assert_non_null(strstr(tn_parsed_message(&parsed, 0), "found \"7\"\nhint: 'label: {column: y, "
                                                          "threshold: T}' makes"));
    assert_non_null(strstr(tn_parsed_message(&parsed, 1),
                           "holds bytes, expected a float, an int64, or bytes that 'label: "
                           "{values: ..}' names"));
    setup_parsed_free(&parsed);
    tn_text_done(&bytes);
    setup_close(&s);
    setup_open(&s, "{data: {format: tfrecord, label: none}, slots: [{name: b, column: y}]}");
    add_example(&bytes, "y", "\x0a\x05\x0a\x03no\x01", 7);
    setup_parse(&s, bytes.data, bytes.size, &parsed);
    assert_non_null(strstr(tn_parsed_message(&parsed, 0),
                           "in feature 'y'\nhint: slot 'b' with 'type: str' takes any text"));
    setup_parsed_free(&parsed);
    tn_text_done(&bytes);
    setup_close(&s);
}

/* Five records; what is done to their bytes, and how many then survive. */
static void check_damage(void (*damage)(tn_text *), uint32_t good, uint32_t bad, const char *words)
{
    tn_text bytes CLEANUP(tn_text_done) = {0};
    OPEN(setup, s,
         "{data: {format: tfrecord, bad_records_max: 10, shuffle: 0, "
         "record_bytes_max: 1000B}, slots: [{name: a}]}");
    for (uint32_t i = 0; i < 5; i++) {
        add_example(&bytes, "a", "\x1a\x03\x0a\x01\x07", 5);
    }
    damage(&bytes);
    const char *path = setup_file(&s, "damaged", bytes.data, bytes.size);
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 10, .prefetch = 1};
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_read_counts counts;
    tn_text reasons CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
    assert_int_equal(batch->rows, good);
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_END);
    tn_reader_counts(reader, &counts);
    assert_int_equal(counts.bad, bad);
    tn_reader_counts_of(reader, UINT32_MAX, &counts, &reasons);
    assert_string_equal(tn_text_str(&reasons), words);
    tn_reader_close(reader);
}

static void in_data(tn_text *bytes)
{
    bytes->data[bytes->size / 5 + 20] ^= 1;
}

static void in_length(tn_text *bytes)
{
    bytes->data[2 * (bytes->size / 5)] ^= 1;
}

static void cut_in_data(tn_text *bytes)
{
    bytes->size -= 5;
}

static void cut_in_header(tn_text *bytes)
{
    bytes->size = bytes->size / 5 * 4 + 11;
}

static void too_long(tn_text *bytes)
{
    char *at = bytes->data + bytes->size / 5;
    tn_store_u64(at, 1001);
    tn_store_u32(at + 8, tn_crc_mask(tn_crc32c(0, at, 8)));
}

TEST(one_corrupt_record_costs_one_record)
{
    check_damage(in_data, 4, 1, "corrupt record data");
    check_damage(in_length, 4, 1, "corrupt record length");
    check_damage(cut_in_data, 4, 1, "truncated record");
    check_damage(cut_in_header, 4, 1, "truncated record header");
    check_damage(too_long, 4, 1, "record longer than record_bytes_max");
}

TEST(damage_without_leave_ends_the_stream_with_its_place)
{
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_parsed parsed CLEANUP(setup_parsed_free);
    OPEN(setup, s, "{data: {format: tfrecord}, slots: [{name: a}]}");
    add_example(&bytes, "a", "", 0);
    size_t one = bytes.size;
    add_example(&bytes, "a", "", 0);
    bytes.data[one + 14] ^= 1;
    setup_parse(&s, bytes.data, bytes.size, &parsed);
    char expected[64];
    (void)snprintf(expected, sizeof expected, "parsed:@%zu: error: corrupt record data (crc ", one);
    assert_non_null(strstr(tn_parsed_message(&parsed, 0), expected));
}

TEST(parts_of_a_file_hold_each_record_once)
{
    tn_text bytes CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < 100; i++) {
        char feature[8];
        (void)snprintf(feature, sizeof feature, "\x1a\x03\x0a\x01%c", (char)(i + 1));
        add_example(&bytes, "a", feature, 5);
    }
    for (uint32_t part = 1; part < 300; part += 13) {
        char config[160];
        unsigned char seen[128] = {0};
        tn_reader *reader = NULL;
        tn_batch *batch = NULL;
        (void)snprintf(config, sizeof config,
                       "{data: {format: tfrecord, shuffle: 5, part_bytes: %uB}, slots: [{name: "
                       "a}]}",
                       part);
        OPEN(setup, s, config);
        const char *path = setup_file(&s, "rows", bytes.data, bytes.size);
        const char *const twice[] = {path, path};
        const tn_reader_opts opts = {
            .paths = {2, twice}, .batch_rows = 9, .training = true, .prefetch = 1};
        assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
        while (tn_reader_next(reader, &batch, NULL) == TN_OK) {
            for (uint32_t i = 0; i < batch->rows; i++) {
                seen[tn_sign_of(batch->slot[0].key[i], s.schema->group[0].salt)]++;
            }
            tn_reader_recycle(reader, batch);
        }
        tn_reader_close(reader);
        for (uint32_t i = 1; i <= 100; i++) {
            assert_int_equal(seen[i], 2); /* once in each of two files */
        }
    }
}

enum { RECORDS = 5 };

/* Records of equal size, each with a label alone. */
static void add_records(tn_text *out)
{
    tn_text message CLEANUP(tn_text_done) = {0};
    size_t features = tn_proto_begin(&message, 1);
    size_t entry = tn_proto_begin(&message, 1);
    tn_proto_add_bytes(&message, 1, "label", strlen("label"));
    tn_proto_add_bytes(&message, 2, "\x1a\x03\x0a\x01\x01", 5);
    tn_proto_end(&message, entry);
    tn_proto_end(&message, features);
    for (uint32_t i = 0; i < RECORDS; i++) {
        add_frame(out, message.data, message.size);
    }
}

typedef struct outcome {
    uint64_t rows, bad;
} outcome;

static outcome read_file(const tn_text *bytes, uint64_t part_bytes, bool training)
{
    char config[200];
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_read_counts counts;
    outcome o = {0, 0};
    (void)snprintf(config, sizeof config,
                   "{data: {format: tfrecord, bad_records_max: 100, part_bytes: %lluB, shuffle: 3, "
                   "record_bytes_max: 1000B}, slots: [{name: a}]}",
                   (unsigned long long)part_bytes);
    OPEN(setup, s, config);
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

TEST(a_whole_file_has_no_damage)
{
    tn_text bytes CLEANUP(tn_text_done) = {0};
    add_records(&bytes);
    check_everywhere(&bytes, RECORDS, 0);
}

TEST(a_wrong_byte_costs_one_record_in_any_part)
{
    const size_t places[] = {0, 9, 14}; /* length, its crc, data */
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (size_t record = 0; record < RECORDS; record += 2) {
            tn_text bytes CLEANUP(tn_text_done) = {0};
            add_records(&bytes);
            bytes.data[record * (bytes.size / RECORDS) + places[i]] ^= 1;
            check_everywhere(&bytes, RECORDS - 1, 1);
        }
    }
}

TEST(a_cut_file_costs_one_record_in_any_part)
{
    const size_t left[] = {1, 11, 12, 15, 20}; /* of the last record */
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        tn_text bytes CLEANUP(tn_text_done) = {0};
        add_records(&bytes);
        bytes.size = (RECORDS - 1) * (bytes.size / RECORDS) + left[i];
        check_everywhere(&bytes, RECORDS - 1, 1);
    }
}
