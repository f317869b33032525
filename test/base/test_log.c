/* test_log.c - what reaches the sink. */
#include "base/core/embedder.h"
#include "base/core/log.h"
#include "base/thread/threads.h"
#include "support/test.h"

#include <stdatomic.h>

static char last_line[8192];
static tn_log_level last_level;
static int n_lines;

static void keep(tn_log_level level, const char *line)
{
    (void)snprintf(last_line, sizeof last_line, "%s", line);
    last_level = level;
    n_lines++;
}

SET_UP
{
    tn_log_set(NULL, TN_LOG_INFO);
    n_lines = 0;
    last_line[0] = 0;
}

TEST(without_a_sink_lines_vanish)
{
    tn_log(TN_LOG_ERROR, "nobody hears %d", 1);
    assert_int_equal(n_lines, 0);
}

TEST(a_line_arrives_whole_with_its_level)
{
    tn_log_set(keep, TN_LOG_INFO);
    tn_log(TN_LOG_WARN, "skipped %d bad records in '%s'", 3, "a.tsv");
    assert_int_equal(n_lines, 1);
    assert_int_equal(last_level, TN_LOG_WARN);
    assert_string_equal(last_line, "skipped 3 bad records in 'a.tsv'");
}

TEST(lines_above_the_level_are_not_made)
{
    tn_log_set(keep, TN_LOG_WARN);
    tn_log(TN_LOG_INFO, "x");
    tn_log(TN_LOG_DEBUG, "x");
    assert_int_equal(n_lines, 0);
    tn_log(TN_LOG_ERROR, "x");
    assert_int_equal(n_lines, 1);
}

TEST(a_line_too_long_is_cut_and_marked)
{
    tn_log_set(keep, TN_LOG_INFO);
    tn_log(TN_LOG_INFO, "%6000d", 1);
    assert_int_equal(strlen(last_line), 4095);
    assert_string_equal(last_line + 4095 - 4, " ...");
    tn_log(TN_LOG_INFO, "%4095d", 1);
    assert_int_equal(last_line[4094], '1');
}

static _Atomic int n_whole;

static void count_whole(tn_log_level level, const char *line)
{
    (void)level;
    size_t size = strlen(line);
    if (size == 100 && line[0] == line[99]) {
        atomic_fetch_add(&n_whole, 1);
    }
}

static tn_status log_many(void *arg, tn_error *err)
{
    (void)err;
    const char *letter = arg;
    char word[101];
    memset(word, *letter, 100);
    word[100] = 0;
    for (int i = 0; i < 500; i++) {
        tn_log(TN_LOG_INFO, "%s", word);
    }
    return TN_OK;
}

TEST(lines_of_many_threads_arrive_whole)
{
    tn_log_set(count_whole, TN_LOG_INFO);
    char letters[] = "abcd";
    tn_thread *thread[4];
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tn_thread_start(&thread[i], "log", log_many, letters + i, NULL), TN_OK);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tn_thread_join(thread[i], NULL), TN_OK);
    }
    assert_int_equal(atomic_load(&n_whole), 2000);
}

/* ---- an embedder ---- */

typedef struct heard {
    char last[200];
    atomic_int n;
} heard;

static void keep_for(void *arg, int level, const char *line)
{
    heard *h = arg;
    (void)level;
    (void)snprintf(h->last, sizeof h->last, "%s", line);
    atomic_fetch_add(&h->n, 1);
}

static tn_status log_once(void *arg, tn_error *err)
{
    (void)err;
    tn_log(TN_LOG_INFO, "%s", (const char *)arg);
    return TN_OK;
}

TEST(lines_of_an_embedded_run_go_to_its_embedder_alone)
{
    heard one = {.n = 0};
    heard two = {.n = 0};
    const tn_embedder first = {.line = keep_for, .arg = &one};
    const tn_embedder second = {.line = keep_for, .arg = &two};
    tn_thread *thread = NULL;
    tn_log_set(keep, TN_LOG_INFO);

    assert_null(tn_embedder_enter(&first));
    char word[] = "by a thread";
    assert_int_equal(tn_thread_start(&thread, "log", log_once, word, NULL), TN_OK);
    assert_ptr_equal(tn_embedder_enter(&second), &first);
    tn_log(TN_LOG_DEBUG, "by the second");
    assert_int_equal(tn_thread_join(thread, NULL), TN_OK);
    assert_string_equal(one.last, "by a thread");
    assert_string_equal(two.last, "by the second");
    assert_int_equal(n_lines, 0);

    assert_ptr_equal(tn_embedder_enter(NULL), &second);
    tn_log(TN_LOG_INFO, "by the process");
    assert_string_equal(last_line, "by the process");
    assert_int_equal(atomic_load(&one.n) + atomic_load(&two.n), 2);
}

TEST(an_embedder_without_a_function_for_lines_hears_none)
{
    const tn_embedder deaf = {.line = NULL};
    tn_log_set(keep, TN_LOG_INFO);
    (void)tn_embedder_enter(&deaf);
    tn_log(TN_LOG_ERROR, "nobody hears");
    (void)tn_embedder_enter(NULL);
    assert_int_equal(n_lines, 0);
}
