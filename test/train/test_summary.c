/* test_summary.c - summary.json, byte by byte where the format fixes it.
 */
#include "train/report/summary.h"

#include "base/file/file.h"
#include "metrics/v21.h"
#include "support/test.h"
#include "support/tmpdir.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char reasons[] = "truncated record\0"
                              "2\0"
                              "bad \"label\"\0"
                              "1";

static tn_summary example(void)
{
    static const char *const warnings[] = {"no test data"};
    return (tn_summary){.status = "ok",
                        .run_id = 0x1234,
                        .config_hash = "00ff",
                        .started = 1738317600,
                        .seconds = 812.4,
                        .steps = 12000,
                        .samples = 49152000,
                        .epochs = 1,
                        .rows_per_s = 60500,
                        .step_predicted = (double)NAN,
                        .step_measured = 67.5,
                        .peers = 4,
                        .pulled_bytes = UINT64_C(9000000000),
                        .pushed_bytes = UINT64_C(8000000000),
                        .data = {.sources = 24,
                                 .bytes = UINT64_C(11260000000),
                                 .records = 49152000,
                                 .bad = 3,
                                 .bad_reasons = reasons,
                                 .bad_reasons_size = sizeof reasons},
                        .train_loss = .4498,
                        .dense_params = 423280,
                        .sparse_rows = 81234567,
                        .sparse_bytes = UINT64_C(7400000000),
                        .cpu = "cpu",
                        .blas = "own",
                        .cores = 4,
                        .peak_rss_bytes = 9,
                        .warnings = warnings,
                        .n_warnings = 1};
}

static void the_document_has_its_documented_form(void **state)
{
    (void)state;
    tn_summary s = example();
    tn_summary_best best = {"auc", .8071, 12000};
    s.best = &best;
    s.checkpoint = "ckpt-42";
    s.checkpoint_crc = 0xabc;
    tn_text t = {0};
    tn_summary_text(&s, &t);
    static const char want[] =
        "{\"format\":\"tnet-summary\",\"version\":[1,0],\"status\":\"ok\",\"exit_code\":0,"
        "\"run_id\":\"0000000000001234\",\"tnet\":\"" TN_VERSION "\",\"config_hash\":\"00ff\","
        "\"started\":1738317600,\"seconds\":812.4,\"steps\":12000,\"samples\":\"49152000\","
        "\"epochs\":1,\"rows_per_s\":60500,\"step_ms\":{\"predicted\":null,\"measured\":67.5},"
        "\"peers\":4,\"pulled_bytes\":\"9000000000\","
        "\"pushed_bytes\":\"8000000000\",\"data\":{\"sources\":24,\"bytes\":\"11260000000\","
        "\"records\":\"49152000\",\"blank\":0,\"bad\":{\"total\":3,\"by_reason\":{"
        "\"truncated record\":2,\"bad \\\"label\\\"\":1}},\"duplicate_key\":0,"
        "\"parts_reassigned\":0},\"train\":{\"loss\":0.4498},\"valid\":null,\"test\":null,"
        "\"best\":{\"name\":\"auc\",\"value\":0.8071,\"step\":12000},\"model\":{"
        "\"dense_params\":423280,\"sparse_rows\":\"81234567\",\"sparse_bytes\":\"7400000000\"},"
        "\"checkpoint\":{\"name\":\"ckpt-42\",\"crc32c\":\"00000abc\"},\"host\":{\"cpu\":\"cpu\","
        "\"cores\":4,\"blas\":\"own\",\"peak_rss_bytes\":\"9\"},\"warnings\":[\"no test data\"]}\n";
    assert_string_equal(tn_text_str(&t), want);
    tn_text_done(&t);
}

static void a_failed_run_says_why_and_results_are_shown_by_name(void **state)
{
    (void)state;
    v21 v;
    v21_init(&v);
    tn_summary s = example();
    static const char *const names[] = {"copc", "gauc", "ks"};
    s.status = "failed";
    s.exit_code = 4;
    s.error = "cannot open 'a'";
    s.train_loss = (double)NAN;
    tn_metrics *m = metrics_of(&(tn_metrics_opts){0}, &v.rows);
    s.valid = m;
    s.metrics = names;
    s.n_metrics = 3;
    char dir[256];
    char path[300];
    tn_tmpdir_make(dir);
    (void)snprintf(path, sizeof path, "%s/summary.json", dir);
    for (int time = 0; time < 2; time++) { /* the second replaces the first */
        assert_int_equal(tn_summary_write(&s, path, NULL), TN_OK);
    }
    tn_text t = {0};
    assert_int_equal(tn_file_read_all(path, 1 << 16, &t, NULL), TN_OK);
    assert_non_null(strstr(t.data, "\"exit_code\":4,\"error\":\"cannot open 'a'\","));
    assert_non_null(strstr(t.data, "\"train\":{\"loss\":null},\"valid\":{\"rows\":\"8\",\"auc\":"
                                   "0.78125,\"logloss\":0.5589"));
    assert_non_null(strstr(t.data, ",\"gauc\":null,\"ks\":0.5},\"test\":null"));
    tn_text_done(&t);
    tn_tmpdir_remove(dir);
    tn_error err = {0};
    assert_int_equal(tn_summary_write(&s, path, &err), TN_E_IO); /* the folder is gone */
    tn_metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_document_has_its_documented_form),
        cmocka_unit_test(a_failed_run_says_why_and_results_are_shown_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
