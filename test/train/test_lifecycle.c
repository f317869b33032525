/* test_lifecycle.c - runs over some days in which rows expire, or leave a full table: the same rows
 * in every way to get there. */
#include "base/core/log.h"
#include "support/rounds.h"
#include "support/test.h"
#include "train/checkpoint/checkpoint.h"
#include "train/grouprun.h"
#include "train/trainrun.h"

enum { ROWS = 3000, DAYS = 3, OPTIONS = 16 };

/* What a run keeps; NULL ends the overrides. Whatever the combination, deltas and full checkpoints
 * are the same, and so are threads, kills and resumes. */
typedef struct lifecycle_case {
    const char *name;
    const char *more[4];
    bool expires, evicts;
} lifecycle_case;

#define STOP "embedding.memory=100MB"
#define EVICT "embedding.memory=5500kB", "embedding.on_full=evict"
#define NO_CAP "embedding.memory=none"
#define TTL "embedding.expiry.ttl_days=2"
#define SCORE "embedding.expiry.score_below=0.15"

static const lifecycle_case cases[] = {
    {"rows stay", {NO_CAP}, false, false},
    {"rows stay, below a cap", {STOP}, false, false},
    {"a full table", {EVICT}, false, true},
    {"by age", {TTL, NO_CAP}, true, false},
    {"by age, below a cap", {TTL, STOP}, true, false},
    {"by age, a full table", {TTL, EVICT}, true, true},
    {"by score", {SCORE, NO_CAP}, true, false},
    {"by score, below a cap", {SCORE, STOP}, true, false},
    {"by score, a full table", {SCORE, EVICT}, true, true},
    {"counts as inputs", {"embedding.cvm=true", TTL, NO_CAP}, true, false},
};
enum { CASES = sizeof cases / sizeof *cases };

static char dir[256];
static char data[DAYS][700]; /* data.train=.. */

/* The files of a day: new users and things every day, some of them twice, some from before. */
SET_UP
{
    tn_tmpdir_make(dir);
    for (uint32_t d = 0; d < DAYS; d++) {
        char path[2][300];
        for (uint32_t f = 0; f < 2; f++) {
            tn_text text CLEANUP(tn_text_done) = {0};
            tn_text_adds(&text,
                         "id\tprice\tlabel\tweight\tuser\titem\thist\ttags\ttags_x\tcity\trare\n");
            for (uint32_t i = f; i < ROWS; i += 2) {
                const uint32_t user = d * ROWS + i - i % 3;
                const uint32_t item = i % 5 == 0 ? i : 100000 * (d + 1) + i;
                tn_text_addf(&text, "r%u\t1\t%u\t\t%u\t%u\t%u\t\t\t%u\t%u\n", i, i % 3 == 0, user,
                             item, i % 9, i % 5, d * 77777 + 3 * i);
            }
            (void)snprintf(path[f], sizeof path[f], "%s/%u-%u.tsv", dir, d, f);
            assert_int_equal(tn_file_replace(path[f], text.data, text.size, NULL), TN_OK);
        }
        (void)snprintf(data[d], sizeof data[d], "data.train=[%s,%s]", path[0], path[1]);
    }
}

TEAR_DOWN
{
    tn_tmpdir_remove(dir);
}

/* The options of day d: an epoch of its own data, three days after the one before. */
typedef struct day_options {
    const char *more[OPTIONS];
    char day[40], epochs[40];
} day_options;

static void options_of(day_options *o, const lifecycle_case *c, uint32_t d, const char *const *more)
{
    static const char *const all[] = {"data.changed=accept", "train.batch=100", "eval.every=never",
                                      "checkpoint.strict=true"};
    uint32_t n = 0;
    (void)snprintf(o->day, sizeof o->day, "run.day=2026-11-%02u", 1 + 3 * d);
    (void)snprintf(o->epochs, sizeof o->epochs, "train.epochs=%u", d + 1);
    o->more[n++] = o->day;
    o->more[n++] = o->epochs;
    o->more[n++] = data[d];
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++) {
        o->more[n++] = all[i];
    }
    for (uint32_t i = 0; i < 4 && c->more[i] != NULL; i++) {
        o->more[n++] = c->more[i];
    }
    for (; more != NULL && *more != NULL; more++) {
        assert_true(n + 1 < OPTIONS);
        o->more[n++] = *more;
    }
    o->more[n] = NULL;
}

/* One process per day; returns the hash of the last checkpoint. */
static uint32_t train_days(const char *run_dir, const lifecycle_case *c, const char *const *more)
{
    uint32_t hash = 0;
    for (uint32_t d = 0; d < DAYS; d++) {
        day_options o;
        options_of(&o, c, d, more);
        const trainrun run = trainrun_do(run_dir, o.more, NULL);
        fail_if(run.status != TN_OK, "%s, day %u: %s", c->name, d, run.text);
        hash = run.hash;
    }
    assert_int_not_equal(hash, 0);
    return hash;
}

/* The number behind "name": in the last line of a kind of metrics.jsonl, behind `from`. */
static double told_behind(const char *run_dir, const char *kind, const char *from, const char *name)
{
    char words[60];
    tn_text text CLEANUP(tn_text_done) = {0};
    double value = -1;
    PATH_IN(path, run_dir, "metrics.jsonl");
    assert_int_equal(tn_file_read_all(path, 1 << 28, &text, NULL), TN_OK);
    (void)snprintf(words, sizeof words, "\"kind\":\"%s\"", kind);
    for (const char *at = strstr(tn_text_str(&text), words); at != NULL;
         at = strstr(at + 1, words)) {
        char member[60];
        (void)snprintf(member, sizeof member, "\"%s\":", name);
        const char *start = strstr(at, from);
        assert_non_null(start);
        const char *found = strstr(start, member);
        assert_non_null(found);
        value = strtod(found + strlen(member), NULL);
    }
    return value;
}

static double told(const char *run_dir, const char *kind, const char *name)
{
    return told_behind(run_dir, kind, "", name);
}

/* ---- every combination ---- */

/* Checkpoint by checkpoint, the first of which is full: with deltas, and all full. */
static void assert_same_checkpoints(const lifecycle_case *c, const char *a, const char *b)
{
    uint64_t n = 1;
    uint32_t deltas = 0;
    for (;; n++) {
        tn_saved full = {0};
        tn_saved delta = {0};
        const uint32_t want = trainrun_hash_with(a, n, c->more[0], &full);
        const uint32_t got = trainrun_hash_with(b, n, c->more[0], &delta);
        fail_if(want != got, "%s: checkpoint %llu of step %llu", c->name, (unsigned long long)n,
                (unsigned long long)full.step);
        if (want == 0) {
            break;
        }
        assert_int_equal(full.deltas, 0);
        deltas += delta.deltas > 0;
    }
    assert_true(n > 9);
    assert_true(deltas >= n - 1 - 2UL * DAYS); /* the first and the last of a process are full */
}

TEST(a_full_checkpoint_with_its_deltas_is_the_model)
{
    for (uint32_t i = tn_first_round(); i < CASES; i += tn_round_step()) {
        const lifecycle_case *c = &cases[i];
        const char *const full[] = {"checkpoint.every=8steps", NULL};
        const char *const delta[] = {"checkpoint.every=1000steps", "checkpoint.delta_every=8steps",
                                     NULL};
        char run_dir[2][300];
        (void)snprintf(run_dir[0], 300, "%s/full-%u", dir, i);
        (void)snprintf(run_dir[1], 300, "%s/delta-%u", dir, i);
        (void)train_days(run_dir[0], c, full);
        (void)train_days(run_dir[1], c, delta);
        assert_same_checkpoints(c, run_dir[0], run_dir[1]);
        assert_true((told(run_dir[0], "table", "expired") > 0) == c->expires);
        assert_true((told(run_dir[0], "table", "evicted") > 0) == c->evicts);
        tn_tmpdir_remove(run_dir[0]);
        tn_tmpdir_remove(run_dir[1]);
    }
}

/* Ended in the middle of each day, and gone on with. */
static uint32_t train_with_stops(const char *run_dir, const lifecycle_case *c)
{
    for (uint32_t d = 0; d < DAYS; d++) {
        char steps[40];
        const char *const more[] = {steps, NULL};
        day_options o;
        (void)snprintf(steps, sizeof steps, "train.max_steps=%u", ROWS / 100 * d + 13);
        options_of(&o, c, d, more);
        assert_int_equal(trainrun_do(run_dir, o.more, NULL).status, TN_OK);
        options_of(&o, c, d, NULL);
        const trainrun run = trainrun_do(run_dir, o.more, NULL);
        assert_int_equal(run.status, TN_OK);
        if (d == DAYS - 1) {
            return run.hash;
        }
    }
    return 0;
}

TEST(threads_and_stops_do_not_show)
{
    for (uint32_t i = tn_first_round(); i < CASES; i += tn_round_step() + i % 2) {
        const lifecycle_case *c = &cases[i];
        uint32_t hash = 0;
        char run_dir[300];
        for (uint32_t threads = 1; threads <= 4; threads *= 2) {
            char option[40];
            const char *const more[] = {option, NULL};
            (void)snprintf(option, sizeof option, "train.threads=%u", threads);
            (void)snprintf(run_dir, sizeof run_dir, "%s/threads-%u-%u", dir, i, threads);
            const uint32_t now = train_days(run_dir, c, more);
            hash = threads == 1 ? now : hash;
            assert_int_equal(now, hash);
        }
        (void)snprintf(run_dir, sizeof run_dir, "%s/stops-%u", dir, i);
        fail_if(train_with_stops(run_dir, c) != hash, "%s: stopped and gone on with", c->name);
    }
}

/* ---- several processes ---- */

/* Counts of all rows that one process ends with. */
static uint32_t counts_of_one(const char *run_dir, const lifecycle_case *c)
{
    uint32_t counts = 0;
    for (uint32_t d = 0; d < DAYS; d++) {
        day_options o;
        options_of(&o, c, d, NULL);
        grouprun g = {.config = "deepfm_bn", .n = 1, .dir = run_dir, .more = o.more};
        grouprun_well(&g);
        counts = g.counts;
    }
    return counts;
}

/* What expires does not depend on who owns it; deltas of three are the model. */
TEST(three_processes_let_the_same_rows_go)
{
    for (uint32_t i = tn_first_round(); i < CASES; i += tn_round_step()) {
        const lifecycle_case *c = &cases[i];
        uint32_t hash[2] = {0};
        uint32_t counts = 0;
        const char *const third = c->evicts ? "embedding.memory=1850kB" : NULL; /* of each */
        const char *const delta[] = {"checkpoint.every=1000steps", "checkpoint.delta_every=8steps",
                                     third, NULL};
        const char *const full[] = {third, NULL};
        for (uint32_t k = 0; k < 2; k++) {
            char run_dir[300];
            (void)snprintf(run_dir, sizeof run_dir, "%s/peers-%u-%u", dir, i, k);
            for (uint32_t d = 0; d < DAYS; d++) {
                day_options o;
                options_of(&o, c, d, k == 0 ? full : delta);
                grouprun g = {.config = "deepfm_bn", .n = 3, .dir = run_dir, .more = o.more};
                grouprun_well(&g);
                hash[k] = g.hash;
                counts = g.counts;
            }
            assert_true((told(run_dir, "table", "expired") > 0) == c->expires);
            assert_true((told(run_dir, "table", "evicted") > 0) == c->evicts);
        }
        assert_int_not_equal(hash[0], 0);
        assert_int_equal(hash[0], hash[1]);
        char run_dir[300];
        (void)snprintf(run_dir, sizeof run_dir, "%s/one-%u", dir, i);
        assert_true(c->evicts || counts_of_one(run_dir, c) == counts);
    }
}

/* ---- what is told ---- */

TEST(a_sweep_tells_what_left_of_each_slot)
{
    const lifecycle_case c = {"told", {TTL, "slots.rare.expiry={ttl_days: ~}"}, true, false};
    PATH_IN(run_dir, dir, "told");
    (void)train_days(run_dir, &c, NULL);
    assert_true(told(run_dir, "sweep", "expired") > 0);
    assert_true(told(run_dir, "sweep", "rows") > 0);
    assert_true(told_behind(run_dir, "sweep", "\"user\":{", "expired") > 0);
    assert_true(told_behind(run_dir, "sweep", "\"rare\":{", "expired") == 0); /* its own rule */
    assert_true(told_behind(run_dir, "sweep", "\"rare\":{", "rows") > ROWS);
    assert_true(told(run_dir, "sweep", "day") == 20764); /* 2026-11-07 */
}

TEST(a_cap_without_room_is_refused)
{
    const char *const more[] = {"embedding.memory=200kB", "embedding.on_full=evict", NULL};
    PATH_IN(run_dir, dir, "small");
    const trainrun run = trainrun_do(run_dir, more, NULL);
    assert_int_equal(run.status, TN_E_CONFIG);
    assert_non_null(strstr(run.text, "at least"));
}

static uint32_t warned;

static void count_warnings(tn_log_level level, const char *line)
{
    warned += level == TN_LOG_WARN && strstr(line, "cvm") != NULL;
}

/* Clicks of rows that were learned tell their labels. */
TEST(a_second_epoch_on_counts_is_warned_of)
{
    static const char *const more[][4] = {
        {"embedding.cvm=true", "train.epochs=2", NULL},
        {"embedding.cvm=true", "train.epochs=1", NULL},
        {"embedding.cvm=true", "train.epochs=2", "embedding.reset=epoch", NULL},
        {"train.epochs=2", NULL},
    };
    for (uint32_t i = 0; i < 4; i++) {
        char run_dir[300];
        (void)snprintf(run_dir, sizeof run_dir, "%s/warned-%u", dir, i);
        warned = 0;
        tn_log_set(count_warnings, TN_LOG_WARN);
        const trainrun run = trainrun_do(run_dir, more[i], NULL);
        tn_log_set(NULL, TN_LOG_WARN);
        assert_int_equal(run.status, TN_OK);
        assert_int_equal(warned, i == 0);
    }
}
