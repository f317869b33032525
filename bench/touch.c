/* touch.c - see touch.h */
#include "touch.h"

#include "base/core/clock.h"
#include "base/core/error.h"
#include "base/math/rng.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINES_MAX = 32768, ROUNDS = 256, AHEAD = 64 };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_size);
    return x[n / 2];
}

double tn_random_lines(uint64_t bytes, uint32_t lines, bool change)
{
    uint64_t n = bytes / TN_LINE;
    size_t size = n * TN_LINE + (2 << 20);
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TN_ASSERT(memory != MAP_FAILED);
    (void)madvise(memory, size, MADV_HUGEPAGE);
    memset(memory, 1, size);
    static uint32_t place[LINES_MAX];
    double took[ROUNDS];
    uint64_t s = tn_stream2(1, TN_RNG_GENERATE, n);
    volatile uint64_t sum = 0; /* keeps the reads */
    TN_ASSERT(lines <= sizeof place / sizeof place[0] && n <= UINT32_MAX);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < lines; i++) {
            place[i] = (uint32_t)tn_below(tn_draw(s, (uint64_t)round * lines + i), n);
        }
        uint64_t start = tn_clock_ns();
        uint64_t total = 0;
        for (uint32_t i = 0; i < lines; i++) {
            __builtin_prefetch(memory + (size_t)place[i + AHEAD < lines ? i + AHEAD : i] * TN_LINE,
                               1);
            uint64_t *at = (uint64_t *)(void *)(memory + (size_t)place[i] * TN_LINE);
            for (uint32_t w = 0; w < TN_LINE / sizeof *at; w++) {
                total += at[w];
                at[w] += change;
            }
        }
        took[round] = (double)(tn_clock_ns() - start);
        sum += total;
    }
    (void)sum;
    (void)munmap(memory, size);
    return lines / median(took, ROUNDS) * 1e3;
}

double tn_first_touch(void)
{
    enum { SIZE = 512 << 20, PAGE = 4096 };
    char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TN_ASSERT(memory != MAP_FAILED);
    (void)madvise(memory, SIZE, MADV_HUGEPAGE);
    uint64_t start = tn_clock_ns();
    for (size_t i = 0; i < SIZE; i += PAGE) {
        memory[i] = 1;
    }
    double ns = (double)(tn_clock_ns() - start);
    (void)munmap(memory, SIZE);
    return SIZE / ns;
}
