/* test_table_life.c - counts that decay, rows that expire or leave a full table, and what cuts and
 * memory make of that. */
#include "ps/table/lifecycle.h"

#include "base/math/key.h"
#include "base/thread/team.h"
#include "onetable.h"
#include "ps/table/table_snapshot.h"
#include "ps/table/tabledef.h"
#include "support/test.h"

enum { KEYS = 20000, SALT = 9 };

static onetable begin(const tn_lifecycle *life)
{
    onetable f = {.arena = tn_arena_new(1 << 20)};
    tn_rule rule = kit_rule(f.arena, "adagrad", "rowwise=true");
    rule.init = (tn_init){TN_INIT_UNIFORM, -.1, .1};
    f.m = kit_model_plain(f.arena, DIM, rule);
    tn_lifecycle *own = TN_NEW(f.arena, tn_lifecycle);
    tn_row_options *options = TN_NEW(f.arena, tn_row_options);
    *own = *life;
    options->of[TN_POLICY_expiry] = own;
    f.m->rules.rows = options;
    f.t = kit_table(f.m, 3);
    return f;
}

/* One step on keys from .. from + n, shown `show` times each. */
typedef struct lesson {
    uint32_t from, n, day, show, click;
} lesson;

static void learn_with(onetable *f, tn_team *team, lesson x)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 20);
    onetable g = {.arena = arena, .m = f->m, .t = f->t};
    kit_keys *k = keys_of(&g, many_keys(&g, x.from + x.n, SALT) + x.from, x.n);
    float *rows = floats(&g, k);
    tn_push push = kit_push(x.day);
    push.day = x.day;
    for (uint32_t i = 0; i < x.n; i++) {
        k->show[i] = x.show;
        k->click[i] = x.click;
    }
    assert_int_equal(tn_table_pull(f->t, team, &k->set, rows, NULL), TN_OK);
    for (uint32_t i = 0; i < k->n_floats; i++) {
        rows[i] = (float)(i % 91) - 45 * rows[i];
    }
    tn_table_push(f->t, team, &k->set, rows, &push, 1);
}

static void learn(onetable *f, lesson x)
{
    learn_with(f, NULL, x);
}

static tn_group_rows sweep(onetable *f, uint32_t day)
{
    tn_group_rows swept = {0};
    assert_int_equal(tn_table_sweep(f->t, NULL, day, &swept, NULL), TN_OK);
    assert_int_equal(swept.rows, tn_table_rows(f->t));
    return swept;
}

static tn_row_view row_of(onetable *f, uint32_t number)
{
    kit_row row;
    const uint64_t key = many_keys(f, number + 1, SALT)[number];
    assert_true(kit_row_of(f->t, key, &row));
    row.view.data = NULL;
    return row.view;
}

static bool has_row(onetable *f, uint32_t number)
{
    kit_row row;
    return kit_row_of(f->t, many_keys(f, number + 1, SALT)[number], &row);
}

/* ---- counts ---- */

static void assert_close(double got, double want)
{
    assert_true(fabs(got - want) <= 1e-9 * fabs(want));
}

TEST(counts_decay_by_the_days_of_the_data)
{
    tn_lifecycle life = tn_lifecycle_none;
    life.decay = 0.98;
    onetable f CLEANUP(onetable_end) = begin(&life);
    learn(&f, (lesson){.n = 1, .day = 100, .show = 10, .click = 4});
    tn_row_view row = row_of(&f, 0);
    assert_true(row.show == 10 && row.click == 4);
    tn_row_view later = {.show = 10, .last_seen = 100};
    life.non_click = 1;
    assert_close(tn_score_of(&life, &later, 107), 8.681255332); /* V26 */
    learn(&f, (lesson){.n = 1, .day = 107, .show = 1, .click = 1});
    row = row_of(&f, 0);
    assert_int_equal(row.last_seen, 107);
    assert_close(row.show, 9.681255332);
    assert_close(row.click, 1 + 0.4 * 8.681255332);
    learn(&f, (lesson){.n = 1, .day = 107, .show = 1}); /* the same day: nothing but one more */
    assert_true(row_of(&f, 0).show == row.show + 1);
    learn(&f,
          (lesson){.n = 1, .day = 90, .show = 1}); /* late data: the row stays as young as it is */
    assert_int_equal(row_of(&f, 0).last_seen, 107);
    assert_true(row_of(&f, 0).show == row.show + 2);
}

TEST(a_decay_of_no_days_is_exactly_one)
{
    assert_true(tn_decay_of(0.98, 0) == 1);
    assert_true(tn_decay_of(0.98, 1) == 0.98);
    assert_true(tn_decay_of(0, 0) == 1 && tn_decay_of(0, 3) == 0);
    double naive = 1;
    for (uint32_t days = 1; days < 400; days++) {
        naive *= 0.98;
        assert_close(tn_decay_of(0.98, days), naive);
    }
}

TEST(a_score_weighs_clicks_and_the_rest)
{
    const tn_row_view row = {.show = 25, .click = 3, .last_seen = 5};
    assert_close(tn_score_of(&tn_lifecycle_none, &row, 5), 5.2); /* V26 */
}

/* ---- what expires ---- */

typedef struct bound_case {
    const char *what;
    tn_lifecycle life;
    bool leaves[4]; /* of four rows, below */
} bound_case;

static void expect_row(onetable *f, uint32_t k, bool stays, const char *what)
{
    fail_if(has_row(f, k) != stays, "%s: row %u", what, k);
}

/* Rows 0 .. 3: seen on days 100, 100, 120, 120; shown 1, 50, 1, 50 times. Looked at on day 130. */
TEST(a_row_leaves_by_age_score_show_or_norm)
{
    const double no = (double)NAN;
    const bound_case cases[] = {
        {"nothing", {1, 1, .1, no, no, no, no, 0}, {0}},
        {"29 days", {1, 1, .1, 29, no, no, no, 0}, {true, true, false, false}},
        {"30 days", {1, 1, .1, 30, no, no, no, 0}, {false}},
        {"score", {1, 1, .1, no, .8, no, no, 0}, {true, false, true, false}},
        {"score, decayed", {.9, 1, .1, no, .8, no, no, 0}, {true, true, true, false}},
        {"show", {1, 1, .1, no, no, 2, no, 0}, {true, false, true, false}},
        {"show, decayed", {.9, 1, .1, no, no, 3, no, 0}, {true, true, true, false}},
        {"norm", {1, 1, .1, no, no, no, 1e9, 0}, {true, true, true, true}},
        {"no norm", {1, 1, .1, no, no, no, 1e-9, 0}, {false}},
        {"or", {1, 1, .1, 20, .8, no, no, 0}, {true, true, true, false}},
        {"and", {1, 1, .1, 20, .8, no, no, 1}, {true, false, false, false}},
        {"and of one", {1, 1, .1, 20, no, no, no, 1}, {true, true, false, false}},
        {"and of three", {1, 1, .1, 20, .8, 1, no, 1}, {false}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onetable f CLEANUP(onetable_end) = begin(&cases[i].life);
        for (uint32_t k = 0; k < 4; k++) {
            const uint32_t day = k < 2 ? 100 : 120;
            learn(&f, (lesson){.from = k, .n = 1, .day = day, .show = k % 2 == 0 ? 1 : 50});
        }
        const tn_group_rows swept = sweep(&f, 130);
        for (uint32_t k = 0; k < 4; k++) {
            expect_row(&f, k, !cases[i].leaves[k], cases[i].what);
        }
        assert_int_equal(swept.rows + swept.expired, 4);
        assert_int_equal(swept.bytes, swept.rows * tn_table_stride(f.t, 0));
        assert_int_equal(tn_table_total(f.t).expired, swept.expired);
        assert_int_equal(sweep(&f, 130).expired, 0); /* a day twice is once */
    }
}

TEST(a_norm_is_that_of_the_weights_alone)
{
    const double factors[] = {0.999, 1.001};
    for (uint32_t i = 0; i < 2; i++) {
        tn_lifecycle life = tn_lifecycle_none;
        onetable f = begin(&life);
        learn(&f, (lesson){.n = 1, .day = 1, .show = 1});
        kit_row row;
        assert_true(kit_row_of(f.t, many_keys(&f, 1, SALT)[0], &row));
        double norm2 = 0;
        for (uint32_t k = 0; k < DIM; k++) {
            norm2 += (double)row.data[k] * (double)row.data[k];
        }
        onetable_end(&f);
        life.norm_below = factors[i] * sqrt(norm2);
        f = begin(&life);
        learn(&f, (lesson){.n = 1, .day = 1, .show = 1});
        assert_int_equal(sweep(&f, 1).expired, i);
        onetable_end(&f);
    }
}

/* Rows of many days: exactly those leave that a plain list says, with any number of threads, and
 * all others stay as they are. */
TEST(a_sweep_removes_exactly_those_that_have_expired)
{
    tn_lifecycle life = tn_lifecycle_none;
    life.ttl_days = 7;
    kit_digest first = {0};
    for (uint32_t threads = 1; threads <= 4; threads *= 2) {
        tn_team *team FREED(tn_team_close) = NULL;
        assert_int_equal(tn_team_open(&team, threads, NULL), TN_OK);
        onetable f CLEANUP(onetable_end) = begin(&life);
        for (uint32_t day = 0; day < 20; day++) {
            learn_with(&f, team, (lesson){.from = 600 * day, .n = 1000, .day = day, .show = 1});
        }
        tn_group_rows swept;
        assert_int_equal(tn_table_sweep(f.t, team, 20, &swept, NULL), TN_OK);
        assert_int_equal(swept.expired, 600 * 13); /* last seen on days 0 .. 12 */
        assert_false(has_row(&f, 600 * 13 - 1));
        assert_true(has_row(&f, 600 * 13));
        const kit_digest now = kit_digest_of(f.t);
        first = threads == 1 ? now : first;
        kit_same_rows(first, now);
    }
}

TEST(a_row_that_left_begins_anew)
{
    tn_lifecycle life = tn_lifecycle_none;
    life.ttl_days = 3;
    onetable f CLEANUP(onetable_end) = begin(&life);
    onetable g CLEANUP(onetable_end) = begin(&life);
    learn(&f, (lesson){.n = 100, .day = 1, .show = 9});
    learn(&f, (lesson){.from = 50, .n = 50, .day = 5, .show = 1});
    assert_int_equal(sweep(&f, 5).expired, 50);
    learn(&f, (lesson){.n = 50, .day = 6, .show = 2});
    learn(&g, (lesson){.n = 50, .day = 6, .show = 2});
    for (uint32_t k = 0; k < 50; k++) {
        kit_row a;
        kit_row b;
        const uint64_t key = many_keys(&f, 50, SALT)[k];
        assert_true(kit_row_of(f.t, key, &a) && kit_row_of(g.t, key, &b));
        assert_true(a.view.show == 2);
        assert_memory_equal(a.data, b.data, a.view.n_floats * sizeof(float));
    }
}

/* ---- a full table ---- */

/* Keys, and among them those shown more often, so that scores differ and many are equal. */
static void drift(onetable *f, tn_team *team, uint32_t day, uint32_t n)
{
    learn_with(f, team, (lesson){.from = n * day, .n = n, .day = day, .show = 1});
    learn_with(f, team, (lesson){.from = n * day, .n = n / 8, .day = day, .show = 2, .click = 1});
}

static tn_status note_most(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    double *most = arg;
    *most = fmax(*most, tn_score_of(&tn_lifecycle_none, row, 0));
    return TN_OK;
}

TEST(the_rows_that_score_least_leave_a_full_table)
{
    onetable f CLEANUP(onetable_end) = begin(&tn_lifecycle_none);
    const tn_range all = {0, TN_PARTITIONS};
    const uint64_t limit = 24 << 20;
    assert_true(tn_table_evict_beyond(f.t, limit, all));
    for (uint32_t i = 0; i < 20; i++) {
        drift(&f, NULL, i, 20000);
    }
    learn(&f, (lesson){.from = 1 << 21, .n = 500, .day = 20, .show = 100, .click = 50});
    for (uint32_t i = 21; i < 80; i++) {
        drift(&f, NULL, i, 20000);
        assert_true(tn_table_bytes(f.t) <= limit + limit / 50);
    }
    assert_true(tn_table_bytes(f.t) >= limit - limit / 50);
    assert_true(tn_table_total(f.t).evicted > 1000000);
    assert_int_equal(tn_table_total(f.t).evicted + tn_table_rows(f.t), tn_table_total(f.t).created);
    double most = 0;
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(tn_table_walk(f.t, p, note_most, &most, NULL), TN_OK);
    }
    assert_true(most > 50); /* those that score most stay, whatever comes */
    for (uint32_t k = 0; k < 500; k += 50) {
        assert_true(has_row(&f, (1 << 21) + k));
    }
    assert_int_equal(sweep(&f, 80).evicted, tn_table_total(f.t).evicted);
}

/* One partition, rows known one by one: the lowest scores leave, of equal ones the lowest keys.
 */
TEST(scores_then_keys_say_who_leaves)
{
    enum { ROWS = 400 };
    onetable f CLEANUP(onetable_end) = begin(&tn_lifecycle_none);
    const tn_range all = {0, TN_PARTITIONS};
    assert_true(tn_table_evict_beyond(f.t, (uint64_t)TN_PARTITIONS * 14000, all));
    uint64_t *key = TN_NEW_ARRAY(f.arena, uint64_t, ROWS + 1);
    for (uint32_t i = 0; i <= ROWS; i++) {
        key[i] = (UINT64_C(5) << 54) + ((UINT64_C(0x9e3779b97f4a7c15) * (i + 1)) >> 10);
    }
    kit_keys *k = keys_of(&f, key, ROWS);
    float *rows = floats(&f, k);
    const tn_push push = kit_push(0);
    for (uint32_t i = 0; i < ROWS; i++) {
        k->show[k->index[i]] = 1 + i % 2;
    }
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
    tn_table_push(f.t, NULL, &k->set, rows, &push, 1);
    const uint64_t left = tn_table_total(f.t).evicted;
    assert_in_range(left, ROWS / 8, ROWS / 2 - 1);
    uint64_t kept_least = UINT64_MAX;
    uint64_t gone_most = 0;
    uint32_t gone = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        kit_row row;
        const bool stays = kit_row_of(f.t, key[i], &row);
        gone += !stays;
        assert_true(stays || i % 2 == 0);
        if (i % 2 == 0 && stays) {
            kept_least = key[i] < kept_least ? key[i] : kept_least;
        } else if (!stays) {
            gone_most = key[i] > gone_most ? key[i] : gone_most;
        }
    }
    assert_int_equal(gone, left);
    assert_true(gone_most < kept_least);
}

/* A table that was filled from the rows of another one goes on as that does; threads do not
 * show.
 */
TEST(who_leaves_depends_on_the_rows_alone)
{
    const tn_range all = {0, TN_PARTITIONS};
    kit_digest first = {0};
    for (uint32_t i = 0; i < 4; i++) {
        tn_team *team FREED(tn_team_close) = NULL;
        assert_int_equal(tn_team_open(&team, i < 3 ? UINT32_C(1) << i : 2, NULL), TN_OK);
        onetable f = begin(&tn_lifecycle_none);
        assert_true(tn_table_evict_beyond(f.t, 4 << 20, all));
        for (uint32_t day = 0; day < 12; day++) {
            drift(&f, team, day, 10000);
        }
        if (i == 3) { /* all rows into a new table, which knows nothing of those that left */
            onetable g = begin(&tn_lifecycle_none);
            assert_true(tn_table_evict_beyond(g.t, 4 << 20, all));
            kit_digest d = {.copy = g.t};
            for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
                assert_int_equal(tn_table_walk(f.t, p, kit_add_row, &d, NULL), TN_OK);
            }
            onetable_end(&f);
            f = g;
        }
        for (uint32_t day = 12; day < 24; day++) {
            drift(&f, team, day, 10000);
        }
        const kit_digest now = kit_digest_of(f.t);
        first = i == 0 ? now : first;
        kit_same_rows(first, now);
        onetable_end(&f);
    }
}

/* Two groups whose rows differ in size share the room of each partition. */
TEST(rows_of_two_sizes_share_the_room)
{
    enum { N = 20000, STEPS = 60 };
    onetable f CLEANUP(onetable_end) = {.arena = tn_arena_new(1 << 20)};
    const kit_segment segments[] = {{"deep", DIM}, {NULL, 0}};
    f.m = kit_model_new(f.arena, segments, 2);
    tn_record *records = TN_NEW_ARRAY(f.arena, tn_record, 2);
    tn_share_group *groups = TN_NEW_ARRAY(f.arena, tn_share_group, 2);
    for (uint32_t g = 0; g < 2; g++) {
        const uint32_t dim = g == 0 ? DIM : 3 * DIM;
        records[g] = (tn_record){.width = dim, .n_segments = 1, .segment = {{"deep", 0, dim}}};
        groups[g] = (tn_share_group){.name = g == 0 ? "narrow" : "wide", .record = g};
        f.m->rule[(size_t)g * TN_SEGMENTS_MAX] = kit_rule(f.arena, "adagrad", "rowwise=true");
    }
    f.m->layout = (tn_layout){2, groups, 2, records};
    f.t = kit_table(f.m, 1);
    const tn_range all = {0, TN_PARTITIONS};
    const uint64_t limit = 48 << 20;
    assert_true(tn_table_evict_beyond(f.t, limit, all));
    for (uint32_t step = 0; step < STEPS; step++) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 20);
        onetable g = {.arena = arena, .m = f.m, .t = f.t};
        uint64_t *key = TN_NEW_ARRAY(arena, uint64_t, N);
        uint16_t *group = TN_NEW_ARRAY(arena, uint16_t, N);
        for (uint32_t i = 0; i < N; i++) {
            key[i] = tn_key_of((uint64_t)N * step + i, SALT);
            group[i] = (uint16_t)(i % 3 == 0);
        }
        kit_keys *k = kit_keys_new(arena, &f.m->layout, key, group, N);
        float *rows = floats(&g, k);
        const tn_push push = kit_push(step);
        assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
        tn_table_push(f.t, NULL, &k->set, rows, &push, 1);
    }
    tn_group_rows swept[2];
    assert_int_equal(tn_table_sweep(f.t, NULL, 0, swept, NULL), TN_OK);
    for (uint32_t g = 0; g < 2; g++) { /* all score the same, so each leaves by its share */
        assert_in_range(swept[g].rows, 50000 / (1 + g), 500000);
        assert_true(swept[g].evicted > 100000);
    }
    assert_true(tn_table_bytes(f.t) <= limit + limit / 25);
    assert_true(tn_table_bytes(f.t) >= limit - limit / 10);
}

TEST(a_limit_without_room_for_a_row_is_refused)
{
    onetable f CLEANUP(onetable_end) = begin(&tn_lifecycle_none);
    const tn_range all = {0, TN_PARTITIONS};
    const uint64_t least = tn_table_evict_least(f.t) * TN_PARTITIONS;
    assert_false(tn_table_evict_beyond(f.t, least - 1, all));
    assert_true(tn_table_evict_beyond(f.t, least + least / 32, all));
}

/* ---- memory ---- */

/* New keys every day, old ones leave: the table takes no more than in its first days. Then
 * nearly all leave, and chunks and index blocks are there for others. */
TEST(memory_of_rows_that_left_is_used_again)
{
    tn_lifecycle life = tn_lifecycle_none;
    life.ttl_days = 3;
    onetable f CLEANUP(onetable_end) = begin(&life);
    uint64_t most = 0;
    for (uint32_t day = 0; day < 40; day++) {
        learn(&f, (lesson){.from = KEYS * day, .n = KEYS, .day = day, .show = 1});
        (void)sweep(&f, day);
        most = day == 6 ? tn_table_bytes(f.t) : most;
        assert_true(day <= 6 || tn_table_bytes(f.t) <= most + most / 4);
    }
    learn(&f, (lesson){.n = 10, .day = 50, .show = 1});
    assert_int_equal(sweep(&f, 50).rows, 10);
    assert_true(tn_table_bytes(f.t) < most / 2); /* one chunk of each partition stays */
    for (uint32_t k = 0; k < 10; k++) {
        assert_true(has_row(&f, k));
    }
    for (uint32_t day = 60; day < 63; day++) {
        learn(&f, (lesson){.from = KEYS * day, .n = KEYS, .day = day, .show = 1});
    }
    assert_int_equal(tn_table_rows(f.t), 3 * KEYS + 10);
    assert_true(tn_table_bytes(f.t) <= most + most / 4);
}

/* An index of many blocks that shrinks to few, and grows again, finds every row. */
TEST(an_index_that_shrank_finds_every_row)
{
    enum { ROWS = 12000 };
    tn_lifecycle life = tn_lifecycle_none;
    life.ttl_days = 3;
    onetable f CLEANUP(onetable_end) = begin(&life);
    uint64_t *key = TN_NEW_ARRAY(f.arena, uint64_t, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        key[i] = (UINT64_C(7) << 54) + ((UINT64_C(0x9e3779b97f4a7c15) * (i + 1)) >> 10);
    }
    const uint32_t counts[] = {ROWS, 300, 5000, 1, ROWS};
    uint64_t most = 0;
    for (uint32_t i = 0; i < 5; i++) {
        kit_keys *k = keys_of(&f, key, counts[i]);
        float *rows = floats(&f, k);
        tn_push push = kit_push(0);
        push.day = 10 * i;
        assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
        tn_table_push(f.t, NULL, &k->set, rows, &push, 1);
        assert_int_equal(sweep(&f, 10 * i).rows, counts[i]);
        const uint64_t bytes = tn_table_bytes(f.t);
        most = i == 0 ? bytes : most;
        assert_true(i == 0 || i == 4 || bytes < most / 2 + (64 << 10));
        assert_true(counts[i] > 300 || bytes < 60000); /* three chunks, one small block */
        bool *missing = TN_NEW_ARRAY(f.arena, bool, counts[i]);
        tn_table_peek(f.t, NULL, &k->set, NULL, rows, missing);
        for (uint32_t n = 0; n < counts[i]; n++) {
            assert_false(missing[n]);
        }
    }
    assert_true(tn_table_bytes(f.t) <= most + (64 << 10));
}

/* ---- cuts ---- */

static tn_cut *open_cut(tn_table *t, bool delta)
{
    tn_cut *cut = NULL;
    assert_int_equal(tn_cut_open(&cut, t, delta, NULL), TN_OK);
    return cut;
}

static void walk(tn_cut *cut, uint32_t from, uint32_t to, kit_digest *d)
{
    for (uint32_t p = from; p < to; p++) {
        assert_int_equal(tn_cut_walk(cut, p, kit_add_row, d, NULL), TN_OK);
    }
}

/* What a table does between two cuts and while one is walked. */
typedef struct cut_case {
    const char *what;
    double ttl_days, score_below;
    uint64_t limit; /* 0: none */
} cut_case;

static void do_something(onetable *f, const cut_case *x, uint32_t day)
{
    learn(f, (lesson){.from = 3000 * day, .n = 5000, .day = day, .show = 1});
    learn(f, (lesson){.from = 3000 * day, .n = 500, .day = day, .show = 20, .click = 2});
    if (!isnan(x->ttl_days) || !isnan(x->score_below)) {
        (void)sweep(f, day + 1);
    }
    learn(f, (lesson){.from = 3000 * (day - day % 3), .n = 1000, .day = day, .show = 1});
}

static void expect_same(kit_digest got, kit_digest want, const char *what, uint32_t cut)
{
    fail_if(got.crc != want.crc || got.rows != want.rows, "%s: cut %u", what, cut);
}

/* A full cut and then deltas, each walked in parts with learning, sweeps and evictions between
 * the parts: every one makes of the copy what the table was at its moment. */
TEST(a_full_cut_and_deltas_with_removed_rows_are_the_table)
{
    const double no = (double)NAN;
    const cut_case cases[] = {
        {"nothing leaves", no, no, 0},
        {"by age", 2, no, 0},
        {"by score", no, .15, 0},
        {"for want of room", no, no, 5 << 20},
        {"by age and for want of room", 2, no, 5 << 20},
        {"by score and for want of room", no, .15, 5 << 20},
    };
    const tn_range all = {0, TN_PARTITIONS};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const cut_case *x = &cases[i];
        tn_lifecycle life = tn_lifecycle_none;
        life.decay = .9;
        life.ttl_days = x->ttl_days;
        life.score_below = x->score_below;
        onetable f CLEANUP(onetable_end) = begin(&life);
        onetable copy CLEANUP(onetable_end) = begin(&tn_lifecycle_none);
        uint64_t removed = 0;
        assert_true(x->limit == 0 || tn_table_evict_beyond(f.t, x->limit, all));
        assert_int_equal(tn_table_track(f.t, NULL), TN_OK);
        for (uint32_t n = 0; n < 12; n++) {
            do_something(&f, x, 4 * n);
            const bool full = n % 6 == 0;
            const kit_digest now = kit_digest_of(f.t);
            kit_digest cut = {.copy = copy.t};
            if (full) {
                tn_table_clear(copy.t);
            }
            tn_cut *c = open_cut(f.t, !full);
            walk(c, 0, TN_PARTITIONS / 4, &cut);
            do_something(&f, x, 4 * n + 1);
            walk(c, TN_PARTITIONS / 4, TN_PARTITIONS / 2, &cut);
            do_something(&f, x, 4 * n + 2);
            walk(c, TN_PARTITIONS / 2, TN_PARTITIONS, &cut);
            tn_cut_close(c);
            expect_same(kit_digest_of(copy.t), now, x->what, n);
            assert_true(!full || cut.removed == 0);
            removed += cut.removed;
        }
        assert_true((removed > 0) == (i > 0));
    }
}

/* A key that left and came back between two cuts is a row of the delta, not a removed one. */
TEST(a_row_that_came_back_is_not_removed)
{
    tn_lifecycle life = tn_lifecycle_none;
    life.ttl_days = 3;
    onetable f CLEANUP(onetable_end) = begin(&life);
    onetable copy CLEANUP(onetable_end) = begin(&tn_lifecycle_none);
    assert_int_equal(tn_table_track(f.t, NULL), TN_OK);
    learn(&f, (lesson){.n = 300, .day = 1, .show = 1});
    kit_digest cut = {.copy = copy.t};
    tn_cut *c = open_cut(f.t, false);
    walk(c, 0, TN_PARTITIONS, &cut);
    tn_cut_close(c);
    for (uint32_t i = 0; i < 2; i++) { /* leaves twice */
        assert_int_equal(sweep(&f, 10 + 10 * i).expired, i == 0 ? 300 : 100);
        learn(&f, (lesson){.n = 100, .day = 11 + 10 * i, .show = 1});
    }
    const kit_digest now = kit_digest_of(f.t);
    cut = (kit_digest){.copy = copy.t};
    c = open_cut(f.t, true);
    walk(c, 0, TN_PARTITIONS, &cut);
    tn_cut_close(c);
    assert_int_equal(cut.rows, 100);
    assert_int_equal(cut.removed, 200);
    kit_same_rows(now, kit_digest_of(copy.t));
}

/* A table of `f` whose rows carry counts behind their four weights. */
static tn_record *with_counts(onetable *f, const uint32_t *day)
{
    tn_record *r = TN_NEW(f->arena, tn_record);
    const tn_table_opts opts = {.rules = &f->m->rules, .seed = 3, .day = day};
    *r = f->m->layout.record[0];
    r->counts = (tn_segment){.name = "cvm", .at = r->width, .dim = TN_COUNTS};
    r->width += TN_COUNTS;
    f->m->layout.record = r;
    tn_table_free(f->t);
    assert_int_equal(tn_table_new(&f->t, &opts, NULL), TN_OK);
    return r;
}

static void assert_counts(const onetable *f, uint64_t key, float first, float second)
{
    float row[DIM + TN_COUNTS];
    kit_peek(f->t, &f->m->layout, key, row);
    assert_true(fabsf(row[DIM] - first) <= 1e-6F * fabsf(first));
    assert_true(fabsf(row[DIM + 1] - second) <= 1e-6F * fabsf(second));
}

/* Of every row before its batch, decayed to the day of the reader; the rows hold nothing of them,
 * and no gradient of theirs does anything. */
TEST(a_net_reads_the_counts_before_the_batch)
{
    tn_lifecycle half = tn_lifecycle_none;
    uint32_t day = 4;
    half.decay = .5;
    onetable f CLEANUP(onetable_end) = begin(&half);
    tn_record *record = with_counts(&f, &day);
    const uint64_t *key = many_keys(&f, 11, SALT);
    kit_keys *k = keys_of(&f, key, 11);
    float *rows = floats(&f, k);
    memset(rows, 255, k->n_floats * sizeof *rows); /* all of it is written */
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
    for (uint32_t i = 0; i < 11; i++) {
        assert_true(rows[k->set.at[i] + DIM] == 0 && rows[k->set.at[i] + DIM + 1] == 0);
    }
    learn(&f, (lesson){0, 10, 4, 6, 2});
    assert_counts(&f, key[3], logf(7), logf(3) - logf(7));
    // cppcheck-suppress unreadVariable; the table reads it
    day = 6;
    assert_counts(&f, key[3], logf(2.5F), logf(1.5F) - logf(2.5F));
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
    for (uint32_t i = 0; i < 11; i++) {
        float peeked[DIM + TN_COUNTS];
        kit_peek(f.t, &f.m->layout, k->set.key[i], peeked);
        assert_memory_equal(rows + k->set.at[i], peeked, sizeof peeked);
    }
    assert_counts(&f, key[10], 0, 0); /* there, and never shown */
    assert_counts(&f, 12345, 0, 0);   /* not there */
    kit_keys *gone = keys_of(&f, (const uint64_t[]){12345}, 1);
    memset(rows, 255, gone->n_floats * sizeof *rows); /* nor then, where rows begin otherwise */
    tn_table_peek(f.t, NULL, &gone->set, (const bool[]){true}, rows, NULL);
    assert_true(rows[DIM] == 0 && rows[DIM + 1] == 0);
    record->raw_show = true;
    assert_counts(&f, key[3], 1.5F, logf(1.5F) - logf(2.5F));
    kit_row row;
    assert_true(kit_row_of(f.t, key[3], &row));
    assert_int_equal(row.view.n_floats, DIM + 1);
}
