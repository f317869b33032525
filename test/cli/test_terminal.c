/* test_terminal.c - who speaks: lines of a process alone, and of one of a group. */
#include "cli/exits.h"
#include "cli/terminal.h"
#include "support/test.h"

#include <fcntl.h>
#include <unistd.h>

enum { SAID_BYTES = 1000 };

static void speak(void)
{
    tn_error err = {0};
    tn_log(TN_LOG_WARN, "it is late");
    tn_log(TN_LOG_INFO, "it is \x9b early");
    tn_log(TN_LOG_DEBUG, "unheard");
    tn_terminal_show(NULL, "step 1", true);
    tn_terminal_show(NULL, "a line that stays", false);
    (void)tn_fail(&err, TN_E_DATA, "no such file");
    assert_int_equal(tn_exit_with("tnet-test", &err), 4);
}

/* Speaks as this rank from here on, and copies what stderr gets meanwhile into `said`. */
static void hear(uint32_t rank, char said[SAID_BYTES])
{
    int ends[2];
    int old = dup(STDERR_FILENO);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    if (rank > 0) { /* which looks whether stderr is a terminal */
        tn_terminal_rank(rank);
    }
    speak();
    (void)dup2(old, STDERR_FILENO);
    (void)close(old);
    (void)close(ends[1]);
    ssize_t n = read(ends[0], said, SAID_BYTES - 1);
    (void)close(ends[0]);
    assert_true(n > 0);
    said[n] = '\0';
}

TEST(a_text_of_others_cannot_steer_the_terminal)
{
    tn_text clean CLEANUP(tn_text_done) = {0};
    const char text[] = "a\tt\xc3\xa9\n\x1b[2J\x9b\xff\xc2\x9b\x7f\r\xe2\x82";
    tn_terminal_clean(text, sizeof text - 1, &clean);
    assert_string_equal(tn_text_str(&clean),
                        "a\tt\xc3\xa9\n\\x1b[2J\\x9b\\xff\\x9b\\x7f\\x0d\\xe2\\x82");
}

TEST(lines_of_a_group_say_who_speaks)
{
    char said[SAID_BYTES];
    tn_terminal_log(0, TN_LOG_INFO);
    assert_string_equal(tn_terminal_own_name(), "");
    hear(0, said);
    assert_string_equal(said, "warning: it is late\nit is \\x9b early\n"
                              "\rstep 1\033[K\r\033[Ka line that stays\n"
                              "tnet-test: error: no such file\n");
    hear(12, said);
    assert_string_equal(tn_terminal_own_name(), "rank 12");
    assert_string_equal(said, "[rank 12] warning: it is late\n[rank 12] it is \\x9b early\n"
                              "\rstep 1\033[K\r\033[Ka line that stays\n"
                              "tnet-test: rank 12: error: no such file\n");
}
