/* begun.h - what a run began with: what was taken, what was made new, what was left, item by item.
 *
 *     tn_begun_add(&b, "slot", "user", TN_BEGUN_TAKEN, "1234 rows of 'member'");
 *
 *     slot       user       taken  1234 rows of 'member'      b.table, a line each, for people
 *     slot       city       new    not in the checkpoint
 *     {"what":"slot","name":"user","how":"taken","note":".."}      b.json, for summary.json
 *
 * Zeroed at first; tn_begun_done frees it. One thread.
 */
#pragma once

#include "base/core/text.h"

typedef enum tn_begun_how { TN_BEGUN_TAKEN, TN_BEGUN_NEW, TN_BEGUN_LEFT } tn_begun_how;

typedef struct tn_begun {
    tn_text from;  /* a sentence for people; empty: it began with nothing */
    tn_text table; /* lines */
    tn_text json;  /* items of a list */
    tn_text fresh; /* parameters that are made new: "\nname\nname\n" */
    uint32_t count[TN_BEGUN_LEFT + 1];
} tn_begun;

/* `b` may be NULL: nobody wants to know. */
void tn_begun_add(tn_begun *b, const char *what, const char *name, tn_begun_how how,
                  const char *note, ...) TN_PRINTF(5, 6);

/* "begins with the weights of 'runs/x/ckpt-3': 5 taken, 1 new, 0 left", appended. */
void tn_begun_say(const tn_begun *b, tn_text *out);
void tn_begun_done(tn_begun *b);
