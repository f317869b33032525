/* test_tnet.c - libtnet by its public header: scores, errors, threads. The first test is the
 * example. */
#include "serve/tnet.h"

#include "support/test.h"

#include "base/core/failpoint.h"
#include "exportkit.h"
#include "nn/gemm/kernels.h"
#include "support/mallocs.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

typedef struct fixture {
    exportkit kit;
    tn_exported out;
    tnet_model *model;
    tnet_scorer *scorer;
    float *trainer; /* logits of edge.csv */
    uint32_t n;
} fixture;

static fixture f;

GROUP_SET_UP
{
    tnet_error err;
    exportkit_open(&f.kit, "{type: widedeep, hidden: [16, 8]}", NULL);
    exportkit_train(&f.kit);
    f.out = exportkit_export(&f.kit);
    f.trainer = exportkit_trainer_logits(&f.kit, &f.n);
    fail_if(tnet_open(f.out.path, TNET_VERIFY_FULL, &f.model, &err) != TNET_OK ||
                tnet_scorer_new(f.model, &f.scorer, &err) != TNET_OK,
            "%s", err.text);
}

GROUP_TEAR_DOWN
{
    tnet_scorer_free(f.scorer);
    tnet_close(f.model);
    tn_free(f.trainer);
    exportkit_close(&f.kit);
}

static void good(int code, const tnet_error *err)
{
    fail_if(code != TNET_OK, "%d: %s", code, err->text);
}

static void near(float a, float b)
{
    assert_true(fabsf(a - b) <= 1e-6F * fmaxf(1, fabsf(b)));
}

/* A row made by hand: every way to say a value. */
TEST(a_row_scores_as_in_training)
{
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

TEST(s1_every_edge_row_scores_alone_and_together)
{
    float logit[16];
    float one;
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

TEST(a_warm_scorer_allocates_nothing)
{
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

TEST(many_values_grow_the_row)
{
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

TEST(wrong_calls_say_why)
{
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

/* ---- every function, called wrongly ---- */

/* A refusal with a sentence; the same without a place for it. */
static void refused(int code, int want, tnet_error *err)
{
    assert_int_equal(code, want);
    assert_int_equal(err->code, want);
    size_t size = strlen(err->text);
    assert_true(size > 5 && err->text[size - 1] != '.' && err->text[size - 1] != '\n');
    *err = (tnet_error){0};
}

static void wrong_of_whole(void)
{
    assert_int_equal(tnet_abi(), TNET_ABI);
    assert_string_equal(tnet_version(), TN_VERSION);
}

static void wrong_open(void)
{
    tnet_error err = {0};
    tnet_model *m = f.model;
    refused(tnet_open(NULL, TNET_VERIFY_FULL, &m, &err), TNET_E_USAGE, &err);
    assert_null(m);
    refused(tnet_open(f.out.path, TNET_VERIFY_FULL, NULL, &err), TNET_E_USAGE, &err);
    refused(tnet_open(f.out.path, -1, &m, &err), TNET_E_USAGE, &err);
    refused(tnet_open(f.out.path, 2 * TNET_HALF_WEIGHTS, &m, &err), TNET_E_USAGE, &err);
    refused(tnet_open(f.out.path, 3 | TNET_HALF_WEIGHTS, &m, &err), TNET_E_USAGE, &err);
    refused(tnet_open("", TNET_VERIFY_FULL, &m, &err), TNET_E_EXPORT, &err);
    assert_int_equal(tnet_open(NULL, TNET_VERIFY_FULL, NULL, NULL), TNET_E_USAGE);
    char *lengthy FREED(tn_free) = tn_alloc(1, 1 << 20, "a path");
    memset(lengthy, 'a', (1 << 20) - 1);
    refused(tnet_open(lengthy, TNET_VERIFY_FULL, &m, &err), TNET_E_LIMIT, &err);
}

static void wrong_model(void)
{
    tnet_close(NULL);
    assert_null(tnet_model_id(NULL));
    assert_int_equal(tnet_rows(NULL), 0);
    assert_int_equal(tnet_n_fields(NULL), 0);
}

static void wrong_field(void)
{
    int n = tnet_n_fields(f.model);
    const int none[] = {-1, n, INT_MAX, INT_MIN};
    assert_int_equal(tnet_field(NULL, "user"), -1);
    assert_int_equal(tnet_field(f.model, NULL), -1);
    assert_int_equal(tnet_field(f.model, ""), -1);
    assert_null(tnet_field_name(NULL, 0));
    assert_false(tnet_field_is_number(NULL, 0));
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        tnet_error err = {0};
        assert_null(tnet_field_name(f.model, none[i]));
        assert_false(tnet_field_is_number(f.model, none[i]));
        good(tnet_begin_row(f.scorer, &err), &err);
        refused(tnet_add_id(f.scorer, none[i], 1, 1, &err), TNET_E_USAGE, &err);
        refused(tnet_add_text(f.scorer, none[i], "1", 1, 1, &err), TNET_E_USAGE, &err);
        refused(tnet_add_number(f.scorer, none[i], 1, &err), TNET_E_USAGE, &err);
        tnet_drop_row(f.scorer);
    }
}

static void wrong_scorer(void)
{
    tnet_error err = {0};
    tnet_scorer *s = f.scorer;
    refused(tnet_scorer_new(NULL, &s, &err), TNET_E_USAGE, &err);
    assert_null(s);
    refused(tnet_scorer_new(f.model, NULL, &err), TNET_E_USAGE, &err);
    tnet_scorer_free(NULL);
    tnet_clear(NULL);
    tnet_drop_row(NULL);
    assert_int_equal(tnet_row_count(NULL), 0);
    tnet_clear(f.scorer);
    tnet_clear(f.scorer);
    tnet_drop_row(f.scorer); /* none is open */
    assert_int_equal(tnet_row_count(f.scorer), 0);
}

/* Calls that a row must be open for, or may not. */
static int begin_row(tnet_scorer *s, tnet_error *err)
{
    return tnet_begin_row(s, err);
}

static int end_row(tnet_scorer *s, tnet_error *err)
{
    return tnet_end_row(s, err);
}

static int add_id(tnet_scorer *s, tnet_error *err)
{
    return tnet_add_id(s, tnet_field(f.model, "user"), 1, 1, err);
}

static int add_text(tnet_scorer *s, tnet_error *err)
{
    return tnet_add_text(s, tnet_field(f.model, "item"), "a1", 2, 1, err);
}

static int add_number(tnet_scorer *s, tnet_error *err)
{
    return tnet_add_number(s, tnet_field(f.model, "price"), 1, err);
}

static int score(tnet_scorer *s, tnet_error *err)
{
    float logit[16];
    return tnet_score(s, logit, NULL, err);
}

static int begin_shared(tnet_scorer *s, tnet_error *err)
{
    return tnet_begin_shared(s, err);
}

static int score_many(tnet_scorer *s, tnet_error *err)
{
    float logit[16];
    return tnet_score_many(s, logit, NULL, err);
}

static void wrong_order(void)
{
    static const struct {
        int (*call)(tnet_scorer *s, tnet_error *err);
        bool when_open;
    } calls[] = {{begin_row, false}, {score, false},   {score_many, false}, {end_row, true},
                 {add_id, true},     {add_text, true}, {add_number, true}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tnet_error err = {0};
        refused(calls[i].call(NULL, &err), TNET_E_USAGE, &err);
        assert_int_equal(calls[i].call(NULL, NULL), TNET_E_USAGE);
        if (!calls[i].when_open) {
            good(tnet_begin_row(f.scorer, &err), &err);
        }
        for (uint32_t again = 0; again < 2; again++) { /* a refusal changes nothing */
            refused(calls[i].call(f.scorer, &err), TNET_E_USAGE, &err);
        }
        if (calls[i].when_open) {
            good(tnet_begin_row(f.scorer, &err), &err);
        } else {
            good(tnet_end_row(f.scorer, &err), &err);
            assert_int_equal(tnet_row_count(f.scorer), 1);
        }
        good(calls[i].call(f.scorer, &err), &err);
        tnet_clear(f.scorer); /* an open row, too */
        assert_int_equal(tnet_row_count(f.scorer), 0);
    }
}

static void wrong_shared(void)
{
    tnet_error err = {0};
    refused(begin_shared(NULL, &err), TNET_E_USAGE, &err);
    assert_int_equal(begin_shared(NULL, NULL), TNET_E_USAGE);
    for (uint32_t rows = 0; rows < 2; rows++) { /* beside an open row, and behind it */
        good(rows == 0 ? tnet_begin_row(f.scorer, &err) : tnet_end_row(f.scorer, &err), &err);
        refused(begin_shared(f.scorer, &err), TNET_E_USAGE, &err);
    }
    tnet_clear(f.scorer);
}

static void wrong_values(void)
{
    tnet_error err = {0};
    tnet_scorer *s = f.scorer;
    int user = tnet_field(f.model, "user");
    int item = tnet_field(f.model, "item");
    int count = tnet_field(f.model, "count");
    float logit[2];
    good(tnet_begin_row(s, &err), &err);
    refused(tnet_add_text(s, item, NULL, 0, 1, &err), TNET_E_USAGE, &err);
    refused(tnet_add_text(s, item, NULL, 2, 1, &err), TNET_E_USAGE, &err);
    refused(tnet_add_text(s, item, "a", SIZE_MAX, 1, &err), TNET_E_LIMIT, &err);
    refused(tnet_add_text(s, user, "", 0, 1, &err), TNET_E_DATA, &err);
    refused(tnet_add_text(s, user, "1", 1, NAN, &err), TNET_E_DATA, &err);
    refused(tnet_add_id(s, count, 1, 1, &err), TNET_E_USAGE, &err);
    refused(tnet_add_number(s, user, 1, &err), TNET_E_USAGE, &err);
    good(tnet_add_text(s, item, "", 0, 1, &err), &err);
    for (int field = 0; field < tnet_n_fields(f.model); field++) { /* one number for each .. */
        if (tnet_field_is_number(f.model, field)) {
            good(tnet_add_number(s, field, 1, &err), &err);
            refused(tnet_add_number(s, field, 1, &err), TNET_E_DATA, &err);
        }
    }
    good(tnet_end_row(s, &err), &err);
    good(tnet_begin_row(s, &err), &err);
    good(tnet_add_number(s, count, 1, &err), &err); /* .. and row */
    good(tnet_end_row(s, &err), &err);
    good(tnet_score(s, NULL, NULL, &err), &err);
    good(tnet_score(s, logit, NULL, &err), &err);
    good(tnet_score(s, NULL, logit, &err), &err);
    tnet_clear(s);
}

/* test_tnet_arrow.c has the rest. */
static void wrong_arrow(void)
{
    tnet_error err = {0};
    refused(tnet_score_arrow(f.scorer, NULL, NULL, NULL, NULL, &err), TNET_E_USAGE, &err);
    refused(tnet_score_arrow(NULL, NULL, NULL, NULL, NULL, &err), TNET_E_USAGE, &err);
}

/* Of a model of one label; test_tnet_tasks.c has the rest. */
static void wrong_tasks(void)
{
    tnet_error err = {0};
    float logit[2];
    float *const one[1] = {logit};
    assert_int_equal(tnet_n_tasks(NULL), 0);
    assert_int_equal(tnet_task(NULL, "click"), -1);
    assert_int_equal(tnet_task(f.model, NULL), -1);
    assert_null(tnet_task_name(NULL, 0));
    assert_null(tnet_task_name(f.model, -1));
    refused(tnet_score_task(NULL, 0, logit, NULL, &err), TNET_E_USAGE, &err);
    refused(tnet_score_task(f.scorer, 1, logit, NULL, &err), TNET_E_USAGE, &err);
    refused(tnet_score_task(f.scorer, -1, logit, NULL, &err), TNET_E_USAGE, &err);
    refused(tnet_score_given(f.scorer, 0, logit, NULL, &err), TNET_E_USAGE, &err);
    refused(tnet_score_tasks(NULL, one, one, &err), TNET_E_USAGE, &err);
    refused(tnet_score_tasks(f.scorer, NULL, one, &err), TNET_E_USAGE, &err);
    good(tnet_begin_row(f.scorer, &err), &err);
    refused(tnet_score_task(f.scorer, 0, logit, NULL, &err), TNET_E_USAGE, &err);
    refused(tnet_score_tasks(f.scorer, one, one, &err), TNET_E_USAGE, &err);
    tnet_clear(f.scorer);
}

static const struct {
    const char *name;
    void (*wrong)(void);
} functions[] = {
    {"tnet_abi", wrong_of_whole},      {"tnet_version", wrong_of_whole},
    {"tnet_open", wrong_open},         {"tnet_close", wrong_model},
    {"tnet_model_id", wrong_model},    {"tnet_rows", wrong_model},
    {"tnet_n_fields", wrong_model},    {"tnet_field", wrong_field},
    {"tnet_field_name", wrong_field},  {"tnet_field_is_number", wrong_field},
    {"tnet_scorer_new", wrong_scorer}, {"tnet_scorer_free", wrong_scorer},
    {"tnet_clear", wrong_scorer},      {"tnet_drop_row", wrong_scorer},
    {"tnet_row_count", wrong_scorer},  {"tnet_begin_row", wrong_order},
    {"tnet_end_row", wrong_order},     {"tnet_add_id", wrong_order},
    {"tnet_add_text", wrong_values},   {"tnet_add_number", wrong_values},
    {"tnet_score", wrong_order},       {"tnet_begin_shared", wrong_shared},
    {"tnet_score_many", wrong_order},  {"tnet_score_arrow", wrong_arrow},
    {"tnet_n_tasks", wrong_tasks},     {"tnet_task", wrong_tasks},
    {"tnet_task_name", wrong_tasks},   {"tnet_score_task", wrong_tasks},
    {"tnet_score_tasks", wrong_tasks}, {"tnet_score_given", wrong_tasks},
};

enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

TEST(every_function_refuses_wrong_calls)
{
    for (size_t i = 0; i < N_FUNCTIONS; i++) {
        functions[i].wrong();
    }
}

/* A function that is new in the header has no wrong calls above. */
TEST(the_header_has_no_other_function)
{
    static const char mark[] = "\nTNET_API ";
    tn_text header CLEANUP(tn_text_done) = {0};
    uint32_t found = 0;
    assert_int_equal(tn_file_read_all("src/serve/tnet.h", 1 << 20, &header, NULL), TN_OK);
    for (const char *at = header.data; (at = strstr(at, mark)) != NULL; found++) {
        at += sizeof mark - 1;
        const char *name = strstr(at, "tnet_");
        const size_t before_name = strcspn(at, "(");
        while (name != NULL && name[strcspn(name, " (*")] != '(') {
            name = strstr(name + 1, "tnet_"); /* past the type of what it returns */
        }
        if (name == NULL || name > at + before_name) {
            fail_msg("no name in '%.*s'", (int)before_name, at);
            return;
        }
        size_t i = 0;
        size_t size = strcspn(name, "(");
        while (i < N_FUNCTIONS &&
               (strncmp(functions[i].name, name, size) != 0 || functions[i].name[size] != '\0')) {
            i++;
        }
        fail_if(i == N_FUNCTIONS, "no wrong calls of '%.*s'", (int)size, name);
    }
    assert_int_equal(found, N_FUNCTIONS);
}

/* ---- no memory ---- */

/* Two rows that share a list. */
static int share(tnet_scorer *s, const tnet_model *model, float *click, tnet_error *err)
{
    tnet_clear(s);
    int code = tnet_begin_shared(s, err);
    for (uint64_t i = 0; i < 1500 && code == TNET_OK; i++) {
        code = tnet_add_id(s, tnet_field(model, "user"), i % 5, 1, err);
    }
    code = code == TNET_OK ? tnet_end_row(s, err) : code;
    for (uint32_t row = 0; row < 2 && code == TNET_OK; row++) {
        code = tnet_begin_row(s, err);
        code = code == TNET_OK ? tnet_end_row(s, err) : code;
    }
    return code == TNET_OK ? tnet_score_many(s, NULL, click, err) : code;
}

/* The whole life of a model; the first failure ends it, and what is there is closed. */
static int live(const char *path, float *click)
{
    tnet_error err = {0};
    tnet_model *model = NULL;
    tnet_scorer *s = NULL;
    int code = tnet_open(path, TNET_VERIFY_LAZY | TNET_HALF_WEIGHTS, &model, &err);
    assert_true((code == TNET_OK) == (model != NULL));
    if (code == TNET_OK) {
        code = tnet_scorer_new(model, &s, &err);
        assert_true((code == TNET_OK) == (s != NULL));
    }
    for (uint32_t row = 0; row < 2 && code == TNET_OK; row++) {
        code = tnet_begin_row(s, &err);
        for (uint64_t i = 0; i < 1500 && code == TNET_OK; i++) {
            code = tnet_add_id(s, tnet_field(model, "user"), i % 5, 1, &err);
        }
        for (uint64_t i = 0; i < 30 && code == TNET_OK; i++) {
            code = tnet_add_text(s, tnet_field(model, "hist"), "a1", 2, 1, &err);
        }
        code = code == TNET_OK ? tnet_add_number(s, tnet_field(model, "price"), 9.5, &err) : code;
        code = code == TNET_OK ? tnet_end_row(s, &err) : code;
    }
    code = code == TNET_OK ? tnet_score(s, NULL, click, &err) : code;
    code = code == TNET_OK ? share(s, model, click + 2, &err) : code;
    if (code != TNET_OK) {
        assert_int_equal(err.code, code);
        assert_non_null(strstr(err.text, "memory"));
    }
    tnet_scorer_free(s);
    tnet_close(model);
    return code;
}

/* The nth allocation fails, n = 1, 2, .. until none does: malloc's own, whoever calls it. */
static void fail_each_in_turn(const char *path)
{
    float click[4];
    float again[4];
    assert_int_equal(live(path, click), TNET_OK);
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        const int64_t before = tn_mallocs_live();
        (void)tn_mallocs_fail_at(n);
        int code = live(path, again);
        failed = tn_mallocs_fail_at(0) == 0;
        fail_if(tn_mallocs_live() != before, "allocation %d: %d blocks are left", (int)n,
                (int)(tn_mallocs_live() - before));
        if (code != TNET_OK || !failed) {
            assert_int_equal(code, failed ? TNET_E_MEMORY : TNET_OK);
        }
        assert_int_equal(live(path, again), TNET_OK);
        assert_memory_equal(again, click, sizeof click);
    }
    assert_true(n > 60);
}

TEST(every_allocation_may_fail)
{
#if defined(TN_SANITIZED)
    skip(); /* they define malloc themselves */
#endif
    PATH_IN(told, f.kit.dir, "told");
    (void)fflush(NULL);
    int screen[2] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    int fd = open(told, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(screen[0] >= 0 && screen[1] >= 0 && fd >= 0);
    assert_true(dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    fail_each_in_turn(f.out.path);
    assert_int_equal(tn_failpoint_set("nn.no_kernels:error", NULL), TN_OK); /* an old processor */
    fail_each_in_turn(f.out.path);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    (void)fflush(NULL);
    assert_true(dup2(screen[0], STDOUT_FILENO) >= 0 && dup2(screen[1], STDERR_FILENO) >= 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0); /* nothing was printed */
    assert_true(close(fd) == 0 && close(screen[0]) == 0 && close(screen[1]) == 0);
}

/* The call, and once more when there was no memory. */
static void insist(int (*call)(tnet_scorer *s, tnet_error *err), tnet_scorer *s)
{
    tnet_error err = {0};
    int code = call(s, &err);
    good(code == TNET_E_MEMORY ? call(s, &err) : code, &err);
}

TEST(a_failed_call_may_be_tried_again)
{
#if defined(TN_SANITIZED)
    skip(); /* they define malloc themselves */
#endif
    tnet_error err = {0};
    float first = NAN;
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        tnet_scorer *s = NULL;
        float clicks[2];
        good(tnet_scorer_new(f.model, &s, &err), &err);
        (void)tn_mallocs_fail_at(n);
        for (uint32_t row = 0; row < 2; row++) {
            insist(begin_row, s);
            for (uint32_t i = 0; i < 1500; i++) {
                insist(add_id, s);
            }
            insist(add_text, s);
            insist(add_number, s);
            insist(end_row, s);
        }
        insist(score, s);
        failed = tn_mallocs_fail_at(0) == 0;
        assert_int_equal(tnet_row_count(s), 2);
        good(tnet_score(s, NULL, clicks, &err), &err);
        first = n == 1 ? clicks[0] : first;
        assert_memory_equal(&clicks[0], &first, sizeof first);
        assert_memory_equal(&clicks[1], &first, sizeof first);
        tnet_scorer_free(s);
    }
}

/* Neither do programs, where the processor has AVX2: nothing that is loaded starts any. */
TEST(a_scorer_starts_no_thread)
{
#if defined(TN_SANITIZED)
    skip(); /* they start some themselves */
#endif
    float click[4];
    uint32_t n = 0;
    assert_int_equal(live(f.out.path, click), TNET_OK);
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *e; (e = readdir(tasks)) != NULL;) { // NOLINT(concurrency-mt-unsafe)
        n += e->d_name[0] != '.';
    }
    assert_int_equal(closedir(tasks), 0);
    if (tn_kernels_find() == NULL) {
        skip(); /* the run of the fixture has loaded OpenBLAS */
    }
    assert_int_equal(n, 1);
}

/* Scores of an old processor are those of the trainer, too. */
TEST(a_processor_without_kernels_scores_alike)
{
    tnet_error err;
    tn_error why = {0};
    tnet_scorer *s = NULL;
    float logit[16];
    assert_int_equal(tn_failpoint_set("nn.no_kernels:error", &why), TN_OK);
    good(tnet_scorer_new(f.model, &s, &err), &err);
    assert_int_equal(tn_failpoint_set(NULL, &why), TN_OK);
    for (size_t i = 0; exportkit_edge_lines[i] != NULL; i++) {
        add_line(s, f.model, exportkit_edge_lines[i]);
    }
    good(tnet_score(s, logit, NULL, &err), &err);
    for (size_t i = 0; i < tnet_row_count(s); i++) {
        near(logit[i], f.trainer[i]);
    }
    tnet_scorer_free(s);
}

static void same_bits(float a, float b)
{
    assert_memory_equal(&a, &b, sizeof a);
}

/* Weights of 16 bits: other scores, by no more than rounding makes, and the same whether a row is
 * alone, one of two, or one of many. */
TEST(half_weights_score_nearly_alike)
{
    tnet_error err;
    tnet_model *half = NULL;
    tnet_scorer *s = NULL;
    float logit[16];
    float two[2];
    float apart = 0;
    good(tnet_open(f.out.path, TNET_VERIFY_LAZY | TNET_HALF_WEIGHTS, &half, &err), &err);
    good(tnet_scorer_new(half, &s, &err), &err);
    size_t n = 0;
    for (; exportkit_edge_lines[n] != NULL; n++) {
        add_line(s, half, exportkit_edge_lines[n]);
    }
    assert_true(n > 2); /* more than go by words */
    good(tnet_score(s, logit, NULL, &err), &err);
    for (size_t i = 0; i < n; i++) {
        apart = fmaxf(apart, fabsf(logit[i] - f.trainer[i]) / fmaxf(1, fabsf(logit[i])));
        for (uint32_t rows = 1; rows <= 2; rows++) {
            tnet_clear(s);
            add_line(s, half, exportkit_edge_lines[i]);
            if (rows == 2) {
                add_line(s, half, exportkit_edge_lines[0]);
            }
            good(tnet_score(s, two, NULL, &err), &err);
            same_bits(two[0], logit[i]);
        }
        same_bits(two[1], logit[0]); /* of the pair */
    }
    assert_true(apart > 1e-6F && apart < .03F);
    tnet_scorer_free(s);
    tnet_close(half);
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

TEST(threads_share_a_model)
{
    enum { THREADS = 3 };
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
