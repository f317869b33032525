/* touch.c - see touch.h */
#include "touch.h"

#include "base/core/clock.h"
#include "base/core/error.h"
#include "base/math/rng.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { ROWS_MAX = 32768, ROUNDS = 256, AHEAD = 64 };

double tn_random_rows(uint64_t bytes, uint32_t rows, uint32_t lines, bool change)
{
    const size_t row = (size_t)lines * TN_LINE;
    uint64_t n = bytes / row;
    char *memory = mmap(NULL, n * row, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TN_ASSERT(memory != MAP_FAILED);
    (void)madvise(memory, n * row, MADV_HUGEPAGE);
    memset(memory, 1, n * row);
    static uint32_t place[ROWS_MAX];
    double least = 1e18;
    uint64_t s = tn_stream2(1, TN_RNG_GENERATE, n);
    volatile uint64_t sum = 0; /* keeps the reads */
    TN_ASSERT(rows <= ROWS_MAX && n <= UINT32_MAX);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < rows; i++) {
            place[i] = (uint32_t)tn_below(tn_draw(s, (uint64_t)round * rows + i), n);
        }
        uint64_t start = tn_clock_ns();
        uint64_t total = 0;
        for (uint32_t i = 0; i < rows; i++) {
            const char *next = memory + place[i + AHEAD < rows ? i + AHEAD : i] * row;
            uint64_t *at = (uint64_t *)(void *)(memory + place[i] * row);
            for (size_t k = 0; k < row; k += TN_LINE) {
                __builtin_prefetch(next + k, 1);
            }
            for (size_t w = 0; w < row / sizeof *at; w++) {
                total += at[w];
                at[w] += change;
            }
        }
        double took = (double)(tn_clock_ns() - start);
        least = took < least ? took : least;
        sum += total;
    }
    (void)sum;
    (void)munmap(memory, n * row);
    return rows / least * 1e3;
}

double tn_first_touch(void)
{
    enum { SIZE = 256 << 20, PAGE = 4096, TIMES = 4 };
    double least = 1e18;
    for (int k = 0; k < TIMES; k++) {
        char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        TN_ASSERT(memory != MAP_FAILED);
        (void)madvise(memory, SIZE, MADV_HUGEPAGE);
        uint64_t start = tn_clock_ns();
        for (size_t i = 0; i < SIZE; i += PAGE) {
            memory[i] = 1;
        }
        double ns = (double)(tn_clock_ns() - start);
        least = ns < least ? ns : least;
        (void)munmap(memory, SIZE);
    }
    return SIZE / least;
}
