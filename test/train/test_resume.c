/* test_resume.c - what may change between a checkpoint and the run that goes on from it. */
#include "base/failpoint.h"
#include "base/file.h"
#include "support/test.h"
#include "support/tmpdir.h"
#include "train/datamap.h"
#include "train/golden.h"
#include "train/sharekit.h"
#include "train/trainrun.h"

#include <stdio.h>
#include <string.h>

#define ROWS "test/golden/data/rows.tsv"

static bool says(const char *dir, const char *file, const char *words)
{
    char path[TN_PATH_SIZE];
    tn_text text = {0};
    tn_error err = {0};
    assert_int_equal(tn_path_join(dir, file, path, &err), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 24, &text, &err), TN_OK);
    bool found = strstr(tn_text_str(&text), words) != NULL;
    tn_text_done(&text);
    return found;
}

/* The rows as `name` in `dir`. */
static void put_rows(const char *dir, const char *name, char path[TN_PATH_SIZE])
{
    tn_text rows = {0};
    tn_error err = {0};
    assert_int_equal(tn_file_read_all(ROWS, 1 << 20, &rows, &err), TN_OK);
    assert_int_equal(tn_path_join(dir, name, path, &err), TN_OK);
    assert_int_equal(tn_file_replace(path, rows.data, rows.size, &err), TN_OK);
    tn_text_done(&rows);
}

/* ---- what several readers left ---- */

#define PARTS "data.part_bytes=2KiB", "data.shuffle=100", "model.dropout=0.2"

/* Records that begin at bytes from .. to - 1; the first line is none. */
static uint64_t records_in(const tn_text *rows, uint64_t from, uint64_t to)
{
    uint64_t n = 0;
    const char *text = tn_text_str(rows);
    for (uint64_t i = from; i < to && i < rows->size; i++) {
        n += i > 0 && text[i - 1] == '\n';
    }
    return n;
}

/* Saves a run of two steps whose readers left every third part done, and every third within.
 * Returns how many records will be consumed in all. */
static uint64_t leave_pattern(const char *dir)
{
    enum { WITHIN = 5 };
    static const tn_part_state states[] = {TN_PART_DONE, TN_PART_FREE, TN_PART_DEALT};
    sharekit k;
    tn_saved saved;
    tn_text rows = {0};
    sharekit_open(&k, dir, 1, (const char *const[]){PARTS, NULL});
    assert_int_equal(tn_file_read_all(ROWS, 1 << 20, &rows, NULL), TN_OK);
    sharekit_learn(&k, 2);
    uint64_t records = k.state.samples;
    const uint32_t n = k.state.data->n_parts;
    assert_in_range(n, 6, 100);
    tn_manifest_part *part = TN_NEW_ARRAY(k.arena, tn_manifest_part, n);
    for (uint32_t i = 0; i < n; i++) {
        const tn_part_info *info = &k.state.data->part[i];
        part[i] = (tn_manifest_part){.source = info->source,
                                     .begin = info->first,
                                     .end = info->end,
                                     .state = states[i % 3],
                                     .position = i % 3 == 2 ? WITHIN : 0};
        if (i % 3 > 0) {
            records += records_in(&rows, info->first, info->end) - part[i].position;
        }
    }
    k.state.part = part;
    k.state.n_parts = n;
    if (sharekit_save(&k, false, &saved, NULL) != TN_OK) {
        fail_msg("not saved");
    }
    assert_true(says(dir, "ckpt-1/MANIFEST", "],\"shuffle\":100}"));
    sharekit_close(&k);
    tn_text_done(&rows);
    return records;
}

static void a_run_alone_reads_what_several_readers_left(void **state)
{
    (void)state;
    char dir[2][256];
    char samples[64];
    uint32_t want = 0;
    for (uint32_t i = 0; i < 2; i++) {
        tn_tmpdir_make(dir[i]);
        uint64_t records = leave_pattern(dir[i]);
        trainrun o;
        if (i == 1) { /* stopped and begun again twice on the way */
            o = trainrun_do(dir[i], (const char *const[]){PARTS, "train.max_steps=3", NULL}, NULL);
            assert_int_equal(o.status, TN_OK);
            assert_true(says(dir[i], "ckpt-2/MANIFEST", "],\"shuffle\":100}"));
            o = trainrun_do(dir[i], (const char *const[]){PARTS, "train.max_steps=5", NULL}, NULL);
            assert_int_equal(o.status, TN_OK);
        }
        o = trainrun_do(dir[i], (const char *const[]){PARTS, "train.epochs=1", NULL}, NULL);
        if (o.status != TN_OK) {
            fail_msg("%s", o.text);
        }
        (void)snprintf(samples, sizeof samples, "\"samples\":\"%llu\"",
                       (unsigned long long)records);
        if (!says(dir[i], "summary.json", samples)) {
            fail_msg("not %s", samples);
        }
        assert_true(i == 0 || o.hash == want);
        want = o.hash;
        o = trainrun_do(dir[i], (const char *const[]){PARTS, "train.epochs=2", NULL}, NULL);
        assert_int_equal(o.status, TN_OK); /* a whole one behind it, as ever */
        assert_true(!says(dir[i], i == 0 ? "ckpt-3/MANIFEST" : "ckpt-5/MANIFEST", "\"shuffle\""));
        tn_tmpdir_remove(dir[i]);
    }
}

static void parts_that_several_left_keep_their_order(void **state)
{
    (void)state;
    char dir[256];
    tn_tmpdir_make(dir);
    (void)leave_pattern(dir);
    trainrun o = trainrun_do(dir, (const char *const[]){PARTS, "data.shuffle=50", NULL}, NULL);
    assert_int_equal(o.status, TN_E_CONFIG);
    assert_non_null(strstr(o.text, "data.shuffle is 50, in checkpoint 1 100"));
    o = trainrun_do(dir, (const char *const[]){PARTS, "data.part_bytes=4KiB", NULL}, NULL);
    assert_int_equal(o.status, TN_E_DATA);
    assert_non_null(strstr(o.text, "was cut into other parts"));
    tn_tmpdir_remove(dir);
}

/* ---- what may change ---- */

static void another_seed_within_an_epoch_is_refused(void **state)
{
    (void)state;
    char dir[256];
    tn_tmpdir_make(dir);
    trainrun o = trainrun_do(dir, (const char *const[]){"train.max_steps=3", NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    o = trainrun_do(dir, (const char *const[]){"run.seed=7", NULL}, NULL);
    assert_int_equal(o.status, TN_E_CONFIG);
    assert_non_null(strstr(o.text, "run.seed is 7, in checkpoint 1 42"));
    o = trainrun_do(dir, (const char *const[]){"train.epochs=1", NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    tn_tmpdir_remove(dir);
}

static void other_files_within_an_epoch_are_refused(void **state)
{
    (void)state;
    char dir[256];
    char data[256];
    char path[TN_PATH_SIZE];
    char train[300];
    tn_tmpdir_make(dir);
    tn_tmpdir_make(data);
    put_rows(data, "b.tsv", path);
    put_rows(data, "c.tsv", path);
    (void)snprintf(train, sizeof train, "data.train=%s/*.tsv", data);
    trainrun o = trainrun_do(dir, (const char *const[]){train, "train.max_steps=3", NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    put_rows(data, "a.tsv", path); /* what is known of b and c is still true */
    o = trainrun_do(dir, (const char *const[]){train, NULL}, NULL);
    assert_int_equal(o.status, TN_E_DATA);
    assert_non_null(strstr(o.text, "does not name the files of the checkpoint"));
    tn_error err = {0};
    assert_int_equal(tn_remove_file(path, &err), TN_OK);
    o = trainrun_do(dir, (const char *const[]){train, NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    put_rows(data, "a.tsv", path); /* between epochs they may be others */
    o = trainrun_do(dir, (const char *const[]){train, "train.epochs=4", NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    tn_tmpdir_remove(data);
    tn_tmpdir_remove(dir);
}

static void a_file_is_known_as_it_was_when_it_was_opened(void **state)
{
    (void)state;
    char data[256];
    char path[TN_PATH_SIZE];
    char train[TN_PATH_SIZE + 16];
    tn_error err = {0};
    tn_reader *reader = NULL;
    tn_text lines = {0};
    tn_tmpdir_make(data);
    put_rows(data, "a.tsv", path);
    (void)snprintf(train, sizeof train, "data.train=%s", path);
    tn_arena *arena = tn_arena_new(1 << 16);
    const tn_blueprint *plan = golden_plan(arena, "deepfm_bn", (const char *const[]){train, NULL});
    tn_reader_opts opts = {.paths = plan->run->data.train, .batch_rows = 32, .training = true};
    assert_int_equal(tn_reader_open(&reader, plan->schema, &opts, &err), TN_OK);
    const tn_data_map *map = tn_data_map_of(reader, arena);
    assert_int_equal(tn_data_map_sources(map, &lines, &err), TN_OK);
    assert_int_equal(tn_data_map_check(&lines, "sources.jsonl", &err), TN_OK);
    assert_int_equal(tn_file_replace(path, "id\n", 3, &err), TN_OK);
    tn_text_clear(&lines);
    assert_int_equal(tn_data_map_sources(map, &lines, &err), TN_OK);
    assert_int_equal(tn_data_map_check(&lines, "sources.jsonl", &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "has changed since the checkpoint"));
    assert_int_equal(tn_remove_file(path, &err), TN_OK); /* a run that reads it can still save */
    tn_text_clear(&lines);
    assert_int_equal(tn_data_map_sources(map, &lines, &err), TN_OK);
    tn_text_done(&lines);
    tn_reader_close(reader);
    tn_arena_free(arena);
    tn_tmpdir_remove(data);
}

static void another_metric_to_watch_begins_anew(void **state)
{
    (void)state;
    char dir[256];
    tn_tmpdir_make(dir);
    trainrun o = trainrun_do(
        dir, (const char *const[]){"train.epochs=1", "train.stop={monitor: valid.copc}", NULL},
        NULL);
    assert_int_equal(o.status, TN_OK);
    o = trainrun_do(dir,
                    (const char *const[]){"train.epochs=2",
                                          "train.stop={monitor: valid.auc, patience: 1}", NULL},
                    NULL);
    assert_int_equal(o.status, TN_OK);
    assert_true(says(dir, "summary.json", "\"best\":{\"name\":\"auc\",\"value\":0."));
    assert_true(says(dir, "summary.json", "\"step\":16}"));
    tn_tmpdir_remove(dir);
}

static void an_old_checkpoint_that_cannot_be_removed_is_no_failure(void **state)
{
    (void)state;
    char dir[256];
    tn_error err = {0};
    tn_tmpdir_make(dir);
    assert_int_equal(tn_failpoint_set("ckpt.before_prune:EIO", &err), TN_OK);
    trainrun o = trainrun_do(dir, (const char *const[]){"checkpoint.keep=1", NULL}, NULL);
    assert_int_equal(tn_failpoint_set(NULL, &err), TN_OK);
    assert_int_equal(o.status, TN_OK);
    assert_int_equal(o.hash, trainrun_hash(NULL));
    tn_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_alone_reads_what_several_readers_left),
        cmocka_unit_test(parts_that_several_left_keep_their_order),
        cmocka_unit_test(another_seed_within_an_epoch_is_refused),
        cmocka_unit_test(other_files_within_an_epoch_are_refused),
        cmocka_unit_test(a_file_is_known_as_it_was_when_it_was_opened),
        cmocka_unit_test(another_metric_to_watch_begins_anew),
        cmocka_unit_test(an_old_checkpoint_that_cannot_be_removed_is_no_failure),
    };
    return cmocka_run_group_tests_name("train/resume", tests, NULL, NULL);
}
