/* control_lists.h - what the structs of control_structs.h are made of, beside numbers and texts. */
#ifndef TN_CLUSTER_CONTROL_LISTS_H
#define TN_CLUSTER_CONTROL_LISTS_H

#include <stddef.h>
#include <stdint.h>

typedef struct tn_note_numbers {
    const uint64_t *at;
    size_t n;
} tn_note_numbers;

typedef struct tn_note_texts {
    const char *const *at;
    size_t n;
} tn_note_texts;

typedef struct tn_note_bytes {
    const char *at;
    size_t n;
} tn_note_bytes;

/* Parts of the ledger (cluster/ledger/ledger.h) in a rank's hands: lists of equal length. */
typedef struct tn_note_parts {
    tn_note_numbers part, attempt, position;
} tn_note_parts;

#endif
