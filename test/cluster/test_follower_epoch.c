/* test_follower_epoch.c - ranks that ask for their parts: each record once, whoever is slow, idle
 * or takes over.
 */
#include "base/core/failpoint.h"
#include "support/test.h"
#include "train/grouprun.h"

enum { COPIES = 4 };

static char dir[256], run_dir[300], data[2000];

GROUP_SET_UP
{
    tn_tmpdir_make(dir);
    (void)snprintf(run_dir, sizeof run_dir, "%s/run", dir);
    char rows[300];
    size_t used = (size_t)snprintf(data, sizeof data, "data.train=[");
    for (uint32_t i = 0; i < COPIES; i++) {
        (void)snprintf(rows, sizeof rows, "%s/rows-%u.tsv", dir, i);
        grouprun_deal(rows, 1, 1);
        used += (size_t)snprintf(data + used, sizeof data - used, "%s%s", i > 0 ? "," : "", rows);
    }
    (void)snprintf(data + used, sizeof data - used, "]");
}

GROUP_TEAR_DOWN
{
    tn_tmpdir_remove(dir);
}

/* `n` ranks, or one, over these parts; more is ended by NULL. */
static grouprun learn_parts(uint32_t n, const char *const *more, bool whole)
{
    grouprun g = {.config = "deepfm", .n = n, .dir = run_dir, .more = more, .whole = whole};
    grouprun_well(&g);
    assert_int_not_equal(g.counts, 0);
    return g;
}

static grouprun learn(uint32_t n, const char *const *more)
{
    return learn_parts(n, more, false);
}

#define SMALL_OF(rows) rows, "data.part_bytes=1KiB", "train.epochs=1", "train.batch=8"
#define SMALL SMALL_OF(data)
#define FRESH "checkpoint.resume=never"

static const char *const staleness[] = {"cluster.staleness=1", "cluster.staleness=inf"};

TEST(c3_a_slow_rank_has_less_to_do_and_nothing_is_done_twice)
{
    const char *const once[] = {SMALL, FRESH, NULL};
    const grouprun one = learn(1, once);
    for (uint32_t i = 0; i < 2; i++) {
        const char *const opts[] = {SMALL, FRESH, staleness[i], NULL};
        for (uint32_t slow = 0; slow < 3; slow++) {
            char rule[32];
            (void)snprintf(rule, sizeof rule, "step.%u:sleep=100", slow);
            assert_int_equal(tn_failpoint_set(rule, NULL), TN_OK);
            const grouprun all = learn(3, opts);
            assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
            assert_int_equal(all.samples, one.samples);
            assert_int_equal(all.counts, one.counts);
            assert_string_equal(all.summary, one.summary);
            const uint64_t others = all.rows[1] + all.rows[2];
            const uint64_t own = slow == 0 ? all.samples - others : all.rows[slow];
            assert_true(own < (all.samples - own) / 2);
        }
    }
}

/* Rows that both have read are counted once, also bad ones. */
TEST(what_a_straggler_gives_back_is_counted_once)
{
    char bad[TN_PATH_SIZE];
    tn_text rows = {0};
    (void)snprintf(bad, sizeof bad, "%s/rows-0.tsv", dir);
    assert_int_equal(tn_file_read_all(bad, 1 << 20, &rows, NULL), TN_OK);
    for (char *at = rows.data + rows.size / 8; at < rows.data + rows.size; at += rows.size / 8) {
        *strchr(at, '\n') = ' '; /* two rows in a line */
    }
    (void)snprintf(bad, sizeof bad, "%s/bad.tsv", dir);
    assert_int_equal(tn_file_replace(bad, rows.data, rows.size, NULL), TN_OK);
    tn_text_done(&rows);
    char files[3 * sizeof bad + 32];
    (void)snprintf(files, sizeof files, "data.train=[%s,%s,%s]", bad, bad, bad);
    const char *const opts[] = {files,
                                "data.part_bytes=4KiB",
                                "data.bad_records_max=50%",
                                "data.shuffle=0",
                                "train.epochs=1",
                                "train.batch=4",
                                FRESH,
                                staleness[0],
                                NULL};
    const grouprun one = learn(1, opts);
    for (uint32_t slow = 0; slow < 2; slow++) {
        char rule[32];
        (void)snprintf(rule, sizeof rule, "step.%u:sleep=1000", slow); /* a part takes 10 s */
        assert_int_equal(tn_failpoint_set(rule, NULL), TN_OK);
        grouprun all = {.config = "deepfm", .n = 2, .dir = run_dir, .more = opts, .fast = "20"};
        grouprun_well(&all);
        assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
        assert_true(all.reassigned > 0);
        assert_null(strstr(all.summary, "\"total\":0,"));
        assert_string_equal(all.summary, one.summary);
        assert_int_equal(all.counts, one.counts);
    }
}

TEST(c3_two_parts_are_for_two_of_three_ranks)
{
    char two[700];
    (void)snprintf(two, sizeof two, "data.train=[%s/rows-0.tsv,%s/rows-1.tsv]", dir, dir);
    const char *const opts[] = {two, "train.epochs=4", FRESH, staleness[1], NULL};
    const grouprun one = learn(1, opts);
    const grouprun all = learn_parts(3, opts, true);
    assert_int_equal(all.samples, one.samples);
    assert_int_equal(all.counts, one.counts);
}

TEST(c4_a_rank_without_a_part_takes_part_in_everything)
{
    const char *const opts[] = {"eval.every=3steps",
                                "checkpoint.every=5steps",
                                "train.epochs=3",
                                "model.bias_init=prior",
                                FRESH,
                                staleness[0],
                                NULL};
    const grouprun one = learn(1, opts);
    const grouprun all = learn_parts(4, opts, true); /* the data are one part */
    assert_int_equal(all.samples, one.samples);
    assert_int_equal(all.counts, one.counts);
    assert_int_equal(all.valid_rows, one.valid_rows);
    uint32_t idle = 0;
    for (uint32_t r = 1; r < 4; r++) {
        idle += all.rows[r] == 0;
    }
    assert_true(idle > 0);
}

/* Evaluations and checkpoints between all steps: what is held is neither lost nor read twice. */
TEST(many_cuts_leave_each_record_once)
{
    const char *const once[] = {SMALL, FRESH, NULL};
    const char *const opts[] = {
        SMALL, FRESH, "checkpoint.every=5steps", "eval.every=27steps", staleness[1], NULL};
    const grouprun one = learn(1, once);
    const grouprun all = learn(3, opts);
    assert_int_equal(all.samples, one.samples);
    assert_int_equal(all.counts, one.counts);
}

/* K8 on request: 3 -> 1 -> 2 -> 4 processes, at several stalenesses, within one epoch. */
TEST(k8_any_number_of_ranks_goes_on_within_an_epoch)
{
    const char *const once[] = {SMALL, FRESH, NULL};
    const grouprun one = learn(1, once);
    static const struct {
        uint32_t n;
        const char *staleness, *stop;
    } turn[] = {{3, "cluster.staleness=inf", "train.max_steps=20"},
                {1, "cluster.staleness=0", "train.max_steps=50"},
                {2, "cluster.staleness=1", "train.max_steps=80"},
                {3, "cluster.staleness=0", "train.max_steps=84"},
                {4, "cluster.staleness=2", "train.max_steps=100000"}};
    grouprun last = {0};
    uint64_t samples = 0;
    for (uint32_t i = 0; i < 5; i++) {
        const char *const opts[] = {SMALL, i == 0 ? FRESH : "checkpoint.resume=must",
                                    turn[i].staleness, turn[i].stop, NULL};
        last = learn(turn[i].n, opts);
        assert_true(last.samples >= samples);
        assert_true(i == 4 || last.samples < one.samples);
        samples = last.samples;
    }
    assert_int_equal(last.samples, one.samples);
    assert_int_equal(last.counts, one.counts);
}

/* Its first work is an evaluation: no rank has asked another for values before. */
TEST(a_finished_run_that_is_begun_again_only_evaluates)
{
    for (size_t i = 0; i < 2; i++) {
        const char *const first[] = {SMALL, FRESH, staleness[i], NULL};
        const char *const again[] = {SMALL, "checkpoint.resume=must", staleness[i], NULL};
        const grouprun done = learn(2, first);
        const grouprun same = learn(2, again);
        assert_int_equal(same.samples, done.samples);
        assert_int_equal(same.counts, done.counts);
    }
}

/* Alive, but with a step that takes longer than the limit: 10 s, while the others have their few
 * parts done in less than one, and then wait for 2 s. */
TEST(who_does_not_give_back_ends_all_with_its_name)
{
    static const char slow[] = "step.0:sleep=5,step.2:sleep=5,step.1:sleep=10000";
    char rows[300];
    (void)snprintf(rows, sizeof rows, "data.train=[%s/rows-0.tsv]", dir);
    const char *const opts[] = {SMALL_OF(rows), FRESH, staleness[1], NULL};
    grouprun all = {
        .config = "deepfm", .n = 3, .dir = run_dir, .more = opts, .fast = "20", .silence = "8"};
    assert_int_equal(tn_failpoint_set(slow, NULL), TN_OK);
    grouprun_do(&all);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(all.status[r], TN_E_PEER);
        assert_memory_equal(all.text[r], "rank 1 (host '", 14);
        assert_non_null(strstr(all.text[r], " at step "));
        assert_non_null(strstr(all.text[r], "does not give back the part of the data that it has, "
                                            "and is taken for lost"));
    }
}

/* Rank 0 or another one fails while the others wait for a part. */
TEST(a_failure_ends_those_that_wait_for_a_part)
{
    const char *const opts[] = {FRESH, staleness[0], NULL}; /* one part */
    grouprun all = {.config = "deepfm", .n = 3, .dir = run_dir, .more = opts, .whole = true};
    assert_int_equal(tn_failpoint_set("step#4:EIO", NULL), TN_OK);
    grouprun_do(&all);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(all.status[r], TN_E_IO);
        assert_non_null(strstr(all.text[r], "made to fail"));
    }
}
