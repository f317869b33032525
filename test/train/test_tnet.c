/* test_tnet.c - libtnet by its public header: scores, errors, threads. The first test is the
 * example. */
#include "train/tnet.h"

#include "support/test.h"

#include "base/alloc.h"
#include "exportkit.h"
#include "support/mallocs.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct fixture {
    exportkit kit;
    tn_exported out;
    tnet_model *model;
    tnet_scorer *scorer;
    float *trainer; /* logits of edge.csv */
    uint32_t n;
} fixture;

static fixture f;

static int set_up(void **state)
{
    tnet_error err;
    (void)state;
    exportkit_open(&f.kit, "{type: widedeep, hidden: [16, 8]}", NULL);
    exportkit_train(&f.kit);
    f.out = exportkit_export(&f.kit);
    f.trainer = exportkit_trainer_logits(&f.kit, &f.n);
    if (tnet_open(f.out.path, TNET_VERIFY_FULL, &f.model, &err) != TNET_OK ||
        tnet_scorer_new(f.model, &f.scorer, &err) != TNET_OK) {
        fail_msg("%s", err.text);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tnet_scorer_free(f.scorer);
    tnet_close(f.model);
    tn_free(f.trainer);
    exportkit_close(&f.kit);
    return 0;
}

static void good(int code, const tnet_error *err)
{
    if (code != TNET_OK) {
        fail_msg("%d: %s", code, err->text);
    }
}

static void near(float a, float b)
{
    assert_true(fabsf(a - b) <= 1e-6F * fmaxf(1, fabsf(b)));
}

/* A row made by hand: every way to say a value. */
static void a_row_scores_as_in_training(void **state)
{
    (void)state;
    tnet_error err;
    tnet_scorer *s = f.scorer;
    float logit = 0;
    float click = 0;
    good(tnet_begin_row(s, &err), &err);
    good(tnet_add_id(s, tnet_field(f.model, "user"), 1, 1, &err), &err);
    good(tnet_add_text(s, tnet_field(f.model, "item"), "a1", 2, 1, &err), &err);
    good(tnet_add_text(s, tnet_field(f.model, "hist"), "a1", 2, 1, &err), &err);
    good(tnet_add_text(s, tnet_field(f.model, "hist"), "a2", 2, 1, &err), &err);
    good(tnet_add_text(s, tnet_field(f.model, "tags"), "t1", 2, 1, &err), &err);
    good(tnet_add_text(s, tnet_field(f.model, "tags"), "t2", 2, 0.5F, &err), &err);
    good(tnet_add_id(s, tnet_field(f.model, "seq"), 1, 1, &err), &err);
    good(tnet_add_id(s, tnet_field(f.model, "seq"), 2, 1, &err), &err);
    good(tnet_add_id(s, tnet_field(f.model, "top"), 3, 2, &err), &err);
    good(tnet_add_text(s, tnet_field(f.model, "gone"), "ff", 2, 1, &err), &err);
    good(tnet_add_number(s, tnet_field(f.model, "age"), 30, &err), &err);
    good(tnet_add_number(s, tnet_field(f.model, "count"), 7, &err), &err);
    good(tnet_add_number(s, tnet_field(f.model, "amount"), 2.5, &err), &err);
    good(tnet_add_number(s, tnet_field(f.model, "price"), 9.5, &err), &err);
    good(tnet_add_text(s, tnet_field(f.model, "height"), "150", 3, 1, &err), &err);
    good(tnet_add_number(s, tnet_field(f.model, "speed"), 4, &err), &err);
    good(tnet_add_number(s, tnet_field(f.model, "drift"), 1, &err), &err);
    good(tnet_end_row(s, &err), &err);
    good(tnet_score(s, &logit, &click, &err), &err);
    near(logit, f.trainer[0]);
    near(click, 1 / (1 + expf(-logit)));
    tnet_clear(s);
}

/* One row of a line of edge.csv. */
static void add_line(tnet_scorer *s, const tnet_model *model, const char *line)
{
    static const char *const columns[] = {"label",  "user",  "item",   "hist",  "tags", "weights",
                                          "seq",    "top",   "topx",   "gone",  "age",  "count",
                                          "amount", "price", "height", "speed", "drift"};
    char cell[17][64];
    tnet_error err;
    const char *at = line;
    for (uint32_t c = 0; c < 17; c++) {
        size_t size = strcspn(at, ",\n");
        memcpy(cell[c], at, size);
        cell[c][size] = '\0';
        at += size + 1;
    }
    good(tnet_begin_row(s, &err), &err);
    for (uint32_t c = 1; c < 17; c++) {
        int field = tnet_field(model, columns[c]);
        const char *x = c == 4 || c == 7 ? cell[c + 1] : "";
        for (const char *v = cell[c]; field >= 0 && *v != '\0';) {
            size_t size = strcspn(v, "|");
            float weight = 1;
            if (*x != '\0') {
                assert_int_equal(sscanf(x, "%f", &weight), 1); /* NOLINT */
                x += strcspn(x, "|");
                x += *x == '|';
            }
            good(tnet_add_text(s, field, v, size, weight, &err), &err);
            v += size;
            v += *v == '|';
        }
    }
    good(tnet_end_row(s, &err), &err);
}

static void s1_every_edge_row_scores_alone_and_together(void **state)
{
    float logit[16];
    float one;
    (void)state;
    tnet_error err;
    size_t n = 0;
    for (; exportkit_edge_lines[n] != NULL; n++) {
        add_line(f.scorer, f.model, exportkit_edge_lines[n]);
    }
    assert_int_equal(tnet_row_count(f.scorer), n);
    good(tnet_score(f.scorer, logit, NULL, &err), &err);
    for (size_t i = 0; i < n; i++) {
        tnet_clear(f.scorer);
        add_line(f.scorer, f.model, exportkit_edge_lines[i]);
        good(tnet_score(f.scorer, &one, NULL, &err), &err);
        near(one, f.trainer[i]);
        near(one, logit[i]);
    }
    tnet_clear(f.scorer);
}

static void a_warm_scorer_allocates_nothing(void **state)
{
    (void)state;
    float logit[16];
    tnet_error err;
    uint64_t before = 0;
    for (uint32_t round = 0; round < 20; round++) {
        if (round == 5) {
            before = tn_mallocs();
        }
        for (size_t i = 0; exportkit_edge_lines[i] != NULL; i++) {
            tnet_begin_row(f.scorer, &err);
            tnet_add_id(f.scorer, tnet_field(f.model, "user"), i, 1, &err);
            tnet_add_text(f.scorer, tnet_field(f.model, "item"), "a1", 2, 1, &err);
            tnet_end_row(f.scorer, &err);
        }
        good(tnet_score(f.scorer, logit, logit + 8, &err), &err);
        tnet_clear(f.scorer);
    }
    assert_int_equal(tn_mallocs() - before, 0);
}

static void many_values_grow_the_row(void **state)
{
    (void)state;
    tnet_error err;
    float logit = 0;
    int hist = tnet_field(f.model, "user");
    good(tnet_begin_row(f.scorer, &err), &err);
    good(tnet_add_number(f.scorer, tnet_field(f.model, "price"), 3, &err), &err);
    for (uint64_t i = 0; i < 10000; i++) {
        good(tnet_add_id(f.scorer, hist, i % 20, 1, &err), &err);
    }
    good(tnet_end_row(f.scorer, &err), &err);
    good(tnet_score(f.scorer, &logit, NULL, &err), &err);
    assert_true(isfinite(logit));
    tnet_clear(f.scorer);
}

static void wrong_calls_say_why(void **state)
{
    (void)state;
    tnet_error err = {0};
    float logit;
    tnet_scorer *s = f.scorer;
    int price = tnet_field(f.model, "price");
    int user = tnet_field(f.model, "user");
    int age = tnet_field(f.model, "age");
    assert_int_equal(tnet_field(f.model, "nobody"), -1);
    assert_null(tnet_field_name(f.model, -1));
    assert_string_equal(tnet_field_name(f.model, price), "price");
    assert_true(tnet_field_is_number(f.model, age) && !tnet_field_is_number(f.model, user));
    assert_int_equal(tnet_end_row(s, &err), TNET_E_USAGE);
    assert_int_equal(tnet_add_id(s, user, 1, 1, &err), TNET_E_USAGE);
    good(tnet_begin_row(s, &err), &err);
    assert_int_equal(tnet_begin_row(s, &err), TNET_E_USAGE);
    assert_int_equal(tnet_score(s, &logit, NULL, &err), TNET_E_USAGE);
    assert_int_equal(tnet_add_id(s, -1, 1, 1, &err), TNET_E_USAGE);
    assert_int_equal(tnet_add_id(s, price, 1, 1, &err), TNET_E_USAGE);
    assert_int_equal(tnet_add_number(s, user, 1, &err), TNET_E_USAGE);
    assert_int_equal(tnet_add_number(s, age, 1.5, &err), TNET_E_DATA);
    assert_int_equal(tnet_add_number(s, price, (double)NAN, &err), TNET_E_DATA);
    assert_int_equal(tnet_add_id(s, user, 1, INFINITY, &err), TNET_E_DATA);
    assert_int_equal(tnet_add_text(s, user, "12x", 3, 1, &err), TNET_E_DATA);
    assert_string_equal(err.text, "field 'user': expected a decimal integer, found \"12x\"");
    good(tnet_add_number(s, price, 1, &err), &err);
    assert_int_equal(tnet_add_number(s, price, 2, &err), TNET_E_DATA);
    assert_int_equal(tnet_add_number(s, price, 2, NULL), TNET_E_DATA);
    tnet_drop_row(s);
    assert_int_equal(tnet_row_count(s), 0);
    good(tnet_score(s, &logit, NULL, &err), &err); /* no rows: nothing to do */
    tnet_model *none = NULL;
    assert_int_equal(tnet_open("/nowhere", TNET_VERIFY_FULL, &none, &err), TNET_E_EXPORT);
    assert_int_equal(tnet_open(f.out.path, 7, &none, &err), TNET_E_USAGE);
    assert_null(none);
    assert_string_equal(tnet_model_id(f.model), f.out.model_id);
    assert_int_equal(tnet_rows(f.model), f.out.rows);
    assert_int_equal(tnet_abi(), TNET_ABI);
    tnet_close(NULL);
    tnet_scorer_free(NULL);
}

/* A thread with a scorer of its own. */
typedef struct scoring {
    tnet_scorer *scorer;
    uint32_t bad;
} scoring;

static void *score_often(void *arg)
{
    scoring *job = arg;
    tnet_error err;
    for (uint32_t round = 0; round < 200; round++) {
        size_t n = 0;
        float logit[16];
        tnet_clear(job->scorer);
        for (; exportkit_edge_lines[n] != NULL; n++) {
            add_line(job->scorer, f.model, exportkit_edge_lines[n]);
        }
        job->bad += tnet_score(job->scorer, logit, NULL, &err) != TNET_OK;
        for (size_t i = 0; i < n; i++) {
            job->bad += !(fabsf(logit[i] - f.trainer[i]) <= 1e-5F);
        }
    }
    return NULL;
}

static void threads_share_a_model(void **state)
{
    enum { THREADS = 3 };
    (void)state;
    pthread_t thread[THREADS];
    scoring job[THREADS] = {{NULL, 0}};
    tnet_error err;
    tnet_model *lazy = NULL;
    good(tnet_open(f.out.path, TNET_VERIFY_LAZY, &lazy, &err), &err);
    for (uint32_t i = 0; i < THREADS; i++) {
        good(tnet_scorer_new(lazy, &job[i].scorer, &err), &err);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, score_often, &job[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(job[i].bad, 0);
        tnet_scorer_free(job[i].scorer);
    }
    tnet_close(lazy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_scores_as_in_training),
        cmocka_unit_test(s1_every_edge_row_scores_alone_and_together),
        cmocka_unit_test(a_warm_scorer_allocates_nothing),
        cmocka_unit_test(many_values_grow_the_row),
        cmocka_unit_test(wrong_calls_say_why),
        cmocka_unit_test(threads_share_a_model),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
