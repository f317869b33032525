/* test_table_keys.c - which keys have rows, what a row holds and counts. */
#include "base/math/key.h"
#include "onetable.h"
#include "support/test.h"

CLOSER(tn_table_free);

TEST(pushes_add_shows_and_clicks_and_the_day)
{
    const uint64_t key = 12345;
    onetable f CLEANUP(onetable_end) = onetable_begin("sgd", NULL, 1);
    kit_keys *k = keys_of(&f, &key, 1);
    float *rows = floats(&f, k);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
    kit_row row;
    assert_true(kit_row_of(f.t, key, &row));
    assert_true(row.view.show == 0 && row.view.click == 0);

    k->show[0] = 3;
    k->click[0] = 2;
    tn_push push = kit_push(0);
    push.day = 19000;
    for (uint32_t i = 0; i < 1000; i++) {
        tn_table_push(f.t, NULL, &k->set, rows, &push, 1);
    }
    assert_true(kit_row_of(f.t, key, &row));
    assert_true(row.view.show == 3000 && row.view.click == 2000);
    assert_int_equal(row.view.last_seen, 19000);
    assert_int_equal(row.view.present, 1);
}

TEST(counts_are_exact_beyond_two_to_the_24_and_32)
{
    const uint64_t key = 9;
    const double big[] = {0x1p24, 0x1p32 + 1, 0x1p36 + 3};
    onetable f CLEANUP(onetable_end) = onetable_begin("sgd", NULL, 1);
    kit_keys *k = keys_of(&f, &key, 1);
    float *rows = floats(&f, k);
    for (size_t i = 0; i < 3; i++) {
        tn_row_view view = {
            .key = key, .present = 1, .show = big[i], .click = 1, .data = rows, .n_floats = DIM};
        assert_int_equal(tn_table_restore(f.t, &view, NULL), TN_OK);
        tn_push push = kit_push(0);
        tn_table_push(f.t, NULL, &k->set, rows, &push, 1);
        kit_row row;
        assert_true(kit_row_of(f.t, key, &row));
        assert_true(row.view.show == big[i] + 1);
        assert_true(row.view.click == 1);
    }
}

static tn_status count_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)row;
    (void)err;
    ++*(uint64_t *)arg;
    return TN_OK;
}

TEST(r1_ids_1_to_100000_lie_even_over_partitions)
{
    const uint32_t n = 100000;
    onetable f CLEANUP(onetable_end) = onetable_begin("sgd", NULL, 1);
    kit_keys *k = keys_of(&f, many_keys(&f, n, tn_salt("user")), n);
    float *rows = floats(&f, k);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
    const double mean = (double)n / TN_PARTITIONS;
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        uint64_t count = 0;
        assert_int_equal(tn_table_walk(f.t, p, count_row, &count, NULL), TN_OK);
        assert_true(fabs((double)count - mean) < 6 * sqrt(mean));
    }
}

TEST(r2_equal_ids_of_two_groups_have_rows_of_their_own)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    kit_segment segments[] = {{"deep", DIM}, {NULL, 0}};
    kit_model *m = kit_model_new(arena, segments, 2);
    m->rule[0] = m->rule[TN_SEGMENTS_MAX] = kit_rule(arena, "sgd", "lr=1");
    tn_table *t FREED(tn_table_free) = kit_table(m, 1);
    const uint64_t key[] = {tn_key_of(5, tn_salt("user")), tn_key_of(5, tn_salt("item"))};
    const uint16_t group[] = {0, 1};
    kit_keys *k = kit_keys_new(arena, &m->layout, key, group, 2);
    float rows[2 * DIM];
    const float grads[2 * DIM] = {1, 1, 1, 1, 2, 2, 2, 2};
    assert_int_equal(tn_table_pull(t, NULL, &k->set, rows, NULL), TN_OK);
    assert_int_equal(tn_table_rows(t), 2);
    tn_push push = kit_push(0);
    tn_table_push(t, NULL, &k->set, grads, &push, 1);
    tn_table_peek(t, NULL, &k->set, NULL, rows, NULL);
    assert_true(rows[0] == -1 && rows[DIM] == -2);

    /* Even one key, should a hash of both fall together. */
    const uint64_t same[] = {77, 77};
    k = kit_keys_new(arena, &m->layout, same, group, 2);
    assert_int_equal(tn_table_pull(t, NULL, &k->set, rows, NULL), TN_OK);
    assert_int_equal(tn_table_rows(t), 4);
    tn_table_push(t, NULL, &k->set, grads, &push, 1);
    tn_table_peek(t, NULL, &k->set, NULL, rows, NULL);
    assert_true(rows[0] == -1 && rows[DIM] == -2);
}

typedef struct shown {
    uint64_t key;
    uint32_t groups; /* bit i: group[i] was shown */
    const uint16_t *group;
    uint32_t n;
    uint32_t day;
} shown;

static tn_status note_group(void *arg, const tn_row_view *row, tn_error *err)
{
    shown *s = arg;
    (void)err;
    assert_true(row->key == s->key);
    assert_int_equal(row->last_seen, s->day);
    for (uint32_t i = 0; i < s->n; i++) {
        s->groups |= (uint32_t)(row->group == s->group[i] && row->data[0] == -(float)i) << i;
    }
    return TN_OK;
}

/* A row keeps the number of its group in two places, beside key and day. */
TEST(groups_up_to_the_last_are_told_apart_and_survive_a_push)
{
    enum { N = 5, LAST_DAY = (1 << 22) - 1 };
    const uint16_t group[N] = {4, 1024 + 4, 2048 + 4, 3072 + 4, TN_GROUPS_MAX - 1};
    const uint64_t one = UINT64_C(0xfedcba9876543210);
    const uint64_t key[N] = {one, one, one, one, one};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    kit_segment segments[] = {{"deep", DIM}, {NULL, 0}};
    kit_model *m = kit_model_new(arena, segments, TN_GROUPS_MAX);
    for (size_t g = 0; g < TN_GROUPS_MAX; g++) {
        m->rule[g * TN_SEGMENTS_MAX] = kit_rule(arena, "sgd", "lr=1");
    }
    tn_table *t FREED(tn_table_free) = kit_table(m, 1);
    kit_keys *k = kit_keys_new(arena, &m->layout, key, group, N);
    float rows[N * DIM];
    float grads[N * DIM];
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t d = 0; d < DIM; d++) {
            grads[i * DIM + d] = (float)i;
        }
    }
    assert_int_equal(tn_table_pull(t, NULL, &k->set, rows, NULL), TN_OK);
    assert_int_equal(tn_table_rows(t), N);
    tn_push push = kit_push(0);
    push.day = LAST_DAY;
    tn_table_push(t, NULL, &k->set, grads, &push, 1);
    shown s = {.key = one, .group = group, .n = N, .day = LAST_DAY};
    assert_int_equal(tn_table_walk(t, tn_partition_of(one, TN_PARTITIONS), note_group, &s, NULL),
                     TN_OK);
    assert_int_equal(s.groups, (1 << N) - 1);
    assert_int_equal(tn_table_pull(t, NULL, &k->set, rows, NULL), TN_OK);
    assert_int_equal(tn_table_rows(t), N);
}

/* Rows of one record are filled together only where their groups begin alike. */
TEST(rows_of_each_group_begin_as_its_rule_says)
{
    enum { N = 200, GROUPS = 2 };
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    kit_segment segments[] = {{"wide", 1}, {"deep", DIM}, {NULL, 0}};
    for (uint32_t differ = 0; differ < 2; differ++) {
        kit_model *m = kit_model_new(arena, segments, GROUPS);
        for (uint32_t g = 0; g < GROUPS; g++) {
            for (uint32_t i = 0; i < 2; i++) {
                tn_rule *rule = &m->rule[g * TN_SEGMENTS_MAX + i];
                *rule = kit_rule(arena, "sgd", "lr=1");
                rule->init.a = i == 1 && differ == 1 ? (double)g : 5;
            }
        }
        tn_table *t FREED(tn_table_free) = kit_table(m, 1);
        uint64_t key[N];
        uint16_t group[N];
        for (uint32_t i = 0; i < N; i++) {
            key[i] = i; /* all in one partition */
            group[i] = (uint16_t)(i % GROUPS);
        }
        kit_keys *k = kit_keys_new(arena, &m->layout, key, group, N);
        float rows[N * (1 + DIM)];
        assert_int_equal(tn_table_pull(t, NULL, &k->set, rows, NULL), TN_OK);
        for (uint32_t i = 0; i < N; i++) {
            const float *row = rows + k->set.at[i];
            assert_true(row[0] == 5);
            assert_true(row[1] == row[DIM] && row[1] == (differ == 1 ? (float)k->set.group[i] : 5));
        }
    }
}

/* With one sum of squares per row. */
TEST(rows_are_padded_where_that_saves_lines)
{
    const struct {
        uint32_t dim, bytes;
    } sizes[] = {{1, 32}, {4, 44}, {7, 56}, {8, 64}, {9, 64}, {16, 92}, {24, 128}, {32, 160}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
        kit_model *m =
            kit_model_plain(arena, sizes[i].dim, kit_rule(arena, "adagrad", "rowwise=true"));
        tn_table *t FREED(tn_table_free) = kit_table(m, 1);
        const uint64_t key = 1;
        kit_keys *k = kit_keys_new(arena, &m->layout, &key, NULL, 1);
        float row[32];
        assert_int_equal(tn_table_pull(t, NULL, &k->set, row, NULL), TN_OK);
        assert_int_equal(tn_table_stride(t, 0), sizes[i].bytes);
    }
}

TEST(r6_a_batch_may_hold_a_million_different_keys)
{
    const uint32_t n = 1000000;
    onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", "rowwise=true lr=1", 1);
    kit_keys *k = keys_of(&f, many_keys(&f, n, 7), n);
    float *rows = floats(&f, k);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
    assert_int_equal(tn_table_rows(f.t), n);
    tn_push push = kit_push(0);
    tn_table_push(f.t, NULL, &k->set, rows, &push, 1);
    assert_true(tn_table_bytes(f.t) / n < 24 + 4 * DIM + 4 + 16);
    assert_true(tn_table_stride(f.t, 0) >= 24 + 4 * DIM);
    assert_true(tn_table_bytes(f.t) >= tn_table_rows(f.t) * (tn_table_stride(f.t, 0) + 4));
}

TEST(r9_an_id_of_two_to_the_63_costs_one_row)
{
    const uint64_t key[] = {UINT64_C(1) << 63, UINT64_MAX, 0};
    onetable f CLEANUP(onetable_end) = onetable_begin("sgd", NULL, 1);
    kit_keys *k = keys_of(&f, key, 3);
    float *rows = floats(&f, k);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
    assert_int_equal(tn_table_rows(f.t), 3);
    assert_in_range(tn_table_bytes(f.t), 1, 4096);
}

TEST(r10_one_row_holds_all_segments_with_their_state)
{
    const uint64_t key = 31;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    kit_segment segments[] = {{"wide", 1}, {"deep", DIM}, {NULL, 0}};
    kit_model *m = kit_model_new(arena, segments, 1);
    m->rule[0] = kit_rule(arena, "ftrl", NULL);
    m->rule[1] = kit_rule(arena, "adam", NULL);
    tn_table *t FREED(tn_table_free) = kit_table(m, 1);
    kit_keys *k = kit_keys_new(arena, &m->layout, &key, NULL, 1);
    float rows[1 + DIM] = {0};
    assert_int_equal(tn_table_pull(t, NULL, &k->set, rows, NULL), TN_OK);
    assert_int_equal(tn_table_rows(t), 1);
    kit_row row;
    assert_true(kit_row_of(t, key, &row));
    assert_int_equal(row.view.present, 3);
    assert_int_equal(row.view.n_floats, 3 + 3 * DIM + 1);
    tn_place_in_row wide = tn_table_place(t, 0, 0);
    tn_place_in_row deep = tn_table_place(t, 0, 1);
    assert_int_equal(wide.n_states, 2);
    assert_string_equal(wide.spec[0].name, "z");
    assert_int_equal(deep.w, 3);
    assert_int_equal(deep.state[2], 3 + 3 * DIM);
    assert_true(deep.spec[2].count);
}
