/* test_tally.c - every record counts once, whatever happens to messages; with ranks that are
 * killed, as often as the relaxed bound allows. See model.h.
 *
 * TNET_SEED=n runs the random groups with that seed alone.
 */
#include "base/math/key.h"
#include "model.h"
#include "support/test.h"

enum { SEEDS = 2000, KILL_SEEDS = 1000, NOT_SMALL = 16 };

static const model_faults rough = {
    .drop = .1, .drop_answer = .1, .repeat = .1, .reorder = .2, .reconnects = 4};

static uint64_t wanted_seed(void)
{
    const char *text = getenv("TNET_SEED"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    return text == NULL ? 0 : strtoull(text, NULL, 10);
}

static model_result run(uint32_t ranks, uint32_t parts, tn_ledger_mode mode, model_faults faults)
{
    const model_opts opts = {.seed = 1,
                             .ranks = ranks,
                             .parts = parts,
                             .records_max = 12,
                             .batch = 3,
                             .mode = mode,
                             .faults = faults};
    return model_run(&opts);
}

/* Four parts a rank, both ways of dealing, with and without faults. */
static void all_kinds(uint32_t ranks)
{
    const tn_ledger_mode modes[] = {TN_LEDGER_BY_RULE, TN_LEDGER_ON_REQUEST};
    for (uint32_t i = 0; i < 2; i++) {
        model_result quiet = run(ranks, 4 * ranks, modes[i], (model_faults){0});
        assert_int_equal(quiet.stale, 0);
        assert_int_equal(quiet.extra, 0);
        run(ranks, 4 * ranks, modes[i], rough);
    }
}

TEST(with_1_2_3_4_and_16_ranks_every_record_counts_once)
{
    for (uint32_t ranks = 1; ranks <= 4; ranks++) {
        all_kinds(ranks);
    }
    all_kinds(NOT_SMALL);
}

TEST(c9_with_300_ranks_every_record_counts_once)
{
    all_kinds(300);
}

TEST(with_1024_ranks_every_record_counts_once)
{
    model_result r = run(TN_LEDGER_RANKS_MAX, 4 * TN_LEDGER_RANKS_MAX, TN_LEDGER_ON_REQUEST, rough);
    assert_true(r.records > TN_LEDGER_RANKS_MAX);
}

TEST(without_faults_nothing_is_sent_twice)
{
    model_result r = run(4, 16, TN_LEDGER_BY_RULE, (model_faults){0});
    assert_int_equal(r.repeated, 0);
}

TEST(c3_a_straggler_gives_its_rest_to_others)
{
    model_opts opts = {.seed = 5,
                       .ranks = 4,
                       .parts = 24,
                       .records_max = 60,
                       .batch = 1,
                       .mode = TN_LEDGER_ON_REQUEST,
                       .slow = 400};
    model_result asked = model_run(&opts);
    assert_true(asked.returned >= 1);
    opts.mode = TN_LEDGER_BY_RULE; /* where nobody is asked, all wait for the slowest */
    model_result alone = model_run(&opts);
    assert_int_equal(alone.returned, 0);
    assert_true(asked.end_ns < alone.end_ns / 4);
    opts.mode = TN_LEDGER_ON_REQUEST;
    opts.faults = rough;
    opts.slow = 4000;
    uint64_t returned = 0;
    for (opts.seed = 1; opts.seed <= 10; opts.seed++) {
        returned += model_run(&opts).returned;
    }
    assert_true(returned >= 5);
}

TEST(c3_two_parts_only)
{
    const tn_ledger_mode modes[] = {TN_LEDGER_BY_RULE, TN_LEDGER_ON_REQUEST};
    for (uint32_t i = 0; i < 2; i++) {
        model_result r = run(4, 2, modes[i], rough);
        assert_int_equal(r.idle_ranks, 2);
    }
}

TEST(c4_ranks_without_data_serve_and_end)
{
    const tn_ledger_mode modes[] = {TN_LEDGER_BY_RULE, TN_LEDGER_ON_REQUEST};
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(run(4, 1, modes[i], rough).idle_ranks, 3);
        assert_int_equal(run(4, 0, modes[i], rough).idle_ranks, 4);
    }
}

TEST(c5_dropped_acknowledgements_count_nothing_twice)
{
    model_result r = run(4, 16, TN_LEDGER_ON_REQUEST, (model_faults){.drop_answer = .5});
    assert_true(r.repeated > r.records / 10);
    assert_int_equal(r.extra, 0);
}

/* Acknowledgements then take longer than the ledger waits for claims and for stragglers. */
TEST(c5_when_two_of_three_messages_are_lost_every_record_still_counts_once)
{
    uint64_t returned = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        const model_opts opts = {.seed = seed,
                                 .ranks = 3,
                                 .parts = 9,
                                 .records_max = 8,
                                 .batch = 2,
                                 .mode = TN_LEDGER_ON_REQUEST,
                                 .slow = 5000,
                                 .faults = {.drop = .7}};
        returned += model_run(&opts).returned;
    }
    assert_true(returned > 0);
}

TEST(c1_a_killed_rank_comes_back_and_all_end)
{
    uint64_t kills = 0;
    uint64_t lost = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        model_opts opts = {.seed = seed,
                           .ranks = 4,
                           .parts = 40,
                           .records_max = 40,
                           .batch = 3,
                           .mode = TN_LEDGER_ON_REQUEST,
                           .faults = rough};
        opts.relaxed = true;
        opts.faults.kills = 5;
        model_result r = model_run(&opts);
        kills += r.kills;
        lost += r.updates_lost;
    }
    assert_true(kills >= 20);
    assert_true(lost > 0);
}

typedef enum recovery { NO_KILLS, RELAXED, EXACT } recovery;

/* A small group in which everything is drawn from the seed. */
static model_result random_group(uint64_t seed, recovery how)
{
    const uint64_t a = tn_mix(seed);
    const uint64_t b = tn_mix(a);
    const double level[] = {0, .05, .2, .5};
    const model_opts opts = {
        .seed = seed,
        .ranks = (how == RELAXED ? 2 : 1) + (uint32_t)(a % 4),
        .parts = (uint32_t)((a >> 8) % (how == EXACT ? 40 : 13)),
        .records_max = (uint32_t)((a >> 16) % 13),
        .batch = 1 + (uint32_t)((a >> 24) % 5),
        .mode = (a >> 32) % 3 == 0 ? TN_LEDGER_BY_RULE : TN_LEDGER_ON_REQUEST,
        .relaxed = how == RELAXED,
        .slow = (a >> 40) % 8 == 0 ? 300 : 0,
        .faults = {.drop = level[b % 4],
                   .drop_answer = level[(b >> 8) % 4],
                   .repeat = level[(b >> 16) % 4],
                   .reorder = level[(b >> 24) % 4],
                   .reconnects = (uint32_t)((b >> 32) % 6),
                   .kills = how == NO_KILLS ? 0 : 1 + (uint32_t)((b >> 40) % 4),
                   .cuts = (uint32_t)((b >> 48) % 8)},
    };
    return model_run(&opts);
}

TEST(random_groups_count_every_record_once)
{
    uint64_t repeated = 0;
    uint64_t returned = 0;
    if (wanted_seed() != 0) {
        random_group(wanted_seed(), NO_KILLS);
        return;
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        model_result r = random_group(seed, NO_KILLS);
        assert_int_equal(r.extra, 0);
        repeated += r.repeated;
        returned += r.returned;
    }
    assert_true(repeated > SEEDS); /* the faults did happen */
    assert_true(returned > 0);
}

TEST(i4_random_groups_with_restarts_keep_the_relaxed_bound)
{
    model_result sum = {0};
    if (wanted_seed() != 0) {
        random_group(wanted_seed(), RELAXED);
        return;
    }
    for (uint64_t seed = 1; seed <= KILL_SEEDS; seed++) {
        model_result r = random_group(seed, RELAXED);
        sum.kills += r.kills;
        sum.extra += r.extra;
        sum.stale += r.stale;
        sum.updates_lost += r.updates_lost;
    }
    assert_true(sum.kills > KILL_SEEDS / 2);
    assert_true(sum.extra > 0);
    assert_true(sum.stale > 0);
    assert_true(sum.updates_lost > 0);
}

TEST(i3_random_groups_that_roll_back_count_every_record_once)
{
    model_result sum = {0};
    if (wanted_seed() != 0) {
        random_group(wanted_seed(), EXACT);
        return;
    }
    for (uint64_t seed = 1; seed <= KILL_SEEDS; seed++) {
        model_result r = random_group(seed, EXACT);
        assert_int_equal(r.extra, 0);
        sum.kills += r.kills;
        sum.cuts += r.cuts;
        sum.rollbacks += r.rollbacks;
    }
    assert_true(sum.kills > KILL_SEEDS / 2);
    assert_true(sum.cuts > KILL_SEEDS / 2);
    assert_true(sum.rollbacks > KILL_SEEDS / 10); /* to a cut that had something in it */
}

/* Its answer to being asked for its part takes longer than 15 s, each time. */
TEST(i3_a_slow_rank_behind_lost_messages_does_not_roll_the_group_back_for_ever)
{
    random_group(42377, EXACT);
}

TEST(the_same_seed_is_the_same_run)
{
    model_result a = random_group(17, EXACT);
    model_result b = random_group(17, EXACT);
    assert_int_equal(a.events, b.events);
    assert_int_equal(a.end_ns, b.end_ns);
    assert_int_equal(a.repeated, b.repeated);
}
