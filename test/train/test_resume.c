/* test_resume.c - what may change between a checkpoint and the run that goes on from it. */
#include "base/core/failpoint.h"
#include "base/thread/threads.h"
#include "io/read/blocks.h"
#include "support/test.h"
#include "train/checkpoint/sources.h"
#include "train/golden.h"
#include "train/group/ranks.h"
#include "train/sharekit.h"
#include "train/trainrun.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS "test/golden/data/rows.tsv"

static bool says(const char *dir, const char *file, const char *words)
{
    char path[TN_PATH_SIZE];
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_path_join(dir, file, path, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 24, &text, NULL), TN_OK);
    bool found = strstr(tn_text_str(&text), words) != NULL;
    return found;
}

/* The rows as `name` in `dir`. */
static void put_rows(const char *dir, const char *name, char path[TN_PATH_SIZE])
{
    tn_text rows CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(ROWS, 1 << 20, &rows, NULL), TN_OK);
    assert_int_equal(tn_path_join(dir, name, path, NULL), TN_OK);
    assert_int_equal(tn_file_replace(path, rows.data, rows.size, NULL), TN_OK);
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
    tn_saved saved;
    tn_text rows CLEANUP(tn_text_done) = {0};
    OPEN(sharekit, k, dir, 1, (const char *const[]){PARTS, NULL});
    assert_int_equal(tn_file_read_all(ROWS, 1 << 20, &rows, NULL), TN_OK);
    sharekit_learn(&k, 2);
    uint64_t records = k.state.samples;
    const uint32_t n = k.state.data->n_parts;
    assert_in_range(n, 6, 100);
    tn_epoch_part *part = TN_NEW_ARRAY(k.arena, tn_epoch_part, n);
    for (uint32_t i = 0; i < n; i++) {
        const tn_part_info *info = &k.state.data->part[i];
        part[i] = (tn_epoch_part){.source = info->source,
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
    fail_if(sharekit_save(&k, false, &saved, NULL) != TN_OK, "not saved");
    assert_true(says(dir, "ckpt-1/MANIFEST", "],\"shuffle\":100}"));
    return records;
}

TEST(a_run_alone_reads_what_several_readers_left)
{
    if (tn_group_built() == &tn_group_none) {
        skip(); /* this build has no ledger of parts */
    }
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
        assert_ok(o.status, o.text);
        (void)snprintf(samples, sizeof samples, "\"samples\":\"%llu\"",
                       (unsigned long long)records);
        fail_if(!says(dir[i], "summary.json", samples), "not %s", samples);
        assert_true(i == 0 || o.hash == want);
        want = o.hash;
        o = trainrun_do(dir[i], (const char *const[]){PARTS, "train.epochs=2", NULL}, NULL);
        assert_int_equal(o.status, TN_OK); /* a whole one behind it, as ever */
        assert_true(!says(dir[i], i == 0 ? "ckpt-3/MANIFEST" : "ckpt-5/MANIFEST", "\"shuffle\""));
        tn_tmpdir_remove(dir[i]);
    }
}

TEST(parts_that_several_left_keep_their_order)
{
    if (tn_group_built() == &tn_group_none) {
        skip();
    }
    TMPDIR(dir);
    (void)leave_pattern(dir);
    trainrun o = trainrun_do(dir, (const char *const[]){PARTS, "data.shuffle=50", NULL}, NULL);
    assert_int_equal(o.status, TN_E_CONFIG);
    assert_non_null(strstr(o.text, "data.shuffle is 50, in checkpoint 1 100"));
    o = trainrun_do(dir, (const char *const[]){PARTS, "data.part_bytes=4KiB", NULL}, NULL);
    assert_int_equal(o.status, TN_E_DATA);
    assert_non_null(strstr(o.text, "was cut into other parts"));
}

/* ---- what may change ---- */

TEST(another_seed_within_an_epoch_is_refused)
{
    TMPDIR(dir);
    trainrun o = trainrun_do(dir, (const char *const[]){"train.max_steps=3", NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    o = trainrun_do(dir, (const char *const[]){"run.seed=7", NULL}, NULL);
    assert_int_equal(o.status, TN_E_CONFIG);
    assert_non_null(strstr(o.text, "run.seed is 7, in checkpoint 1 42"));
    o = trainrun_do(dir, (const char *const[]){"train.epochs=1", NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
}

TEST(other_files_within_an_epoch_are_refused)
{
    char path[TN_PATH_SIZE];
    char train[300];
    TMPDIR(dir);
    TMPDIR(data);
    put_rows(data, "b.tsv", path);
    put_rows(data, "c.tsv", path);
    (void)snprintf(train, sizeof train, "data.train=%s/*.tsv", data);
    trainrun o = trainrun_do(dir, (const char *const[]){train, "train.max_steps=3", NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    put_rows(data, "a.tsv", path); /* what is known of b and c is still true */
    o = trainrun_do(dir, (const char *const[]){train, NULL}, NULL);
    assert_int_equal(o.status, TN_E_DATA);
    assert_non_null(strstr(o.text, "have changed since the checkpoint: 3 files, 2 before"));
    assert_int_equal(tn_remove_file(path, NULL), TN_OK);
    o = trainrun_do(dir, (const char *const[]){train, NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    put_rows(data, "a.tsv", path); /* between epochs too, but one word is enough there */
    o = trainrun_do(dir, (const char *const[]){train, "train.epochs=4", NULL}, NULL);
    assert_int_equal(o.status, TN_E_DATA);
    o = trainrun_do(
        dir, (const char *const[]){train, "train.epochs=4", "data.changed=accept", NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    assert_true(says(dir, "metrics.jsonl", "\"text\":\"the training data have changed since"));
}

/* ---- which data ---- */

static const tn_sources *look(const char *path, tn_arena *arena)
{
    const char **uri = TN_NEW(arena, const char *);
    *uri = path;
    return tn_sources_again(&(tn_sources){.n = 1, .uri = uri}, arena);
}

static bool differ(const tn_sources *was, const tn_sources *now, const char *words)
{
    tn_text how CLEANUP(tn_text_done) = {0};
    bool other = tn_sources_differ(was, now, &how);
    fail_if(other && strstr(tn_text_str(&how), words) == NULL, "%s", tn_text_str(&how));
    return other;
}

/* The same through sources.jsonl. */
static const tn_sources *written(const tn_sources *s, tn_arena *arena)
{
    tn_text lines CLEANUP(tn_text_done) = {0};
    const tn_sources *back = NULL;
    assert_int_equal(tn_sources_write(s, &lines, NULL), TN_OK);
    assert_int_equal(tn_sources_read(&back, &lines, "sources.jsonl", arena, NULL), TN_OK);
    return back;
}

TEST(a_file_is_what_is_in_it)
{
    enum { SIZE = 1 << 20 };
    static const size_t seen[] = {0, 9000, 20000, SIZE - 1};
    char path[TN_PATH_SIZE];
    char moved[TN_PATH_SIZE];
    char *bytes FREED(tn_free) = tn_alloc(1, SIZE, "a file");
    TMPDIR(data);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    assert_int_equal(tn_path_join(data, "a.tsv", path, NULL), TN_OK);
    assert_int_equal(tn_path_join(data, "b.tsv", moved, NULL), TN_OK);
    memset(bytes, 'x', SIZE);
    assert_int_equal(tn_file_replace(path, bytes, SIZE, NULL), TN_OK);
    const tn_sources *was = written(look(path, arena), arena);
    assert_true(was->id[0].known && was->id[0].hashed);
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    assert_false(differ(was, look(path, arena), ""));
    assert_int_equal(tn_rename(path, moved, NULL), TN_OK);
    assert_false(differ(was, look(moved, arena), ""));
    assert_false(differ(was, look(path, arena), "")); /* it is gone, and said to be so elsewhere */
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++) {
        bytes[seen[i]] = 'y';
        assert_int_equal(tn_file_replace(path, bytes, SIZE, NULL), TN_OK);
        assert_true(differ(was, look(path, arena), "holds other bytes than before"));
        bytes[seen[i]] = 'x';
    }
    assert_int_equal(tn_file_replace(path, bytes, SIZE - 1, NULL), TN_OK);
    assert_true(differ(was, look(path, arena), "has 1048575 bytes, 1048576 before"));
}

/* As an ETag of a store says it: of the same length, another version. */
TEST(an_object_is_of_its_version)
{
    static const char *const uri[] = {"http://h/a.tsv"};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_source_id id = {.known = true, .tagged = true, .bytes = 100, .hash = 7};
    const tn_sources *was = written(&(tn_sources){.n = 1, .uri = uri, .id = &id}, arena);
    assert_true(was->id[0].tagged && !was->id[0].hashed);
    assert_false(differ(was, &(tn_sources){.n = 1, .uri = uri, .id = &id}, ""));
    id.hash = 8;
    assert_true(differ(was, &(tn_sources){.n = 1, .uri = uri, .id = &id}, "is of another version"));
    id.hashed = true; /* bytes, which no version can be compared with */
    id.tagged = false;
    assert_false(differ(was, &(tn_sources){.n = 1, .uri = uri, .id = &id}, ""));
}

TEST(lines_of_earlier_versions_tell_sizes)
{
    static const char old[] = "{\"uri\":\"" ROWS "\",\"bytes\":\"%zu\",\"tag\":\"%u\"}\n";
    char line[200];
    tn_text rows CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    assert_int_equal(tn_file_read_all(ROWS, 1 << 20, &rows, &err), TN_OK);
    for (uint32_t i = 0; i < 3; i++) { /* as it is; shorter; of a source that was not known */
        const tn_sources *was = NULL;
        tn_text lines CLEANUP(tn_text_done) = {0};
        (void)snprintf(line, sizeof line, old, rows.size + (i > 0), i < 2 ? 17U : 0U);
        tn_text_adds(&lines, line);
        assert_int_equal(tn_sources_read(&was, &lines, "sources.jsonl", arena, &err), TN_OK);
        assert_int_equal(differ(was, look(ROWS, arena), "bytes, "), i == 1);
    }
    tn_text lines CLEANUP(tn_text_done) = {0};
    const tn_sources *none = NULL;
    tn_text_adds(&lines, "{\"uri\":\"a\",\"hash\":\"12\"}\n");
    assert_int_equal(tn_sources_read(&none, &lines, "sources.jsonl", arena, &err), TN_E_CKPT);
}

/* Validation rows that come by a pipe: when somebody has begun to read them, the training file
 * changes; then the rest comes. */
typedef struct change {
    const char *path;
    tn_text rows;
    int to, from, stdin_before;
    tn_thread *thread;
} change;

static tn_status change_and_write(void *arg, tn_error *err)
{
    change *c = arg;
    const char *at = tn_text_str(&c->rows);
    for (size_t left = c->rows.size; left > 0;) {
        ssize_t n = write(c->to, at, left < 4096 ? left : 4096);
        assert_true(n > 0);
        at += n;
        left -= (size_t)n;
        if (left < 4096 && c->path != NULL) { /* more than a pipe holds has gone through */
            TN_TRY(tn_file_replace(c->path, "id\n", 3, err));
            c->path = NULL;
        }
    }
    (void)close(c->to);
    return TN_OK;
}

static trainrun run_with_change(const char *dir, const char *path, const char *const *opts)
{
    int ends[2];
    tn_text rows CLEANUP(tn_text_done) = {0};
    change c = {.path = path, .stdin_before = dup(STDIN_FILENO)};
    assert_int_equal(pipe(ends), 0);
    c.from = ends[0];
    c.to = ends[1];
    assert_int_equal(dup2(c.from, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(tn_file_read_all(ROWS, 1 << 20, &rows, NULL), TN_OK);
    tn_text_add(&c.rows, tn_text_str(&rows), rows.size);
    const char *body = strchr(tn_text_str(&rows), '\n') + 1;
    while (c.rows.size < 1 << 17) {
        tn_text_adds(&c.rows, body);
    }
    assert_int_equal(tn_thread_start(&c.thread, "rows", change_and_write, &c, NULL), TN_OK);
    trainrun o = trainrun_do(dir, opts, NULL);
    assert_int_equal(tn_thread_join(c.thread, NULL), TN_OK);
    assert_int_equal(dup2(c.stdin_before, STDIN_FILENO), STDIN_FILENO);
    (void)close(c.stdin_before);
    (void)close(c.from);
    tn_text_done(&c.rows);
    return o;
}

TEST(files_that_change_while_they_are_read_are_noticed)
{
    static const struct {
        const char *every, *epochs, *says;
    } cases[] = {
        {"eval.every=5steps", "train.epochs=1", "have changed while epoch 1 was read: "},
        {"eval.every=1epoch", "train.epochs=2", "have changed since the epoch before: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[TN_PATH_SIZE];
        char train[TN_PATH_SIZE + 16];
        TMPDIR(dir);
        TMPDIR(data);
        put_rows(data, "a.tsv", path);
        (void)snprintf(train, sizeof train, "data.train=%s", path);
        const char *const opts[] = {train, "data.valid=-", cases[i].every, cases[i].epochs, NULL};
        trainrun o = run_with_change(dir, path, opts);
        assert_int_equal(o.status, TN_E_DATA);
        fail_if(strstr(o.text, cases[i].says) == NULL ||
                    strstr(o.text, "\nhint: data.changed=accept") == NULL,
                "%s", o.text);
    }
}

/* A line that is no record behind every ninth row. */
static uint32_t put_bad_rows(const char *dir, char path[TN_PATH_SIZE])
{
    tn_text rows CLEANUP(tn_text_done) = {0};
    tn_text bad CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    uint32_t n_bad = 0;
    assert_int_equal(tn_file_read_all(ROWS, 1 << 20, &rows, NULL), TN_OK);
    for (const char *c = tn_text_str(&rows); *c != '\0'; c++) {
        tn_text_addc(&bad, *c);
        if (*c == '\n' && ++n % 9 == 2) {
            tn_text_adds(&bad, "no record\n");
            n_bad++;
        }
    }
    assert_int_equal(tn_path_join(dir, "bad.tsv", path, NULL), TN_OK);
    assert_int_equal(tn_file_replace(path, bad.data, bad.size, NULL), TN_OK);
    return n_bad;
}

TEST(records_are_counted_once_behind_bad_ones)
{
    static const char *const windows[] = {"data.shuffle=0", "data.shuffle=30", "data.shuffle=1000"};
    char path[TN_PATH_SIZE];
    char train[TN_PATH_SIZE + 16];
    char samples[64];
    TMPDIR(data);
    const uint32_t n_bad = put_bad_rows(data, path);
    (void)snprintf(train, sizeof train, "data.train=%s", path);
    (void)snprintf(samples, sizeof samples, "\"samples\":\"%u\"", 2 * (256 + n_bad));
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        static const char *const ends[] = {"train.max_steps=3", "train.max_steps=6",
                                           "train.max_steps=13", "train.epochs=2"};
        TMPDIR(dir);
        for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++) {
            trainrun o = trainrun_do(dir,
                                     (const char *const[]){train, windows[i], "train.epochs=2",
                                                           "data.bad_records_max=1000", ends[k],
                                                           "data.part_bytes=8KiB", NULL},
                                     NULL);
            assert_ok(o.status, o.text);
        }
        fail_if(!says(dir, "summary.json", samples), "%s: not %s", windows[i], samples);
    }
}

TEST(another_metric_to_watch_begins_anew)
{
    TMPDIR(dir);
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
}

TEST(an_old_checkpoint_that_cannot_be_removed_is_no_failure)
{
    TMPDIR(dir);
    assert_int_equal(tn_failpoint_set("ckpt.before_prune:EIO", NULL), TN_OK);
    trainrun o = trainrun_do(dir, (const char *const[]){"checkpoint.keep=1", NULL}, NULL);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    assert_int_equal(o.status, TN_OK);
    assert_int_equal(o.hash, trainrun_hash(NULL));
}
