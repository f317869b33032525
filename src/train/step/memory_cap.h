/* memory_cap.h - how many bytes the table of rows may take, and whether the next step still fits.
 *
 *     embedding.memory   SIZE: that
 *                        none: any
 *                        auto: 80 % of the least limit (base/machine/limits.h), less what this
 *                              process takes without rows, now and as planned
 *
 *     TN_TRY(tn_memory_cap_init(&m, w, 0, err));    before rows are loaded: these may be too many
 *     tn_memory_cap_begin(&m);                      after they are loaded
 *     if (tn_memory_cap_look(&m) == TN_ROOM_NONE)   then, and between two steps
 *         { save;  return tn_memory_cap_fail(&m, ..); }
 *
 * The cap counts bytes of the table, so a run reaches it at the same step each time. Beside it, the
 * memory of the whole process is looked at ten times a second, more often while the table grows
 * fast, in case other memory grows. One thread.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/machine/limits.h"
#include "base/thread/range.h"

typedef struct tn_worker tn_worker;

typedef enum tn_room {
    TN_ROOM_ENOUGH,
    TN_ROOM_AFTER_SAVE, /* without the copies of rows that are being saved */
    TN_ROOM_NONE,       /* one more step might pass the cap */
    TN_ROOM_NEAR_LIMIT, /* all of the process: the kernel might end it */
} tn_room;

typedef struct tn_memory_cap {
    const tn_worker *w; /* NULL: nothing is looked at */
    tn_memory_limit limit;
    uint64_t share;           /* part of limit.resident that is this process's */
    uint32_t sharers;         /* with so many */
    uint64_t cap;             /* bytes of the table */
    uint64_t outside;         /* auto: what was taken off */
    bool by_address;          /* auto: the limit of address space was the least */
    bool evicts;              /* rows leave before the table is full */
    uint64_t rows, rows_most; /* rows that may come until the run pauses; before its first step */
    uint64_t steps, created;  /* by the worker and its table, at the last look */
    uint64_t most;            /* rows that one of the last steps has made */
    tn_range partitions;      /* the own ones */
    uint64_t look_from;       /* bytes of the table */
    double next_look;         /* at the process; monotonic seconds */
    uint64_t bytes;           /* size of the table at the last look at the process */
    bool is_near;             /* the process was near its limit then */
    tn_room room;             /* as last seen */
    tn_memory_use use;        /* the same */
} tn_memory_cap;

/* Sets the table's limit, too, and has rows leave where on_full says so. `sharers`: processes of
 * this run on this machine; 0: as the worker's group says. TN_E_CONFIG: rows are to leave, and
 * there is no room for some of each partition. */
tn_status tn_memory_cap_init(tn_memory_cap *m, tn_worker *w, uint32_t sharers,
                             tn_error *err) TN_MUST_USE;

/* Rows were loaded, and no step was made. Each key of the next one may be new: so a run that was
 * stopped at its cap and goes on with the same one does not make it. */
void tn_memory_cap_begin(tn_memory_cap *m);

/* Takes memory of nobody, and microseconds. */
tn_room tn_memory_cap_look(tn_memory_cap *m);

static inline bool tn_room_is_over(tn_room room)
{
    return room == TN_ROOM_NONE || room == TN_ROOM_NEAR_LIMIT;
}

/* "260.0 MB: 80 % of 400.0 MB (cgroup memory.max) less 60.0 MB for all else" */
void tn_memory_cap_text(const tn_memory_cap *m, tn_text *out);

/* TN_E_MEMORY: what is full, the largest slots, what to do. `saved`: path of the checkpoint. */
tn_status tn_memory_cap_fail(const tn_memory_cap *m, const char *saved, tn_error *err);
