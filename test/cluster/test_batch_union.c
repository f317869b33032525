/* test_batch_union.c - the union of the ranks' keysets and sums in rank order, against plain loops.
 */
#include "cluster/sync/batch_union.h"
#include "ps/kit.h"

#include "support/test.h"

enum { RANKS_MAX = 9, KEYS_MAX = 700, GROUPS = 3, SPACE = 1200 };

/* Groups 0 and 2 have rows of 3 floats, group 1 of 2. */
static tn_record records[2] = {{.width = 3, .n_segments = 1, .segment = {{"a", 0, 3}}},
                               {.width = 2, .n_segments = 1, .segment = {{"b", 0, 2}}}};
static const tn_share_group groups[GROUPS] = {{"x", 0, 0}, {"y", 0, 1}, {"z", 0, 0}};
static const tn_layout layout = {GROUPS, groups, 2, records};

typedef struct world {
    tn_arena *arena;
    uint32_t n_ranks;
    kit_keys *of[RANKS_MAX];
    const tn_keyset *keys[RANKS_MAX]; /* NULL: none */
    float *grads[RANKS_MAX];
    const tn_owners *owners;
    uint64_t draws;
    uint64_t stream;
} world;

static uint64_t draw(world *w, uint64_t below)
{
    return tn_draw(w->stream, w->draws++) % below;
}

/* Key number i of the world: its group follows from it, but some keys live in two. */
static uint64_t key_of(uint64_t i)
{
    return tn_stream2(42, 0, i % 8 == 0 ? i + 1 : i);
}

static int by_key_and_group(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    if (x[0] != y[0]) {
        return x[0] < y[0] ? -1 : 1;
    }
    return x[1] < y[1] ? -1 : x[1] > y[1];
}

static kit_keys *keys_of_rank(world *w)
{
    uint64_t pair[KEYS_MAX][2];
    uint64_t key[KEYS_MAX];
    uint16_t group[KEYS_MAX];
    uint32_t n = 0;
    uint32_t tries = (uint32_t)draw(w, KEYS_MAX);
    for (uint32_t i = 0; i < tries; i++) {
        uint64_t k = draw(w, SPACE);
        pair[i][0] = key_of(k);
        pair[i][1] = (k + (draw(w, 8) == 0)) % GROUPS;
    }
    qsort(pair, tries, sizeof pair[0], by_key_and_group);
    for (uint32_t i = 0; i < tries; i++) {
        if (i == 0 || by_key_and_group(pair[i], pair[i - 1]) != 0) {
            key[n] = pair[i][0];
            group[n++] = (uint16_t)pair[i][1];
        }
    }
    kit_keys *made = kit_keys_new(w->arena, &layout, key, group, n);
    for (uint32_t i = 0; i < n; i++) {
        made->show[i] = 1 + (uint32_t)draw(w, 5);
        made->click[i] = (uint32_t)draw(w, made->show[i] + 1);
    }
    return made;
}

static void begin(world *w, uint64_t seed, uint32_t n_ranks)
{
    *w = (world){
        .arena = tn_arena_new(1 << 16), .n_ranks = n_ranks, .stream = tn_stream2(seed, 1, 1)};
    for (uint32_t r = 0; r < n_ranks; r++) {
        w->of[r] = keys_of_rank(w);
        w->keys[r] = draw(w, 6) == 0 ? NULL : &w->of[r]->set;
        w->owners = w->of[r]->set.owners;
        w->grads[r] = TN_NEW_ARRAY(w->arena, float, w->of[r]->n_floats + 1);
        for (uint32_t i = 0; i < w->of[r]->n_floats; i++) {
            w->grads[r][i] = (float)tn_unit(tn_draw(w->stream, w->draws++)) - 0.5F;
        }
    }
}

static uint32_t index_in(const tn_keyset *keys, uint64_t key, uint16_t group)
{
    for (uint32_t i = 0; i < keys->n; i++) {
        if (keys->key[i] == key && keys->group[i] == group) {
            return i;
        }
    }
    return UINT32_MAX;
}

static void check_order(const tn_keyset *joint)
{
    uint32_t floats = 0;
    assert_int_equal(joint->first[0], 0);
    assert_int_equal(joint->first[TN_PARTITIONS], joint->n);
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        for (uint32_t i = joint->first[p]; i < joint->first[p + 1]; i++) {
            assert_int_equal(tn_partition_of(joint->key[i], TN_PARTITIONS), p);
        }
    }
    for (uint32_t i = 0; i < joint->n; i++) {
        assert_int_equal(joint->at[i], floats);
        floats += tn_record_of(&layout, joint->group[i])->width;
        if (i > 0) {
            const uint64_t a[2] = {joint->key[i - 1], joint->group[i - 1]};
            const uint64_t b[2] = {joint->key[i], joint->group[i]};
            assert_true(by_key_and_group(a, b) < 0);
        }
    }
    assert_int_equal(joint->floats, floats);
}

/* Counts and sums of one joint key, by looking through all ranks. */
static void check_key(const world *w, const tn_keyset *joint, uint32_t k, const float *sum)
{
    uint32_t show = 0;
    uint32_t click = 0;
    uint32_t width = tn_row_width(joint, k);
    float want[3] = {0, 0, 0}; /* no row is wider */
    assert_true(width <= 3);
    for (uint32_t r = 0; r < w->n_ranks; r++) {
        uint32_t i =
            w->keys[r] != NULL ? index_in(w->keys[r], joint->key[k], joint->group[k]) : UINT32_MAX;
        if (i == UINT32_MAX) {
            continue;
        }
        show += w->keys[r]->show[i];
        click += w->keys[r]->click[i];
        for (uint32_t x = 0; x < width && x < 3; x++) {
            want[x] += w->grads[r][w->keys[r]->at[i] + x];
        }
    }
    assert_true(show > 0);
    assert_int_equal(joint->show[k], show);
    assert_int_equal(joint->click[k], click);
    assert_memory_equal(sum + joint->at[k], want, width * sizeof *want);
}

static void check_given(tn_batch_union *j, tn_team *team, const world *w, uint32_t rank)
{
    const tn_keyset *joint = tn_batch_union_keys(j);
    const tn_keyset *keys = w->keys[rank];
    float *rows = TN_NEW_ARRAY(w->arena, float, joint->floats + 1);
    float *got = TN_NEW_ARRAY(w->arena, float, keys->floats + 1);
    for (uint32_t i = 0; i < joint->floats; i++) {
        rows[i] = (float)i;
    }
    tn_batch_union_give(j, team, rank, rows, got);
    for (uint32_t i = 0; i < keys->n; i++) {
        uint32_t k = index_in(joint, keys->key[i], keys->group[i]);
        assert_true(k != UINT32_MAX);
        assert_memory_equal(got + keys->at[i], rows + joint->at[k],
                            tn_row_width(keys, i) * sizeof *rows);
    }
}

static void check(tn_batch_union *j, tn_team *team, world *w)
{
    assert_int_equal(tn_batch_union_unite(j, team, w->keys, NULL), TN_OK);
    const tn_keyset *joint = tn_batch_union_keys(j);
    check_order(joint);
    float *sum = TN_NEW_ARRAY(w->arena, float, joint->floats + 1);
    memset(sum, 0xff, joint->floats * sizeof *sum);
    tn_batch_union_add(j, team, (const float *const *)w->grads, sum);
    for (uint32_t k = 0; k < joint->n; k++) {
        check_key(w, joint, k, sum);
    }
    for (uint32_t r = 0; r < w->n_ranks; r++) {
        if (w->keys[r] != NULL) {
            check_given(j, team, w, r);
        }
    }
}

TEST(keys_are_united_and_gradients_added_in_rank_order)
{
    tn_team *team FREED(tn_team_close) = NULL;
    assert_int_equal(tn_team_open(&team, 3, NULL), TN_OK);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks++) {
        tn_batch_union *j = NULL;
        for (uint64_t turn = 0; turn < 4; turn++) { /* memory of one step serves the next */
            world w;
            begin(&w, ranks * UINT64_C(100) + turn, ranks);
            if (j == NULL) {
                j = tn_batch_union_new(arena, ranks, w.owners, &layout);
            }
            check(j, turn % 2 == 0 ? team : NULL, &w);
            tn_arena_free(w.arena);
        }
        tn_batch_union_free(j);
    }
}

TEST(a_step_without_keys_is_empty)
{
    world w;
    begin(&w, 1, 2);
    tn_batch_union *j = tn_batch_union_new(w.arena, 2, w.owners, &layout);
    const tn_keyset *none[2] = {NULL, NULL};
    const float *grads[2] = {NULL, NULL};
    float sum = 1;
    assert_int_equal(tn_batch_union_unite(j, NULL, none, NULL), TN_OK);
    assert_int_equal(tn_batch_union_keys(j)->n, 0);
    assert_int_equal(tn_batch_union_keys(j)->first[TN_PARTITIONS], 0);
    tn_batch_union_add(j, NULL, grads, &sum);
    assert_true(sum == 1);
    tn_batch_union_free(j);
    tn_arena_free(w.arena);
}

/* What fails leaves a joint that works. */
TEST(memory_that_runs_out_is_told)
{
    world w;
    begin(&w, 7, 4);
    tn_batch_union *j = tn_batch_union_new(w.arena, 4, w.owners, &layout);
    tn_alloc_fail_at(1);
    assert_int_equal(tn_batch_union_unite(j, NULL, w.keys, NULL), TN_E_MEMORY);
    tn_alloc_fail_at(0);
    check(j, NULL, &w);
    tn_batch_union_free(j);
    tn_arena_free(w.arena);
}
