/* exportkit.c - see exportkit.h. */
#include "exportkit.h"

#include "support/test.h"

#include "base/math/fmath.h"
#include "base/math/key.h"
#include "config/yaml.h"
#include "io/format/format.h"
#include "io/read/reader.h"
#include "models/model.h"
#include "serve/score.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/choices.h"
#include "train/config/config.h"
#include "train/config/run_bind.h"
#include "train/config/run_tasks.h"
#include "train/eval/evaluate.h"
#include "train/report/report.h"
#include "train/run/trainer.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

enum { TRAIN_ROWS = 600 };

static const char config[] =
    "run: {name: kit, dir: %s/run, seed: 7}\n"
    "data:\n"
    "  format: csv\n"
    "  train: %s/train.csv\n"
    "  valid: %s/edge.csv\n"
    "  list: \"|\"\n"
    "  shuffle: 100\n"
    "slots:\n"
    "  - {name: user}\n"
    "  - {name: item, type: str, share: item}\n"
    "  - {name: hist, type: str, share: item, pool: mean, max_len: 3, keep: last}\n"
    "  - {name: tags, type: str, pool: sqrtn, values: weights}\n"
    "  - {name: seq, type: int, pool: concat(2)}\n"
    "  - {name: top, pool: max, values: topx}\n"
    "  - {name: gone, type: hex, absent: key, missing: init}\n"
    "  - {name: age, type: int, as: key, transform: {buckets: [18, 25, 35.5]}}\n"
    "  - {name: count, type: int, as: key, transform: ln2_bucket}\n"
    "  - {name: amount, type: float, as: weighted, transform: log}\n"
    "  - {name: price, type: float, as: value, transform: log, absent: 0.5}\n"
    "  - {name: height, type: float, as: value, transform: {minmax: [100, 200]}}\n"
    "  - {name: speed, type: float, as: value, transform: {zscore: [3, 2]}}\n"
    "  - {name: drift, type: float, as: value, transform: {zscore: {freeze_rows: 10000}}}\n"
    "embedding: {dim: 4, pool: sum, init: {uniform: [-0.5, 0.5]}}\n"
    "train: {epochs: 1, batch: 50, threads: 1, optimizer: {type: adam, lr: 0.02}}\n"
    "eval: {batch: 7, metrics: [auc, logloss]}\n"
    "log: {tensorboard: false, progress: false}\n"
    "export: {to: %s/export}\n"
    "model: %s\n";

const char exportkit_header[] = "label,user,item,hist,tags,weights,seq,top,topx,gone,age,count,"
                                "amount,price,height,speed,drift\n";

/* user .. drift; ids below 20 are known from training. */
const char *const exportkit_edge_lines[] = {
    "1,1,a1,a1|a2,t1|t2,1|0.5,1|2,3,2,ff,30,7,2.5,9.5,150,4,1\n",
    "0,,,,,,,,,,,,,,,,\n",                                         /* nothing at all */
    "0,999999,zz,zz,zz,2,99,98,1,abc,200,70000,1,1,1,1,1\n",       /* nobody knows these */
    "1,2,a1,a1|a1|a1,t1|t1,1|1,5|5,4|4,1|1,ff,18,1,0,0,100,3,0\n", /* the same again */
    "0,3,a2,a1|a2|a3|a4|a5,t1|t2,0|0,1|2|3|4,1|2|3,-1|-2|-3,1,17,-5,-3,-2,300,-9,50\n", /* D = 0 */
    "1,4,a3,zz|a1,t1|zz,1|-1,7,1|9999,2|8,,25,2,1e-3,1e6,99.5,3.5,-7\n",
    "0,18446744073709551615,a4,,t3,3.5,-3|4,16777217,0,ffffffffffffffff,36,1000,7,,,,\n",
    "1,9007199254740993,,a9|a8|a7|a6,,,,,,0,35,3,,0.25,120,1,2\n",
    NULL,
};

static uint64_t below(uint64_t *state, uint64_t n)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return tn_mix(*state) % n;
}

static void add_list(tn_text *t, uint64_t *s, const char *prefix, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(t, "%s%s%llu", i > 0 ? "|" : "", prefix, (unsigned long long)below(s, 20));
    }
    tn_text_addc(t, ',');
}

static void add_row(tn_text *t, uint64_t *s)
{
    static const char *const big[] = {"16777217", "9007199254740993", "18446744073709551615"};
    uint64_t user = below(s, 23);
    tn_text_addf(t, "%llu,", (unsigned long long)(user % 3 == 0));
    if (user < 20) {
        tn_text_addf(t, "%llu,", (unsigned long long)user);
    } else {
        tn_text_addf(t, "%s,", big[user - 20]);
    }
    add_list(t, s, "a", 1);
    add_list(t, s, "a", (uint32_t)below(s, 5));
    uint32_t n = (uint32_t)below(s, 3);
    add_list(t, s, "t", n);
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(t, "%s0.%llu", i > 0 ? "|" : "", (unsigned long long)below(s, 9));
    }
    tn_text_addc(t, ',');
    add_list(t, s, "", (uint32_t)below(s, 4));
    n = 1 + (uint32_t)below(s, 3);
    add_list(t, s, "", n);
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(t, "%s%llu", i > 0 ? "|" : "", (unsigned long long)below(s, 3));
    }
    tn_text_addc(t, ',');
    add_list(t, s, "f", (uint32_t)below(s, 2));
    /* age .. drift, drawn one by one: the order of arguments is the compiler's */
    static const uint32_t drawn[] = {60, 2000, 5, 50, 100, 9, 30};
    unsigned long long x[sizeof drawn / sizeof drawn[0]];
    for (uint32_t i = 0; i < sizeof drawn / sizeof drawn[0]; i++) {
        x[i] = below(s, drawn[i]);
    }
    tn_text_addf(t, "%llu,%llu,%llu.5,%llu,%llu,%llu,%llu\n", x[0], x[1], x[2], x[3], 100 + x[4],
                 x[5], x[6]);
}

static void write_file(const exportkit *k, const char *name, const tn_text *t)
{
    char path[300];
    tn_error err = {0};
    (void)snprintf(path, sizeof path, "%s/%s", k->dir, name);
    assert_ok(tn_file_replace(path, t->data, t->size, &err), err.text);
}

static void write_data(const exportkit *k)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    uint64_t seed = 1;
    tn_text_adds(&t, exportkit_header);
    for (uint32_t i = 0; i < TRAIN_ROWS; i++) {
        add_row(&t, &seed);
    }
    write_file(k, "train.csv", &t);
    tn_text_clear(&t);
    tn_text_adds(&t, exportkit_header);
    for (uint32_t i = 0; exportkit_edge_lines[i] != NULL; i++) {
        tn_text_adds(&t, exportkit_edge_lines[i]);
    }
    for (uint32_t i = 0; i < 40; i++) {
        add_row(&t, &seed);
    }
    write_file(k, "edge.csv", &t);
}

static const tn_model_plan *load(const exportkit *k, const char *const *overrides,
                                 const tn_membership *membership, tn_run *run, tn_binder *b)
{
    static const tn_presets presets = {
        .format = tn_format_preset, .model = tn_model_preset, .spread = tn_tasks_spread};
    tn_error err = {0};
    const tn_model_plan *plan = NULL;
    PATH_IN(path, k->dir, "kit.yaml");
    tn_config_in in = {
        .fields = tn_run_fields, .presets = &presets, .path = path, .overrides = overrides};
    while (overrides != NULL && overrides[in.n_overrides] != NULL) {
        in.n_overrides++;
    }
    const tn_tree *tree = tn_config_load(&in, b->arena, b->diag);
    if (tree != NULL) {
        tn_run_bind(b, tree, run);
        run->cluster.rank = membership != NULL ? membership->rank : 0;
        run->cluster.size = membership != NULL ? membership->size : 0;
        run->cluster.membership = membership;
        tn_text said CLEANUP(tn_text_done) = {0};
        fail_if(tn_choices_make(b, "", &tree, run, &said, &err) != TN_OK, "%s%s",
                tn_text_str(&b->diag->text), err.text);
    }
    fail_if(b->diag->n_errors > 0 || tn_model_plan_new(&plan, run, b, &err) != TN_OK, "%s%s",
            tn_text_str(&b->diag->text), err.text);
    return plan;
}

const tn_model_plan *exportkit_plan_of(const exportkit *k, const char *const *overrides,
                                       const tn_membership *membership, tn_binder *b)
{
    return load(k, overrides, membership, TN_NEW(b->arena, tn_run), b);
}

void exportkit_open(exportkit *k, const char *model, const char *const *overrides)
{
    memset(k, 0, sizeof *k);
    tn_tmpdir_make(k->dir);
    k->arena = tn_arena_new(1 << 16);
    k->binder = (tn_binder){.arena = k->arena, .diag = &k->diag};
    write_data(k);
    tn_text t = {0};
    tn_text_addf(&t, config, k->dir, k->dir, k->dir, k->dir, model);
    write_file(k, "kit.yaml", &t);
    tn_text_done(&t);
    k->plan = load(k, overrides, NULL, &k->run, &k->binder);
}

void exportkit_close(exportkit *k)
{
    tn_diag_done(&k->diag);
    tn_arena_free(k->arena);
    tn_tmpdir_remove(k->dir);
}

void exportkit_train(exportkit *k)
{
    static const tn_run_text text = {
        .config = "kit\n",
        .hash = "0000000000000000000000000000000000000000000000000000000000000000"};
    tn_error err = {0};
    tn_watch watch = {.show = NULL};
    tn_outcome out;
    fail_if(tn_train(k->plan, &text, &watch, &k->binder, &out, &err) != TN_OK, "%s%s",
            tn_text_str(&k->diag.text), err.text);
    tn_outcome_done(&out);
}

tn_exported exportkit_export(exportkit *k)
{
    tn_error err = {0};
    tn_exported out;
    PATH_IN(path, k->dir, "run");
    tn_export_request request = {.checkpoint = path, .binder = &k->binder};
    assert_ok(tn_export(k->plan, &request, &out, &err), err.text);
    return out;
}

typedef struct collected {
    float *logit;
    uint32_t n;
} collected;

static tn_status collect(void *arg, const tn_scores *scores, tn_error *err)
{
    collected *c = arg;
    (void)err;
    for (uint32_t i = 0; i < scores->batch->rows; i++) {
        c->logit[c->n++] = scores->logit[i];
    }
    return TN_OK;
}

float *exportkit_trainer_logits(exportkit *k, uint32_t *n)
{
    tn_error err = {0};
    tn_worker *w = NULL;
    tn_saved which;
    collected c = {.logit = tn_alloc(1000, sizeof(float), "logits")};
    PATH_IN(path, k->dir, "run");
    tn_eval_request request = {.paths = &k->run.data.valid, .sink = collect, .sink_arg = &c};
    tn_evaluation out;
    if (tn_worker_new(&w, k->plan, &(tn_worker_opts){.training = true}, &k->binder, &err) !=
            TN_OK ||
        tn_checkpoint_load(path, w, &which, &err) != TN_OK ||
        tn_evaluate(w, &request, &out, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    tn_evaluation_done(&out);
    tn_worker_free(w);
    for (uint32_t i = 0; i < c.n; i++) {
        c.logit[i] = (float)((double)c.logit[i] + tn_ln(k->run.data.negative_sampling));
    }
    *n = c.n;
    return c.logit;
}

float *exportkit_scorer_logits(exportkit *k, const char *path, uint32_t *n)
{
    tn_error err = {0};
    tn_exported_model *b = NULL;
    tn_scorer *s = NULL;
    tn_reader *reader = NULL;
    float *logit = tn_alloc(1000, sizeof *logit, "logits");
    tn_reader_opts opts = {.paths = k->run.data.valid, .batch_rows = 20, .prefetch = 2};
    if (tn_exported_model_open(&b, path, &(tn_exported_model_opts){0}, &err) != TN_OK ||
        tn_scorer_new(&s, b, &err) != TN_OK ||
        tn_reader_open(&reader, b->schema, &opts, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    tn_batch *batch = NULL;
    tn_status status = TN_OK;
    *n = 0;
    while ((status = tn_reader_next(reader, &batch, &err)) == TN_OK) {
        float pctr[20];
        assert_int_equal(tn_scorer_score(s, batch, logit + *n, pctr, &err), TN_OK);
        for (uint32_t i = 0; i < batch->rows; i++) {
            assert_float_equal(pctr[i], (float)tn_sigmoid((double)logit[*n + i]), 1e-6F);
        }
        *n += batch->rows;
        tn_reader_recycle(reader, batch);
    }
    assert_int_equal(status, TN_END);
    tn_reader_close(reader);
    tn_scorer_free(s);
    tn_exported_model_close(b);
    return logit;
}
