/* kept_rows.h - rows that are kept one by one, for exact ranks, groups and resampling.
 *
 * 24 bytes each. Rows are sorted in place, when an order is asked for, and stay so until the next
 * add: the same rows give the same order of (group, score) in whichever order they were added.
 * Limited to 2^32 - 1 rows and by memory.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TN_KEPT_ONE = 1 << 24 }; /* weight 1 of a kept row, as an integer */

typedef struct tn_kept_row {
    uint64_t group;
    uint32_t key; /* ascends with the logit; see tn_kept_logit */
    uint32_t row; /* its number: the first one added has 0 */
    float label;
    float weight;
} tn_kept_row;

typedef enum tn_kept_order { TN_KEPT_UNSORTED, TN_KEPT_BY_SCORE, TN_KEPT_BY_GROUP } tn_kept_order;

typedef struct tn_kept_rows {
    tn_kept_row *row; /* owned */
    size_t n;
    size_t capacity;
    tn_kept_order order;
} tn_kept_rows;

tn_kept_rows *tn_kept_new(void);
void tn_kept_free(tn_kept_rows *k); /* NULL is fine */

/* Makes room for n more. */
tn_status tn_kept_reserve(tn_kept_rows *k, size_t n, tn_error *err) TN_MUST_USE;
/* Adds a row for which room was made. `row.row` is filled in, counting on. */
void tn_kept_add(tn_kept_rows *k, tn_kept_row row);

/* Returns the rows in an order; lent until the next add, clear or sort. */
const tn_kept_row *tn_kept_sorted(tn_kept_rows *k, tn_kept_order order);

uint32_t tn_kept_key(float logit); /* finite; -0 is 0 */
float tn_kept_logit(uint32_t key);
uint64_t tn_kept_weight(float weight); /* rint(w * 2^24) */
