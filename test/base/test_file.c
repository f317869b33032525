/* test_file.c - files that are written once and then stand. */
#include "support/test.h"

#include "base/core/alloc.h"
#include "base/core/failpoint.h"
#include "base/file/file.h"
#include "base/math/crc32c.h"
#include "support/tmpdir.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
    tn_text text = {0};
    tn_error err = {0};
    assert_int_equal(tn_file_read_all(path, 64 << 20, &text, &err), TN_OK);
    assert_int_equal(text.size, size);
    assert_memory_equal(text.data, data, size);
    tn_text_done(&text);
}

static uint32_t files_in(const char *dir)
{
    tn_text names = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(dir, &names, &n, NULL), TN_OK);
    tn_text_done(&names);
    return n;
}

static tn_file *created(const char *path)
{
    tn_error err = {0};
    tn_file *f = NULL;
    assert_int_equal(tn_file_create(&f, path, &err), TN_OK);
    return f;
}

static void what_was_written_is_read_back_with_size_and_crc(void **state)
{
    const place *p = *state;
    static char data[(3 << 20) + 17];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (char)(i * 2654435761U >> 13);
    }
    tn_error err = {0};
    tn_file *f = created(p->path);
    size_t at = 0;
    for (size_t piece = 1; at < sizeof data;
         piece = piece * 3 + 1) { /* below and over the buffer */
        size_t size = piece < sizeof data - at ? piece : sizeof data - at;
        assert_int_equal(tn_file_write(f, data + at, size, &err), TN_OK);
        at += size;
    }
    assert_int_equal(tn_file_size(f), sizeof data);
    assert_int_equal(tn_file_crc(f), tn_crc32c(0, data, sizeof data));
    assert_int_equal(tn_file_commit(f, &err), TN_OK);
    assert_holds(p->path, data, sizeof data);
}

static void a_file_that_is_there_is_not_overwritten(void **state)
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

static void an_abandoned_file_is_gone(void **state)
{
    const place *p = *state;
    tn_error err = {0};
    tn_file *f = created(p->path);
    assert_int_equal(tn_file_write(f, "abc", 3, &err), TN_OK);
    tn_file_abandon(f);
    tn_file_abandon(NULL);
    assert_false(tn_path_exists(p->path));
}

static void short_writes_are_continued(void **state)
{
    const place *p = *state;
    static char data[700000];
    memset(data, 'x', sizeof data);
    data[sizeof data - 1] = 'y';
    tn_error err = {0};
    assert_int_equal(tn_failpoint_set("io.write#1:short,io.write#3:short", &err), TN_OK);
    tn_file *f = created(p->path);
    assert_int_equal(tn_file_write(f, data, sizeof data, &err), TN_OK);
    assert_int_equal(tn_file_commit(f, &err), TN_OK);
    assert_holds(p->path, data, sizeof data);
}

static void a_failed_fsync_or_close_removes_the_file(void **state)
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

static void replace_leaves_the_new_content_and_nothing_else(void **state)
{
    const place *p = *state;
    tn_error err = {0};
    assert_int_equal(tn_file_replace(p->path, "old", 3, &err), TN_OK);
    assert_int_equal(tn_file_replace(p->path, "newer", 5, &err), TN_OK);
    assert_holds(p->path, "newer", 5);
    assert_int_equal(files_in(p->dir), 1);
}

static void replace_writes_anew_under_another_name_after_a_failed_fsync(void **state)
{
    const place *p = *state;
    tn_error err = {0};
    assert_int_equal(tn_failpoint_set("io.fsync#1:EIO", &err), TN_OK);
    assert_int_equal(tn_file_replace(p->path, "abc", 3, &err), TN_OK);
    assert_holds(p->path, "abc", 3);
    assert_int_equal(files_in(p->dir), 1);
}

static void replace_keeps_the_old_content_when_it_fails(void **state)
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

static void a_path_too_long_is_refused(void **state)
{
    (void)state;
    static char path[TN_PATH_SIZE + 10];
    memset(path, 'a', sizeof path - 1);
    tn_error err = {0};
    tn_file *f = NULL;
    assert_int_equal(tn_file_create(&f, path, &err), TN_E_LIMIT);
    assert_int_equal(tn_file_replace(path, "", 0, &err), TN_E_LIMIT);
    assert_null(f);
}

static void no_memory_is_reported_and_leaves_no_file(void **state)
{
    const place *p = *state;
    tn_error err = {0};
    tn_file *f = NULL;
    tn_alloc_fail_at(1);
    assert_int_equal(tn_file_create(&f, p->path, &err), TN_E_MEMORY);
    assert_false(tn_path_exists(p->path));
}

static void a_private_file_is_its_owners_from_the_first_moment(void **state)
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

static void random_ids_differ_and_are_never_zero(void **state)
{
    (void)state;
    uint64_t a = tn_random_id();
    uint64_t b = tn_random_id();
    assert_true(a != 0 && b != 0 && a != b);
}

int main(void)
{
#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        FILE_TEST(what_was_written_is_read_back_with_size_and_crc),
        FILE_TEST(a_file_that_is_there_is_not_overwritten),
        FILE_TEST(an_abandoned_file_is_gone),
        FILE_TEST(a_private_file_is_its_owners_from_the_first_moment),
        FILE_TEST(short_writes_are_continued),
        FILE_TEST(a_failed_fsync_or_close_removes_the_file),
        FILE_TEST(replace_leaves_the_new_content_and_nothing_else),
        FILE_TEST(replace_writes_anew_under_another_name_after_a_failed_fsync),
        FILE_TEST(replace_keeps_the_old_content_when_it_fails),
        FILE_TEST(a_path_too_long_is_refused),
        FILE_TEST(no_memory_is_reported_and_leaves_no_file),
        FILE_TEST(random_ids_differ_and_are_never_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
