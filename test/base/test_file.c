/* test_file.c - files that are written once and then stand; reading: all of it, mapped, in pieces;
 * logs. */
#include "base/core/failpoint.h"
#include "base/math/crc32c.h"
#include "support/test.h"

#include <sys/stat.h>
#include <unistd.h>

typedef struct place {
    char dir[256];
    char path[300];
} place;

static int set_up(void **state)
{
    static place p;
    tn_tmpdir_make(p.dir);
    (void)snprintf(p.path, sizeof p.path, "%s/file", p.dir);
    *state = &p;
    return 0;
}

static int tear_down(void **state)
{
    const place *p = *state;
    tn_tmpdir_remove(p->dir);
    return tn_failpoint_set(NULL, NULL) == TN_OK ? 0 : 1;
}

static void assert_holds(const char *path, const void *data, size_t size)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(path, 64 << 20, &text, NULL), TN_OK);
    assert_int_equal(text.size, size);
    assert_memory_equal(text.data, data, size);
}

static uint32_t files_in(const char *dir)
{
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(dir, &names, &n, NULL), TN_OK);
    return n;
}

static tn_file *created(const char *path)
{
    tn_file *f = NULL;
    assert_int_equal(tn_file_create(&f, path, NULL), TN_OK);
    return f;
}

TEST_WITH(set_up, tear_down, what_was_written_is_read_back_with_size_and_crc)
{
    const place *p = *state;
    static char data[(3 << 20) + 17];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (char)(i * 2654435761U >> 13);
    }
    tn_file *f = created(p->path);
    size_t at = 0;
    for (size_t piece = 1; at < sizeof data;
         piece = piece * 3 + 1) { /* below and over the buffer */
        size_t size = piece < sizeof data - at ? piece : sizeof data - at;
        assert_int_equal(tn_file_write(f, data + at, size, NULL), TN_OK);
        at += size;
    }
    assert_int_equal(tn_file_size(f), sizeof data);
    assert_int_equal(tn_file_crc(f), tn_crc32c(0, data, sizeof data));
    assert_int_equal(tn_file_commit(f, NULL), TN_OK);
    assert_holds(p->path, data, sizeof data);
}

TEST_WITH(set_up, tear_down, a_file_that_is_there_is_not_overwritten)
{
    const place *p = *state;
    tn_error err = {0};
    assert_int_equal(tn_file_commit(created(p->path), &err), TN_OK);
    tn_file *f = NULL;
    assert_int_equal(tn_file_create(&f, p->path, &err), TN_E_IO);
    assert_null(f);
    char want[400];
    (void)snprintf(want, sizeof want, "cannot create '%s': File exists", p->path);
    assert_string_equal(err.text, want);
}

TEST_WITH(set_up, tear_down, an_abandoned_file_is_gone)
{
    const place *p = *state;
    tn_file *f = created(p->path);
    assert_int_equal(tn_file_write(f, "abc", 3, NULL), TN_OK);
    tn_file_abandon(f);
    tn_file_abandon(NULL);
    assert_false(tn_path_exists(p->path));
}

TEST_WITH(set_up, tear_down, short_writes_are_continued)
{
    const place *p = *state;
    static char data[700000];
    memset(data, 'x', sizeof data);
    data[sizeof data - 1] = 'y';
    assert_int_equal(tn_failpoint_set("io.write#1:short,io.write#3:short", NULL), TN_OK);
    tn_file *f = created(p->path);
    assert_int_equal(tn_file_write(f, data, sizeof data, NULL), TN_OK);
    assert_int_equal(tn_file_commit(f, NULL), TN_OK);
    assert_holds(p->path, data, sizeof data);
}

TEST_WITH(set_up, tear_down, a_failed_fsync_or_close_removes_the_file)
{
    const place *p = *state;
    static const char *const rule[] = {"io.fsync:EIO", "io.close:EDQUOT", "io.write:ENOSPC"};
    static const char *const verb[] = {"sync", "close", "write"};
    static const char *const why[] = {"Input/output error", "Disk quota exceeded",
                                      "No space left on device"};
    for (size_t i = 0; i < 3; i++) {
        tn_error err = {0};
        tn_file *f = created(p->path);
        assert_int_equal(tn_file_write(f, "abc", 3, &err), TN_OK);
        assert_int_equal(tn_failpoint_set(rule[i], &err), TN_OK);
        assert_int_equal(tn_file_commit(f, &err), TN_E_IO);
        assert_int_equal(tn_failpoint_set(NULL, &err), TN_OK);
        char want[400];
        (void)snprintf(want, sizeof want, "cannot %s '%s': %s", verb[i], p->path, why[i]);
        assert_string_equal(err.text, want);
        assert_false(tn_path_exists(p->path));
    }
}

TEST_WITH(set_up, tear_down, replace_leaves_the_new_content_and_nothing_else)
{
    const place *p = *state;
    assert_int_equal(tn_file_replace(p->path, "old", 3, NULL), TN_OK);
    assert_int_equal(tn_file_replace(p->path, "newer", 5, NULL), TN_OK);
    assert_holds(p->path, "newer", 5);
    assert_int_equal(files_in(p->dir), 1);
}

TEST_WITH(set_up, tear_down, replace_writes_anew_under_another_name_after_a_failed_fsync)
{
    const place *p = *state;
    assert_int_equal(tn_failpoint_set("io.fsync#1:EIO", NULL), TN_OK);
    assert_int_equal(tn_file_replace(p->path, "abc", 3, NULL), TN_OK);
    assert_holds(p->path, "abc", 3);
    assert_int_equal(files_in(p->dir), 1);
}

TEST_WITH(set_up, tear_down, replace_keeps_the_old_content_when_it_fails)
{
    const place *p = *state;
    static const char *const rule[] = {"io.fsync:EIO", "io.create:EMFILE", "io.rename:EIO",
                                       "io.write:ENOSPC"};
    tn_error err = {0};
    assert_int_equal(tn_file_replace(p->path, "old", 3, &err), TN_OK);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tn_failpoint_set(rule[i], &err), TN_OK);
        assert_int_equal(tn_file_replace(p->path, "new", 3, &err), TN_E_IO);
        assert_int_equal(tn_failpoint_set(NULL, &err), TN_OK);
        assert_holds(p->path, "old", 3);
        assert_int_equal(files_in(p->dir), 1);
    }
}

TEST_WITH(set_up, tear_down, a_path_too_long_is_refused)
{
    static char path[TN_PATH_SIZE + 10];
    memset(path, 'a', sizeof path - 1);
    tn_error err = {0};
    tn_file *f = NULL;
    assert_int_equal(tn_file_create(&f, path, &err), TN_E_LIMIT);
    assert_int_equal(tn_file_replace(path, "", 0, &err), TN_E_LIMIT);
    assert_null(f);
}

TEST_WITH(set_up, tear_down, no_memory_is_reported_and_leaves_no_file)
{
    const place *p = *state;
    tn_error err = {0};
    tn_file *f = NULL;
    tn_alloc_fail_at(1);
    assert_int_equal(tn_file_create(&f, p->path, &err), TN_E_MEMORY);
    assert_false(tn_path_exists(p->path));
}

TEST_WITH(set_up, tear_down, a_private_file_is_its_owners_from_the_first_moment)
{
    const place *p = *state;
    struct stat st;
    tn_file *f = NULL;
    assert_int_equal(tn_file_create_private(&f, p->path, NULL), TN_OK);
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(tn_file_write(f, "secret", 6, NULL), TN_OK);
    assert_int_equal(tn_file_commit(f, NULL), TN_OK);
    assert_holds(p->path, "secret", 6);
    assert_int_equal(tn_file_create_private(&f, p->path, NULL), TN_E_IO);
    assert_null(f);
}

TEST_WITH(set_up, tear_down, random_ids_differ_and_are_never_zero)
{
    uint64_t a = tn_random_id();
    uint64_t b = tn_random_id();
    assert_true(a != 0 && b != 0 && a != b);
}

static char read_dir[256];
static char read_path[TN_PATH_SIZE];

static int set_up_reading(void **state)
{
    (void)state;
    tn_tmpdir_make(read_dir);
    return tn_path_join(read_dir, "file", read_path, NULL) == TN_OK ? 0 : 1;
}

static int tear_down_reading(void **state)
{
    (void)state;
    tn_tmpdir_remove(read_dir);
    return tn_failpoint_set(NULL, NULL) == TN_OK ? 0 : 1;
}

static void put(const void *data, size_t size)
{
    assert_int_equal(tn_file_replace(read_path, data, size, NULL), TN_OK);
}

static void assert_text(const char *want)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(read_path, 1 << 20, &text, NULL), TN_OK);
    assert_string_equal(tn_text_str(&text), want);
}

TEST_WITH(set_up_reading, tear_down_reading, read_all_appends_and_has_a_limit)
{
    tn_error err = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    put("abcdef", 6);
    tn_text_adds(&text, "before ");
    assert_int_equal(tn_file_read_all(read_path, 5, &text, &err), TN_E_LIMIT);
    assert_int_equal(text.size, 7);
    assert_int_equal(tn_file_read_all(read_path, 6, &text, &err), TN_OK);
    assert_int_equal(text.size, 13);
    assert_memory_equal(text.data, "before abcdef", 13);
}

TEST_WITH(set_up_reading, tear_down_reading, read_all_reads_more_than_one_piece)
{
    static char data[(256 << 10) * 2];
    memset(data, 'd', sizeof data);
    put(data, sizeof data);
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(read_path, sizeof data, &text, NULL), TN_OK);
    assert_int_equal(text.size, sizeof data);
}

TEST_WITH(set_up_reading, tear_down_reading, read_all_reads_a_pipe)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "from a pipe", 11), 11);
    assert_int_equal(close(ends[1]), 0);
    (void)snprintf(read_path, sizeof read_path, "/proc/self/fd/%d", ends[0]);
    assert_text("from a pipe");
    assert_int_equal(close(ends[0]), 0);
}

TEST_WITH(set_up_reading, tear_down_reading, read_all_names_a_file_that_is_not_there)
{
    tn_error err = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all("no/such", 10, &text, &err), TN_E_IO);
    assert_string_equal(err.text, "cannot open 'no/such': No such file or directory");
    tn_file *file = NULL;
    assert_int_equal(tn_file_create(&file, "no/such/file", &err), TN_E_IO);
    assert_string_equal(err.text, "there is no folder 'no/such' to write into\nhint: 'mkdir -p "
                                  "no/such' makes it");
    assert_int_equal(tn_file_read_all(read_dir, 10, &text, &err), TN_E_IO);
}

TEST_WITH(set_up_reading, tear_down_reading, a_map_shows_the_bytes)
{
    tn_error err = {0};
    tn_map map = {0};
    put("abc", 3);
    assert_int_equal(tn_map_file(&map, read_path, &err), TN_OK);
    assert_int_equal(map.size, 3);
    assert_memory_equal(map.data, "abc", 3);
    tn_unmap(&map);
    tn_unmap(&map);
    put("", 0);
    assert_int_equal(tn_map_file(&map, read_path, &err), TN_OK);
    assert_int_equal(map.size, 0);
    tn_unmap(&map);
    assert_int_equal(tn_map_file(&map, read_dir, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "not a regular file"));
}

TEST_WITH(set_up_reading, tear_down_reading, an_infile_reads_anywhere_but_not_past_its_end)
{
    tn_error err = {0};
    tn_infile *f = NULL;
    char got[4] = "";
    put("abcdef", 6);
    assert_int_equal(tn_infile_open(&f, read_path, &err), TN_OK);
    assert_int_equal(tn_infile_size(f), 6);
    assert_string_equal(tn_infile_path(f), read_path);
    assert_int_equal(tn_infile_read(f, 3, got, 3, &err), TN_OK);
    assert_string_equal(got, "def");
    assert_int_equal(tn_infile_read(f, 0, got, 0, &err), TN_OK);
    assert_int_equal(tn_infile_read(f, 4, got, 3, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "ends at byte 6, 1 more expected"));
    tn_infile_close(f);
    tn_infile_close(NULL);
    assert_int_equal(tn_infile_open(&f, read_dir, &err), TN_E_IO);
    assert_null(f);
}

TEST_WITH(set_up_reading, tear_down_reading, a_failing_disk_is_an_error)
{
    tn_error err = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_infile *f = NULL;
    char got;
    put("abc", 3);
    assert_int_equal(tn_failpoint_set("io.read:EIO", &err), TN_OK);
    assert_int_equal(tn_file_read_all(read_path, 10, &text, &err), TN_E_IO);
    assert_int_equal(tn_infile_open(&f, read_path, &err), TN_OK);
    assert_int_equal(tn_infile_read(f, 0, &got, 1, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "Input/output error"));
    tn_infile_close(f);
}

TEST_WITH(set_up_reading, tear_down_reading, a_log_grows_by_records_across_openings)
{
    for (uint32_t i = 0; i < 2; i++) {
        tn_appender *a = NULL;
        assert_int_equal(tn_append_open(&a, read_path, NULL), TN_OK);
        assert_int_equal(tn_append(a, "ab\n", 3, NULL), TN_OK);
        tn_append_close(a);
    }
    tn_append_close(NULL);
    assert_text("ab\nab\n");
}

TEST_WITH(set_up_reading, tear_down_reading, a_line_cut_by_a_crash_gets_its_newline)
{
    tn_appender *a = NULL;
    put("ab\ncut", 6);
    assert_int_equal(tn_append_open(&a, read_path, NULL), TN_OK);
    assert_int_equal(tn_append(a, "ef\n", 3, NULL), TN_OK);
    tn_append_close(a);
    assert_text("ab\ncut\nef\n");
}

TEST_WITH(set_up_reading, tear_down_reading, a_record_that_cannot_be_written_whole_leaves_no_trace)
{
    tn_error err = {0};
    tn_appender *a = NULL;
    assert_int_equal(tn_append_open(&a, read_path, &err), TN_OK);
    assert_int_equal(tn_append(a, "one\n", 4, &err), TN_OK);
    assert_int_equal(tn_failpoint_set("io.write#1:short,io.write#2:ENOSPC", &err), TN_OK);
    assert_int_equal(tn_append(a, "two\n", 4, &err), TN_E_IO);
    assert_int_equal(tn_append(a, "three\n", 6, &err), TN_OK);
    tn_append_close(a);
    assert_text("one\nthree\n");
}

TEST_WITH(set_up_reading, tear_down_reading, no_memory_and_long_paths_are_reported)
{
    static char name[TN_PATH_SIZE + 10];
    memset(name, 'n', sizeof name - 1);
    tn_error err = {0};
    tn_appender *a = NULL;
    tn_infile *f = NULL;
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_append_open(&a, name, &err), TN_E_LIMIT);
    assert_int_equal(tn_infile_open(&f, name, &err), TN_E_LIMIT);
    put("abc", 3);
    tn_alloc_fail_at(1);
    assert_int_equal(tn_append_open(&a, read_path, &err), TN_E_MEMORY);
    tn_alloc_fail_at(1);
    assert_int_equal(tn_infile_open(&f, read_path, &err), TN_E_MEMORY);
    tn_alloc_fail_at(1);
    assert_int_equal(tn_file_read_all(read_path, 10, &text, &err), TN_E_MEMORY);
    assert_null(a);
    assert_null(f);
}

TEST_WITH(set_up_reading, tear_down_reading, a_log_that_cannot_be_read_is_not_opened)
{
    tn_error err = {0};
    tn_appender *a = NULL;
    put("cut", 3);
    assert_int_equal(tn_failpoint_set("io.read:EIO", &err), TN_OK);
    assert_int_equal(tn_append_open(&a, read_path, &err), TN_E_IO);
    assert_int_equal(tn_failpoint_set("io.create:EMFILE", &err), TN_OK);
    assert_int_equal(tn_append_open(&a, read_path, &err), TN_E_IO);
    assert_null(a);
    /* a half record that cannot be taken back is told as well */
    assert_int_equal(tn_failpoint_set(NULL, &err), TN_OK);
    assert_int_equal(tn_append_open(&a, read_path, &err), TN_OK);
    assert_int_equal(tn_failpoint_set("io.write:ENOSPC,io.truncate:EIO", &err), TN_OK);
    assert_int_equal(tn_append(a, "x\n", 2, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "cannot truncate"));
    tn_append_close(a);
}
