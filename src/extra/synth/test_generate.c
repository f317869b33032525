/* test_generate.c - rows of a planted world: pure, of the asked rate, and true to their p. */
#include "base/math/fmath.h"
#include "base/thread/team.h"
#include "extra/synth/generate.h"
#include "support/test.h"

CLOSER(tn_generator_free);

static tn_gen_opts plain(uint32_t model)
{
    return (tn_gen_opts){
        .preset = TN_GEN_PLAIN,
        .model = model,
        .seed = 11,
        .slots = 4,
        .ids = 50,
        .multi = 1,
        .values_max = 3,
        .numeric = 1,
        .missing = 0.1,
        .zipf = 1.05,
        .rate = 0.2,
        .spread = 1.2,
        .interaction = 0.5,
        .dim = 3,
    };
}

static tn_gen_opts preset(uint32_t which, uint32_t model)
{
    tn_gen_opts o = plain(model);
    o.preset = which;
    o.slots = o.ids = o.multi = o.values_max = o.numeric = TN_UNSET_U32;
    o.missing = (double)NAN;
    o.rate = (double)NAN;
    return o;
}

static tn_generator *world(tn_gen_opts o, tn_team *team)
{
    tn_generator *g = NULL;
    assert_int_equal(tn_generator_new(&g, &o, team, NULL), TN_OK);
    return g;
}

/* Everything a row says, as one number that changes with each of its bits. */
static uint64_t fold(const tn_gen_row *row, uint32_t n_slots)
{
    uint64_t h = row->click ? 1 : 2;
    uint64_t bits;
    memcpy(&bits, &row->logit, sizeof bits);
    h = h * 0x9e3779b97f4a7c15U + bits;
    for (uint32_t s = 0; s < n_slots; s++) {
        h = h * 0x9e3779b97f4a7c15U + row->first[s + 1];
        memcpy(&bits, &row->number[s], sizeof bits);
        h = h * 0x9e3779b97f4a7c15U + bits;
    }
    for (uint32_t i = 0; i < row->first[n_slots]; i++) {
        h = h * 0x9e3779b97f4a7c15U + row->id[i];
    }
    return h;
}

TEST(a_row_depends_on_seed_and_index_alone)
{
    enum { N = 500 };
    static uint64_t forward[N];
    tn_generator *g FREED(tn_generator_free) = world(plain(TN_GEN_FM), NULL);
    tn_team *team FREED(tn_team_close) = NULL;
    assert_int_equal(tn_team_open(&team, 3, NULL), TN_OK);
    tn_generator *again FREED(tn_generator_free) = world(plain(TN_GEN_FM), team);
    tn_gen_row row CLEANUP(tn_gen_row_done);
    assert_int_equal(tn_gen_row_init(&row, g, NULL), TN_OK);
    for (uint32_t i = 0; i < N; i++) {
        tn_gen_row_draw(&row, g, i);
        forward[i] = fold(&row, g->n_slots);
    }
    for (uint32_t i = N; i-- > 0;) {
        tn_gen_row_draw(&row, again, i);
        assert_int_equal(fold(&row, g->n_slots), forward[i]);
    }
    tn_gen_opts other = plain(TN_GEN_FM);
    other.seed = 12;
    tn_generator *elsewhere FREED(tn_generator_free) = world(other, NULL);
    tn_gen_row_draw(&row, elsewhere, 0);
    assert_true(fold(&row, g->n_slots) != forward[0]);
}

/* Mean and deviation of the logit, mean of p and of the clicks, over rows that the world was not
 * fitted on. */
static void check_scales(tn_gen_opts o)
{
    enum { N = 40000 };
    tn_generator *g FREED(tn_generator_free) = world(o, NULL);
    double rate = g->opts.rate;
    tn_gen_row row CLEANUP(tn_gen_row_done);
    assert_int_equal(tn_gen_row_init(&row, g, NULL), TN_OK);
    double p = 0;
    double clicks = 0;
    double sum = 0;
    double squares = 0;
    for (uint32_t i = 0; i < N; i++) {
        tn_gen_row_draw(&row, g, i);
        assert_true(row.p == tn_sigmoid(row.logit));
        p += row.p;
        clicks += row.click;
        sum += row.logit;
        squares += row.logit * row.logit;
    }
    double deviation = sqrt(squares / N - sum / N * (sum / N));
    assert_true(fabs(p / N - rate) < 0.01);
    assert_true(fabs(clicks / N - rate) < 0.012);
    assert_true(fabs(deviation - o.spread) < 0.05 * o.spread);
    assert_true(fabs(g->truth.rate - rate) < 1e-9);
}

TEST(rate_and_spread_are_as_asked)
{
    check_scales(plain(TN_GEN_LR));
    check_scales(plain(TN_GEN_FM));
    check_scales(plain(TN_GEN_DEEP));
    check_scales(preset(TN_GEN_CRITEO, TN_GEN_LR));
    check_scales(preset(TN_GEN_MOVIES, TN_GEN_FM));
}

/* In a world of lr, logits are sums of one number per (slot, id): four rows that differ pairwise in
 * two slots must close: z(a,b) - z(a',b) = z(a,b') - z(a',b'). */
TEST(the_logit_of_lr_is_a_sum_over_slots)
{
    enum { IDS = 3, N = 2000 };
    tn_gen_opts o = plain(TN_GEN_LR);
    o.slots = 2;
    o.ids = IDS;
    o.multi = 0;
    o.numeric = 0;
    o.missing = 0;
    tn_generator *g FREED(tn_generator_free) = world(o, NULL);
    double z[IDS][IDS];
    bool seen[IDS][IDS] = {{false}};
    tn_gen_row row CLEANUP(tn_gen_row_done);
    assert_int_equal(tn_gen_row_init(&row, g, NULL), TN_OK);
    for (uint32_t i = 0; i < N; i++) {
        tn_gen_row_draw(&row, g, i);
        uint64_t a = row.id[0];
        uint64_t b = row.id[1];
        assert_true(!seen[a][b] || z[a][b] == row.logit);
        z[a][b] = row.logit;
        seen[a][b] = true;
    }
    for (uint32_t a = 1; a < IDS; a++) {
        for (uint32_t b = 1; b < IDS; b++) {
            assert_true(seen[a][b] && seen[0][b] && seen[a][0] && seen[0][0]);
            assert_true(fabs(z[a][b] - z[0][b] - z[a][0] + z[0][0]) < 1e-12);
        }
    }
}

TEST(criteo_rows_have_criteo_shape)
{
    tn_generator *g FREED(tn_generator_free) = world(preset(TN_GEN_CRITEO, TN_GEN_LR), NULL);
    assert_int_equal(g->n_slots, 39);
    assert_string_equal(g->slot[0].name, "I1");
    assert_string_equal(g->slot[38].name, "C26");
    tn_gen_row row CLEANUP(tn_gen_row_done);
    assert_int_equal(tn_gen_row_init(&row, g, NULL), TN_OK);
    bool missing = false;
    bool large = false;
    bool negative[3] = {false, false, false};
    for (uint32_t i = 0; i < 20000; i++) {
        tn_gen_row_draw(&row, g, i);
        missing = missing || isnan(row.number[0]);
        large = large || row.number[4] > 100000;
        assert_true(row.number[1] >= -2 && row.number[1] == floor(row.number[1]));
        negative[1] = negative[1] || row.number[1] == -1;
        negative[2] = negative[2] || row.number[1] == -2;
    }
    assert_true(missing && large && negative[1] && negative[2]);
}

TEST(options_that_do_not_fit_are_refused)
{
    tn_generator *g = NULL;
    tn_error err = {0};
    tn_gen_opts o = preset(TN_GEN_CRITEO, TN_GEN_LR);
    o.ids = 10;
    assert_int_equal(tn_generator_new(&g, &o, NULL, &err), TN_E_USAGE);
    assert_non_null(strstr(err.text, "'ids' does not go with preset 'criteo'"));
    assert_null(g);
    o = plain(TN_GEN_LR);
    o.multi = 5;
    assert_int_equal(tn_generator_new(&g, &o, NULL, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "'multi' is 5"));
}

/* A log of five days: which ids a slot has on each. */
TEST(a_share_of_ids_is_new_every_day)
{
    enum { IDS = 200, DAYS = 5, DAY = 20000, EVER = IDS * 4 };
    static int first_seen[EVER];
    static int last_seen[EVER];
    tn_gen_opts o = plain(TN_GEN_LR);
    o.slots = 1;
    o.multi = o.numeric = 0;
    o.missing = o.zipf = 0;
    o.ids = IDS;
    o.rows = (uint64_t)DAYS * DAY;
    o.drift = 0.25;
    o.days = DAYS;
    tn_generator *g FREED(tn_generator_free) = world(o, NULL);
    tn_gen_row row CLEANUP(tn_gen_row_done);
    assert_int_equal(tn_gen_row_init(&row, g, NULL), TN_OK);
    memset(first_seen, -1, sizeof first_seen);
    for (uint64_t i = 0; i < o.rows; i++) {
        tn_gen_row_draw(&row, g, i);
        assert_true(row.id[0] < tn_gen_ids_ever(g, 0) && row.id[0] < EVER);
        const int day = (int)(i / DAY);
        if (first_seen[row.id[0]] < 0) {
            first_seen[row.id[0]] = day;
        }
        assert_true(day - first_seen[row.id[0]] < 4); /* it lives 1 / drift days */
        last_seen[row.id[0]] = day;
    }
    for (int day = 0; day < DAYS; day++) {
        int alive = 0;
        int born = 0;
        for (int id = 0; id < EVER; id++) {
            alive += first_seen[id] >= 0 && first_seen[id] <= day && last_seen[id] >= day;
            born += first_seen[id] == day;
        }
        assert_int_equal(alive, IDS); /* each is drawn a hundred times a day */
        if (day > 0) {
            assert_in_range(born, IDS / 4 - 25, IDS / 4 + 25); /* four deviations */
        } else {
            assert_int_equal(born, IDS);
        }
    }
}

/* A range within some day is that of the whole log; the first day is that of no drift. */
TEST(days_of_a_drifting_log_can_be_drawn_alone)
{
    tn_gen_opts o = preset(TN_GEN_CRITEO, TN_GEN_FM);
    o.rows = 400;
    tn_generator *still FREED(tn_generator_free) = world(o, NULL);
    o.drift = 1; /* no id of a day is there on the next */
    o.days = 4;
    tn_generator *all FREED(tn_generator_free) = world(o, NULL);
    o.days = 0;
    o.day_rows = 100;
    o.first_row = 230;
    o.rows = 40;
    tn_generator *range FREED(tn_generator_free) = world(o, NULL);
    tn_gen_row row CLEANUP(tn_gen_row_done);
    assert_int_equal(tn_gen_row_init(&row, all, NULL), TN_OK);
    for (uint32_t i = 0; i < 400; i++) {
        tn_gen_row_draw(&row, all, i);
        const uint64_t folded = fold(&row, all->n_slots);
        tn_gen_row_draw(&row, still, i);
        assert_int_equal(folded == fold(&row, all->n_slots), i < 100);
        if (i >= 230 && i < 270) {
            tn_gen_row_draw(&row, range, i);
            assert_int_equal(folded, fold(&row, all->n_slots));
        }
    }
}

static void refused(tn_gen_opts o, const char *why)
{
    tn_generator *g = NULL;
    tn_error err = {0};
    assert_int_equal(tn_generator_new(&g, &o, NULL, &err), TN_E_USAGE);
    assert_non_null(strstr(err.text, why));
    assert_null(g);
}

TEST(days_that_do_not_fit_are_refused)
{
    tn_gen_opts o = plain(TN_GEN_LR);
    o.rows = 1000;
    o.drift = 0.1;
    refused(o, "neither 'days' nor 'day_rows'");
    o.days = 7;
    refused(o, "7 equal days; here are 1000 rows from row 0 on");
    o.days = 10;
    o.first_row = 1000;
    refused(o, "from row 1000 on");
    o.day_rows = 100;
    refused(o, "both say");
    o = preset(TN_GEN_CRITEO, TN_GEN_LR);
    o.rows = 1000;
    o.days = 1000;
    o.drift = 1;
    refused(o, "slot 'C3' needs about 10141358227 ids in 1000 days");
}

static tn_gen_opts histories(uint32_t model)
{
    tn_gen_opts o = preset(TN_GEN_HISTORIES, model);
    o.spread = 2;
    return o;
}

/* Whether one of the last 50 categories of the history is that of the item. */
static bool is_similar(const tn_gen_row *row)
{
    const uint64_t cate = row->id[row->first[2]];
    const uint32_t end = row->first[5];
    const uint32_t n = end - row->first[4];
    bool similar = false;
    for (uint32_t i = n > 50 ? end - 50 : row->first[4]; i < end; i++) {
        similar = similar || row->id[i] == cate;
    }
    return similar;
}

TEST(a_history_has_lists_of_one_length_and_the_categories_of_its_items)
{
    tn_generator *g FREED(tn_generator_free) = world(histories(TN_GEN_ATTENTION), NULL);
    tn_gen_row row;
    uint32_t shortest = 60;
    uint32_t longest = 0;
    assert_int_equal(tn_gen_row_init(&row, g, NULL), TN_OK);
    assert_int_equal(g->n_slots, 5);
    for (uint64_t i = 0; i < 2000; i++) {
        tn_gen_row_draw(&row, g, i);
        const uint32_t n = row.first[4] - row.first[3];
        assert_int_equal(row.first[3], 3);
        assert_int_equal(row.first[5] - row.first[4], n);
        assert_int_equal(row.id[2], row.id[1] % 40);
        for (uint32_t k = 0; k < n; k++) {
            assert_int_equal(row.id[row.first[4] + k], row.id[row.first[3] + k] % 40);
        }
        shortest = n < shortest ? n : shortest;
        longest = n > longest ? n : longest;
    }
    assert_int_equal(shortest, 0);
    assert_int_equal(longest, 60);
    tn_gen_row_done(&row);
}

/* The rest of a logit, without the weights of user, item and category, is one of two numbers. */
TEST(attention_is_planted_in_the_last_fifty_alone)
{
    tn_generator *g FREED(tn_generator_free) = world(histories(TN_GEN_ATTENTION), NULL);
    tn_generator *plain_g FREED(tn_generator_free) = world(histories(TN_GEN_LR), NULL);
    tn_gen_row row;
    tn_gen_row without;
    uint32_t n = 0;
    assert_int_equal(tn_gen_row_init(&row, g, NULL), TN_OK);
    assert_int_equal(tn_gen_row_init(&without, plain_g, NULL), TN_OK);
    assert_true(g->truth.mixed > 0.5);
    assert_true(plain_g->truth.mixed == 0);
    for (uint64_t i = 0; i < 2000; i++) {
        tn_gen_row_draw(&row, g, i);
        tn_gen_row_draw(&without, plain_g, i);
        const double linear = (without.logit - plain_g->truth.bias) / plain_g->truth.linear;
        const double planted =
            (row.logit - g->truth.bias - g->truth.linear * linear) / g->truth.mixed;
        assert_true(fabs(planted - (is_similar(&row) ? 1 : 0)) < 1e-9);
        n += is_similar(&row);
    }
    assert_in_range(n, 600, 1400);
    tn_gen_row_done(&row);
    tn_gen_row_done(&without);
}

TEST(attention_goes_with_histories_alone)
{
    tn_gen_opts wrong[] = {preset(TN_GEN_CRITEO, TN_GEN_ATTENTION),
                           preset(TN_GEN_HISTORIES, TN_GEN_FM),
                           preset(TN_GEN_HISTORIES, TN_GEN_ATTENTION)};
    wrong[2].drift = 0.1;
    wrong[2].days = 2;
    wrong[2].rows = 100;
    for (uint32_t i = 0; i < 3; i++) {
        tn_generator *g = NULL;
        tn_error err = {0};
        assert_int_equal(tn_generator_new(&g, &wrong[i], NULL, &err), TN_E_USAGE);
        assert_non_null(strstr(err.text, "does not go with preset"));
        assert_null(g);
    }
}
