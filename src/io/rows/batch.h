/* batch.h - a block of examples, stored slot by slot.
 *
 * In slot s, example i holds key[offset[i]] .. key[offset[i+1] - 1]:
 *
 *     example    0      1    2
 *     key        a b    c              example 2 has nothing in this slot
 *     offset     0      2    3    3    rows + 1 entries
 *
 * Keys are table keys: the slot's share group is already mixed in. A batch is
 * filled by the reader, then it is read-only and lent to one step; readers
 * recycle batches and keep their memory, so a steady run allocates nothing.
 */
#pragma once

#include "base/keys/tasks.h"

#include <stdint.h>

typedef struct tn_slot {
    uint32_t *offset; /* rows + 1 */
    uint64_t *key;    /* offset[rows] */
    float *value;     /* x_j, same length; NULL when all are 1 */
} tn_slot;

/* The position of reading after a batch, from which a run goes on. */
typedef struct tn_progress {
    uint32_t epoch;
    uint32_t part;     /* place in the order of parts of this epoch (tn_reader_part); with a dealer:
                        * parts that the reader was dealt before */
    uint64_t position; /* records taken from that part, in the order they are handed out */
    uint64_t records;  /* records taken in this epoch, those of weight 0 and bad ones included */
} tn_progress;

typedef struct tn_batch {
    uint32_t rows;
    uint32_t n_slots;
    uint32_t n_numeric;
    uint32_t n_keys;     /* all slots together */
    float *label;        /* rows; above .5 is a click. NAN with `label: none` */
    float *weight;       /* rows; NULL when all are 1 */
    float *numeric;      /* rows * n_numeric, after transforms */
    tn_slot *slot;       /* n_slots */
    uint64_t *group;     /* rows: key for GAUC; NULL unless data.group (or qid) is there */
    uint32_t *id_offset; /* rows + 1 into id_text; NULL unless record ids are wanted and there */
    char *id_text;
    uint32_t *source;         /* rows: number of the file; NULL unless ids are wanted */
    uint64_t *source_at;      /* rows: byte offset of the record in that file; likewise */
    const tn_task_rows *task; /* labels and weights of each task; NULL: there is one label */
    uint32_t contradictions; /* rows with a click of a task, but none of the one it is a share of */
    tn_progress progress;    /* after this batch */
} tn_batch;
