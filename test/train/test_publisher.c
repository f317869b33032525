/* test_publisher.c - what a run publishes is the model, row by row, whatever fails or is missing.
 */
#include "train/run/publisher.h"

#include "support/test.h"

#include "base/core/failpoint.h"
#include "config/diag.h"
#include "dict/dict_deltas.h"
#include "train/checkpoint/run_state.h"
#include "train/export/export.h"
#include "train/golden.h"
#include "train/trainrun.h"

enum { MORE_MAX = 12, DIM_MAX = 64 };

/* A run of 24 steps and its folder of exports, `<dir>/to`. */
typedef struct run {
    char dir[256];
    char to[TN_PATH_SIZE];
    char option[TN_PATH_SIZE + 16];
} run;

static void open_run(run *r)
{
    tn_tmpdir_make(r->dir);
    assert_int_equal(tn_path_join(r->dir, "to", r->to, NULL), TN_OK);
    (void)snprintf(r->option, sizeof r->option, "export.to=%s", r->to);
}

static trainrun do_run(const run *r, const char *every, const char *const *more,
                       const atomic_bool *stop)
{
    const char *words[MORE_MAX + 3] = {r->option, every};
    uint32_t n = 2;
    for (; more != NULL && *more != NULL; more++) {
        assert_true(n < MORE_MAX);
        words[n++] = *more;
    }
    return trainrun_do(r->dir, words, stop);
}

static void run_well(const run *r, const char *every, const char *const *more)
{
    const trainrun o = do_run(r, every, more, NULL);
    assert_ok(o.status, o.text);
}

/* The id in LATEST; "": there is none. */
static void latest(const run *r, char id[TN_MODEL_ID_TEXT])
{
    char path[TN_PATH_SIZE];
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_path_join(r->to, "LATEST", path, NULL), TN_OK);
    id[0] = '\0';
    if (tn_file_read_all(path, 64, &text, NULL) == TN_OK) {
        assert_int_equal(text.size, TN_MODEL_ID_TEXT); /* and a line feed */
        memcpy(id, tn_text_str(&text), TN_MODEL_ID_TEXT - 1);
        id[TN_MODEL_ID_TEXT - 1] = '\0';
    }
}

/* The chain that LATEST names, newest first; fails where a layer is missing. */
static tn_dict_stack chain(const run *r)
{
    char id[TN_MODEL_ID_TEXT];
    char path[TN_PATH_SIZE];
    tn_dict_stack stack;
    tn_error err = {0};
    latest(r, id);
    assert_int_equal(tn_path_join(r->to, id, path, NULL), TN_OK);
    assert_ok(tn_dict_stack_open(&stack, path, "dict.tnd", TN_VERIFY_FULL, &err), err.text);
    return stack;
}

static uint32_t count_in(const char *folder)
{
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(folder, &names, &n, NULL), TN_OK);
    return n;
}

/* The same names and LATEST in both; what bears one name has the same EXPORT.json, which holds the
 * sums of all its files. */
static void assert_same_exports(const run *a, const run *b)
{
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(a->to, &names, &n, NULL), TN_OK);
    assert_int_equal(count_in(b->to), n);
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n; i++, name += strlen(name) + 1) {
        tn_text text[2] = {{0}, {0}};
        const run *const both[] = {a, b};
        for (uint32_t k = 0; k < 2; k++) {
            char path[TN_PATH_SIZE];
            char file[TN_PATH_SIZE];
            const bool is_export = strcmp(name, "LATEST") != 0;
            assert_int_equal(tn_path_join(both[k]->to, name, path, NULL), TN_OK);
            assert_int_equal(tn_path_join(path, "EXPORT.json", file, NULL), TN_OK);
            assert_int_equal(tn_file_read_all(is_export ? file : path, 1 << 16, &text[k], NULL),
                             TN_OK);
        }
        assert_string_equal(tn_text_str(&text[0]), tn_text_str(&text[1]));
        tn_text_done(&text[0]);
        tn_text_done(&text[1]);
    }
}

/* ---- base and deltas ---- */

/* All rows of checkpoint `n`. */
static void export_whole(const run *r, uint32_t n, char path[TN_PATH_SIZE])
{
    char checkpoint[TN_PATH_SIZE];
    char to[TN_PATH_SIZE];
    tn_error err = {0};
    tn_exported made;
    tn_diag diag = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const tn_binder b = {.arena = arena, .diag = &diag};
    (void)snprintf(checkpoint, sizeof checkpoint, "%s/ckpt-%u", r->dir, n);
    assert_int_equal(tn_path_join(r->dir, "whole", to, NULL), TN_OK);
    const tn_export_request request = {.checkpoint = checkpoint, .to = to, .binder = &b};
    const tn_model_plan *plan =
        golden_plan(arena, "deepfm_bn", (const char *const[]){"model.dropout=0.2", NULL});
    assert_ok(tn_export(plan, &request, &made, &err), err.text);
    memcpy(path, made.path, sizeof made.path);
}

/* Both have the same keys with the same weights. */
static void assert_same_rows(const tn_dict_stack *a, const tn_dict_stack *b)
{
    tn_dict_live *live[2] = {NULL, NULL};
    uint64_t n[2] = {0, 0};
    assert_int_equal(tn_dict_stack_list(a, &live[0], &n[0], NULL), TN_OK);
    assert_int_equal(tn_dict_stack_list(b, &live[1], &n[1], NULL), TN_OK);
    assert_true(n[0] > 0 && n[0] == n[1]);
    for (uint64_t i = 0; i < n[0]; i++) {
        assert_true(live[0][i].key == live[1][i].key && live[0][i].group == live[1][i].group);
        const tn_dict_query query = {live[0][i].key, live[0][i].group};
        const tn_dict_stack *const both[] = {a, b};
        float w[2][2][DIM_MAX] = {0};
        for (uint32_t k = 0; k < 2; k++) {
            tn_dict_row row;
            assert_int_equal(tn_dict_stack_find(both[k], 1, &query, &row, NULL), TN_OK);
            assert_non_null(row.at);
            for (uint32_t s = 0; s < 2; s++) {
                bool there = false;
                for (uint32_t dim = 1; dim <= DIM_MAX && !there; dim++) {
                    there = tn_dict_get(&row, s, dim, w[k][s]);
                }
            }
        }
        assert_memory_equal(w[0], w[1], sizeof w[0]);
    }
    tn_free(live[0]);
    tn_free(live[1]);
}

/* Eight deltas fit on one full export; the tenth is full again. Steps 2, 4 .. 24. */
TEST(base_and_deltas_are_the_whole_row_by_row)
{
    static const char *const until[] = {"train.max_steps=18", NULL};
    run r;
    char path[TN_PATH_SIZE];
    tn_dict_stack whole;
    open_run(&r);
    run_well(&r, "export.every=2steps", until);
    tn_dict_stack stack = chain(&r);
    assert_int_equal(stack.n, TN_DICT_DELTAS_MAX + 1);
    export_whole(&r, 9, path);
    assert_int_equal(tn_dict_stack_open(&whole, path, "dict.tnd", TN_VERIFY_FULL, NULL), TN_OK);
    assert_int_equal(whole.n, 1);
    assert_same_rows(&stack, &whole);
    tn_dict_stack_close(&stack);
    tn_dict_stack_close(&whole);
    run_well(&r, "export.every=2steps", NULL);
    stack = chain(&r);
    assert_int_equal(stack.n, 3);
    tn_dict_stack_close(&stack);
    assert_int_equal(count_in(r.to), 13);
    tn_tmpdir_remove(r.dir);
}

/* Also at the end of an epoch, where the checkpoint that is due would hold changes. */
TEST(checkpoints_of_changes_are_no_obstacle)
{
    static const char *const deltas[] = {"checkpoint.every=100steps",
                                         "checkpoint.delta_every=4steps", NULL};
    static const char *const every[] = {"export.every=6steps", "export.every=1epoch"};
    for (uint32_t i = 0; i < 2; i++) {
        run plain;
        run with;
        open_run(&plain);
        open_run(&with);
        run_well(&plain, every[i], NULL);
        run_well(&with, every[i], deltas);
        assert_same_exports(&plain, &with);
        assert_true(count_in(with.to) >= 4);
        tn_tmpdir_remove(plain.dir);
        tn_tmpdir_remove(with.dir);
    }
}

/* Its newest checkpoint holds changes only. */
TEST(a_run_that_has_ended_publishes_its_model_when_it_is_told_to)
{
    static const char *const deltas[] = {"checkpoint.every=100steps",
                                         "checkpoint.delta_every=4steps", NULL};
    run r;
    char id[TN_MODEL_ID_TEXT];
    open_run(&r);
    run_well(&r, "export.every=never", deltas);
    latest(&r, id);
    assert_string_equal(id, "");
    run_well(&r, "export.every=1epoch", deltas);
    tn_dict_stack stack = chain(&r);
    assert_int_equal(stack.n, 1);
    tn_dict_stack_close(&stack);
    assert_int_equal(count_in(r.to), 2);
    tn_tmpdir_remove(r.dir);
}

/* An export, an evaluation that finds the best model, and the end of the run come at one step. */
TEST(a_run_that_ends_where_an_export_is_due_publishes_once)
{
    static const char *const words[] = {"train.max_steps=8", "eval.every=8steps",
                                        "train.stop={monitor: valid.logloss, patience: 9}",
                                        "eval.calibrate=platt", NULL};
    run r;
    char path[TN_PATH_SIZE];
    tn_text text CLEANUP(tn_text_done) = {0};
    open_run(&r);
    run_well(&r, "export.every=8steps", words);
    assert_int_equal(count_in(r.to), 2);
    assert_int_equal(tn_path_join(r.dir, "metrics.jsonl", path, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 20, &text, NULL), TN_OK);
    const char *published = strstr(tn_text_str(&text), "published '");
    assert_non_null(published);
    assert_null(strstr(published + 1, "published '"));
    assert_null(strstr(tn_text_str(&text), "is the newest export"));
    tn_tmpdir_remove(r.dir);
}

/* ---- what fails, and what is missing ---- */

/* Exports take longer than the steps between them: each moment waits, and what is read stays. */
TEST(slow_exports_are_the_same_and_keep_what_they_read)
{
    static const char *const tight[] = {"checkpoint.every=1step", "checkpoint.keep=1", NULL};
    run fast;
    run slow;
    open_run(&fast);
    open_run(&slow);
    run_well(&fast, "export.every=5steps", NULL);
    assert_int_equal(tn_failpoint_set("export.begin:sleep=100", NULL), TN_OK);
    run_well(&slow, "export.every=5steps", tight);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    assert_same_exports(&fast, &slow);
    tn_tmpdir_remove(fast.dir);
    tn_tmpdir_remove(slow.dir);
}

TEST(a_failure_ends_the_run_and_the_next_publishes_what_is_owed)
{
    static const char *const rules[] = {"export.begin#3:ENOSPC", "export.before_latest#2:ENOSPC",
                                        "export.begin#6:ENOSPC"};
    run plain;
    open_run(&plain);
    run_well(&plain, "export.every=4steps", NULL);
    assert_int_equal(count_in(plain.to), 7);
    for (uint32_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        run r;
        open_run(&r);
        assert_int_equal(tn_failpoint_set(rules[i], NULL), TN_OK);
        const trainrun o = do_run(&r, "export.every=4steps", NULL, NULL);
        assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
        assert_int_equal(o.status, TN_E_IO);
        assert_non_null(strstr(o.text, "is not exported: failed on request at 'export."));
        run_well(&r, "export.every=4steps", NULL);
        assert_same_exports(&plain, &r);
        tn_tmpdir_remove(r.dir);
    }
    tn_tmpdir_remove(plain.dir);
}

/* At most two in a row; the chain goes on from the last that is there. */
TEST(with_on_error_warn_a_failure_leaves_no_hole)
{
    static const char *const warn[] = {"checkpoint.on_error=warn", NULL};
    run r;
    open_run(&r);
    assert_int_equal(tn_failpoint_set("export.begin#2:ENOSPC,export.begin#3:ENOSPC,"
                                      "export.begin#5:ENOSPC",
                                      NULL),
                     TN_OK);
    run_well(&r, "export.every=4steps", warn);
    tn_dict_stack stack = chain(&r); /* 1, 4, 6 */
    assert_int_equal(stack.n, 3);
    tn_dict_stack_close(&stack);
    assert_int_equal(count_in(r.to), 4);
    tn_tmpdir_remove(r.dir);
    open_run(&r);
    assert_int_equal(tn_failpoint_set("export.begin:ENOSPC", NULL), TN_OK);
    const trainrun o = do_run(&r, "export.every=4steps", warn, NULL);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    assert_int_equal(o.status, TN_E_IO);
    assert_non_null(strstr(o.text, "ckpt-3 is not exported"));
    tn_tmpdir_remove(r.dir);
}

static void remove_layer(const run *r, const tn_dict_stack *stack, uint32_t layer)
{
    char id[TN_MODEL_ID_TEXT];
    char path[TN_PATH_SIZE];
    const uint8_t *bytes = tn_dict_head(stack->layer[layer])->model_id;
    for (uint32_t i = 0; i < sizeof id / 2; i++) {
        (void)snprintf(id + 2 * (size_t)i, 3, "%02x", bytes[i]);
    }
    assert_int_equal(tn_path_join(r->to, id, path, NULL), TN_OK);
    assert_int_equal(tn_remove_tree(path, NULL), TN_OK);
}

/* `n` of the newest three; the run has ended, and the same command finds them missing. */
TEST(what_is_missing_of_the_newest_is_published_again_in_order)
{
    run plain;
    open_run(&plain);
    run_well(&plain, "export.every=8steps", NULL);
    for (uint32_t n = 1; n <= 3; n++) {
        run r;
        open_run(&r);
        run_well(&r, "export.every=8steps", NULL);
        tn_dict_stack stack = chain(&r);
        assert_int_equal(stack.n, 3);
        for (uint32_t i = 0; i < n; i++) {
            remove_layer(&r, &stack, i);
        }
        tn_dict_stack_close(&stack);
        run_well(&r, "export.every=8steps", NULL);
        assert_same_exports(&plain, &r);
        tn_tmpdir_remove(r.dir);
    }
    tn_tmpdir_remove(plain.dir);
}

/* The base of a chain is gone while the run goes on: a full one, and whatever is there stays. */
TEST(without_the_one_before_an_export_is_full)
{
    static const char *const until[] = {"train.max_steps=17", NULL};
    run r;
    open_run(&r);
    run_well(&r, "export.every=8steps", until);
    tn_dict_stack stack = chain(&r);
    assert_int_equal(stack.n, 3); /* 8, 16, and 17, the end */
    remove_layer(&r, &stack, 2);
    tn_dict_stack_close(&stack);
    run_well(&r, "export.every=8steps", NULL);
    stack = chain(&r);
    assert_int_equal(stack.n, 1);
    tn_dict_stack_close(&stack);
    assert_int_equal(count_in(r.to), 4);
    tn_tmpdir_remove(r.dir);
}

TEST(an_export_that_is_there_is_left_as_it_is)
{
    static const char *const anew[] = {"checkpoint.resume=never", NULL};
    run r;
    char id[TN_MODEL_ID_TEXT];
    char path[TN_PATH_SIZE];
    char mark[TN_PATH_SIZE];
    open_run(&r);
    run_well(&r, "export.every=8steps", NULL);
    latest(&r, id);
    assert_int_equal(tn_path_join(r.to, id, path, NULL), TN_OK);
    assert_int_equal(tn_path_join(path, "mark", mark, NULL), TN_OK);
    assert_int_equal(tn_file_replace(mark, "x", 1, NULL), TN_OK);
    run_well(&r, "export.every=8steps", anew); /* the same run once more */
    assert_true(tn_path_exists(mark));
    assert_int_equal(count_in(r.to), 4);
    tn_tmpdir_remove(r.dir);
}

/* What came behind the checkpoint is not what the next export stands on. */
TEST(a_run_that_goes_back_builds_on_what_it_goes_back_to)
{
    run r;
    char from[TN_PATH_SIZE];
    open_run(&r);
    run_well(&r, "export.every=8steps", NULL);
    (void)snprintf(from, sizeof from, "checkpoint.resume=%s/ckpt-1", r.dir);
    run_well(&r, "export.every=8steps",
             (const char *const[]){from, "train.optimizer.lr=0.5", NULL});
    tn_dict_stack stack = chain(&r);
    assert_int_equal(stack.n, 3);
    tn_dict_stack_close(&stack);
    assert_int_equal(count_in(r.to), 6);
    tn_tmpdir_remove(r.dir);
}

/* ---- a signal ---- */

typedef struct stopping {
    atomic_bool stop;
    const char *word;
} stopping;

static void stop_at_word(void *arg, const char *text)
{
    stopping *s = arg;
    if (strstr(text, s->word) != NULL) {
        atomic_store(&s->stop, true);
    }
}

TEST(a_stopped_run_that_goes_on_publishes_the_same)
{
    static const char *const words[] = {"of ckpt-1:", "of ckpt-3:"};
    run plain;
    open_run(&plain);
    run_well(&plain, "export.every=6steps", NULL);
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        run r;
        stopping s = {.word = words[i]};
        open_run(&r);
        trainrun_watch(stop_at_word, &s);
        assert_int_equal(do_run(&r, "export.every=6steps", NULL, &s.stop).status, TN_E_STOPPED);
        trainrun_watch(NULL, NULL);
        run_well(&r, "export.every=6steps", NULL);
        assert_same_exports(&plain, &r);
        tn_tmpdir_remove(r.dir);
    }
    tn_tmpdir_remove(plain.dir);
}

/* It leaves nothing, and its checkpoint is needed until somebody publishes it. */
TEST(an_export_that_a_signal_ends_is_owed)
{
    run r;
    open_run(&r);
    run_well(&r, "export.every=~", NULL);
    const atomic_bool stop = true;
    tn_run_state at = {.steps = 24};
    tn_publisher *p = NULL;
    tn_error err = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const char *const words[] = {"model.dropout=0.2", "export.every=8steps", r.option, NULL};
    const tn_publisher_opts opts = {
        .plan = golden_plan(arena, "deepfm_bn", words), .dir = r.dir, .state = &at, .stop = &stop};
    assert_int_equal(tn_publisher_open(&p, &opts, &err), TN_OK);
    assert_false(tn_publisher_needs_checkpoints(p));
    assert_int_equal(tn_publisher_begin(p, 1, &err), TN_OK);
    assert_int_equal(tn_publisher_end(p, &err), TN_E_STOPPED);
    assert_true(tn_publisher_needs_checkpoints(p));
    assert_string_equal(at.kept.export.newest, "");
    tn_publisher_close(p);
    assert_int_equal(count_in(r.to), 0);
    tn_tmpdir_remove(r.dir);
}
