/* test_programs.c - programs side by side: exit codes, what they print, and their end. */
#include "extra/tune/programs.h"

#include "base/core/clock.h"
#include "support/test.h"

#include <signal.h>

static const atomic_bool never;

static void begin(tn_programs *p, uint32_t id, const char *script)
{
    tn_error err = {0};
    char shell[] = "/bin/sh";
    char flag[] = "-c";
    char text[256];
    (void)snprintf(text, sizeof text, "%s", script);
    char *const words[] = {shell, flag, text, NULL};
    assert_ok(tn_programs_start(p, id, words, &err), err.text);
}

static tn_program_end end_of(tn_programs *p)
{
    tn_error err = {0};
    tn_program_end end;
    assert_ok(tn_programs_wait(p, &never, tn_clock_s() + 60, &end, &err), err.text);
    return end;
}

TEST(code_and_output_of_each_are_its_own)
{
    static tn_programs p;
    uint32_t seen = 0;
    p = (tn_programs){0};
    begin(&p, 7, "echo seven; echo 'a: error: no seven' >&2; echo 'hint: more' >&2; exit 3");
    begin(&p, 8, "echo eight; echo one >&2; echo two >&2");
    begin(&p, 9, "kill -9 $$");
    assert_int_equal(p.running, 3);
    while (p.running > 0) {
        tn_program_end end = end_of(&p);
        seen |= 1U << end.id;
        assert_int_equal(end.code, end.id == 7 ? 3 : end.id == 8 ? 0 : 128 + SIGKILL);
        assert_string_equal(tn_text_str(&end.out), end.id == 7   ? "seven\n"
                                                   : end.id == 8 ? "eight\n"
                                                                 : "");
        assert_string_equal(end.reason, end.id == 7   ? "a: error: no seven"
                                        : end.id == 8 ? "two"
                                                      : "");
        tn_text_done(&end.out);
    }
    assert_int_equal(seen, 7U << 7);
}

TEST(places_are_used_again)
{
    static tn_programs p;
    p = (tn_programs){0};
    for (uint32_t i = 0; i < 20; i++) {
        begin(&p, i, "exit 0");
        tn_program_end end = end_of(&p);
        assert_int_equal(end.id, i);
        tn_text_done(&end.out);
    }
    assert_int_equal(p.n, 1);
}

TEST(a_long_log_keeps_its_end_and_blocks_nobody)
{
    static tn_programs p;
    p = (tn_programs){0};
    begin(&p, 1,
          "i=0; while [ $i -lt 9000 ]; do echo line $i of a long log >&2; i=$((i + 1)); done");
    tn_program_end end = end_of(&p);
    assert_string_equal(end.reason, "line 8999 of a long log");
    tn_text_done(&end.out);
}

TEST(stdin_is_empty)
{
    static tn_programs p;
    p = (tn_programs){0};
    begin(&p, 1, "cat; echo end");
    tn_program_end end = end_of(&p);
    assert_string_equal(tn_text_str(&end.out), "end\n");
    tn_text_done(&end.out);
}

TEST(a_stop_and_the_clock_end_the_wait_and_signals_end_the_programs)
{
    static tn_programs p;
    p = (tn_programs){0};
    tn_error err = {0};
    tn_program_end end;
    const atomic_bool now = true;
    begin(&p, 1, "trap 'exit 0' TERM; while :; do sleep .01; done");
    begin(&p, 2, "exec sleep 1000");
    assert_int_equal(tn_programs_wait(&p, &now, tn_clock_s() + 60, &end, &err), TN_E_STOPPED);
    assert_int_equal(tn_programs_wait(&p, &never, tn_clock_s() + .05, &end, &err), TN_E_STOPPED);
    tn_programs_end(&p);
    assert_int_equal(p.running, 0);
}

TEST(a_file_that_is_not_there_is_code_127)
{
    static tn_programs p;
    p = (tn_programs){0};
    tn_error err = {0};
    char name[] = "/no/such/program";
    char *const words[] = {name, NULL};
    assert_ok(tn_programs_start(&p, 1, words, &err), err.text);
    tn_program_end end = end_of(&p);
    assert_int_equal(end.code, 127);
    tn_text_done(&end.out);
}
