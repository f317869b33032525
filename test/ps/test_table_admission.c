/* test_table_admission.c - keys that wait: when they get a whole row, what they read until then,
 * and what cuts, deltas, threads and filters make of that. */
#include "base/math/crc32c.h"
#include "base/math/key.h"
#include "base/thread/team.h"
#include "drive.h"
#include "ps/policy/admission.h"
#include "ps/table/lifecycle.h"
#include "ps/table/table_snapshot.h"
#include "ps/table/tabledef.h"
#include "support/test.h"

enum {
    WIDE = 1,
    DEEP = 4,
    WIDTH = WIDE + DEEP,
    POOL = 6000,
    PLACES = 2 * POOL,
    BATCH = 500,
    STEPS = 60,
};

/* A filter that counts all keys of these tests exactly. */
static tn_filter_opts wide_filter = {.keys = (uint64_t)POOL * TN_PARTITIONS, .error = 1e-6};

#define BLOOM                                                                                      \
    {                                                                                              \
        .opts = &wide_filter                                                                       \
    }

/* A model of a wide and a deep segment, of which `waits` wait. */
typedef struct world {
    tn_arena *arena;
    kit_model *m;
    tn_table *t;
} world;

static kit_model *model_of(tn_arena *arena, const char *optim, uint16_t waits,
                           const tn_admission *admission)
{
    const kit_segment segments[] = {{"wide", WIDE}, {"deep", DEEP}, {NULL, 0}};
    kit_model *m = kit_model_new(arena, segments, 1);
    tn_row_options *options = TN_NEW(arena, tn_row_options);
    tn_admission *own = TN_NEW(arena, tn_admission);
    tn_record *record = TN_NEW(arena, tn_record);
    *record = m->layout.record[0];
    record->waits = waits;
    m->layout.record = record;
    char name[16] = {0};
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(optim, " "), optim);
    for (uint32_t i = 0; i < 2; i++) {
        m->rule[i] = kit_rule(arena, name, optim + strlen(name));
    }
    m->rule[1].init = (tn_init){TN_INIT_UNIFORM, -.1, .1};
    *own = *admission;
    options->of[TN_POLICY_admission] = own;
    m->rules.rows = options;
    return m;
}

static world begin(const char *optim, uint16_t waits, tn_admission admission)
{
    world x = {.arena = tn_arena_new(1 << 20)};
    x.m = model_of(x.arena, optim, waits, &admission);
    x.t = kit_table(x.m, 7);
    return x;
}

/* Other rules of when rows leave, and how counts decay. */
static void set_life(world *x, const tn_lifecycle *life)
{
    tn_row_options options = *x->m->rules.rows;
    options.of[TN_POLICY_expiry] = life;
    tn_table_set_options(x->t, &options);
}

static void world_end(world *x)
{
    tn_table_free(x->t);
    tn_arena_free(x->arena);
}

/* Different keys of a step, those with small numbers more often than others. */
static uint32_t draw_keys(uint32_t step, uint64_t *key)
{
    const uint64_t stream = tn_stream2(5, TN_RNG_GENERATE, step);
    bool taken[POOL] = {false};
    uint32_t n = 0;
    for (uint32_t i = 0; n < BATCH; i++) {
        const double u = tn_unit(tn_draw(stream, i));
        const uint32_t number = (uint32_t)(u * u * u * POOL);
        if (!taken[number]) {
            taken[number] = true;
            key[n++] = number % 3 == 0 ? number : tn_mix(number);
        }
    }
    return n;
}

static uint32_t show_of(uint64_t key, uint32_t step)
{
    return 1 + (uint32_t)(tn_mix(key + step) % 2);
}

static float gradient_of(uint64_t key, uint32_t step, uint32_t i)
{
    return (float)(tn_unit(tn_mix(key ^ tn_mix(step * 16 + i))) - .5);
}

/* Pulls and pushes some keys; what was pulled is left in rows, at keys->at. */
static void learn(world *x, tn_team *team, uint32_t step, kit_keys *k, float *rows)
{
    float *grads = TN_NEW_ARRAY(x->arena, float, k->n_floats + 1);
    tn_push push = kit_push(step);
    push.day = step / 8;
    tn_table_set_step(x->t, step);
    for (uint32_t i = 0; i < k->n_floats; i++) {
        rows[i] = NAN; /* each is written */
    }
    assert_int_equal(tn_table_pull(x->t, team, &k->set, rows, NULL), TN_OK);
    for (uint32_t n = 0; n < k->set.n; n++) {
        k->show[n] = show_of(k->set.key[n], step);
        for (uint32_t i = 0; i < WIDTH; i++) {
            grads[k->set.at[n] + i] = gradient_of(k->set.key[n], step, i);
        }
    }
    tn_table_push(x->t, team, &k->set, grads, &push, 1);
}

/* A step on the keys that are drawn for it. */
static void step_on(world *x, tn_team *team, uint32_t step)
{
    uint64_t key[BATCH];
    kit_keys *k = kit_keys_new(x->arena, &x->m->layout, key, NULL, draw_keys(step, key));
    learn(x, team, step, k, TN_NEW_ARRAY(x->arena, float, k->n_floats + 1));
}

/* ---- beside tables without admission ---- */

/* A reference: the occurrences of each key in earlier steps, and two tables whose keys never wait:
 * one learns all keys, the other those alone that are admitted. */
typedef struct reference {
    world wide, deep;
    uint64_t seen[PLACES]; /* open addressing: key + 1, occurrences */
    uint32_t show[PLACES];
    bool whole[PLACES];
} reference;

static uint32_t place_of(reference *r, uint64_t key)
{
    uint32_t at = (uint32_t)(tn_mix(key) % PLACES);
    while (r->seen[at] != 0 && r->seen[at] != key + 1) {
        at = (at + 1) % PLACES;
    }
    r->seen[at] = key + 1;
    return at;
}

static bool draw_says(const tn_admission *a, uint64_t key, uint32_t step)
{
    return tn_unit(tn_draw(tn_stream2(7, TN_RNG_ADMISSION, key), step)) < a->probability;
}

/* The keys of a step that are admitted by it, marked and counted. */
static uint32_t admitted_of(reference *r, const tn_admission *a, uint32_t step, const uint64_t *key,
                            uint32_t n, uint64_t *out)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = place_of(r, key[i]);
        r->whole[at] = r->whole[at] || (r->show[at] >= a->threshold && draw_says(a, key[i], step));
        r->show[at] += show_of(key[i], step);
        if (r->whole[at]) {
            out[kept++] = key[i];
        }
    }
    return kept;
}

static void assert_floats(const float *got, const float *want, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        assert_true(got[i] == want[i]);
    }
}

/* What the key read in its pull: a segment that waits as in the table of admitted keys, if it is
 * one, any other as in that of all keys. */
static void compare(reference *r, uint64_t key, uint16_t waits, const float *got, const float *wide,
                    const float *deep)
{
    const float zeros[WIDTH] = {0};
    const float *late = r->whole[place_of(r, key)] ? deep : zeros;
    assert_floats(got, (waits & 1) != 0 ? late : wide, WIDE);
    assert_floats(got + WIDE, ((waits & 2) != 0 ? late : wide) + WIDE, DEEP);
}

static void run_beside(const char *optim, uint16_t waits, tn_admission a)
{
    const tn_admission at_once = {.probability = 1};
    world x CLEANUP(world_end) = begin(optim, waits, a);
    reference *r = TN_NEW(x.arena, reference);
    r->wide = begin(optim, 0, at_once);
    r->deep = begin(optim, 0, at_once);
    uint32_t n_whole = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        uint64_t key[BATCH];
        uint64_t kept[BATCH];
        const uint32_t n = draw_keys(step, key);
        kit_keys *all = kit_keys_new(x.arena, &x.m->layout, key, NULL, n);
        const uint32_t n_kept = admitted_of(r, &a, step, key, n, kept);
        kit_keys *some = kit_keys_new(x.arena, &x.m->layout, kept, NULL, n_kept);
        float *got = TN_NEW_ARRAY(x.arena, float, all->n_floats + 1);
        float *wide = TN_NEW_ARRAY(x.arena, float, all->n_floats + 1);
        float *deep = TN_NEW_ARRAY(x.arena, float, all->n_floats + 1);
        learn(&x, NULL, step, all, got);
        learn(&r->wide, NULL, step, all, wide);
        learn(&r->deep, NULL, step, some, deep);
        uint32_t k = 0;
        for (uint32_t i = 0; i < n; i++) {
            const bool whole = r->whole[place_of(r, key[i])];
            compare(r, key[i], waits, got + all->set.at[all->index[i]],
                    wide + all->set.at[all->index[i]],
                    deep + (whole ? some->set.at[some->index[k]] : 0));
            k += whole;
        }
        n_whole = n_kept;
    }
    assert_true(n_whole > 20 && n_whole < BATCH - 20); /* the test is about both */
    world_end(&r->wide);
    world_end(&r->deep);
}

TEST(keys_learn_from_the_step_that_admits_them)
{
    run_beside("adagrad", 3, (tn_admission){.threshold = 5, .probability = 1});
    run_beside("adam", 3, (tn_admission){.threshold = 2, .probability = 1});
}

TEST(segments_that_do_not_wait_learn_at_once)
{
    run_beside("adagrad", 2, (tn_admission){.threshold = 5, .probability = 1});
    run_beside("ftrl", 1, (tn_admission){.threshold = 5, .probability = 1});
    run_beside("sgd l2=.01 l2_mode=dense", 2, (tn_admission){.threshold = 5, .probability = 1});
}

TEST(keys_are_admitted_with_a_probability)
{
    run_beside("adagrad", 3, (tn_admission){.probability = .2});
    run_beside("adagrad", 3, (tn_admission){.threshold = 3, .probability = .3});
    run_beside("adagrad", 2, (tn_admission){.probability = .2});
}

TEST(a_filter_without_collisions_counts_exactly)
{
    run_beside("adagrad", 3, (tn_admission){.threshold = 5, .probability = 1, .filter = BLOOM});
    run_beside("adagrad", 3, (tn_admission){.threshold = 2, .probability = .5, .filter = BLOOM});
}

/* A group that names inputs which its record does not have waits with none. */
TEST(keys_of_a_group_that_does_not_wait_get_rows_at_once)
{
    const tn_admission late = {.threshold = 100, .probability = 1};
    world x CLEANUP(world_end) = {.arena = tn_arena_new(1 << 16)};
    x.m = model_of(x.arena, "adagrad", 3, &late);
    tn_record *record = TN_NEW_ARRAY(x.arena, tn_record, 2);
    tn_admission *admission = TN_NEW_ARRAY(x.arena, tn_admission, 2);
    const tn_share_group groups[] = {{.name = "late", .record = 0}, {.name = "soon", .record = 1}};
    const tn_row_options options = {.of = {[TN_POLICY_admission] = admission}};
    tn_rule rule[2 * TN_SEGMENTS_MAX] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        record[i] = x.m->layout.record[0];
        admission[i] = late;
        memcpy(&rule[(size_t)i * TN_SEGMENTS_MAX], x.m->rule, 2 * sizeof *rule);
    }
    record[1].waits = 0;
    x.m->layout = (tn_layout){2, groups, 2, record};
    x.m->rules.rows = &options;
    x.m->rules.rule = rule;
    x.t = kit_table(x.m, 7);
    const uint64_t key[] = {1, 2, 3};
    const uint16_t group[] = {0, 1, 1};
    kit_keys *k = kit_keys_new(x.arena, &x.m->layout, key, group, 3);
    float rows[3 * WIDTH];
    tn_group_rows count[2];
    learn(&x, NULL, 0, k, rows);
    tn_table_count_groups(x.t, count);
    assert_int_equal(count[0].rows, 1);
    assert_int_equal(count[0].waiting, 1);
    assert_int_equal(count[1].rows, 2);
    assert_int_equal(count[1].waiting, 0);
}

/* ---- counts and memory ---- */

/* No export holds it, so its counts are no input while it has no weights. */
TEST(a_net_reads_no_counts_of_a_row_without_weights)
{
    for (uint16_t waits = 2; waits < 4; waits++) { /* the wide segment does not, or does */
        const uint32_t day = 0;
        const tn_admission late = {.threshold = 100, .probability = 1};
        world x CLEANUP(world_end) = {.arena = tn_arena_new(1 << 16)};
        x.m = model_of(x.arena, "adagrad", waits, &late);
        tn_record record = x.m->layout.record[0];
        record.counts = (tn_segment){.name = "cvm", .at = WIDTH, .dim = TN_COUNTS};
        record.width += TN_COUNTS;
        x.m->layout.record = &record;
        const tn_table_opts opts = {.rules = &x.m->rules, .seed = 7, .day = &day};
        assert_int_equal(tn_table_new(&x.t, &opts, NULL), TN_OK);
        kit_keys *k = kit_keys_new(x.arena, &x.m->layout, (const uint64_t[]){5}, NULL, 1);
        float rows[WIDTH + TN_COUNTS];
        learn(&x, NULL, 0, k, rows);
        tn_table_peek(x.t, NULL, &k->set, NULL, rows, NULL);
        assert_true((rows[WIDTH] > 0) == (waits == 2));
    }
}

TEST(counts_of_keys_that_wait_are_kept_whole)
{
    world x CLEANUP(world_end) =
        begin("adagrad", 3, (tn_admission){.threshold = 100, .probability = 1});
    tn_lifecycle life = tn_lifecycle_none;
    life.decay = .5;
    set_life(&x, &life);
    uint64_t shown = 0;
    kit_row row;
    for (uint32_t step = 0; step < STEPS; step++) {
        step_on(&x, NULL, step);
    }
    const uint64_t key = 0; /* in most steps */
    for (uint32_t step = 0; step < STEPS; step++) {
        uint64_t drawn[BATCH];
        const uint32_t n = draw_keys(step, drawn);
        for (uint32_t i = 0; i < n && shown < 100; i++) {
            shown += drawn[i] == key ? show_of(key, step) : 0;
        }
    }
    assert_true(kit_row_of(x.t, key, &row));
    assert_int_equal(row.view.present, shown < 100 ? 0 : 3);
    assert_true(shown >= 100 || row.view.show == (double)shown);
}

/* Two shows on day 1, one on day 3, when it is admitted: decayed from day 1 on. */
TEST(counts_decay_from_the_last_day_of_waiting)
{
    world x CLEANUP(world_end) =
        begin("adagrad", 3, (tn_admission){.threshold = 2, .probability = 1});
    tn_lifecycle life = tn_lifecycle_none;
    life.decay = .5;
    set_life(&x, &life);
    const uint64_t key = 5;
    const uint32_t days[] = {0, 1, 3};
    kit_keys *k = kit_keys_new(x.arena, &x.m->layout, &key, NULL, 1);
    kit_row row;
    for (uint32_t step = 0; step < 3; step++) {
        float rows[WIDTH];
        tn_push push = kit_push(step);
        push.day = days[step];
        assert_int_equal(tn_table_pull(x.t, NULL, &k->set, rows, NULL), TN_OK);
        tn_table_push(x.t, NULL, &k->set, rows, &push, 1);
    }
    assert_true(kit_row_of(x.t, key, &row));
    assert_int_equal(row.view.present, 3);
    assert_true(row.view.show == 2 * .25 + 1);
}

/* A row that waits has a header and no floats. */
TEST(rows_that_wait_are_small)
{
    enum { ROWS = 200000 };
    world x CLEANUP(world_end) = begin("adam", 3, (tn_admission){.threshold = 9, .probability = 1});
    uint64_t *key = TN_NEW_ARRAY(x.arena, uint64_t, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        key[i] = tn_mix(i);
    }
    kit_keys *k = kit_keys_new(x.arena, &x.m->layout, key, NULL, ROWS);
    learn(&x, NULL, 0, k, TN_NEW_ARRAY(x.arena, float, k->n_floats + 1));
    tn_group_rows rows = {0};
    assert_int_equal(tn_table_sweep(x.t, NULL, 0, &rows, NULL), TN_OK);
    assert_int_equal(rows.rows, ROWS);
    assert_int_equal(rows.waiting, ROWS);
    assert_int_equal(rows.admitted, 0);
    assert_int_equal(rows.bytes, (uint64_t)ROWS * 24);
    assert_true(tn_table_bytes(x.t) < (uint64_t)ROWS * 40);
    for (uint32_t step = 1; step < 9; step++) {
        learn(&x, NULL, step, k, TN_NEW_ARRAY(x.arena, float, k->n_floats + 1));
    }
    assert_int_equal(tn_table_sweep(x.t, NULL, 0, &rows, NULL), TN_OK);
    assert_true(rows.admitted > ROWS / 2 && rows.admitted < ROWS); /* two shows in some steps */
    assert_int_equal(rows.rows, ROWS);
    assert_int_equal(rows.waiting, ROWS - rows.admitted);
}

/* Those that stay are found by the smaller index that a sweep makes. */
TEST(rows_that_wait_stay_while_others_expire)
{
    enum { ROWS = 100000, LEFT = ROWS / 50, DAYS = 10 };
    const tn_admission a = {.threshold = 9, .probability = 1};
    world x CLEANUP(world_end) = begin("adagrad", 3, a);
    tn_lifecycle life = tn_lifecycle_none;
    life.ttl_days = 1;
    set_life(&x, &life);
    uint64_t *key = TN_NEW_ARRAY(x.arena, uint64_t, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        key[i] = tn_mix(i);
    }
    kit_keys *all = kit_keys_new(x.arena, &x.m->layout, key, NULL, ROWS);
    kit_keys *left = kit_keys_new(x.arena, &x.m->layout, key, NULL, LEFT);
    float *read = TN_NEW_ARRAY(x.arena, float, all->n_floats + 1);
    learn(&x, NULL, 0, all, read);
    learn(&x, NULL, 8 * DAYS, left, read);
    const uint64_t bytes = tn_table_bytes(x.t);
    tn_group_rows rows = {0};
    assert_int_equal(tn_table_sweep(x.t, NULL, DAYS, &rows, NULL), TN_OK);
    assert_int_equal(rows.expired, ROWS - LEFT);
    assert_true(tn_table_bytes(x.t) < bytes - bytes / 6);
    for (uint32_t step = 1; step < 9; step++) {
        learn(&x, NULL, 8 * DAYS + step, left, read);
    }
    assert_int_equal(tn_table_rows(x.t), LEFT);
    assert_int_equal(tn_table_sweep(x.t, NULL, DAYS + 1, &rows, NULL), TN_OK);
    assert_int_equal(rows.admitted, LEFT);
    assert_int_equal(rows.rows, LEFT);
}

/* Of what the table took from the system, also what it gave back and nobody uses. */
static uint64_t bytes_held(tn_table *t)
{
    uint64_t bytes = tn_table_bytes(t);
    for (uint32_t i = 0; i < TN_PAGE_SIZES_MAX; i++) {
        const tn_page_spare *spare = &t->pages.spare[i];
        const void *piece = spare->first;
        for (; piece != NULL; memcpy(&piece, piece, sizeof(void *))) {
            bytes += spare->size;
        }
    }
    return bytes;
}

/* So many keys from `from` on, each shown `show` times. */
static void show_keys(world *x, uint32_t step, uint32_t from, uint32_t n, uint32_t show)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 20);
    uint64_t *key = TN_NEW_ARRAY(arena, uint64_t, n);
    for (uint32_t i = 0; i < n; i++) {
        key[i] = tn_mix(from + i);
    }
    kit_keys *k = kit_keys_new(arena, &x->m->layout, key, NULL, n);
    float *rows = TN_NEW_ARRAY(arena, float, k->n_floats + 1);
    const tn_push push = kit_push(step);
    for (uint32_t i = 0; i < n; i++) {
        k->show[i] = show;
    }
    tn_table_set_step(x->t, step);
    assert_int_equal(tn_table_pull(x->t, NULL, &k->set, rows, NULL), TN_OK);
    tn_table_push(x->t, NULL, &k->set, rows, &push, 1);
}

/* First all keys wait, and fill the table. Then others, shown more often, become whole one after
 * the other, until nothing is left that scores as little as a key which is new; and still new keys
 * become whole. */
TEST(a_full_table_has_room_for_rows_of_both_kinds)
{
    enum { N = 5000, TURNS = 90, LIMIT = 24 << 20 };
    world x CLEANUP(world_end) = begin("adam", 3, (tn_admission){.threshold = 2, .probability = 1});
    assert_true(tn_table_evict_beyond(x.t, LIMIT, (tn_range){0, TN_PARTITIONS}));
    uint32_t step = 0;
    for (uint32_t i = 0; i < TURNS; i++) {
        show_keys(&x, step++, N * i, N, 1);
    }
    tn_group_rows rows = {0};
    assert_int_equal(tn_table_sweep(x.t, NULL, 0, &rows, NULL), TN_OK);
    assert_int_equal(rows.waiting, rows.rows);
    assert_in_range(rows.bytes, LIMIT / 8, LIMIT / 4);
    for (uint32_t i = TURNS; i < 2 * TURNS; i++) {
        show_keys(&x, step++, N * i, N, 9);
        show_keys(&x, step++, N * i, N, 9);
        assert_true(bytes_held(x.t) <= LIMIT + LIMIT / 50);
    }
    assert_int_equal(tn_table_sweep(x.t, NULL, 0, &rows, NULL), TN_OK);
    assert_in_range(rows.rows - rows.waiting, 2 * N, 2 * TURNS * N / 4);
    const uint64_t scarce = tn_table_total(x.t).admitted;
    for (uint32_t i = 0; i < 3; i++) {
        show_keys(&x, step++, N * 2 * TURNS, N / 8, 1);
    }
    assert_int_equal(tn_table_total(x.t).admitted - scarce, N / 8);
    assert_true(bytes_held(x.t) <= LIMIT + LIMIT / 50);
    assert_true(bytes_held(x.t) >= LIMIT - LIMIT / 10);
}

TEST(a_room_too_small_for_rows_that_wait_is_refused)
{
    const tn_range all = {0, TN_PARTITIONS};
    world x = begin("adam", 3, (tn_admission){.threshold = 2, .probability = 1});
    const uint64_t least = tn_table_evict_least(x.t) * TN_PARTITIONS;
    assert_false(tn_table_evict_beyond(x.t, least - 1, all));
    assert_true(tn_table_evict_beyond(x.t, least + least / 32, all));
    world_end(&x);
    world y CLEANUP(world_end) =
        begin("adam", 3, (tn_admission){.threshold = 2, .probability = 1, .filter = BLOOM});
    const uint64_t counts = tn_key_filter_bytes(&y.t->filter) * TN_PARTITIONS;
    const uint64_t with_counts = tn_table_evict_least(y.t) * TN_PARTITIONS;
    assert_true(with_counts > counts);
    assert_false(tn_table_evict_beyond(y.t, with_counts - 1, all));
    assert_true(tn_table_evict_beyond(y.t, with_counts + with_counts / 32, all));
}

TEST(evaluation_takes_a_key_that_waits_for_unknown)
{
    for (uint16_t waits = 2; waits <= 3; waits++) {
        world x CLEANUP(world_end) =
            begin("adagrad", waits, (tn_admission){.threshold = 4, .probability = 1});
        const uint64_t key = 12;
        kit_keys *k = kit_keys_new(x.arena, &x.m->layout, &key, NULL, 1);
        float rows[WIDTH];
        bool missing = false;
        for (uint32_t step = 0; step < 4; step++) {
            learn(&x, NULL, step, k, rows);
            tn_table_peek(x.t, NULL, &k->set, NULL, rows, &missing);
            assert_int_equal(missing, waits == 3 && rows[1] == 0);
            assert_true((rows[0] == 0) == (waits == 3 && rows[1] == 0));
        }
        assert_true(rows[1] != 0 && !missing);
    }
}

/* ---- DiFacto ---- */

/* What DiFacto makes of one key that comes once a step: w by FTRL (alpha .1, beta 1, l1 1), V by
 * lr / (beta + sqrt(n)) from the step on in which count > threshold and w is not 0; while w is 0 it
 * is neither read nor trained. docs/numerics.md, section 6. */
typedef struct difacto {
    double z, n, w;
    double v[DEEP], cg[DEEP];
    uint32_t count;
    bool has_v;
} difacto;

static void difacto_count(difacto *d, uint32_t threshold, const float *first)
{
    d->count++;
    if (!d->has_v && d->count > threshold && d->w != 0) {
        d->has_v = true;
        for (uint32_t i = 0; i < DEEP; i++) {
            d->v[i] = (double)first[i];
        }
    }
}

static void difacto_update(difacto *d, double g)
{
    for (uint32_t i = 0; i < DEEP && d->has_v && d->w != 0; i++) {
        const double gv = g * (i + 1);
        d->cg[i] = sqrt(d->cg[i] * d->cg[i] + gv * gv);
        d->v[i] -= .01 / (1 + d->cg[i]) * gv;
    }
    d->z += g - (sqrt(d->n + g * g) - sqrt(d->n)) / .1 * d->w;
    d->n += g * g;
    const double beyond = fabs(d->z) - 1;
    d->w = beyond <= 0 ? 0 : -copysign(beyond, d->z) / ((1 + sqrt(d->n)) / .1);
}

/* seen: has V, w is not 0. */
static void run_by_hand(uint32_t threshold, bool seen[4])
{
    const tn_admission a = {.threshold = threshold, .probability = 1, .l1_shrk = true};
    world x CLEANUP(world_end) = {.arena = tn_arena_new(1 << 16)};
    x.m = model_of(x.arena, "adagrad", 2, &a);
    x.m->rule[0] = kit_rule(x.arena, "ftrl", "alpha=.1 beta=1 l1=1 l2=0");
    x.m->rule[1] = kit_rule(x.arena, "adagrad", "lr=.01 eps=1 n0=1e-30");
    x.m->rule[1].init = (tn_init){TN_INIT_UNIFORM, -.01, .01};
    x.t = kit_table(x.m, 7);
    const uint64_t key = 99;
    kit_keys *k = kit_keys_new(x.arena, &x.m->layout, &key, NULL, 1);
    const uint64_t stream = tn_stream_next(tn_stream2(7, TN_RNG_ROW, tn_name64("deep")), key);
    float first[DEEP];
    float *to = first;
    tn_init_rows(&x.m->rule[1].init, 1, &stream, DEEP, &to);
    /* w is 0 at first, then not, 0 again from step 11 on, and not at the end */
    const float g[] = {.4F,  .3F, .2F, .4F, .3F,  .2F,  .1F,  -.2F, .3F,
                       -.9F, .1F, 0,   .1F, -.5F, -.9F, -.9F, -.5F, .1F};
    difacto d = {0};
    for (uint32_t step = 0; step < sizeof g / sizeof *g; step++) {
        float rows[WIDTH];
        const float grads[WIDTH] = {g[step], g[step], 2 * g[step], 3 * g[step], 4 * g[step]};
        const tn_push push = kit_push(step);
        kit_row row;
        assert_int_equal(tn_table_pull(x.t, NULL, &k->set, rows, NULL), TN_OK);
        difacto_count(&d, threshold, first);
        const bool reads = d.has_v && d.w != 0;
        seen[2 * d.has_v + (d.w != 0)] = true;
        assert_near((double)rows[0], d.w);
        assert_true(kit_row_of(x.t, key, &row));
        assert_int_equal(row.view.present, d.has_v ? 3 : 1);
        assert_int_equal(tn_admission_segments(x.t, &row.view), reads ? 3 : 1);
        for (uint32_t i = 0; i < DEEP; i++) {
            assert_near((double)rows[1 + i], reads ? d.v[i] : 0);
            assert_true(!d.has_v ||
                        fabs((double)row.data[tn_table_place(x.t, 0, 1).w + i] - d.v[i]) < 1e-6);
        }
        tn_table_push(x.t, NULL, &k->set, grads, &push, 1);
        difacto_update(&d, (double)g[step]);
    }
}

/* The evidence comes at once, while w is 0, or when it is not. */
TEST(a_run_by_hand_is_that_of_difacto)
{
    bool seen[4] = {false};
    run_by_hand(0, seen);
    run_by_hand(3, seen);
    run_by_hand(5, seen);
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
}

/* ---- cuts, deltas, threads ---- */

static tn_admission admission_of(uint32_t kind)
{
    const tn_variant bloom = BLOOM;
    const tn_variant exact = {0};
    return (tn_admission){.threshold = 4, .probability = 1, .filter = kind == 2 ? bloom : exact};
}

static void copy_filter(tn_table *from, tn_cut *cut, tn_table *to)
{
    size_t bytes = 0;
    (void)tn_table_filter(from, 0, &bytes);
    uint8_t *out FREED(tn_free) = tn_try_alloc(1, bytes + 1, "a filter", NULL);
    for (uint32_t p = 0; p < TN_PARTITIONS && bytes > 0; p++) {
        bool any = false;
        assert_int_equal(tn_cut_filter(cut, p, out, &any, NULL), TN_OK);
        if (any) {
            assert_int_equal(tn_table_set_filter(to, p, out, NULL), TN_OK);
        }
    }
}

/* Steps of two tables, of which one is never cut. */
static void step_both(world *x, world *z, uint32_t step, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        step_on(x, NULL, step + i);
        step_on(z, NULL, step + i);
    }
}

/* A cut of x into y, read while x learns the three steps from `step` on. */
static void cut_while_learning(world *x, world *y, world *z, uint32_t step, bool delta)
{
    enum { APART = TN_PARTITIONS / 3 };
    tn_cut *cut = NULL;
    kit_digest d = {.copy = y->t};
    assert_int_equal(tn_cut_open(&cut, x->t, delta, NULL), TN_OK);
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        step_both(x, z, step + p / APART, p % APART == 10); /* between two walks */
        assert_int_equal(tn_cut_walk(cut, p, kit_add_row, &d, NULL), TN_OK);
    }
    copy_filter(x->t, cut, y->t);
    tn_cut_close(cut);
}

/* What was read of a cut goes on as the table that was never cut. */
static void goes_on_alike(const world *y, const world *z, uint32_t kind, uint32_t step)
{
    world again CLEANUP(world_end) = begin("adagrad", kind == 1 ? 2 : 3, admission_of(kind));
    kit_digest copied = {.copy = again.t};
    size_t bytes = 0;
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(tn_table_walk(y->t, p, kit_add_row, &copied, NULL), TN_OK);
        const uint8_t *counts = tn_table_filter(y->t, p, &bytes);
        assert_true(counts == NULL || tn_table_set_filter(again.t, p, counts, NULL) == TN_OK);
        const uint32_t raised = again.t->partition[p].raised;
        assert_true(counts == NULL || raised == tn_key_filter_raised(&y->t->filter, counts));
    }
    for (uint32_t i = 0; i < 3; i++) {
        step_on(&again, NULL, step + i);
    }
    kit_same_rows(kit_digest_of(again.t), kit_digest_of(z->t));
}

/* A base and a delta after every few steps, each read while training goes on. */
TEST(base_and_deltas_make_the_full_table)
{
    for (uint32_t kind = 0; kind < 4; kind++) {
        const uint16_t waits = kind == 1 ? 2 : 3;
        world x CLEANUP(world_end) = begin("adagrad", waits, admission_of(kind));
        world y CLEANUP(world_end) = begin("adagrad", waits, admission_of(kind));
        world z CLEANUP(world_end) = begin("adagrad", waits, admission_of(kind)); /* never cut */
        assert_int_equal(tn_table_track(x.t, NULL), TN_OK);
        for (uint32_t step = 0; step < STEPS; step += 6) {
            step_both(&x, &z, step, 3);
            const kit_digest full = kit_digest_of(x.t);
            kit_same_rows(full, kit_digest_of(z.t));
            cut_while_learning(&x, &y, &z, step + 3, step > 0);
            kit_same_rows(full, kit_digest_of(y.t));
            goes_on_alike(&y, &z, kind, step + 3);
        }
        assert_int_equal(tn_table_aside(x.t), 0);
    }
}

TEST(any_number_of_threads_admits_the_same_keys)
{
    for (uint32_t kind = 0; kind < 3; kind++) {
        kit_digest one = {0};
        for (uint32_t threads = 1; threads <= 4; threads *= 2) {
            tn_team *team = NULL;
            world x CLEANUP(world_end) = begin("adagrad", kind == 1 ? 2 : 3, admission_of(kind));
            assert_int_equal(tn_team_open(&team, threads, NULL), TN_OK);
            for (uint32_t step = 0; step < STEPS; step++) {
                step_on(&x, team, step);
            }
            tn_team_close(team);
            one = threads == 1 ? kit_digest_of(x.t) : one;
            kit_same_rows(one, kit_digest_of(x.t));
        }
    }
}

/* They have no weights, which would be less than any bound. */
TEST(no_norm_expires_a_row_that_waits)
{
    world x CLEANUP(world_end) =
        begin("adagrad", 3, (tn_admission){.threshold = 1000000, .probability = 1});
    tn_lifecycle life = tn_lifecycle_none;
    tn_group_rows rows = {0};
    life.norm_below = 1e30;
    set_life(&x, &life);
    step_on(&x, NULL, 0);
    assert_int_equal(tn_table_sweep(x.t, NULL, 0, &rows, NULL), TN_OK);
    assert_int_equal(rows.expired, 0);
    assert_true(rows.waiting > 100 && rows.waiting == rows.rows);
}

/* Expiry between the cuts: chunks of the rows that became whole are given back. */
TEST(sweeps_find_rows_that_wait)
{
    world x CLEANUP(world_end) = begin("adagrad", 3, admission_of(0));
    world y CLEANUP(world_end) = begin("adagrad", 3, admission_of(0));
    tn_lifecycle life = tn_lifecycle_none;
    life.ttl_days = 1;
    life.norm_below = 1e-20; /* of those that wait nobody asks */
    set_life(&x, &life);
    assert_int_equal(tn_table_track(x.t, NULL), TN_OK);
    uint64_t expired = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        tn_group_rows rows = {0};
        tn_cut *cut = NULL;
        kit_digest d = {.copy = y.t};
        step_on(&x, NULL, step);
        assert_int_equal(tn_table_sweep(x.t, NULL, step / 8, &rows, NULL), TN_OK);
        expired += rows.expired;
        assert_int_equal(rows.rows, tn_table_rows(x.t));
        assert_int_equal(tn_cut_open(&cut, x.t, step > 0, NULL), TN_OK);
        for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
            assert_int_equal(tn_cut_walk(cut, p, kit_add_row, &d, NULL), TN_OK);
        }
        tn_cut_close(cut);
        kit_same_rows(kit_digest_of(x.t), kit_digest_of(y.t));
    }
    assert_true(expired > 1000);
    assert_true(kit_digest_of(x.t).waiting > 100);
}

/* Rows that are listed while they wait become whole; their chunks go to other partitions before the
 * next cut. */
TEST(a_cut_behind_a_sweep_takes_no_row_for_another)
{
    enum { OLD = 60000, NEW = 150000 };
    world x CLEANUP(world_end) =
        begin("adagrad", 3, (tn_admission){.threshold = 2, .probability = 1});
    world y CLEANUP(world_end) =
        begin("adagrad", 3, (tn_admission){.threshold = 2, .probability = 1});
    uint64_t *key = TN_NEW_ARRAY(x.arena, uint64_t, OLD + NEW);
    for (uint32_t i = 0; i < OLD + NEW; i++) {
        key[i] = i < OLD ? tn_mix(i) >> 10 | (uint64_t)(i % 40) << 54 : tn_mix(i);
    }
    kit_keys *old = kit_keys_new(x.arena, &x.m->layout, key, NULL, OLD);
    kit_keys *fresh = kit_keys_new(x.arena, &x.m->layout, key + OLD, NULL, NEW);
    float *rows = TN_NEW_ARRAY(x.arena, float, fresh->n_floats + old->n_floats);
    tn_group_rows swept = {0};
    assert_int_equal(tn_table_track(x.t, NULL), TN_OK);
    for (uint32_t step = 0; step < 4; step++) {
        const kit_keys *k = step < 3 ? old : fresh;
        const tn_push push = kit_push(step);
        if (step % 3 == 1) {
            tn_cut *cut = NULL;
            kit_digest d = {.copy = y.t};
            assert_int_equal(tn_cut_open(&cut, x.t, false, NULL), TN_OK);
            for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
                assert_int_equal(tn_cut_walk(cut, p, kit_add_row, &d, NULL), TN_OK);
            }
            tn_cut_close(cut);
        }
        assert_int_equal(tn_table_pull(x.t, NULL, &k->set, rows, NULL), TN_OK);
        tn_table_push(x.t, NULL, &k->set, rows, &push, 1);
        if (step == 2) {
            assert_int_equal(tn_table_sweep(x.t, NULL, 0, &swept, NULL), TN_OK);
            assert_int_equal(swept.admitted, OLD);
        }
    }
    tn_cut *cut = NULL;
    kit_digest d = {.copy = y.t};
    assert_int_equal(tn_cut_open(&cut, x.t, true, NULL), TN_OK);
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(tn_cut_walk(cut, p, kit_add_row, &d, NULL), TN_OK);
    }
    tn_cut_close(cut);
    kit_same_rows(kit_digest_of(x.t), kit_digest_of(y.t));
}

/* ---- checkpoints of other admissions ---- */

TEST(rows_of_another_admission_take_the_form_that_fits)
{
    const uint16_t waits[] = {0, 2, 3};
    for (uint32_t from = 0; from < 3; from++) {
        for (uint32_t to = 0; to < 3; to++) {
            world x CLEANUP(world_end) = begin("adagrad", waits[from], admission_of(0));
            world y CLEANUP(world_end) = begin("adagrad", waits[to], admission_of(0));
            kit_digest d = {.copy = y.t};
            for (uint32_t step = 0; step < 10; step++) {
                step_on(&x, NULL, step);
            }
            for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
                assert_int_equal(tn_table_walk(x.t, p, kit_add_row, &d, NULL), TN_OK);
            }
            const kit_digest copied = kit_digest_of(y.t);
            assert_int_equal(copied.rows, d.rows);
            const bool keeps = waits[from] == 3 ? waits[to] != 0 : waits[to] == 2;
            assert_int_equal(copied.waiting, keeps ? d.waiting : 0);
            assert_true(from != to || copied.crc == d.crc);
        }
    }
}

/* ---- the filter by itself ---- */

TEST(a_filter_counts_too_much_as_seldom_as_it_was_asked_to)
{
    const struct {
        uint64_t keys;
        double error;
        uint32_t most;
    } cases[] = {{50000, 1e-2, 3}, {50000, 1e-3, 10}, {20000, 1e-3, 200}, {500, 1e-2, 1}};
    for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        enum { ASKED = 200000 };
        const tn_key_filter f = tn_key_filter_plan(cases[c].keys, cases[c].error, cases[c].most);
        uint8_t *at FREED(tn_free) = tn_try_alloc(1, tn_key_filter_bytes(&f), "a filter", NULL);
        uint32_t raised = 0;
        for (uint64_t k = 0; k < cases[c].keys; k++) {
            raised += tn_key_filter_add(&f, at, tn_mix(k), 1);
        }
        uint32_t above = 0;
        for (uint64_t k = 0; k < cases[c].keys; k++) {
            assert_true(tn_key_filter_count(&f, at, tn_mix(k)) >= 1);
        }
        for (uint64_t k = 0; k < ASKED; k++) {
            above += tn_key_filter_count(&f, at, tn_mix((UINT64_C(1) << 40) + k)) > 0;
        }
        assert_true(above < 1.3 * cases[c].error * ASKED + 10);
        assert_int_equal(raised, tn_key_filter_raised(&f, at));
        assert_false(tn_key_filter_is_overfull(&f, raised));
        for (uint64_t k = 0; k < cases[c].keys / 3; k++) {
            raised += tn_key_filter_add(&f, at, tn_mix(cases[c].keys + k), 1);
        }
        assert_true(tn_key_filter_is_overfull(&f, raised));
    }
}

TEST(a_filter_stops_at_its_largest_count_and_ages_by_half)
{
    const uint32_t most[] = {3, 15, 255};
    for (uint32_t i = 0; i < 3; i++) {
        const tn_key_filter f = tn_key_filter_plan(100, 1e-4, most[i]);
        uint8_t *at FREED(tn_free) = tn_try_alloc(1, tn_key_filter_bytes(&f), "a filter", NULL);
        tn_key_filter_add(&f, at, 77, 2);
        assert_int_equal(tn_key_filter_count(&f, at, 77), 2);
        tn_key_filter_add(&f, at, 77, 1000);
        assert_int_equal(tn_key_filter_count(&f, at, 77), most[i]);
        tn_key_filter_age(&f, at);
        assert_int_equal(tn_key_filter_count(&f, at, 77), most[i] / 2);
    }
}

/* Of the counts of all partitions, as they are or as they were at a cut. */
static uint32_t filter_crc(tn_table *t, tn_cut *cut)
{
    size_t bytes = 0;
    (void)tn_table_filter(t, 0, &bytes);
    uint8_t *copy FREED(tn_free) = tn_try_alloc(1, bytes, "a filter", NULL);
    uint32_t crc = 0;
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        bool any = tn_table_filter(t, p, &bytes) != NULL;
        if (cut != NULL) {
            assert_int_equal(tn_cut_filter(cut, p, copy, &any, NULL), TN_OK);
        } else if (any) {
            memcpy(copy, tn_table_filter(t, p, &bytes), bytes);
        }
        crc = any ? tn_crc32c(crc, copy, bytes) : crc;
    }
    return crc;
}

/* Keys of ever new days fill it; it forgets them, and its table says so. */
TEST(a_full_filter_ages_at_the_sweep)
{
    enum { DAY_KEYS = 40000 };
    world x CLEANUP(world_end) = {.arena = tn_arena_new(1 << 20)};
    tn_filter_opts small = {.keys = UINT64_C(2) * DAY_KEYS / TN_PARTITIONS * TN_PARTITIONS,
                            .error = 1e-2};
    const tn_admission a = {.threshold = 2, .probability = 1, .filter = {.opts = &small}};
    x.m = model_of(x.arena, "adagrad", 3, &a);
    x.t = kit_table(x.m, 7);
    for (uint32_t day = 0; day < 12; day++) {
        tn_group_rows rows = {0};
        uint64_t *key = TN_NEW_ARRAY(x.arena, uint64_t, DAY_KEYS);
        for (uint32_t i = 0; i < DAY_KEYS; i++) {
            key[i] = tn_mix(day * DAY_KEYS + i);
        }
        kit_keys *k = kit_keys_new(x.arena, &x.m->layout, key, NULL, DAY_KEYS);
        float *rows_of = TN_NEW_ARRAY(x.arena, float, k->n_floats + 1);
        const tn_push push = kit_push(day);
        tn_cut *cut = NULL; /* while it is open, what it sees does not age */
        assert_int_equal(tn_table_pull(x.t, NULL, &k->set, rows_of, NULL), TN_OK);
        tn_table_push(x.t, NULL, &k->set, rows_of, &push, 1);
        const uint32_t before = filter_crc(x.t, NULL);
        const uint64_t aged = tn_table_total(x.t).aged;
        assert_int_equal(tn_cut_open(&cut, x.t, false, NULL), TN_OK);
        assert_int_equal(tn_table_sweep(x.t, NULL, day, &rows, NULL), TN_OK);
        assert_int_equal(filter_crc(x.t, cut), before);
        assert_true((filter_crc(x.t, NULL) == before) == (aged == tn_table_total(x.t).aged));
        tn_cut_close(cut);
        for (uint32_t p = 0; p < TN_PARTITIONS; p += 31) {
            const tn_partition *part = &x.t->partition[p];
            assert_int_equal(part->raised, tn_key_filter_raised(&x.t->filter, part->filter));
        }
        assert_true(rows.rows < (day + 1UL) * DAY_KEYS / 10); /* nobody came twice */
        assert_true(day > 0 || tn_table_total(x.t).aged == 0);
    }
    assert_true(tn_table_total(x.t).aged > 5UL * TN_PARTITIONS);
}
