/* test_run_loss.c - what follows from the loss of a run: labels, metrics, what is refused. */
#include "train/config/run_loss.h"

#include "base/core/text.h"
#include "config/diag.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "metrics/calibrator.h"
#include "metrics/metrics.h"
#include "nn/loss/loss.h"
#include "support/test.h"
#include "train/config/run_bind.h"

typedef struct fixture {
    tn_arena *arena;
    tn_diag diag;
    tn_run run;
} fixture;

SET_UP
{
    static fixture f;
    f = (fixture){.arena = tn_arena_new(1 << 16)};
    *state = &f;
}

TEAR_DOWN
{
    fixture *f = *state;
    tn_diag_done(&f->diag);
    tn_arena_free(f->arena);
}

static const tn_tree *read_yaml(fixture *f, const char *yaml)
{
    const tn_yaml_in in = {.text = yaml, .size = strlen(yaml), .source = "c.yaml"};
    const tn_tree *tree = tn_yaml_read(f->arena, &f->diag, &in);
    assert_non_null(tree);
    return tree;
}

/* Returns the faults of a configuration. */
static const char *faults(fixture *f, const char *lines)
{
    const char *copy = tn_tree_text(f->arena, lines, strlen(lines));
    tn_diag_done(&f->diag);
    f->diag = (tn_diag){0};
    tn_run_bind(&(tn_binder){.arena = f->arena, .diag = &f->diag}, read_yaml(f, copy), &f->run);
    return tn_text_str(&f->diag.text);
}

static void assert_faults(fixture *f, const char *lines, const char *want)
{
    const char *got = faults(f, lines);
    fail_if(want[0] == '\0' ? got[0] != '\0' : strstr(got, want) == NULL,
            "\"%s\": \"%s\" is not \"%s\"", lines, got, want);
}

static void assert_judges(const tn_loss *loss, const char *name)
{
    fail_if(tn_metric_find(name) == NULL || !tn_metric_fits(name, loss->target),
            "%s: metric '%s' does not judge it", loss->choice.name, name);
}

TEST_ON(fixture *f, metrics_of_every_loss_judge_its_scores)
{
    for (const tn_choice *const *c = tn_loss_choices; *c != NULL; c++) {
        const tn_loss *loss = tn_loss_find((*c)->name);
        assert_ptr_equal(&loss->choice, *c);
        assert_true(strncmp(loss->watched, "valid.", 6) == 0);
        assert_judges(loss, loss->watched + 6);
        assert_true(tn_metric_find(loss->watched + 6)->best != TN_BEST_NONE);
        if (loss->metric != NULL) {
            assert_judges(loss, loss->metric);
        }
        const char *yaml = tn_loss_defaults((*c)->name);
        const tn_tree *metrics =
            yaml != NULL ? tn_tree_at(read_yaml(f, yaml), "eval.metrics") : NULL;
        assert_true((metrics == NULL) == (loss->target == TN_TARGET_CLICK));
        for (const tn_tree *m = metrics != NULL ? metrics->first : NULL; m != NULL; m = m->next) {
            assert_judges(loss, m->text);
        }
    }
    assert_null(tn_loss_find("no_such_loss"));
    assert_null(tn_loss_defaults("no_such_loss"));
}

TEST(the_target_is_that_of_the_loss_that_is_named)
{
    static const struct {
        const char *yaml;
        tn_target target;
    } cases[] = {
        {"{}", TN_TARGET_CLICK},
        {"loss: ~", TN_TARGET_CLICK},
        {"loss: focal", TN_TARGET_CLICK},
        {"loss: squared_hinge", TN_TARGET_SIDE},
        {"loss: {type: hinge}", TN_TARGET_SIDE},
        {"loss: mse", TN_TARGET_NUMBER},
        {"loss: mae", TN_TARGET_NUMBER},
        {"loss: {type: huber, delta: 2}", TN_TARGET_NUMBER},
        {"loss: {type: pairwise}", TN_TARGET_ORDER},
        {"loss: {delta: 2}", TN_TARGET_CLICK},
        {"loss: [mse]", TN_TARGET_CLICK},
        {"loss: no_such_loss", TN_TARGET_CLICK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tn_loss_target(read_yaml(*state, cases[i].yaml)), cases[i].target);
    }
    assert_string_equal(tn_loss_for(TN_TARGET_CLICK), TN_LOSS_DEFAULT);
    assert_string_equal(tn_loss_for(TN_TARGET_SIDE), "hinge");
    assert_string_equal(tn_loss_for(TN_TARGET_NUMBER), "mse");
    assert_string_equal(tn_loss_for(TN_TARGET_ORDER), "pairwise");
}

/* Data without groups. */
#define CSV "slots: [a]\ndata: {format: csv, train: t, valid: v}\n"
/* Data with groups. */
#define GROUPS "slots: [a]\ndata: {format: csv, train: t, valid: v, group: q}\n"

TEST(what_does_not_fit_the_loss_is_refused)
{
    static const struct {
        const char *lines, *fault;
    } cases[] = {
        {CSV "loss: bce\neval: {metrics: [auc, logloss, accuracy, mse]}", ""},
        {CSV "loss: focal\neval: {metrics: [label_mean]}",
         "metric 'label_mean' does not judge a model of loss 'focal', which makes probabilities"},
        {CSV "loss: hinge\neval: {metrics: [logloss]}",
         "metric 'logloss' does not judge a model of loss 'hinge', which makes scores that say 1"},
        {CSV "loss: squared_hinge\neval: {metrics: [auc]}", ""},
        {CSV "loss: huber\neval: {metrics: [accuracy]}",
         "metric 'accuracy' does not judge a model of loss 'huber', which makes numbers"},
        {GROUPS "loss: pairwise\neval: {metrics: [rmse]}",
         "metric 'rmse' does not judge a model of loss 'pairwise', which makes scores that order"},
        {GROUPS "loss: pairwise\neval: {metrics: [gauc]}", ""},
        {CSV "loss: mae\neval: {metrics: [mae]}\ntrain: {stop: {monitor: valid.auc}}",
         "metric 'auc' does not judge a model of loss 'mae'"},
        {CSV "loss: pairwise\neval: {metrics: [gauc]}",
         "loss 'pairwise' needs data.group, the column whose value groups rows"},
        {"data: {format: libsvm, train: t}\nloss: pairwise\neval: {metrics: [gauc]}", ""},
        {CSV "loss: {type: mse, delta: 1}\neval: {metrics: [mse]}", "unknown key 'delta'"},
        {CSV "loss: {type: bce, gamma: 1}", "unknown key 'gamma'"},
        {CSV "loss: {type: mse, reduction: sum}\neval: {metrics: [mse]}", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_faults(*state, cases[i].lines, cases[i].fault);
    }
}

/* Scores of bce alone are log odds that a share of rows moves by a known number. */
TEST(only_log_odds_are_corrected_for_rows_left_out)
{
    for (const tn_choice *const *c = tn_loss_choices; *c != NULL; c++) {
        const tn_loss *loss = (*c)->impl;
        tn_text lines = {0};
        tn_text_addf(&lines,
                     "slots: [a]\ndata: {format: csv, train: t, group: q, negative_sampling: 0.5}\n"
                     "loss: %s\n%s\n",
                     (*c)->name, loss->defaults != NULL ? loss->defaults : "");
        const char *got = faults(*state, tn_text_str(&lines));
        tn_text_done(&lines);
        const bool refused = strstr(got, "cannot be corrected for it") != NULL;
        assert_true(refused == (strcmp((*c)->name, "bce") != 0));
        assert_true(!refused || strstr(got, "'tnet-train --list-losses' says which can") != NULL);
    }
}

/* A calibration makes probabilities of scores that are some already. */
TEST(only_clicks_are_calibrated)
{
    for (const tn_choice *const *c = tn_loss_choices; *c != NULL; c++) {
        fixture *f = *state;
        const tn_loss *loss = (*c)->impl;
        const char *defaults = loss->defaults != NULL ? loss->defaults : "eval: {metrics: [auc]}";
        const bool clicks = loss->target == TN_TARGET_CLICK;
        tn_text lines = {0};
        tn_text_addf(&lines, GROUPS "loss: %s\n%.*s, calibrate: platt}\n", (*c)->name,
                     (int)strlen(defaults) - 1, defaults);
        const bool refused =
            strstr(faults(f, tn_text_str(&lines)), "has no probabilities to calibrate") != NULL;
        assert_true(refused != clicks);
        tn_text_done(&lines);
        tn_text_addf(&lines, GROUPS "loss: %s\n%s\n", (*c)->name, defaults);
        assert_faults(f, tn_text_str(&lines), "");
        assert_true(f->run.data.target == loss->target);
        assert_true((f->run.eval.calibrate == TN_CALIBRATE_NONE) != clicks);
        tn_text_done(&lines);
    }
}

/* Two rows of logits 0 and 2, of which the first is a click or 1. */
static double value_of(const char *loss)
{
    const tn_loss *l = tn_loss_find(loss);
    const tn_run run = {.loss = {.choice = &l->choice}};
    tn_metrics *m = NULL;
    const tn_scored rows = {.n = 2, .logit = (const float[]){0, 2}, .label = (const float[]){1, 0}};
    assert_int_equal(tn_metrics_new(&m, &(tn_metrics_opts){.target = l->target}, NULL), TN_OK);
    assert_int_equal(tn_metrics_add(m, &rows, NULL), TN_OK);
    const double value = tn_run_loss_value(&run, m);
    tn_metrics_free(m);
    return value;
}

TEST(the_loss_of_rows_is_a_metric_or_not_known)
{
    assert_true(fabs(value_of("bce") - (log(2) + log1p(exp(2))) / 2) < 1e-6);
    assert_true(fabs(value_of("mse") - (1 + 4) / 2.) < 1e-6);
    assert_true(fabs(value_of("mae") - (1 + 2) / 2.) < 1e-6);
    static const char *const others[] = {"focal", "hinge", "squared_hinge", "huber", "pairwise"};
    for (size_t i = 0; i < 5; i++) {
        assert_true(isnan(value_of(others[i])));
    }
}
