/* test_report.c - what people see of a run, from its first line to its last, and what programs do.
 */
#include "base/codec/json.h"
#include "config/absent.h"
#include "support/test.h"
#include "train/trainrun.h"

enum { STEPS = 8 }; /* of an epoch */

static char dir[256];
static tn_text shown;

static int set_up(void **state)
{
    (void)state;
    tn_tmpdir_make(dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tn_text_done(&shown);
    tn_tmpdir_remove(dir);
    return 0;
}

FIXTURE(set_up, tear_down);

static void train(const char *const *more)
{
    trainrun o = trainrun_show(dir, more, &shown);
    assert_ok(o.status, o.text);
}

/* The line that begins with `begin`; there is one. */
static const char *only_line(const char *begin)
{
    static char line[400];
    uint32_t n = 0;
    for (const char *at = tn_text_str(&shown); *at != '\0';) {
        size_t size = strcspn(at, "\n");
        if (strncmp(at, begin, strlen(begin)) == 0) {
            (void)snprintf(line, sizeof line, "%.*s", (int)size, at);
            n++;
        }
        at += size + 1;
    }
    fail_if(n != 1, "%u lines begin with '%s' in:\n%s", n, begin, tn_text_str(&shown));
    return line;
}

static void assert_has(const char *line, const char *text)
{
    assert_says(line, text);
}

/* The first percentages of an epoch are estimated; all rows are read before the first step. */
TEST(the_bar_counts_what_is_learned_not_what_is_read)
{
    train((const char *const[]){"data.shuffle=100000", "log.every=0s", "train.epochs=2", NULL});
    uint32_t n = 0;
    const char *at = tn_text_str(&shown);
    while ((at = strstr(at, "epoch ")) != NULL) {
        unsigned long epoch = strtoul(at + strlen("epoch "), NULL, 10);
        const char *percent = strstr(at, "/2 ");
        const char *step = strstr(at, "step ");
        if (percent == NULL || step == NULL) {
            break; /* a line of something else */
        }
        unsigned long done = strtoul(percent + strlen("/2 "), NULL, 10);
        unsigned long steps = strtoul(step + strlen("step "), NULL, 10) - (epoch - 1) * STEPS;
        assert_in_range(done, 100 * steps / STEPS - 2, 100 * steps / STEPS + 2);
        n++;
        at = step;
    }
    assert_int_equal(n, 2 * STEPS);
}

TEST(a_run_closes_with_rows_time_scores_and_place)
{
    train(NULL);
    char line[400];
    (void)snprintf(line, sizeof line, "%s", only_line("trained "));
    assert_has(line, "rows in ");
    assert_has(line, " rows/s; valid loss 0.");
    assert_has(line, ", auc 0.");
    assert_true(strstr(line, "progressive") == NULL && strlen(line) <= 80);
    const char *last = only_line("all in /");
    assert_has(last, dir);
    const char *at = strstr(tn_text_str(&shown), line);
    assert_true(at != NULL &&
                strlen(at) == strlen(line) + strlen(last) + 2); /* nothing after them */
}

TEST(without_validation_the_scores_of_training_are_called_progressive)
{
    train((const char *const[]){"data.valid=~", NULL});
    assert_has(only_line("trained "), "; progressive loss 0.");
    assert_has(only_line("  on rows"),
               "known from earlier epochs: only data.valid shows how others");
}

TEST(in_the_first_pass_they_are_of_rows_not_seen_before)
{
    train((const char *const[]){"data.valid=~", "train.max_steps=5", NULL});
    assert_has(only_line("  each row"), " was scored before it was learned");
}

/* ---- for programs ---- */

/* The file of the run. */
static void read_file(const char *name, tn_text *out)
{
    char path[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(dir, name, path, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 20, out, NULL), TN_OK);
}

/* Names in order, those of an object behind its own in parentheses; of a list the first item's. */
static void name_members(const tn_json *value, tn_text *out)
{
    const tn_json *of = value->kind == TN_JSON_LIST ? value->first : value;
    for (const tn_json *m = of != NULL ? of->first : NULL; m != NULL; m = m->next) {
        tn_text_addf(out, "%s%s", m == of->first ? "" : " ", m->key);
        if (m->first != NULL && m->first->key != NULL) {
            tn_text_addc(out, '(');
            name_members(m, out);
            tn_text_addc(out, ')');
        }
    }
}

static void assert_members(const char *text, size_t size, const char *want)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    tn_text got CLEANUP(tn_text_done) = {0};
    const tn_json *json = NULL;
    assert_int_equal(tn_json_parse(&json, text, size, arena, "a record", NULL), TN_OK);
    name_members(json, &got);
    assert_string_equal(tn_text_str(&got), want);
}

/* The nth line of this kind. */
static void assert_record(const tn_text *log, const char *kind, const char *want)
{
    char has[64];
    (void)snprintf(has, sizeof has, "\"kind\":\"%s\"", kind);
    for (const char *at = log->data; *at != '\0';) {
        const size_t size = strcspn(at, "\n");
        const char *found = strstr(at, has);
        if (found != NULL && found < at + size) {
            assert_members(at, size, want);
            return;
        }
        at += size + 1;
    }
    fail_msg("no %s in:\n%s", has, log->data);
}

#define HEAD "t kind step epoch samples "
#define SLICE "(sign rows auc logloss copc ctr pctr)"

TEST(every_record_has_its_documented_members)
{
    tn_text log CLEANUP(tn_text_done) = {0};
    train((const char *const[]){"eval.metrics=[auc,ks]", "eval.slices=[city]", "log.every=0s",
                                "run.deterministic=true", NULL});
    read_file("metrics.jsonl", &log);
    assert_record(&log, "start",
                  HEAD "version run_id config_hash resumed_from peers threads cpu seed");
    assert_record(&log, "train",
                  HEAD "loss loss_hex auc copc ctr pctr lr rows_per_s grad_norm keys rss_bytes "
                       "wait_ms(read pull push) compute_ms pulled_bytes pushed_bytes staleness_max "
                       "bad_records");
    assert_record(&log, "eval",
                  HEAD "data rows loss loss_hex auc logloss copc ctr pctr ne brier ece pr_auc gauc "
                       "ks slices(city) best");
    assert_non_null(strstr(log.data, "\"slices\":{\"city\":[{\"sign\":\""));
    assert_non_null(strstr(log.data, "\"resumed_from\":null"));
    assert_record(&log, "ckpt", HEAD "name delta bytes rows seconds stall_ms");
    assert_record(&log, "table", HEAD "created admitted expired evicted rows bytes");
    assert_record(&log, "end", HEAD "status exit_code seconds");
}

/* The only event file of a folder of tb. */
static void read_events(const char *run, tn_text *out)
{
    char folder[TN_PATH_SIZE];
    char path[TN_PATH_SIZE];
    uint32_t n = 0;
    tn_text names CLEANUP(tn_text_done) = {0};
    (void)snprintf(folder, sizeof folder, "%s/tb/%s", dir, run);
    assert_int_equal(tn_dir_list(folder, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 1);
    assert_int_equal(tn_path_join(folder, tn_text_str(&names), path, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 24, out, NULL), TN_OK);
}

/* A tag is a text with its size before it. */
static bool has_tag(const tn_text *events, const char *tag)
{
    char want[100];
    const int size = snprintf(want, sizeof want, "\n%c%s", (char)strlen(tag), tag);
    return memmem(events->data, events->size, want, (size_t)size) != NULL;
}

TEST(a_chart_has_the_loss_of_training_and_of_validation)
{
    static const char *const machine[] = {"~system/rows_per_s", "~system/wait_ms/read",
                                          "~system/ckpt/bytes", "~system/rss_bytes"};
    tn_text events[2] = {{0}};
    char tb[TN_PATH_SIZE];
    train(NULL);
    assert_int_equal(tn_path_join(dir, "tb", tb, NULL), TN_OK);
    if (!tn_path_exists(tb)) {
        skip(); /* src/extra/tensorboard is not built */
    }
    read_events("train", &events[0]);
    read_events("valid", &events[1]);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(has_tag(&events[i], "loss") && has_tag(&events[i], "auc"));
        for (uint32_t k = 0; k < 4; k++) {
            assert_int_equal(has_tag(&events[i], machine[k]), i == 0);
        }
        assert_false(has_tag(&events[i], "rows_per_s") || has_tag(&events[i], "rows"));
        tn_text_done(&events[i]);
    }
}

TEST(the_summary_has_its_documented_members)
{
    tn_text summary CLEANUP(tn_text_done) = {0};
    train((const char *const[]){"eval.metrics=[copc,ks]", "embedding.memory=none", NULL});
    read_file("summary.json", &summary);
    assert_members(summary.data, summary.size,
                   "format version status exit_code run_id tnet config_hash started seconds steps "
                   "samples epochs rows_per_s step_ms(predicted measured) peers pulled_bytes "
                   "pushed_bytes begun data(sources bytes records blank bad(total by_reason) "
                   "duplicate_key parts_reassigned) train(loss) valid(rows auc logloss copc "
                   "ks) test best model(dense_params sparse_rows sparse_bytes) checkpoint(name "
                   "crc32c) host(cpu cores blas peak_rss_bytes) warnings");
    const char *text = summary.data;
    static const char begin[] = "{\"format\":\"tnet-summary\",\"version\":[1,0],\"status\":\"ok\","
                                "\"exit_code\":0,\"run_id\":\"";
    assert_memory_equal(text, begin, strlen(begin));
    assert_non_null(strstr(text, "\"tnet\":\"" TN_VERSION "\",\"config_hash\":\"0123456789abcdef"));
    assert_non_null(strstr(text, "\"steps\":24,\"samples\":\""));
    assert_non_null(strstr(text, ",\"epochs\":3,\"rows_per_s\":"));
    /* of a run shorter than a tenth of a second it is null */
    const char *predicted = strstr(text, "\"step_ms\":{\"predicted\":");
    assert_non_null(predicted);
    predicted += strlen("\"step_ms\":{\"predicted\":");
    assert_true(strncmp(predicted, "null,", 5) == 0 || strtod(predicted, NULL) > 0);
    assert_non_null(strstr(text, "\"peers\":1,\"pulled_bytes\":\"0\","));
    assert_non_null(strstr(text, ",\"ks\":0."));
    assert_non_null(strstr(text, "},\"test\":null,\"best\":null,"));
    assert_non_null(strstr(text, "\"checkpoint\":{\"name\":\"ckpt-"));
    if (!tn_is_absent("advise")) {
        assert_non_null(strstr(text,
                               ",\"warnings\":[\"24 steps in all: the model has hardly begun to "
                               "learn; a larger train.epochs (it is 3) or a smaller train.batch "
                               "(it is 32) would help\"]}\n"));
    }
}

TEST(the_summary_of_a_failed_run_says_why)
{
    tn_text summary CLEANUP(tn_text_done) = {0};
    trainrun o = trainrun_do(
        dir, (const char *const[]){"data.bad_records_max=0", "data.valid=/nonexistent", NULL},
        NULL);
    assert_true(o.status != TN_OK);
    read_file("summary.json", &summary);
    assert_non_null(strstr(summary.data, "\"status\":\"failed\",\"exit_code\":"));
    assert_non_null(strstr(summary.data, ",\"error\":\""));
}

/* Of 30 evaluations after 8 steps each, that of step 104 is the first that may tell it. */
TEST(a_run_that_diverges_says_so_once_while_it_runs)
{
    static const char *const wild[] = {"train.optimizer.lr=100", "train.epochs=30", NULL};
    static const char *const tame[] = {"train.epochs=30", NULL};
    static const char warned[] = "\"text\":\"valid loss ";
    tn_text log = {0};
    train(wild);
    read_file("metrics.jsonl", &log);
    const char *at = strstr(log.data, warned);
    assert_non_null(at);
    assert_non_null(strstr(at, " at step 104 is "));
    assert_non_null(strstr(at, "the run diverges; try smaller learning rates"));
    assert_non_null(strstr(at, "\"kind\":\"eval\"")); /* it goes on */
    assert_null(strstr(at + 1, warned));
    tn_text_done(&log);

    tear_down(state);
    set_up(state);
    train(tame);
    read_file("metrics.jsonl", &log);
    assert_null(strstr(log.data, "the run diverges"));
    tn_text_done(&log);
}
