/* test_ipcdir.c - folders of sockets: short enough, and nobody else's. */
#include "cluster/launch/ipcdir.h"
#include "cluster/testdir.h"

#include "support/test.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *chosen(const char *run_dir, const char *runtime_dir)
{
    static char out[TN_ENDPOINT_PATH];
    const tn_ipc_place p = {
        .run_dir = run_dir, .runtime_dir = runtime_dir, .job = 0xabcd, .uid = 1000};
    tn_ipc_dir(&p, out);
    return out;
}

FIXTURE(testdir_set_up, testdir_tear_down);

TEST(the_first_folder_that_is_short_enough_is_taken)
{
    char run[120];
    memset(run, 'r', sizeof run);
    run[107 - 10 - 8] = '\0'; /* "/sockets" and "/4095.sock" fit just so */
    assert_int_equal(strlen(chosen(run, NULL)), 107 - 10);
    assert_memory_equal(chosen(run, NULL), run, strlen(run));
    run[107 - 10 - 8] = 'r';
    run[107 - 10 - 7] = '\0';
    assert_string_equal(chosen(run, "/run/user/1000"), "/run/user/1000/tnet-000000000000abcd");
    assert_string_equal(chosen(run, NULL), "/tmp/tnet-1000-000000000000abcd");
    assert_string_equal(chosen(run, run), "/tmp/tnet-1000-000000000000abcd");
    assert_string_equal(chosen(NULL, NULL), "/tmp/tnet-1000-000000000000abcd");
    assert_string_equal(chosen("runs/x", "/run"), "runs/x/sockets");
}

static tn_endpoint socket_in(const char *folder)
{
    tn_endpoint e = {.is_ipc = true};
    int length = snprintf(e.path, sizeof e.path, "%s/%s/0.sock", testdir, folder);
    assert_in_range(length, 1, 107);
    return e;
}

/* Takes the address and gives it back. */
static tn_status visit(const tn_endpoint *e, tn_error *err)
{
    tn_lock *lock = NULL;
    tn_status status = tn_ipc_take(e, &lock, err);
    assert_true((lock != NULL) == (status == TN_OK && e->is_ipc));
    tn_lock_release(lock);
    return status;
}

TEST(the_folder_is_made_for_its_user_alone)
{
    struct stat st;
    tn_endpoint e = socket_in("run/x/sockets");
    assert_int_equal(visit(&e, NULL), TN_OK);
    PATH_IN(path, testdir, "run/x/sockets");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(visit(&e, NULL), TN_OK);
    assert_int_equal(chmod(path, 0755), 0);
    tn_error err = {0};
    assert_int_equal(visit(&e, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "not a folder of this user's alone"));
}

/* A socket file with nobody behind it. */
static void leave_socket(const tn_endpoint *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, e->path, strlen(e->path) + 1);
    const void *address = &at;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, address, sizeof at), 0);
    (void)close(fd);
    assert_true(tn_path_exists(e->path));
}

TEST(the_socket_of_a_killed_process_is_removed)
{
    tn_endpoint e = socket_in("s");
    assert_int_equal(visit(&e, NULL), TN_OK);
    leave_socket(&e);
    assert_int_equal(visit(&e, NULL), TN_OK);
    assert_false(tn_path_exists(e.path));
}

TEST(the_socket_of_a_living_process_stays)
{
    char run[300];
    char want[400];
    tn_lock *first = NULL;
    tn_error err = {0};
    tn_endpoint e = socket_in("run/sockets");
    tn_endpoint other = e;
    other.path[strlen(e.path) - sizeof "0.sock" + 1] = '1';
    (void)snprintf(run, sizeof run, "%s/run", testdir);
    assert_int_equal(tn_ipc_check(run, NULL), TN_OK); /* there is no such folder */
    assert_int_equal(tn_ipc_take(&e, &first, NULL), TN_OK);
    leave_socket(&e);
    (void)snprintf(want, sizeof want, "'ipc://%s' is in use by another process\n", e.path);
    assert_int_equal(visit(&e, &err), TN_E_CKPT);
    assert_memory_equal(err.text, want, strlen(want));
    assert_true(tn_path_exists(e.path));
    assert_int_equal(visit(&other, NULL), TN_OK);
    (void)snprintf(want, sizeof want,
                   "'%s/sockets' is in use by another group of processes: '0.lock' is locked", run);
    assert_int_equal(tn_ipc_check(run, &err), TN_E_CKPT);
    assert_string_equal(err.text, want);
    tn_lock_release(first);
    assert_int_equal(tn_ipc_check(run, NULL), TN_OK);
    assert_int_equal(visit(&e, NULL), TN_OK);
    assert_false(tn_path_exists(e.path));
}

TEST(what_needs_no_folder_is_left_alone)
{
    tn_endpoint tcp = {.host = "127.0.0.1", .port = 1};
    assert_int_equal(visit(&tcp, NULL), TN_OK);
    tn_error err = {0};
    tn_endpoint bare = {.is_ipc = true, .path = "0.sock"};
    assert_int_equal(visit(&bare, &err), TN_E_CONFIG);
    tn_endpoint root = {.is_ipc = true, .path = "/0.sock"};
    assert_int_equal(visit(&root, &err), TN_E_CONFIG);
    assert_string_equal(err.text, "'ipc:///0.sock' is in no folder of its own");
    char deep[200];
    memset(deep, 'x', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(tn_ipc_check(deep, NULL),
                     TN_OK); /* too long for a socket: none stands there */
}
