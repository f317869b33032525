/* test_dict.c - the inference dictionary: its bytes, its look-ups, and what hostile files get. */
#include "dict/dict.h"

#include "base/keys/record.h"
#include "support/test.h"

#include "base/math/crc32c.h"
#include "base/math/key.h"
#include "dictfile.h"

CLOSER(tn_dict_close);

typedef tn_dictfile fixture;

static void write_dict(fixture *f, const tn_dict_spec *spec)
{
    tn_error err = {0};
    tn_dict_written done;
    tn_dictrows_sort(f->rows);
    tn_dict_source source = tn_dictrows_source(f->rows);
    assert_ok(tn_dict_write(f->path, spec, &source, &done, &err), err.text);
}

static tn_dict *open_dict(const fixture *f, tn_verify verify)
{
    tn_error err = {0};
    tn_dict *d = NULL;
    assert_ok(tn_dict_open(&d, f->path, verify, &err), err.text);
    return d;
}

static void golden_rows(fixture *f)
{
    tn_dictrows_add(f->rows, &tn_dictrows_layout, 0, 1, 3, (const float[]){.5F, 1, -2});
    tn_dictrows_add(f->rows, &tn_dictrows_layout, 1, 1, 3, (const float[]){-.5F, .25F, 4});
    tn_dictrows_add(f->rows, &tn_dictrows_layout, 1, 2, 1, (const float[]){.125F, 0, 0});
}

static void read_back(const fixture *f, tn_text *out)
{
    assert_int_equal(tn_file_read_all(f->path, 1 << 24, out, NULL), TN_OK);
}

TEST_WITH(tn_dictfile_set_up, tn_dictfile_tear_down, golden_dictionary)
{
    static const char head[] =
        "544e44310d0a1a0a0100000080000000000102030405060708090a0b0c0d0e0f00000000000000000000000000"
        "0000"
        "0088050000000000000300000000000000800000000000000040030000000000004a0300000000000080050000"
        "0000"
        "0000020000000200000002000000010000000200000000040000ff031400aca86214";
    fixture *f = *state;
    golden_rows(f);
    tn_dict_spec spec = tn_dictrows_spec();
    write_dict(f, &spec);
    tn_text bytes CLEANUP(tn_text_done) = {0};
    read_back(f, &bytes);
    assert_int_equal(bytes.size, 1416);
    char hex[260];
    for (uint32_t i = 0; i < 128; i++) {
        (void)snprintf(hex + (size_t)i * 2, 3, "%02x", (unsigned)(uint8_t)bytes.data[i]);
    }
    assert_string_equal(hex, head);
    assert_int_equal(tn_crc32c(0, bytes.data, bytes.size), 0xd05017da);
}

static uint64_t key_of(const tn_dict *d, uint32_t group, uint64_t sign)
{
    return tn_key_of(sign, tn_dict_salt(d, group));
}

/* Looks (group, sign) up; false: no such row. */
static bool look_up(const tn_dict *d, const char *group, uint64_t sign, tn_dict_row *row)
{
    uint32_t g = tn_dict_group(d, group);
    assert_int_not_equal(g, TN_DICT_NO_GROUP);
    assert_int_equal(tn_dict_find_all(d, 1, &(tn_dict_query){key_of(d, g, sign), g}, row, NULL),
                     TN_OK);
    return row->table != NULL;
}

TEST_WITH(tn_dictfile_set_up, tn_dictfile_tear_down, golden_dictionary_is_read)
{
    fixture *f = *state;
    golden_rows(f);
    tn_dict_spec spec = tn_dictrows_spec();
    write_dict(f, &spec);
    tn_dict *d FREED(tn_dict_close) = open_dict(f, TN_VERIFY_FULL);
    tn_dict_row row;
    float w[2];
    assert_true(look_up(d, "user", 1, &row));
    assert_true(tn_dict_get(&row, 0, 1, w));
    assert_float_equal(w[0], .5F, 0);
    assert_true(tn_dict_get(&row, 1, 2, w));
    assert_float_equal(w[1], -2, 0);
    assert_true(look_up(d, "item", 2, &row));
    assert_true(tn_dict_get(&row, 0, 1, w));
    assert_float_equal(w[0], .125F, 0);
    assert_false(tn_dict_get(&row, 1, 2, w)); /* absent: zeros */
    assert_float_equal(w[0], 0, 0);
    assert_false(look_up(d, "user", 2, &row));
    assert_false(tn_dict_get(&row, 0, 1, w));
    assert_int_equal(tn_dict_group(d, "nobody"), TN_DICT_NO_GROUP);
    assert_int_equal(key_of(d, tn_dict_group(d, "user"), 2), UINT64_C(0x7587093303b2db64));
}

static void many_rows(fixture *f, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        static const uint16_t present[] = {3, 3, 3, 1, 2};
        tn_dictrows_add(f->rows, &tn_dictrows_layout, i % 3 == 0 ? 0 : 1, i, present[i % 5], NULL);
    }
}

static void expect_row(const tn_dict *d, const tn_dict_entry *e, double within)
{
    tn_dict_row row;
    const tn_record *record = tn_record_of(&tn_dictrows_layout, e->group);
    assert_int_equal(tn_dict_find_all(d, 1, &(tn_dict_query){e->key, e->group}, &row, NULL), TN_OK);
    assert_non_null(row.table);
    for (uint32_t s = 0; s < record->n_segments; s++) {
        const tn_segment *segment = &record->segment[s];
        float w[TN_DICTROWS_WIDTH];
        bool there = tn_dict_get(&row, s, segment->dim, w);
        assert_true(there || (e->present >> s & 1) == 0);
        for (uint32_t k = 0; k < segment->dim; k++) {
            float want = (e->present >> s & 1) != 0 ? e->values[segment->at + k] : 0;
            assert_true(fabsf(w[k] - want) <= (float)within);
        }
    }
}

TEST_WITH(tn_dictfile_set_up, tn_dictfile_tear_down, every_row_is_found_and_no_other)
{
    static const uint32_t sizes[] = {0, 1, 2, 16, 17, 100, 8000};
    fixture *f = *state;
    tn_dict_spec spec = tn_dictrows_spec();
    for (uint32_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        f->rows->n = 0;
        many_rows(f, sizes[k]);
        spec.check_groups = k % 2 == 0;
        write_dict(f, &spec);
        for (uint32_t v = TN_VERIFY_FULL; v <= TN_VERIFY_NONE; v++) {
            tn_dict *d FREED(tn_dict_close) = open_dict(f, (tn_verify)v);
            assert_int_equal(tn_dict_head(d)->rows, sizes[k]);
            for (uint32_t i = 0; i < f->rows->n; i++) {
                expect_row(d, &f->rows->row[i], 0);
            }
            tn_dict_row row;
            for (uint64_t i = 0; i < 100; i++) {
                assert_false(look_up(d, "user", UINT64_C(1) << 40 | i, &row));
            }
        }
        assert_int_equal(remove(f->path), 0);
    }
}

/* Keys that are no hashes crowd at one end of a bucket, where no search expects them. */
TEST_WITH(tn_dictfile_set_up, tn_dictfile_tear_down, crowded_keys_are_found_and_no_others)
{
    enum { GAP = 3, FOUND = 1, FROM = 5 };
    static const uint32_t sizes[] = {1, 7, 20, 50, 200};
    fixture *f = *state;
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        const uint32_t n = sizes[i / 2];
        const uint64_t base = i % 2 == 0 ? FROM : UINT64_MAX - FROM - (uint64_t)n * GAP;
        f->rows->n = 0;
        for (uint32_t k = 0; k < n; k++) {
            tn_dictrows_add(f->rows, &tn_dictrows_layout, 0, k, 3, NULL);
            f->rows->row[k].key = base + (uint64_t)k * GAP;
        }
        tn_dict_spec spec = tn_dictrows_spec();
        write_dict(f, &spec);
        tn_dict *d = open_dict(f, TN_VERIFY_FULL);
        for (uint32_t k = 0; k < (n + 1) * GAP; k++) {
            tn_dict_row row;
            const tn_dict_query query = {base - 1 + k, 0};
            assert_int_equal(tn_dict_find_all(d, 1, &query, &row, NULL), TN_OK);
            assert_true((row.table != NULL) == (k % GAP == FOUND && k / GAP < n));
            if (row.table != NULL) {
                float w[2];
                assert_true(tn_dict_get(&row, 1, 2, w));
                assert_memory_equal(w, f->rows->row[k / GAP].values + 1, sizeof w);
            }
        }
        tn_dict_close(d);
        assert_int_equal(remove(f->path), 0);
    }
}

TEST_WITH(tn_dictfile_set_up, tn_dictfile_tear_down, many_look_ups_at_once_equal_single_ones)
{
    enum { N = 1001 };
    static tn_dict_query query[N];
    static tn_dict_row many[N];
    fixture *f = *state;
    many_rows(f, 3000);
    tn_dict_spec spec = tn_dictrows_spec();
    write_dict(f, &spec);
    tn_dict *d FREED(tn_dict_close) = open_dict(f, TN_VERIFY_LAZY);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t group = i % 2;
        query[i] = (tn_dict_query){key_of(d, group, (uint64_t)i * 5), group};
    }
    uint32_t found = 0;
    assert_int_equal(tn_dict_find_all(d, N, query, many, NULL), TN_OK);
    for (uint32_t i = 0; i < N; i++) {
        tn_dict_row one;
        assert_int_equal(tn_dict_find_all(d, 1, &query[i], &one, NULL), TN_OK);
        assert_ptr_equal(one.at, many[i].at);
        found += one.table != NULL;
    }
    assert_in_range(found, 200, 400);
}

TEST(golden_values)
{
    static const float w[] = {0.1F, -0.25F, 1.F / 3, 1e-5F};
    uint16_t half[4];
    tn_dict_encode(TN_DICT_BF16, 4, w, 1, (char *)half);
    assert_int_equal(half[0], 0x3dcd);
    assert_int_equal(half[1], 0xbe80);
    assert_int_equal(half[2], 0x3eab);
    assert_int_equal(half[3], 0x3728);
    tn_dict_encode(TN_DICT_FP16, 4, w, 1, (char *)half);
    assert_int_equal(half[0], 0x2e66);
    assert_int_equal(half[1], 0xb400);
    assert_int_equal(half[2], 0x3555);
    assert_int_equal(half[3], 0x00a8);
    char q[4];
    float scale = tn_dict_scale(TN_DICT_INT8, 1, &(tn_dict_part){4, w});
    tn_dict_encode(TN_DICT_INT8, 4, w, scale, q);
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    assert_int_equal(bits, 0x3b2c02b0);
    assert_int_equal(q[0], 38);
    assert_int_equal(q[1], -95);
    assert_int_equal(q[2], 127);
    assert_int_equal(q[3], 0);
    tn_dict_encode(TN_DICT_FP16, 2, (const float[]){1e9F, -70000}, 1, (char *)half);
    assert_int_equal(half[0], 0x7bff);
    assert_int_equal(half[1], 0xfbff);
    assert_float_equal(tn_dict_scale(TN_DICT_INT8, 1, &(tn_dict_part){2, (const float[]){0, 0}}), 0,
                       0);
    tn_dict_encode(TN_DICT_INT8, 2, (const float[]){0, 0}, 0, q);
    assert_int_equal(q[0], 0);
}

/* Every half that is a number comes back as itself, so decoding and rounding agree. */
TEST(all_halves_survive)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        uint16_t half = (uint16_t)h;
        uint16_t back;
        float x;
        if ((h & 0x7c00) != 0x7c00) {
            tn_dict_decode(TN_DICT_FP16, 1, (const char *)&half, 1, &x);
            tn_dict_encode(TN_DICT_FP16, 1, &x, 1, (char *)&back);
            assert_int_equal(back, half);
        }
        if ((h & 0x7f80) != 0x7f80) {
            tn_dict_decode(TN_DICT_BF16, 1, (const char *)&half, 1, &x);
            tn_dict_encode(TN_DICT_BF16, 1, &x, 1, (char *)&back);
            assert_int_equal(back, half);
        }
    }
}

/* Segments of 1, 2, 3, 8 and 10 floats, in one record. */
static const tn_share_group of_five = {.name = "g", .salt = 7, .record = 0};
static const tn_record five = {
    .width = 24,
    .n_segments = 5,
    .segment = {{"a", 0, 1}, {"b", 1, 2}, {"c", 3, 3}, {"d", 6, 8}, {"e", 14, 10}}};
static const tn_layout five_segments = {
    .n_groups = 1, .group = &of_five, .n_records = 1, .record = &five};

/* How near the values of a segment come back: bf16 8 bits of each, else by the row's scale. */
static float error_of(tn_dict_type type, const tn_dict_entry *e, const tn_segment *segment)
{
    float most = 0;
    for (uint32_t s = 0; s < five.n_segments; s++) {
        for (uint32_t k = 0; k < five.segment[s].dim && (e->present >> s & 1) != 0; k++) {
            most = fmaxf(most, fabsf(e->values[five.segment[s].at + k]));
        }
    }
    static const float within[] = {0, 1.F / 256, 1.F / 2048, 0.51F / 127, 0.51F / 7, 1};
    return within[tn_dict_type_for(type, segment->dim)] * most;
}

TEST_WITH(tn_dictfile_set_up, tn_dictfile_tear_down, short_values_are_near)
{
    fixture *f = *state;
    for (uint32_t i = 0; i < 500; i++) {
        tn_dictrows_add(f->rows, &five_segments, 0, i, (uint16_t)(1 + i % 31), NULL);
    }
    for (uint32_t type = TN_DICT_F32; type < TN_DICT_TYPES; type++) {
        tn_dict_spec spec = tn_dictrows_spec();
        spec.layout = &five_segments;
        spec.type = (tn_dict_type)type;
        write_dict(f, &spec);
        tn_dict *d = open_dict(f, TN_VERIFY_FULL);
        assert_int_equal(tn_dict_head(d)->minor, type > TN_DICT_INT8 ? 1 : 0);
        for (uint32_t i = 0; i < f->rows->n; i++) {
            const tn_dict_entry *e = &f->rows->row[i];
            tn_dict_row row;
            assert_int_equal(tn_dict_find_all(d, 1, &(tn_dict_query){e->key, 0}, &row, NULL),
                             TN_OK);
            for (uint32_t s = 0; s < five.n_segments; s++) {
                const tn_segment *segment = &five.segment[s];
                float w[TN_DICTROWS_WIDTH];
                const bool there = tn_dict_get(&row, s, segment->dim, w);
                assert_true(there || (e->present >> s & 1) == 0);
                const float within = error_of((tn_dict_type)type, e, segment);
                for (uint32_t k = 0; k < segment->dim && (e->present >> s & 1) != 0; k++) {
                    assert_true(fabsf(w[k] - e->values[segment->at + k]) <= within);
                }
            }
        }
        tn_dict_close(d);
        assert_int_equal(remove(f->path), 0);
    }
}

/* A scale for all bytes of a row, and none where bytes are not fewer than floats of 16 bits. */
TEST_WITH(tn_dictfile_set_up, tn_dictfile_tear_down, a_row_takes_as_few_bytes_as_its_kind_needs)
{
    static const uint32_t bytes[TN_DICT_TYPES] = {
        24 * 4, 52, 52, 8 + 4 + 4 + 8 + 12, 8 + 4 + 4 + 4 + 4 + 8, 8 + 4 + 4 + 4 + 4 + 4 + 4};
    fixture *f = *state;
    for (uint32_t type = TN_DICT_F32; type < TN_DICT_TYPES; type++) {
        uint64_t size[2];
        for (uint32_t i = 0; i < 2; i++) {
            tn_dict_spec spec = tn_dictrows_spec();
            spec.layout = &five_segments;
            spec.type = (tn_dict_type)type;
            f->rows->n = 0;
            for (uint32_t k = 0; k < 16 * (i + 1); k++) { /* whole lines of all arrays */
                tn_dictrows_add(f->rows, &five_segments, 0, k, 31, NULL);
            }
            tn_dictrows_sort(f->rows);
            write_dict(f, &spec);
            tn_dict *d = open_dict(f, TN_VERIFY_FULL);
            size[i] = tn_dict_head(d)->crc_at;
            tn_dict_close(d);
            assert_int_equal(remove(f->path), 0);
        }
        const uint64_t rows = size[1] - size[0] - 16 * sizeof(uint64_t);
        assert_in_range(rows, (uint64_t)16 * bytes[type], (uint64_t)16 * bytes[type] + 63);
    }
}

TEST(a_short_segment_is_kept_better_for_the_same_bytes)
{
    enum { F = TN_DICT_F32, B = TN_DICT_BF16, H = TN_DICT_FP16 };
    static const uint32_t dims[] = {1, 2, 3, 4, 5, 8, 9, 32, 33};
    static const uint32_t kinds[TN_DICT_TYPES][9] = {
        {F, F, F, F, F, F, F, F, F}, {F, B, B, B, B, B, B, B, B}, {F, H, H, H, H, H, H, H, H},
        {F, B, 3, 3, 3, 3, 3, 3, 3}, {F, B, 3, 3, 4, 4, 4, 4, 4}, {F, B, 3, 3, 4, 4, 5, 5, 5}};
    for (uint32_t asked = 0; asked < TN_DICT_TYPES; asked++) {
        for (uint32_t i = 0; i < 9; i++) {
            assert_int_equal(tn_dict_type_for((tn_dict_type)asked, dims[i]), kinds[asked][i]);
        }
    }
}

TEST(values_smaller_than_a_byte_are_packed)
{
    static const float w[] = {0.1F, -0.25F, 1.F / 3, 1e-5F, -1e-5F};
    char bytes[3];
    float back[5];
    const float step = tn_dict_scale(TN_DICT_INT4, 1, &(tn_dict_part){5, w});
    tn_dict_encode(TN_DICT_INT4, 5, w, step, bytes);
    assert_float_equal(step, 1.F / 21, 1e-9);
    assert_memory_equal(bytes, "\xb2\x07\x00", 3);
    tn_dict_decode(TN_DICT_INT4, 5, bytes, step, back);
    assert_float_equal(back[1], -5 * step, 0);
    assert_float_equal(back[2], 7 * step, 0);
    const float mean = tn_dict_scale(TN_DICT_1BIT, 1, &(tn_dict_part){5, w});
    tn_dict_encode(TN_DICT_1BIT, 5, w, mean, bytes);
    assert_float_equal(mean, (0.1 + 0.25 + 1. / 3 + 2e-5) / 5, 1e-8);
    assert_memory_equal(bytes, "\x12", 1);
    tn_dict_decode(TN_DICT_1BIT, 5, bytes, mean, back);
    assert_float_equal(back[0], mean, 0);
    assert_float_equal(back[4], -mean, 0);
    const tn_dict_part parts[] = {{2, w}, {2, w + 2}};
    assert_float_equal(tn_dict_scale(TN_DICT_INT8, 2, parts), 1.F / 3 / 127, 1e-9);
    assert_float_equal(tn_dict_scale(TN_DICT_INT8, 0, parts), 0, 0);
}

/* Ten segments and many sets of them: at most 8 tables per group, rare sets zero-filled. */
TEST_WITH(tn_dictfile_set_up, tn_dictfile_tear_down, rare_sets_share_a_table_that_contains_them)
{
    static const tn_share_group group = {.name = "g", .salt = 7, .record = 0};
    static tn_record record = {.width = 10, .n_segments = 10};
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    const tn_layout layout = {.n_groups = 1, .group = &group, .n_records = 1, .record = &record};
    for (uint32_t i = 0; i < 10; i++) {
        record.segment[i] = (tn_segment){names[i], i, 1};
    }
    fixture *f = *state;
    for (uint32_t i = 0; i < 600; i++) {
        uint16_t present = (uint16_t)(1 + tn_mix(i) % (i % 2 == 0 ? 4 : 1022));
        tn_dictrows_add(f->rows, &layout, 0, i, present, NULL);
    }
    tn_dict_spec spec = tn_dictrows_spec();
    spec.layout = &layout;
    write_dict(f, &spec);
    tn_dict *d FREED(tn_dict_close) = open_dict(f, TN_VERIFY_FULL);
    assert_int_equal(tn_dict_head(d)->n_tables, 8);
    for (uint32_t i = 0; i < f->rows->n; i++) {
        tn_dict_row row;
        const tn_dict_entry *e = &f->rows->row[i];
        assert_int_equal(tn_dict_find_all(d, 1, &(tn_dict_query){e->key, 0}, &row, NULL), TN_OK);
        assert_non_null(row.table);
        for (uint32_t s = 0; s < 10; s++) {
            float w;
            (void)tn_dict_get(&row, s, 1, &w);
            assert_true(w == ((e->present >> s & 1) != 0 ? e->values[s] : 0)); /* NOLINT */
        }
    }
}

/* The set of the first and of the last row is the rarer one: its place among the sets changes when
 * tables are made of them, between two walks over the rows. */
TEST_WITH(tn_dictfile_set_up, tn_dictfile_tear_down, rows_of_a_rare_set_at_both_ends_keep_it)
{
    enum { ROWS = 12, WIDE = 1, DEEP = 2 };
    fixture *f = *state;
    for (uint32_t i = 0; i < ROWS; i++) {
        tn_dictrows_add(f->rows, &tn_dictrows_layout, 0, i, DEEP, NULL);
    }
    tn_dictrows_sort(f->rows);
    f->rows->row[0].present = WIDE;
    f->rows->row[ROWS - 1].present = WIDE;
    tn_dict_spec spec = tn_dictrows_spec();
    write_dict(f, &spec);
    tn_dict *d FREED(tn_dict_close) = open_dict(f, TN_VERIFY_FULL);
    assert_int_equal(tn_dict_head(d)->n_tables, 2);
    for (uint32_t i = 0; i < ROWS; i++) {
        expect_row(d, &f->rows->row[i], 0);
    }
}

TEST_WITH(tn_dictfile_set_up, tn_dictfile_tear_down, a_weight_that_is_not_finite_is_refused)
{
    fixture *f = *state;
    tn_dictrows_add(f->rows, &tn_dictrows_layout, 0, 1, 3, (const float[]){0, NAN, 0});
    tn_dict_spec spec = tn_dictrows_spec();
    tn_dict_source source = tn_dictrows_source(f->rows);
    tn_error err = {0};
    tn_dict_written done;
    assert_int_equal(tn_dict_write(f->path, &spec, &source, &done, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "not finite"));
    assert_false(tn_path_exists(f->path));
}

TEST_WITH(tn_dictfile_set_up, tn_dictfile_tear_down, keys_of_other_partitions_read_as_nothing)
{
    fixture *f = *state;
    many_rows(f, 1000);
    tn_dictrows_sort(f->rows);
    uint32_t n = 0;
    while (f->rows->row[n].key >> 63 == 0) {
        n++;
    }
    uint32_t all = f->rows->n;
    f->rows->n = n;
    tn_dict_spec spec = tn_dictrows_spec();
    spec.last = 511;
    write_dict(f, &spec);
    tn_dict *d FREED(tn_dict_close) = open_dict(f, TN_VERIFY_FULL);
    tn_dict_row row;
    for (uint32_t i = 0; i < all; i++) {
        const tn_dict_entry *e = &f->rows->row[i];
        assert_int_equal(tn_dict_find_all(d, 1, &(tn_dict_query){e->key, e->group}, &row, NULL),
                         TN_OK);
        assert_int_equal(row.table != NULL, i < n);
    }
}

TEST_WITH(tn_dictfile_set_up, tn_dictfile_tear_down, writing_survives_any_lack_of_memory)
{
    fixture *f = *state;
    many_rows(f, 100);
    tn_dictrows_sort(f->rows);
    tn_dict_spec spec = tn_dictrows_spec();
    tn_status status = TN_E_MEMORY;
    for (uint64_t nth = 1; status == TN_E_MEMORY; nth++) {
        tn_error err = {0};
        tn_dict_written done;
        tn_dict_source source = tn_dictrows_source(f->rows);
        tn_alloc_fail_at(nth);
        status = tn_dict_write(f->path, &spec, &source, &done, &err);
        tn_alloc_fail_at(0);
        assert_true(status == TN_OK || (status == TN_E_MEMORY && !tn_path_exists(f->path)));
        assert_in_range(nth, 1, 100);
    }
}
