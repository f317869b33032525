/* progress.h - what a person sees of a run: one line that moves, or plain lines now and then.
 *
 *     epoch 1/3  42% [====>     ]  61.2k rows/s  loss 0.4498  auc 0.8071  eta 0:03:12
 *
 *     tn_bar_init(&bar, &(tn_bar_opts){.show = show, .terminal = true, .width = 80}, NULL, now);
 *     if (tn_bar_due(&bar, now))         cheap; the AUC is worth computing only then
 *         tn_bar_draw(&bar, &state, now);
 *
 * On a terminal a line is drawn every half second and is `transient`: its printer returns the
 * carriage and clears the rest. Elsewhere a line comes every `every` seconds and stays. Nothing is
 * printed here. One thread. A warm bar allocates nothing.
 */
#pragma once

#include "base/core/text.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_bar_opts {
    void (*show)(void *arg, const char *text, bool transient); /* NULL: draw nothing */
    void *arg;
    bool terminal;
    uint32_t width; /* columns of the terminal; 0: 80 */
    double every;   /* seconds between lines elsewhere */
} tn_bar_opts;

/* The values of a line. NAN: not known, left out. */
typedef struct tn_bar_state {
    uint32_t epoch, epochs; /* from 1 */
    uint64_t step;
    double epoch_done;  /* share of this epoch, 0 .. 1 */
    double run_done;    /* share of the run, for the ETA */
    bool may_end_early; /* nobody knows how many epochs: the ETA is that of this one */
    uint64_t rows;      /* seen since the start, for the rate */
    double loss, auc;
} tn_bar_state;

typedef struct tn_bar {
    tn_bar_opts opts;
    double next;                   /* when to draw again */
    double last_at;                /* when it was last drawn, */
    uint64_t last_rows;            /* with this many rows */
    double rows_per_s;             /* smoothed; NAN before the first line */
    double share_per_s, last_done; /* progress of the run, or in epochs; smoothed */
    tn_text line;
} tn_bar;

/* `start`: the position of the run, its rows and run_done. NULL: no rows yet; the first line then
 * has no ETA, since nobody knows how much was done before (a resumed run). */
void tn_bar_init(tn_bar *bar, const tn_bar_opts *opts, const tn_bar_state *start, double now);
void tn_bar_done(tn_bar *bar);

/* Time before this counts for no rate: the first rows are being read and shuffled. */
void tn_bar_begin(tn_bar *bar, double now);

bool tn_bar_due(const tn_bar *bar, double now);
/* Draws whether due or not. */
void tn_bar_draw(tn_bar *bar, const tn_bar_state *s, double now);

/* The line alone, at most `width` characters (0: without a bar, as long as it is): what matters
 * less is left out first, the bar never. */
typedef struct tn_bar_pace {
    double rows_per_s, eta_s;
} tn_bar_pace;
void tn_bar_line(const tn_bar_state *s, const tn_bar_pace *pace, uint32_t width, tn_text *out);

/* "61.2k", "1.25M"; "0:03:12", "2d 04:00:00"; "7.4 GB". */
void tn_put_count(tn_text *out, double count);
void tn_put_duration(tn_text *out, double seconds);
void tn_put_bytes(tn_text *out, double bytes);
