/* dict_passes.h - the walks over the source of a dictionary, pieces side by side on the team;
 * between the files of the writer only.
 *
 *     tn_dict_pass_notes   once: keys, groups and sets of all rows; rows of each set are counted
 *     tn_dict_pass_rows    once per table: its rows, in their order, behind what is written already
 *
 * TN_E_CKPT: keys do not ascend, a weight is not finite, or the source gave other rows than before.
 */
#ifndef TN_IO_DICT_PASSES_H
#define TN_IO_DICT_PASSES_H

#include "io/dict/dict_output.h"
#include "io/dict/dictnotes.h"
#include "io/dict/dictplan.h"

typedef struct tn_dict_writer {
    const tn_dict_spec *spec;
    const tn_dict_source *source;
    tn_dict_plan *plan;
    tn_dict_notes notes;
    tn_dict_out out;
    uint32_t table; /* whose data is written */
} tn_dict_writer;

tn_status tn_dict_pass_notes(tn_dict_writer *w, tn_error *err) TN_MUST_USE;
tn_status tn_dict_pass_rows(tn_dict_writer *w, tn_error *err) TN_MUST_USE;

/* The failure that is told when two walks do not agree. */
tn_status tn_dict_changed(tn_error *err) TN_MUST_USE;

#endif
