/* producer.h - sources of data in the memory of the program around a run: named as files are, and
 * read as bytes, which a producer makes while they are read.
 *
 *     data.train: ["memory:train"]       the producer `train` of the thread's embedder
 *
 *     tn_producers rows = {.producer = {{.name = "train", .open = open_frame, ..}}, .n = 1};
 *     tn_embedder mine = {.producers = &rows};                          base/core/embedder.h
 *
 * Every pass over the source opens it anew and reads it from its first byte to its end, on one
 * thread at a time; several passes may be open at once. Its size is not known, it is never cut into
 * parts, and every pass must bring the same bytes.
 */
#pragma once

#include "base/core/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TN_PRODUCER_PREFIX "memory:"

typedef struct tn_producer {
    const char *name; /* the path without its prefix */
    void *arg;
    /* Begins a pass; on failure *pass is NULL. */
    tn_status (*open)(void *arg, void **pass, tn_error *err);
    /* Makes at least 1 byte and at most `size`; *n 0: the end. */
    tn_status (*read)(void *pass, void *data, size_t size, size_t *n, tn_error *err);
    void (*close)(void *pass); /* also of a pass that has failed */
    /* Counts the rows of a pass; NULL: a pass counts them. */
    tn_status (*count)(void *arg, uint64_t *rows, tn_error *err);
} tn_producer;

enum { TN_PRODUCERS_MAX = 8 };

typedef struct tn_producers {
    tn_producer producer[TN_PRODUCERS_MAX];
    uint32_t n;
} tn_producers;

/* Returns the producer that a path names; NULL: it names a file. */
const tn_producer *tn_producer_of(const char *path);
