/* kept_rows.c - an array that grows by doubling, and a radix sort in place ("American flag",
 * McIlroy et al. 1993): no memory for the order, no comparisons, time that does not depend on the
 * data. */
#include "metrics/kept_rows.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"

#include <math.h>
#include <string.h>

enum {
    FIRST_ROWS = 1024,
    RADIX = 256,
    FEW_ROWS = 24, /* sorted by insertion */
    GROUP_BYTES = 8,
    LEVELS = GROUP_BYTES + 4, /* and the score */
};

tn_kept_rows *tn_kept_new(void)
{
    return tn_alloc(1, sizeof(tn_kept_rows), "kept rows");
}

void tn_kept_free(tn_kept_rows *k)
{
    if (k != NULL) {
        tn_free(k->row);
        tn_free(k);
    }
}

tn_status tn_kept_reserve(tn_kept_rows *k, size_t n, tn_error *err)
{
    if (n > UINT32_MAX - k->n) {
        return tn_fail(err, TN_E_LIMIT, "more than %u rows for exact metrics", UINT32_MAX);
    }
    if (k->n + n <= k->capacity) {
        return TN_OK;
    }
    size_t capacity = k->capacity < FIRST_ROWS ? FIRST_ROWS : 2 * k->capacity;
    while (capacity < k->n + n) {
        capacity *= 2;
    }
    TN_TRY(TN_GROW(k->row, k->n, capacity, "rows for exact metrics", err));
    k->capacity = capacity;
    return TN_OK;
}

void tn_kept_add(tn_kept_rows *k, tn_kept_row row)
{
    TN_ASSERT(k->n < k->capacity);
    row.row = (uint32_t)k->n;
    k->row[k->n] = row;
    k->n++;
    k->order = TN_KEPT_UNSORTED;
}

uint32_t tn_kept_key(float logit)
{
    float z = logit + 0.0F; /* -0 becomes 0 */
    uint32_t bits = tn_load_u32(&z);
    return bits >> 31 != 0 ? ~bits : bits | 0x80000000U;
}

float tn_kept_logit(uint32_t key)
{
    uint32_t bits = key >> 31 != 0 ? key & 0x7fffffffU : ~key;
    return tn_load_f32(&bits);
}

uint64_t tn_kept_weight(float weight)
{
    return (uint64_t)llrint((double)weight * TN_KEPT_ONE);
}

/* Returns byte `level` of (group, score), the most significant first. */
static inline uint32_t digit(const tn_kept_row *r, uint32_t level)
{
    if (level < GROUP_BYTES) {
        return (uint32_t)(r->group >> (8 * (GROUP_BYTES - 1 - level))) & 255;
    }
    return r->key >> (8 * (LEVELS - 1 - level)) & 255;
}

static bool before(const tn_kept_row *a, const tn_kept_row *b, bool by_group)
{
    return by_group && a->group != b->group ? a->group < b->group : a->key < b->key;
}

static void insert(tn_kept_row *a, size_t n, bool by_group)
{
    for (size_t i = 1; i < n; i++) {
        tn_kept_row r = a[i];
        size_t at = i;
        while (at > 0 && before(&r, &a[at - 1], by_group)) {
            a[at] = a[at - 1];
            at--;
        }
        a[at] = r;
    }
}

/* Swaps every row to the run of its digit; end[d] becomes where run d ends. */
static void distribute(tn_kept_row *a, size_t n, uint32_t level, size_t *end)
{
    size_t next[RADIX];
    memset(end, 0, RADIX * sizeof *end);
    for (size_t i = 0; i < n; i++) {
        end[digit(&a[i], level)]++;
    }
    size_t sum = 0;
    for (uint32_t d = 0; d < RADIX; d++) {
        next[d] = sum;
        sum += end[d];
        end[d] = sum;
    }
    for (uint32_t d = 0; d < RADIX; d++) {
        while (next[d] < end[d]) {
            tn_kept_row r = a[next[d]];
            uint32_t to = digit(&r, level);
            while (to != d) {
                tn_kept_row other = a[next[to]];
                a[next[to]++] = r;
                r = other;
                to = digit(&r, level);
            }
            a[next[d]++] = r;
        }
    }
}

/* Sorts from byte `level` on; at most LEVELS deep. */
static void sort(tn_kept_row *a, size_t n, bool by_group, uint32_t level)
{
    if (n <= FEW_ROWS) {
        insert(a, n, by_group);
        return;
    }
    if (level == LEVELS) {
        return;
    }
    size_t end[RADIX];
    distribute(a, n, level, end);
    size_t from = 0;
    for (uint32_t d = 0; d < RADIX; d++) {
        sort(a + from, end[d] - from, by_group, level + 1);
        from = end[d];
    }
}

const tn_kept_row *tn_kept_sorted(tn_kept_rows *k, tn_kept_order order)
{
    TN_ASSERT(order != TN_KEPT_UNSORTED);
    if (k->order != order) {
        bool by_group = order == TN_KEPT_BY_GROUP;
        sort(k->row, k->n, by_group, by_group ? 0 : GROUP_BYTES);
        k->order = order;
    }
    return k->row;
}
