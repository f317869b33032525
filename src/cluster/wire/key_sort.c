/* key_sort.c - the keys of one owner in ascending order: key_codec.h.
 *
 * A partition of a batch holds some tens of keys: those are put in place one by one. Where there
 * are more, runs that were sorted so are merged, which keeps to n log n whatever the keys are. */
#include "cluster/wire/key_codec.h"

#include "base/core/error.h"

enum { RUN = 16 };

static void sort_run(tn_key_place *list, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        tn_key_place x = list[i];
        uint32_t k = i;
        for (; k > 0 && list[k - 1].key > x.key; k--) {
            list[k] = list[k - 1];
        }
        list[k] = x;
    }
}

/* Two sorted runs, [0, middle) and [middle, n), into one. No key stands in both. */
static void merge(const tn_key_place *from, uint32_t middle, uint32_t n, tn_key_place *to)
{
    uint32_t a = 0;
    uint32_t b = middle;
    for (uint32_t i = 0; i < n; i++) {
        bool left = b == n || (a < middle && from[a].key < from[b].key);
        to[i] = from[left ? a : b];
        a += left;
        b += !left;
    }
}

/* `list` has n places, `other` as many. Returns the one in which they are sorted. */
static const tn_key_place *sort(tn_key_place *list, tn_key_place *other, uint32_t n)
{
    for (uint32_t at = 0; at < n; at += RUN) {
        sort_run(list + at, n - at < RUN ? n - at : RUN);
    }
    for (uint64_t run = RUN; run < n; run *= 2) {
        for (uint64_t at = 0; at < n; at += 2 * run) {
            uint64_t left = n - at;
            uint32_t both = (uint32_t)(left < 2 * run ? left : 2 * run);
            merge(list + at, both < run ? both : (uint32_t)run, both, other + at);
        }
        tn_key_place *swap = list;
        list = other;
        other = swap;
    }
    return list;
}

tn_key_order tn_keyblock_sort(const tn_keyset *keys, uint32_t peer, tn_key_place *scratch,
                              uint32_t *index)
{
    const uint32_t *from = keys->owners->from;
    uint32_t n = 0;
    TN_ASSERT(peer < keys->owners->n_peers);
    for (uint32_t p = from[peer]; p < from[peer + 1]; p++) {
        tn_range slice = tn_keys_of_partition(keys, p);
        uint32_t here = slice.to - slice.from;
        for (uint32_t i = 0; i < here; i++) {
            scratch[i] = (tn_key_place){keys->key[slice.from + i], slice.from + i};
        }
        const tn_key_place *sorted = sort(scratch, scratch + here, here);
        for (uint32_t i = 0; i < here; i++) {
            index[n++] = sorted[i].index;
        }
    }
    return (tn_key_order){n, index};
}
