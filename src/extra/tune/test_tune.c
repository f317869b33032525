/* test_tune.c - who goes on, what is noted and what ends all, with programs that only pretend. */
#include "extra/tune/tune.h"

#include "base/core/arena.h"
#include "config/tree.h"
#include "support/test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Its run is 270 rows of batches of one. tnet-train notes each start, and pretends to pause. Values
 * of lr choose more: .5 has no room, .25 finds a full disk, .125 ends at half of the rows. */
static const char train[] =
    "#!/bin/sh\n"
    "pause=0\n"
    "for word; do case $word in\n"
    "--pause=*) pause=${word#*=} ;;\n"
    "run.dir=*) dir=${word#*=} ;;\n"
    "train.optimizer.lr=*) lr=${word#*=} ;;\n"
    "esac; done\n"
    "[ ! -e \"$dir/LOCK\" ] || flock -n \"$dir/LOCK\" true || exit 5\n"
    "mkdir -p \"$dir\"; echo \"$*\" >>\"$dir/starts\"; echo \"${lr:-0.001}\" >\"$dir/lr\"\n"
    "echo \"$pause\" >\"$dir/step\"\n"
    "case ${lr:-} in\n"
    "0.5) echo 'tnet-train: error: no room' >&2; exit 7 ;;\n"
    "0.25) echo 'tnet-train: error: the disk is full' >&2; exit 8 ;;\n"
    "0.125) echo 135 >\"$dir/step\"; exit 0 ;;\n"
    "0.0625) echo 1 >\"$dir/step\" ;;\n"
    "esac\n"
    "[ \"$pause\" -eq 0 ] && echo 270 >\"$dir/step\" && exit 0\n"
    "exit 75\n";
static const char eval[] =
    "#!/bin/sh\n"
    "for word; do case $word in -*|eval.*|train.*|data.*) ;; *) dir=$word ;; esac; done\n"
    "echo \"{\\\"step\\\":$(cat \"$dir/step\"),\\\"auc\\\":$(cat \"$dir/lr\")}\"\n";

typedef struct place {
    char dir[256];
    tn_arena *arena;
    tn_setup setup;
    tn_tune *tune;
    tn_error err;
    bool timed_out;
} place;

static const atomic_bool never;

static void write_text(place *p, const char *name, const char *text)
{
    char path[TN_PATH_SIZE];
    assert_ok(tn_path_join(p->dir, name, path, &p->err), p->err.text);
    assert_ok(tn_file_replace(path, text, strlen(text), &p->err), p->err.text);
    assert_int_equal(chmod(path, 0755), 0);
}

SET_UP
{
    static place p;
    tn_text rows = {0};
    p = (place){.timed_out = false};
    tn_tmpdir_make(p.dir);
    write_text(&p, "tnet-train", train);
    write_text(&p, "tnet-eval", eval);
    tn_text_adds(&rows, "label,a\n");
    for (uint32_t i = 0; i < 270; i++) {
        tn_text_addf(&rows, "%u,%u\n", i % 2, i % 7);
    }
    write_text(&p, "t.csv", tn_text_str(&rows));
    tn_text_adds(&rows, "0,1\n");
    write_text(&p, "v.csv", tn_text_str(&rows));
    tn_text_done(&rows);
    tn_text config = {0};
    tn_text_addf(&config,
                 "data: {format: csv, train: %s/t.csv, valid: %s/v.csv}\nslots: [{name: a}]\n"
                 "model: lr\ntrain: {epochs: 1, batch: 1}\nrun: {dir: %s/run}\n",
                 p.dir, p.dir, p.dir);
    write_text(&p, "c.yaml", tn_text_str(&config));
    tn_text_done(&config);
    *state = &p;
}

static void close_tune(place *p)
{
    tn_tune_close(p->tune);
    tn_setup_done(&p->setup);
    tn_arena_free(p->arena);
    p->tune = NULL;
    p->arena = NULL;
}

TEAR_DOWN
{
    place *p = *state;
    close_tune(p);
    tn_tmpdir_remove(p->dir);
}

/* Opens the configuration with a section tune. */
static tn_status open_tune(place *p, const char *section)
{
    static char words[512];
    static const char *list[] = {words};
    char config[300];
    (void)snprintf(words, sizeof words, "tune=%s", section);
    (void)snprintf(config, sizeof config, "%s/c.yaml", p->dir);
    p->arena = tn_arena_new(1 << 16);
    p->setup = (tn_setup){.arena = p->arena};
    p->setup.binder = (tn_binder){.arena = p->arena, .diag = &p->setup.diag};
    const char *path = tn_tree_text(p->arena, config, strlen(config));
    const tn_setup_in in = {.path = path, .overrides = {1, list}};
    assert_ok(tn_setup_load(&p->setup, &in, &p->err), p->err.text);
    const tn_tune_opts o = {
        .folder = p->dir, .config = path, .overrides = in.overrides, .stop = &never};
    return tn_tune_open(&p->tune, &p->setup, &o, &p->err);
}

static tn_status run_tune(place *p, const char *section)
{
    TN_TRY(open_tune(p, section));
    TN_TRY(tn_tune_begin(p->tune, false, &p->err));
    return tn_tune_run(p->tune, &p->timed_out, &p->err);
}

/* How often tnet-train was started for a trial. */
static uint32_t starts(place *p, uint32_t trial)
{
    tn_text dir CLEANUP(tn_text_done) = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    char path[400];
    uint32_t n = 0;
    (void)snprintf(path, sizeof path, "%s/starts", tn_tune_folder(p->tune, trial, &dir));
    if (tn_path_exists(path)) {
        assert_ok(tn_file_read_all(path, 1 << 20, &text, &p->err), p->err.text);
    }
    for (const char *at = tn_text_str(&text); *at != '\0'; at++) {
        n += *at == '\n';
    }
    return n;
}

#define NINE "{trials: 9, parallel: 2, space: {train.optimizer.lr: {range: [0, 0.1]}}}"

TEST_ON(place *p, the_best_third_goes_on_to_three_times_as_many_rows)
{
    assert_ok(run_tune(p, NINE), p->err.text);
    double lr[9] = {0.001};
    uint32_t of[4] = {0};
    for (uint32_t i = 0; i < 9; i++) {
        const tn_strs v = tn_tune_values(p->tune, i);
        lr[i] = v.n > 0 ? strtod(strchr(v.item[0], '=') + 1, NULL) : lr[i];
        assert_in_range(starts(p, i), 1, 3);
        of[starts(p, i)]++;
    }
    assert_true(of[1] == 6 && of[2] == 2 && of[3] == 1);
    for (uint32_t i = 0; i < 9; i++) { /* the larger lr is the better one */
        for (uint32_t k = 0; k < 9; k++) {
            assert_true(lr[i] <= lr[k] || starts(p, i) >= starts(p, k));
        }
    }
    assert_int_equal(starts(p, tn_tune_best(p->tune)), 3);
    tn_text table CLEANUP(tn_text_done) = {0};
    tn_tune_text(p->tune, &table);
    assert_non_null(strstr(tn_text_str(&table), "   30  train.optimizer.lr=")); /* 1/9 of 270 */
    assert_non_null(strstr(tn_text_str(&table), "   90  train.optimizer.lr="));
    assert_non_null(strstr(tn_text_str(&table), "  270  train.optimizer.lr="));
}

TEST_ON(place *p, the_page_has_a_line_for_each_trial_with_values)
{
    tn_text page CLEANUP(tn_text_done) = {0};
    char path[TN_PATH_SIZE];
    assert_ok(run_tune(p, "{method: grid, space: {train.optimizer.lr: [0.5, 0.01, 0.02], "
                          "train.batch: [1]}}"),
              p->err.text);
    assert_ok(tn_tune_page_write(p->tune, &p->err), p->err.text);
    assert_ok(tn_path_join(p->dir, "run/tune/tune.html", path, &p->err), p->err.text);
    assert_ok(tn_file_read_all(path, 1 << 20, &page, &p->err), p->err.text);
    /* 960 wide and 420 high with margins: axes at 70, 480 and 890 from 390 up to 50 */
    assert_non_null(strstr(tn_text_str(&page),
                           "<polyline points=\"70.0,50.0 480.0,220.0 890.0,50.0\" class=\"best\">"
                           "<title>trial 2</title>"));
    assert_non_null(strstr(tn_text_str(&page),
                           "<polyline points=\"70.0,220.0 480.0,220.0 890.0,390.0\" class=\"last\">"
                           "<title>trial 1</title>"));
    assert_null(strstr(tn_text_str(&page), "<title>trial 0</title>")); /* it had no room */
    assert_non_null(strstr(tn_text_str(&page), "  train.optimizer.lr=0.5 train.batch=1\n"));
}

TEST_ON(place *p, what_is_finished_is_not_done_again)
{
    assert_ok(run_tune(p, NINE), p->err.text);
    const uint32_t best = tn_tune_best(p->tune);
    close_tune(p);
    assert_ok(run_tune(p, NINE), p->err.text);
    assert_int_equal(tn_tune_best(p->tune), best);
    assert_int_equal(starts(p, best), 3);
    assert_int_equal(starts(p, 0), 1);
}

TEST_ON(place *p, a_trial_without_room_is_left_out_and_the_next_ones_go_on)
{
    assert_ok(run_tune(p, "{method: grid, space: {train.optimizer.lr: [0.5, 0.01, 0.02]}}"),
              p->err.text);
    assert_int_equal(tn_tune_best(p->tune), 2);
    tn_text table CLEANUP(tn_text_done) = {0};
    tn_tune_text(p->tune, &table);
    assert_non_null(strstr(tn_text_str(&table), "    0        n/a      0  train.optimizer.lr=0.5"));
}

TEST_ON(place *p, a_full_disk_ends_all_and_is_no_result)
{
    static const char section[] =
        "{method: grid, parallel: 1, space: {train.optimizer.lr: [0.25]}}";
    assert_int_equal(run_tune(p, section), TN_E_IO);
    assert_non_null(strstr(p->err.text, "trial 0: tnet-train ended with code 8: tnet-train: error: "
                                        "the disk is full"));
    close_tune(p);
    assert_int_equal(run_tune(p, section), TN_E_IO); /* it is tried again */
    assert_int_equal(starts(p, 0), 2);
}

TEST_ON(place *p, a_run_that_ended_early_is_not_started_again)
{
    assert_ok(run_tune(p, "{trials: 3, parallel: 1, space: {train.optimizer.lr: [0.125]}}"),
              p->err.text);
    assert_int_equal(tn_tune_best(p->tune), 1);
    assert_int_equal(starts(p, 1), 1);
}

TEST_ON(place *p, a_trial_that_a_signal_has_ended_is_no_result)
{
    assert_int_equal(run_tune(p, "{trials: 4, eta: 2, space: {train.optimizer.lr: [0.0625]}}"),
                     TN_E_IO);
    assert_non_null(strstr(p->err.text, "trial 1 was ended by a signal at step 1 of 135"));
}

TEST_ON(place *p, time_ends_it_and_the_same_again_goes_on)
{
    assert_ok(run_tune(p, "{trials: 9, time: 1ms, space: {train.optimizer.lr: {range: [0, 0.1]}}}"),
              p->err.text);
    assert_true(p->timed_out);
    close_tune(p);
    assert_ok(run_tune(p, NINE), p->err.text);
    assert_false(p->timed_out);
    assert_int_equal(starts(p, tn_tune_best(p->tune)) >= 3, 1);
}

/* One that an earlier tnet-tune has left still saves for a moment. */
TEST_ON(place *p, a_trial_that_is_still_being_saved_is_waited_for)
{
    static const char section[] = "{method: grid, space: {train.optimizer.lr: [0.01]}}";
    tn_text dir CLEANUP(tn_text_done) = {0};
    assert_ok(open_tune(p, section), p->err.text);
    assert_ok(tn_dir_make(tn_tune_folder(p->tune, 0, &dir), &p->err), p->err.text);
    int taken[2];
    char byte = 0;
    assert_int_equal(pipe(taken), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        tn_lock *lock = NULL;
        const struct timespec moment = {.tv_nsec = 300000000};
        const bool held = tn_lock_take(&lock, tn_text_str(&dir), 1, NULL) == TN_OK;
        const ssize_t said = write(taken[1], held ? "h" : "n", 1);
        (void)nanosleep(&moment, NULL);
        _exit(said == 1 ? 0 : 1);
    }
    assert_int_equal(read(taken[0], &byte, 1), 1);
    assert_int_equal(byte, 'h');
    close_tune(p);
    assert_ok(run_tune(p, section), p->err.text);
    assert_int_equal(starts(p, 0), 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)close(taken[0]);
    (void)close(taken[1]);
}

TEST_ON(place *p, values_from_elsewhere_are_one_whole_trial_more)
{
    double value = 0;
    assert_ok(run_tune(p, NINE), p->err.text);
    assert_ok(tn_tune_try(p->tune, "{\"train.optimizer.lr\": 0.75, \"train.batch\": \"2\"}", &value,
                          &p->err),
              p->err.text);
    assert_true(value == 0.75); /* its whole run, the largest value */
    assert_int_equal(tn_tune_best(p->tune), 9);
    assert_int_equal(starts(p, 9), 1);
    close_tune(p);
    assert_ok(run_tune(p, NINE), p->err.text);
    assert_int_equal(tn_tune_best(p->tune), 9);
    assert_int_equal(tn_tune_try(p->tune, "[]", &value, &p->err), TN_E_USAGE);
    assert_int_equal(tn_tune_try(p->tune, "{\"train.nothing\": 1}", &value, &p->err), TN_E_CONFIG);
}

TEST_ON(place *p, lists_that_have_fewer_values_than_trials_are_drawn_once)
{
    assert_ok(run_tune(p, "{trials: 9, space: {train.optimizer.lr: [0.01, 0.02]}}"), p->err.text);
    tn_text table CLEANUP(tn_text_done) = {0};
    tn_tune_text(p->tune, &table);
    assert_non_null(strstr(tn_text_str(&table), "(as configured)"));
    assert_non_null(strstr(tn_text_str(&table), "lr=0.01\n"));
    uint32_t lines = 0;
    for (const char *at = tn_text_str(&table); *at != '\0'; at++) {
        lines += *at == '\n';
    }
    assert_int_equal(lines, 4);
}

TEST_ON(place *p, no_rows_to_judge_by_and_no_direction_are_refused)
{
    assert_int_equal(open_tune(p, "{goal: valid.ctr}"), TN_E_CONFIG);
    assert_non_null(strstr(tn_text_str(&p->setup.diag.text), "'valid.ctr' cannot be watched"));
    close_tune(p);
    assert_int_equal(open_tune(p, "{method: grid}"), TN_E_CONFIG);
    assert_non_null(strstr(p->err.text, "not all of tune.space are lists"));
}
