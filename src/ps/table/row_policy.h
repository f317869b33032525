/* row_policy.h - decides about rows beside their training: which keys get one, what nets read of
 * it, how it counts, when it leaves.
 *
 * A policy is a constant with options and a hook for each moment at which it acts:
 *
 *     moment   a hook is asked about              it returns those that
 *     CREATE   keys without a whole row           may have one in this step
 *     READ     rows that a net or a push reads    hide their segments that wait
 *     PUSH     rows that a push is to train       (nothing: 0)
 *     SWEEP    rows of one partition              leave
 *
 * A hook gets up to 64 keys at once, and sets of keys are words: bit i is key i. So a policy costs
 * one call per run of keys, and a hook that the options of no group need is not called at all.
 *
 * CREATE comes in every pull, about keys of groups with segments that wait (base/keys/record.h):
 * those without a row and those whose row waits. A key whose hooks all agree gets a whole row, or
 * its row becomes whole; else its row waits, or it has none.
 * READ comes after the weights of a pull or a peek were copied to the batch. The hook may write
 * floats of its own to `to`, at at[i]. Hidden segments read as zeros. A push asks as well, with
 * `to` NULL, since it does not train them.
 * PUSH comes before the gradients. The hook writes show, click and day into the headers of rows;
 * a key without a row has NULL in row[].
 * SWEEP comes for all rows of a partition, whole or waiting, and then once without any (n 0), for
 * what a policy keeps per partition. A row leaves if one hook says so.
 *
 * Hooks run on any thread of the team and hold the locks of all partitions that they see. They take
 * no lock, do not wait, allocate nothing and cannot fail. What they decide depends on the options,
 * the row, the step and the day alone, so that threads and order change no bit. What they keep
 * beside the header of a row must come back from checkpoints: that is the key filter of a partition
 * (ps/table/key_filter.h), which tn_cut_filter hands out.
 *
 * Options are set once per share group, by `embedding.NAME` and `slots.SLOT.NAME`. A policy without
 * options reads those of another. docs/extending.md shows how to add a policy.
 */
#pragma once

#include "config/values.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_layout tn_layout; /* base/keys/record.h */
typedef struct tn_row tn_row;       /* ps/table/row.h */
typedef struct tn_table tn_table;   /* ps/table/table.h */

enum {
#define TN_ROW_POLICY(name) TN_POLICY_##name,
#include "ps/table/row_policies.def"
#undef TN_ROW_POLICY
    TN_ROW_POLICIES
};

/* Options of each policy: a struct for each share group, side by side; NULL: those with which it
 * does nothing. */
typedef struct tn_row_options {
    const void *of[TN_ROW_POLICIES];
} tn_row_options;

typedef enum tn_row_moment {
    TN_ON_CREATE,
    TN_ON_READ,
    TN_ON_PUSH,
    TN_ON_SWEEP,
    TN_ROW_MOMENTS
} tn_row_moment;

/* A run of keys with their rows. Members of other moments are NULL or 0. */
typedef struct tn_policy_rows {
    tn_table *t;
    uint32_t n;                   /* At most 64. */
    uint64_t asked;               /* CREATE: the keys in question. */
    const uint16_t *group;        /* The share group of each key. */
    tn_row *const *row;           /* NULL for a key without a row. */
    const uint64_t *key;          /* At all moments but SWEEP. */
    const uint32_t *at;           /* READ: the place of each key's floats in `to`. */
    float *to;                    /* READ: the rows of the batch, or NULL. */
    const uint32_t *show, *click; /* PUSH: occurrences in the batch, and those with a click. */
    uint32_t seen;                /* PUSH: stamp and day that a row gets (ps/table/row.h). */
    uint32_t day;                 /* PUSH, SWEEP. */
    uint32_t partition;           /* SWEEP. */
} tn_policy_rows;

typedef uint64_t tn_row_hook(const tn_policy_rows *rows);

/* Takes what is wrong with the options of a group. */
typedef void tn_policy_refuse(void *arg, uint32_t group, const char *what);

typedef struct tn_row_policy {
    const char *name;
    const tn_field *options; /* TN_FIELD_END_OF the options of a group; NULL: it has none. */
    tn_row_hook *on[TN_ROW_MOMENTS];

    /* Returns the moments at which the options of a group need the hooks: bits 1 << TN_ON_X. */
    uint32_t (*acts)(const tn_row_options *all, const tn_layout *layout, uint32_t group);

    /* Whether keys of a group with these options wait for whole rows, and with which embedding
     * inputs (none named: all). NULL: they never do because of this policy. */
    bool (*waits)(const void *options, tn_strs *inputs);

    /* Refuses options that contradict each other, or the layout, of a policy that has some.
     * missing_init[g]: evaluations read keys without a row as they would begin. NULL: nothing ever
     * is wrong. */
    void (*check)(const tn_row_options *all, const tn_layout *layout, const bool *missing_init,
                  tn_policy_refuse *refuse, void *arg);
} tn_row_policy;

#define TN_ROW_POLICY(name)                                                                        \
    extern const tn_row_policy tn_row_policy_##name;                                               \
    extern const tn_field tn_row_options_##name[]; /* if it has any */
#include "ps/table/row_policies.def"
#undef TN_ROW_POLICY

extern const tn_row_policy *const tn_row_policies[TN_ROW_POLICIES]; /* in the order of the list */

/* Returns the moments at which any group needs the hooks of a policy. `all` may be NULL. */
uint32_t tn_row_policy_moments(const tn_row_policy *policy, const tn_row_options *all,
                               const tn_layout *layout);
