/* slot_ranges.h - "C{1..26}" in the names of slots means C1, C2 .. C26.
 *
 *     slots:
 *       - {name: "I{1..13}", type: int}       13 items; {01..13} keeps the zeros
 *       - {name: "a{1..3}", column: "x{1..3}"}   other texts with the same braces follow
 */
#pragma once

#include "config/diag.h"
#include "config/tree.h"

enum {
    TN_NAME_RANGE_MAX = 10000,       /* names of one range */
    TN_NAME_RANGE_NODES_MAX = 200000 /* values that all ranges of a file may make */
};

/* The same configuration with the ranges of `slots` written out: the names of a list's items, or
 * the keys of a map. */
tn_tree *tn_slot_ranges_expand(tn_arena *arena, tn_diag *diag, const tn_tree *config) TN_MUST_USE;
