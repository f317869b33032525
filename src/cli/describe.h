/* describe.h - a program in its own words: help, manual page, completion, schema, documentation.
 *
 * All of it is made from the tables of cli/options.h and config/field.h.
 */
#ifndef TN_CLI_DESCRIBE_H
#define TN_CLI_DESCRIBE_H

#include "base/core/text.h"
#include "cli/options.h"

void tn_describe_help(tn_text *out, const tn_program *p);
void tn_describe_man(tn_text *out, const tn_program *p);        /* roff, section 1 */
void tn_describe_completion(tn_text *out, const tn_program *p); /* for bash */
void tn_describe_version(tn_text *out, const tn_program *p);
void tn_describe_schema(tn_text *out, const tn_program *p);
void tn_describe_config_doc(tn_text *out, const tn_program *p); /* docs/config.md */

/* Prints the answer that the options ask for on stdout. False: they ask for none. */
bool tn_describe_answer(const tn_program *p, const tn_options *options);

#endif
