/* test_exits.c - exit codes, and messages that are said once. */
#include "cli/exits.h"
#include "cli/terminal.h"
#include "config/diag.h"
#include "support/test.h"

TEST(every_status_has_its_documented_code)
{
    static const struct {
        tn_status status;
        int code;
    } cases[] = {
        {TN_OK, 0},      {TN_E_USAGE, 2},    {TN_E_CONFIG, 3}, {TN_E_DATA, 4},
        {TN_E_LIMIT, 4}, {TN_E_CKPT, 5},     {TN_E_PEER, 6},   {TN_E_MEMORY, 7},
        {TN_E_IO, 8},    {TN_E_DIVERGED, 9}, {TN_END, 1},      {TN_E_STOPPED, 75},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tn_exit_code(cases[i].status), cases[i].code);
    }
}

static void assert_message(const char *text, const char *want)
{
    tn_error err = {0};
    (void)tn_fail(&err, TN_E_DATA, "%s", text);
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_exit_message(&out, "tnet-train", &err);
    assert_string_equal(tn_text_str(&out), want);
}

TEST(a_message_names_the_program)
{
    assert_message("cannot open 'a': no", "tnet-train: error: cannot open 'a': no\n");
    assert_message("x\nhint: y: error: z", "tnet-train: error: x\nhint: y: error: z\n");
    assert_message("", "tnet-train: error: failed without a message\n");
}

TEST(who_has_no_memory_is_told_what_takes_less)
{
    assert_message("out of memory: 2 x 8 bytes for x",
                   "tnet-train: error: out of memory: 2 x 8 bytes for x\nhint: a lower "
                   "train.threads, data.readers, train.batch or data.shuffle takes less\n");
    assert_message("out of memory: x\nhint: y", "tnet-train: error: out of memory: x\nhint: y\n");
}

TEST(a_message_with_its_place_stays_as_it_is)
{
    assert_message("a.yaml:3:1: error: unknown key 'x'\nx: 1\n^\n",
                   "a.yaml:3:1: error: unknown key 'x'\nx: 1\n^\n");
    assert_message("command line: error: no", "command line: error: no\n");
}

TEST(faults_of_a_configuration_end_with_code_3)
{
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    assert_int_equal(tn_exit_diag("tnet-test", &diag), 0);
    tn_diag_error(&diag, NULL, "a test of errors");
    assert_int_equal(tn_exit_diag("tnet-test", &diag), 3);
}

TEST(results_that_cannot_be_written_are_a_failure)
{
    assert_int_equal(tn_exit_done("tnet-test", 0), 0);
    assert_int_equal(tn_exit_done("tnet-test", 3), 3);
    FILE *full = fopen("/dev/full", "r+e"); /* which does not make it */
    if (full == NULL) {
        print_message("/dev/full is not there\n");
        skip();
    }
    FILE *out = stdout;
    stdout = full;
    (void)fputs("a result\n", stdout);
    int code = tn_exit_done("tnet-test", 0);
    stdout = out;
    (void)fclose(full);
    assert_int_equal(code, 8);
}

/* The last of these tests: a process has one rank. */
TEST(a_rank_names_itself_once)
{
    tn_terminal_rank(2);
    assert_message("rank 2: disk full", "tnet-train: rank 2: error: disk full\n");
    assert_message("rank 1: disk full", "tnet-train: rank 2: error: rank 1: disk full\n");
    assert_message("rank 2 (host 'b') is gone",
                   "tnet-train: rank 2: error: rank 2 (host 'b') is gone\n");
    assert_message("rank 2: a.tsv:3: error: no", "rank 2: a.tsv:3: error: no\n");
}
