/* arrow_stream.h - a producer of data (io/source/producer.h) over Arrow's streams.
 *
 * Each pass over the data asks `open` for a fresh stream, moves it, pulls a batch at a time, and
 * releases it at its end. At most one batch is in memory.
 *
 * A program that can give its stream only once says so: then the first pass that is begun writes
 * all of its rows into a nameless file below $TMPDIR (else /tmp), and every pass reads that.
 */
#pragma once

#include "io/source/producer.h"

#include <stdbool.h>

struct ArrowArrayStream;

typedef struct tn_arrow_source tn_arrow_source;

typedef struct tn_arrow_source_opts {
    const char *name; /* name of the producer: "train" is the path memory:train; copied */
    /* Fills *out with a fresh stream; 0, or a number other than 0: there is none, and `why`, of 512
     * bytes, has the reason. Called by one thread at a time, the one that begins the pass. */
    int (*open)(void *arg, struct ArrowArrayStream *out, char *why);
    void *arg;
    bool once; /* `open` may be called a single time */
} tn_arrow_source_opts;

tn_status tn_arrow_source_new(tn_arrow_source **out, const tn_arrow_source_opts *opts,
                              tn_error *err) TN_MUST_USE;
void tn_arrow_source_free(tn_arrow_source *source); /* after all its passes; NULL is fine */

/* The producer, lent; its name and functions live as long as the source. */
tn_producer tn_arrow_source_producer(tn_arrow_source *source);
