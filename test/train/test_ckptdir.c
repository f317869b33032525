/* test_ckptdir.c - the run directory: saving, pruning, loading the newest that is whole. */
#include "support/test.h"

#include "base/core/failpoint.h"
#include "base/core/log.h"
#include "train/toyckpt.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const toy_base none = {0};

typedef struct place {
    char dir[256];
    char path[TN_PATH_SIZE];
    tn_ckptdir *d;
} place;

static char last_line[2000]; /* of the log */

static void keep_line(tn_log_level level, const char *line)
{
    (void)level;
    (void)snprintf(last_line, sizeof last_line, "%s", line);
}

SET_UP
{
    static place p;
    tn_tmpdir_make(p.dir);
    tn_log_set(keep_line, TN_LOG_INFO);
    last_line[0] = '\0';
    *state = &p;
    assert_int_equal(tn_ckptdir_open(&p.d, p.dir, NULL), TN_OK);
}

TEAR_DOWN
{
    place *p = *state;
    tn_log_set(NULL, TN_LOG_ERROR);
    tn_ckptdir_close(p->d);
    tn_tmpdir_remove(p->dir);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
}

static const char *in_dir(place *p, const char *name)
{
    assert_int_equal(tn_path_join(p->dir, name, p->path, NULL), TN_OK);
    return p->path;
}

static uint32_t save(place *p, uint64_t want)
{
    tn_error err = {0};
    uint64_t ordinal = 0;
    uint32_t crc = 0;
    assert_ok(toy_save(p->d, none, &ordinal, &crc, &err), err.text);
    assert_int_equal(ordinal, want);
    return crc;
}

static tn_status load(place *p, bool strict, uint64_t *ordinal, toy_state *state, tn_error *err)
{
    tn_ckpt_loader loader = toy_loader(state);
    loader.strict = strict;
    return tn_ckptdir_load(p->dir, &loader, ordinal, err);
}

static void assert_newest(place *p, uint64_t want)
{
    toy_state state = {0};
    tn_error err = {0};
    uint64_t ordinal = 99;
    assert_ok(load(p, false, &ordinal, &state, &err), err.text);
    assert_int_equal(ordinal, want);
    assert_int_equal(state.loaded, want);
}

static void spoil(place *p, const char *name)
{
    FILE *f = fopen(in_dir(p, name), "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, 20, SEEK_SET), 0);
    int c = fgetc(f);
    if (c == EOF) { /* shorter than that: one byte longer now */
        assert_int_equal(fputc('x', f), 'x');
    } else {
        assert_int_equal(fseek(f, 20, SEEK_SET), 0);
        assert_int_equal(fputc(c ^ 1, f), c ^ 1);
    }
    assert_int_equal(fclose(f), 0);
}

TEST(an_empty_directory_is_a_fresh_start)
{
    assert_newest(*state, 0);
}

static void check_latest(place *p, unsigned ordinal, uint32_t crc)
{
    char want[64];
    tn_text latest CLEANUP(tn_text_done) = {0};
    (void)snprintf(want, sizeof want, "ckpt-%u %08x\n", ordinal, crc);
    assert_int_equal(tn_file_read_all(in_dir(p, "LATEST"), 100, &latest, NULL), TN_OK);
    assert_string_equal(tn_text_str(&latest), want);
}

TEST_ON(place *p, what_was_saved_is_loaded_back)
{
    (void)save(p, 1);
    uint32_t crc = save(p, 2);
    assert_newest(p, 2);
    check_latest(p, 2, crc);
    toy_state seen = {0};
    tn_ckpt_loader loader = toy_loader(&seen);
    char slashes[TN_PATH_SIZE + 3];
    (void)snprintf(slashes, sizeof slashes, "%s//", in_dir(p, "ckpt-1"));
    assert_int_equal(tn_ckptdir_load_one(slashes, &loader, NULL), TN_OK);
    assert_int_equal(seen.loaded, 1);
}

TEST_ON(place *p, an_abandoned_checkpoint_leaves_nothing_and_its_ordinal_free)
{
    uint64_t ordinal = 0;
    tn_text names = {0};
    uint32_t n = 0;
    assert_int_equal(tn_ckptdir_begin(p->d, 0, &ordinal, NULL), TN_OK);
    tn_ckptdir_abandon(p->d);
    tn_ckptdir_abandon(p->d);
    assert_int_equal(tn_dir_list(p->dir, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 2); /* LOCK and OWNER */
    tn_text_done(&names);
    (void)save(p, 1);
}

TEST_ON(place *p, a_damaged_newest_gives_way_to_the_one_before)
{
    static const char *const file[] = {"MANIFEST", "config.yaml", "sparse-0000-0003.tns"};
    (void)save(p, 1);
    for (uint64_t i = 0; i < 3; i++) {
        char name[64];
        uint64_t newest = i + 2;
        (void)save(p, newest);
        assert_newest(p, newest);
        (void)snprintf(name, sizeof name, "ckpt-%u/%s", (unsigned)newest, file[i]);
        spoil(p, name);
        assert_newest(p, 1);
        assert_non_null(strstr(last_line, "ckpt-2 is damaged, the one before is tried: "));
        toy_state seen = {0};
        tn_error err = {0};
        uint64_t ordinal = 99;
        assert_int_equal(load(p, true, &ordinal, &seen, &err), TN_E_CKPT);
        assert_non_null(strstr(err.text, name)); /* the file by its name */
        assert_int_equal(ordinal, 99);
    }
}

TEST_ON(place *p, directories_but_none_good_are_never_a_fresh_start)
{
    toy_state seen = {0};
    tn_error err = {0};
    uint64_t ordinal = 99;
    (void)save(p, 1);
    (void)save(p, 2);
    spoil(p, "ckpt-1/MANIFEST");
    assert_int_equal(tn_remove_file(in_dir(p, "ckpt-2/MANIFEST"), &err), TN_OK);
    assert_int_equal(load(p, false, &ordinal, &seen, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "no checkpoint in "));
    assert_non_null(strstr(err.text, "is whole, of 2 that are there"));
    assert_int_equal(ordinal, 99);
}

TEST_ON(place *p, a_whole_file_of_another_checkpoint_is_detected)
{
    tn_error err = {0};
    char to[TN_PATH_SIZE];
    (void)save(p, 1);
    (void)save(p, 2);
    (void)save(p, 3);
    assert_int_equal(tn_path_join(p->dir, "ckpt-3/sparse-0000-0003.tns", to, &err), TN_OK);
    assert_int_equal(tn_rename(in_dir(p, "ckpt-2/sparse-0000-0003.tns"), to, &err), TN_OK);
    assert_newest(p, 1);
    toy_state seen = {0};
    uint64_t ordinal = 0;
    assert_int_equal(load(p, true, &ordinal, &seen, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "of another run or step"));
}

TEST_ON(place *p, a_folder_that_was_renamed_by_hand_is_detected)
{
    tn_error err = {0};
    char to[TN_PATH_SIZE];
    (void)save(p, 1);
    assert_int_equal(tn_path_join(p->dir, "ckpt-9", to, &err), TN_OK);
    assert_int_equal(tn_rename(in_dir(p, "ckpt-1"), to, &err), TN_OK);
    toy_state seen = {0};
    uint64_t ordinal = 0;
    assert_int_equal(load(p, false, &ordinal, &seen, &err), TN_E_CKPT);
}

TEST_ON(place *p, other_names_are_not_checkpoints)
{
    static const char *const name[] = {"ckpt-",  "ckpt-0",  "ckpt-01",
                                       "ckpt-x", "ckpt-5x", "ckpt-99999999999999999999",
                                       "tb",     "xckpt-7"};
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        assert_int_equal(tn_dir_make(in_dir(p, name[i]), NULL), TN_OK);
    }
    assert_newest(p, 0);
    (void)save(p, 1);
    assert_newest(p, 1);
}

TEST_ON(place *p, prune_keeps_the_newest_and_the_best)
{
    for (uint64_t i = 1; i <= 6; i++) {
        (void)save(p, i);
    }
    assert_int_equal(tn_ckptdir_prune(p->d, 2, 3, NULL), TN_OK);
    tn_ckpt_listing left;
    tn_arena *arena = tn_arena_new(1024);
    assert_int_equal(tn_ckptdir_list(p->dir, arena, &left, NULL), TN_OK);
    assert_int_equal(left.n, 3);
    assert_true(left.ordinal[0] == 6 && left.ordinal[1] == 5 && left.ordinal[2] == 3);
    assert_int_equal(tn_ckptdir_prune(p->d, 0, 0, NULL), TN_OK); /* at least one */
    assert_int_equal(tn_ckptdir_list(p->dir, arena, &left, NULL), TN_OK);
    assert_int_equal(left.n, 1);
    assert_int_equal(left.ordinal[0], 6);
    tn_arena_free(arena);
    assert_newest(p, 6);
}

/* 1 full, 2 and 3 deltas on it. */
static void save_chain(place *p)
{
    uint64_t ordinal = 0;
    toy_base base = {.ordinal = 1, .crc = save(p, 1)};
    assert_int_equal(toy_save(p->d, base, &ordinal, &base.crc, NULL), TN_OK);
    base.ordinal = ordinal;
    assert_int_equal(toy_save(p->d, base, &ordinal, NULL, NULL), TN_OK);
    assert_int_equal(ordinal, 3);
}

TEST_ON(place *p, a_delta_is_loaded_on_its_base_and_keeps_it)
{
    toy_state seen = {0};
    uint64_t ordinal = 0;
    save_chain(p);
    assert_int_equal(tn_ckptdir_prune(p->d, 1, 0, NULL), TN_OK);
    assert_int_equal(load(p, true, &ordinal, &seen, NULL), TN_OK);
    assert_int_equal(ordinal, 3);
    assert_int_equal(seen.reads, 3); /* full, delta, delta */
}

TEST_ON(place *p, a_delta_on_a_broken_base_gives_way)
{
    save_chain(p);
    spoil(p, "ckpt-2/config.yaml");
    assert_newest(p, 1);
}

TEST_ON(place *p, a_delta_on_another_base_gives_way)
{
    uint64_t ordinal = 0;
    toy_base base = {.ordinal = 1, .crc = save(p, 1) ^ 1};
    assert_int_equal(toy_save(p->d, base, &ordinal, NULL, NULL), TN_OK);
    assert_newest(p, 1);
    assert_non_null(strstr(last_line, "is not the base of ckpt-2"));
}

TEST_ON(place *p, opening_removes_what_others_left_unfinished)
{
    (void)save(p, 1);
    tn_ckptdir_close(p->d);
    p->d = NULL;
    static const char *const left[] = {"LATEST.00000000000000aa.tmp", "OWNER.0123456789abcdef.tmp",
                                       "summary.json.00000000000000aa.tmp"};
    assert_int_equal(tn_dir_make(in_dir(p, "ckpt-2.00000000000000aa.tmp/x"), NULL), TN_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tn_file_replace(in_dir(p, left[i]), "x", 1, NULL), TN_OK);
    }
    assert_int_equal(tn_ckptdir_open(&p->d, p->dir, NULL), TN_OK);
    assert_false(tn_path_exists(in_dir(p, "ckpt-2.00000000000000aa.tmp")));
    for (size_t i = 0; i < 3; i++) {
        assert_false(tn_path_exists(in_dir(p, left[i])));
    }
    assert_newest(p, 1);
}

/* A kill between the two; one that is not whole is not named. */
TEST_ON(place *p, opening_names_the_newest_in_latest)
{
    const uint32_t first = save(p, 1);
    char line[64];
    (void)snprintf(line, sizeof line, "ckpt-1 %08x\n", first);
    const uint32_t second = save(p, 2);
    tn_ckptdir_close(p->d);
    assert_int_equal(tn_file_replace(in_dir(p, "LATEST"), line, strlen(line), NULL), TN_OK);
    assert_int_equal(tn_ckptdir_open(&p->d, p->dir, NULL), TN_OK);
    check_latest(p, 2, second);
    tn_ckptdir_close(p->d);
    assert_int_equal(tn_file_replace(in_dir(p, "LATEST"), line, strlen(line), NULL), TN_OK);
    spoil(p, "ckpt-2/MANIFEST");
    assert_int_equal(tn_ckptdir_open(&p->d, p->dir, NULL), TN_OK);
    check_latest(p, 1, first);
}

TEST_ON(place *p, opening_removes_nothing_of_the_user)
{
    tn_ckptdir_close(p->d);
    p->d = NULL;
    static const char *const users[] = {
        "thesis.tmp",
        "LATEST.1.tmp",
        "notes.0123456789abcdef.tmp",
        "ckpt-2.tmp",
        "ckpt-2.0123456789abcdeg.tmp",
        "ckpt-2.0123456789abcdef0.tmp",
        "ckpt-.0123456789abcdef.tmp",
        "ckpt-2a.0123456789abcdef.tmp",
        "ckpt-123456789012345678901234567890.0123456789abcdef.tmp",
        "metrics.jsonl",
    };
    enum { N = sizeof users / sizeof users[0] };
    for (size_t i = 0; i < N; i++) {
        char inner[TN_PATH_SIZE];
        assert_int_equal(tn_path_join(in_dir(p, users[i]), "chapter", inner, NULL), TN_OK);
        assert_int_equal(tn_dir_make(p->path, NULL), TN_OK);
        assert_int_equal(tn_file_replace(inner, "x", 1, NULL), TN_OK);
    }
    assert_int_equal(tn_ckptdir_open(&p->d, p->dir, NULL), TN_OK);
    for (size_t i = 0; i < N; i++) {
        char inner[TN_PATH_SIZE];
        assert_int_equal(tn_path_join(in_dir(p, users[i]), "chapter", inner, NULL), TN_OK);
        assert_true(tn_path_exists(inner));
    }
}

/* Of a former owner that woke up, or of a clock that went back: not known to be left over. */
TEST_ON(place *p, opening_leaves_what_is_younger_than_the_lock)
{
    tn_ckptdir_close(p->d);
    p->d = NULL;
    assert_int_equal(tn_dir_make(in_dir(p, "ckpt-2.00000000000000aa.tmp"), NULL), TN_OK);
    const struct timespec later[2] = {{time(NULL) + 3600, 0}, {time(NULL) + 3600, 0}};
    assert_int_equal(utimensat(AT_FDCWD, p->path, later, 0), 0);
    assert_int_equal(tn_ckptdir_open(&p->d, p->dir, NULL), TN_OK);
    assert_true(tn_path_exists(p->path));
}

TEST_ON(place *p, a_directory_in_use_is_refused)
{
    tn_error err = {0};
    tn_ckptdir *second = NULL;
    assert_int_equal(tn_ckptdir_open(&second, p->dir, &err), TN_E_CKPT);
    assert_null(second);
    assert_non_null(strstr(err.text, "is in use by pid "));
}

TEST_ON(place *p, a_fenced_owner_cannot_commit)
{
    tn_error err = {0};
    uint64_t ordinal = 0;
    assert_int_equal(tn_ckptdir_begin(p->d, 0, &ordinal, &err), TN_OK);
    assert_int_equal(tn_remove_tree(tn_ckptdir_folder(p->d), &err), TN_OK); /* by the next owner */
    tn_text manifest = {0};
    tn_text_adds(&manifest, "{}");
    assert_int_equal(tn_ckptdir_commit(p->d, &manifest, 0, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "there is no folder '"));
    tn_text_done(&manifest);
    tn_ckptdir_abandon(p->d);
    assert_newest(p, 0);
}

TEST_ON(place *p, a_failed_fsync_is_answered_by_a_new_file)
{
    for (uint64_t k = 1; k <= 3; k++) { /* config, rows, MANIFEST */
        char rule[32];
        (void)snprintf(rule, sizeof rule, "io.fsync#%u:EIO", (unsigned)k);
        assert_int_equal(tn_failpoint_set(rule, NULL), TN_OK);
        (void)save(p, k);
        assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
        assert_newest(p, k);
    }
}

TEST_ON(place *p, a_disk_that_stays_broken_fails_the_checkpoint_and_keeps_the_old)
{
    tn_error err = {0};
    uint64_t ordinal = 0;
    (void)save(p, 1);
    assert_int_equal(tn_failpoint_set("io.write:ENOSPC", &err), TN_OK);
    assert_int_equal(toy_save(p->d, none, &ordinal, NULL, &err), TN_E_IO);
    assert_int_equal(tn_failpoint_set(NULL, &err), TN_OK);
    assert_newest(p, 1);
    (void)save(p, 2);
}

TEST_ON(place *p, a_latest_that_cannot_be_written_does_not_fail_the_checkpoint)
{
    /* two files, MANIFEST and two folders are synced before LATEST */
    assert_int_equal(tn_failpoint_set("io.fsync#6+:EIO", NULL), TN_OK);
    (void)save(p, 1);
    assert_non_null(strstr(last_line, "ckpt-1 is saved, but LATEST is not"));
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    assert_newest(p, 1);
}

TEST_ON(place *p, too_little_space_is_known_before_anything_is_written)
{
    tn_error err = {0};
    uint64_t ordinal = 9;
    assert_int_equal(tn_ckptdir_begin(p->d, UINT64_MAX / 2, &ordinal, &err), TN_E_IO);
    assert_memory_equal(err.text, "no room for a checkpoint in ", 28);
    assert_int_equal(ordinal, 9);
}

/* ---- damaged, unreadable, newer ---- */

/* As a run does that owns the directory. */
static tn_status take(place *p, uint64_t *ordinal, tn_error *err)
{
    toy_state seen = {0};
    tn_ckpt_loader loader = toy_loader(&seen);
    loader.owner = p->d;
    *ordinal = 99;
    return tn_ckptdir_load(p->dir, &loader, ordinal, err);
}

/* The names that begin with ckpt-, with a blank behind each. */
static void assert_there(place *p, const char *want)
{
    tn_text names CLEANUP(tn_text_done) = {0};
    tn_text got CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(p->dir, &names, &n, NULL), TN_OK);
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n; i++, name += strlen(name) + 1) {
        if (strncmp(name, "ckpt-", 5) == 0) {
            tn_text_addf(&got, "%s ", name);
        }
    }
    assert_string_equal(tn_text_str(&got), want);
}

TEST_ON(place *p, damage_is_set_aside_by_the_owner_and_never_removed)
{
    uint64_t ordinal = 0;
    tn_text before CLEANUP(tn_text_done) = {0};
    tn_text after CLEANUP(tn_text_done) = {0};
    (void)save(p, 1);
    (void)save(p, 2);
    (void)save(p, 3);
    spoil(p, "ckpt-3/sparse-0000-0003.tns");
    assert_int_equal(
        tn_file_read_all(in_dir(p, "ckpt-3/sparse-0000-0003.tns"), 1 << 20, &before, NULL), TN_OK);
    assert_newest(p, 2); /* by somebody else, who renames nothing */
    assert_there(p, "ckpt-1 ckpt-2 ckpt-3 ");
    assert_int_equal(take(p, &ordinal, NULL), TN_OK);
    assert_int_equal(ordinal, 2);
    assert_there(p, "ckpt-1 ckpt-2 ckpt-3.damaged ");
    assert_non_null(strstr(last_line, "ckpt-3 is kept as "));
    tn_ckptdir_close(p->d);
    p->d = NULL;
    assert_int_equal(tn_ckptdir_open(&p->d, p->dir, NULL), TN_OK);
    (void)save(p, 4); /* a number is not used twice, in another process neither */
    assert_int_equal(tn_ckptdir_prune(p->d, 2, 0, NULL), TN_OK);
    assert_there(p, "ckpt-2 ckpt-3.damaged ckpt-4 ");
    assert_int_equal(tn_ckptdir_prune(p->d, 1, 0, NULL), TN_OK);
    assert_there(p, "ckpt-3.damaged ckpt-4 ");
    assert_int_equal(
        tn_file_read_all(in_dir(p, "ckpt-3.damaged/sparse-0000-0003.tns"), 1 << 20, &after, NULL),
        TN_OK);
    assert_true(before.size == after.size && memcmp(before.data, after.data, before.size) == 0);
}

TEST_ON(place *p, what_was_set_aside_before_stays_beside)
{
    uint64_t ordinal = 0;
    (void)save(p, 1);
    (void)save(p, 2);
    assert_int_equal(tn_dir_make(in_dir(p, "ckpt-2.damaged"), NULL), TN_OK);
    spoil(p, "ckpt-2/MANIFEST");
    assert_int_equal(take(p, &ordinal, NULL), TN_OK);
    assert_there(p, "ckpt-1 ckpt-2.damaged ckpt-2.damaged.2 ");
    assert_true(tn_path_exists(in_dir(p, "ckpt-2.damaged.2/MANIFEST")));
    assert_false(tn_path_exists(in_dir(p, "ckpt-2.damaged/MANIFEST")));
    (void)save(p, 3);
}

TEST_ON(place *p, nothing_but_damage_is_no_fresh_start_either)
{
    tn_error err = {0};
    uint64_t ordinal = 0;
    (void)save(p, 1);
    (void)save(p, 2);
    spoil(p, "ckpt-1/MANIFEST");
    spoil(p, "ckpt-2/config.yaml");
    assert_int_equal(take(p, &ordinal, &err), TN_E_CKPT);
    assert_int_equal(ordinal, 99);
    assert_there(p, "ckpt-1 ckpt-2 "); /* renamed they would be no checkpoints any more */
    char to[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(p->dir, "ckpt-1.damaged", to, &err), TN_OK);
    assert_int_equal(tn_rename(in_dir(p, "ckpt-1"), to, &err), TN_OK);
    assert_int_equal(tn_remove_tree(in_dir(p, "ckpt-2"), &err), TN_OK);
    assert_int_equal(take(p, &ordinal, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "is whole, of 1 that are there"));
    assert_non_null(strstr(err.text, "hint: --fresh begins anew"));
}

TEST_ON(place *p, what_cannot_be_read_is_not_damaged)
{
    static const struct {
        const char *call, *error;
    } fault[] = {{"open", ":EACCES"}, {"open", ":EMFILE"}, {"read", ":EIO"}, {"open", "+:ESTALE"}};
    for (uint64_t i = 1; i <= 3; i++) {
        (void)save(p, i);
    }
    for (size_t i = 0; i < sizeof fault / sizeof fault[0]; i++) {
        tn_status status = TN_E_IO;
        uint32_t n = 1;
        for (; status != TN_OK; n++) {
            char rule[40];
            tn_error err = {0};
            uint64_t ordinal = 0;
            (void)snprintf(rule, sizeof rule, "io.%s#%u%s", fault[i].call, n, fault[i].error);
            assert_int_equal(tn_failpoint_set(rule, &err), TN_OK);
            status = take(p, &ordinal, &err);
            assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
            assert_int_equal(status, status == TN_OK ? TN_OK : TN_E_IO);
            assert_int_equal(ordinal, status == TN_OK ? 3 : 99);
            assert_there(p, "ckpt-1 ckpt-2 ckpt-3 ");
            assert_true(status == TN_OK || strstr(err.text, "hint: nothing was removed") != NULL ||
                        strstr(err.text, "cannot open") != NULL);
        }
        assert_true(n > 3);
    }
}

TEST_ON(place *p, nothing_is_removed_while_something_cannot_be_read)
{
    for (uint64_t i = 1; i <= 4; i++) {
        (void)save(p, i);
    }
    for (uint32_t n = 2; n <= 5; n++) { /* the folder was the first to be opened */
        char rule[40];
        tn_error err = {0};
        (void)snprintf(rule, sizeof rule, "io.open#%u:EMFILE", n);
        assert_int_equal(tn_failpoint_set(rule, &err), TN_OK);
        assert_int_equal(tn_ckptdir_prune(p->d, 1, 0, &err), TN_E_IO);
        assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
        assert_there(p, "ckpt-1 ckpt-2 ckpt-3 ckpt-4 ");
    }
}

TEST_ON(place *p, a_newer_version_is_neither_passed_over_nor_removed)
{
    tn_error err = {0};
    uint64_t ordinal = 0;
    (void)save(p, 1);
    (void)save(p, 2);
    toy_make_newer(in_dir(p, "ckpt-2/MANIFEST"));
    assert_int_equal(take(p, &ordinal, &err), TN_E_LIMIT);
    assert_non_null(strstr(err.text, "/ckpt-2/MANIFEST' was written by a newer version\nhint: "));
    assert_int_equal(ordinal, 99);
    assert_there(p, "ckpt-1 ckpt-2 ");
    (void)save(p, 3);
    assert_int_equal(tn_ckptdir_prune(p->d, 1, 0, &err), TN_E_LIMIT);
    assert_there(p, "ckpt-1 ckpt-2 ckpt-3 ");
}

TEST_ON(place *p, what_is_damaged_does_not_count)
{
    for (uint64_t i = 1; i <= 4; i++) {
        (void)save(p, i);
    }
    spoil(p, "ckpt-3/MANIFEST");
    assert_int_equal(tn_ckptdir_prune(p->d, 2, 3, NULL), TN_OK); /* the best, too */
    assert_there(p, "ckpt-2 ckpt-3.damaged ckpt-4 ");
    assert_newest(p, 4);
}

TEST_ON(place *p, deltas_on_damage_are_set_aside_with_it)
{
    uint64_t ordinal = 0;
    save_chain(p);
    spoil(p, "ckpt-2/config.yaml");
    assert_int_equal(take(p, &ordinal, NULL), TN_OK);
    assert_int_equal(ordinal, 1);
    assert_there(p, "ckpt-1 ckpt-2.damaged ckpt-3.damaged ");
}

TEST_ON(place *p, a_delta_whose_base_is_gone_is_damaged)
{
    uint64_t ordinal = 0;
    save_chain(p);
    assert_int_equal(tn_remove_tree(in_dir(p, "ckpt-2"), NULL), TN_OK);
    assert_int_equal(take(p, &ordinal, NULL), TN_OK);
    assert_int_equal(ordinal, 1);
    assert_there(p, "ckpt-1 ckpt-3.damaged ");
}

TEST_ON(place *p, a_link_to_what_is_not_mounted_is_not_damaged)
{
    tn_error err = {0};
    uint64_t ordinal = 0;
    (void)save(p, 1);
    assert_int_equal(symlink("/nowhere/ckpt-2", in_dir(p, "ckpt-2")), 0);
    assert_int_equal(take(p, &ordinal, &err), TN_E_IO);
    assert_int_equal(tn_ckptdir_prune(p->d, 1, 0, &err), TN_E_IO);
    assert_there(p, "ckpt-1 ckpt-2 ");
}

TEST_ON(place *p, deltas_on_damage_do_not_count)
{
    save_chain(p);
    spoil(p, "ckpt-2/MANIFEST");
    (void)save(p, 4);
    assert_int_equal(tn_ckptdir_prune(p->d, 2, 0, NULL), TN_OK);
    assert_there(p, "ckpt-1 ckpt-2.damaged ckpt-3.damaged ckpt-4 ");
}

TEST_ON(place *p, a_chain_is_no_better_than_its_end)
{
    save_chain(p);
    spoil(p, "ckpt-1/MANIFEST");
    (void)save(p, 4);
    assert_int_equal(tn_ckptdir_prune(p->d, 2, 0, NULL), TN_OK);
    assert_there(p, "ckpt-1.damaged ckpt-2.damaged ckpt-3.damaged ckpt-4 ");
}

TEST_ON(place *p, a_base_goes_after_what_stands_on_it)
{
    tn_error err = {0};
    save_chain(p);
    (void)save(p, 4);
    assert_int_equal(tn_failpoint_set("io.rename#2:EIO", &err), TN_OK); /* or we are killed */
    assert_int_equal(tn_ckptdir_prune(p->d, 1, 0, &err), TN_E_IO);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    assert_there(p, "ckpt-1 ckpt-2 ckpt-4 ");
    spoil(p, "ckpt-4/MANIFEST");
    assert_newest(p, 2);
    assert_int_equal(tn_ckptdir_prune(p->d, 1, 0, &err), TN_OK);
    assert_there(p, "ckpt-1 ckpt-2 ckpt-4.damaged ");
}

static tn_status refuse(void *ctx, const tn_manifest *m, tn_error *err)
{
    (void)ctx;
    return tn_fail(err, TN_E_CKPT, "checkpoint %u is of another model", (unsigned)m->ordinal);
}

TEST_ON(place *p, another_model_is_not_damage)
{
    tn_error err = {0};
    toy_state seen = {0};
    uint64_t ordinal = 0;
    (void)save(p, 1);
    (void)save(p, 2);
    tn_ckpt_loader loader = toy_loader(&seen);
    loader.fits = refuse;
    assert_int_equal(tn_ckptdir_load(p->dir, &loader, &ordinal, &err), TN_E_CKPT);
    assert_string_equal(err.text, "checkpoint 2 is of another model"); /* and 1 was not tried */
}

TEST_ON(place *p, no_memory_is_not_damage)
{
    (void)save(p, 1);
    (void)save(p, 2);
    tn_status status = TN_E_MEMORY;
    for (uint32_t nth = 1; status != TN_OK; nth++) {
        tn_error err = {0};
        toy_state seen = {0};
        uint64_t ordinal = 0;
        assert_true(nth < 1000);
        tn_alloc_fail_at(nth);
        status = load(p, false, &ordinal, &seen, &err);
        tn_alloc_fail_at(0);
        assert_true(status == TN_OK ? ordinal == 2 : status == TN_E_MEMORY);
    }
}
