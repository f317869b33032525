/* grouprun.h - whole runs of several ranks, each on a thread of this process, with real sockets. */
#pragma once

#include "base/core/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { GROUP_MAX = 4, GROUP_TEXT = 1500 };

typedef struct grouprun {
    const char *config; /* test/golden/<config>.yaml */
    uint32_t n;
    const char *dir;                   /* of the run */
    const char *const *more;           /* overrides, ended by NULL; or NULL */
    const char *const *own[GROUP_MAX]; /* the same of one rank */
    bool whole;                        /* each file is one part, and so one rank's alone */
    const char *packed;                /* of grouprun.c: data.train with such files */
    bool stops[GROUP_MAX]; /* a signal to that rank comes with the first line that rank 0 shows */
    const char *bind[GROUP_MAX]; /* where they listen; NULL: at sockets of this machine */
    const char *root;            /* where the others look for rank 0; NULL: where it listens */
    const char *fast;            /* what timers are divided by; NULL: 4 */
    const char *silence;         /* the same of silences after which a rank is lost; NULL: 1 */
    atomic_bool shown;

    /* What became of it. */
    tn_status status[GROUP_MAX];
    char text[GROUP_MAX][GROUP_TEXT];
    bool elsewhere[GROUP_MAX]; /* that is told by another rank */
    uint64_t steps[GROUP_MAX];
    uint64_t rows[GROUP_MAX];        /* that each rank beside 0 has learned */
    uint64_t samples;                /* rank 0's: of all */
    double valid_auc, valid_logloss; /* rank 0's; NAN: none */
    uint64_t valid_rows;
    char summary[GROUP_TEXT]; /* of summary.json what was read, and rows of tables: for all ranks */
    uint64_t reassigned;      /* parts, by the same; "" and 0: there is none */
    uint32_t first_day, last_day; /* of rows of the newest checkpoint */
    uint32_t hash;                /* of the newest checkpoint, loaded by one process; 0: none */
    uint32_t counts; /* the same, of the shows and clicks of every row alone: who was learned, and
                        how often, by whomever and in whatever order */
} grouprun;

/* n 1: one process. Timers are a quarter as long, silences are not: a busy machine loses none. */
void grouprun_do(grouprun *g);

/* The same, and all must have ended well. */
void grouprun_well(grouprun *g);

/* The model of the newest checkpoint of g->dir as files for checkpoint.from. */
void grouprun_files(const grouprun *g, const char *rows, const char *dense);

/* The rows of test/golden/data/rows.tsv as files: `to`, and those of `n` ranks, dealt in blocks of
 * `block`, to-0 .. */
void grouprun_deal(const char *to, uint32_t n, uint32_t block);
