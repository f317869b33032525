/* test_calibrate.c - a calibration from the scores of a checkpoint to those of its export. */
#include "train/eval/calibrate.h"

#include "support/test.h"

#include "base/math/fmath.h"
#include "exportkit.h"
#include "serve/calibration_file.h"
#include "serve/tnet.h"
#include "train/checkpoint/checkpoint.h"
#include "train/step/worker.h"

static exportkit k;
static char run[300], path[300];
static const char *const overrides[] = {"data.negative_sampling=0.5", NULL};

GROUP_SET_UP
{
    exportkit_open(&k, "{type: widedeep, hidden: [4]}", overrides);
    exportkit_train(&k);
    (void)snprintf(run, sizeof run, "%s/run", k.dir);
    (void)snprintf(path, sizeof path, "%s/calibration.json", k.dir);
}

GROUP_TEAR_DOWN
{
    exportkit_close(&k);
}

/* Fits on the rows of edge.csv and writes the file; the test frees it. */
static tn_calibrate *fit(tn_calibrate_method method)
{
    tn_error err = {0};
    tn_worker *w = NULL;
    tn_calibrate *c = NULL;
    tn_saved which;
    tn_evaluation out CLEANUP(tn_evaluation_done) = {0};
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
    assert_ok(tn_calibrate_commit(c, folder, which.step, &err), err.text);
    assert_int_equal(c->of[0].rows, tn_metrics_rows(out.metrics));
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
TEST(an_export_scores_through_its_calibration)
{
    static const tn_calibrate_method methods[] = {TN_CALIBRATE_PLATT, TN_CALIBRATE_PLATT_SMOOTHED,
                                                  TN_CALIBRATE_ISOTONIC};
    static const char *const folders[] = {"platt", "smoothed", "isotonic"};
    for (uint32_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        tn_error err = {0};
        tn_exported out;
        uint32_t n[2];
        tn_calibrate *c = fit(methods[i]);
        assert_ok(export_to(folders[i], k.plan, &out, &err), err.text);
        float *plain FREED(tn_free) = exportkit_trainer_logits(&k, &n[0]);
        float *served FREED(tn_free) = exportkit_scorer_logits(&k, out.path, &n[1]);
        assert_int_equal(n[0], n[1]);
        for (uint32_t r = 0; r < n[0]; r++) {
            double p = tn_sigmoid(tn_calibration_logit(c->map, (double)plain[r], 0));
            assert_true(fabs(p - tn_sigmoid((double)served[r])) < 1e-5);
        }
        tn_calibrate_free(c);
    }
}

TEST(platt_keeps_the_clicks_of_the_rows_it_was_fitted_on)
{
    tn_calibrate *c = fit(TN_CALIBRATE_PLATT);
    assert_true(fabs(tn_metrics_get(c->of[0].after, "copc") - 1) < 1e-6);
    tn_calibrate_free(c);
}

/* What an evaluation hands on. */
typedef struct handed {
    float logit[64], label[64];
    uint32_t n;
} handed;

static tn_status hand_on(void *arg, const tn_scores *scores, tn_error *err)
{
    handed *h = arg;
    (void)err;
    for (uint32_t i = 0; i < scores->batch->rows; i++, h->n++) {
        assert_true(h->n < sizeof h->logit / sizeof h->logit[0]);
        h->logit[h->n] = scores->logit[i];
        h->label[h->n] = scores->batch->label[i];
    }
    return TN_OK;
}

static tn_evaluation evaluate(const tn_calibration *map, handed *h)
{
    tn_error err = {0};
    tn_worker *w = NULL;
    tn_saved which;
    tn_evaluation out = {0};
    const tn_eval_request request = {
        .paths = &k.run.data.valid, .sink = hand_on, .sink_arg = h, .calibration = map};
    *h = (handed){.n = 0};
    if (tn_worker_new(&w, k.plan, &(tn_worker_opts){.training = true}, &k.binder, &err) != TN_OK ||
        tn_checkpoint_load(run, w, &which, &err) != TN_OK ||
        tn_evaluate(w, &request, &out, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    tn_worker_free(w);
    return out;
}

/* Half of the negatives were kept: that is corrected first, and once. */
TEST(figures_and_sinks_are_behind_the_calibration)
{
    handed before;
    handed behind;
    const tn_calibration map = {.kind = TN_CALIBRATION_PLATT, .a = .5, .b = -1};
    tn_evaluation raw CLEANUP(tn_evaluation_done) = evaluate(NULL, &before);
    tn_evaluation out CLEANUP(tn_evaluation_done) = evaluate(&map, &behind);
    tn_metrics *want = NULL;
    assert_int_equal(tn_metrics_new(&want, &(tn_metrics_opts){0}, NULL), TN_OK);
    assert_true(before.n > 1 && before.n == behind.n);
    for (uint32_t i = 0; i < before.n; i++) {
        const double z = .5 * ((double)before.logit[i] + log(.5)) - 1;
        assert_true(fabs(z - (double)behind.logit[i]) < 1e-6);
    }
    const tn_scored rows = {.n = behind.n, .logit = behind.logit, .label = behind.label};
    assert_int_equal(tn_metrics_add(want, &rows, NULL), TN_OK);
    assert_true(tn_metrics_get(want, "logloss") == tn_metrics_get(out.metrics, "logloss"));
    assert_true(tn_metrics_get(want, "copc") == tn_metrics_get(out.metrics, "copc"));
    assert_true(tn_metrics_get(raw.metrics, "logloss") == tn_metrics_get(out.raw, "logloss"));
    assert_true(tn_metrics_get(raw.metrics, "logloss") != tn_metrics_get(want, "logloss"));
    assert_string_equal(out.calibrated_by, "platt");
    assert_null(raw.calibrated_by);
    assert_null(raw.raw);
    tn_metrics_free(want);
}

/* A map of which only c is to be seen shows how many unknown slots of a row were counted. */
TEST(unknown_slots_count_alike_in_a_run_and_in_its_export)
{
    /* Of the lines of the kit. The third: user, item, hist, tags, seq, top and the bucket of count,
     * but not gone, which reads as first values. Small counts (the first, the fourth and three
     * more) are in no row of training. A list with one known key counts as known, as seq of the
     * seventh, whose top does not. */
    static const uint32_t want[] = {1, 0, 7, 1, 1, 1, 1, 1};
    handed raw;
    handed behind;
    uint32_t n = 0;
    tn_exported out;
    tn_calibration_file file;
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_calibrate_free(fit(TN_CALIBRATE_PLATT));
    assert_int_equal(tn_calibration_file_read(&file, path, k.arena, NULL), TN_OK);
    file.maps.first = (tn_calibration){.kind = TN_CALIBRATION_PLATT, .a = 1, .c = -.25};
    assert_int_equal(tn_document_write(&tn_calibration_document, &file, &text, NULL), TN_OK);
    assert_non_null(strstr(tn_text_str(&text), "\"a\":1,\"b\":0,\"c\":-0.25}"));
    assert_int_equal(tn_file_replace(path, text.data, text.size, NULL), TN_OK);
    assert_int_equal(export_to("unknown", k.plan, &out, NULL), TN_OK);
    tn_evaluation before CLEANUP(tn_evaluation_done) = evaluate(NULL, &raw);
    tn_evaluation after CLEANUP(tn_evaluation_done) = evaluate(&file.maps.first, &behind);
    float *served FREED(tn_free) = exportkit_scorer_logits(&k, out.path, &n);
    assert_int_equal(n, raw.n);
    for (uint32_t r = 0; r < n; r++) {
        const double m = ((double)raw.logit[r] + log(.5) - (double)behind.logit[r]) / .25;
        assert_true(r >= sizeof want / sizeof want[0] || fabs(m - want[r]) < 1e-4);
        assert_true(fabs((double)served[r] - (double)behind.logit[r]) < 1e-5);
    }
}

/* Writes `file` where a run leaves it, and says what the checkpoint `folder` finds there. */
static tn_calibration find(const tn_calibration_file *file, const char *folder, uint64_t step,
                           tn_calibrate_method method, tn_text *said)
{
    char beside[400];
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_calibration map = {.kind = TN_CALIBRATION_ISOTONIC};
    (void)snprintf(beside, sizeof beside, "%s/" TN_CALIBRATION_NAME, run);
    if (file != NULL) {
        assert_int_equal(tn_document_write(&tn_calibration_document, file, &text, NULL), TN_OK);
        assert_int_equal(tn_file_replace(beside, text.data, text.size, NULL), TN_OK);
    } else {
        (void)remove(beside);
    }
    const tn_calibrate_wanted wanted = {method, folder, step, k.run.data.negative_sampling, NULL};
    tn_text_clear(said);
    assert_int_equal(tn_calibrate_find(&wanted, k.arena, &map, said, NULL), TN_OK);
    assert_null(strchr(tn_text_str(said), '\n')); /* one line */
    return map;
}

static void assert_unused(const tn_calibration_file *file, const char *folder, uint64_t step,
                          tn_calibrate_method method, const char *why)
{
    tn_text said CLEANUP(tn_text_done) = {0};
    assert_int_equal(find(file, folder, step, method, &said).kind, TN_CALIBRATION_NONE);
    assert_non_null(strstr(tn_text_str(&said), why));
    if (why[0] != '\0') {
        assert_memory_equal(said.data, "not calibrated: ", 16);
        assert_non_null(strstr(said.data, "'tnet-eval CONFIG --calibrate "));
    } else {
        assert_int_equal(said.size, 0);
    }
}

TEST(a_run_s_calibration_is_for_the_model_and_step_it_names)
{
    tn_text said = {0};
    tn_calibration_file good;
    tn_calibrate_free(fit(TN_CALIBRATE_PLATT));
    assert_int_equal(tn_calibration_file_read(&good, path, k.arena, NULL), TN_OK);
    PATH_IN(folder, run, "/ckpt-1/");
    static const tn_calibrate_method fits[] = {TN_CALIBRATE_PLATT, TN_CALIBRATE_PLATT_SMOOTHED,
                                               TN_CALIBRATE_AUTO};
    for (uint32_t i = 0; i < sizeof fits / sizeof fits[0]; i++) {
        const tn_calibration map = find(&good, folder, good.step, fits[i], &said);
        assert_int_equal(map.kind, TN_CALIBRATION_PLATT);
        assert_true(map.a == good.maps.first.a && map.b == good.maps.first.b);
        assert_memory_equal(tn_text_str(&said), "calibrated by '", 15);
    }
    tn_text_done(&said);
    tn_calibration_file other = good;
    other.step++;
    assert_unused(&other, folder, good.step, TN_CALIBRATE_PLATT, "calibrates model ");
    assert_unused(&good, folder, good.step + 1, TN_CALIBRATE_AUTO, "calibrates model ");
    other = good;
    other.model_id[31] = other.model_id[31] == '0' ? '1' : '0';
    assert_unused(&other, folder, good.step, TN_CALIBRATE_AUTO, "calibrates model ");
    other = good;
    other.sampling = .25;
    assert_unused(&other, folder, good.step, TN_CALIBRATE_PLATT, "negative_sampling 0.25");
    assert_unused(&good, folder, good.step, TN_CALIBRATE_ISOTONIC, "is platt, eval.calibrate is");
    assert_unused(NULL, folder, good.step, TN_CALIBRATE_PLATT, "no calibration '");
    assert_unused(NULL, folder, good.step, TN_CALIBRATE_AUTO, "");
    assert_unused(&good, folder, good.step, TN_CALIBRATE_NONE, "");
}

/* Asked for by name, with no file of its own. */
TEST(an_export_takes_what_the_run_has_left)
{
    tn_text said = {0};
    tn_calibration_file file;
    char to[2][300];
    tn_exported out[2];
    tn_calibrate_free(fit(TN_CALIBRATE_PLATT));
    assert_int_equal(tn_calibration_file_read(&file, path, k.arena, NULL), TN_OK);
    PATH_IN(folder, run, "ckpt-1");
    (void)find(&file, folder, file.step, TN_CALIBRATE_PLATT, &said);
    tn_text_done(&said);
    for (uint32_t i = 0; i < 2; i++) {
        (void)snprintf(to[i], sizeof to[i], "%s/left-%u", k.dir, i);
        k.run.eval.calibrate = i == 0 ? TN_CALIBRATE_NONE : TN_CALIBRATE_AUTO;
        const tn_export_request request = {.checkpoint = run, .to = to[i], .binder = &k.binder};
        assert_int_equal(tn_export(k.plan, &request, &out[i], NULL), TN_OK);
    }
    tn_calibration map[2];
    for (uint32_t i = 0; i < 2; i++) {
        tn_exported_model *model = NULL;
        const tn_exported_model_opts opts = {.verify = TN_VERIFY_FULL};
        assert_int_equal(tn_exported_model_open(&model, out[i].path, &opts, NULL), TN_OK);
        map[i] = model->calibration;
        tn_exported_model_close(model);
    }
    k.run.eval.calibrate = TN_CALIBRATE_NONE;
    assert_int_equal(map[0].kind, TN_CALIBRATION_NONE);
    assert_int_equal(map[1].kind, TN_CALIBRATION_PLATT);
    assert_true(map[1].a == file.maps.first.a && map[1].b == file.maps.first.b);
}

TEST(without_a_calibration_the_bytes_are_those_of_ever)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    char model[TN_PATH_SIZE];
    tn_exported out = exportkit_export(&k);
    assert_int_equal(tn_path_join(out.path, "model.json", model, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(model, 1 << 20, &text, NULL), TN_OK);
    assert_null(strstr(tn_text_str(&text), "calibration"));
    assert_non_null(strstr(tn_text_str(&text), "\"version\":[1,0]"));
}

TEST(a_calibration_of_other_scores_is_refused)
{
    static const char *const other[] = {"data.negative_sampling=0.25", NULL};
    tn_error err = {0};
    tn_exported out;
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_calibration_file file;
    tn_calibrate_free(fit(TN_CALIBRATE_PLATT));
    const tn_model_plan *plan = exportkit_plan_of(&k, other, NULL, &k.binder);
    assert_int_equal(export_to("other", plan, &out, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "with data.negative_sampling 0.5, this run has 0.25"));
    assert_int_equal(tn_calibration_file_read(&file, path, k.arena, &err), TN_OK);
    file.model_id[0] = file.model_id[0] == '0' ? '1' : '0';
    assert_int_equal(tn_document_write(&tn_calibration_document, &file, &text, NULL), TN_OK);
    assert_int_equal(tn_file_replace(path, text.data, text.size, &err), TN_OK);
    assert_int_equal(export_to("other", k.plan, &out, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "' calibrates model "));
    PATH_IN(to, k.dir, "other");
    assert_false(tn_path_exists(to));
}

TEST(every_flipped_or_missing_byte_of_the_file_is_noticed)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    tn_calibration_file file;
    tn_calibrate *c = fit(TN_CALIBRATE_ISOTONIC);
    assert_int_equal(tn_calibration_file_read(&file, path, k.arena, &err), TN_OK);
    assert_int_equal(file.rows, c->of[0].rows);
    assert_int_equal(file.maps.first.n, c->map[0].n);
    assert_memory_equal(file.maps.first.knot, c->map[0].knot, c->map[0].n * sizeof(tn_knot));
    assert_int_equal(tn_file_read_all(path, 1 << 20, &text, &err), TN_OK);
    for (size_t at = 0; at < text.size; at++) {
        text.data[at] = (char)(text.data[at] ^ 1);
        assert_int_equal(tn_file_replace(path, text.data, text.size, &err), TN_OK);
        assert_int_equal(tn_calibration_file_read(&file, path, k.arena, &err), TN_E_DATA);
        text.data[at] = (char)(text.data[at] ^ 1);
        assert_int_equal(tn_file_replace(path, text.data, at, &err), TN_OK);
        assert_int_equal(tn_calibration_file_read(&file, path, k.arena, &err), TN_E_DATA);
    }
    tn_calibrate_free(c);
}

TEST(the_library_opens_a_calibrated_export_or_says_there_is_no_memory)
{
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
