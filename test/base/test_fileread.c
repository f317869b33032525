/* test_fileread.c - reading: all of it, mapped, or in pieces; and logs that grow. */
#include "support/test.h"

#include "base/core/alloc.h"
#include "base/core/failpoint.h"
#include "base/file/file.h"
#include "support/tmpdir.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char dir[256];
static char path[TN_PATH_SIZE];

static int set_up(void **state)
{
    (void)state;
    tn_tmpdir_make(dir);
    return tn_path_join(dir, "file", path, NULL) == TN_OK ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    tn_tmpdir_remove(dir);
    return tn_failpoint_set(NULL, NULL) == TN_OK ? 0 : 1;
}

static void put(const void *data, size_t size)
{
    tn_error err = {0};
    assert_int_equal(tn_file_replace(path, data, size, &err), TN_OK);
}

static void assert_holds(const char *want)
{
    tn_text text = {0};
    tn_error err = {0};
    assert_int_equal(tn_file_read_all(path, 1 << 20, &text, &err), TN_OK);
    assert_string_equal(tn_text_str(&text), want);
    tn_text_done(&text);
}

static void read_all_appends_and_has_a_limit(void **state)
{
    (void)state;
    tn_error err = {0};
    tn_text text = {0};
    put("abcdef", 6);
    tn_text_adds(&text, "before ");
    assert_int_equal(tn_file_read_all(path, 5, &text, &err), TN_E_LIMIT);
    assert_int_equal(text.size, 7);
    assert_int_equal(tn_file_read_all(path, 6, &text, &err), TN_OK);
    assert_int_equal(text.size, 13);
    assert_memory_equal(text.data, "before abcdef", 13);
    tn_text_done(&text);
}

static void read_all_reads_more_than_one_piece(void **state)
{
    (void)state;
    static char data[(256 << 10) * 2];
    memset(data, 'd', sizeof data);
    put(data, sizeof data);
    tn_error err = {0};
    tn_text text = {0};
    assert_int_equal(tn_file_read_all(path, sizeof data, &text, &err), TN_OK);
    assert_int_equal(text.size, sizeof data);
    tn_text_done(&text);
}

static void read_all_reads_a_pipe(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "from a pipe", 11), 11);
    assert_int_equal(close(ends[1]), 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_holds("from a pipe");
    assert_int_equal(close(ends[0]), 0);
}

static void read_all_names_a_file_that_is_not_there(void **state)
{
    (void)state;
    tn_error err = {0};
    tn_text text = {0};
    assert_int_equal(tn_file_read_all("no/such", 10, &text, &err), TN_E_IO);
    assert_string_equal(err.text, "cannot open 'no/such': No such file or directory");
    assert_int_equal(tn_file_read_all(dir, 10, &text, &err), TN_E_IO);
    tn_text_done(&text);
}

static void a_map_shows_the_bytes(void **state)
{
    (void)state;
    tn_error err = {0};
    tn_map map = {0};
    put("abc", 3);
    assert_int_equal(tn_map_file(&map, path, &err), TN_OK);
    assert_int_equal(map.size, 3);
    assert_memory_equal(map.data, "abc", 3);
    tn_unmap(&map);
    tn_unmap(&map);
    put("", 0);
    assert_int_equal(tn_map_file(&map, path, &err), TN_OK);
    assert_int_equal(map.size, 0);
    tn_unmap(&map);
    assert_int_equal(tn_map_file(&map, dir, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "not a regular file"));
}

static void an_infile_reads_anywhere_but_not_past_its_end(void **state)
{
    (void)state;
    tn_error err = {0};
    tn_infile *f = NULL;
    char got[4] = "";
    put("abcdef", 6);
    assert_int_equal(tn_infile_open(&f, path, &err), TN_OK);
    assert_int_equal(tn_infile_size(f), 6);
    assert_string_equal(tn_infile_path(f), path);
    assert_int_equal(tn_infile_read(f, 3, got, 3, &err), TN_OK);
    assert_string_equal(got, "def");
    assert_int_equal(tn_infile_read(f, 0, got, 0, &err), TN_OK);
    assert_int_equal(tn_infile_read(f, 4, got, 3, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "ends at byte 6, 1 more expected"));
    tn_infile_close(f);
    tn_infile_close(NULL);
    assert_int_equal(tn_infile_open(&f, dir, &err), TN_E_IO);
    assert_null(f);
}

static void a_failing_disk_is_an_error(void **state)
{
    (void)state;
    tn_error err = {0};
    tn_text text = {0};
    tn_infile *f = NULL;
    char got;
    put("abc", 3);
    assert_int_equal(tn_failpoint_set("io.read:EIO", &err), TN_OK);
    assert_int_equal(tn_file_read_all(path, 10, &text, &err), TN_E_IO);
    assert_int_equal(tn_infile_open(&f, path, &err), TN_OK);
    assert_int_equal(tn_infile_read(f, 0, &got, 1, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "Input/output error"));
    tn_infile_close(f);
    tn_text_done(&text);
}

static void a_log_grows_by_records_across_openings(void **state)
{
    (void)state;
    tn_error err = {0};
    for (uint32_t i = 0; i < 2; i++) {
        tn_appender *a = NULL;
        assert_int_equal(tn_append_open(&a, path, &err), TN_OK);
        assert_int_equal(tn_append_size(a), 3 * i);
        assert_int_equal(tn_append(a, "ab\n", 3, &err), TN_OK);
        tn_append_close(a);
    }
    tn_append_close(NULL);
    assert_holds("ab\nab\n");
}

static void a_line_cut_by_a_crash_gets_its_newline(void **state)
{
    (void)state;
    tn_error err = {0};
    tn_appender *a = NULL;
    put("ab\ncut", 6);
    assert_int_equal(tn_append_open(&a, path, &err), TN_OK);
    assert_int_equal(tn_append(a, "ef\n", 3, &err), TN_OK);
    tn_append_close(a);
    assert_holds("ab\ncut\nef\n");
}

static void a_record_that_cannot_be_written_whole_leaves_no_trace(void **state)
{
    (void)state;
    tn_error err = {0};
    tn_appender *a = NULL;
    assert_int_equal(tn_append_open(&a, path, &err), TN_OK);
    assert_int_equal(tn_append(a, "one\n", 4, &err), TN_OK);
    assert_int_equal(tn_failpoint_set("io.write#1:short,io.write#2:ENOSPC", &err), TN_OK);
    assert_int_equal(tn_append(a, "two\n", 4, &err), TN_E_IO);
    assert_int_equal(tn_append(a, "three\n", 6, &err), TN_OK);
    tn_append_close(a);
    assert_holds("one\nthree\n");
}

static void no_memory_and_long_paths_are_reported(void **state)
{
    (void)state;
    static char name[TN_PATH_SIZE + 10];
    memset(name, 'n', sizeof name - 1);
    tn_error err = {0};
    tn_appender *a = NULL;
    tn_infile *f = NULL;
    tn_text text = {0};
    assert_int_equal(tn_append_open(&a, name, &err), TN_E_LIMIT);
    assert_int_equal(tn_infile_open(&f, name, &err), TN_E_LIMIT);
    put("abc", 3);
    tn_alloc_fail_at(1);
    assert_int_equal(tn_append_open(&a, path, &err), TN_E_MEMORY);
    tn_alloc_fail_at(1);
    assert_int_equal(tn_infile_open(&f, path, &err), TN_E_MEMORY);
    tn_alloc_fail_at(1);
    assert_int_equal(tn_file_read_all(path, 10, &text, &err), TN_E_MEMORY);
    assert_null(a);
    assert_null(f);
    tn_text_done(&text);
}

static void a_log_that_cannot_be_read_is_not_opened(void **state)
{
    (void)state;
    tn_error err = {0};
    tn_appender *a = NULL;
    put("cut", 3);
    assert_int_equal(tn_failpoint_set("io.read:EIO", &err), TN_OK);
    assert_int_equal(tn_append_open(&a, path, &err), TN_E_IO);
    assert_int_equal(tn_failpoint_set("io.create:EMFILE", &err), TN_OK);
    assert_int_equal(tn_append_open(&a, path, &err), TN_E_IO);
    assert_null(a);
    /* a half record that cannot be taken back is told as well */
    assert_int_equal(tn_failpoint_set(NULL, &err), TN_OK);
    assert_int_equal(tn_append_open(&a, path, &err), TN_OK);
    assert_int_equal(tn_failpoint_set("io.write:ENOSPC,io.truncate:EIO", &err), TN_OK);
    assert_int_equal(tn_append(a, "x\n", 2, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "cannot truncate"));
    tn_append_close(a);
}

int main(void)
{
#define READ_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        READ_TEST(read_all_appends_and_has_a_limit),
        READ_TEST(read_all_reads_more_than_one_piece),
        READ_TEST(read_all_reads_a_pipe),
        READ_TEST(read_all_names_a_file_that_is_not_there),
        READ_TEST(a_map_shows_the_bytes),
        READ_TEST(an_infile_reads_anywhere_but_not_past_its_end),
        READ_TEST(a_failing_disk_is_an_error),
        READ_TEST(a_log_grows_by_records_across_openings),
        READ_TEST(a_line_cut_by_a_crash_gets_its_newline),
        READ_TEST(a_record_that_cannot_be_written_whole_leaves_no_trace),
        READ_TEST(no_memory_and_long_paths_are_reported),
        READ_TEST(a_log_that_cannot_be_read_is_not_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
