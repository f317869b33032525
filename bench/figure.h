/* figure.h - how every benchmark says what it measured: target, figure, limit, yardstick, ratio.
 *
 *     tn_samples s = {0};
 *     for (turns) { tn_sample(&s, a turn); }                 A B A B, each its own samples
 *     tn_figure_print(&(tn_figure){.row = "P8", .what = "pull", .unit = "M keys/s",
 *                                  .is = tn_spread_of(&s), .target = 25}, json);
 *
 *     P8   pull   >= 25   21.4 [20.9 22.0] M keys/s   limit 45.2 random lines   .86 of it, missed
 *
 * Lines of text or of JSON, on standard output. A program names its machine once, first. A line
 * ends with the turns since the line before, how many tries were made again, and how many turns
 * stayed disturbed (machine.h); none when nothing was measured in turns.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TN_SAMPLES_MAX = 4096 };

typedef struct tn_samples {
    uint32_t n;
    double x[TN_SAMPLES_MAX];
} tn_samples;

typedef struct tn_spread {
    double median, least, most;
} tn_spread;

void tn_sample(tn_samples *s, double x); /* beyond the room: dropped */
tn_spread tn_spread_of(const tn_samples *s);
tn_spread tn_spread_one(double x);
tn_spread tn_spread_scaled(tn_spread s, double factor); /* factor above 0 */

/* What the target is a multiple of. */
typedef enum tn_aim { TN_AIM_VALUE, TN_AIM_LIMIT, TN_AIM_YARDSTICK } tn_aim;

typedef struct tn_figure {
    const char *row;  /* of the targets: P1 .. P20, C6 */
    const char *what; /* and under which conditions */
    const char *unit;
    tn_spread is;
    double limit; /* what nothing can exceed on this machine, measured in the same run; 0: none */
    const char *limit_is;
    double yardstick; /* what something else did; 0: none */
    const char *yardstick_is;
    double target; /* in `unit`, or times limit or yardstick; NAN: nobody set one */
    tn_aim aim;
    bool at_most; /* the target is an upper bound */
} tn_figure;

/* Median over what the target is a multiple of; over the target itself when it is a plain value. */
double tn_figure_ratio(const tn_figure *f);
bool tn_figure_met(const tn_figure *f);
void tn_figure_print(const tn_figure *f, bool json);

/* Takes "--json" out of the arguments, wherever it stands. */
bool tn_json_wanted(int *argc, char **argv);
