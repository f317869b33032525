/* test_training.c - libtnet-train trains, judges, scores, exports and saves as the programs do. */
#include "support/test.h"

#include "api/tnet_train.h"
#include "base/core/alloc.h"
#include "base/thread/threads.h"
#include "support/arrow_kit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRAIN_ROWS = 6000, VALID_ROWS = 2000 };

typedef struct kit {
    char dir[256];
    char config[2048];
    char lines[30000];
    char last_record[4000];
    size_t n_records, n_progress, n_evaluated, n_scores;
    double auc, logloss, custom, logits;
    int asks; /* the number that `progress` returns */
    int ends; /* the number that `evaluated` returns */
    tnet_hooks hooks;
} kit;

static void write_rows(const kit *k, const char *name, uint32_t from, uint32_t to)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", k->dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(f, "label,u,p\n");
    for (uint32_t i = from; i < to; i++) {
        const uint32_t u = i * 7919 % 97;
        (void)fprintf(f, "%d,user %u,%u.5\n", (i * 31 + u * u) % 11 < u % 7, u, i % 13);
    }
    assert_int_equal(fclose(f), 0);
}

static void keep_line(void *arg, int level, const char *text, int transient)
{
    kit *k = arg;
    (void)level;
    if (!transient) {
        const size_t used = strlen(k->lines);
        (void)snprintf(k->lines + used, sizeof k->lines - used, "%s\n", text);
    }
}

static void keep_record(void *arg, const char *json, size_t n)
{
    kit *k = arg;
    assert_true(n > 2 && json[0] == '{' && json[n - 1] == '}');
    (void)snprintf(k->last_record, sizeof k->last_record, "%.*s", (int)n, json);
    k->n_records++;
}

static int keep_progress(void *arg, const tnet_progress *p)
{
    kit *k = arg;
    assert_true(p->size == sizeof *p && p->rows >= p->steps && p->seconds >= 0);
    k->n_progress++;
    return k->asks;
}

static int keep_values(void *arg, uint64_t step, const tnet_value *values, size_t n)
{
    kit *k = arg;
    assert_true(step > 0 && n >= 3);
    assert_string_equal(values[0].data, "valid");
    assert_string_equal(values[0].metric, "auc");
    assert_string_equal(values[n - 1].metric, "custom");
    k->auc = values[0].value;
    k->logloss = values[1].value;
    k->custom = values[n - 1].value;
    k->n_evaluated++;
    return k->ends;
}

/* The logloss, as any caller would calculate it. */
static double logloss(void *arg, const float *label, const float *p, const float *weight, size_t n)
{
    double sum = 0;
    (void)arg;
    assert_null(weight);
    assert_int_equal(n, VALID_ROWS);
    for (size_t i = 0; i < n; i++) {
        sum -= label[i] > .5F ? log((double)p[i]) : log(1 - (double)p[i]);
    }
    return sum / (double)n;
}

static void kit_open(kit *k, const char *more)
{
    *k = (kit){.asks = 0};
    tn_tmpdir_make(k->dir);
    write_rows(k, "t.csv", 0, TRAIN_ROWS);
    write_rows(k, "v.csv", TRAIN_ROWS, TRAIN_ROWS + VALID_ROWS);
    (void)snprintf(k->config, sizeof k->config,
                   "data: {format: csv, train: %s/t.csv, valid: %s/v.csv}\n"
                   "slots: [{name: u, type: str}, {name: p, type: float}]\n"
                   "model: {type: deepfm, hidden: [8]}\n%s",
                   k->dir, k->dir, more);
    k->hooks = (tnet_hooks){.size = sizeof k->hooks,
                            .arg = k,
                            .line = keep_line,
                            .record = keep_record,
                            .progress = keep_progress,
                            .evaluated = keep_values,
                            .metric = logloss};
}

static void kit_close(kit *k)
{
    tn_tmpdir_remove(k->dir);
}

static tnet_run *run_of(kit *k, const char *const *overrides, size_t n)
{
    tnet_error err = {0};
    tnet_run *run = NULL;
    const tnet_run_opts opts = {.size = sizeof opts,
                                .config = k->config,
                                .overrides = overrides,
                                .n_overrides = n,
                                .hooks = &k->hooks};
    fail_if(tnet_run_new(&opts, &run, &err) != 0, "%s", err.text);
    return run;
}

static void train(tnet_run *run)
{
    tnet_error err = {0};
    fail_if(tnet_run_train(run, &err) != 0, "%d: %s", err.code, err.text);
}

static uint32_t count_threads(void)
{
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list("/proc/self/task", &names, &n, NULL), TN_OK);
    return n;
}

static int add_scores(void *arg, const float *logits, const float *clicks, size_t n)
{
    kit *k = arg;
    for (size_t i = 0; i < n; i++) {
        assert_true(clicks[i] > 0 && clicks[i] < 1);
        k->logits += (double)logits[i];
    }
    k->n_scores += n;
    return 0;
}

TEST(a_run_trains_judges_scores_and_exports)
{
    OPEN(kit, k, "");
    tnet_error err = {0};
    char *json = NULL;
    char id[33] = "";
    char to[300];
    tnet_run *run = run_of(&k, NULL, 0);
    const uint32_t threads = count_threads();
    train(run);
    assert_int_equal(count_threads(), threads);
    assert_true(k.n_records > 2 && k.n_progress > 0 && k.n_evaluated > 0 && k.auc > .6);
    assert_non_null(strstr(k.last_record, "\"kind\":\"end\""));
    assert_non_null(strstr(k.lines, "epoch"));
    assert_float_equal(k.custom, k.logloss, 1e-6);

    assert_int_equal(tnet_run_evaluate(run, NULL, &json, &err), 0);
    char auc[40];
    (void)snprintf(auc, sizeof auc, "\"auc\":%.6f", k.auc);
    assert_non_null(strstr(json, "\"data\":\"valid\""));
    tnet_text_free(json);

    json = NULL;
    assert_int_equal(tnet_run_importance(run, NULL, 101, &json, &err), TNET_E_USAGE);
    fail_if(tnet_run_importance(run, NULL, 2, &json, &err) != 0, "%s", err.text);
    const char *u = strstr(json, "\"importance\":[{\"slot\":\"u\",\"auc\":0.");
    assert_non_null(u);
    assert_non_null(strstr(u, "{\"slot\":\"p\",\"auc\":"));
    assert_true(strtod(strstr(u, "auc") + 5, NULL) > .1); /* the label is made of it */
    tnet_text_free(json);

    assert_int_equal(tnet_run_predict(run, NULL, add_scores, &k, &err), 0);
    assert_int_equal(k.n_scores, VALID_ROWS);

    (void)snprintf(to, sizeof to, "%s/export", k.dir);
    assert_int_equal(tnet_run_export(run, to, id, &err), 0);
    assert_int_equal(strlen(id), 32);
    char path[400];
    (void)snprintf(path, sizeof path, "%s/%s/EXPORT.json", to, id);
    assert_true(tn_path_exists(path));
    tnet_run_free(run);
}

TEST(a_run_without_a_folder_leaves_none)
{
    OPEN(kit, k, "");
    tnet_run *run = run_of(&k, NULL, 0);
    char dir[4096];
    (void)snprintf(dir, sizeof dir, "%s", tnet_run_dir(run));
    assert_true(tn_path_is_dir(dir));
    train(run);
    tnet_run_free(run);
    assert_false(tn_path_exists(dir));
}

TEST(a_run_is_saved_opened_and_gone_on_with)
{
    OPEN(kit, k, "");
    tnet_error err = {0};
    char to[300];
    char *before = NULL;
    char *after = NULL;
    (void)snprintf(to, sizeof to, "%s/kept", k.dir);
    tnet_run *run = run_of(&k, (const char *const[]){"train.epochs=1"}, 1);
    assert_int_equal(tnet_run_save(run, to, &err), TNET_E_EXPORT);
    assert_non_null(strstr(err.text, "nothing is learned yet"));
    train(run);
    assert_int_equal(tnet_run_save(run, to, &err), 0);
    assert_int_equal(tnet_run_save(run, to, &err), TNET_E_USAGE);
    assert_int_equal(tnet_run_evaluate(run, NULL, &before, &err), 0);
    tnet_run_free(run);

    const tnet_run_opts opts = {.size = sizeof opts, .path = to, .hooks = &k.hooks};
    tnet_run *again = NULL;
    fail_if(tnet_run_open(&opts, &again, &err) != 0, "%s", err.text);
    assert_string_equal(tnet_run_dir(again), to);
    fail_if(tnet_run_evaluate(again, NULL, &after, &err) != 0, "%s", err.text);
    const char *one = strstr(before, "\"auc\":");
    const char *two = strstr(after, "\"auc\":");
    assert_true(one != NULL && two != NULL);
    assert_memory_equal(one, two, 16);
    tnet_text_free(before);
    tnet_text_free(after);
    assert_int_equal(tnet_run_set(again, "train.epochs=2", &err), 0);
    train(again);
    assert_non_null(strstr(k.last_record, "\"epoch\":2"));
    tnet_run_free(again);
}

TEST(hooks_end_training)
{
    OPEN(kit, k, "");
    tnet_error err = {0};
    const char *const many[] = {"train.epochs=50"};
    k.ends = 1;
    tnet_run *run = run_of(&k, many, 1);
    train(run);
    assert_int_equal(k.n_evaluated, 1);
    tnet_run_free(run);

    k.ends = 0;
    k.asks = 1;
    run = run_of(&k, many, 1);
    assert_int_equal(tnet_run_train(run, &err), TNET_E_STOPPED);
    char *json = NULL;
    fail_if(tnet_run_evaluate(run, NULL, &json, &err) != 0, "%s", err.text); /* it is kept */
    tnet_text_free(json);
    tnet_run_free(run);
}

static bool has_file(tnet_run *run, const char *name)
{
    char path[5000];
    (void)snprintf(path, sizeof path, "%s/%s", tnet_run_dir(run), name);
    return tn_path_exists(path);
}

TEST(training_goes_on_or_begins_anew_as_asked)
{
    OPEN(kit, k, "");
    tnet_error err = {0};
    tnet_run *run = run_of(&k, (const char *const[]){"train.epochs=1"}, 1);
    assert_int_equal(tnet_run_train_as(run, TNET_RESUME, &err), TNET_E_EXPORT);
    assert_int_equal(tnet_run_train_as(run, TNET_RESUME | TNET_FRESH, &err), TNET_E_USAGE);
    assert_non_null(strstr(err.text, "only one of them"));
    assert_int_equal(tnet_run_train_as(run, TNET_AGAIN, &err), TNET_E_USAGE);
    assert_non_null(strstr(err.text, "data.days is not set"));
    assert_int_equal(tnet_run_train_as(run, 8, &err), TNET_E_USAGE);
    train(run);
    fail_if(tnet_run_train_as(run, TNET_RESUME, &err) != 0, "%s", err.text);
    assert_false(has_file(run, "earlier-1"));
    fail_if(tnet_run_train_as(run, TNET_FRESH, &err) != 0, "%s", err.text);
    assert_true(has_file(run, "earlier-1") && has_file(run, "ckpt-1"));
    tnet_run_free(run);
}

TEST(training_saves_when_asked)
{
    OPEN(kit, k, "");
    static const char *const never[] = {"train.epochs=1", "checkpoint.every=never"};
    tnet_run *run = run_of(&k, never, 2);
    train(run);
    assert_false(has_file(run, "ckpt-1"));
    tnet_run_free(run);
    run = run_of(&k, never, 2);
    tnet_run_checkpoint(run); /* after the first step */
    train(run);
    assert_true(has_file(run, "ckpt-1"));
    assert_null(strstr(k.lines, "stopped"));
    tnet_run_free(run);
    tnet_run_checkpoint(NULL);
}

TEST(all_faults_of_a_configuration_are_told)
{
    tnet_error err = {0};
    tnet_run *run = NULL;
    const tnet_run_opts opts = {.size = sizeof opts,
                                .config = "model: deepfn\ndata: {fromat: csv}\nslots: [a]\n",
                                .path = "mine.yaml"};
    assert_int_equal(tnet_run_new(&opts, &run, &err), TNET_E_CONFIG);
    assert_null(run);
    assert_non_null(strstr(err.text, "mine.yaml:1:8: error: unknown"));
    assert_non_null(strstr(err.text, "mine.yaml:2:8: error: unknown key 'fromat'"));
}

/* The probabilities of rows for one task. */
typedef struct clicks_of {
    float click[2 * VALID_ROWS];
    size_t n;
} clicks_of;

static int keep_clicks(void *arg, const float *logits, const float *clicks, size_t n)
{
    clicks_of *c = arg;
    (void)logits;
    assert_true(c->n + n <= sizeof c->click / sizeof c->click[0]);
    memcpy(c->click + c->n, clicks, n * sizeof *clicks);
    c->n += n;
    return 0;
}

/* Shares are no more than what they are shares of, row by row. */
static void check_predictions(tnet_run *run)
{
    static const char *const names[] = {NULL, "click", "buy", "late"};
    static clicks_of of[4];
    tnet_error err = {0};
    for (size_t k = 0; k < 4; k++) {
        of[k].n = 0;
        fail_if(tnet_run_predict_task(run, NULL, names[k], keep_clicks, &of[k], &err) != 0, "%s",
                err.text);
        assert_int_equal(of[k].n, VALID_ROWS);
    }
    assert_memory_equal(of[0].click, of[1].click, VALID_ROWS * sizeof(float));
    for (size_t i = 0; i < VALID_ROWS; i++) {
        assert_true(of[1].click[i] > of[2].click[i] && of[2].click[i] > of[3].click[i]);
    }
    assert_int_equal(tnet_run_predict_task(run, NULL, "bay", keep_clicks, &of[0], &err),
                     TNET_E_USAGE);
    assert_non_null(strstr(err.text, "the run has no task 'bay'"));
}

/* A row has a click, or else a 'buy': each row contradicts one of the two shares. */
TEST(tasks_whose_labels_contradict_each_other_are_named)
{
    kit k;
    char want[200];
    kit_open(&k, "");
    k.hooks.metric = NULL;
    k.hooks.evaluated = NULL;
    (void)snprintf(k.config, sizeof k.config,
                   "data: {format: csv, train: %s/t.csv, valid: %s/v.csv}\n"
                   "slots: [{name: u, type: str}]\n"
                   "tasks:\n"
                   "  click: {label: label}\n"
                   "  buy: {label: {column: label, values: {'1': 0, '0': 1}}, of: click}\n"
                   "  late: {label: label, of: buy}\n"
                   "  none: {label: {column: label, threshold: 9}}\n"
                   "model: {type: shared, hidden: [4], tower: [4]}\ntrain: {epochs: 1}\neval: "
                   "{calibrate: none}\n",
                   k.dir, k.dir);
    tnet_run *run = run_of(&k, NULL, 0);
    train(run);
    check_predictions(run);
    tnet_run_free(run);
    (void)snprintf(want, sizeof want,
                   "%d rows of data.train have 'buy' without 'click' or 'late' without 'buy', ",
                   TRAIN_ROWS);
    fail_if(strstr(k.lines, want) == NULL, "%s is not in: %s", want, k.lines);
    assert_non_null(strstr(k.lines, "task 'none' learns nothing"));
    kit_close(&k);
}

TEST(what_only_programs_may_do_is_refused)
{
    OPEN(kit, k, "");
    static const char *const refused[] = {"compute.pin=true", "cluster.peers=[a, b]"};
    for (size_t i = 0; i < 2; i++) {
        tnet_error err = {0};
        tnet_run *run = NULL;
        const tnet_run_opts opts = {
            .size = sizeof opts, .config = k.config, .overrides = &refused[i], .n_overrides = 1};
        assert_int_equal(tnet_run_new(&opts, &run, &err), TNET_E_CONFIG);
        assert_non_null(strstr(err.text, "is for the programs"));
    }
}

TEST(a_forked_child_is_refused)
{
    OPEN(kit, k, "");
    tnet_run *run = run_of(&k, NULL, 0);
    const pid_t child = fork();
    if (child == 0) {
        tnet_error err = {0};
        const int code = tnet_run_train(run, &err);
        const bool said = strstr(err.text, "made in another process") != NULL &&
                          tnet_run_set(run, "train.epochs=2", &err) == TNET_E_USAGE &&
                          tnet_run_data(run, TNET_TRAIN, NULL, &err) == TNET_E_USAGE;
        tnet_run_free(run);
        _exit(code == TNET_E_USAGE && said ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(tn_path_is_dir(tnet_run_dir(run)));
    tnet_run_free(run);
}

static void *train_in_thread(void *arg)
{
    tnet_error err = {0};
    return tnet_run_train(arg, &err) == 0 ? NULL : arg;
}

static void take_id(tnet_run *run, const kit *k, char id[33])
{
    tnet_error err = {0};
    char to[300];
    (void)snprintf(to, sizeof to, "%s/e", k->dir);
    fail_if(tnet_run_export(run, to, id, &err) != 0, "%s", err.text);
}

TEST(runs_side_by_side_are_as_alone_and_have_their_own_lines)
{
    OPEN(kit, k, "");
    OPEN(kit, other, "");
    char id[3][33];
    tnet_run *alone = run_of(&k, NULL, 0);
    train(alone);
    take_id(alone, &k, id[0]);
    tnet_run_free(alone);
    memset(k.lines, 0, sizeof k.lines);

    tnet_run *run[2] = {run_of(&k, NULL, 0),
                        run_of(&other, (const char *const[]){"run.seed=7"}, 1)};
    pthread_t thread[2];
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, train_in_thread, run[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) {
        void *failed = run;
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
    }
    take_id(run[0], &k, id[1]);
    take_id(run[1], &other, id[2]);
    assert_string_equal(id[0], id[1]);
    assert_string_not_equal(id[0], id[2]);
    assert_null(strstr(k.lines, other.dir));
    assert_null(strstr(other.lines, k.dir));
    tnet_run_free(run[0]);
    tnet_run_free(run[1]);
}

TEST(wrong_calls_are_refused)
{
    tnet_error err = {0};
    tnet_run *run = (tnet_run *)&err;
    const tnet_run_opts nothing = {.size = sizeof nothing};
    assert_int_equal(tnet_run_new(NULL, &run, &err), TNET_E_USAGE);
    assert_null(run);
    assert_int_equal(tnet_run_new(&nothing, &run, &err), TNET_E_USAGE);
    assert_non_null(strstr(err.text, "neither 'config' nor 'path'"));
    assert_int_equal(tnet_run_train(NULL, &err), TNET_E_USAGE);
    assert_int_equal(tnet_run_data(NULL, 0, NULL, NULL), TNET_E_USAGE);
    assert_int_equal(tnet_run_evaluate(NULL, NULL, NULL, &err), TNET_E_USAGE);
    assert_int_equal(tnet_run_predict(NULL, NULL, NULL, NULL, &err), TNET_E_USAGE);
    assert_non_null(strstr(err.text, "nobody takes the scores"));
    tnet_run_free(NULL);
    tnet_run_stop(NULL);
    tnet_text_free(NULL);
    assert_int_equal(tnet_train_abi(), TNET_TRAIN_ABI);
}

/* ---- without memory ---- */

/* Does all that a run does; returns the first code that is not 0. */
static int use(kit *k, tnet_run *run, char id[33], tnet_error *err)
{
    char *json = NULL;
    char to[300];
    (void)snprintf(to, sizeof to, "%s/e", k->dir);
    int code = tnet_run_set(run, "train.threads=2", err);
    code = code == 0 ? tnet_run_train(run, err) : code;
    code = code == 0 ? tnet_run_importance(run, NULL, 1, &json, err) : code;
    tnet_text_free(json);
    code = code == 0 ? tnet_run_predict(run, NULL, add_scores, k, err) : code;
    return code == 0 ? tnet_run_export(run, to, id, err) : code;
}

TEST(refused_memory_is_an_error_and_the_run_works_on)
{
    static const char *const short_run[] = {"train.epochs=1", "data.group=u",
                                            "train.stop.monitor=valid.gauc"};
    OPEN(kit, k, "eval: {auc: exact, metrics: [gauc, ndcg], slices: [u]}\n");
    char id[33];
    char again[33];
    tnet_error err = {0};
    uint32_t refused = 0;
    tnet_run *run = run_of(&k, short_run, 3);
    fail_if(use(&k, run, id, &err) != 0, "%s", err.text);
    tnet_run_free(run);
    for (uint64_t nth = 1;; nth += 1 + nth / 10) {
        const tnet_run_opts opts = {.size = sizeof opts,
                                    .config = k.config,
                                    .overrides = short_run,
                                    .n_overrides = 3,
                                    .hooks = &k.hooks};
        tn_alloc_refuse_from(nth);
        int code = tnet_run_new(&opts, &run, &err);
        code = code == 0 ? use(&k, run, again, &err) : code;
        tn_alloc_refuse_from(0);
        if (code == 0) {
            tnet_run_free(run);
            break;
        }
        refused++;
        fail_if(code != TNET_E_MEMORY, "at %llu: %d: %s", (unsigned long long)nth, code, err.text);
        assert_non_null(strstr(err.text, "memory"));
        if (run != NULL && refused % 8 == 0) {
            fail_if(use(&k, run, again, &err) != 0, "at %llu: %s", (unsigned long long)nth,
                    err.text);
            assert_string_equal(again, id);
        }
        tnet_run_free(run);
    }
    assert_true(refused > 50);
}

#ifndef TN_SANITIZED
/* Uses a run where the address space may grow by so many megabytes; the code. */
static int use_within(kit *k, uint32_t megabytes)
{
    tnet_error err = {0};
    tnet_run *run = NULL;
    char id[33];
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_true(f != NULL && fscanf(f, "%lu", &pages) == 1); // NOLINT(cert-err34-c)
    (void)fclose(f);
    const rlim_t most = (rlim_t)pages * 4096 + ((rlim_t)megabytes << 20);
    const struct rlimit limit = {most, most};
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    const tnet_run_opts opts = {.size = sizeof opts, .config = k->config};
    int code = tnet_run_new(&opts, &run, &err);
    code = code == 0 ? use(k, run, id, &err) : code;
    if (code != 0 && code != TNET_E_MEMORY) {
        (void)fprintf(stderr, "within %u MB: %d: %s\n", megabytes, code, err.text);
    }
    tnet_run_free(run);
    return code;
}

TEST(a_limit_of_memory_ends_no_process)
{
    OPEN(kit, k, "");
    uint32_t refused = 0;
    int last = -1;
    for (uint32_t megabytes = 1; megabytes <= 2048; megabytes += 1 + megabytes / 4) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(100 + use_within(&k, megabytes));
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        last = WEXITSTATUS(status) - 100; /* the library's own exit would be below 0 */
        assert_true(last == 0 || last == TNET_E_MEMORY);
        refused += last != 0;
    }
    assert_int_equal(last, 0);
    assert_true(refused > 5);
}
#endif

/* ---- rows in memory ---- */

typedef struct frame {
    uint32_t from, to;
    kit_stream stream;
} frame;

/* The rows of write_rows, of columns label, u and p. */
// NOLINTNEXTLINE(readability-non-const-parameter): as tnet_stream has it
static int open_frame(void *arg, struct ArrowArrayStream *out, char *why)
{
    frame *f = arg;
    const uint32_t n = f->to - f->from;
    int64_t *label = calloc(n, sizeof *label);
    int32_t *end = calloc(n + 1, sizeof *end);
    double *p = calloc(n, sizeof *p);
    char *text = calloc(n, 16);
    (void)why;
    assert_true(label != NULL && end != NULL && p != NULL && text != NULL);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = f->from + i;
        const uint32_t u = row * 7919 % 97;
        label[i] = (row * 31 + u * u) % 11 < u % 7;
        p[i] = row % 13 + .5;
        end[i + 1] = end[i] + snprintf(text + end[i], 16, "user %u", u);
    }
    f->stream.n = 1;
    f->stream.at = 0;
    kit_schema(&f->stream.schema, "+s", "");
    (void)kit_schema_child(&f->stream.schema, "l", "label");
    (void)kit_schema_child(&f->stream.schema, "u", "u");
    (void)kit_schema_child(&f->stream.schema, "g", "p");
    struct ArrowArray *batch = &f->stream.batch[0];
    kit_array(batch, n, NULL);
    kit_buffer(kit_child(batch, n, NULL), label, n * sizeof *label);
    struct ArrowArray *texts = kit_child(batch, n, NULL);
    kit_buffer(texts, end, (n + 1) * sizeof *end);
    kit_buffer(texts, text, (size_t)end[n]);
    kit_buffer(kit_child(batch, n, NULL), p, n * sizeof *p);
    kit_stream_open(out, &f->stream);
    free(label);
    free(end);
    free(p);
    free(text);
    return 0;
}

static void learn_frame(kit *k, int once, char id[33])
{
    tnet_error err = {0};
    frame train_rows = {.to = TRAIN_ROWS};
    frame valid_rows = {.from = TRAIN_ROWS, .to = TRAIN_ROWS + VALID_ROWS};
    const tnet_stream streams[] = {
        {.size = sizeof streams[0], .open = open_frame, .arg = &train_rows, .once = once},
        {.size = sizeof streams[0], .open = open_frame, .arg = &valid_rows}};
    const tnet_run_opts opts = {
        .size = sizeof opts,
        .config = "slots: [{name: u, type: str}, {name: p, type: float}]\n"
                  "model: {type: deepfm, hidden: [8]}\n",
    };
    tnet_run *run = NULL;
    fail_if(tnet_run_new(&opts, &run, &err) != 0, "%s", err.text);
    assert_int_equal(tnet_run_data(run, TNET_TRAIN, &streams[0], &err), 0);
    assert_int_equal(tnet_run_data(run, TNET_VALID, &streams[1], &err), 0);
    train(run);
    k->n_scores = 0;
    fail_if(tnet_run_predict(run, &streams[1], add_scores, k, &err) != 0, "%s", err.text);
    assert_int_equal(k->n_scores, VALID_ROWS);
    take_id(run, k, id);
    tnet_run_free(run);
    assert_int_equal(kit_live, 0);
}

TEST(rows_in_memory_make_the_model_of_the_same_file)
{
    OPEN(kit, k, "");
    char id[3][33];
    tnet_run *run = run_of(&k, NULL, 0);
    train(run);
    take_id(run, &k, id[0]);
    tnet_run_free(run);
    learn_frame(&k, 0, id[1]);
    learn_frame(&k, 1, id[2]);
    assert_string_equal(id[0], id[1]);
    assert_string_equal(id[0], id[2]);
}

/* ---- the process ---- */

typedef struct surroundings {
    struct rlimit files;
    void (*on[3])(int);
    char dir[4096];
    off_t printed;
    unsigned mode;
} surroundings;

static surroundings look_around(int printed)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGPIPE};
    surroundings s;
    memset(&s, 0, sizeof s);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &s.files), 0);
    for (size_t i = 0; i < 3; i++) {
        struct sigaction action;
        assert_int_equal(sigaction(signals[i], NULL, &action), 0);
        s.on[i] = action.sa_handler;
    }
    assert_non_null(getcwd(s.dir, sizeof s.dir));
    s.printed = lseek(printed, 0, SEEK_END);
    s.mode = (unsigned)(tn_flush_denormals() & 0xffc0); /* without the flags of what happened */
    tn_float_mode_set(s.mode | 0x1f80);
    return s;
}

TEST(refused_memory_is_an_error_with_rows_in_memory_too)
{
    OPEN(kit, k, "");
    uint32_t refused = 0;
    int code = -1;
    const tnet_run_opts opts = {.size = sizeof opts, .config = k.config};
    (void)snprintf(k.config, sizeof k.config,
                   "slots: [{name: u, type: str}, {name: p, type: float}]\n"
                   "model: lr\ntrain: {epochs: 2}\n");
    for (uint64_t nth = 1; code != 0; nth += 1 + nth / 10) {
        tnet_error err = {0};
        tnet_run *run = NULL;
        frame rows = {.from = 0, .to = 500};
        k.n_scores = 0;
        const tnet_stream stream = {
            .size = sizeof stream, .open = open_frame, .arg = &rows, .once = (int)(nth % 2)};
        tn_alloc_refuse_from(nth);
        code = tnet_run_new(&opts, &run, &err);
        code = code == 0 ? tnet_run_data(run, TNET_TRAIN, &stream, &err) : code;
        code = code == 0 ? tnet_run_train(run, &err) : code;
        code = code == 0 ? tnet_run_predict(run, &stream, add_scores, &k, &err) : code;
        tn_alloc_refuse_from(0);
        refused += code != 0;
        fail_if(code != 0 && code != TNET_E_MEMORY, "at %llu: %d: %s", (unsigned long long)nth,
                code, err.text);
        tnet_run_free(run);
        assert_int_equal(kit_live, 0);
    }
    assert_true(refused > 30 && k.n_scores == 500);
}

TEST(the_process_stays_as_it_was_and_nothing_is_printed)
{
    OPEN(kit, k, "log: {level: debug}\n");
    char path[300];
    (void)snprintf(path, sizeof path, "%s/printed", k.dir);
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    (void)fflush(stdout);
    (void)fflush(stderr);
    const int out = dup(STDOUT_FILENO);
    const int err = dup(STDERR_FILENO);
    assert_true(out >= 0 && err >= 0 && dup2(fileno(to), STDOUT_FILENO) >= 0 &&
                dup2(fileno(to), STDERR_FILENO) >= 0);
    const surroundings before = look_around(fileno(to));
    tnet_run *run = run_of(&k, NULL, 0);
    train(run);
    tnet_run_free(run);
    const surroundings after = look_around(fileno(to));
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(err, STDERR_FILENO);
    (void)close(out);
    (void)close(err);
    (void)fclose(to);
    assert_memory_equal(&before, &after, sizeof before);
}
