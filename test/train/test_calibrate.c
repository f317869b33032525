/* test_calibrate.c - a calibration from the scores of a checkpoint to those of its export. */
#include "train/eval/calibrate.h"

#include "support/test.h"

#include "base/core/alloc.h"
#include "base/file/file.h"
#include "base/math/fmath.h"
#include "exportkit.h"
#include "serve/calibration_file.h"
#include "serve/tnet.h"
#include "train/checkpoint/checkpoint.h"
#include "train/step/worker.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static exportkit k;
static char run[300], path[300];
static const char *const overrides[] = {"data.negative_sampling=0.5", NULL};

static int set_up(void **state)
{
    (void)state;
    exportkit_open(&k, "{type: widedeep, hidden: [4]}", overrides);
    exportkit_train(&k);
    (void)snprintf(run, sizeof run, "%s/run", k.dir);
    (void)snprintf(path, sizeof path, "%s/calibration.json", k.dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    exportkit_close(&k);
    return 0;
}

/* Fits on the rows of edge.csv and writes the file; the test frees it. */
static tn_calibrate *fit(tn_calibrate_method method)
{
    tn_error err = {0};
    tn_worker *w = NULL;
    tn_calibrate *c = NULL;
    tn_saved which;
    tn_evaluation out = {0};
    char folder[400];
    const tn_calibrate_opts opts = {.method = method,
                                    .path = path,
                                    .data = &k.run.data.valid,
                                    .sampling = k.run.data.negative_sampling};
    assert_int_equal(tn_calibrate_open(&c, &opts, &err), TN_OK);
    const tn_eval_request request = {
        .paths = &k.run.data.valid, .sink = tn_calibrate_sink, .sink_arg = c};
    if (tn_worker_new(&w, k.plan, &(tn_worker_opts){.training = true}, &k.binder, &err) != TN_OK ||
        tn_checkpoint_load(run, w, &which, &err) != TN_OK ||
        tn_evaluate(w, &request, &out, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    (void)snprintf(folder, sizeof folder, "%s/%s", run, which.name);
    if (tn_calibrate_commit(c, folder, which.step, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(c->rows, tn_metrics_rows(out.metrics));
    tn_evaluation_done(&out);
    tn_worker_free(w);
    return c;
}

static tn_status export_to(const char *folder, const tn_model_plan *plan, tn_exported *out,
                           tn_error *err)
{
    char to[300];
    (void)snprintf(to, sizeof to, "%s/%s", k.dir, folder);
    const tn_export_request request = {
        .checkpoint = run, .to = to, .calibration = path, .binder = &k.binder};
    return tn_export(plan, &request, out, err);
}

/* The kit compares the probabilities of the scorer with its logits. */
static void an_export_scores_through_its_calibration(void **state)
{
    static const tn_calibrate_method methods[] = {TN_CALIBRATE_PLATT, TN_CALIBRATE_PLATT_SMOOTHED,
                                                  TN_CALIBRATE_ISOTONIC};
    static const char *const folders[] = {"platt", "smoothed", "isotonic"};
    (void)state;
    for (uint32_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        tn_error err = {0};
        tn_exported out;
        uint32_t n[2];
        tn_calibrate *c = fit(methods[i]);
        if (export_to(folders[i], k.plan, &out, &err) != TN_OK) {
            fail_msg("%s", err.text);
        }
        float *plain = exportkit_trainer_logits(&k, &n[0]);
        float *served = exportkit_scorer_logits(&k, out.path, &n[1]);
        assert_int_equal(n[0], n[1]);
        for (uint32_t r = 0; r < n[0]; r++) {
            double p = tn_sigmoid(tn_calibration_logit(&c->map, (double)plain[r]));
            assert_true(fabs(p - tn_sigmoid((double)served[r])) < 1e-5);
        }
        tn_free(plain);
        tn_free(served);
        tn_calibrate_free(c);
    }
}

static void platt_keeps_the_clicks_of_the_rows_it_was_fitted_on(void **state)
{
    (void)state;
    tn_calibrate *c = fit(TN_CALIBRATE_PLATT);
    assert_true(fabs(tn_metrics_get(c->after, "copc") - 1) < 1e-6);
    tn_calibrate_free(c);
}

static void without_a_calibration_the_bytes_are_those_of_ever(void **state)
{
    (void)state;
    tn_text text = {0};
    tn_error err = {0};
    char model[TN_PATH_SIZE];
    tn_exported out = exportkit_export(&k);
    assert_int_equal(tn_path_join(out.path, "model.json", model, &err), TN_OK);
    assert_int_equal(tn_file_read_all(model, 1 << 20, &text, &err), TN_OK);
    assert_null(strstr(tn_text_str(&text), "calibration"));
    assert_non_null(strstr(tn_text_str(&text), "\"version\":[1,0]"));
    tn_text_done(&text);
}

static void a_calibration_of_other_scores_is_refused(void **state)
{
    static const char *const other[] = {"data.negative_sampling=0.25", NULL};
    (void)state;
    tn_error err = {0};
    tn_exported out;
    tn_text text = {0};
    tn_calibration_file file;
    tn_calibrate_free(fit(TN_CALIBRATE_PLATT));
    const tn_model_plan *plan = exportkit_plan_of(&k, other, NULL, &k.binder);
    assert_int_equal(export_to("other", plan, &out, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "with data.negative_sampling 0.5, this run has 0.25"));
    assert_int_equal(tn_calibration_file_read(&file, path, k.arena, &err), TN_OK);
    file.model_id[0] = file.model_id[0] == '0' ? '1' : '0';
    tn_calibration_file_json(&text, &file);
    assert_int_equal(tn_file_replace(path, text.data, text.size, &err), TN_OK);
    assert_int_equal(export_to("other", k.plan, &out, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "' calibrates model "));
    char to[300];
    (void)snprintf(to, sizeof to, "%s/other", k.dir);
    assert_false(tn_path_exists(to));
    tn_text_done(&text);
}

static void every_flipped_or_missing_byte_of_the_file_is_noticed(void **state)
{
    (void)state;
    tn_text text = {0};
    tn_error err = {0};
    tn_calibration_file file;
    tn_calibrate *c = fit(TN_CALIBRATE_ISOTONIC);
    assert_int_equal(tn_calibration_file_read(&file, path, k.arena, &err), TN_OK);
    assert_int_equal(file.rows, c->rows);
    assert_int_equal(file.map.n, c->map.n);
    assert_memory_equal(file.map.knot, c->map.knot, c->map.n * sizeof(tn_knot));
    assert_int_equal(tn_file_read_all(path, 1 << 20, &text, &err), TN_OK);
    for (size_t at = 0; at < text.size; at++) {
        text.data[at] = (char)(text.data[at] ^ 1);
        assert_int_equal(tn_file_replace(path, text.data, text.size, &err), TN_OK);
        assert_int_equal(tn_calibration_file_read(&file, path, k.arena, &err), TN_E_DATA);
        text.data[at] = (char)(text.data[at] ^ 1);
        assert_int_equal(tn_file_replace(path, text.data, at, &err), TN_OK);
        assert_int_equal(tn_calibration_file_read(&file, path, k.arena, &err), TN_E_DATA);
    }
    tn_text_done(&text);
    tn_calibrate_free(c);
}

static void the_library_opens_a_calibrated_export_or_says_there_is_no_memory(void **state)
{
    (void)state;
    tn_error why = {0};
    tn_exported out;
    int code = TNET_E_MEMORY;
    tn_calibrate_free(fit(TN_CALIBRATE_ISOTONIC));
    assert_int_equal(export_to("library", k.plan, &out, &why), TN_OK);
    for (uint64_t nth = 1; code != TNET_OK; nth++) {
        tnet_error err = {0};
        tnet_model *model = NULL;
        tn_alloc_fail_at(nth);
        code = tnet_open(out.path, TNET_VERIFY_FULL, &model, &err);
        tn_alloc_fail_at(0);
        assert_true(code == TNET_OK || code == TNET_E_MEMORY);
        tnet_close(model);
        assert_in_range(nth, 1, 500);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_export_scores_through_its_calibration),
        cmocka_unit_test(platt_keeps_the_clicks_of_the_rows_it_was_fitted_on),
        cmocka_unit_test(without_a_calibration_the_bytes_are_those_of_ever),
        cmocka_unit_test(a_calibration_of_other_scores_is_refused),
        cmocka_unit_test(every_flipped_or_missing_byte_of_the_file_is_noticed),
        cmocka_unit_test(the_library_opens_a_calibrated_export_or_says_there_is_no_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
