/* tune_journal.h - what tnet-tune has found so far: DIR/journal.jsonl.
 *
 *     {"kind":"tune","goal":"valid.auc","method":"halving",..}         what is being tuned
 *     {"kind":"result","trial":3,"rung":0,"value":0.7812,..}           a trial was judged
 *
 * One line is one write. A line that a crash has cut is passed over, and what it said is found
 * again. One process at a time holds the folder. One thread.
 */
#pragma once

#include "base/core/error.h"
#include "config/values.h"

/* A trial was judged at the end of a rung. */
typedef struct tn_tune_result {
    uint32_t trial, rung;
    uint64_t step;       /* the model that was judged had learned so many steps */
    double value;        /* the goal; NAN: not defined, or the trial failed */
    bool ended;          /* the trial's run is over: later rungs change nothing */
    const char *failure; /* a sentence; NULL: none */
    tn_strs values;      /* "key=value" of each option that the trial changes */
} tn_tune_result;

typedef struct tn_tune_journal tn_tune_journal;

/* Gets the results that a journal has, in the order in which they were written. */
typedef struct tn_tune_reader {
    tn_arena *arena; /* texts of results live in it */
    tn_status (*see)(void *arg, const tn_tune_result *r, tn_error *err);
    void *arg;
} tn_tune_reader;

/* Takes the folder, which must exist, and reads the journal there. `head` is the first line, which
 * an earlier journal must have, too: TN_E_CKPT else. On failure *out is NULL. */
tn_status tn_tune_journal_open(tn_tune_journal **out, const char *dir, const char *head,
                               const tn_tune_reader *reader, tn_error *err) TN_MUST_USE;

tn_status tn_tune_journal_add(tn_tune_journal *j, const tn_tune_result *r,
                              tn_error *err) TN_MUST_USE;
void tn_tune_journal_close(tn_tune_journal *j); /* NULL is fine */
