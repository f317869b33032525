/* exportdelta.h - only the rows that changed since an export, and the keys that are gone.
 *
 *     rows of the table, ascending      a   b'  d
 *     keys of the base, ascending       a b   c              delta: b' changed, d new, c removed
 *
 * A row counts as changed when the dictionary would hold other bits of it.
 */
#ifndef TN_TRAIN_EXPORTDELTA_H
#define TN_TRAIN_EXPORTDELTA_H

#include "io/dict/dict_deltas.h"
#include "io/dict/dictwrite.h"

typedef struct tn_export_delta tn_export_delta;

/* `base` is the folder of an export, which may be a delta itself. `spec` gets its id and becomes
 * that of a delta; its layout and type are read. TN_E_CKPT: another model, or too many deltas. */
tn_status tn_export_delta_open(tn_export_delta **out, const char *base, tn_dict_spec *spec,
                               tn_error *err) TN_MUST_USE;
void tn_export_delta_close(tn_export_delta *d); /* NULL is fine */

/* What is left of `all`, which must outlive it and whose pieces are partitions of the key space. */
tn_dict_source tn_export_delta_source(tn_export_delta *d, const tn_dict_source *all);

#endif
