/* test_delimiter_masks.c - every set of delimiter_masks.h gives what a loop over the bytes gives.
 */
#include "io/text/delimiter_masks.h"
#include "support/test.h"

enum { SETS_MAX = 4, LINE_MAX = 400 };

/* The sets that this processor runs; how many. */
static uint32_t sets_here(const tn_delimiter_masks *out[SETS_MAX])
{
    uint32_t n = 0;
    out[n++] = &tn_delimiter_masks_plain;
#if TN_DELIMITER_MASKS_X86
    out[n++] = &tn_delimiter_masks_sse2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi")) {
        out[n++] = &tn_delimiter_masks_avx2;
    }
#endif
#if TN_DELIMITER_MASKS_AVX512
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2")) {
        out[n++] = &tn_delimiter_masks_avx512;
    }
#endif
    return n;
}

static bool is_odd_field(char c)
{
    return c == '\r' || c == '\0';
}

static bool is_odd_pair(char c)
{
    return (unsigned char)c < ' ' || c == '#';
}

/* A line that ends where its memory ends, so that a sanitizer sees a look behind it. */
static void check(const tn_delimiter_masks *set, const char *bytes, size_t size)
{
    size_t whole = (size + TN_CACHE_LINE) / TN_CACHE_LINE * TN_CACHE_LINE; /* as blocks are */
    char *block FREED(tn_free) = tn_alloc(whole, 1, "a line");
    char *line = block + whole - size;
    uint16_t *at FREED(tn_free) = tn_alloc(size + TN_DELIMITER_MASKS_SPARE, sizeof *at, "places");
    uint16_t *want FREED(tn_free) = tn_alloc(size + 1, sizeof *want, "places");
    memcpy(line, bytes, size);
    for (int pairs = 0; pairs < 2; pairs++) {
        uint32_t n = 0;
        bool odd_want = false;
        for (size_t i = 0; i < size; i++) {
            bool mark = pairs ? line[i] == ' ' || line[i] == ':' : line[i] == '\t';
            odd_want = odd_want || (pairs ? is_odd_pair(line[i]) : is_odd_field(line[i]));
            if (mark) {
                want[n++] = (uint16_t)i;
            }
        }
        bool odd = !odd_want;
        uint32_t found = set->find(line, size, pairs ? '\0' : '\t', at, &odd);
        fail_if(found != n || odd != odd_want || memcmp(at, want, n * sizeof *at) != 0,
                "%s, %zu bytes: %u marks, not %u; odd %d", set->name, size, found, n, odd);
    }
}

TEST(every_set_finds_what_a_loop_finds)
{
    static const char common[] = "\t\t 0123456789abcdef::";
    const tn_delimiter_masks *set[SETS_MAX];
    uint32_t n = sets_here(set);
    char line[LINE_MAX];
    for (uint64_t round = 0; round < 4000; round++) {
        size_t size = tn_draw(11, round) % LINE_MAX;
        uint64_t strange = tn_draw(12, round) % 3; /* none, some, or nothing but any bytes */
        for (size_t i = 0; i < size; i++) {
            uint64_t x = tn_draw(round + 100, i);
            bool any = strange == 2 || (strange == 1 && x % 97 == 0);
            line[i] = (char)(any ? x >> 32 : (uint64_t)common[(x >> 32) % (sizeof common - 1)]);
        }
        for (uint32_t s = 0; s < n; s++) {
            check(set[s], line, size);
        }
    }
}

TEST(lines_of_one_byte_value_only)
{
    const tn_delimiter_masks *set[SETS_MAX];
    uint32_t n = sets_here(set);
    char line[200];
    for (int byte = 0; byte < 256; byte++) {
        memset(line, byte, sizeof line);
        for (uint32_t s = 0; s < n; s++) {
            for (size_t size = 0; size < sizeof line; size += byte % 7 == 0 ? 1 : 13) {
                check(set[s], line, size);
            }
        }
    }
}

TEST(the_longest_line_has_places_of_16_bits)
{
    const tn_delimiter_masks *set[SETS_MAX];
    uint32_t n = sets_here(set);
    char *line FREED(tn_free) = tn_alloc(TN_DELIMITER_MASKS_LINE_MAX, 1, "a line");
    for (int mark = 0; mark < 2; mark++) {
        memset(line, mark ? '\t' : 'x', TN_DELIMITER_MASKS_LINE_MAX);
        line[TN_DELIMITER_MASKS_LINE_MAX - 1] = '\t';
        for (uint32_t s = 0; s < n; s++) {
            check(set[s], line, TN_DELIMITER_MASKS_LINE_MAX);
        }
    }
}

TEST(this_processor_has_a_set)
{
    const tn_delimiter_masks *set[SETS_MAX];
    uint32_t n = sets_here(set);
    bool among = false;
    for (uint32_t s = 0; s < n; s++) {
        among = among || set[s] == tn_delimiter_masks_find();
    }
    assert_true(among);
}
