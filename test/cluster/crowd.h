/* crowd.h - readers at work at the same time, for tests of what they share. */
#pragma once

#include "io/read/reader.h"

#include <pthread.h>

enum { CROWD_MAX = 4 };

typedef struct crowd {
    pthread_mutex_t lock;
    pthread_cond_t left;
    tn_reader *reader[CROWD_MAX]; /* guarded by lock, as are the next */
    uint32_t at_work;
    bool stands; /* one has learned all that it was to, and keeps its parts */
} crowd;

#define CROWD_OF(n)                                                                                \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER, .at_work = (n)        \
    }

/* Each of at_work enters with its reader and leaves before that is closed; `stands`: it did not
 * read to the end. */
void crowd_enter(crowd *c, uint32_t rank, tn_reader *reader);
void crowd_leave(crowd *c, uint32_t rank, bool stands);

/* Until all have left. Where one stands still another may wait for its parts: it is stopped, as at
 * a cut, when nobody has left for a second. */
void crowd_watch(crowd *c);
