/* fieldtext.h - what option tables say about themselves, for people and for editors.
 *
 *     tn_fields_print      the resolved configuration: --print-config, config.yaml, the hash
 *     tn_fields_schema     a JSON schema: completion and checks in editors
 *     tn_fields_markdown   docs/config.md
 *     tn_fields_help       a line per option: --help and the man page
 *     tn_fields_paths      every dotted path: completion in the shell
 *
 * All append to `out`, whose check tells whether there was room.
 */
#ifndef TN_CONFIG_FIELDTEXT_H
#define TN_CONFIG_FIELDTEXT_H

#include <stdbool.h>

typedef struct tn_field tn_field; /* config/values.h */
typedef struct tn_text tn_text;   /* base/core/text.h */
typedef struct tn_tree tn_tree;   /* config/tree.h */

typedef struct tn_print_opts {
    bool sources;               /* every value with where it comes from, as a comment */
    const char *const *without; /* dotted paths that are left out, NULL-terminated; NULL: none */
} tn_print_opts;

/* Every option with its value from `tree` or its default, as YAML in the order of the tables. An
 * item of a list of tables is one line that holds what is not default. Reading it back gives the
 * same configuration, and the same text when printed again. */
void tn_fields_print(tn_text *out, const tn_field *fields, const tn_tree *tree,
                     const tn_print_opts *opts);

void tn_fields_schema(tn_text *out, const tn_field *fields, const char *title);
void tn_fields_markdown(tn_text *out, const tn_field *fields);
void tn_fields_help(tn_text *out, const tn_field *fields);
void tn_fields_paths(tn_text *out, const tn_field *fields);

#endif
