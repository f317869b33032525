/* dict_deltas.h - a dictionary and the deltas on top of it, looked up as one.
 *
 *     delta of c:  changed rows, removed keys      newest: asked first
 *     delta of b:  changed rows, removed keys      what one says, those below are not asked
 *     full    a:   all rows
 *
 * Each delta names the model below it. All layers must have the same groups and segments in the
 * same order, so a number means the same in each. Owns its layers; any thread may look up.
 */
#pragma once

#include "base/core/bytes.h"
#include "dict/dict.h"

typedef struct tn_arena tn_arena; /* base/core/arena.h */

enum { TN_DICT_DELTAS_MAX = 8 };

typedef struct tn_dict_stack {
    uint32_t n;
    tn_dict *layer[TN_DICT_DELTAS_MAX + 1]; /* newest first; the last is a full one */
} tn_dict_stack;

/* Opens `<dir>/<name>` and, while that is a delta, `<dir>/../<id of its base>/<name>`. TN_E_CKPT: a
 * layer is missing, damaged or of another model. On failure *out is empty. */
tn_status tn_dict_stack_open(tn_dict_stack *out, const char *dir, const char *name,
                             tn_verify verify, tn_error *err) TN_MUST_USE;
void tn_dict_stack_close(tn_dict_stack *s);

/* Finds "segments" in a dictionary's JSON: its text, lent by the dictionary; "[]" when there are
 * none. TN_E_CKPT: that is no JSON. */
tn_status tn_dict_segment_names(const tn_dict *d, tn_arena *arena, tn_bytes *out,
                                tn_error *err) TN_MUST_USE;

/* Finds rows as tn_dict_find_all does. A removed key has a table and no `at`. */
tn_status tn_dict_stack_find(const tn_dict_stack *s, uint32_t n, const tn_dict_query *query,
                             tn_dict_row *out, tn_error *err) TN_MUST_USE;

/* A key that is there. */
typedef struct tn_dict_live {
    uint64_t key;
    uint32_t group;
    uint32_t layer; /* the layer of its newest row */
} tn_dict_live;
/* Lists every key that is there once, ascending by (key, group). TN_E_CKPT: some layer does not
 * store groups. */
tn_status tn_dict_stack_list(const tn_dict_stack *s, tn_dict_live **out, uint64_t *n,
                             tn_error *err) TN_MUST_USE; /* tn_free */
