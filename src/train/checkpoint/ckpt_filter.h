/* ckpt_filter.h - counts of keys without a row in checkpoints: admit-0000-0511.safetensors.
 *
 *     TN_TRY(tn_filter_pieces_new(&p, cut, partitions, err));         NULL: there is no filter
 *     while ((status = tn_filter_pieces_next(p, &doc, &which, err)) == TN_OK)
 *         write doc, the counts of the partitions `which`
 *     tn_filter_pieces_free(p);
 *
 * Where `admission.filter` is bloom, a file has a tensor of bytes for each partition, "p586": its
 * lines as they lie in memory (ps/table/key_filter.h), or those that are not all 0, each after its
 * number. They are written whole, also beside a delta. Each rank writes those of its own
 * partitions; any number of ranks reads them.
 */
#pragma once

#include "base/file/safetensors.h"
#include "base/thread/range.h"

typedef struct tn_cut tn_cut;       /* ps/table/table_snapshot.h */
typedef struct tn_worker tn_worker; /* train/step/worker.h */

typedef struct tn_filter_pieces tn_filter_pieces;

tn_status tn_filter_pieces_new(tn_filter_pieces **out, tn_cut *cut, tn_range partitions,
                               tn_error *err) TN_MUST_USE;
void tn_filter_pieces_free(tn_filter_pieces *p); /* NULL is fine */

/* The next piece of some 8 MB at most, lent until the next call; nothing was counted in partitions
 * that are left out. TN_END: there is none. */
tn_status tn_filter_pieces_next(tn_filter_pieces *p, tn_safetensors *doc, tn_range *which,
                                tn_error *err) TN_MUST_USE;

/* Counts of the worker's own partitions. Of a filter of another size they are left, with a warning:
 * keys that wait begin to count anew. TN_E_CKPT. */
tn_status tn_ckpt_read_filter(const char *path, tn_worker *w, tn_error *err) TN_MUST_USE;
