/* test_compare.c - another model's scores meet those of an evaluation row by row, or are refused.
 */
#include "extra/compare/compare.h"

#include "base/math/fmath.h"
#include "base/math/key.h"
#include "io/rows/batch.h"
#include "support/test.h"
#include "train/report/eval_result.h"
#include "train/resultkit.h"

enum { ROWS = 8 };

extern const tn_compare_kind tn_compare_kind_compare;

/* Eight rows as one batch, whose slot holds 7 in the first five and 9 in the last three. */
typedef struct pairkit {
    resultkit k;
    float logit[ROWS], label[ROWS], other[ROWS], weight[ROWS];
    uint32_t offset[ROWS + 1];
    uint64_t key[ROWS];
    tn_slot slot;
    tn_batch batch;
    tn_compare *c;
    tn_error err;
} pairkit;

static void pairkit_make(pairkit *p)
{
    static const float logit[ROWS] = {-3, -2, -1, 0, -2.5F, -1.5F, 0.5F, 1};
    static const float label[ROWS] = {0, 0, 1, 0, 0, 0, 1, 1};
    memset(p, 0, sizeof *p);
    resultkit_make(&p->k, true, "item");
    for (uint32_t i = 0; i < ROWS; i++) {
        p->logit[i] = logit[i];
        p->label[i] = label[i];
        p->weight[i] = 1;
        p->other[i] = logit[i] - (i < 5 ? 0.5F : 0);
        p->offset[i + 1] = i + 1;
        p->key[i] = tn_key_of(i < 5 ? 7 : 9, 0);
    }
    p->slot = (tn_slot){.offset = p->offset, .key = p->key};
    p->batch = (tn_batch){
        .rows = ROWS, .n_slots = 1, .label = p->label, .weight = p->weight, .slot = &p->slot};
    assert_int_equal(tn_compare_open(&p->c, "b", &p->err), TN_OK);
}

static void pairkit_done(pairkit *p)
{
    tn_compare_free(p->c);
    resultkit_done(&p->k);
}

static tn_status meet(pairkit *p)
{
    const tn_scores scores = {.batch = &p->batch, .logit = p->logit};
    TN_TRY(tn_compare_begin(p->c, &p->k.run, &p->k.schema, &p->err));
    TN_TRY(tn_compare_add(p->c, &scores, 0, &p->err));
    return tn_compare_end(p->c, &p->k.evaluation, &p->err);
}

static tn_status take(pairkit *p, uint32_t rows, double shift)
{
    tn_batch batch = p->batch;
    batch.rows = rows;
    return tn_compare_add(p->c, &(tn_scores){.batch = &batch, .logit = p->other}, shift, &p->err);
}

static double loss(double z, double y)
{
    return tn_log1p_exp(z) - y * z;
}

TEST(the_change_of_a_slice_is_the_mean_over_its_rows)
{
    pairkit p;
    tn_slice slice[4];
    uint32_t n = 0;
    pairkit_make(&p);
    assert_int_equal(take(&p, ROWS, 0), TN_OK);
    assert_int_equal(meet(&p), TN_OK);
    double sum = 0;
    double squares = 0;
    for (uint32_t i = 0; i < 5; i++) {
        const double d = loss((double)p.logit[i], (double)p.label[i]) -
                         loss((double)p.other[i], (double)p.label[i]);
        sum += d;
        squares += d * d;
    }
    assert_int_equal(tn_slices_report(p.c->change.slices[0], slice, &n, &p.err), TN_OK);
    assert_int_equal(n, 2);
    const tn_interval i = tn_compare_change(slice[0].metrics);
    assert_true(fabs(i.value - sum / 5) < 1e-6);
    assert_true(fabs(i.variance - (squares / 5 - sum * sum / 25) / 4) < 1e-6);
    const tn_interval same = tn_compare_change(slice[1].metrics);
    assert_true(same.value == 0 && same.low == 0 && same.high == 0);
    assert_true(fabs(p.c->logloss.value - sum / ROWS) < 1e-6);
    pairkit_done(&p);
}

TEST(both_sides_are_corrected_for_sampled_negatives)
{
    pairkit p;
    pairkit_make(&p);
    memcpy(p.other, p.logit, sizeof p.other);
    const tn_scores scores = {.batch = &p.batch, .logit = p.logit};
    assert_int_equal(take(&p, ROWS, -1), TN_OK);
    assert_int_equal(tn_compare_begin(p.c, &p.k.run, &p.k.schema, &p.err), TN_OK);
    assert_int_equal(tn_compare_add(p.c, &scores, -1, &p.err), TN_OK);
    assert_int_equal(tn_compare_end(p.c, &p.k.evaluation, &p.err), TN_OK);
    assert_true(p.c->logloss.value == 0 && p.c->auc.value == 0 && p.c->p == 1);
    assert_true(tn_metrics_get(p.c->other.metrics, "pctr") <
                tn_metrics_get(p.k.evaluation.metrics, "pctr"));
    pairkit_done(&p);
}

TEST(rows_of_weight_0_change_nothing)
{
    pairkit p;
    pairkit_make(&p);
    for (uint32_t i = 5; i < ROWS; i++) {
        p.weight[i] = 0;
    }
    p.other[6] = -9;
    assert_int_equal(take(&p, ROWS, 0), TN_OK);
    const tn_scores scores = {.batch = &p.batch, .logit = p.logit};
    assert_int_equal(tn_compare_begin(p.c, &p.k.run, &p.k.schema, &p.err), TN_OK);
    assert_int_equal(tn_compare_add(p.c, &scores, 0, &p.err), TN_OK);
    tn_metrics *m = NULL; /* metrics of the five rows that count */
    const tn_scored rows = {.n = 5, .logit = p.logit, .label = p.label};
    assert_int_equal(tn_metrics_new(&m, &(tn_metrics_opts){.exact_auc = true}, NULL), TN_OK);
    assert_int_equal(tn_metrics_add(m, &rows, NULL), TN_OK);
    assert_int_equal(tn_compare_end(p.c, &(tn_evaluation){.metrics = m}, &p.err), TN_OK);
    assert_true(fabs(p.c->logloss.value) < 0.3);
    tn_metrics_free(m);
    pairkit_done(&p);
}

TEST(other_rows_are_refused)
{
    static const char *const said[] = {"fewer than", "has 9 rows, the data", "row 3 has label 0"};
    for (int i = 0; i < 3; i++) {
        pairkit p;
        pairkit_make(&p);
        p.label[2] = i == 2 ? 0 : 1;
        assert_int_equal(take(&p, i == 0 ? ROWS - 1 : ROWS, 0), TN_OK);
        p.label[2] = 1;
        assert_int_equal(i == 1 ? take(&p, 1, 0) : TN_OK, TN_OK);
        assert_int_equal(meet(&p), TN_E_DATA);
        assert_non_null(strstr(p.err.text, said[i]));
        pairkit_done(&p);
    }
}

TEST(predictions_are_read_or_refused)
{
    static const char head[] = "id\tlabel\tweight\tlogit\tpctr\n";
    static const struct {
        const char *lines;
        tn_status status;
    } of[] = {{"1\t0\t1\t-2\t.1\n2\t1\t1\t3\t.9", TN_OK},
              {"1\t0\t1\t-2\t.1\tgroup\n", TN_OK},
              {"1\t0\t1\t-2\n", TN_E_DATA},
              {"1\t\t1\t-2\t.1\n", TN_E_DATA},
              {"1\t0\t1\tnan\t.1\n", TN_E_DATA},
              {"\n", TN_E_DATA}};
    TMPDIR(dir);
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        pairkit p;
        char path[TN_PATH_SIZE];
        tn_text text CLEANUP(tn_text_done) = {0};
        pairkit_make(&p);
        tn_text_addf(&text, "%s%s", head, of[i].lines);
        (void)snprintf(path, sizeof path, "%s/%zu.tsv", dir, i);
        assert_int_equal(tn_file_replace(path, text.data, text.size, &p.err), TN_OK);
        assert_int_equal(tn_compare_read(p.c, path, &p.err), of[i].status);
        pairkit_done(&p);
    }
}

TEST(only_values_that_moved_are_told_the_largest_change_first)
{
    pairkit p;
    tn_text text CLEANUP(tn_text_done) = {0};
    pairkit_make(&p);
    for (uint32_t i = 0; i < 5; i++) { /* the same change in each row: no noise at all */
        p.label[i] = 0;
        p.logit[i] = -1;
        p.other[i] = -2;
    }
    assert_int_equal(take(&p, ROWS, 0), TN_OK);
    assert_int_equal(meet(&p), TN_OK);
    p.k.findings.compare = p.c;
    assert_int_equal(tn_compare_kind_compare.text(&p.k.findings, &text, &p.err), TN_OK);
    assert_non_null(strstr(tn_text_str(&text), "compared with 'b'\n"));
    assert_non_null(strstr(tn_text_str(&text), "item: 1 of 2 values moved in log loss"));
    assert_non_null(strstr(tn_text_str(&text), "\n   7     5"));
    assert_null(strstr(tn_text_str(&text), "\n   9     3"));
    tn_text_clear(&text);
    p.c->p = 0; /* a double makes this of 1e-400 */
    assert_int_equal(tn_compare_kind_compare.text(&p.k.findings, &text, &p.err), TN_OK);
    assert_non_null(strstr(tn_text_str(&text), " AUC: p below 1e-300 by DeLong's test"));
    pairkit_done(&p);
}
