/* test_text_tables.c - tables for people. */
#include "train/report/text_tables.h"

#include "base/codec/json.h"
#include "metrics/v21.h"
#include "support/test.h"

TEST(columns_are_aligned)
{
    static const char *const cell[] = {"name", "count",     "note", "a",          "7",
                                       NULL,   "long name", "1234", "caf\xc3\xa9"};
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_sheet sheet = {.cols = 3, .cell_max = 9};
    for (uint32_t i = 0; i < sizeof cell / sizeof cell[0]; i++) {
        tn_sheet_word(&sheet, cell[i]);
    }
    tn_sheet_end(&sheet, NULL, &t);
    assert_string_equal(tn_text_str(&t), "name       count  note\n"
                                         "a              7\n"
                                         "long name   1234  caf\xc3\xa9\n");
}

TEST(a_table_is_json_too)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_sheet sheet = {.cols = 3, .cell_max = TN_CELL_MAX, .full = true};
    tn_json_open(&t, '{');
    for (uint32_t row = 0; row < 3; row++) {
        tn_sheet_word(&sheet, row == 0 ? "id" : "7");
        tn_sheet_word(&sheet, row == 0 ? "note" : row == 1 ? "x\"y" : "12");
        row == 0   ? tn_sheet_word(&sheet, "auc")
        : row == 1 ? tn_sheet_metric(&sheet, 0.123456789)
                   : tn_sheet_metric(&sheet, (double)NAN);
    }
    tn_sheet_end(&sheet, "it", &t);
    tn_json_close(&t, '}');
    assert_string_equal(tn_text_str(&t), "{\"it\":{\"columns\":[\"id\",\"note\",\"auc\"],\"rows\":["
                                         "[\"7\",\"x\\\"y\",0.123456789],[\"7\",\"12\",null]]}}");
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
    tn_text t CLEANUP(tn_text_done) = {0};
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
    tn_metrics_free(a);
    tn_metrics_free(b);
}
