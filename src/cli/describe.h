/* describe.h - what a program says of itself: the answers to --help, --man, --completion, --schema
 * and their like, from its tables.
 */
#pragma once

#include "cli/options.h"

/* The answer to a question, from the tables: for people, editors and shells. */
void tn_describe(tn_text *out, const tn_program *p, tn_answer answer);

/* Prints the answer that the options ask for on stdout. False: they ask for none. */
bool tn_describe_answer(const tn_program *p, const tn_options *options);
