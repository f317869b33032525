/* test_metrics_golden.c - metrics of the golden models' predictions, against the oracle's
 * (test/golden/README.md: PyTorch in float64). */
#include "metrics/v21.h"
#include "support/test.h"

CLOSER(tn_metrics_free);

enum { ROWS = 256, EPOCHS = 4, COLUMNS = 9, LINE_SIZE = 1024 };

static const char *const cases[] = {"lr",     "fm",        "widedeep", "widedeep_concat",
                                    "deepfm", "deepfm_bn", "dcn",      "dcnv2"};

TMPDIR_UNPACKED(models, "models");

/* Reads lines of tab-separated numbers behind the line of names; `skip` columns hold text. */
static size_t read_table(const char *name, const char *file, size_t skip, size_t cols, double *out)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/%s/%s", models, name, file);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char line[LINE_SIZE];
    size_t n = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        if (line[0] == '#') {
            continue;
        }
        char *at = line;
        for (size_t i = 0; i < skip; i++) {
            at = strchr(at, '\t') + 1;
        }
        for (size_t c = 0; c < cols; c++) {
            out[n * cols + c] = strtod(at, &at);
        }
        n++;
    }
    (void)fclose(f);
    return n;
}

/* A logit is rounded to a float: the sums move by less than a tenth of tolerance.tsv; of
 * AUC only the weights are rounded, to 2^-24.
 */
static void assert_near(double got, double want, const char *name, const char *what)
{
    const double tolerance = strncmp(what, "auc", 3) == 0 ? 1e-9 : 4e-8;
    fail_if(!(fabs(got - want) <= tolerance * fmax(1, fabs(want))), "%s %s: got %.12g, want %.12g",
            name, what, got, want);
}

static void check_epoch(const char *name, const tn_scored *weighted, const double *want)
{
    tn_scored plain = *weighted;
    plain.weight = NULL;
    tn_metrics_opts exact = {.exact_auc = true};
    tn_metrics *m FREED(tn_metrics_free) = metrics_of(&exact, &plain);
    tn_metrics *w FREED(tn_metrics_free) = metrics_of(&exact, weighted);
    tn_metrics *histogram FREED(tn_metrics_free) = metrics_of(&(tn_metrics_opts){0}, weighted);
    assert_near(tn_metrics_get(m, "auc"), want[1], name, "auc");
    assert_near(tn_metrics_get(w, "auc"), want[2], name, "auc_w");
    assert_near(tn_metrics_get(histogram, "auc"), want[3], name, "auc_hist_w");
    assert_near(tn_metrics_get(histogram, "auc_error"), want[4], name, "auc_hist_e");
    assert_near(tn_metrics_get(m, "logloss"), want[5], name, "logloss");
    assert_near(tn_metrics_get(histogram, "logloss"), want[6], name, "logloss_w");
    assert_near(tn_metrics_get(m, "copc"), want[7], name, "copc");
    assert_near(tn_metrics_get(histogram, "copc"), want[8], name, "copc_w");
}

TEST(golden_metrics_of_all_cases)
{
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        double want[EPOCHS * COLUMNS];
        double pred[ROWS * (EPOCHS + 2)] = {0};
        assert_int_equal(read_table(cases[c], "metrics.tsv", 0, COLUMNS, want), EPOCHS);
        assert_int_equal(read_table(cases[c], "pred.tsv", 1, EPOCHS + 2, pred), ROWS);
        float z[ROWS];
        float y[ROWS];
        float w[ROWS];
        for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
            for (uint32_t i = 0; i < ROWS; i++) {
                const double *row = pred + (size_t)i * (EPOCHS + 2);
                y[i] = (float)row[0];
                w[i] = (float)row[1];
                z[i] = (float)row[2 + epoch];
            }
            tn_scored rows = {.n = ROWS, .logit = z, .label = y, .weight = w};
            check_epoch(cases[c], &rows, want + (size_t)epoch * COLUMNS);
        }
    }
}
