/* bench_ledger.c - what rank 0 spends on its ledger: a part asked for and done, a heartbeat.
 *
 *     bench_ledger --list | NAME      for .ci/check-instructions: 1000 parts dealt and done
 *     bench_ledger [--json]           whole epochs, in nanoseconds; the best of five
 *
 * The costs must not grow with the number of ranks or parts: rank 0 deals for everybody, and a
 * group of 1024 that asks for a part every second each leaves it a millisecond a part at most.
 */
#include "counted.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "cluster/ledger/ledger.h"

#include <stdio.h>
#include <string.h>

enum { ROUNDS = 5, COUNTED = 1000 };

typedef struct job {
    uint32_t ranks, parts;
    tn_ledger_mode mode;
    tn_ledger *ledger;
    uint64_t asks; /* of all ranks so far, in turn */
} job;

static void open_epoch(job *j)
{
    tn_ledger_span *span = tn_alloc(j->parts, sizeof *span, "spans");
    for (uint32_t i = 0; i < j->parts; i++) {
        span[i] = (tn_ledger_span){.source = i / 100, .begin = i % 100, .end = i % 100 + 1};
    }
    const tn_ledger_opts opts = {
        .ranks = j->ranks, .n_parts = j->parts, .mode = j->mode, .relaxed = true, .part = span};
    tn_status status = tn_ledger_new(&j->ledger, &opts, NULL);
    TN_ASSERT(status == TN_OK);
    tn_free(span);
    j->asks = 0;
}

/* Every rank in turn asks for a part, tells in a heartbeat that it has it, and finishes it. */
static void deal(job *j, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t rank = (uint32_t)(j->asks % j->ranks);
        const uint64_t id = 1 + j->asks / j->ranks;
        const uint64_t now_ns = j->asks++ * 1000;
        tn_ledger_deal got;
        tn_ledger_answer answer = tn_ledger_ask(j->ledger, rank, 0, id, now_ns, &got);
        TN_ASSERT(answer == TN_LEDGER_PART);
        const tn_ledger_held held = {.part = got.part, .attempt = got.attempt, .position = 1};
        (void)tn_ledger_claim(j->ledger, rank, &held, 1, now_ns + i);
        bool done = tn_ledger_done(j->ledger, rank, got.part, got.attempt, now_ns + i);
        TN_ASSERT(done);
    }
}

/* ---- counting ---- */

static void deal_counted(void *arg)
{
    deal(arg, COUNTED);
}

static void count(uint32_t ranks, uint32_t parts)
{
    job j = {.ranks = ranks, .parts = parts, .mode = TN_LEDGER_ON_REQUEST};
    open_epoch(&j);
    deal(&j, COUNTED);
    tn_count(deal_counted, &j);
    tn_ledger_free(j.ledger);
}

static void count_small(void)
{
    count(4, 4000);
}

static void count_large(void)
{
    count(TN_LEDGER_RANKS_MAX, 100000);
}

static const tn_counted counted[] = {
    {"deal_4", count_small}, {"deal_1024", count_large}, {NULL, NULL}};

/* ---- timing ---- */

static void report(uint32_t ranks, uint32_t parts, tn_ledger_mode mode, bool json)
{
    job j = {.ranks = ranks, .parts = parts, .mode = mode};
    double open_best = 0;
    double best = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t start = tn_clock_ns();
        open_epoch(&j);
        const double open_ms = (double)(tn_clock_ns() - start) * 1e-6;
        start = tn_clock_ns();
        deal(&j, parts);
        const double ns = (double)(tn_clock_ns() - start) / parts;
        TN_ASSERT(tn_ledger_is_over(j.ledger));
        tn_ledger_free(j.ledger);
        open_best = i == 0 || open_ms < open_best ? open_ms : open_best;
        best = i == 0 || ns < best ? ns : best;
    }
    const char *how = mode == TN_LEDGER_BY_RULE ? "by rule" : "on request";
    (void)printf(json ? "{\"bench\":\"ledger, %s\",\"ranks\":%u,\"parts\":%u,\"ns_per_part\":%.0f,"
                        "\"open_ms\":%.1f}\n"
                      : "ledger, %-10s %4u ranks %7u parts  %5.0f ns a part   opened in %.1f ms\n",
                 how, ranks, parts, best, open_best);
}

int main(int argc, char **argv)
{
    if (tn_counted_main(argc, argv, counted)) {
        return 0;
    }
    const bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const tn_ledger_mode modes[] = {TN_LEDGER_BY_RULE, TN_LEDGER_ON_REQUEST};
    for (uint32_t i = 0; i < 2; i++) {
        report(4, 4000, modes[i], json);
        report(64, 100000, modes[i], json);
        report(TN_LEDGER_RANKS_MAX, 100000, modes[i], json);
        report(TN_LEDGER_RANKS_MAX, 1000000, modes[i], json);
    }
    return 0;
}
