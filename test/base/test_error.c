/* test_error.c - filling an error, adding context, asserting. */
#include "support/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(fail_fills_the_error_and_returns_its_code)
{
    tn_error err = {0};
    assert_int_equal(tn_fail(&err, TN_E_IO, "cannot open '%s'", "a"), TN_E_IO);
    assert_int_equal(err.code, TN_E_IO);
    assert_string_equal(err.text, "cannot open 'a'");
    assert_int_equal(tn_fail(NULL, TN_E_DATA, "unheard"), TN_E_DATA);
}

TEST(context_goes_in_front)
{
    tn_error err = {0};
    (void)tn_fail(&err, TN_E_DATA, "label is 'x'");
    tn_error_context(&err, "'%s': line %d", "a.txt", 7);
    assert_string_equal(err.text, "'a.txt': line 7: label is 'x'");
    assert_int_equal(err.code, TN_E_DATA);
    tn_error_context(NULL, "unheard");
}

TEST(a_text_too_long_is_cut)
{
    char word[3000];
    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    tn_error err = {0};
    (void)tn_fail(&err, TN_E_DATA, "%s", word);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    tn_error_context(&err, "at line %d", 7);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_memory_equal(err.text, "at line 7: www", 14);
    tn_error_context(&err, "%s", word);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

TEST(text_of_others_cannot_steer_a_terminal)
{
    tn_error err = {0};
    (void)tn_fail(&err, TN_E_DATA, "%s is odd\nhint: %s", "\033[2J\a\b\r\x7f\xc2\x9b",
                  "\ta \xc3\xa9");
    assert_string_equal(err.text, "?[2J?????? is odd\nhint: \ta \xc3\xa9");
    tn_error_context(&err, "%s", "\033c");
    assert_string_equal(err.text, "?c: ?[2J?????? is odd\nhint: \ta \xc3\xa9");
    char line[] = "a\nerror: b\t\xc2";
    tn_make_printable(line, "");
    assert_string_equal(line, "a?error: b?\xc2");
}

static tn_status passes_on(tn_status inner, int *after)
{
    TN_TRY(inner);
    *after = 1;
    return TN_OK;
}

TEST(try_hands_a_failure_on)
{
    int after = 0;
    assert_int_equal(passes_on(TN_E_PEER, &after), TN_E_PEER);
    assert_int_equal(after, 0);
    assert_int_equal(passes_on(TN_OK, &after), TN_OK);
    assert_int_equal(after, 1);
}

TEST(a_false_assertion_aborts)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(2);
        (void)signal(SIGABRT, SIG_DFL);
        TN_ASSERT(child != 0);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}
