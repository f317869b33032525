/* test_exportfaults.c - no memory, no disk: exports and scorers fail in order and leave nothing. */

#include "support/test.h"

#include "base/core/failpoint.h"
#include "base/thread/threads.h"
#include "config/absent.h"
#include "exportkit.h"
#include "serve/score.h"
#include "serve/tnet.h"
#include "train/export/export_folder.h"

#include <stdatomic.h>

static exportkit k;
static char run[300];
static char swept[300];
static const char *overrides[] = {"export.dict=[tnd, tsv]", "train.threads=1", NULL};

GROUP_SET_UP
{
    overrides[0] = tn_is_absent("tsv") ? "export.dict=tnd" : overrides[0];
    exportkit_open(&k, "{type: widedeep, hidden: [4]}", overrides);
    exportkit_train(&k);
    (void)snprintf(run, sizeof run, "%s/run", k.dir);
}

GROUP_TEAR_DOWN
{
    exportkit_close(&k);
}

static uint32_t files_in(const char *folder)
{
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    if (tn_path_exists(folder)) {
        assert_int_equal(tn_dir_list(folder, &names, &n, NULL), TN_OK);
    }
    return n;
}

/* Every failing call of the disk once: an error, and neither a final name nor a left-over. */
TEST(every_failing_write_is_told_and_leaves_nothing)
{
    static const char *const points[] = {"io.write", "io.fsync", "io.rename", "io.open",
                                         "io.mkdir"};
    for (uint32_t p = 0; p < sizeof points / sizeof points[0]; p++) {
        char to[300];
        tn_status status = TN_E_IO;
        (void)snprintf(to, sizeof to, "%s/to-%u", k.dir, p);
        for (uint32_t nth = 1; status != TN_OK; nth++) {
            char rule[64];
            tn_error err = {0};
            tn_exported out;
            tn_export_request request = {.checkpoint = run, .to = to, .binder = &k.binder};
            (void)snprintf(rule, sizeof rule, "%s#%u:ENOSPC", points[p], nth);
            assert_int_equal(tn_failpoint_set(rule, &err), TN_OK);
            status = tn_export(k.plan, &request, &out, &err);
            assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
            if (status != TN_OK) {
                assert_true(status == TN_E_IO || status == TN_E_CKPT);
                /* after the rename only the sync of the parent can fail: then it is there, whole */
                uint32_t n = files_in(to);
                assert_true(n == 0 || (n == 1 && strcmp(points[p], "io.write") != 0));
                assert_int_equal(tn_remove_tree(to, &err), TN_OK);
            }
            assert_in_range(nth, 1, 400);
        }
    }
}

TEST(a_stopped_export_leaves_nothing)
{
    const atomic_bool stop = true;
    tn_error err = {0};
    tn_exported out;
    PATH_IN(to, k.dir, "to-stopped");
    tn_export_request request = {.checkpoint = run, .to = to, .binder = &k.binder, .stop = &stop};
    assert_int_equal(tn_export(k.plan, &request, &out, &err), TN_E_STOPPED);
    assert_string_equal(err.text, "stopped by a signal; nothing is exported");
    assert_int_equal(files_in(to), 0);
}

static void make_folder(const char *to, const char *name, char path[TN_PATH_SIZE])
{
    char file[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(to, name, path, NULL), TN_OK);
    assert_int_equal(tn_dir_make(path, NULL), TN_OK);
    assert_int_equal(tn_path_join(path, "dict.tnd", file, NULL), TN_OK);
    assert_int_equal(tn_file_replace(file, "half", 4, NULL), TN_OK);
}

/* One that still runs is left alone, and so is what an export never makes. */
TEST(what_a_killed_export_left_is_removed_by_the_next)
{
    static const char *const others[] = {"mine.tmp", "0123456789abcdef0123456789abcdef.tmp",
                                         "0123456789abcdef0123456789abcdeg.0123456789abcdef.tmp",
                                         "0123456789abcdef0123456789abcdef.0123456789abcdef",
                                         "LATEST.0123456789abcdeg.tmp"};
    enum { OTHERS = sizeof others / sizeof others[0] };
    char killed[TN_PATH_SIZE];
    char running[TN_PATH_SIZE];
    char empty[TN_PATH_SIZE]; /* killed before it wrote */
    char other[OTHERS][TN_PATH_SIZE];
    PATH_IN(to, k.dir, "to-swept");
    make_folder(to, "0123456789abcdef0123456789abcdef.0123456789abcdef.tmp", killed);
    make_folder(to, "0123456789abcdef0123456789abcdef.ffff456789abcdef.tmp", running);
    (void)snprintf(empty, sizeof empty, "%s/%s", to,
                   "0123456789abcdef0123456789abcdef.aaaa456789abcdef.tmp");
    assert_int_equal(tn_dir_make(empty, NULL), TN_OK);
    for (uint32_t i = 0; i < OTHERS; i++) {
        make_folder(to, others[i], other[i]);
    }
    char latest[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(to, "LATEST.0123456789abcdef.tmp", latest, NULL), TN_OK);
    assert_int_equal(tn_file_replace(latest, "0123", 4, NULL), TN_OK);
    tn_lock *lock = NULL;
    tn_exported out;
    assert_int_equal(tn_lock_folder(&lock, running, NULL), TN_OK);
    tn_export_request request = {.checkpoint = run, .to = to, .binder = &k.binder};
    assert_int_equal(tn_export(k.plan, &request, &out, NULL), TN_OK);
    assert_false(tn_path_exists(killed));
    assert_false(tn_path_exists(latest));
    assert_true(tn_path_exists(running));
    assert_false(tn_path_exists(empty));
    for (uint32_t i = 0; i < OTHERS; i++) {
        assert_true(tn_path_exists(other[i]));
    }
    tn_lock_release(lock);
    assert_int_equal(tn_export(k.plan, &request, &out, NULL), TN_OK);
    assert_true(out.existed);
    assert_false(tn_path_exists(running));
    assert_int_equal(files_in(to), OTHERS + 1);
}

static tn_status sweep_all_along(void *arg, tn_error *err)
{
    const atomic_bool *over = arg;
    tn_status status = TN_OK;
    while (status == TN_OK && !atomic_load(over)) {
        status = tn_export_folder_sweep(swept, err);
    }
    return status;
}

/* Between making its folder and locking it an export may lose it to a process that removes what was
 * left; it begins with another folder then. */
TEST(an_export_that_begins_keeps_its_folder_from_those_that_sweep)
{
    atomic_bool over = false;
    tn_thread *sweeper = NULL;
    (void)snprintf(swept, sizeof swept, "%s/to-shared", k.dir);
    assert_int_equal(tn_dir_make(swept, NULL), TN_OK);
    assert_int_equal(tn_thread_start(&sweeper, "sweeper", sweep_all_along, &over, NULL), TN_OK);
    for (int i = 0; i < 5000; i++) {
        tn_export_folder folder;
        char file[TN_PATH_SIZE];
        assert_int_equal(
            tn_export_folder_begin(&folder, swept, "0123456789abcdef0123456789abcdef", NULL),
            TN_OK);
        assert_non_null(folder.lock);
        assert_int_equal(tn_path_join(folder.tmp, "dict.tnd", file, NULL), TN_OK);
        assert_int_equal(tn_file_replace(file, "half", 4, NULL), TN_OK);
        assert_true(tn_path_exists(file));
        tn_export_folder_end(&folder, NULL);
    }
    atomic_store(&over, true);
    assert_int_equal(tn_thread_join(sweeper, NULL), TN_OK);
    assert_int_equal(files_in(swept), 0);
}

TEST(every_failing_allocation_of_the_library_is_told)
{
    tn_exported out = exportkit_export(&k);
    int code = TNET_E_MEMORY;
    for (uint64_t nth = 1; code != TNET_OK; nth++) {
        tnet_error err = {0};
        tnet_model *model = NULL;
        tnet_scorer *scorer = NULL;
        float logit[2];
        tn_alloc_fail_at(nth);
        code = tnet_open(out.path, TNET_VERIFY_FULL, &model, &err);
        code = code == TNET_OK ? tnet_scorer_new(model, &scorer, &err) : code;
        code = code == TNET_OK ? tnet_begin_row(scorer, &err) : code;
        code = code == TNET_OK ? tnet_add_id(scorer, 0, 7, 1, &err) : code;
        code = code == TNET_OK ? tnet_end_row(scorer, &err) : code;
        code = code == TNET_OK ? tnet_score(scorer, NULL, logit, &err) : code;
        tn_alloc_fail_at(0);
        assert_true(code == TNET_OK || code == TNET_E_MEMORY);
        assert_true(code == TNET_OK || err.code == code);
        tnet_scorer_free(scorer);
        tnet_close(model);
        assert_in_range(nth, 1, 500);
    }
}
