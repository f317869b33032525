/* bench_scale.c - what a group of many ranks costs: rank 0's control, and a step's keys and floats.
 *
 *     bench_scale [--json] [control|values] [RANKS ..]
 *
 * The real messages, codec, ledger, heartbeats and lock-step, without sockets, in one process; see
 * scale.h. Control: 64, 256 and 1024 ranks, parts dealt on request, two in the hands of each.
 * Values: Wide & Deep with 26 slots of 25,000 ids, rows of 9 floats, 1024 examples of each rank in
 * a step, 200,000 dense weights, fp32, staleness 0; 2 to 1024 ranks. The network, ZeroMQ and what
 * a worker computes are not among the times. docs/scaling.md says what follows.
 */
#include "machine.h"
#include "scale.h"

#include "base/thread/threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 15, STEPS = 15, STEPS_OF_A_PART = 100, RANKS_LISTED = 16 };

typedef struct printer {
    bool json;
    uint32_t ranks;
} printer;

/* `most`: what it may be; NAN: nobody set a target. */
static void print(const printer *p, const char *what, const char *unit, tn_spread is, double most)
{
    char name[96];
    (void)snprintf(name, sizeof name, "%4u ranks: %s", p->ranks, what);
    tn_figure_print(
        &(tn_figure){
            .row = "scale", .what = name, .unit = unit, .is = is, .target = most, .at_most = true},
        p->json);
}

static void print_one(const printer *p, const char *what, const char *unit, double is)
{
    print(p, what, unit, tn_spread_one(is), (double)NAN);
}

/* Two of a hundred parts of one core are what an idle peer may take, too. */
#define BEATS_MS_MAX 20.0

static void run_control(const printer *p)
{
    static tn_scale_control c;
    memset(&c, 0, sizeof c);
    tn_scale_control_measure(&c, p->ranks, ROUNDS);
    const double none = (double)NAN;
    print(p, "hellos and welcomes of all", "ms", tn_spread_of(&c.form_ms), none);
    print_one(p, "hellos", "kB", c.hello * 1e-3);
    print_one(p, "welcomes", "kB", c.welcome * 1e-3);
    print(p, "a second of heartbeats", "ms", tn_spread_of(&c.beats_ms), BEATS_MS_MAX);
    print_one(p, "heartbeats, both ways", "kB/s", c.beat * 1e-3);
    print(p, "the table of peers", "ms", tn_spread_of(&c.table_ms), none);
    print(p, "a part dealt", "us", tn_spread_of(&c.deal_us), none);
    print_one(p, "a part dealt", "bytes", c.deal);
    print(p, "parts of a step, one a rank in 100", "us",
          tn_spread_scaled(tn_spread_of(&c.deal_us), (double)p->ranks / STEPS_OF_A_PART), none);
    print(p, "a report with metrics, read and added", "us", tn_spread_of(&c.report_us), none);
    print_one(p, "a report with metrics", "kB", c.report * 1e-3);
    print(p, "a cut", "ms", tn_spread_of(&c.cut_ms), none);
    print_one(p, "a cut", "kB", c.cut * 1e-3);
    print_one(p, "memory of a rank: forming", "bytes", c.rendezvous);
    print_one(p, "memory of a rank: heartbeats", "bytes", c.detector);
    print_one(p, "memory of a rank: ledger, 16 parts", "bytes", c.ledger);
    print_one(p, "memory of a rank: link, without ZeroMQ", "bytes", c.link);
    print_one(p, "memory of a rank: owner, without buffers", "bytes", c.owner);
    print_one(p, "memory of a rank: metrics, of 16 ranks", "kB", c.metrics * 1e-3);
}

static void run_values(const printer *p)
{
    static tn_scale_step s;
    memset(&s, 0, sizeof s);
    tn_scale_step_measure(&s, p->ranks, STEPS);
    const double none = (double)NAN;
    print_one(p, "different keys of a batch", "keys", s.keys);
    print_one(p, "keys of the joint batch at an owner", "keys", s.joint);
    print_one(p, "a key in a pull, frames included", "bytes", s.per_key);
    print_one(p, "sent by a peer in a step", "kB", s.sent * 1e-3);
    print_one(p, "received by a peer in a step", "kB", s.received * 1e-3);
    print_one(p, ".. pulls", "kB", s.pull * 1e-3);
    print_one(p, ".. pushes", "kB", s.push * 1e-3);
    print_one(p, ".. rows", "kB", s.rows * 1e-3);
    print_one(p, ".. dense weights", "kB", s.dense * 1e-3);
    print(p, "a worker's messages", "ms", tn_spread_of(&s.worker), none);
    print(p, "an owner's messages", "ms", tn_spread_of(&s.owner), none);
    print(p, "an owner's table and dense range", "ms", tn_spread_of(&s.shard), none);
}

static void run(void (*what)(const printer *p), const uint32_t *ranks, bool json)
{
    for (; *ranks != 0; ranks++) {
        what(&(printer){json, *ranks});
    }
}

static int usage(void)
{
    (void)fputs("usage: bench_scale [--json] [control|values] [RANKS ..]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    const uint32_t control[] = {64, 256, 1024, 0};
    const uint32_t values[] = {2, 4, 8, 16, 32, 64, 256, 1024, 0};
    uint32_t asked[RANKS_LISTED + 1] = {0};
    const bool json = tn_json_wanted(&argc, argv);
    const bool only_control = argc > 1 && strcmp(argv[1], "control") == 0;
    const bool only_values = argc > 1 && strcmp(argv[1], "values") == 0;
    const int first = only_control || only_values ? 2 : 1;
    if (argc - first > RANKS_LISTED) {
        return usage();
    }
    for (int i = first; i < argc; i++) {
        uint64_t n = strtoull(argv[i], NULL, 10);
        if (n < 1 || n > TN_PARTITIONS) {
            return usage();
        }
        asked[i - first] = (uint32_t)n;
    }
    tn_flush_denormals();
    tn_machine_print(json);
    if (!only_values) {
        run(run_control, asked[0] != 0 ? asked : control, json);
    }
    if (!only_control) {
        run(run_values, asked[0] != 0 ? asked : values, json);
    }
    return 0;
}
