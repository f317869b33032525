/* sequences.h - the section `sequences`: histories whose positions a model attends to.
 *
 *     slots:
 *       - {name: item}
 *       - {name: cate}
 *       - {name: hist_item, list: "|", share: item}
 *       - {name: hist_cate, list: "|", share: cate}
 *     sequences:
 *       clicks: {slots: [hist_item, hist_cate], target: [item, cate], max_len: 50, keep: last}
 *
 * Slots of a sequence are lists of one length in each row, cut together. `target` pairs slots by
 * place with the first of them, for models that weigh a history by what is looked at (din, bst).
 * A sequence that no input of the model names is pooled as its slots say.
 */
#pragma once

#include "config/values.h"

typedef struct tn_sequence_opts {
    const char *name;
    tn_strs slots;
    tn_strs target; /* n 0: none */
    uint32_t max_len;
    uint32_t keep;   /* TN_KEEP_x of io/schema/dataopts.h */
    uint32_t uneven; /* TN_UNEVEN_x */
    const tn_origin *at;
} tn_sequence_opts;

typedef struct tn_sequences {
    uint32_t n;
    const tn_sequence_opts *item;
} tn_sequences;

/* Reads the section `sequences` of a whole configuration; without one there are none. Faults go to
 * b->diag, each once. Lives in b->arena. */
tn_sequences tn_sequences_read(const tn_tree *section, const tn_binder *b);

/* Returns the configuration with what its sequences say of their slots laid over `slots`: sequence,
 * max_len, keep and uneven. Without sequences it is the same tree. NULL: faults in b->diag. */
const tn_tree *tn_sequences_apply(const tn_tree *config, const tn_binder *b);
