/* test_localize.c - keys go in as read and come out once each, owner by owner. */
#include "base/core/alloc.h"
#include "base/keys/record.h"
#include "base/math/key.h"
#include "io/localize/localize.h"
#include "io/rows/batch.h"
#include "support/mallocs.h"
#include "support/test.h"

#include <string.h>

enum { SLOTS = 4, ROWS_MAX = 50, SLOT_KEYS_MAX = 100, PEERS = 3, PARTITIONS = 16, GROUPS = 3 };

static const uint32_t owned_from[PEERS + 1] = {0, 5, 5, PARTITIONS}; /* peer 1 owns nothing */
static const tn_owners owners = {PEERS, PARTITIONS, owned_from};

/* Slots 1 and 3 share group 2; nobody takes slot 2. */
static const uint16_t slot_group[SLOTS] = {0, 2, 1, 2};
static const bool slot_used[SLOTS] = {true, true, false, true};
static const tn_share_group groups[GROUPS] = {{"a", 0, 0}, {"b", 0, 0}, {"c", 0, 1}};
static const tn_record records[2] = {{.width = 9}, {.width = 1}};
static const tn_layout layout = {GROUPS, groups, 2, records};

/* A batch with memory of its own, filled at random. */
typedef struct sample {
    tn_batch batch;
    tn_slot slot[SLOTS];
    uint32_t offset[SLOTS][ROWS_MAX + 1];
    uint64_t key[SLOTS][SLOT_KEYS_MAX];
    float label[ROWS_MAX];
} sample;

static uint64_t next_random(uint64_t *state)
{
    return tn_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* `variety` different keys per group at most; 0 to 2 keys per example and slot. */
static void sample_fill(sample *s, uint32_t rows, uint32_t variety, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    s->batch = (tn_batch){.rows = rows, .n_slots = SLOTS, .label = s->label, .slot = s->slot};
    for (uint32_t k = 0; k < SLOTS; k++) {
        for (uint32_t r = 0; r < rows; r++) {
            uint32_t end = s->offset[k][r] + (uint32_t)(next_random(&seed) % 3);
            for (uint32_t i = s->offset[k][r]; i < end; i++) {
                uint64_t which = next_random(&seed) % variety + UINT64_C(1000) * slot_group[k];
                s->key[k][i] = tn_mix(which + 1);
            }
            s->offset[k][r + 1] = end;
        }
        s->slot[k] = (tn_slot){.offset = s->offset[k], .key = s->key[k]};
    }
    for (uint32_t r = 0; r < rows; r++) {
        s->label[r] = (float)(next_random(&seed) % 2);
    }
}

static tn_localizer *localizer_new(bool occurrences)
{
    tn_localizer *l = NULL;
    const tn_localizer_opts opts = {&owners, &layout,     slot_group, slot_used,
                                    SLOTS,   occurrences, false};
    assert_int_equal(tn_localizer_new(&l, &opts, NULL), TN_OK);
    return l;
}

static const tn_local *localize(tn_localizer *l, const sample *s)
{
    const tn_local *local = NULL;
    assert_int_equal(tn_localize(l, &s->batch, &local, NULL), TN_OK);
    return local;
}

static void every_index_leads_back_to_the_key_as_read(void **state)
{
    (void)state;
    tn_localizer *l = localizer_new(false);
    sample s;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        sample_fill(&s, ROWS_MAX, 1 + (uint32_t)seed, seed);
        const tn_local *local = localize(l, &s);
        for (uint32_t k = 0; k < SLOTS; k++) {
            for (uint32_t i = 0; slot_used[k] && i < s.offset[k][ROWS_MAX]; i++) {
                assert_true(local->keys.key[local->bag[k].index[i]] == s.key[k][i]);
                assert_int_equal(local->keys.group[local->bag[k].index[i]], slot_group[k]);
            }
        }
    }
    tn_localizer_free(l);
}

static void each_key_appears_once_in_the_partition_it_belongs_to(void **state)
{
    (void)state;
    tn_localizer *l = localizer_new(false);
    sample s;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        sample_fill(&s, ROWS_MAX, 1 + (uint32_t)seed, seed);
        const tn_keyset *keys = &localize(l, &s)->keys;
        for (uint32_t i = 0; i < keys->n; i++) {
            uint32_t partition = tn_partition_of(keys->key[i], PARTITIONS);
            tn_range home = tn_keys_of_partition(keys, partition);
            assert_true(home.from <= i && i < home.to);
            for (uint32_t j = i + 1; j < home.to; j++) {
                assert_true(keys->key[i] != keys->key[j]);
            }
        }
    }
    tn_localizer_free(l);
}

static void the_slices_of_the_peers_cover_all_keys_in_order(void **state)
{
    (void)state;
    tn_localizer *l = localizer_new(false);
    sample s;
    sample_fill(&s, ROWS_MAX, 100, 1);
    const tn_keyset *keys = &localize(l, &s)->keys;
    uint32_t end = 0;
    for (uint32_t p = 0; p < PEERS; p++) {
        tn_range slice = tn_keys_of_peer(keys, p);
        assert_int_equal(slice.from, end);
        end = slice.to;
    }
    assert_int_equal(end, keys->n);
    assert_int_equal(tn_keys_of_peer(keys, 1).from, tn_keys_of_peer(keys, 1).to);
    tn_localizer_free(l);
}

static void rows_lie_side_by_side_in_the_width_of_their_group(void **state)
{
    (void)state;
    tn_localizer *l = localizer_new(false);
    sample s;
    sample_fill(&s, ROWS_MAX, 100, 7);
    const tn_keyset *keys = &localize(l, &s)->keys;
    assert_int_equal(keys->at[0], 0);
    for (uint32_t i = 0; i < keys->n; i++) {
        assert_int_equal(keys->at[i + 1] - keys->at[i], keys->group[i] == 2 ? 1 : 9);
    }
    tn_localizer_free(l);
}

static void a_slot_that_nobody_takes_has_an_empty_bag(void **state)
{
    (void)state;
    tn_localizer *l = localizer_new(true);
    sample s;
    sample_fill(&s, ROWS_MAX, 100, 3);
    const tn_local *local = localize(l, &s);
    for (uint32_t r = 0; r <= ROWS_MAX; r++) {
        assert_int_equal(local->bag[2].offset[r], 0);
    }
    for (uint32_t i = 0; i < local->keys.n; i++) {
        assert_int_not_equal(local->keys.group[i], 1);
    }
    tn_localizer_free(l);
}

static bool comes_before(tn_occurrence a, tn_occurrence b)
{
    return a.row != b.row ? a.row < b.row : a.slot != b.slot ? a.slot < b.slot : a.entry < b.entry;
}

static void occurrences_ascend_and_are_as_many_as_the_shows(void **state)
{
    (void)state;
    tn_localizer *l = localizer_new(true);
    sample s;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        sample_fill(&s, ROWS_MAX, 1 + (uint32_t)seed, seed);
        const tn_local *local = localize(l, &s);
        const tn_occurrences *o = &local->occurrences;
        assert_int_equal(o->first[0], 0);
        for (uint32_t k = 0; k < local->keys.n; k++) {
            uint32_t clicks = 0;
            assert_int_equal(o->first[k + 1] - o->first[k], local->keys.show[k]);
            for (uint32_t i = o->first[k]; i < o->first[k + 1]; i++) {
                tn_occurrence at = o->item[i];
                assert_true(i == o->first[k] || comes_before(o->item[i - 1], at));
                assert_true(s.key[at.slot][at.entry] == local->keys.key[k]);
                assert_true(s.offset[at.slot][at.row] <= at.entry &&
                            at.entry < s.offset[at.slot][at.row + 1]);
                clicks += s.label[at.row] > 0.5F;
            }
            assert_int_equal(clicks, local->keys.click[k]);
        }
    }
    tn_localizer_free(l);
}

/* Of the slots that are used, 1 and 3 share a group, or none do. */
static void the_way_back_is_left_out_where_bags_are_enough(void **state)
{
    (void)state;
    static const uint16_t own[SLOTS] = {0, 1, 1, 2};
    sample s;
    sample_fill(&s, ROWS_MAX, 20, 3);
    for (uint32_t i = 0; i < 4; i++) {
        bool may = i % 2 == 1;
        bool apart = i == 3;
        const tn_localizer_opts opts = {
            &owners, &layout, i < 2 ? slot_group : own, slot_used, SLOTS, true, may};
        tn_localizer *l = NULL;
        assert_int_equal(tn_localizer_new(&l, &opts, NULL), TN_OK);
        const tn_local *local = localize(l, &s);
        assert_true(local->apart == apart);
        assert_true((local->occurrences.first == NULL) == apart);
        assert_true((local->occurrences.item == NULL) == apart);
        for (uint32_t k = 0; k < SLOTS; k++) {
            for (uint32_t j = 0; slot_used[k] && j < s.offset[k][ROWS_MAX]; j++) {
                assert_true(local->keys.key[local->bag[k].index[j]] == s.key[k][j]);
            }
        }
        tn_localizer_free(l);
    }
}

static void an_empty_batch_gives_an_empty_keyset(void **state)
{
    (void)state;
    tn_localizer *l = localizer_new(true);
    sample s;
    sample_fill(&s, 0, 1, 1);
    const tn_keyset *keys = &localize(l, &s)->keys;
    assert_int_equal(keys->n, 0);
    assert_int_equal(tn_keys_of_peer(keys, 0).to, 0);
    assert_int_equal(tn_keys_of_partition(keys, PARTITIONS - 1).to, 0);
    tn_localizer_free(l);
}

static void a_warm_localizer_allocates_nothing(void **state)
{
    (void)state;
    tn_localizer *l = localizer_new(true);
    sample s;
    sample_fill(&s, ROWS_MAX, 100, 0);
    for (uint32_t k = 0; k < SLOTS; k++) { /* the largest there can be */
        for (uint32_t r = 0; r <= ROWS_MAX; r++) {
            s.offset[k][r] = 2 * r;
        }
    }
    (void)localize(l, &s);
    uint64_t before = tn_mallocs();
    for (uint64_t seed = 1; seed <= 10; seed++) {
        sample_fill(&s, ROWS_MAX, 100, seed);
        (void)localize(l, &s);
    }
    assert_int_equal(tn_mallocs() - before, 0);
    tn_localizer_free(l);
}

static void a_batch_of_a_million_different_keys_works(void **state)
{
    (void)state;
    enum { MANY = 1000000, ROWS = 1000 };
    static uint64_t key[MANY];
    static uint32_t offset[ROWS + 1];
    static uint32_t empty[ROWS + 1] = {0};
    static float label[ROWS];
    for (uint32_t i = 0; i < MANY; i++) {
        key[i] = tn_mix(i + 1);
    }
    for (uint32_t r = 0; r <= ROWS; r++) {
        offset[r] = r * (MANY / ROWS);
    }
    tn_slot slot[SLOTS] = {
        {offset, key, NULL}, {empty, key, NULL}, {empty, key, NULL}, {empty, key, NULL}};
    const tn_batch batch = {.rows = ROWS, .n_slots = SLOTS, .label = label, .slot = slot};
    tn_localizer *l = localizer_new(true);
    sample small;
    sample_fill(&small, ROWS_MAX, 10, 1);
    (void)localize(l, &small);
    const tn_local *local = NULL;
    assert_int_equal(tn_localize(l, &batch, &local, NULL), TN_OK);
    assert_int_equal(local->keys.n, MANY);
    for (uint32_t i = 0; i < MANY; i += 9973) {
        assert_true(local->keys.key[local->bag[0].index[i]] == key[i]);
    }
    (void)localize(l, &small);
    tn_localizer_free(l);
}

static void rows_beyond_2_to_the_32_floats_are_a_limit(void **state)
{
    (void)state;
    static const tn_record wide[1] = {{.width = UINT32_MAX}};
    static const tn_share_group one[1] = {{"a", 0, 0}};
    static const tn_layout huge = {1, one, 1, wide};
    static const uint16_t group[1] = {0};
    static const bool used[1] = {true};
    uint32_t offset[3] = {0, 1, 2};
    uint64_t key[2] = {1, 2};
    float label[2] = {0, 0};
    tn_slot slot = {offset, key, NULL};
    const tn_batch batch = {.rows = 2, .n_slots = 1, .label = label, .slot = &slot};
    const tn_localizer_opts opts = {&owners, &huge, group, used, 1, false, false};
    tn_localizer *l = NULL;
    const tn_local *local = NULL;
    tn_error err = {0};
    assert_int_equal(tn_localizer_new(&l, &opts, NULL), TN_OK);
    assert_int_equal(tn_localize(l, &batch, &local, &err), TN_E_LIMIT);
    assert_string_equal(err.text,
                        "the keys of a batch take 8589934590 floats, more than 4294967295");
    tn_localizer_free(l);
}

static void running_out_of_memory_is_reported_wherever_it_happens(void **state)
{
    (void)state;
    const tn_localizer_opts opts = {&owners, &layout, slot_group, slot_used, SLOTS, true, false};
    sample s;
    sample_fill(&s, ROWS_MAX, 100, 1);
    uint64_t nth = 0;
    tn_status status;
    do {
        tn_error err = {0};
        tn_localizer *l = NULL;
        const tn_local *local = NULL;
        tn_alloc_fail_at(++nth);
        status = tn_localizer_new(&l, &opts, &err);
        assert_true((status == TN_OK) == (l != NULL));
        if (status == TN_OK) {
            status = tn_localize(l, &s.batch, &local, &err);
        }
        assert_int_equal(status, err.code);
        tn_localizer_free(l);
    } while (status == TN_E_MEMORY);
    tn_alloc_fail_at(0);
    assert_int_equal(status, TN_OK);
    assert_true(nth > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_leads_back_to_the_key_as_read),
        cmocka_unit_test(each_key_appears_once_in_the_partition_it_belongs_to),
        cmocka_unit_test(the_slices_of_the_peers_cover_all_keys_in_order),
        cmocka_unit_test(rows_lie_side_by_side_in_the_width_of_their_group),
        cmocka_unit_test(a_slot_that_nobody_takes_has_an_empty_bag),
        cmocka_unit_test(occurrences_ascend_and_are_as_many_as_the_shows),
        cmocka_unit_test(the_way_back_is_left_out_where_bags_are_enough),
        cmocka_unit_test(an_empty_batch_gives_an_empty_keyset),
        cmocka_unit_test(a_warm_localizer_allocates_nothing),
        cmocka_unit_test(a_batch_of_a_million_different_keys_works),
        cmocka_unit_test(rows_beyond_2_to_the_32_floats_are_a_limit),
        cmocka_unit_test(running_out_of_memory_is_reported_wherever_it_happens),
    };
    return cmocka_run_group_tests_name("io/localize", tests, NULL, NULL);
}
