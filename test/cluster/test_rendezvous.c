/* test_rendezvous.c - rank 0 collects its group; how long a rank waits for that. */
#include "support/test.h"

#include "base/core/log.h"
#include "cluster/group/failure_detector.h"
#include "cluster/group/rendezvous.h"
#include "cluster/wire/control_messages.h"
#include "ps/shard/ownership.h"

CLOSER(tn_shares_free);

enum { ROOT = 1000, FAR = 1024 };

static char logged[4096];

static void catch_line(tn_log_level level, const char *line)
{
    size_t used = strlen(logged);
    (void)snprintf(logged + used, sizeof logged - used, "%d %s\n", (int)level, line);
}

static tn_hello_note hello(const char *host, uint64_t pid, uint64_t peers)
{
    return (tn_hello_note){.version = "0.2.0",
                           .host = host,
                           .address = "tcp://10.1.0.8:4770",
                           .config_hash = "c0ffee",
                           .structure = "57eef0",
                           .cpu = "avx2",
                           .pid = pid,
                           .peers = peers,
                           .threads = 4};
}

typedef struct group {
    tn_shares *shares;
    tn_rendezvous *f;
    tn_text why;
} group;

static void open_group(group *g, uint32_t size)
{
    *g = (group){0};
    const tn_hello_note own = hello("a", 1, size);
    assert_int_equal(tn_shares_new(&g->shares, size, 100, NULL), TN_OK);
    assert_int_equal(tn_rendezvous_new(&g->f, &g->shares->owners, ROOT, &own, NULL), TN_OK);
    logged[0] = 0;
    tn_log_set(catch_line, TN_LOG_INFO);
}

static void close_group(group *g)
{
    tn_log_set(NULL, TN_LOG_INFO);
    tn_text_done(&g->why);
    tn_rendezvous_free(g->f);
    tn_shares_free(g->shares);
}

static void assert_taken(group *g, uint32_t rank, uint64_t incarnation, const tn_hello_note *note)
{
    assert_int_equal(tn_rendezvous_hello(g->f, rank, incarnation, note, &g->why), 0);
    assert_string_equal(tn_text_str(&g->why), "");
}

/* Refused with exactly this sentence, and the group is as before. */
static void assert_refused(group *g, uint32_t rank, const tn_hello_note *note, uint32_t code,
                           const char *why)
{
    tn_text before CLEANUP(tn_text_done) = {0};
    tn_text after CLEANUP(tn_text_done) = {0};
    tn_rendezvous_missing(g->f, &before);
    tn_text_clear(&g->why);
    assert_int_equal(tn_rendezvous_hello(g->f, rank, 77, note, &g->why), code);
    assert_string_equal(tn_text_str(&g->why), why);
    tn_text_clear(&g->why);
    tn_rendezvous_missing(g->f, &after);
    assert_string_equal(tn_text_str(&before), tn_text_str(&after));
}

static void assert_missing(const group *g, const char *expected)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_rendezvous_missing(g->f, &text);
    assert_string_equal(tn_text_str(&text), expected);
}

TEST(a_group_is_whole_when_every_rank_said_hello)
{
    group g CLEANUP(close_group);
    open_group(&g, 3);
    tn_hello_note b = hello("b", 2, 3);
    tn_hello_note c = hello("c", 3, 3);
    c.address = "ipc:///tmp/2.sock";
    c.threads = 9; /* may differ */
    assert_missing(&g, "ranks 1 and 2");
    assert_taken(&g, 2, 1002, &c);
    assert_taken(&g, 2, 1002, &c); /* repeated: counts once */
    assert_false(tn_rendezvous_is_whole(g.f));
    assert_missing(&g, "rank 1");
    assert_taken(&g, 1, 1001, &b);
    assert_true(tn_rendezvous_is_whole(g.f));
    assert_missing(&g, "");
    assert_taken(&g, 1, 1001, &b); /* its welcome was lost */
    tn_welcome_note w;
    tn_rendezvous_welcome(g.f, &w);
    assert_int_equal(w.checkpoint, 0);
    assert_int_equal(w.address.n, 3);
    assert_int_equal(w.host.n, 3);
    assert_int_equal(w.incarnation.n, 3);
    assert_int_equal(w.owned_from.n, 4);
    assert_string_equal(w.address.at[1], "tcp://10.1.0.8:4770");
    assert_string_equal(w.address.at[2], "ipc:///tmp/2.sock");
    assert_string_equal(w.host.at[0], "a");
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(w.incarnation.at[r], ROOT + r);
        assert_int_equal(w.owned_from.at[r], g.shares->owners.from[r]);
    }
    assert_int_equal(w.owned_from.at[3], TN_PARTITIONS);
    assert_string_equal(w.host.at[2], "c");
    assert_string_equal(logged, "");
}

TEST(what_is_kept_of_a_hello_is_a_copy)
{
    group g CLEANUP(close_group);
    open_group(&g, 2);
    char host[] = "b";
    char address[] = "tcp://10.1.0.8:4770";
    tn_hello_note note = hello(host, 2, 2);
    note.address = address;
    assert_taken(&g, 1, 5, &note);
    memset(host, 'x', 1);
    memset(address, 'x', sizeof address - 1);
    tn_welcome_note w;
    tn_rendezvous_welcome(g.f, &w);
    assert_string_equal(w.host.at[1], "b");
    assert_string_equal(w.address.at[1], "tcp://10.1.0.8:4770");
}

TEST(one_peer_is_a_whole_group)
{
    group g CLEANUP(close_group);
    open_group(&g, 1);
    assert_true(tn_rendezvous_is_whole(g.f));
    assert_missing(&g, "");
}

TEST(each_difference_is_refused_and_both_values_are_named)
{
    group g CLEANUP(close_group);
    open_group(&g, 3);
    tn_hello_note note = hello("b", 2, 3);
    note.version = "0.3.0";
    assert_refused(&g, 1, &note, TN_REFUSAL_VERSION,
                   "the version of rank 1 on host 'b' is '0.3.0', that of rank 0 on host 'a' is "
                   "'0.2.0'");
    note = hello("b", 2, 4);
    assert_refused(&g, 1, &note, TN_REFUSAL_CONFIG,
                   "rank 1 on host 'b' takes the group for one of 4 peers, rank 0 on host 'a' for "
                   "one of 3");
    note = hello("b", 2, 3);
    note.config_hash = "decade";
    assert_refused(&g, 1, &note, TN_REFUSAL_CONFIG,
                   "the configuration of rank 1 on host 'b' is 'decade', that of rank 0 on host "
                   "'a' is 'c0ffee'\n"
                   "hint: all peers need the same options; compare --print-config");
    note = hello("b", 2, 3);
    note.structure = "";
    assert_refused(&g, 1, &note, TN_REFUSAL_CONFIG,
                   "the structure of the model of rank 1 on host 'b' is '', that of rank 0 on host "
                   "'a' is '57eef0'");
    note = hello("b", 2, 3);
    assert_refused(&g, 3, &note, TN_REFUSAL_RANK, "rank 3 on host 'b' is none of 3 peers");
    assert_refused(&g, UINT32_MAX, &note, TN_REFUSAL_RANK,
                   "rank 4294967295 on host 'b' is none of 3 peers");
    assert_refused(&g, 0, &note, TN_REFUSAL_RANK,
                   "rank 0 of host 'b', pid 2 is taken by host 'a', pid 1\n"
                   "hint: was the same rank started twice?");
}

TEST(another_set_of_kernels_is_welcome_with_a_warning)
{
    group g CLEANUP(close_group);
    open_group(&g, 2);
    tn_hello_note note = hello("b", 2, 2);
    note.cpu = "avx512";
    assert_taken(&g, 1, 5, &note);
    assert_taken(&g, 1, 5, &note); /* once, not at each repetition */
    assert_string_equal(logged, "1 rank 1 on host 'b' computes with 'avx512', rank 0 on host 'a' "
                                "with 'avx2': the same bits run after run only if every rank stays "
                                "on its kind of processor\n");
}

TEST(until_the_group_is_whole_the_newest_start_counts)
{
    group g CLEANUP(close_group);
    open_group(&g, 3);
    const tn_hello_note first = hello("b", 2, 3);
    const tn_hello_note second = hello("c", 3, 3);
    assert_taken(&g, 1, 1001, &first);
    assert_taken(&g, 1, 2001, &second);
    assert_string_equal(logged, "2 rank 1 was started again: host 'c', pid 3\n");
    assert_missing(&g, "rank 2");
    /* The first one is alive as well: two processes with one rank. */
    assert_int_equal(tn_rendezvous_hello(g.f, 1, 1001, &first, &g.why), TN_REFUSAL_RANK);
    assert_string_equal(tn_text_str(&g.why), "rank 1 of host 'b', pid 2 is taken by host 'c', pid "
                                             "3\nhint: was the same rank started twice?");
    tn_text_clear(&g.why);
    assert_taken(&g, 2, 1002, &first);
    assert_true(tn_rendezvous_is_whole(g.f));
    assert_int_equal(tn_rendezvous_hello(g.f, 1, 3001, &second, &g.why), TN_REFUSAL_RANK);
    tn_welcome_note w;
    tn_rendezvous_welcome(g.f, &w);
    assert_int_equal(w.incarnation.at[1], 2001);
}

TEST(an_incarnation_from_two_places_is_refused)
{
    group g CLEANUP(close_group);
    open_group(&g, 3);
    const tn_hello_note note = hello("b", 2, 3);
    const tn_hello_note pid = hello("b", 3, 3);
    const tn_hello_note host = hello("c", 2, 3);
    assert_taken(&g, 1, 5, &note);
    assert_int_equal(tn_rendezvous_hello(g.f, 1, 5, &pid, &g.why), TN_REFUSAL_RANK);
    assert_int_equal(tn_rendezvous_hello(g.f, 1, 5, &host, &g.why), TN_REFUSAL_RANK);
    tn_text_clear(&g.why);
    assert_taken(&g, 1, 5, &note);
}

TEST(the_last_replaced_starts_are_remembered)
{
    group g CLEANUP(close_group);
    open_group(&g, 3);
    const tn_hello_note note = hello("b", 2, 3);
    for (uint64_t start = 1; start <= 100; start++) {
        assert_taken(&g, 1, start, &note);
        for (uint64_t k = 1; k <= TN_RENDEZVOUS_STARTS && k < start; k++) {
            assert_int_equal(tn_rendezvous_hello(g.f, 1, start - k, &note, &g.why),
                             TN_REFUSAL_RANK);
        }
        tn_text_clear(&g.why);
        assert_missing(&g, "rank 2");
    }
}

TEST(c8_texts_of_a_hello_that_no_peer_says_are_refused)
{
    group g CLEANUP(close_group);
    open_group(&g, 2);
    char longest[300];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    const char *bad[] = {longest, "b\nrank 0 is lost", "\x7f", NULL};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tn_hello_note note[6];
        for (size_t k = 0; k < 6; k++) {
            note[k] = hello("b", 2, 2);
        }
        note[0].version = note[1].host = note[2].address = bad[i];
        note[3].config_hash = note[4].structure = note[5].cpu = bad[i];
        const char *name[] = {"version", "host", "address", "config_hash", "structure", "cpu"};
        for (size_t k = 0; k < 6; k++) {
            char why[100];
            (void)snprintf(why, sizeof why, "rank 1 says hello with a damaged '%s'", name[k]);
            assert_refused(&g, 1, &note[k], TN_REFUSAL_DAMAGED, why);
        }
    }
    const tn_hello_note note = hello("b", 2, 2);
    tn_hello_note nowhere = hello("", 2, 2);
    assert_refused(&g, 1, &nowhere, TN_REFUSAL_DAMAGED, "rank 1 says hello with a damaged 'host'");
    assert_int_equal(tn_rendezvous_hello(g.f, 1, 0, &note, &g.why), TN_REFUSAL_DAMAGED);
}

TEST(addresses_that_nobody_can_dial_are_refused)
{
    group g CLEANUP(close_group);
    open_group(&g, 2);
    const char *bad[] = {"", "tcp://*:4770", "10.1.0.8", "10.1.0.8:0", "ipc://", ":4770", "a:b:c"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tn_hello_note note = hello("b", 2, 2);
        note.address = bad[i];
        assert_refused(&g, 1, &note, TN_REFUSAL_DAMAGED,
                       "rank 1 says hello with a damaged 'address'");
    }
}

TEST(a_group_whose_own_name_cannot_be_told_does_not_begin)
{
    tn_shares *shares FREED(tn_shares_free) = NULL;
    tn_rendezvous *f = NULL;
    tn_error err = {0};
    const tn_hello_note own = hello("a\n", 1, 2);
    assert_int_equal(tn_shares_new(&shares, 2, 0, NULL), TN_OK);
    assert_int_equal(tn_rendezvous_new(&f, &shares->owners, ROOT, &own, &err), TN_E_CONFIG);
    assert_string_equal(err.text, "the 'host' of this peer cannot be told to others");
    assert_null(f);
    tn_rendezvous_free(NULL);
}

TEST(a_rank_that_gives_up_ends_the_group_unless_another_start_counts)
{
    group g CLEANUP(close_group);
    open_group(&g, 3);
    const tn_hello_note b = hello("b", 2, 3);
    const tn_hello_note c = hello("c", 3, 3);
    assert_false(tn_rendezvous_is_in(g.f, 1));
    assert_true(tn_rendezvous_gives_up(g.f, 1, 1001)); /* it was never in */
    assert_taken(&g, 1, 1001, &b);
    assert_true(tn_rendezvous_is_in(g.f, 1));
    assert_true(tn_rendezvous_gives_up(g.f, 1, 1001));
    assert_taken(&g, 1, 1002, &b);
    assert_false(tn_rendezvous_gives_up(g.f, 1, 1001)); /* was replaced */
    assert_true(tn_rendezvous_gives_up(g.f, 1, 1003));  /* would count, if it went on */
    assert_taken(&g, 2, 1004, &c);
    assert_false(tn_rendezvous_gives_up(g.f, 1, 1003)); /* whole: who is not in does not matter */
    assert_true(tn_rendezvous_gives_up(g.f, 1, 1002));
    assert_false(tn_rendezvous_gives_up(g.f, 0, ROOT)); /* nobody says that of rank 0 */
    assert_false(tn_rendezvous_gives_up(g.f, 3, 1005));
    assert_false(tn_rendezvous_gives_up(g.f, 2, 0));
    assert_false(tn_rendezvous_is_in(g.f, 3));
}

TEST(missing_ranks_are_told_in_few_words)
{
    group g CLEANUP(close_group);
    open_group(&g, FAR);
    const tn_hello_note note = hello("b", 2, FAR);
    assert_missing(&g, "ranks 1..1023");
    assert_taken(&g, 2, 5, &note);
    assert_missing(&g, "ranks 1 and 3..1023");
    assert_taken(&g, 5, 5, &note);
    assert_missing(&g, "ranks 1, 3, 4 and 6..1023");
    assert_taken(&g, 9, 5, &note);
    assert_missing(&g, "ranks 1, 3, 4, 6..8 and 10..1023");
    assert_taken(&g, 1022, 5, &note);
    assert_missing(&g, "ranks 1, 3, 4, 6..8 and 1013 others");
    assert_taken(&g, 1, 5, &note);
    assert_missing(&g, "ranks 3, 4, 6..8, 10..1021 and 1023");
    for (uint32_t r = 3; r < FAR; r++) {
        if (r != 5 && r != 9 && r != 700 && r != 1000 && r < 1022) {
            assert_taken(&g, r, 5, &note);
        }
    }
    assert_missing(&g, "ranks 700, 1000 and 1023");
    assert_taken(&g, 700, 5, &note);
    assert_taken(&g, 1023, 5, &note);
    assert_missing(&g, "rank 1000");
    assert_taken(&g, 1000, 5, &note);
    assert_true(tn_rendezvous_is_whole(g.f));
}

/* 1024 ranks, in any order, each of them twice: the welcome travels and says the same. */
TEST(c9_a_thousand_ranks_are_welcomed)
{
    group g CLEANUP(close_group);
    open_group(&g, FAR);
    for (uint32_t i = 1; i < 2 * FAR; i++) {
        uint32_t rank = i * 389 % FAR;
        const tn_hello_note note = hello("b", rank, FAR);
        if (rank != 0) {
            assert_taken(&g, rank, ROOT + rank, &note);
        }
    }
    assert_true(tn_rendezvous_is_whole(g.f));
    tn_welcome_note w;
    tn_rendezvous_welcome(g.f, &w);
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_note_write(TN_FRAME_WELCOME, &w, &bytes);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    tn_welcome_note read;
    assert_int_equal(tn_note_read(&read, TN_FRAME_WELCOME, bytes.data, bytes.size, arena),
                     TN_DROP_NONE);
    assert_int_equal(read.address.n, FAR);
    for (uint32_t r = 0; r < FAR; r++) {
        assert_int_equal(read.incarnation.at[r], ROOT + r);
        assert_int_equal(read.owned_from.at[r], r);
    }
}

TEST(every_allocation_that_fails_is_reported)
{
    tn_shares *shares FREED(tn_shares_free) = NULL;
    const tn_hello_note own = hello("a", 1, 2);
    assert_int_equal(tn_shares_new(&shares, 2, 0, NULL), TN_OK);
    uint64_t nth = 0;
    tn_status status = TN_E_MEMORY;
    while (status != TN_OK) {
        tn_rendezvous *f = NULL;
        tn_error err = {0};
        tn_alloc_fail_at(++nth);
        status = tn_rendezvous_new(&f, &shares->owners, ROOT, &own, &err);
        tn_alloc_fail_at(0);
        assert_true(status == TN_OK || (status == TN_E_MEMORY && err.code == TN_E_MEMORY));
        assert_int_equal(f != NULL, status == TN_OK);
        tn_rendezvous_free(f);
    }
    assert_true(nth > 1);
}

enum { RANKS = 4 };

static const uint64_t s_ns = 1000000000;

static const uint64_t ms_ns = 1000000;

static const uint64_t look_ns = 100000000;

static tn_hello_note hello_of_pid(uint64_t pid)
{
    return (tn_hello_note){.version = "1",
                           .host = "a",
                           .address = "ipc:///tmp/x.sock",
                           .config_hash = "c",
                           .structure = "s",
                           .cpu = "avx2",
                           .pid = pid,
                           .peers = RANKS};
}

/* A group of four whose rank r says hello r * apart_s after rank 0 began to wait; milliseconds
 * until it is whole, or until the patience is over: then minus that. `told` gets who was missing,
 * and when.
 */
static int64_t form(uint64_t patience_s, uint64_t apart_s, tn_text *told)
{
    tn_shares *shares FREED(tn_shares_free) = NULL;
    tn_rendezvous *f = NULL;
    const tn_hello_note own = hello_of_pid(1);
    const uint64_t begin = 12345 * s_ns;
    uint64_t now = begin;
    tn_rendezvous_timer_verdict verdict = TN_RENDEZVOUS_TIMER_ON;
    assert_int_equal(tn_shares_new(&shares, RANKS, 100, NULL), TN_OK);
    assert_int_equal(tn_rendezvous_new(&f, &shares->owners, 1000, &own, NULL), TN_OK);
    tn_rendezvous_timer w = {.patience_ns = patience_s * s_ns, .looked_ns = now};
    while (!tn_rendezvous_is_whole(f) && verdict != TN_RENDEZVOUS_TIMER_OVER) {
        now += look_ns;
        for (uint32_t r = 1; r < RANKS; r++) {
            if (now - begin >= r * apart_s * s_ns) { /* again and again */
                const tn_hello_note note = hello_of_pid(r + 1);
                assert_int_equal(tn_rendezvous_hello(f, r, 1000 + r, &note, told), 0);
            }
        }
        verdict = tn_rendezvous_timer_poll(&w, now);
        if (verdict == TN_RENDEZVOUS_TIMER_TELL && !tn_rendezvous_is_whole(f)) {
            tn_text_addf(told, "%.0f s: ", (double)w.waited_ns * 1e-9);
            tn_rendezvous_missing(f, told);
            tn_text_addc(told, '\n');
        }
    }
    const bool whole = tn_rendezvous_is_whole(f);
    tn_rendezvous_free(f);
    return whole ? (int64_t)((now - begin) / ms_ns) : -(int64_t)(w.waited_ns / ms_ns);
}

TEST(c7_ranks_that_start_20_s_apart_form_a_group_after_60_s)
{
    tn_text told CLEANUP(tn_text_done) = {0};
    assert_int_equal(form(120, 20, &told), 60000);
    assert_string_equal(tn_text_str(&told), "10 s: ranks 1..3\n20 s: ranks 2 and 3\n"
                                            "30 s: ranks 2 and 3\n40 s: rank 3\n50 s: rank 3\n");
}

TEST(c7_the_last_rank_may_come_two_minutes_after_the_first)
{
    tn_text told CLEANUP(tn_text_done) = {0};
    assert_int_equal(form(120, 40, &told), 120000);
    tn_text_clear(&told);
    assert_int_equal(form(120, 41, &told), -120100);
    assert_non_null(strstr(tn_text_str(&told), "120 s: rank 3\n"));
}

TEST(time_in_which_the_process_was_stopped_does_not_count)
{
    uint64_t now = 1;
    tn_rendezvous_timer w = {.patience_ns = 3 * s_ns, .looked_ns = now};
    for (uint32_t i = 0; i < 3; i++) {
        now += 1000 * s_ns;
        assert_int_equal(tn_rendezvous_timer_poll(&w, now), TN_RENDEZVOUS_TIMER_ON);
    }
    assert_int_equal(w.waited_ns, 3 * TN_FAILURE_GAP_NS);
    assert_int_equal(tn_rendezvous_timer_poll(&w, now), TN_RENDEZVOUS_TIMER_ON);
    assert_int_equal(tn_rendezvous_timer_poll(&w, now + 1), TN_RENDEZVOUS_TIMER_OVER);
    assert_int_equal(tn_rendezvous_timer_poll(&w, now + 1), TN_RENDEZVOUS_TIMER_OVER);
}
