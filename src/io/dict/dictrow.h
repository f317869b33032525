/* dictrow.h - one row as it lies in a table of a dictionary; between the files of the writer only.
 * Any thread. */
#ifndef TN_IO_DICTROW_H
#define TN_IO_DICTROW_H

#include "io/dict/dictplan.h"

/* Writes the t->stride bytes at `row`; zeros where the entry has nothing. TN_E_CKPT: a weight is
 * not finite. */
tn_status tn_dict_row_put(const tn_dict_spec *spec, const tn_dict_plan_table *t,
                          const tn_dict_entry *e, char *row, tn_error *err) TN_MUST_USE;

#endif
