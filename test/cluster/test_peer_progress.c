/* test_peer_progress.c - what rank 0 tells of a run is of all ranks. */
#include "cluster/train/peer_progress.h"

#include "base/codec/json.h"
#include "support/test.h"
#include "train/grouprun.h"

CLOSER(tn_metrics_free);

enum { RECORDS_MAX = 200, SCORES = 6 };

/* ---- reports ---- */

static void fill(tn_metrics *m, uint32_t rounds)
{
    static const float logit[SCORES] = {-2, -1.5F, -1, 0, .5F, 2};
    static const float label[SCORES] = {0, 0, 1, 0, 1, 1};
    for (uint32_t i = 0; i < rounds; i++) {
        const tn_scored rows = {.n = SCORES, .logit = logit, .label = label};
        assert_int_equal(tn_metrics_add(m, &rows, NULL), TN_OK);
    }
}

static tn_metrics *coarse(void)
{
    tn_metrics *m = NULL;
    assert_int_equal(tn_metrics_new(&m, &(tn_metrics_opts){.coarse = true}, NULL), TN_OK);
    return m;
}

/* The number-th report of a rank: so many rounds in all. */
static void report(tn_peer_progress *r, uint32_t rank, uint64_t number, uint32_t rounds)
{
    tn_metrics *m FREED(tn_metrics_free) = coarse();
    tn_text packed CLEANUP(tn_text_done) = {0};
    fill(m, rounds);
    tn_metrics_pack(m, &packed);
    const tn_report_note note = {.number = number,
                                 .epoch = 1,
                                 .records = rounds,
                                 .bad = 1,
                                 .samples = (uint64_t)SCORES * rounds,
                                 .loss_sum = .5 * rounds,
                                 .weight_sum = rounds,
                                 .metrics = {packed.data, packed.size}};
    tn_peer_progress_take(r, rank, &note);
}

static void assert_total(tn_peer_progress *r, uint32_t rounds, uint32_t ranks)
{
    tn_ranks_sums sums;
    tn_metrics *m FREED(tn_metrics_free) = coarse();
    tn_metrics *expected FREED(tn_metrics_free) = coarse();
    fill(expected, rounds);
    tn_peer_progress_sums_of(r, &sums);
    assert_int_equal(sums.rows, (uint64_t)SCORES * rounds);
    assert_true(sums.weight == rounds && sums.loss == .5 * rounds);
    assert_true(sums.epoch == 1 && sums.records == rounds && sums.bad == ranks);
    assert_int_equal(tn_peer_progress_scores(r, m, NULL), TN_OK);
    assert_int_equal(tn_metrics_rows(m), tn_metrics_rows(expected));
    assert_true(tn_metrics_get(m, "auc") == tn_metrics_get(expected, "auc"));
    assert_true(tn_metrics_get(m, "logloss") == tn_metrics_get(expected, "logloss"));
}

TEST(m4_lost_repeated_and_late_reports_change_no_total)
{
    tn_peer_progress *r = NULL;
    assert_int_equal(tn_peer_progress_new(&r, 3, &(tn_metrics_opts){.sampling = 1}, NULL), TN_OK);
    report(r, 1, 1, 2);
    report(r, 2, 2, 3); /* the one before was lost */
    assert_total(r, 5, 2);
    report(r, 1, 3, 7);
    report(r, 1, 3, 7);
    report(r, 1, 2, 4);
    report(r, 2, 1, 1);
    assert_total(r, 10, 2);
    tn_peer_progress_free(r);
}

TEST(what_is_no_report_does_not_count)
{
    tn_peer_progress *r = NULL;
    assert_int_equal(tn_peer_progress_new(&r, 2, &(tn_metrics_opts){.sampling = 1}, NULL), TN_OK);
    report(r, 1, 1, 2);
    const tn_report_note note = {.number = 2, .samples = 99, .metrics = {"scores", 6}};
    tn_peer_progress_take(r, 1, &note);
    report(r, 1, 1, 5);
    tn_ranks_sums sums;
    tn_peer_progress_sums_of(r, &sums);
    assert_int_equal(sums.rows, 2 * SCORES);
    report(r, 1, 2, 4);
    assert_total(r, 4, 1);
    tn_peer_progress_free(r);
}

TEST(of_two_epochs_the_newer_one_counts)
{
    tn_peer_progress *r = NULL;
    assert_int_equal(tn_peer_progress_new(&r, 3, &(tn_metrics_opts){.sampling = 1}, NULL), TN_OK);
    tn_metrics *none FREED(tn_metrics_free) = coarse();
    tn_text packed CLEANUP(tn_text_done) = {0};
    tn_metrics_pack(none, &packed);
    const tn_note_bytes scores = {packed.data, packed.size};
    const tn_report_note old = {.number = 1, .epoch = 3, .records = 7, .bad = 2, .metrics = scores};
    const tn_report_note now = {.number = 1, .epoch = 4, .records = 5, .bad = 1, .metrics = scores};
    tn_ranks_sums sums;
    tn_peer_progress_take(r, 1, &old);
    tn_peer_progress_take(r, 2, &now);
    tn_peer_progress_sums_of(r, &sums);
    assert_true(sums.epoch == 4 && sums.records == 5 && sums.bad == 1);
    tn_peer_progress_free(r);
}

static void tell(tn_peer_progress *r, uint32_t rank, const tn_rank_counts *f, size_t cut)
{
    tn_text packed CLEANUP(tn_text_done) = {0};
    tn_rank_counts_pack(f, &packed);
    tn_peer_progress_add_counts(r, rank, (tn_note_bytes){packed.data, packed.size - cut});
}

TEST(figures_are_the_newest_of_each_rank)
{
    static char two[] = "x\0007\0y\0001";
    static char three[] = "y\0002\0z\0003";
    tn_peer_progress *r = NULL;
    assert_int_equal(tn_peer_progress_new(&r, 4, &(tn_metrics_opts){.sampling = 1}, NULL), TN_OK);
    tn_rank_counts one = {.number = 5, .epoch = 2, .held = {30, 25, 20, 400, 6, 5}};
    one.met = (tn_met){.counts = {.records = 10, .bytes = 100, .blank = 1, .bad = 8},
                       .reasons = {.data = two, .size = sizeof two}};
    tn_rank_counts other = {.number = 1, .epoch = 2, .held = {3, 1, 2, 40, 3, 2}};
    other.met = (tn_met){.counts = {.records = 7, .bytes = 70, .bad = 5, .duplicate_key = 2},
                         .reasons = {.data = three, .size = sizeof three}};
    const tn_rank_counts before = {
        .number = 9, .epoch = 1, .held = {1, 1, 1, 1, 1, 1}, .met = one.met};
    tell(r, 1, &one, 0);
    tell(r, 2, &other, 0);
    tell(r, 3, &before, 0); /* still in the epoch before */
    one.met.counts.records = 99;
    one.number = 4;
    tell(r, 1, &one, 0); /* late */
    one.number = 6;
    tell(r, 1, &one, 1); /* no figures, three times */
    tell(r, 1, &one, 3);
    tn_peer_progress_add_counts(r, 1, (tn_note_bytes){0});
    tn_met sum = {0};
    tn_held held = {0};
    tn_peer_progress_counts(r, &held, 2, &sum);
    assert_true(sum.counts.records == 17 && sum.counts.bytes == 170 && sum.counts.blank == 1);
    assert_true(sum.counts.bad == 13 && sum.counts.duplicate_key == 2);
    static const char all[] = "x\0007\0y\0003\0z\0003";
    assert_int_equal(sum.reasons.size, sizeof all);
    assert_memory_equal(sum.reasons.data, all, sizeof all);
    assert_true(held.created == 34 && held.admitted == 27 && held.rows == 23 && held.bytes == 441);
    assert_true(held.expired == 10 && held.evicted == 8);
    tn_met_done(&sum);
    tn_peer_progress_free(r);
}

/* ---- runs ---- */

static char dir[256], data[300], one_dir[300], all_dir[300];

static int set_up(void **state)
{
    (void)state;
    tn_tmpdir_make(dir);
    (void)snprintf(data, sizeof data, "%s/rows.tsv", dir);
    (void)snprintf(one_dir, sizeof one_dir, "%s/one", dir);
    (void)snprintf(all_dir, sizeof all_dir, "%s/all", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tn_tmpdir_remove(dir);
    return 0;
}

typedef struct record {
    double step, loss, auc, ctr, pctr;
} record;

static double number_of(const tn_json *o, const char *key)
{
    const tn_json *j = tn_json_get(o, key);
    assert_non_null(j);
    double value = 0;
    return tn_json_as_f64(j, &value) ? value : (double)NAN;
}

/* The `train` records of a run, oldest first. */
static uint32_t records_of(const char *run, record out[RECORDS_MAX])
{
    tn_text text CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    PATH_IN(path, run, "metrics.jsonl");
    assert_int_equal(tn_file_read_all(path, 1 << 24, &text, NULL), TN_OK);
    for (const char *at = tn_text_str(&text); *at != '\0'; at = strchr(at, '\n') + 1) {
        const tn_json *j = NULL;
        const size_t size = (size_t)(strchr(at, '\n') - at);
        assert_int_equal(tn_json_parse(&j, at, size, arena, "a record", NULL), TN_OK);
        if (strcmp(tn_json_as_str(tn_json_get(j, "kind")), "train") == 0) {
            assert_true(n < RECORDS_MAX);
            out[n++] = (record){number_of(j, "step"), number_of(j, "loss"), number_of(j, "auc"),
                                number_of(j, "ctr"), number_of(j, "pctr")};
        }
    }
    return n;
}

static const char *train_files(char out[TN_PATH_SIZE], uint32_t n)
{
    size_t used = (size_t)snprintf(out, TN_PATH_SIZE, "data.train=[");
    for (uint32_t r = 0; r < n; r++) {
        used +=
            (size_t)snprintf(out + used, TN_PATH_SIZE - used, "%s%s-%u", r > 0 ? "," : "", data, r);
    }
    (void)snprintf(out + used, TN_PATH_SIZE - used, "]");
    return out;
}

/* One process on batches of 32 rows, and n ranks on their parts of the same batches. */
static void run_both(uint32_t n, const char *every)
{
    char files[TN_PATH_SIZE];
    char batch[32];
    (void)snprintf(batch, sizeof batch, "train.batch=%u", 32 / n);
    grouprun_deal(data, n, 32 / n);
    const char *const one_opts[] = {every, "checkpoint.resume=never", "data.weight=~", NULL};
    const char *const opts[] = {every,       train_files(files, n), batch,
                                one_opts[1], one_opts[2],           NULL};
    grouprun one = {.config = "deepfm", .n = 1, .dir = one_dir, .more = one_opts};
    grouprun all = {.config = "deepfm", .n = n, .dir = all_dir, .more = opts, .whole = true};
    grouprun_well(&one);
    grouprun_well(&all);
    assert_int_equal(all.steps[0], one.steps[0]);
}

TEST_WITH(set_up, tear_down, losses_of_every_step_are_those_of_one_process)
{
    static record one[RECORDS_MAX];
    static record all[RECORDS_MAX];
    for (uint32_t n = 2; n <= 4; n *= 2) {
        run_both(n, "log.every=0s");
        const uint32_t k = records_of(one_dir, one);
        assert_true(k > 10);
        assert_int_equal(records_of(all_dir, all), k);
        for (uint32_t i = 0; i < k; i++) {
            assert_true(all[i].step == one[i].step);
            assert_true(fabs(all[i].loss - one[i].loss) < 2e-6);
        }
        tn_tmpdir_remove(dir);
        assert_int_equal(set_up(state), 0);
    }
}

TEST_WITH(set_up, tear_down, a_record_is_about_the_rows_of_all_ranks)
{
    static record one[RECORDS_MAX];
    static record all[RECORDS_MAX];
    run_both(4, "log.every=1000s");
    assert_int_equal(records_of(one_dir, one), 1);
    assert_int_equal(records_of(all_dir, all), 1);
    assert_true(fabs(all[0].loss - one[0].loss) < 1e-6);
    assert_true(fabs(all[0].auc - one[0].auc) < 1e-3);
    assert_true(fabs(all[0].ctr - one[0].ctr) < 1e-9);
    assert_true(fabs(all[0].pctr - one[0].pctr) < 1e-6);
}

TEST_WITH(set_up, tear_down, so_it_is_where_ranks_do_not_wait)
{
    static record all[RECORDS_MAX];
    tn_text text CLEANUP(tn_text_done) = {0};
    char files[TN_PATH_SIZE];
    grouprun_deal(data, 3, 8);
    const char *const opts[] = {
        train_files(files, 3),   "train.batch=16",          "log.every=1000s", "train.epochs=1",
        "cluster.staleness=inf", "checkpoint.resume=never", "data.weight=~",   NULL};
    grouprun group = {.config = "deepfm", .n = 3, .dir = all_dir, .more = opts};
    grouprun_well(&group);
    assert_int_equal(records_of(all_dir, all), 1);
    PATH_IN(path, all_dir, "summary.json");
    assert_int_equal(tn_file_read_all(path, 1 << 20, &text, NULL), TN_OK);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    const tn_json *summary = NULL;
    assert_int_equal(tn_json_parse(&summary, text.data, text.size, arena, "summary", NULL), TN_OK);
    assert_true(fabs(all[0].loss - number_of(tn_json_get(summary, "train"), "loss")) < 1e-6);
    assert_true(all[0].auc > .4 && all[0].ctr > 0);
    const double learned = number_of(summary, "rows_per_s") * number_of(summary, "seconds");
    assert_true(fabs(learned / (double)group.samples - 1) < 1e-6);
}

/* Each file ends with bad rows and a blank line. */
static void spoil(uint32_t n)
{
    for (uint32_t r = 0; r < n; r++) {
        tn_text text CLEANUP(tn_text_done) = {0};
        char path[TN_PATH_SIZE];
        (void)snprintf(path, sizeof path, "%s-%u", data, r);
        assert_int_equal(tn_file_read_all(path, 1 << 20, &text, NULL), TN_OK);
        tn_text_adds(&text, r == 0 ? "no row\n\n" : "x\ty\nno row\n\n");
        assert_int_equal(tn_file_replace(path, text.data, text.size, NULL), TN_OK);
    }
}

/* The last number of that name in a run's `table` records. */
static double told_of_table(const char *run, const char *name)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    double value = (double)NAN;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    PATH_IN(path, run, "metrics.jsonl");
    assert_int_equal(tn_file_read_all(path, 1 << 24, &text, NULL), TN_OK);
    for (const char *at = tn_text_str(&text); *at != '\0'; at = strchr(at, '\n') + 1) {
        const tn_json *j = NULL;
        const size_t size = (size_t)(strchr(at, '\n') - at);
        assert_int_equal(tn_json_parse(&j, at, size, arena, "a record", NULL), TN_OK);
        if (strcmp(tn_json_as_str(tn_json_get(j, "kind")), "table") == 0) {
            value = number_of(j, name);
        }
    }
    return value;
}

TEST_WITH(set_up, tear_down, the_summary_is_about_the_data_and_tables_of_all_ranks)
{
    static const char *const staleness[] = {"cluster.staleness=0", "cluster.staleness=1",
                                            "cluster.staleness=inf"};
    static const char *const every[] = {"checkpoint.every=1epoch", "checkpoint.every=never"};
    char files[TN_PATH_SIZE];
    grouprun_deal(data, 3, 8);
    spoil(3);
    for (uint32_t i = 0; i < 6; i++) {
        const char *const opts[] = {train_files(files, 3),      "train.epochs=2",
                                    "data.bad_records_max=50%", "checkpoint.resume=never",
                                    "train.batch=16",           every[i % 2],
                                    staleness[i / 2],           NULL};
        const char *const one_opts[] = {opts[0], opts[1], opts[2], opts[3], opts[4], opts[5], NULL};
        grouprun one = {.config = "deepfm", .n = 1, .dir = one_dir, .more = one_opts};
        grouprun all = {.config = "deepfm", .n = 2 + i % 2, .dir = all_dir, .more = opts};
        grouprun_well(&one);
        grouprun_well(&all);
        assert_non_null(strstr(one.summary, "\"blank\":3,\"bad\":{\"total\":5,"));
        assert_string_equal(all.summary, one.summary);
        const char *const names[] = {"rows", "created", "bytes"};
        for (uint32_t k = 0; i % 2 == 0 && k < 3; k++) {
            const double ours = told_of_table(all_dir, names[k]);
            assert_true(ours > 0);
            assert_true(ours == told_of_table(one_dir, names[k]));
        }
        tn_tmpdir_remove(all_dir);
        tn_tmpdir_remove(one_dir);
    }
}

/* Also where the run ends within an epoch, and nothing is saved that others could tell of. */
TEST_WITH(set_up, tear_down, tables_are_counted_where_nothing_is_saved)
{
    char files[TN_PATH_SIZE];
    grouprun_deal(data, 2, 16);
    const char *const one_opts[] = {
        "train.max_steps=3", "train.batch=32",         "data.shuffle=0",          "data.weight=~",
        "data.valid=~",      "checkpoint.every=never", "checkpoint.resume=never", NULL};
    const char *const opts[] = {one_opts[0], "train.batch=16",      one_opts[2],
                                one_opts[3], one_opts[4],           one_opts[5],
                                one_opts[6], train_files(files, 2), NULL};
    grouprun one = {.config = "deepfm", .n = 1, .dir = one_dir, .more = one_opts};
    grouprun all = {.config = "deepfm", .n = 2, .dir = all_dir, .more = opts, .whole = true};
    grouprun_well(&one);
    grouprun_well(&all);
    assert_string_equal(strstr(all.summary, "\"sparse_rows\""),
                        strstr(one.summary, "\"sparse_rows\""));
    tn_tmpdir_remove(all_dir);
    tn_tmpdir_remove(one_dir);
}
