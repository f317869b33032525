/* test_zmqcalls.c - libzmq is found when it is there, and missed in words when it is not. */
#include "cli/signals.h"
#include "cluster/security/zmqcalls.h"
#include "support/test.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(the_library_of_this_machine_is_loaded_whole)
{
    tn_zmq z;
    assert_int_equal(tn_zmq_load(&z, NULL), TN_OK);
    void *context = z.zmq_ctx_new();
    assert_non_null(context);
    assert_int_equal(z.zmq_ctx_get(context, ZMQ_IO_THREADS), 1);
    assert_int_equal(z.zmq_ctx_term(context), 0);
}

TEST(a_missing_library_is_a_sentence_that_says_what_to_install)
{
    tn_zmq z = {0};
    tn_error err = {0};
    assert_int_equal(tn_zmq_load_from(&z, "libno_such_thing.so.5", &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "libno_such_thing.so.5"));
    assert_non_null(strstr(err.text, "hint: install libzmq5"));
    assert_null(z.zmq_ctx_new);
}

TEST(a_library_without_the_calls_names_the_first_that_is_missing)
{
    tn_zmq z = {0};
    tn_error err = {0};
    assert_int_equal(tn_zmq_load_from(&z, "libm.so.6", &err), TN_E_CONFIG);
    assert_string_equal(err.text, "'libm.so.6' has no 'zmq_version'");
    assert_null(z.zmq_ctx_new);
}

/* A group has lost a peer then. Its descriptor is closed under a socket, which libzmq asserts. */
TEST(an_abort_of_zeromq_ends_with_6)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        tn_zmq z;
        int fd = -1;
        size_t size = sizeof fd;
        const struct rlimit none = {0, 0};
        tn_signals_start();
        if (setrlimit(RLIMIT_CORE, &none) == 0 && tn_zmq_load(&z, NULL) == TN_OK) {
            void *socket = z.zmq_socket(z.zmq_ctx_new(), ZMQ_PAIR);
            (void)z.zmq_getsockopt(socket, ZMQ_FD, &fd, &size);
            (void)close(fd);
            (void)z.zmq_getsockopt(socket, ZMQ_EVENTS, &fd, &size);
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 6);
}
