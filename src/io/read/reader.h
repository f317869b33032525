/* reader.h - a stream of batches from many files, in the background.
 *
 *     files -> [read, inflate, cut] -> [parse] x readers -> [shuffle, fill batches]
 *           -> queue -> tn_reader_next
 *
 *     tn_batch *batch = NULL;
 *     while ((status = tn_reader_next(reader, &batch, &err)) == TN_OK) {
 *         ... use batch ...
 *         tn_reader_recycle(reader, batch);
 *     }
 *
 * One reader is one pass over the data. The stream of batches is a function of (files, options,
 * seed, epoch) alone: neither the number of threads nor their speed shows. Records leave in the
 * order of parts; within a part, windows of `shuffle` records are permuted by stream (seed, 4,
 * epoch, part), and those of more than 262,144 reach over parts where this reader has all of them:
 * `part` and `position` of a batch's progress are then of the part that the first window began in;
 * with shuffle the parts themselves are visited in a permuted order of this epoch.
 *
 * Several readers, in one process or many, may share an epoch: a dealer gives each the parts that
 * are its own. Rows of a part come in the same order whoever reads it. A reader that has to wait
 * for a part hands out what it has in a short batch first.
 *
 * A record that cannot be parsed ends the stream with file, place and fault,
 * unless bad_records_max allows for it: then it is skipped, counted and logged.
 */
#pragma once

#include "base/core/error.h"
#include "config/values.h"
#include "io/rows/batch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tn_schema tn_schema;       /* io/schema/schema.h */
typedef struct tn_text tn_text;           /* base/core/text.h */
typedef struct tn_trace tn_trace;         /* base/trace/trace.h */
typedef struct tn_part_info tn_part_info; /* io/read/blocks.h */

typedef struct tn_reader tn_reader;

/* A part that is this reader's, and where in it to begin. */
typedef struct tn_dealt {
    uint32_t place;    /* in the order of parts of this epoch (tn_reader_part) */
    uint64_t position; /* rows that were handed out before, as in tn_progress */
} tn_dealt;

/* Deals the parts of an epoch to several readers that share it.
 *
 *     reader 0   part 3   part 0   part 6        one dealer for all, in this process or another
 *     reader 1   part 5   part 1   wait ..
 *
 * `next` is called from one thread of the reader.
 * Without `wait` *now is false when there is none at present, which may change; with it the call
 * returns soon after *stop turns true, with TN_E_STOPPED. TN_END: no more. Any other status ends
 * the reader with it at once: rows that are not handed out yet are not. */
typedef struct tn_dealer {
    /* Called while the reader is opened, which fails if this does: the dealer can ask for parts and
     * sources now. NULL: it knows them. */
    tn_status (*begin)(void *arg, const tn_reader *reader, tn_error *err);
    tn_status (*next)(void *arg, bool wait, const atomic_bool *stop, tn_dealt *out, bool *now,
                      tn_error *err);
    void *arg;
    /* Called from another thread of the reader, before it waits and at its end: all records of the
     * first `parts` parts, `records` of them, are in the first `batches` batches. A part is over
     * when these are learned. NULL: nobody wants to know. */
    void (*flushed)(void *arg, uint32_t parts, uint64_t batches, uint64_t records);
} tn_dealer;

typedef struct tn_reader_opts {
    tn_strs paths; /* files, globs, folders, "-" */
    uint32_t batch_rows;
    /* Shuffles, samples negatives, leaves out rows of weight 0 and those that data.valid holds back
     * (io/read/held_rows.h). Else rows come as they are read, all of them. */
    bool training;
    bool held;     /* only the rows that data.valid holds back; not with `training` */
    bool want_ids; /* fill id_*, source, source_at */
    uint64_t seed;
    tn_progress from;        /* epoch, and where to go on in it: all 0 at its start */
    const tn_dealer *dealer; /* NULL: every part is this reader's, from `from` on; else only the
                              * epoch of `from` counts, and `part` of a batch's progress is how
                              * many were dealt before */
    uint32_t
        cut_for; /* ranks that share the epoch, for which the files are cut (io/read/fileset.h): 0,
                    1: into parts of part_bytes */
    uint32_t share, shares; /* with several readers and no dealer: every `shares`-th part from
                               `share` on; shares 0: all */
    uint32_t prefetch;      /* batches kept ready; at least 1 */
    tn_trace *trace;        /* for the reader's threads; must outlive it; NULL: not recorded */
} tn_reader_opts;

/* Counts of the records so far. */
typedef struct tn_read_counts {
    uint64_t records, bytes, blank, duplicate_key, zero_weight, sampled_out;
    uint64_t bad;
    uint32_t sources;
} tn_read_counts;

/* Opens a reader and starts its threads; `schema` must outlive it. TN_E_DATA: no such file, no
 * match, unknown compression. On failure *out is NULL. */
tn_status tn_reader_open(tn_reader **out, const tn_schema *schema, const tn_reader_opts *opts,
                         tn_error *err) TN_MUST_USE;

/* Stops the threads, frees everything, batches not recycled included. NULL is fine. */
void tn_reader_close(tn_reader *reader);

/* Waits for the next batch, lent until it is recycled. One is short at the end of an epoch, or when
 * the reader waits for a part. TN_END: there are no more. */
tn_status tn_reader_next(tn_reader *reader, tn_batch **out, tn_error *err) TN_MUST_USE;
/* Waits until `until_ns` of tn_clock_ns at most (0: not at all): *out is NULL when no batch was
 * ready by then. */
tn_status tn_reader_next_until(tn_reader *reader, uint64_t until_ns, tn_batch **out,
                               tn_error *err) TN_MUST_USE;
void tn_reader_recycle(tn_reader *reader, tn_batch *batch);

/* Makes tn_reader_next return the batches that are ready, then TN_E_STOPPED, without waiting. Any
 * thread. */
void tn_reader_stop(tn_reader *reader);
/* Stops the reader and waits for its threads: counts stay as they are, and no dealer is called. */
void tn_reader_quit(tn_reader *reader);

/* Weighted sums over the first rows: clicks / weight is their rate. With a target of numbers
 * `clicks` is the sum of labels, and the ratio is their mean. weight > 0. The same of each task, if
 * there are several, whose weight may be 0. */
typedef struct tn_prior_sum {
    double clicks, weight;
} tn_prior_sum;
typedef struct tn_prior {
    double clicks, weight;
    tn_prior_sum task[TN_TASKS_MAX];
} tn_prior;
/* Waits for the first shuffle window (without shuffle: for the first quarter megabyte) and sums it
 * after down-sampling, for `bias_init: prior`. TN_END: there is no row, or no part for this reader
 * yet. */
tn_status tn_reader_prior(tn_reader *reader, tn_prior *out, tn_error *err) TN_MUST_USE;

/* Counts the records of the whole reader so far. */
void tn_reader_counts(tn_reader *reader, tn_read_counts *out);
/* Counts those of the first `parts` parts that were dealt (UINT32_MAX: all), without the rows that
 * weight or sampling left out. Appends the reasons of their bad records to `reasons`, as
 * "reason\0count\0" pairs. */
void tn_reader_counts_of(tn_reader *reader, uint32_t parts, tn_read_counts *out, tn_text *reasons);
uint32_t tn_reader_n_parts(const tn_reader *reader);
tn_part_info tn_reader_part(const tn_reader *reader, uint32_t i); /* in the order of this epoch */
uint32_t tn_reader_cut_for(const tn_reader *reader);              /* at least 1 */
uint32_t tn_reader_n_sources(const tn_reader *reader);
/* Returns the i-th part that was dealt; i is at most `part` of a batch's progress. */
tn_dealt tn_reader_dealt(tn_reader *reader, uint32_t i);
uint64_t tn_reader_total_bytes(const tn_reader *reader); /* for the ETA; 0 when not known */
uint64_t tn_reader_done_bytes(tn_reader *reader);
