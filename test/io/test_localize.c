/* test_localize.c - keys go in as read and come out once each, owner by owner. */
#include "base/keys/record.h"
#include "base/math/key.h"
#include "io/localize/localize.h"
#include "io/rows/batch.h"
#include "support/mallocs.h"
#include "support/test.h"

CLOSER(tn_localizer_free);

enum { SLOTS = 4, ROWS_MAX = 50, SLOT_KEYS_MAX = 100, PEERS = 3, PARTITIONS = 16, GROUPS = 3 };
enum { BLOCKS = 8, LINE = 16 };

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

static tn_localizer *localizer_new(uint32_t n_blocks)
{
    tn_localizer *l = NULL;
    const tn_localizer_opts opts = {&owners, &layout, slot_group, slot_used, SLOTS, n_blocks};
    assert_int_equal(tn_localizer_new(&l, &opts, NULL), TN_OK);
    return l;
}

static const tn_local *localize(tn_localizer *l, const sample *s)
{
    const tn_local *local = NULL;
    assert_int_equal(tn_localize(l, &s->batch, &local, NULL), TN_OK);
    return local;
}

/* The key whose row begins there. */
static uint32_t key_at(const tn_keyset *keys, uint32_t at)
{
    uint32_t k = 0;
    while (k < keys->n && keys->at[k] != at) {
        k++;
    }
    assert_true(k < keys->n);
    return k;
}

TEST(every_index_leads_back_to_the_key_as_read)
{
    tn_localizer *l FREED(tn_localizer_free) = localizer_new(0);
    sample s;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        sample_fill(&s, ROWS_MAX, 1 + (uint32_t)seed, seed);
        const tn_local *local = localize(l, &s);
        for (uint32_t k = 0; k < SLOTS; k++) {
            for (uint32_t i = 0; slot_used[k] && i < s.offset[k][ROWS_MAX]; i++) {
                const uint32_t key = key_at(&local->keys, local->bag[k].index[i]);
                assert_true(local->keys.key[key] == s.key[k][i]);
                assert_int_equal(local->keys.group[key], slot_group[k]);
            }
        }
    }
}

TEST(each_key_appears_once_in_the_partition_it_belongs_to)
{
    tn_localizer *l FREED(tn_localizer_free) = localizer_new(0);
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
}

TEST(the_slices_of_the_peers_cover_all_keys_in_order)
{
    tn_localizer *l FREED(tn_localizer_free) = localizer_new(0);
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
}

/* Groups in their order, each from a line on, keys as its slots show them first. */
TEST(rows_lie_side_by_side_in_the_order_of_first_appearance)
{
    tn_localizer *l FREED(tn_localizer_free) = localizer_new(BLOCKS);
    sample s;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        sample_fill(&s, ROWS_MAX, 1 + (uint32_t)seed, seed);
        const tn_local *local = localize(l, &s);
        uint32_t n = 0;
        uint32_t end = 0;
        for (uint32_t g = 0; g < GROUPS; g++) {
            end = (end + LINE - 1) / LINE * LINE;
            for (uint32_t k = 0; k < SLOTS; k++) {
                const bool takes = slot_used[k] && slot_group[k] == g;
                for (uint32_t i = 0; takes && i < s.offset[k][ROWS_MAX]; i++) {
                    const uint32_t at = local->bag[k].index[i];
                    assert_true(at <= end); /* one of those before, or the next */
                    n += at == end;
                    end +=
                        at == end ? tn_localized_stride(records[layout.group[g].record].width) : 0;
                }
            }
        }
        assert_int_equal(n, local->keys.n); /* with every_index_leads..: no two rows overlap */
        assert_true(end <= local->keys.floats && local->keys.floats < end + LINE);
        assert_ptr_equal(local->keys.layout, &layout);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(tn_row_width(&local->keys, i), local->keys.group[i] == 2 ? 1 : 9);
        }
    }
}

TEST(a_row_that_fits_a_line_does_not_straddle_two)
{
    static const uint32_t widths[][2] = {{1, 1},   {2, 2},   {3, 4},     {4, 4},
                                         {5, 8},   {8, 8},   {9, 16},    {16, 16},
                                         {17, 17}, {33, 33}, {157, 160}, {160, 160}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        assert_int_equal(tn_localized_stride(widths[i][0]), widths[i][1]);
    }
}

TEST(the_widest_segment_of_long_rows_begins_on_a_line)
{
    enum { KEYS = 5, LONG = 156 };
    static const tn_record record[1] = {
        {.width = 1 + LONG, .n_segments = 2, .segment = {{"wide", 0, 1}, {"deep", 1, LONG}}}};
    static const tn_share_group two[2] = {{"a", 0, 0}, {"b", 0, 0}};
    static const tn_layout rows = {2, two, 1, record};
    static const uint16_t group[2] = {0, 1};
    static const bool used[2] = {true, true};
    uint32_t offset[KEYS + 1];
    uint64_t key[KEYS];
    float label[KEYS] = {0};
    for (uint32_t i = 0; i <= KEYS; i++) {
        offset[i] = i;
        key[i < KEYS ? i : 0] = tn_mix(i + 1);
    }
    tn_slot slot[2] = {{offset, key, NULL}, {offset, key, NULL}};
    const tn_batch batch = {.rows = KEYS, .n_slots = 2, .label = label, .slot = slot};
    const tn_localizer_opts opts = {&owners, &rows, group, used, 2, 0};
    tn_localizer *l FREED(tn_localizer_free) = NULL;
    const tn_local *local = NULL;
    assert_int_equal(tn_localizer_new(&l, &opts, NULL), TN_OK);
    assert_int_equal(tn_localize(l, &batch, &local, NULL), TN_OK);
    for (uint32_t s = 0, end = 0; s < 2; s++) {
        for (uint32_t i = 0; i < KEYS; i++) {
            const uint32_t at = local->bag[s].index[i];
            assert_int_equal((at + 1) % LINE, 0);
            assert_true(at >= end);
            end = at + 1 + LONG;
            assert_true(end <= local->keys.floats);
        }
    }
}

TEST(a_slot_that_nobody_takes_has_an_empty_bag)
{
    tn_localizer *l FREED(tn_localizer_free) = localizer_new(BLOCKS);
    sample s;
    sample_fill(&s, ROWS_MAX, 100, 3);
    const tn_local *local = localize(l, &s);
    for (uint32_t r = 0; r <= ROWS_MAX; r++) {
        assert_int_equal(local->bag[2].offset[r], 0);
    }
    for (uint32_t i = 0; i < local->keys.n; i++) {
        assert_int_not_equal(local->keys.group[i], 1);
    }
}

TEST(shows_and_clicks_are_as_many_as_were_read)
{
    tn_localizer *l FREED(tn_localizer_free) = localizer_new(BLOCKS);
    sample s;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        sample_fill(&s, ROWS_MAX, 1 + (uint32_t)seed, seed);
        const tn_local *local = localize(l, &s);
        for (uint32_t k = 0; k < local->keys.n; k++) {
            uint32_t shows = 0;
            uint32_t clicks = 0;
            for (uint32_t i = 0; i < SLOTS * ROWS_MAX; i++) {
                const uint32_t r = i / SLOTS;
                const tn_bag *bag = &local->bag[i % SLOTS];
                for (uint32_t j = bag->offset[r]; j < bag->offset[r + 1]; j++) {
                    const bool here = bag->index[j] == local->keys.at[k];
                    shows += here;
                    clicks += here && s.label[r] > 0.5F;
                }
            }
            assert_int_equal(shows, local->keys.show[k]);
            assert_int_equal(clicks, local->keys.click[k]);
        }
    }
}

/* ---- blocks ---- */

/* How often the rows of a block are taken, and whether by its slots alone; the group of the rows.
 */
static uint32_t taken(const tn_local *local, const tn_row_block *b, uint32_t rows, uint16_t *group)
{
    uint32_t n = 0;
    *group = slot_group[b->slot[0]];
    for (uint32_t s = 0; s < SLOTS; s++) {
        const tn_bag *bag = &local->bag[s];
        bool listed = false;
        for (uint32_t i = 0; i < b->n_slots; i++) {
            assert_true(i == 0 || b->slot[i] > b->slot[i - 1]);
            listed |= b->slot[i] == s;
        }
        for (uint32_t j = 0; j < bag->offset[rows]; j++) {
            const bool inside = b->from <= bag->index[j] && bag->index[j] < b->to;
            assert_true(!inside || (listed && slot_group[s] == *group));
            assert_true(inside || !listed || !b->whole);
            n += inside;
        }
    }
    return n;
}

/* Blocks go through all groups in order; gaps are where a group begins on a line. */
static void check_cover(const tn_local *local)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < local->n_blocks; i++) {
        const tn_row_block *b = &local->block[i];
        const uint32_t line = (end + LINE - 1) / LINE * LINE;
        const bool follows = i > 0 && slot_group[b->slot[0]] == slot_group[b[-1].slot[0]];
        assert_true(b->from < b->to);
        assert_int_equal(b->from, follows ? end : line);
        end = b->to;
    }
    for (uint32_t k = 0; k < local->keys.n; k++) { /* no row is cut */
        uint32_t n = 0;
        for (uint32_t i = 0; i < local->n_blocks; i++) {
            const tn_row_block *b = &local->block[i];
            n += b->from <= local->keys.at[k] &&
                 local->keys.at[k] + tn_row_width(&local->keys, k) <= b->to;
        }
        assert_int_equal(n, 1);
    }
}

/* What a group's keys are taken in all, and the most that one of them is. */
typedef struct load {
    uint32_t keys, most, all, blocks;
} load;

/* A group is cut if it has more than twice its share of what is read; a block of it has its share,
 * and at most one key's more; only the last one has less. */
static void check_loads(const tn_local *local, uint32_t rows, uint32_t n_blocks)
{
    load of[GROUPS] = {{0}};
    uint32_t all = 0;
    for (uint32_t k = 0; k < local->keys.n; k++) {
        load *g = &of[local->keys.group[k]];
        g->most = local->keys.show[k] > g->most ? local->keys.show[k] : g->most;
        g->all += local->keys.show[k];
        all += local->keys.show[k];
    }
    const uint32_t share = all / n_blocks + 1;
    for (uint32_t i = 0; i < local->n_blocks; i++) {
        uint16_t group;
        const tn_row_block *b = &local->block[i];
        const uint32_t n = taken(local, b, rows, &group);
        const bool last =
            i + 1 == local->n_blocks || slot_group[b[1].slot[0]] != slot_group[b->slot[0]];
        of[group].blocks++;
        assert_int_equal(b->whole, of[group].all / 2 <= share);
        assert_true(b->whole ? n == of[group].all : n < share + of[group].most);
        assert_true(b->whole || last || n >= share);
    }
    for (uint32_t g = 0; g < GROUPS; g++) {
        assert_true(of[g].all / 2 > share ? of[g].blocks > 1 : of[g].blocks == (of[g].all > 0));
    }
}

TEST(all_rows_are_in_one_block_and_large_groups_are_cut)
{
    static const uint32_t n_blocks[] = {1, 2, 3, 4, BLOCKS, 64, 1000};
    uint32_t n_cut = 0;
    uint32_t n_whole = 0;
    sample s;
    for (uint32_t c = 0; c < sizeof n_blocks / sizeof *n_blocks; c++) {
        tn_localizer *l FREED(tn_localizer_free) = localizer_new(n_blocks[c]);
        for (uint64_t seed = 1; seed <= 50; seed++) {
            const uint32_t rows = (uint32_t)(seed % (ROWS_MAX + 1));
            sample_fill(&s, rows, 1 + (uint32_t)seed, seed);
            const tn_local *local = localize(l, &s);
            check_cover(local);
            check_loads(local, rows, n_blocks[c]);
            for (uint32_t i = 0; i < local->n_blocks; i++) {
                n_whole += local->block[i].whole;
                n_cut += !local->block[i].whole;
            }
        }
    }
    assert_true(n_cut > 100 && n_whole > 100);
}

TEST(scoring_needs_no_blocks)
{
    tn_localizer *l FREED(tn_localizer_free) = localizer_new(0);
    sample s;
    sample_fill(&s, ROWS_MAX, 20, 3);
    assert_int_equal(localize(l, &s)->n_blocks, 0);
}

/* Whatever a localizer has seen before. */
TEST(the_same_batch_gives_the_same_result)
{
    tn_localizer *l[2] = {localizer_new(BLOCKS), localizer_new(BLOCKS)};
    sample s;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        sample_fill(&s, ROWS_MAX, 100, 1000 + seed);
        (void)localize(l[1], &s);
        sample_fill(&s, ROWS_MAX / 2, 1 + (uint32_t)seed, seed);
        const tn_local *a = localize(l[0], &s);
        const tn_local *b = localize(l[1], &s);
        const uint32_t n = a->keys.n;
        assert_true(n == b->keys.n && a->keys.floats == b->keys.floats);
        assert_memory_equal(a->keys.key, b->keys.key, n * sizeof *a->keys.key);
        assert_memory_equal(a->keys.at, b->keys.at, n * sizeof *a->keys.at);
        for (uint32_t k = 0; k < SLOTS; k++) {
            assert_memory_equal(a->bag[k].index, b->bag[k].index,
                                a->bag[k].offset[ROWS_MAX / 2] * sizeof *a->bag[k].index);
        }
        assert_int_equal(a->n_blocks, b->n_blocks);
        for (uint32_t i = 0; i < a->n_blocks; i++) {
            assert_int_equal(a->block[i].from, b->block[i].from);
            assert_int_equal(a->block[i].to, b->block[i].to);
        }
    }
    tn_localizer_free(l[0]);
    tn_localizer_free(l[1]);
}

TEST(an_empty_batch_gives_an_empty_keyset)
{
    tn_localizer *l FREED(tn_localizer_free) = localizer_new(BLOCKS);
    sample s;
    sample_fill(&s, 0, 1, 1);
    const tn_keyset *keys = &localize(l, &s)->keys;
    assert_int_equal(keys->n, 0);
    assert_int_equal(tn_keys_of_peer(keys, 0).to, 0);
    assert_int_equal(tn_keys_of_partition(keys, PARTITIONS - 1).to, 0);
}

TEST(a_warm_localizer_allocates_nothing)
{
    tn_localizer *l FREED(tn_localizer_free) = localizer_new(BLOCKS);
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
}

TEST(a_batch_of_a_million_different_keys_works)
{
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
    tn_localizer *l FREED(tn_localizer_free) = localizer_new(BLOCKS);
    sample small;
    sample_fill(&small, ROWS_MAX, 10, 1);
    (void)localize(l, &small);
    const tn_local *local = NULL;
    assert_int_equal(tn_localize(l, &batch, &local, NULL), TN_OK);
    assert_int_equal(local->keys.n, MANY);
    for (uint32_t k = 0; k < MANY; k++) {
        assert_true(local->keys.key[k] == key[local->keys.at[k] / tn_localized_stride(9)]);
    }
    for (uint32_t i = 0; i < MANY; i += 9973) {
        assert_int_equal(local->bag[0].index[i],
                         i * tn_localized_stride(9)); /* in order of first appearance */
    }
    (void)localize(l, &small);
}

TEST(rows_beyond_2_to_the_32_floats_are_a_limit)
{
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
    const tn_localizer_opts opts = {&owners, &huge, group, used, 1, 0};
    tn_localizer *l FREED(tn_localizer_free) = NULL;
    const tn_local *local = NULL;
    tn_error err = {0};
    assert_int_equal(tn_localizer_new(&l, &opts, NULL), TN_OK);
    assert_int_equal(tn_localize(l, &batch, &local, &err), TN_E_LIMIT);
    assert_string_equal(err.text, "the keys of a batch take more than 4294967295 floats");
}

TEST(running_out_of_memory_is_reported_wherever_it_happens)
{
    const tn_localizer_opts opts = {&owners, &layout, slot_group, slot_used, SLOTS, BLOCKS};
    sample s;
    sample_fill(&s, ROWS_MAX, 100, 1);
    uint64_t nth = 0;
    tn_status status;
    do {
        tn_error err = {0};
        tn_localizer *l FREED(tn_localizer_free) = NULL;
        const tn_local *local = NULL;
        tn_alloc_fail_at(++nth);
        status = tn_localizer_new(&l, &opts, &err);
        assert_true((status == TN_OK) == (l != NULL));
        if (status == TN_OK) {
            status = tn_localize(l, &s.batch, &local, &err);
        }
        assert_int_equal(status, err.code);
    } while (status == TN_E_MEMORY);
    tn_alloc_fail_at(0);
    assert_int_equal(status, TN_OK);
    assert_true(nth > 2);
}
