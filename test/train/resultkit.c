/* resultkit.c - see resultkit.h. */
#include "train/resultkit.h"

#include "support/test.h"

enum { ROWS = 8 };

static const char *const metric_names[] = {"auc", "logloss", "copc"};

static void judge(resultkit *k, bool exact)
{
    static const float logit[ROWS] = {-3, -2, -1, 0, -2.5F, -1.5F, 0.5F, 1};
    static const float label[ROWS] = {0, 0, 1, 0, 0, 0, 1, 1};
    static const uint64_t sign[ROWS] = {7, 7, 7, 7, 7, 9, 9, 9};
    tn_evaluation *e = &k->evaluation;
    tn_scored rows = {.n = ROWS, .logit = logit, .label = label};
    tn_metrics_opts opts = {.exact_auc = exact};
    tn_slices_opts slices = {.slices_max = 16};
    assert_int_equal(tn_metrics_new(&e->metrics, &opts, NULL), TN_OK);
    assert_int_equal(tn_metrics_add(e->metrics, &rows, NULL), TN_OK);
    e->slices = tn_alloc(1, sizeof(tn_slices *), "slices");
    e->n_slices = 1;
    assert_int_equal(tn_slices_new(&e->slices[0], &slices, NULL), TN_OK);
    assert_int_equal(tn_slices_add(e->slices[0], &rows, &(tn_slice_keys){.sign = sign}, NULL),
                     TN_OK);
    e->counts = (tn_read_counts){.records = ROWS, .sources = 1};
}

void resultkit_make(resultkit *k, bool exact, const char *slot)
{
    *k = (resultkit){0};
    k->run.run.name = "a";
    k->run.run.seed = 42;
    k->run.run.deterministic = true;
    k->run.eval.auc = exact ? 1 : 0;
    k->run.eval.metrics = (tn_strs){3, metric_names};
    k->run.eval.slices = (tn_strs){1, &k->spec.name};
    k->spec = (tn_slot_spec){.name = slot, .type = TN_SIGN_ID};
    k->slot[0] = &k->spec;
    k->schema = (tn_schema){.n_slots = 1, .slot = k->slot, .label = &k->label};
    judge(k, exact);
    k->findings = (tn_eval_result){.data = "test",
                                   .run = &k->run,
                                   .schema = &k->schema,
                                   .result = &k->evaluation,
                                   .source = "runs/a/ckpt-3",
                                   .config_hash = "00ff",
                                   .at = {.step = 12, .samples = 345, .epoch = 2}};
}

void resultkit_done(resultkit *k)
{
    tn_evaluation_done(&k->evaluation);
}
