/* test_dump.c - dict.tsv: every bit comes back, and a fault is reported with its line. */
#include "extra/dump/dump.h"

#include "support/test.h"

#include "base/math/key.h"

#include <float.h>
#include <locale.h>

typedef struct fixture {
    char dir[256];
    char path[300];
} fixture;

static fixture f;

SET_UP
{
    tn_tmpdir_make(f.dir);
    (void)snprintf(f.path, sizeof f.path, "%s/dict.tsv", f.dir);
}

TEAR_DOWN
{
    tn_tmpdir_remove(f.dir);
}

static const tn_dump_column columns[] = {{"wide", false}, {"wide.t", true}, {"deep", false}};
static const tn_dump_head head = {
    .model_id = "000102030405060708090a0b0c0d0e0f", .n = 3, .column = columns};

static tn_status add_row(tn_file *w, const tn_dump_row *row, tn_error *err)
{
    tn_text line CLEANUP(tn_text_done) = {0};
    tn_status status = tn_dump_print(&head, row, &line, err);
    if (status == TN_OK) {
        status = tn_file_write(w, line.data, line.size, err);
    }
    return status;
}

static void write_rows(const tn_dump_row *row, uint32_t n)
{
    tn_file *w = NULL;
    assert_int_equal(tn_dump_create(&w, f.path, &head, NULL), TN_OK);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(add_row(w, &row[i], NULL), TN_OK);
    }
    assert_int_equal(tn_file_commit(w, NULL), TN_OK);
}

TEST(a_dump_looks_like_this)
{
    static const char want[] = "#tnet-dump 1\n#model_id 000102030405060708090a0b0c0d0e0f\n"
                               "#columns\tgroup\tsign\tshow\tclick\tlast_seen\twide\twide.t\tdeep\n"
                               "user\t1\t3\t1\t7\t0.5\t12\t1 -2\n"
                               "item\t18446744073709551615\t0.10000000000000001\t0\t0\t\t\t"
                               "0.333333343 -0\n";
    float count;
    memcpy(&count, &(uint32_t){12}, sizeof count);
    const float w = 0.5F;
    const float deep[] = {1, -2};
    const float other[] = {1.F / 3, -0.F};
    const tn_dump_value v1[] = {{&w, 1}, {&count, 1}, {deep, 2}};
    const tn_dump_value v2[] = {{NULL, 0}, {NULL, 0}, {other, 2}};
    const tn_dump_row rows[] = {
        {"user", 1, 3, 1, 7, v1},
        {"item", UINT64_MAX, 0.1, 0, 0, v2},
    };
    write_rows(rows, 2);
    tn_text t CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(f.path, 1 << 20, &t, NULL), TN_OK);
    assert_string_equal(t.data, want);
}

static float any_float(uint64_t i)
{
    uint32_t bits = (uint32_t)tn_mix(i);
    float x;
    memcpy(&x, &bits, sizeof x);
    return isfinite(x) ? x : FLT_MAX;
}

/* TensorNet's text keeps 6 digits and changes 97 % of the values; its `bin` is read as text. */
TEST(every_bit_of_a_dump_comes_back)
{
    enum { N = 3000, DIM = 40 };
    static float values[N][DIM];
    static tn_dump_value value[N][3];
    static tn_dump_row row[N];
    static const uint64_t signs[] = {(1 << 24) + 1, (UINT64_C(1) << 53) + 1, UINT64_MAX, 0};
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t k = 0; k < DIM; k++) {
            values[i][k] = any_float((uint64_t)i * DIM + k);
        }
        value[i][0] = (tn_dump_value){values[i], 1};
        value[i][1] = (tn_dump_value){values[i] + 1, 1};
        value[i][2] = (tn_dump_value){values[i] + 2, i % 7 == 0 ? 0 : DIM - 2};
        row[i] =
            (tn_dump_row){"g", i < 4 ? signs[i] : tn_mix(i), (double)i / 3, 0.1 * i, i, value[i]};
    }
    write_rows(row, N);
    tn_error err = {0};
    tn_dump *d = NULL;
    const tn_dump_row *back = NULL;
    assert_int_equal(tn_dump_open(&d, f.path, &err), TN_OK);
    assert_int_equal(tn_dump_head_of(d)->n, 3);
    assert_string_equal(tn_dump_head_of(d)->column[2].name, "deep");
    assert_string_equal(tn_dump_head_of(d)->model_id, head.model_id);
    tn_dump_set_whole(d, 1);
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(tn_dump_next(d, &back, &err), TN_OK);
        assert_string_equal(back->group, "g");
        assert_true(back->sign == row[i].sign && back->last_seen == i);
        assert_memory_equal(&back->show, &row[i].show, sizeof back->show);
        assert_memory_equal(&back->click, &row[i].click, sizeof back->click);
        for (uint32_t k = 0; k < 3; k++) {
            assert_int_equal(back->value[k].n, value[i][k].n);
            if (value[i][k].n > 0) {
                assert_memory_equal(back->value[k].at, value[i][k].at, (size_t)value[i][k].n * 4);
            }
        }
    }
    assert_int_equal(tn_dump_next(d, &back, &err), TN_END);
    tn_dump_close(d);
}

TEST(a_value_that_is_not_finite_is_refused)
{
    tn_error err = {0};
    tn_file *w = NULL;
    const float nan = NAN;
    const tn_dump_value v[] = {{&nan, 1}, {NULL, 0}, {NULL, 0}};
    const tn_dump_row row = {"user", 1, 3, 1, 7, v};
    assert_int_equal(tn_dump_create(&w, f.path, &head, &err), TN_OK);
    assert_int_equal(add_row(w, &row, &err), TN_E_CKPT);
    tn_file_abandon(w);
    assert_false(tn_path_exists(f.path));
}

TEST(wrong_lines_are_named)
{
#define HEAD "#tnet-dump 1\n#model_id 000102030405060708090a0b0c0d0e0f\n"
#define COLS "#columns\tgroup\tsign\tshow\tclick\tlast_seen\twide\n"
    static const char *const wrong[][2] = {
        {"", ":0:"},
        {"#tnet-dump 2\n", ":1:"},
        {"#tnet-dump 1\n#model_id 12\n", ":2:"},
        {HEAD "#columns\tgroup\tsign\n", ":3:"},
        {HEAD "#columns\tgroup\tsign\tshow\tclick\tlast_seen\ta\ta\n", ":3:"},
        {HEAD COLS "g\t1\t0\t0\t0\n", ":4:"},
        {HEAD COLS "g\t1\t0\t0\t0\t1\t1\n", ":4:"},
        {HEAD COLS "g\t1\t0\t0\t0\t1\ng\t1\t0\t0\t0\tx\n", ":5:"},
        {HEAD COLS "g\t18446744073709551616\t0\t0\t0\t1\n", ":4:"},
        {HEAD COLS "g\t1\t-1\t0\t0\t1\n", ":4:"},
        {HEAD COLS "g\t1\t0\t0\t4294967296\t1\n", ":4:"},
        {HEAD COLS "g\t1\t0\t0\t0\tnan\n", ":4:"},
        {HEAD COLS "g\t1\t0\t0\t0\t1  2\n", ":4:"},
        {HEAD COLS "\t1\t0\t0\t0\t1\n", ":4:"},
        {HEAD COLS "g\t1\t0\t0\t0\t1", ":4:"},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tn_error err = {0};
        assert_int_equal(tn_file_replace(f.path, wrong[i][0], strlen(wrong[i][0]), &err), TN_OK);
        tn_dump *d = NULL;
        tn_status status = tn_dump_open(&d, f.path, &err);
        const tn_dump_row *row;
        while (status == TN_OK) {
            status = tn_dump_next(d, &row, &err);
        }
        assert_int_equal(status, TN_E_CKPT);
        assert_non_null(strstr(err.text, wrong[i][1]));
        tn_dump_close(d);
    }
}

/* A name that ends early would be that of another group. */
TEST(binary_data_is_refused)
{
    static const char bytes[] = HEAD COLS "g\t1\t0\t0\t0\t1\ng\0h\t1\t0\t0\t0\t1\n";
    tn_error err = {0};
    tn_dump *d = NULL;
    const tn_dump_row *row;
    assert_int_equal(tn_file_replace(f.path, bytes, sizeof bytes - 1, &err), TN_OK);
    assert_int_equal(tn_dump_open(&d, f.path, &err), TN_OK);
    assert_int_equal(tn_dump_next(d, &row, &err), TN_OK);
    assert_int_equal(tn_dump_next(d, &row, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, ":5: error: binary data in a dump"));
    tn_dump_close(d);
}

TEST(no_locale_shows_in_a_dump)
{
    const float w = 0.5F;
    const tn_dump_value v[] = {{&w, 1}, {NULL, 0}, {NULL, 0}};
    const tn_dump_row row = {"user", 1, 2.5, 1, 7, v};
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL) { /* NOLINT: one thread */
        a_dump_looks_like_this(state);
        return;
    }
    write_rows(&row, 1);
    (void)setlocale(LC_ALL, "C"); /* NOLINT: one thread */
    tn_text t CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(f.path, 1 << 20, &t, NULL), TN_OK);
    assert_non_null(strstr(t.data, "\t2.5\t1\t7\t0.5\t"));
}
