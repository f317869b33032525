/* dictrows.h - rows held in memory as the source of a dictionary, for tests. */
#pragma once

#include "dict/dictwrite.h"

enum { TN_DICTROWS_MAX = 8192, TN_DICTROWS_WIDTH = 24, TN_DICTROWS_PIECES = 7 };

typedef struct tn_dictrows {
    uint32_t n;
    tn_dict_entry row[TN_DICTROWS_MAX];
    float values[TN_DICTROWS_MAX][TN_DICTROWS_WIDTH];
} tn_dictrows;

/* Adds a row; `values` NULL: made from the key. */
void tn_dictrows_add(tn_dictrows *r, const tn_layout *layout, uint16_t group, uint64_t sign,
                     uint16_t present, const float *values);
/* By key; call once all are there. */
void tn_dictrows_sort(tn_dictrows *r);
tn_dict_source tn_dictrows_source(tn_dictrows *r);

/* Two groups, user and item, both with wide (1) and deep (2). */
extern const tn_layout tn_dictrows_layout;
tn_dict_spec tn_dictrows_spec(void); /* of the golden vector, without a JSON text but {} */
