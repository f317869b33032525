/* batch_union_sort.c - see batch_union_sort.h. */
#include "cluster/sync/batch_union_sort.h"

#include <string.h>

static bool is_before(const tn_member *a, const tn_member *b)
{
    return a->key != b->key ? a->key < b->key : a->group < b->group;
}

/* Two sorted runs into one; of equals, those of the first run come first. */
static void merge_runs(const tn_member *a, size_t n_a, const tn_member *b, size_t n_b,
                       tn_member *to)
{
    const tn_member *end_a = a + n_a;
    const tn_member *end_b = b + n_b;
    while (a < end_a && b < end_b) {
        *to++ = is_before(b, a) ? *b++ : *a++;
    }
    memcpy(to, a, (size_t)(end_a - a) * sizeof *to);
    memcpy(to + (end_a - a), b, (size_t)(end_b - b) * sizeof *to);
}

/* How far a run of ascending members goes from `at` on. */
static size_t run_end(const tn_member *m, size_t at, size_t n)
{
    if (at == n) {
        return n;
    }
    size_t end = at + 1;
    while (end < n && !is_before(&m[end], &m[end - 1])) {
        end++;
    }
    return end;
}

void tn_members_sort(tn_member *m, tn_member *spare, size_t n)
{
    tn_member *from = m;
    tn_member *to = spare;
    while (run_end(from, 0, n) < n) {
        for (size_t at = 0; at < n;) {
            size_t middle = run_end(from, at, n);
            size_t end = run_end(from, middle, n);
            merge_runs(from + at, middle - at, from + middle, end - middle, to + at);
            at = end;
        }
        tn_member *was = from;
        from = to;
        to = was;
    }
    if (from != m) {
        memcpy(m, from, n * sizeof *m);
    }
}
