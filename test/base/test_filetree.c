/* test_filetree.c - folders: make, list, rename, sync, remove. */
#include "support/test.h"

#include "base/core/failpoint.h"

#include <sys/stat.h>
#include <unistd.h>

static char dir[256];
static char path[TN_PATH_SIZE];

SET_UP
{
    tn_tmpdir_make(dir);
}

TEAR_DOWN
{
    tn_tmpdir_remove(dir);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
}

static const char *in_dir(const char *name)
{
    assert_int_equal(tn_path_join(dir, name, path, NULL), TN_OK);
    return path;
}

static void put(const char *name)
{
    assert_int_equal(tn_file_replace(in_dir(name), name, strlen(name), NULL), TN_OK);
}

TEST(make_makes_parents_and_accepts_what_is_there)
{
    tn_error err = {0};
    assert_int_equal(tn_dir_make(in_dir("a//b/c"), &err), TN_OK);
    assert_true(tn_path_exists(in_dir("a/b/c")));
    assert_int_equal(tn_dir_make(in_dir("a/b/c/"), &err), TN_OK);
    assert_int_equal(tn_dir_make_new(in_dir("a/b"), &err), TN_E_IO);
    assert_non_null(strstr(err.text, "File exists"));
    assert_int_equal(tn_dir_make("", &err), TN_E_USAGE);
}

TEST(make_refuses_a_file_in_the_way)
{
    tn_error err = {0};
    put("file");
    assert_int_equal(tn_dir_make(in_dir("file"), &err), TN_E_IO);
    assert_int_equal(tn_dir_make(in_dir("file/inner"), &err), TN_E_IO);
}

TEST(private_folders_are_this_users_alone)
{
    struct stat st;
    tn_error err = {0};
    assert_int_equal(tn_dir_make_private(in_dir("mine"), &err), TN_OK);
    assert_int_equal(stat(in_dir("mine"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(tn_dir_make_private(in_dir("mine"), &err), TN_OK); /* it is there */
    assert_int_equal(chmod(in_dir("mine"), 0710), 0);
    assert_int_equal(tn_dir_make_private(in_dir("mine"), &err), TN_E_IO);
    assert_non_null(strstr(err.text, "not a folder of this user's alone"));
    put("file");
    assert_int_equal(tn_dir_make_private(in_dir("file"), &err), TN_E_IO);
    assert_int_equal(symlink("/", in_dir("link")), 0);
    assert_int_equal(tn_dir_make_private(in_dir("link"), &err), TN_E_IO);
    assert_int_equal(tn_dir_make_private(in_dir("no/parent"), &err), TN_E_IO);
    assert_non_null(strstr(err.text, "No such file"));
}

TEST(list_gives_the_names_in_bytewise_order)
{
    put("b");
    put("B");
    put("aa");
    put("a");
    put(".hidden");
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(dir, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 5);
    static const char want[] = ".hidden\0B\0a\0aa\0b";
    assert_int_equal(names.size, sizeof want);
    assert_memory_equal(names.data, want, sizeof want);
}

TEST(listing_what_is_no_folder_is_an_error)
{
    tn_error err = {0};
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 7;
    assert_int_equal(tn_dir_list(in_dir("none"), &names, &n, &err), TN_E_IO);
    assert_int_equal(n, 7);
    assert_int_equal(names.size, 0);
}

TEST(rename_moves_between_folders)
{
    tn_error err = {0};
    char to[TN_PATH_SIZE];
    put("file");
    assert_int_equal(tn_dir_make(in_dir("sub"), &err), TN_OK);
    assert_int_equal(tn_path_join(dir, "sub/moved", to, &err), TN_OK);
    assert_int_equal(tn_rename(in_dir("file"), to, &err), TN_OK);
    assert_true(tn_path_exists(to));
    assert_false(tn_path_exists(in_dir("file")));
    assert_int_equal(tn_rename(in_dir("file"), to, &err), TN_E_IO); /* a fenced owner sees this */
    assert_non_null(strstr(err.text, "No such file or directory"));
}

TEST(rename_reports_a_parent_that_cannot_be_synced)
{
    tn_error err = {0};
    char to[TN_PATH_SIZE];
    put("file");
    assert_int_equal(tn_path_join(dir, "moved", to, &err), TN_OK);
    assert_int_equal(tn_failpoint_set("io.fsync:EIO", &err), TN_OK);
    assert_int_equal(tn_rename(in_dir("file"), to, &err), TN_E_IO);
}

TEST(remove_takes_trees_and_what_is_not_there)
{
    assert_int_equal(tn_dir_make(in_dir("t/u/v"), NULL), TN_OK);
    put("t/x");
    put("t/u/y");
    put("kept");
    char link[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(dir, "t/link", link, NULL), TN_OK);
    assert_int_equal(symlink(dir, link), 0);
    assert_int_equal(tn_remove_tree(in_dir("t"), NULL), TN_OK);
    assert_false(tn_path_exists(in_dir("t")));
    assert_true(tn_path_exists(in_dir("kept"))); /* the link was not followed */
    assert_int_equal(tn_remove_tree(in_dir("t"), NULL), TN_OK);
    assert_int_equal(tn_remove_file(in_dir("t"), NULL), TN_OK);
    assert_int_equal(tn_remove_file(in_dir("kept"), NULL), TN_OK);
    assert_false(tn_path_exists(in_dir("kept")));
}

TEST(a_path_too_long_is_refused)
{
    static char name[TN_PATH_SIZE];
    memset(name, 'n', sizeof name - 1);
    tn_error err = {0};
    char out[TN_PATH_SIZE] = "untouched?";
    assert_int_equal(tn_path_join(dir, name, out, &err), TN_E_LIMIT);
    assert_int_equal(tn_dir_make(name, &err), TN_E_USAGE);
}

TEST(free_space_is_known)
{
    tn_error err = {0};
    uint64_t bytes = 0;
    assert_int_equal(tn_disk_free(dir, &bytes, &err), TN_OK);
    assert_true(bytes > 0);
    assert_int_equal(tn_disk_free(in_dir("none"), &bytes, &err), TN_E_IO);
}

static bool is_no_lock(const char *name)
{
    return strcmp(name, "LOCK") != 0;
}

static void make_tree(void)
{
    assert_int_equal(tn_dir_make(in_dir("from/inner"), NULL), TN_OK);
    put("from/a");
    put("from/LOCK");
    put("from/inner/b");
    put("from/inner/LOCK");
    assert_int_equal(symlink("a", in_dir("from/link")), 0);
}

static void assert_holds(const char *name, const char *text)
{
    tn_text found CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(in_dir(name), 1000, &found, NULL), TN_OK);
    assert_string_equal(tn_text_str(&found), text);
}

TEST(a_copy_holds_all_files_that_are_wanted)
{
    char to[TN_PATH_SIZE];
    tn_error err = {0};
    make_tree();
    assert_int_equal(tn_path_join(dir, "to", to, NULL), TN_OK);
    assert_int_equal(tn_copy_tree(in_dir("from"), to, is_no_lock, &err), TN_OK);
    assert_holds("to/a", "from/a");
    assert_holds("to/inner/b", "from/inner/b");
    assert_false(tn_path_exists(in_dir("to/LOCK")));
    assert_false(tn_path_exists(in_dir("to/inner/LOCK")));
    assert_false(tn_path_exists(in_dir("to/link")));
    assert_int_equal(tn_copy_tree(in_dir("from"), to, NULL, &err), TN_E_USAGE);
    assert_non_null(strstr(err.text, "is there already"));
}

TEST(a_copy_that_fails_leaves_nothing)
{
    char to[TN_PATH_SIZE];
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    tn_error err = {0};
    make_tree();
    assert_int_equal(tn_path_join(dir, "to", to, NULL), TN_OK);
    for (int at = 1; at < 5; at++) {
        char rule[40];
        (void)snprintf(rule, sizeof rule, "io.fsync#%d:ENOSPC", at);
        assert_int_equal(tn_failpoint_set(rule, &err), TN_OK);
        assert_int_equal(tn_copy_tree(in_dir("from"), to, NULL, &err), TN_E_IO);
        assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    }
    assert_int_equal(tn_dir_list(dir, &names, &n, &err), TN_OK);
    assert_int_equal(n, 1); /* from */
}
