/* test_hostile.c - every hostile peer beside two links that keep the rules: each of their requests
 * is applied once and answered once all the while, strangers reach nobody, and what members send
 * against the rules is dropped for its reason. */
#include "base/core/clock.h"
#include "base/thread/threads.h"
#include "cluster/attacks.h"
#include "cluster/goodlinks.h"
#include "cluster/keys.h"
#include "support/rounds.h"
#include "support/test.h"

#include <sys/resource.h>

enum {
    DEADLINE_S = 240,
    STRIKES = 20, /* of an attack, at least */
    IDLE = 1000,
    SPARE_FILES = 300, /* descriptors for all but idle connections */
};

static const uint64_t ns_of_s = 1000000000;

static uint64_t deadline(void)
{
    return tn_clock_ns() + DEADLINE_S * ns_of_s;
}

static good_links *open_good(good_way way, char dir[256])
{
    good_links *g = NULL;
    tn_error err = {0};
    tn_tmpdir_make(dir);
    assert_ok(good_open(&g, keys_zmq(), way, dir, &err), err.text);
    return g;
}

static void close_good(good_links *g, const char *dir)
{
    good_close(g);
    tn_tmpdir_remove(dir);
}

/* C8: with CURVE, too, where who dials is told nothing of whom it reached. */
TEST(every_request_is_answered_once_over_every_way)
{
    for (good_way w = GOOD_IPC; w < GOOD_WAYS; w++) {
        char dir[256];
        good_links *g = open_good(w, dir);
        assert_true(good_ask(g, &(good_wish){500, 64, deadline()}));
        assert_true(good_ask(g, &(good_wish){50, 64 << 10, deadline()}));
        assert_true(good_is_whole(g));
        close_good(g, dir);
    }
}

/* How many connections both ends of which this process may hold, up to IDLE. */
static uint32_t idle_connections(void)
{
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_true(files.rlim_cur > SPARE_FILES + 2);
    const uint64_t most = (files.rlim_cur - SPARE_FILES) / 2;
    return most < IDLE ? (uint32_t)most : IDLE;
}

/* A pair that is in no list but its own. */
static void make_stranger(const char *dir, const good_links *g, tn_security *out)
{
    tn_error err = {0};
    PATH_IN(theirs, dir, "theirs");
    assert_int_equal(tn_dir_make(theirs, NULL), TN_OK);
    (void)keys_make(theirs, "rank-3");
    tn_text text = {0};
    assert_int_equal(tn_file_read_all(keys_path(dir, "rank-0.pub"), 1000, &text, NULL), TN_OK);
    keys_put(keys_path(theirs, "rank-0.pub"), text.data, 0644);
    tn_text_done(&text);
    const tn_security_opts opts = {.key = keys_path(theirs, "rank-3.key"), .allow = theirs};
    assert_ok(tn_security_init(out, g->z, &opts, &err), err.text);
}

typedef struct siege {
    const attack *how;
    good_way way;
    attack_on on;
    attack_score score;
    atomic_bool stop;
} siege;

static tn_status lay(void *arg, tn_error *err)
{
    const siege *s = arg;
    (void)err;
    s->how->run(&s->on);
    return TN_OK;
}

/* Whether the attack has met with all that it shall meet with. */
static bool is_felt(const siege *s, const good_links *g)
{
    tn_link_counts counts;
    const bool is_endless = strcmp(s->how->name, "endless") == 0;
    tn_link_counts_of(g->link[0], &counts);
    uint64_t refused = 0;
    for (uint32_t v = TN_ZAP_ADMITTED + 1; v < TN_ZAP_VERDICTS; v++) {
        refused += counts.zap[v];
    }
    if (s->how->kind == ATTACK_UNLISTED) {
        return counts.zap[TN_ZAP_KEY] >= 3 && refused == counts.zap[TN_ZAP_KEY];
    }
    if (s->how->drop != TN_DROP_NONE) {
        return counts.dropped[s->how->drop] >= STRIKES;
    }
    const uint64_t wanted = strcmp(s->how->name, "idle") == 0  ? s->on.idle
                            : is_endless && s->way == GOOD_TCP ? 1
                                                               : STRIKES;
    return atomic_load(&s->score.strikes) >= wanted &&
           (s->how->kind == ATTACK_MEMBER || (is_endless && s->way == GOOD_IPC) ||
            atomic_load(&s->score.cuts) > 0) &&
           (!is_endless || s->way != GOOD_TCP || counts.floods > 0);
}

/* What arrived of the attack is what should. */
static void check_end(const siege *s, good_links *g)
{
    tn_link_counts counts;
    uint64_t dropped = 0;
    tn_link_counts_of(g->link[0], &counts);
    for (uint32_t why = TN_DROP_NONE + 1; why < TN_DROPS; why++) {
        dropped += why == (uint32_t)s->how->drop ? 0 : counts.dropped[why];
    }
    assert_int_equal(dropped, 0); /* for no other reason */
    assert_true(good_is_whole(g));
    const bool arrives = s->how->kind == ATTACK_MEMBER && s->how->drop == TN_DROP_NONE;
    assert_int_equal(g->applied[GOOD_OTHER], arrives ? 1 : 0); /* once, however often */
    assert_true(arrives == (g->repeated[GOOD_OTHER] > 0));
    assert_int_equal(g->applied[0], 0);
}

static void hold_out(const attack *how, good_way way)
{
    char dir[256];
    tn_thread *thread = NULL;
    tn_security stranger CLEANUP(tn_security_done) = {0};
    good_links *g = open_good(way, dir);
    siege s = {.how = how, .way = way};
    s.on = (attack_on){.z = keys_zmq(),
                       .at = g->at,
                       .has_keys = way == GOOD_CURVE,
                       .member = &g->security[GOOD_OTHER],
                       .stranger = &stranger,
                       .rank = GOOD_OTHER,
                       .size = GOOD_SEATS,
                       .job = GOOD_JOB,
                       .session = GOOD_SESSION,
                       .idle = idle_connections(),
                       .flood_bytes = way == GOOD_IPC ? 4 << 20 : 0, /* else it is cut */
                       .pause_ns = 200000,
                       .stop = &s.stop,
                       .score = &s.score};
    if (how->kind == ATTACK_UNLISTED) {
        make_stranger(dir, g, &stranger);
    }
    const uint64_t until = deadline();
    assert_int_equal(tn_thread_start(&thread, "hostile", lay, &s, NULL), TN_OK);
    do {
        if (!good_ask(g, &(good_wish){100, 64, until}) ||
            !good_ask(g, &(good_wish){4, 64 << 10, until})) {
            fail_msg("%s over %s: good links are held up", how->name, good_way_name(way));
        }
    } while (!is_felt(&s, g));
    atomic_store(&s.stop, true);
    assert_int_equal(tn_thread_join(thread, NULL), TN_OK);
    assert_true(good_ask(g, &(good_wish){100, 64, until}));
    check_end(&s, g);
    close_good(g, dir);
}

/* A third of the rounds (rounds.h) brings each attack over one of the three ways. */
static void good_links_hold_out(good_way way)
{
    const uint32_t step = tn_round_step();
    for (uint32_t i = (tn_first_round() + way) % step; i < attack_count(); i += step) {
        if (attack_at(i)->kind != ATTACK_UNLISTED || way == GOOD_CURVE) {
            hold_out(attack_at(i), way);
        }
    }
}

TEST(good_links_hold_out_over_ipc)
{
    good_links_hold_out(GOOD_IPC);
}

TEST(good_links_hold_out_over_loopback)
{
    good_links_hold_out(GOOD_TCP);
}

TEST(good_links_with_keys_hold_out)
{
    good_links_hold_out(GOOD_CURVE);
}
