/* incoming_row.h - rows from elsewhere, put together for a model's own table.
 *
 *     TN_TRY(tn_incoming_open(&in, w, err));
 *     for each row:
 *         tn_incoming_begin(&in, group);                      zeros
 *         place = tn_incoming_place(&in, group, segment);     where w and states go, in in.data
 *         tn_incoming_draw(&in, group, segment, key);         or weights as of a key that is new
 *         tn_incoming_fresh(&in, group, segment);             states of weights that come without
 *         TN_TRY(tn_incoming_put(&in, &row, err));            adds it, or replaces one
 *     tn_incoming_done(&in);
 *
 * Among peers a worker keeps the rows of its own partitions and passes over the others, so all of
 * them read the same files and refuse the same faults. One thread.
 */
#pragma once

#include "base/keys/record.h"
#include "ps/table/table.h"

typedef struct tn_worker tn_worker; /* train/step/worker.h */

typedef struct tn_incoming {
    tn_worker *w;
    float *data;    /* floats of one row, n_floats of its record */
    float *packed;  /* the same without the segments that it lacks */
    uint32_t *most; /* n_floats per record */
} tn_incoming;

tn_status tn_incoming_open(tn_incoming *in, tn_worker *w, tn_error *err) TN_MUST_USE;
void tn_incoming_done(tn_incoming *in);

uint16_t tn_incoming_all(const tn_incoming *in, uint32_t group); /* segments: present */
void tn_incoming_begin(const tn_incoming *in, uint32_t group);
tn_place_in_row tn_incoming_place(const tn_incoming *in, uint32_t group, uint32_t segment);
void tn_incoming_draw(const tn_incoming *in, uint32_t group, uint32_t segment, uint64_t key);
void tn_incoming_fresh(const tn_incoming *in, uint32_t group, uint32_t segment);

/* key, group, present, last_seen, show and click are read; the floats of segments that are present
 * are in->data, at their places. A row without segments that wait (base/keys/record.h) waits;
 * others that it lacks begin as in a new row. */
tn_status tn_incoming_put(const tn_incoming *in, const tn_row_view *row, tn_error *err) TN_MUST_USE;

/* Takes a row away, if there is one. No other thread may be inside the table. */
tn_status tn_incoming_remove(const tn_incoming *in, uint64_t key, uint32_t group,
                             tn_error *err) TN_MUST_USE;
