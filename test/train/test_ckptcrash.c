/* test_ckptcrash.c - promise I1: after any crash the newest checkpoint that loads is at least the
 * last one reported saved, and a folder with a final name is complete. */
#include "support/test.h"

#include "base/math/key.h"
#include "support/crash.h"
#include "train/toyckpt.h"

enum { SAVES = 3, SAMPLES = 2000, SEED = 20261121 };

typedef struct mode {
    bool on_the_debris; /* the check saves once more */
} mode;

static tn_status save_some(tn_ckptdir *d, tn_error *err)
{
    for (uint32_t i = 0; i < SAVES; i++) {
        uint64_t ordinal = 0;
        const toy_base none = {0};
        TN_TRY(toy_save(d, none, &ordinal, NULL, err));
        tn_crash_saved(ordinal);
        TN_TRY(tn_ckptdir_prune(d, 1, 0, err));
    }
    return TN_OK;
}

static tn_status run(const char *dir, void *ctx, tn_error *err)
{
    (void)ctx;
    tn_ckptdir *d = NULL;
    TN_TRY(tn_ckptdir_open(&d, dir, err));
    tn_status status = save_some(d, err);
    tn_ckptdir_close(d);
    return status;
}

static void check_every_final_name(const char *dir)
{
    tn_error err = {0};
    tn_ckpt_listing present;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1024);
    assert_int_equal(tn_ckptdir_list(dir, arena, &present, &err), TN_OK);
    for (uint32_t i = 0; i < present.n; i++) {
        char name[64];
        char path[TN_PATH_SIZE];
        toy_state state = {0};
        tn_ckpt_loader loader = toy_loader(&state);
        (void)snprintf(name, sizeof name, "ckpt-%llu", (unsigned long long)present.ordinal[i]);
        assert_int_equal(tn_path_join(dir, name, path, &err), TN_OK);
        assert_ok(tn_ckptdir_load_one(path, &loader, &err), err.text);
        assert_int_equal(state.loaded, present.ordinal[i]);
    }
}

static uint64_t newest(const char *dir)
{
    tn_error err = {0};
    uint64_t ordinal = 0;
    toy_state state = {0};
    tn_ckpt_loader loader = toy_loader(&state);
    loader.strict = true;
    assert_ok(tn_ckptdir_load(dir, &loader, &ordinal, &err), err.text);
    assert_int_equal(state.loaded, ordinal);
    return ordinal;
}

static void save_on_the_debris(const char *dir)
{
    tn_ckptdir *d = NULL;
    uint64_t before = newest(dir);
    uint64_t ordinal = 0;
    const toy_base none = {0};
    assert_int_equal(tn_ckptdir_open(&d, dir, NULL), TN_OK);
    assert_int_equal(toy_save(d, none, &ordinal, NULL, NULL), TN_OK);
    assert_int_equal(tn_ckptdir_prune(d, 1, 0, NULL), TN_OK);
    tn_ckptdir_close(d);
    assert_int_equal(ordinal, before + 1);
    assert_int_equal(newest(dir), ordinal);

    tn_text names CLEANUP(tn_text_done) = {
        0}; /* nothing is left but LATEST, LOCK, OWNER and one checkpoint */
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(dir, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 4);
}

static void check(const char *dir, uint64_t saved, void *ctx)
{
    const mode *m = ctx;
    check_every_final_name(dir);
    assert_true(newest(dir) >= saved);
    if (m->on_the_debris) {
        save_on_the_debris(dir);
    }
}

TEST(a_kill_at_every_call_loses_nothing_that_was_saved)
{
    mode m = {.on_the_debris = true};
    uint32_t n = tn_crash_kill_everywhere(&(tn_crash_case){run, check, &m});
    print_message("killed at %u calls\n", n - 1);
    assert_in_range(n, 100, 1000);
}

TEST(an_error_at_every_call_loses_nothing_that_was_saved)
{
    mode m = {0};
    uint32_t n = tn_crash_fail_everywhere(&(tn_crash_case){run, check, &m});
    print_message("%u runs with errors\n", n);
    assert_in_range(n, 1000, 10000);
}

TEST(a_power_cut_at_any_time_loses_nothing_that_was_saved)
{
    mode m = {0};
    uint32_t n = tn_crash_states(&(tn_crash_case){run, check, &m}, SAMPLES, SEED);
    assert_true(n > SAMPLES);
    m.on_the_debris = true;
    (void)tn_crash_states(&(tn_crash_case){run, check, &m}, 100, SEED + 1);
}

/* Writes `size` bytes over a file, without the file module. */
static void put(const char *path, const char *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void assert_gives_way(const char *dir, const char *path, const tn_text *bytes)
{
    uint64_t ordinal = 0;
    toy_state seen = {0};
    tn_ckpt_loader loader = toy_loader(&seen);
    put(path, bytes->data, bytes->size);
    assert_int_equal(tn_ckptdir_load(dir, &loader, &ordinal, NULL), TN_OK);
    assert_int_equal(ordinal, 1);
    assert_int_equal(seen.loaded, 1);
}

static void break_in_every_way(const char *dir, const char *path)
{
    tn_text bytes CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(path, 1 << 20, &bytes, NULL), TN_OK);
    size_t size = bytes.size;
    for (bytes.size = 0; bytes.size < size; bytes.size += size / 16 + 1) {
        assert_gives_way(dir, path, &bytes);
    }
    bytes.size = size;
    uint64_t dice = SEED;
    for (uint32_t i = 0; i < 200 && size > 0; i++) {
        dice = tn_mix(dice + i);
        char *byte = &bytes.data[(dice >> 3) % size];
        *byte = (char)(*byte ^ (1 << (dice & 7)));
        assert_gives_way(dir, path, &bytes);
        *byte = (char)(*byte ^ (1 << (dice & 7)));
    }
    put(path, bytes.data, size);
    assert_int_equal(newest(dir), 2);
}

TEST(every_cut_and_flip_of_every_file_makes_the_one_before_load)
{
    static const char *const name[] = {"MANIFEST", "config.yaml", "sparse-0000-0003.tns"};
    tn_ckptdir *d = NULL;
    TMPDIR(dir);
    assert_int_equal(tn_ckptdir_open(&d, dir, NULL), TN_OK);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t ordinal = 0;
        const toy_base none = {0};
        assert_int_equal(toy_save(d, none, &ordinal, NULL, NULL), TN_OK);
    }
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        char folder[TN_PATH_SIZE];
        char path[TN_PATH_SIZE];
        assert_int_equal(tn_path_join(dir, "ckpt-2", folder, NULL), TN_OK);
        assert_int_equal(tn_path_join(folder, name[i], path, NULL), TN_OK);
        break_in_every_way(dir, path);
    }
    tn_ckptdir_close(d);
}
