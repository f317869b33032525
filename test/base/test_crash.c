/* test_crash.c - the crash harness itself: it passes a right protocol and catches wrong ones.
 *
 * The protocol keeps a number in two files of a folder; both must say the same.
 */
#include "support/test.h"

#include "support/crash.h"

enum { SAVES = 3, SAMPLES = 2000, SEED = 20261121 };

typedef struct protocol {
    bool skip_file_sync;   /* forgets to sync: writes by an appender */
    bool skip_folder_sync; /* forgets to sync the new folder */
    bool early;            /* says "saved" before the rename */
    uint32_t violations;
    bool count_only;
} protocol;

static tn_status write_number(const protocol *p, const char *path, uint32_t n, tn_error *err)
{
    char text[600]; /* long enough to be cut in the middle */
    memset(text, 'a' + (int)n, sizeof text);
    if (p->skip_file_sync) {
        tn_appender *a = NULL;
        TN_TRY(tn_append_open(&a, path, err));
        tn_status status = tn_append(a, text, sizeof text, err);
        tn_append_close(a);
        return status;
    }
    tn_file *f = NULL;
    TN_TRY(tn_file_create(&f, path, err));
    tn_status status = tn_file_write(f, text, sizeof text, err);
    if (status != TN_OK) {
        tn_file_abandon(f);
        return status;
    }
    return tn_file_commit(f, err);
}

static tn_status save(const protocol *p, const char *dir, uint32_t n, tn_error *err)
{
    char tmp[TN_PATH_SIZE];
    char final[TN_PATH_SIZE];
    char file[TN_PATH_SIZE];
    char name[32];
    (void)snprintf(name, sizeof name, "save-%u", n);
    TN_TRY(tn_path_join(dir, name, final, err));
    TN_TRY(tn_path_join(dir, "next.tmp", tmp, err));
    TN_TRY(tn_remove_tree(tmp, err));
    TN_TRY(tn_dir_make_new(tmp, err));
    TN_TRY(tn_path_join(tmp, "left", file, err));
    TN_TRY(write_number(p, file, n, err));
    TN_TRY(tn_path_join(tmp, "right", file, err));
    TN_TRY(write_number(p, file, n, err));
    if (!p->skip_folder_sync) {
        TN_TRY(tn_dir_sync(tmp, err));
    }
    if (p->early) {
        tn_crash_saved(n);
    }
    TN_TRY(tn_rename(tmp, final, err));
    tn_crash_saved(n);
    return TN_OK;
}

static tn_status run(const char *dir, void *ctx, tn_error *err)
{
    for (uint32_t n = 1; n <= SAVES; n++) {
        TN_TRY(save(ctx, dir, n, err));
    }
    return TN_OK;
}

/* Whether `path` holds number n; false also when it is not there. */
static bool holds(const char *dir, uint32_t n, const char *file)
{
    char path[TN_PATH_SIZE];
    char name[64];
    tn_text text CLEANUP(tn_text_done) = {0};
    (void)snprintf(name, sizeof name, "save-%u/%s", n, file);
    bool good = tn_path_join(dir, name, path, NULL) == TN_OK &&
                tn_file_read_all(path, 4096, &text, NULL) == TN_OK && text.size == 600;
    for (size_t i = 0; i < text.size && good; i++) {
        good = text.data[i] == (char)('a' + n);
    }
    return good;
}

static void check(const char *dir, uint64_t saved, void *ctx)
{
    protocol *p = ctx;
    bool kept = saved == 0;
    bool whole = true;
    for (uint32_t n = 1; n <= SAVES; n++) {
        char path[TN_PATH_SIZE];
        char name[32];
        (void)snprintf(name, sizeof name, "save-%u", n);
        assert_int_equal(tn_path_join(dir, name, path, NULL), TN_OK);
        bool good = holds(dir, n, "left") && holds(dir, n, "right");
        kept = kept || (good && n >= saved);
        whole = whole && (good || !tn_path_exists(path));
    }
    if (p->count_only) {
        p->violations += !kept || !whole;
    } else {
        assert_true(kept);
        assert_true(whole);
    }
}

TEST(a_right_protocol_survives_a_kill_at_every_call)
{
    protocol p = {0};
    uint32_t n = tn_crash_kill_everywhere(&(tn_crash_case){run, check, &p});
    assert_in_range(n, 40, 200);
}

TEST(a_right_protocol_survives_every_error)
{
    protocol p = {0};
    uint32_t n = tn_crash_fail_everywhere(&(tn_crash_case){run, check, &p});
    assert_in_range(n, 400, 2000);
}

TEST(a_right_protocol_survives_every_power_cut)
{
    protocol p = {0};
    uint32_t n = tn_crash_states(&(tn_crash_case){run, check, &p}, SAMPLES, SEED);
    assert_in_range(n, SAMPLES, SAMPLES + 400);
}

TEST(a_forgotten_file_sync_is_caught)
{
    protocol p = {.skip_file_sync = true, .count_only = true};
    (void)tn_crash_states(&(tn_crash_case){run, check, &p}, 100, SEED);
    assert_true(p.violations > 0);
}

TEST(a_forgotten_folder_sync_is_caught)
{
    protocol p = {.skip_folder_sync = true, .count_only = true};
    (void)tn_crash_states(&(tn_crash_case){run, check, &p}, 100, SEED);
    assert_true(p.violations > 0);
}

TEST(an_early_report_is_caught)
{
    protocol p = {.early = true, .count_only = true};
    (void)tn_crash_kill_everywhere(&(tn_crash_case){run, check, &p});
    assert_true(p.violations > 0);
    p.violations = 0;
    (void)tn_crash_states(&(tn_crash_case){run, check, &p}, 100, SEED);
    assert_true(p.violations > 0);
}
