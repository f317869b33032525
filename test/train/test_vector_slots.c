/* test_vector_slots.c - vectors of an export, number by number through libtnet. */
#include "serve/tnet.h"

#include "support/test.h"

#include "exportkit.h"

typedef struct fixture {
    exportkit kit;
    char dir[256];
    tnet_model *model;
    tnet_scorer *scorer;
    int user, title;
} fixture;

static fixture f;

static void good(int code, const tnet_error *err)
{
    fail_if(code != TNET_OK, "%d: %s", code, err->text);
}

GROUP_SET_UP
{
    tnet_error err;
    tn_text rows = {0};
    char train[400];
    tn_tmpdir_make(f.dir);
    PATH_IN(path, f.dir, "rows.csv");
    tn_text_adds(&rows, "label,user,title,price\n");
    for (int i = 0; i < 400; i++) {
        tn_text_addf(&rows, "%d,%d,0.%d|-0.%d,%d\n", i % 3 == 0, i % 7, i % 10, i % 6, i % 4);
    }
    assert_ok(tn_file_replace(path, rows.data, rows.size, NULL), "rows.csv");
    tn_text_done(&rows);
    (void)snprintf(train, sizeof train, "data.train=%s", path);
    exportkit_open(&f.kit, "{type: widedeep, hidden: [6]}",
                   (const char *const[]){
                       train, "data.valid=~",
                       "slots=[{name: user}, {name: title, type: vector, dim: 2, list: '|'}, "
                       "{name: price, type: float, as: value}]",
                       NULL});
    exportkit_train(&f.kit);
    const tn_exported out = exportkit_export(&f.kit);
    good(tnet_open(out.path, TNET_VERIFY_FULL, &f.model, &err), &err);
    good(tnet_scorer_new(f.model, &f.scorer, &err), &err);
    f.user = tnet_field(f.model, "user");
    f.title = tnet_field(f.model, "title");
}

GROUP_TEAR_DOWN
{
    tnet_scorer_free(f.scorer);
    tnet_close(f.model);
    exportkit_close(&f.kit);
    tn_tmpdir_remove(f.dir);
}

/* Begins a row of user 3 with `n` numbers of the vector. */
static void begin_row(const double *number, uint32_t n)
{
    tnet_error err;
    good(tnet_begin_row(f.scorer, &err), &err);
    good(tnet_add_id(f.scorer, f.user, 3, 1, &err), &err);
    for (uint32_t i = 0; i < n; i++) {
        good(tnet_add_number(f.scorer, f.title, number[i], &err), &err);
    }
}

static float score(void)
{
    tnet_error err;
    float logit = 0;
    good(tnet_end_row(f.scorer, &err), &err);
    good(tnet_score_many(f.scorer, &logit, NULL, &err), &err);
    tnet_clear(f.scorer);
    return logit;
}

TEST(numbers_and_texts_of_a_vector_score_alike_and_a_missing_one_is_zeros)
{
    tnet_error err;
    begin_row((const double[]){.5, -.25}, 2);
    const float number = score();
    begin_row(NULL, 0);
    good(tnet_add_text(f.scorer, f.title, "0.5", 3, 1, &err), &err);
    good(tnet_add_text(f.scorer, f.title, "-0.25", 5, 1, &err), &err);
    const float text = score();
    begin_row(NULL, 0);
    const float missing = score();
    begin_row((const double[]){0, 0}, 2);
    const float zeros = score();
    assert_memory_equal(&number, &text, sizeof text);
    assert_memory_equal(&missing, &zeros, sizeof zeros);
    assert_true(fabsf(number - zeros) > 1e-3F);
}

TEST(a_vector_of_another_length_is_refused_when_its_row_ends)
{
    static const double numbers[] = {.1, .2, .3};
    for (uint32_t n = 1; n <= 3; n += 2) {
        tnet_error err;
        char want[80];
        (void)snprintf(want, sizeof want, "%u number%s in slot 'title', which is a vector of 2", n,
                       n == 1 ? "" : "s");
        begin_row(numbers, n);
        assert_int_equal(tnet_end_row(f.scorer, &err), TNET_E_DATA);
        assert_string_equal(err.text, want);
        tnet_clear(f.scorer);
    }
}

TEST(a_vector_that_all_rows_share_is_that_of_each)
{
    tnet_error err;
    begin_row((const double[]){.5, -.25}, 2);
    const float whole = score();
    good(tnet_begin_shared(f.scorer, &err), &err);
    good(tnet_add_number(f.scorer, f.title, .5, &err), &err);
    good(tnet_add_number(f.scorer, f.title, -.25, &err), &err);
    good(tnet_end_row(f.scorer, &err), &err);
    begin_row(NULL, 0);
    const float shared = score();
    assert_true(fabsf(whole - shared) <= 1e-6F);
}
