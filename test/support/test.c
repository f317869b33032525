/* test.c - assertions and closers of test.h. */
#include "support/test.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/thread/team.h"

void tn_free_at(void *variable)
{
    void *held;
    memcpy(&held, variable, sizeof held);
    tn_free(held);
}

void tn_arena_free_at(void *variable)
{
    void *held;
    memcpy(&held, variable, sizeof held);
    tn_arena_free(held);
}

void tn_team_close_at(void *variable)
{
    void *held;
    memcpy(&held, variable, sizeof held);
    tn_team_close(held);
}

void test_ok(tn_status status, const char *text, const char *file, int line)
{
    if (status != TN_OK) {
        print_error("%s\n", text);
    }
    _assert_int_equal(status, TN_OK, file, line);
}

void test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_error("ERROR: ");
    vprint_error(format, args);
    print_error("\n");
    va_end(args);
    _fail(file, line);
    abort(); /* _fail does not return */
}

void test_says(const char *whole, const char *part, const char *file, int line)
{
    if (strstr(whole, part) == NULL) {
        print_error("'%s' is not in '%s'\n", part, whole);
        _fail(file, line);
    }
}
