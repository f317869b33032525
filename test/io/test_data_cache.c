/* test_data_cache.c - data.cache: made by the first pass, read by later ones, never in the way. */
#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/core/failpoint.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "base/math/crc32c.h"
#include "io/read/cache.h"
#include "setup.h"
#include "support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* What the library logs, from any of a reader's threads. */
static pthread_mutex_t logging = PTHREAD_MUTEX_INITIALIZER;
static tn_text logged;

static void keep_line(tn_log_level level, const char *line)
{
    (void)level;
    (void)pthread_mutex_lock(&logging);
    tn_text_adds(&logged, line);
    tn_text_addc(&logged, '\n');
    (void)pthread_mutex_unlock(&logging);
}

static uint32_t times(const char *text, const char *what)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++) {
        n++;
    }
    return n;
}

typedef struct fixture {
    setup s;
    const char *path;
    char folder[512]; /* of the caches */
} fixture;

static void open_fixture(fixture *f, const char *more)
{
    char text[256];
    tn_text rows = {0};
    tn_text_clear(&logged);
    tn_log_set(keep_line, TN_LOG_INFO);
    (void)snprintf(text, sizeof text,
                   "{data: {format: libsvm, shuffle: 16, part_bytes: 300B, cache: auto%s}}", more);
    setup_open(&f->s, text);
    for (uint32_t i = 0; i < 200; i++) {
        tn_text_addf(&rows, "%u %u:1 %u:2\n", i & 1, i, i * 3);
    }
    f->path = setup_file(&f->s, "rows", rows.data, rows.size);
    tn_text_done(&rows);
    (void)snprintf(f->folder, sizeof f->folder, "%s/.tnet-cache", f->s.dir);
}

static void close_fixture(fixture *f)
{
    tn_log_set(NULL, TN_LOG_ERROR);
    tn_text_done(&logged);
    setup_close(&f->s);
}

static tn_reader_opts opts_of(const fixture *f, uint32_t epoch)
{
    return (tn_reader_opts){.paths = {1, &f->path},
                            .batch_rows = 7,
                            .prefetch = 2,
                            .training = true,
                            .seed = 3,
                            .from = {.epoch = epoch},
                            .passes = 3,
                            .use_cache = true};
}

/* One epoch, as text. */
static void read_epoch(const fixture *f, uint32_t epoch, tn_text *out)
{
    tn_reader_opts opts = opts_of(f, epoch);
    tn_text_clear(out);
    setup_dump(&f->s, &opts, out);
}

/* The only file of the folder; fails the test when there is another. */
static const char *only_cache(const fixture *f)
{
    static char path[1024];
    tn_text names = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(f->folder, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 1);
    (void)snprintf(path, sizeof path, "%s/%s", f->folder, tn_text_str(&names));
    tn_text_done(&names);
    return path;
}

/* All that a pass says that made the cache. */
static const char *made_line(const fixture *f)
{
    static char line[1200];
    const char *path = only_cache(f);
    tn_text bytes = {0};
    assert_int_equal(tn_file_read_all(path, 1 << 20, &bytes, NULL), TN_OK);
    (void)snprintf(line, sizeof line,
                   "made binary cache '%s', %.1f MB, which later passes read in place of the data; "
                   "data.cache=none makes none\n",
                   path, 1e-6 * (double)bytes.size);
    tn_text_done(&bytes);
    return line;
}

/* The rows of an epoch read with and without the cache. */
static void assert_epoch(const fixture *f, uint32_t epoch)
{
    tn_text with = {0};
    tn_text without = {0};
    tn_reader_opts opts = opts_of(f, epoch);
    read_epoch(f, epoch, &with);
    opts.use_cache = false;
    setup_dump(&f->s, &opts, &without);
    assert_string_equal(with.data, without.data);
    tn_text_done(&with);
    tn_text_done(&without);
}

TEST(the_first_epoch_makes_the_cache_and_later_ones_read_it)
{
    fixture f;
    tn_text out = {0};
    open_fixture(&f, "");
    assert_epoch(&f, 0);
    assert_string_equal(tn_text_str(&logged), made_line(&f));
    assert_int_equal(strlen(strrchr(only_cache(&f), '/')), 1 + 16 + 4);
    tn_text_clear(&logged);
    assert_epoch(&f, 1);
    assert_epoch(&f, 0);
    assert_string_equal(tn_text_str(&logged), "");
    tn_text_done(&out);
    close_fixture(&f);
}

/* Turns a bit of a part's first block; `share` percent of the parts are before it. */
static void damage(const fixture *f, uint32_t share)
{
    tn_text bytes = {0};
    tn_cache *cache = NULL;
    const char *path = only_cache(f);
    assert_int_equal(tn_cache_open(&cache, path, NULL), TN_OK);
    uint64_t at = cache->part[cache->n_parts * share / 100].at;
    tn_cache_close(cache);
    assert_int_equal(tn_file_read_all(path, 1 << 20, &bytes, NULL), TN_OK);
    bytes.data[at + 40] ^= 0x10;
    assert_int_equal(tn_file_replace(path, bytes.data, bytes.size, NULL), TN_OK);
    tn_text_done(&bytes);
}

TEST(a_damaged_block_is_read_from_the_data_and_the_cache_made_anew)
{
    for (uint32_t share = 0; share < 100; share += 33) {
        fixture f;
        tn_text names = {0};
        uint32_t n = 1;
        open_fixture(&f, "");
        assert_epoch(&f, 0);
        damage(&f, share);
        tn_text_clear(&logged);
        assert_epoch(&f, share % 2); /* no row is lost, and none comes twice */
        const char *said = tn_text_str(&logged);
        assert_int_equal(times(said, "a binary cache is removed"), 1);
        assert_int_equal(times(said, "\n"), 1);
        assert_non_null(strstr(said, "/.tnet-cache/"));
        assert_non_null(strstr(said, "damaged block (crc "));
        assert_int_equal(tn_dir_list(f.folder, &names, &n, NULL), TN_OK);
        assert_int_equal(n, 0);
        tn_text_clear(&logged);
        assert_epoch(&f, 2);
        assert_string_equal(tn_text_str(&logged), made_line(&f));
        tn_text_clear(&logged);
        assert_epoch(&f, 3);
        assert_string_equal(tn_text_str(&logged), "");
        tn_text_done(&names);
        close_fixture(&f);
    }
}

TEST(a_run_goes_on_behind_a_damaged_block_in_the_middle_of_an_epoch)
{
    fixture f;
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_text with = {0};
    tn_text without = {0};
    open_fixture(&f, "");
    assert_epoch(&f, 0);
    tn_reader_opts opts = opts_of(&f, 1);
    assert_int_equal(tn_reader_open(&reader, f.s.schema, &opts, NULL), TN_OK);
    for (uint32_t i = 0; i < 9; i++) {
        assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
        opts.from = batch->progress;
        tn_reader_recycle(reader, batch);
    }
    tn_reader_close(reader);
    damage(&f, 50);
    setup_dump(&f.s, &opts, &with);
    opts.use_cache = false;
    setup_dump(&f.s, &opts, &without);
    assert_string_equal(with.data, without.data);
    tn_text_done(&with);
    tn_text_done(&without);
    close_fixture(&f);
}

/* Rows that are counted as bad are so whichever they are read from. */
TEST(bad_rows_are_counted_once_when_a_cache_is_forsaken)
{
    fixture f;
    tn_text rows = {0};
    tn_read_counts counts[2];
    open_fixture(&f, ", bad_records_max: 50");
    for (uint32_t i = 0; i < 200; i++) {
        tn_text_addf(&rows, i % 9 == 0 ? "1 x%u\n" : "1 %u:1\n", i);
    }
    f.path = setup_file(&f.s, "rows", rows.data, rows.size);
    tn_reader_opts opts = opts_of(&f, 0);
    assert_int_equal(setup_drain(&f.s, &opts, NULL), TN_END);
    damage(&f, 60);
    for (uint32_t cached = 0; cached < 2; cached++) {
        tn_reader *reader = NULL;
        tn_batch *batch = NULL;
        opts.use_cache = cached > 0;
        assert_int_equal(tn_reader_open(&reader, f.s.schema, &opts, NULL), TN_OK);
        while (tn_reader_next(reader, &batch, NULL) == TN_OK) {
            tn_reader_recycle(reader, batch);
        }
        tn_reader_counts(reader, &counts[cached]);
        tn_reader_close(reader);
    }
    assert_int_equal(counts[1].bad, counts[0].bad);
    assert_int_equal(counts[1].records, counts[0].records);
    assert_int_equal(counts[1].bytes, counts[0].bytes);
    tn_text_done(&rows);
    close_fixture(&f);
}

/* A cache that was named is not a convenience: nothing stands behind it. */
TEST(damage_to_a_cache_that_was_asked_for_ends_the_run)
{
    fixture f;
    tn_error err = {0};
    open_fixture(&f, "");
    assert_epoch(&f, 0);
    damage(&f, 50);
    f.path = only_cache(&f);
    tn_reader_opts opts = opts_of(&f, 0);
    assert_int_equal(setup_drain(&f.s, &opts, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "damaged block"));
    assert_true(tn_path_exists(f.path));
    close_fixture(&f);
}

TEST(what_a_killed_writer_left_is_swept)
{
    fixture f;
    char path[700];
    char other[700];
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    open_fixture(&f, "");
    assert_int_equal(tn_dir_make(f.folder, NULL), TN_OK);
    (void)snprintf(path, sizeof path, "%s/0123456789abcdef.tnb.fedcba9876543210.tmp", f.folder);
    (void)snprintf(other, sizeof other, "%s/0123456789abcdef.tnb.mine.tmp", f.folder);
    assert_int_equal(tn_file_replace(path, "TNB1", 4, NULL), TN_OK);
    assert_int_equal(tn_file_replace(other, "TNB1", 4, NULL), TN_OK);
    /* One that is being written stays, as it is locked. */
    tn_reader_opts opts = opts_of(&f, 0);
    assert_int_equal(tn_reader_open(&reader, f.s.schema, &opts, NULL), TN_OK);
    assert_false(tn_path_exists(path));
    assert_true(tn_path_exists(other));
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
    tn_reader_recycle(reader, batch);
    tn_cache_sweep(f.folder);
    while (tn_reader_next(reader, &batch, NULL) == TN_OK) {
        tn_reader_recycle(reader, batch);
    }
    tn_reader_close(reader);
    assert_int_equal(tn_remove_file(other, NULL), TN_OK);
    tn_text_clear(&logged);
    assert_epoch(&f, 1);
    assert_string_equal(tn_text_str(&logged), ""); /* it was made */
    assert_non_null(only_cache(&f));
    close_fixture(&f);
}

TEST(a_cache_that_does_not_fit_any_more_is_made_anew)
{
    fixture f;
    open_fixture(&f, "");
    assert_epoch(&f, 0);
    f.path = setup_file(&f.s, "rows", "1 1:1\n0 2:1\n", 12);
    tn_text_clear(&logged);
    assert_epoch(&f, 0);
    assert_non_null(strstr(tn_text_str(&logged), "anew: "));
    assert_non_null(strstr(tn_text_str(&logged), "has changed since"));
    tn_text_clear(&logged);
    assert_epoch(&f, 0);
    assert_string_equal(tn_text_str(&logged), "");
    const char *path = only_cache(&f);
    assert_int_equal(tn_file_replace(path, "TNB1", 4, NULL), TN_OK); /* cut off */
    assert_epoch(&f, 0);
    assert_non_null(strstr(tn_text_str(&logged), "anew: "));
    tn_text_clear(&logged);
    assert_epoch(&f, 0);
    assert_string_equal(tn_text_str(&logged), "");
    close_fixture(&f);
}

/* As cp -p, rsync -t and reproducible builds leave one. */
TEST(a_file_of_the_same_size_and_time_is_not_taken_for_the_old_one)
{
    fixture f;
    struct stat st;
    tn_bytes old;
    open_fixture(&f, "");
    assert_epoch(&f, 0);
    assert_int_equal(stat(f.path, &st), 0);
    char *text = tn_alloc((size_t)st.st_size + 1, 1, "rows");
    FILE *in = fopen(f.path, "r");
    assert_int_equal(fread(text, 1, (size_t)st.st_size, in), (size_t)st.st_size);
    assert_int_equal(fclose(in), 0);
    text[0] ^= 1; /* 0 and 1 */
    f.path = setup_file(&f.s, "rows", text, (size_t)st.st_size);
    const struct timespec as_before[2] = {st.st_atim, st.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, f.path, as_before, 0), 0);
    tn_text_clear(&logged);
    assert_epoch(&f, 0);
    assert_non_null(strstr(tn_text_str(&logged), "has changed since"));
    tn_text_clear(&logged);
    assert_epoch(&f, 0);
    assert_string_equal(tn_text_str(&logged), "");
    tn_free(text);

    /* one of before there were hashes: the flag of its source is not set */
    const char *path = only_cache(&f);
    tn_text file = {0};
    assert_int_equal(tn_file_read_all(path, 1 << 20, &file, NULL), TN_OK);
    old = (tn_bytes){file.data + file.size - 32, 32, false};
    const uint64_t at = tn_get_u64(&old);
    const uint64_t bytes = tn_get_u64(&old);
    char *index = file.data + at;
    tn_store_u32(index + 24 + 16, tn_load_u32(index + 24 + 16) & 0xff);
    tn_store_u32(file.data + file.size - 16, tn_crc32c(0, index, bytes));
    tn_store_u32(file.data + file.size - 12, tn_crc32c(0, file.data + file.size - 32, 20));
    assert_int_equal(tn_file_replace(path, file.data, file.size, NULL), TN_OK);
    assert_epoch(&f, 0);
    assert_non_null(strstr(tn_text_str(&logged), "is of an earlier version"));
    tn_text_clear(&logged);
    assert_epoch(&f, 0);
    assert_string_equal(tn_text_str(&logged), "");
    tn_text_done(&file);
    close_fixture(&f);
}

TEST(a_pass_that_ends_early_leaves_nothing)
{
    fixture f;
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_text names = {0};
    uint32_t n = 1;
    open_fixture(&f, "");
    tn_reader_opts opts = opts_of(&f, 0);
    assert_int_equal(tn_reader_open(&reader, f.s.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
    tn_progress middle = batch->progress;
    tn_reader_close(reader);
    assert_int_equal(tn_dir_list(f.folder, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 0);
    /* An epoch that goes on behind its first part is not whole. */
    opts.from = middle;
    opts.from.part = 3;
    assert_int_equal(setup_drain(&f.s, &opts, NULL), TN_END);
    assert_int_equal(tn_dir_list(f.folder, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 0);
    /* .. but it may be read from a cache that is. */
    assert_epoch(&f, 0);
    tn_text text = {0};
    tn_text cached = {0};
    setup_dump(&f.s, &opts, &cached);
    opts.use_cache = false;
    setup_dump(&f.s, &opts, &text);
    assert_string_equal(text.data, cached.data);
    tn_text_done(&text);
    tn_text_done(&cached);
    tn_text_done(&names);
    close_fixture(&f);
}

TEST(bad_data_ends_the_run_as_ever_and_makes_no_cache)
{
    fixture f;
    tn_error err = {0};
    tn_text names = {0};
    uint32_t n = 1;
    open_fixture(&f, "");
    f.path = setup_file(&f.s, "bad", "1 1:1\n1 x\n", 10);
    tn_reader_opts opts = opts_of(&f, 0);
    assert_int_equal(setup_drain(&f.s, &opts, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "bad:2:3: error: "));
    assert_int_equal(tn_dir_list(f.folder, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 0);
    tn_text_done(&names);
    close_fixture(&f);
}

TEST(a_full_disk_is_one_warning)
{
#if defined(TN_FAILPOINTS)
    static const char *const faults[] = {"io.write#1+:ENOSPC", "io.fsync#1+:EIO",
                                         "io.create:EACCES", "io.mkdir:EROFS", "io.rename:EIO"};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        fixture f;
        tn_text with = {0};
        tn_text without = {0};
        open_fixture(&f, "");
        tn_reader_opts opts = opts_of(&f, 0);
        opts.use_cache = false;
        setup_dump(&f.s, &opts, &without);
        assert_int_equal(tn_failpoint_set(faults[i], NULL), TN_OK);
        read_epoch(&f, 0, &with);
        assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
        assert_string_equal(with.data, without.data);
        assert_int_equal(times(tn_text_str(&logged), "no binary cache is made: "), 1);
        tn_text names = {0};
        uint32_t n = 0;
        tn_status status = tn_dir_list(f.folder, &names, &n, NULL);
        assert_true(status != TN_OK || n == 0);
        tn_text_done(&names);
        tn_text_done(&with);
        tn_text_done(&without);
        close_fixture(&f);
    }
#else
    skip();
#endif
}

TEST(another_configuration_has_a_cache_of_its_own)
{
    fixture f;
    setup other;
    tn_text names = {0};
    uint32_t n = 0;
    open_fixture(&f, "");
    assert_epoch(&f, 0);
    setup_open(&other,
               "{data: {format: libsvm, shuffle: 16, part_bytes: 300B, cache: auto}, slots: "
               "[{name: _, max_len: 1}]}");
    tn_reader_opts opts = opts_of(&f, 0);
    assert_int_equal(setup_drain(&other, &opts, NULL), TN_END);
    assert_int_equal(tn_dir_list(f.folder, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 2);
    tn_text_done(&names);
    setup_close(&other);
    close_fixture(&f);
}

TEST(record_ids_are_kept_for_whoever_wants_them_later)
{
    setup s;
    char text[512];
    char folder[300];
    tn_text with = {0};
    tn_text without = {0};
    setup_open(&s, "{data: {format: libsvm}}");
    const char *path = setup_file(&s, "rows.csv", "label,id,a\n1,x y,7\n0,,8\n1,z,9\n", 30);
    (void)snprintf(folder, sizeof folder, "%s/deep/cache", s.dir);
    (void)snprintf(text, sizeof text,
                   "{data: {format: csv, record_id: id, cache: '%s'}, slots: [{name: a}]}", folder);
    setup by;
    setup_open(&by, text);
    tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 2, .prefetch = 1, .use_cache = true};
    assert_int_equal(setup_drain(&by, &opts, NULL), TN_END);
    assert_true(tn_path_is_dir(folder));
    opts.want_ids = true;
    setup_dump(&by, &opts, &with);
    opts.use_cache = false;
    setup_dump(&by, &opts, &without);
    assert_string_equal(with.data, without.data);
    assert_non_null(strstr(with.data, "#x y"));
    tn_text_done(&with);
    tn_text_done(&without);
    setup_close(&by);
    setup_close(&s);
}

static bool is_made(const fixture *f)
{
    tn_text names = {0};
    uint32_t n = 0;
    tn_status status = tn_dir_list(f->folder, &names, &n, NULL);
    tn_text_done(&names);
    return status == TN_OK && n > 0;
}

TEST(auto_makes_one_for_three_passes_and_reads_one_for_any)
{
    fixture f;
    open_fixture(&f, "");
    tn_reader_opts opts = opts_of(&f, 0);
    for (opts.passes = 0; opts.passes < 3; opts.passes++) {
        assert_int_equal(setup_drain(&f.s, &opts, NULL), TN_END);
        assert_false(is_made(&f));
    }
    assert_string_equal(tn_text_str(&logged), "");
    assert_int_equal(setup_drain(&f.s, &opts, NULL), TN_END);
    assert_true(is_made(&f));
    damage(&f, 0);
    opts.passes = 1;
    tn_text_clear(&logged);
    assert_int_equal(setup_drain(&f.s, &opts, NULL), TN_END);
    assert_int_equal(times(tn_text_str(&logged), "a binary cache is removed"), 1); /* it was read */
    /* A stale one is neither read nor made anew, and said. */
    f.path = setup_file(&f.s, "rows", "1 1:1\n0 2:1\n", 12);
    assert_epoch(&f, 0); /* anew, for three passes */
    f.path = setup_file(&f.s, "rows", "1 1:1\n0 3:1\n1 4:1\n", 18);
    tn_text_clear(&logged);
    assert_int_equal(setup_drain(&f.s, &opts, NULL), TN_END);
    assert_int_equal(times(tn_text_str(&logged), "a binary cache is not read: "), 1);
    close_fixture(&f);
}

TEST(a_folder_that_is_named_gets_one_for_a_single_pass)
{
    fixture f;
    setup named;
    char text[700];
    open_fixture(&f, "");
    (void)snprintf(text, sizeof text, "{data: {format: libsvm, cache: '%s'}}", f.folder);
    setup_open(&named, text);
    tn_reader_opts opts = opts_of(&f, 0);
    opts.passes = 1;
    assert_int_equal(setup_drain(&named, &opts, NULL), TN_END);
    assert_true(is_made(&f));
    setup_close(&named);
    close_fixture(&f);
}

/* What the disk has, in the place of the library's; 0: it is asked. */
static uint64_t unused_bytes;

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs are reserved
int statvfs(const char *restrict path, struct statvfs *restrict out)
{
    const int fd = open(path, O_PATH | O_CLOEXEC); /* a file or a folder */
    const int failed = fd >= 0 ? fstatvfs(fd, out) : -1;
    (void)close(fd);
    if (failed == 0 && unused_bytes > 0) {
        out->f_frsize = 1;
        out->f_bavail = unused_bytes;
    }
    return failed;
}

/* `auto` takes half of the free room at most, a folder that is named all of it. */
TEST(a_cache_is_made_where_there_is_room_for_it)
{
    static const struct {
        int64_t halves; /* of the data that are free, .. */
        int64_t more;   /* .. and bytes */
        bool named, made;
    } cases[] = {{4, 0, false, true},  {4, -1, false, false}, {3, 0, false, false},
                 {2, 0, false, false}, {2, 0, true, true},    {2, -1, true, false},
                 {100, 0, true, true}, {100, 0, false, true}, {1, 0, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        setup named;
        char text[700];
        struct stat data;
        open_fixture(&f, "");
        (void)snprintf(text, sizeof text, "{data: {format: libsvm, cache: '%s'}}", f.folder);
        setup_open(&named, text);
        assert_int_equal(stat(f.path, &data), 0);
        const tn_reader_opts opts = opts_of(&f, 0);
        unused_bytes = (uint64_t)(data.st_size * cases[i].halves / 2 + cases[i].more);
        assert_int_equal(data.st_size % 2, 0); /* case 1 is one byte short, halved */
        assert_int_equal(setup_drain(cases[i].named ? &named : &f.s, &opts, NULL), TN_END);
        unused_bytes = 0;
        if (is_made(&f) != cases[i].made) {
            fail_msg("case %zu", i);
        }
        assert_int_equal(times(tn_text_str(&logged), "the disk has no room for it"),
                         !cases[i].made);
        setup_close(&named);
        close_fixture(&f);
    }
}

TEST(a_disk_that_is_nearly_full_gets_none)
{
#if defined(TN_FAILPOINTS)
    fixture f;
    open_fixture(&f, "");
    tn_reader_opts opts = opts_of(&f, 0);
    assert_int_equal(tn_failpoint_set("disk.full#1+:ENOSPC", NULL), TN_OK);
    assert_int_equal(setup_drain(&f.s, &opts, NULL), TN_END);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    assert_false(is_made(&f));
    assert_int_equal(times(tn_text_str(&logged), "the disk has no room for it"), 1);
    assert_int_equal(times(tn_text_str(&logged), "\n"), 1);
    close_fixture(&f);
#else
    skip();
#endif
}
