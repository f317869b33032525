/* test_text_tables.c - tables for people. */
#include "train/report/text_tables.h"

#include "metrics/v21.h"
#include "support/test.h"

TEST(numbers_have_as_many_digits_as_their_rows_tell)
{
    static const struct {
        uint64_t rows;
        double value;
        int decimals;
    } at[] = {
        {5000, .754612, 4}, {50000000, .754612, 5}, {5000, .0123456, 4}, {5000, -.00123456, 5},
        {5000, 1e-9, 8},    {5000, 0, 4},           {5000, 12.5, 4},
    };
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        assert_int_equal(tn_decimals(at[i].rows, at[i].value), at[i].decimals);
    }
}

TEST(columns_are_aligned)
{
    static const char *const cell[] = {"name", "count",     "note", "a",          "7",
                                       NULL,   "long name", "1234", "caf\xc3\xa9"};
    tn_text t = {0};
    tn_sheet sheet = {.cols = 3, .cell_max = 9};
    for (uint32_t i = 0; i < sizeof cell / sizeof cell[0]; i++) {
        tn_sheet_word(&sheet, cell[i]);
    }
    tn_sheet_end(&sheet, false, &t);
    assert_string_equal(tn_text_str(&t), "name       count  note\n"
                                         "a              7\n"
                                         "long name   1234  caf\xc3\xa9\n");
    tn_text_done(&t);
}

TEST(results_show_what_belongs_beside_a_metric)
{
    v21 v;
    v21_init(&v);
    for (uint32_t i = 0; i < V21_ROWS; i++) {
        v.logit[i] = (float)(int)(v.logit[i] + 8) - 8; /* whole logits: ties, so an error */
    }
    v.rows.group = v.group_last;
    tn_metrics *a = metrics_of(&(tn_metrics_opts){.grouped = true}, &v.rows);
    v.rows.group = NULL;
    v.rows.n = 1;
    tn_metrics *b = metrics_of(&(tn_metrics_opts){0}, &v.rows);
    const tn_strs names = {3, (const char *const[]){"auc", "gauc", "ctr"}};
    tn_text t = {0};
    tn_results_text((tn_result[]){{"valid", a}, {"test", b}}, 2, &names, &t);
    assert_string_equal(tn_text_str(&t), "metric           valid      test\n"
                                         "rows                 8         1\n"
                                         "auc           0.781250       n/a\n"
                                         "auc_error     0.093750       n/a\n"
                                         "gauc          0.625000       n/a\n"
                                         "gauc_skipped  0.250000       n/a\n"
                                         "ctr           0.500000  1.000000\n");
    tn_text_clear(&t);
    tn_results_text((tn_result[]){{"valid", b}, {"test", a}}, 2, &names, &t);
    assert_non_null(strstr(tn_text_str(&t), "auc_error          n/a  0.093750\n"));
    assert_non_null(strstr(tn_text_str(&t), "gauc_skipped       n/a  0.250000\n"));
    tn_text_done(&t);
    tn_metrics_free(a);
    tn_metrics_free(b);
}
