/* yaml.h - YAML text to a tree whose nodes know their file, line and column.
 *
 *     tn_tree *tree = tn_yaml_read_file(arena, &diag, "configs/a.yaml");
 *     if (tree == NULL) ...                   what is wrong is in diag, with its place
 *
 * Read is what a configuration needs: one document of maps, lists and texts, with
 * anchors and aliases. Refused: duplicate keys, tags, merge keys ("<<"), keys that
 * are not plain words, directives, several documents. An empty text and "~" are
 * null; every other scalar is text, whatever YAML would guess it to be.
 *
 * Hostile text is the normal case; everything that grows has a limit below. Any
 * thread may call; trees live in `arena`.
 */
#pragma once

#include "base/core/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_arena tn_arena; /* base/core/arena.h */
typedef struct tn_diag tn_diag;   /* config/diag.h */
typedef struct tn_tree tn_tree;   /* config/tree.h */

enum {
    TN_YAML_BYTES_MAX = 1 << 20,
    TN_YAML_DEPTH_MAX = 64,
    TN_YAML_NODES_MAX = 100000,
    TN_YAML_ALIAS_NODES_MAX = 10000, /* made by aliases: a billion laughs end here */
    TN_YAML_ANCHORS_MAX = 1000,
    TN_YAML_MEMBERS_MAX = 2000, /* members of one map */
    TN_YAML_KEY_MAX = 255,      /* bytes */
};

typedef struct tn_yaml_in {
    const char *text; /* copied */
    size_t size;
    const char *source; /* name of the text in messages; must outlive the tree */
    bool lines;         /* nodes have lines and columns; else only the source, and these two: */
    const char *shown;  /* line that messages show, in which the text begins; NULL: none */
    uint32_t col;       /* column in `shown` at which the text begins, from 1; 0: none */
} tn_yaml_in;

/* Reads a text. Returns NULL after a report. Duplicate keys are reported too, the first one
 * stays. */
tn_tree *tn_yaml_read(tn_arena *arena, tn_diag *diag, const tn_yaml_in *in) TN_MUST_USE;
tn_tree *tn_yaml_read_file(tn_arena *arena, tn_diag *diag, const char *path) TN_MUST_USE;
