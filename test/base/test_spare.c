/* test_spare.c - a library's run that is refused memory gets small things, and then an error. */
#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/embedder.h"
#include "base/core/spare.h"
#include "base/core/text.h"
#include "support/test.h"

#include <sys/wait.h>
#include <unistd.h>

enum { SPARE = 1 << 16 };

/* The thread has an embedder with spare memory, and the system refuses all other. */
typedef struct subject {
    tn_embedder embedder;
    tn_spare *spare;
    tn_error err;
} subject;

static void subject_open(subject *t, size_t bytes)
{
    *t = (subject){.spare = NULL};
    assert_ok(tn_spare_open(&t->spare, bytes, &t->err), t->err.text);
    t->embedder.spare = t->spare;
    assert_null(tn_embedder_enter(&t->embedder));
    tn_alloc_refuse_from(1);
}

static void subject_close(subject *t)
{
    tn_alloc_refuse_from(0);
    (void)tn_embedder_enter(NULL);
    tn_spare_close(t->spare);
}

TEST(small_things_are_there_and_the_work_fails)
{
    OPEN(subject, t, SPARE);
    assert_ok(tn_alloc_check(&t.err), "not refused yet");
    unsigned char *one = tn_alloc(3, 100, "slots");
    assert_int_equal((uintptr_t)one % TN_CACHE_LINE, 0);
    for (size_t i = 0; i < 300; i++) {
        assert_int_equal(one[i], 0);
        one[i] = 0xff;
    }
    assert_int_equal(tn_alloc_check(&t.err), TN_E_MEMORY);
    assert_string_equal(t.err.text, "out of memory: 300 bytes for slots");

    tn_alloc_refuse_from(0); /* the system has some again, but the work is to end */
    assert_null(tn_try_alloc(1, 8, "rows", &t.err));
    assert_int_equal(t.err.code, TN_E_MEMORY);
    unsigned char *two = tn_alloc(1, 8, "more");
    assert_int_equal(two[0], 0);
    tn_free(one);
    tn_free(two);
    tn_spare_clear(t.spare);
    assert_ok(tn_alloc_check(&t.err), t.err.text);
    void *rows = tn_try_alloc(1, 8, "rows", &t.err);
    assert_non_null(rows);
    tn_free(rows);
}

TEST(what_is_given_back_is_used_again)
{
    OPEN(subject, t, SPARE);
    for (uint32_t i = 0; i < 10000; i++) {
        void *one = tn_alloc(1, SPARE / 4, "an arena");
        void *two = tn_alloc(1, SPARE / 4, "an arena");
        memset(one, 0xff, SPARE / 4);
        tn_free(i % 2 == 0 ? one : two);
        tn_free(i % 2 == 0 ? two : one);
    }
    tn_arena *arena = tn_arena_new(1000);
    const unsigned char *bytes = TN_NEW_ARRAY(arena, unsigned char, 5000);
    assert_int_equal(bytes[4999], 0);
    tn_arena_free(arena);
}

TEST(texts_and_results_that_lack_memory_are_told_at_the_end)
{
    OPEN(subject, t, SPARE);
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text_adds(&text, "run.dir=/tmp/run");
    assert_string_equal(tn_text_str(&text), "run.dir=/tmp/run");
    assert_int_equal(tn_alloc_check(&t.err), TN_E_MEMORY);
    tn_text_done(&text);
    tn_spare_clear(t.spare);
    assert_null(tn_alloc_or_none(1, 8, "placements"));
    assert_int_equal(tn_alloc_check(&t.err), TN_E_MEMORY);
    assert_string_equal(t.err.text, "out of memory: 8 bytes for placements");
}

/* Runs in a child, whose stderr is closed: the code that it ends with. */
static int ends_with(void (*work)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        (void)close(STDERR_FILENO);
        work();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void take_more_than_is_spared(void)
{
    OPEN(subject, t, SPARE);
    tn_free(tn_alloc(1, 2 * (size_t)SPARE, "too much"));
}

static void take_without_embedder(void)
{
    tn_alloc_refuse_from(2);
    tn_free(tn_alloc(1, 8, "the first"));
    tn_free(tn_alloc_or_none(1, 8, "the second"));
}

TEST(a_program_ends_and_so_does_whoever_takes_more_than_is_spared)
{
    assert_int_equal(ends_with(take_without_embedder), 7);
    assert_int_equal(ends_with(take_more_than_is_spared), 7);
}
