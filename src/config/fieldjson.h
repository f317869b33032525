/* fieldjson.h - options as JSON and back: how model.json carries options of the configuration.
 *
 *     struct + table -> JSON member -> ... -> tree -> tn_fields_bind -> the same struct
 */
#pragma once

typedef struct tn_arena tn_arena; /* base/core/arena.h */
typedef struct tn_field tn_field; /* config/values.h */
typedef struct tn_json tn_json;   /* base/codec/json.h */
typedef struct tn_text tn_text;   /* base/core/text.h */
typedef struct tn_tree tn_tree;   /* config/tree.h */

/* Appends member f->key with the value that it has in *opts. */
void tn_field_json(tn_text *out, const tn_field *f, const void *opts);

/* Does the same for all rows whose value is another one than in *usual, but for keys in `without`,
 * which ends with NULL. */
void tn_fields_json_changed(tn_text *out, const tn_field *fields, const void *opts,
                            const void *usual, const char *const *without);

/* Reads such JSON back. `source` names the file in messages; it and `value` must outlive the
 * tree. */
tn_tree *tn_json_tree(tn_arena *arena, const tn_json *value, const char *source);
