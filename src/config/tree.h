/* tree.h - a configuration as a tree of texts that know their position.
 *
 * YAML, environment and command line all end up in one tree; option tables (config/field.h) read
 * it. Scalars stay text: their type is the option's, never a guess of the parser.
 *
 *     data:                        map
 *       train: [a.tsv, b.tsv]      "train": list of two scalars
 *       label: ~                   "label": null
 *
 * A tree lives in an arena, is built by one thread and then only read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_arena tn_arena; /* base/core/arena.h */
typedef struct tn_text tn_text;   /* base/core/text.h */

typedef enum tn_tree_kind { TN_TREE_NULL, TN_TREE_SCALAR, TN_TREE_LIST, TN_TREE_MAP } tn_tree_kind;

/* Source of a text. line 0: no place in a file ("command line", "TNET_TRAIN__EPOCHS", "preset
 * criteo"). */
typedef struct tn_origin {
    const char *source;
    uint32_t line;    /* from 1 */
    uint32_t col;     /* in bytes, from 1 */
    const char *text; /* the whole line, for the message; NULL when there is none */
} tn_origin;

typedef struct tn_tree tn_tree;
struct tn_tree {
    tn_tree_kind kind;
    const char *key;  /* in a map: this member's name; NULL elsewhere */
    tn_origin key_at; /* position of the name */
    tn_origin at;     /* position of the value */
    const char *text; /* scalar: its text */
    bool quoted;      /* scalar in quotes: '~' is a text then */
    tn_tree *first;   /* first item of a list or map */
    tn_tree *last;
    tn_tree *next; /* sibling */
};

tn_tree *tn_tree_new(tn_arena *arena, tn_tree_kind kind, tn_origin at);
tn_tree *tn_tree_scalar(tn_arena *arena, const char *text, tn_origin at); /* copies text */
tn_tree *tn_tree_copy(tn_arena *arena, const tn_tree *tree);              /* deep */
/* Returns a copy of `size` bytes, ended by NUL. */
char *tn_tree_text(tn_arena *arena, const char *bytes, size_t size);

/* Appends to a list or a map; in a map `item->key` must be set. */
void tn_tree_append(tn_tree *parent, tn_tree *item);
/* Adds or replaces member `key` (copied), which keeps its place in the order. `value` must not be
 * part of a tree yet; it is no longer used where it replaced another. */
void tn_tree_put(tn_arena *arena, tn_tree *map, const char *key, tn_tree *value);
/* Returns {key: tree}, in the place of `tree`. */
tn_tree *tn_tree_wrap(tn_arena *arena, const char *key, const tn_tree *tree);

const tn_tree *tn_tree_get(const tn_tree *map, const char *key);  /* NULL: none, or not a map */
const tn_tree *tn_tree_at(const tn_tree *tree, const char *path); /* "train.optimizer.lr" */
uint32_t tn_tree_count(const tn_tree *tree);                      /* children */
/* Returns the place of the value at `path`, or "configuration" if it is not there. */
const tn_origin *tn_tree_place(const tn_tree *tree, const char *path);
bool tn_tree_is_null(const tn_tree *tree); /* NULL, or '~', or empty */

/* Lays `over` on top of `under`, member by member; scalars and lists are replaced. Returns a new
 * tree whose nodes keep their origins. */
tn_tree *tn_tree_merge(tn_arena *arena, const tn_tree *under, const tn_tree *over);
/* Returns the position of a merged map: in the later of the two files. */
tn_origin tn_tree_later(const tn_origin *under, const tn_origin *over);

/* Print in flow style, on one line without its end; and one text, in quotes when it needs them. */
void tn_tree_print_flow(tn_text *out, const tn_tree *tree);
void tn_tree_print_scalar(tn_text *out, const char *text);

/* The few words of YAML in which option tables write their defaults:
 *
 *     adam      ~      [auc, logloss]      {type: adam, lr: 1e-3}      {uniform: [-0.01, 0.01]}
 *
 * For text that is part of the program: a fault in it is a bug. Users' YAML is read by yaml.h.
 * Every node has the origin {source}. */
tn_tree *tn_tree_read_flow(tn_arena *arena, const char *text, const char *source);
