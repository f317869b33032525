/* test_filelock.c - one owner per run directory. */
#include "support/test.h"

#include "base/core/failpoint.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

TMPDIR_FIXTURE(dir);

/* A child that takes the lock, says so, and holds it until it is killed. */
static pid_t child_that_holds(void)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tn_lock *lock = NULL;
        tn_status status = tn_lock_take(&lock, dir, 1, NULL);
        char answer = status == TN_OK ? 'y' : 'n';
        if (write(ready[1], &answer, 1) == 1) {
            (void)pause();
        }
        _exit(0);
    }
    char answer = '?';
    assert_int_equal(read(ready[0], &answer, 1), 1);
    assert_int_equal(answer, 'y');
    (void)close(ready[0]);
    (void)close(ready[1]);
    return child;
}

static void end(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST(a_second_owner_is_told_who_is_first)
{
    tn_error err = {0};
    tn_lock *lock = NULL;
    pid_t child = child_that_holds();
    assert_int_equal(tn_lock_take(&lock, dir, 2, &err), TN_E_CKPT);
    assert_null(lock);
    char want[400];
    (void)snprintf(want, sizeof want, "run directory '%s' is in use by pid %d on host '", dir,
                   (int)child);
    assert_memory_equal(err.text, want, strlen(want));
    end(child);
}

TEST(a_killed_holder_loses_the_lock)
{
    tn_lock *lock = NULL;
    end(child_that_holds());
    assert_int_equal(tn_lock_take(&lock, dir, 2, NULL), TN_OK);
    tn_text owner = {0};
    char path[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(dir, "OWNER", path, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(path, 4096, &owner, NULL), TN_OK);
    static const char want[] = "{\"session\":\"0000000000000002\",\"host\":\"";
    assert_memory_equal(owner.data, want, sizeof want - 1);
    tn_text_done(&owner);
    tn_lock_release(lock);
    tn_lock_release(NULL);
}

TEST(an_unreadable_owner_is_another_process)
{
    tn_error err = {0};
    tn_lock *lock = NULL;
    pid_t child = child_that_holds();
    char path[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(dir, "OWNER", path, &err), TN_OK);
    assert_int_equal(tn_file_replace(path, "{\"pid\":", 7, &err), TN_OK);
    assert_int_equal(tn_lock_take(&lock, dir, 2, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "in use by another process"));
    end(child);
}

TEST(a_folder_itself_is_locked_without_a_trace)
{
    tn_error err = {0};
    tn_lock *lock = NULL;
    tn_lock *second = NULL;
    tn_text names = {0};
    uint32_t n = 0;
    char path[TN_PATH_SIZE];
    char moved[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(dir, "folder", path, &err), TN_OK);
    assert_int_equal(tn_path_join(dir, "moved", moved, &err), TN_OK);
    assert_int_equal(tn_lock_folder(&lock, path, &err), TN_E_IO);
    assert_null(lock);
    assert_int_equal(tn_dir_make_new(path, &err), TN_OK);
    assert_int_equal(tn_lock_folder(&lock, path, &err), TN_OK);
    assert_int_equal(tn_lock_folder(&second, path, &err), TN_E_CKPT);
    assert_null(second);
    assert_non_null(strstr(err.text, "is locked by another process"));
    assert_int_equal(tn_dir_list(path, &names, &n, &err), TN_OK);
    assert_int_equal(n, 0);
    tn_text_done(&names);
    assert_int_equal(tn_rename(path, moved, &err), TN_OK); /* it goes with the folder */
    assert_int_equal(tn_lock_folder(&second, moved, &err), TN_E_CKPT);
    tn_lock_release(lock);
    assert_int_equal(tn_lock_folder(&second, moved, &err), TN_OK);
    tn_lock_release(second);
    assert_int_equal(tn_remove_tree(moved, &err), TN_OK);
}

TEST(who_looks_at_a_lock_neither_makes_nor_takes_it)
{
    tn_error err = {0};
    tn_lock *lock = NULL;
    tn_text names = {0};
    uint32_t n = 0;
    assert_int_equal(tn_lock_look(dir, &err), TN_OK);
    assert_int_equal(tn_dir_list(dir, &names, &n, &err), TN_OK);
    assert_int_equal(n, 0);
    tn_text_done(&names);
    pid_t child = child_that_holds();
    assert_int_equal(tn_lock_look(dir, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "' is in use by pid "));
    end(child);
    assert_int_equal(tn_lock_look(dir, &err), TN_OK);
    assert_int_equal(tn_lock_take(&lock, dir, 4, &err), TN_OK);
    tn_lock_release(lock);
}

TEST(a_name_is_locked_until_it_is_given_back)
{
    char want[400];
    tn_error err = {0};
    tn_lock *lock = NULL;
    tn_lock *second = NULL;
    assert_false(tn_lock_is_held(dir, "1.lock"));
    assert_int_equal(tn_lock_name(&lock, dir, "1.lock", &err), TN_OK);
    assert_true(tn_lock_is_held(dir, "1.lock"));
    assert_int_equal(tn_lock_name(&second, dir, "1.lock", &err), TN_E_CKPT);
    assert_null(second);
    (void)snprintf(want, sizeof want, "'%s/1.lock' is locked by another process", dir);
    assert_string_equal(err.text, want);
    assert_int_equal(tn_lock_name(&second, dir, "2.lock", &err), TN_OK);
    tn_lock_release(second);
    tn_lock_release(lock);
    assert_false(tn_lock_is_held(dir, "1.lock"));
    assert_int_equal(tn_lock_name(&lock, dir, "no/1.lock", &err), TN_E_IO);
}

TEST(every_error_is_reported_and_gives_the_lock_back)
{
    for (uint32_t k = 1; k <= 12; k++) {
        char rule[32];
        tn_error err = {0};
        tn_lock *lock = NULL;
        (void)snprintf(rule, sizeof rule, "io#%u+:EIO", k);
        assert_int_equal(tn_failpoint_set(rule, &err), TN_OK);
        tn_status status = tn_lock_take(&lock, dir, 3, &err);
        assert_true(status == TN_E_IO || (status == TN_OK && k > 6));
        tn_lock_release(lock);
        assert_int_equal(tn_failpoint_set(NULL, &err), TN_OK);
        lock = NULL;
        assert_int_equal(tn_lock_take(&lock, dir, 4, &err), TN_OK);
        tn_lock_release(lock);
    }
}
