/* test_alloc.c - the door to the heap. */
#include "support/test.h"

#include "base/thread/threads.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(memory_is_zeroed_and_starts_on_a_cache_line)
{
    for (size_t size = 1; size < 300; size += 37) {
        unsigned char *memory = tn_alloc(3, size, "a test");
        assert_int_equal((uintptr_t)memory % TN_CACHE_LINE, 0);
        for (size_t i = 0; i < 3 * size; i++) {
            assert_int_equal(memory[i], 0);
        }
        tn_free(memory);
    }
    tn_free(NULL);
}

TEST(large_memory_is_zeroed_and_starts_on_a_huge_page)
{
    const size_t huge = (size_t)2 << 20;
    const size_t sizes[] = {huge - 1, huge, huge + 1, 3 * huge + 100};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        unsigned char *memory = tn_alloc(sizes[k], 1, "a large test");
        assert_int_equal((uintptr_t)memory % (k == 0 ? TN_CACHE_LINE : huge), 0);
        size_t wrong = 0;
        for (size_t i = 0; i < sizes[k]; i++) {
            wrong += memory[i] != 0;
        }
        assert_int_equal(wrong, 0);
        memset(memory, 1, sizes[k]);
        tn_free(memory);
    }
}

TEST(what_is_not_used_of_large_memory_is_not_touched)
{
    enum { MB = 1 << 20 };
    struct rusage before;
    struct rusage after;
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    char *memory FREED(tn_free) = tn_alloc(512, MB, "a large test");
    memory[(size_t)100 * MB] = 1;
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_true(after.ru_maxrss - before.ru_maxrss < 65536); /* kB */
}

TEST(nothing_is_something)
{
    void *memory FREED(tn_free) = tn_try_alloc(0, 8, "nothing", NULL);
    assert_non_null(memory);
}

TEST(a_product_that_overflows_is_refused)
{
    tn_error err = {0};
    assert_null(tn_try_alloc(SIZE_MAX / 2, 3, "rows", &err));
    assert_int_equal(err.code, TN_E_MEMORY);
    assert_non_null(strstr(err.text, "for rows"));
    assert_null(tn_try_alloc(SIZE_MAX, 1, "rows", NULL));
}

TEST(the_nth_try_fails_once)
{
    tn_error err = {0};
    tn_alloc_fail_at(2);
    void *first FREED(tn_free) = tn_try_alloc(1, 1, "a", &err);
    void *second = tn_try_alloc(1, 1, "b", &err);
    void *third FREED(tn_free) = tn_try_alloc(1, 1, "c", &err);
    assert_non_null(first);
    assert_null(second);
    assert_string_equal(err.text, "out of memory: 1 x 1 bytes for b");
    assert_non_null(third);
    tn_alloc_fail_at(0);
}

TEST(an_array_grows_with_what_it_holds_or_stays_as_it_is)
{
    uint32_t *item FREED(tn_free) = NULL;
    assert_int_equal(TN_GROW(item, 0, 2, "items", NULL), TN_OK);
    item[0] = 7;
    item[1] = 8;
    uint32_t *before = item;
    tn_alloc_fail_at(1);
    assert_int_equal(TN_GROW(item, 2, 4, "items", NULL), TN_E_MEMORY);
    assert_ptr_equal(item, before);
    assert_int_equal(TN_GROW(item, 2, 4, "items", NULL), TN_OK);
    const uint32_t want[4] = {7, 8, 0, 0};
    assert_memory_equal(item, want, sizeof want);
}

TEST(scratch_memory_is_taken_anew_only_when_it_is_too_small)
{
    float *room = NULL;
    size_t max = 0;
    assert_int_equal(TN_RESERVE(room, max, 0, "scratch", NULL), TN_OK);
    assert_non_null(room);
    assert_int_equal(TN_RESERVE(room, max, 100, "scratch", NULL), TN_OK);
    assert_true(max >= 100);
    room[max - 1] = 1;
    float *before = room;
    assert_int_equal(TN_RESERVE(room, max, 100, "scratch", NULL), TN_OK);
    assert_ptr_equal(room, before);
    tn_alloc_fail_at(1);
    assert_int_equal(TN_RESERVE(room, max, max + 1, "scratch", NULL), TN_E_MEMORY);
    assert_null(room);
    assert_int_equal(max, 0);
}

TEST(alloc_without_memory_ends_with_code_7)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(2); /* the message is not for the test's reader */
        void *never = tn_alloc(SIZE_MAX / 2, 3, "a test");
        _exit(never == NULL ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

enum { THREADS = 4 };

static tn_status allocate_at_once(void *arg, tn_error *err)
{
    (void)err;
    void *memory FREED(tn_free) = tn_alloc(1, 1000, "a test");
    (void)pthread_barrier_wait(arg); /* until then every thread holds the heap that it was given */
    return TN_OK;
}

/* Heaps of this process, after some threads have allocated at a time. */
static int count_heaps(void)
{
    pthread_barrier_t all;
    tn_thread *thread[THREADS];
    char *text = NULL;
    size_t size = 0;
    int heaps = 0;
    (void)pthread_barrier_init(&all, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(tn_thread_start(&thread[i], "heap", allocate_at_once, &all, NULL), TN_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(tn_thread_join(thread[i], NULL), TN_OK);
    }
    (void)pthread_barrier_destroy(&all);
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(malloc_info(0, out), 0);
    (void)fclose(out);
    for (const char *at = text; (at = strstr(at, "<heap nr=")) != NULL; at++) {
        heaps++;
    }
    free(text); // NOLINT: what open_memstream gave
    return heaps;
}

TEST(all_threads_of_a_program_share_one_heap)
{
    pid_t child = fork(); /* it is for the whole process */
    assert_true(child >= 0);
    if (child == 0) {
        tn_alloc_share_heap();
        _exit(count_heaps());
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}
