/* batch_union.c - the union of all ranks' keys, and sums in rank order.
 *
 * A tile is some partitions. It first sorts their keys of all ranks and counts the different ones;
 * once all tiles have, each knows where its keys and rows begin, and writes them.
 */
#include "cluster/sync/batch_union.h"

#include "base/core/alloc.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A key of one rank. */
typedef struct member {
    uint64_t key;
    uint32_t index; /* among the rank's keys */
    uint16_t rank;
    uint16_t group;
} member;

static inline bool is_same(const member *a, const member *b)
{
    return a->key == b->key && a->group == b->group;
}

static bool is_before(const member *a, const member *b)
{
    return a->key != b->key ? a->key < b->key : a->group < b->group;
}

/* Merges two sorted runs into one; of equals, those of the first run come first. */
static void merge_runs(const member *a, size_t n_a, const member *b, size_t n_b, member *to)
{
    const member *end_a = a + n_a;
    const member *end_b = b + n_b;
    while (a < end_a && b < end_b) {
        *to++ = is_before(b, a) ? *b++ : *a++;
    }
    memcpy(to, a, (size_t)(end_a - a) * sizeof *to);
    memcpy(to + (end_a - a), b, (size_t)(end_b - b) * sizeof *to);
}

/* Returns the end of the run of ascending members that begins at `at`. */
static size_t run_end(const member *m, size_t at, size_t n)
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

/* Sorts by (key, group); `spare` has room for n. */
static void sort_members(member *m, member *spare, size_t n)
{
    member *from = m;
    member *to = spare;
    while (run_end(from, 0, n) < n) {
        for (size_t at = 0; at < n;) {
            size_t middle = run_end(from, at, n);
            size_t end = run_end(from, middle, n);
            merge_runs(from + at, middle - at, from + middle, end - middle, to + at);
            at = end;
        }
        member *was = from;
        from = to;
        to = was;
    }
    if (from != m) {
        memcpy(m, from, n * sizeof *m);
    }
}

enum { TILE_PARTITIONS = 16, KEYS_MAX = INT32_MAX };

struct tn_batch_union {
    uint32_t n_ranks;
    const tn_owners *owners;
    const tn_layout *layout;
    const tn_keyset *const *of; /* n_ranks, lent by the caller of unite */
    uint32_t n_members;         /* keys of all ranks */
    void *room;                 /* memory of members, spare, place and the joint keyset's arrays */
    /* members_max: those of each partition one after the other, sorted */
    member *members;
    member *spare; /* likewise: the other side of a merge */
    uint32_t members_max;
    uint32_t *begin;  /* n_partitions + 1: of a partition, in members */
    uint64_t *floats; /* n_partitions + 1: of its rows; then of all rows before it */
    uint32_t *first;  /* n_partitions + 1: the same of its different keys */
    uint32_t *place;  /* members_max: of rank r's key i at from[r] + i, in the joint keyset */
    uint32_t *from;   /* n_ranks + 1 */
    uint64_t *key;    /* these, members_max are the joint keyset's */
    uint16_t *group;
    uint32_t *at, *show, *click;
    tn_keyset keys;
    const float *rows; /* rows of the call that runs: give or add */
    float *to;
    const float *const *grads;
    uint32_t rank;
};

tn_batch_union *tn_batch_union_new(tn_arena *arena, uint32_t n_ranks, const tn_owners *owners,
                                   const tn_layout *layout)
{
    TN_ASSERT(n_ranks > 0 && n_ranks <= TN_PARTITIONS);
    const size_t n = (size_t)owners->n_partitions + 1;
    tn_batch_union *j = TN_NEW(arena, tn_batch_union);
    *j = (tn_batch_union){.n_ranks = n_ranks,
                          .owners = owners,
                          .layout = layout,
                          .begin = TN_NEW_ARRAY(arena, uint32_t, n),
                          .floats = TN_NEW_ARRAY(arena, uint64_t, n),
                          .first = TN_NEW_ARRAY(arena, uint32_t, n),
                          .from = TN_NEW_ARRAY(arena, uint32_t, (size_t)n_ranks + 1)};
    return j;
}

void tn_batch_union_free(tn_batch_union *j)
{
    if (j != NULL) {
        tn_free(j->room);
    }
}

/* Makes room; a quarter more than asked, so that it settles soon. */
static tn_status make_room(tn_batch_union *j, uint32_t members, tn_error *err)
{
    if (j->room != NULL && members <= j->members_max) {
        return TN_OK;
    }
    const size_t n = (size_t)members + members / 4 + 1;
    const size_t each =
        2 * sizeof *j->members + sizeof *j->key + 4 * sizeof *j->at + sizeof *j->group;
    tn_free(j->room);
    j->room = tn_try_alloc(n * each, 1, "the joint batch", err);
    j->members_max = j->room != NULL ? (uint32_t)n : 0;
    if (j->room == NULL) {
        return TN_E_MEMORY;
    }
    j->members = j->room;
    j->spare = j->members + n;
    j->key = (uint64_t *)(void *)(j->spare + n);
    j->place = (uint32_t *)(void *)(j->key + n);
    j->at = j->place + n;
    j->show = j->at + n;
    j->click = j->show + n;
    j->group = (uint16_t *)(void *)(j->click + n);
    return TN_OK;
}

static tn_range tile_of(const tn_batch_union *j, uint32_t tile)
{
    return tn_tile(j->owners->n_partitions, TILE_PARTITIONS, tile);
}

static uint32_t n_tiles(const tn_batch_union *j)
{
    return tn_tile_count(j->owners->n_partitions, TILE_PARTITIONS);
}

/* Collects the partition's keys of all ranks, one rank after the other. */
static void collect(const tn_batch_union *j, uint32_t partition)
{
    member *to = j->members + j->begin[partition];
    for (uint32_t r = 0; r < j->n_ranks; r++) {
        const tn_keyset *keys = j->of[r];
        if (keys == NULL) {
            continue;
        }
        tn_range run = tn_keys_of_partition(keys, partition);
        for (uint32_t i = run.from; i < run.to; i++) {
            *to++ = (member){
                .key = keys->key[i], .index = i, .rank = (uint16_t)r, .group = keys->group[i]};
        }
    }
}

/* Does the first round: sorts members, and counts their different keys and floats. */
static void count_tile(void *job, uint32_t tile)
{
    tn_batch_union *j = job;
    tn_range run = tile_of(j, tile);
    for (uint32_t p = run.from; p < run.to; p++) {
        uint32_t n = j->begin[p + 1] - j->begin[p];
        member *m = j->members + j->begin[p];
        collect(j, p);
        sort_members(m, j->spare + j->begin[p], n);
        j->first[p] = 0;
        j->floats[p] = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (i == 0 || !is_same(&m[i], &m[i - 1])) {
                j->first[p]++;
                j->floats[p] += tn_record_of(j->layout, m[i].group)->width;
            }
        }
    }
}

/* Counts become places: the sum of all before. */
static tn_status add_up(tn_batch_union *j, tn_error *err)
{
    uint32_t keys = 0;
    uint64_t floats = 0;
    const uint32_t n = j->owners->n_partitions;
    for (uint32_t p = 0; p < n; p++) {
        uint32_t own_keys = j->first[p];
        uint64_t own_floats = j->floats[p];
        j->first[p] = keys;
        j->floats[p] = floats;
        keys += own_keys;
        floats += own_floats;
    }
    j->first[n] = keys;
    j->floats[n] = floats;
    if (floats > UINT32_MAX) {
        return tn_fail(err, TN_E_LIMIT, "the joint batch has rows of %llu floats, at most 2^32 - 1",
                       (unsigned long long)floats);
    }
    return TN_OK;
}

/* Does the second round: writes the joint keys of a tile, and the places of its members. */
static void write_tile(void *job, uint32_t tile)
{
    tn_batch_union *j = job;
    tn_range run = tile_of(j, tile);
    uint32_t k = j->first[run.from];
    uint32_t at = (uint32_t)j->floats[run.from];
    const member *m = j->members + j->begin[run.from];
    const member *end = j->members + j->begin[run.to];
    while (m < end) {
        const member *lead = m;
        j->key[k] = lead->key;
        j->group[k] = lead->group;
        j->at[k] = at;
        j->show[k] = 0;
        j->click[k] = 0;
        for (; m < end && is_same(m, lead); m++) {
            j->show[k] += j->of[m->rank]->show[m->index];
            j->click[k] += j->of[m->rank]->click[m->index];
            j->place[j->from[m->rank] + m->index] = k;
        }
        at += tn_record_of(j->layout, lead->group)->width;
        k++;
    }
}

/* Sets the first member of each partition, and the first place of each rank. */
static tn_status lay_out(tn_batch_union *j, tn_error *err)
{
    uint64_t members = 0;
    for (uint32_t r = 0; r < j->n_ranks; r++) {
        j->from[r] = (uint32_t)members;
        members += j->of[r] != NULL ? j->of[r]->n : 0;
        if (members > KEYS_MAX) {
            return tn_fail(err, TN_E_LIMIT, "the joint batch has more than %d keys", KEYS_MAX);
        }
    }
    j->n_members = (uint32_t)members;
    j->from[j->n_ranks] = j->n_members;
    for (uint32_t p = 0; p <= j->owners->n_partitions; p++) {
        j->begin[p] = 0;
        for (uint32_t r = 0; r < j->n_ranks; r++) {
            j->begin[p] += j->of[r] != NULL ? j->of[r]->first[p] : 0;
        }
    }
    return make_room(j, j->n_members, err);
}

tn_status tn_batch_union_unite(tn_batch_union *j, tn_team *team, const tn_keyset *const *keys,
                               tn_error *err)
{
    j->of = keys;
    TN_TRY(lay_out(j, err));
    tn_team_run(team, n_tiles(j), count_tile, j);
    TN_TRY(add_up(j, err));
    tn_team_run(team, n_tiles(j), write_tile, j);
    uint32_t n = j->first[j->owners->n_partitions];
    j->keys = (tn_keyset){.owners = j->owners,
                          .layout = j->layout,
                          .n = n,
                          .floats = (uint32_t)j->floats[j->owners->n_partitions],
                          .key = j->key,
                          .group = j->group,
                          .at = j->at,
                          .show = j->show,
                          .click = j->click,
                          .first = j->first};
    return TN_OK;
}

const tn_keyset *tn_batch_union_keys(const tn_batch_union *j)
{
    return &j->keys;
}

static void give_tile(void *job, uint32_t tile)
{
    tn_batch_union *j = job;
    const tn_keyset *keys = j->of[j->rank];
    const uint32_t *place = j->place + j->from[j->rank];
    tn_range run = tile_of(j, tile);
    for (uint32_t i = keys->first[run.from]; i < keys->first[run.to]; i++) {
        memcpy(j->to + keys->at[i], j->rows + j->at[place[i]],
               tn_row_width(keys, i) * sizeof *j->to);
    }
}

void tn_batch_union_give(tn_batch_union *j, tn_team *team, uint32_t rank, const float *rows,
                         float *to)
{
    TN_ASSERT(rank < j->n_ranks && j->of[rank] != NULL);
    j->rank = rank;
    j->rows = rows;
    j->to = to;
    tn_team_run(team, n_tiles(j), give_tile, j);
}

static void add_floats(float *restrict to, const float *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] += from[i];
    }
}

static void add_tile(void *job, uint32_t tile)
{
    tn_batch_union *j = job;
    tn_range run = tile_of(j, tile);
    uint64_t begin = j->floats[run.from];
    memset(j->to + begin, 0, (j->floats[run.to] - begin) * sizeof *j->to);
    for (uint32_t r = 0; r < j->n_ranks; r++) {
        const tn_keyset *keys = j->of[r];
        if (keys == NULL || j->grads[r] == NULL) {
            continue;
        }
        const uint32_t *place = j->place + j->from[r];
        for (uint32_t i = keys->first[run.from]; i < keys->first[run.to]; i++) {
            add_floats(j->to + j->at[place[i]], j->grads[r] + keys->at[i], tn_row_width(keys, i));
        }
    }
}

void tn_batch_union_add(tn_batch_union *j, tn_team *team, const float *const *from, float *sum)
{
    j->grads = from;
    j->to = sum;
    tn_team_run(team, n_tiles(j), add_tile, j);
}
