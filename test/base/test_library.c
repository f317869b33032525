/* test_library.c - a library that is missing, one that has no room, one that lacks a function. */
#include "support/test.h"

#include "base/machine/library.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const tn_library_name zstd = {"libzstd.so.1", "zstd", "install libzstd1"};

TEST(a_missing_library_is_a_matter_of_configuration)
{
    static const tn_library_name name = {"libnone.so.1", "nothing", "install it"};
    tn_error err = {0};
    void *library = NULL;
    assert_int_equal(tn_library_load(&library, &name, &err), TN_E_CONFIG);
    assert_null(library);
    assert_non_null(strstr(err.text, "nothing cannot be loaded: libnone.so.1: cannot open"));
    assert_non_null(strstr(err.text, "\nhint: install it"));
}

/* Nothing more can be mapped. */
static bool play_no_room(void)
{
    const struct rlimit none = {0, 0};
    tn_error err = {0};
    void *library = NULL;
    return setrlimit(RLIMIT_AS, &none) == 0 &&
           tn_library_load(&library, &zstd, &err) == TN_E_MEMORY && library == NULL &&
           strstr(err.text, "zstd cannot be loaded for want of memory: ") != NULL &&
           strstr(err.text, "install") == NULL;
}

TEST(a_library_without_room_is_a_matter_of_memory)
{
#if defined(TN_SANITIZED)
    skip(); /* it wants memory of its own */
#endif
    int status = 0;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(play_no_room() ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(a_function_that_is_not_there_is_named)
{
    tn_error err = {0};
    void *library = NULL;
    void *at = NULL;
    assert_int_equal(tn_library_load(&library, &zstd, &err), TN_OK);
    assert_int_equal(tn_library_find(library, &zstd, "ZSTD_isError", &at, &err), TN_OK);
    assert_non_null(at);
    at = NULL;
    assert_int_equal(tn_library_find(library, &zstd, "ZSTD_none", &at, &err), TN_E_CONFIG);
    assert_null(at);
    assert_string_equal(err.text, "'libzstd.so.1' has no 'ZSTD_none'");
}
