/* generate_params.h - how many planted parameters show in the rows that were written. */
#ifndef TN_IO_GENERATE_PARAMS_H
#define TN_IO_GENERATE_PARAMS_H

#include "io/synth/generate.h"

typedef struct tn_gen_params tn_gen_params;

/* On failure *out is NULL. The generator must outlive it. */
tn_status tn_gen_params_new(tn_gen_params **out, const tn_generator *g, tn_error *err) TN_MUST_USE;
void tn_gen_params_free(tn_gen_params *p); /* NULL is fine */

/* Any thread, at any time. */
void tn_gen_params_see(tn_gen_params *p, const tn_gen_row *row);

/* Parameters that occur, and those of them that the rows can tell apart; 0: not known. */
uint64_t tn_gen_params_count(const tn_gen_params *p, uint64_t *distinguishable);

#endif
