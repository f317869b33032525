/* sign_text.h - signs as people write them, and the words of the hashes of slices.
 *
 *     tn_sign_text(spec, sign, &text);                        -1, 68fd1e64, ln2 5, 3c7bb6a3f0d2e519
 *
 *     tn_sign_words *words = NULL;
 *     TN_TRY(tn_sign_words_find(&words, &(tn_sign_search){..}, err));
 *     tn_sign_word(words, 0, sign);                           "Portugal", or NULL
 *     tn_sign_words_free(words);
 *
 * A hash has no way back, and keeping every word of the data would be more than the metrics take.
 * So the data is read once more, until a word is found for each value that is shown: these are the
 * most frequent ones and are near the front as a rule. What is not among the first
 * TN_SIGN_WORDS_BYTES, or comes from what cannot be read twice, stays a hash.
 */
#pragma once

#include "train/eval/evaluate.h"

typedef struct tn_slot_spec tn_slot_spec; /* io/schema/schema.h */

#define TN_SIGN_WORDS_BYTES (UINT64_C(1) << 30)

enum { TN_SIGN_WORD_MAX = 256 }; /* bytes that are kept of a word */

/* Appends it; `spec` NULL: of no slot, a plain number. */
void tn_sign_text(const tn_slot_spec *spec, uint64_t sign, tn_text *out);

typedef struct tn_sign_words tn_sign_words;

typedef struct tn_sign_search {
    const tn_schema *schema;
    const tn_strs *paths;        /* files of the data that was evaluated */
    const tn_strs *slots;        /* eval.slices */
    const tn_evaluation *result; /* with a slice for each */
    uint32_t most;               /* the largest values of a slot that are shown */
    const atomic_bool *stop;     /* true: with what was found; NULL: never */
} tn_sign_search;

/* TN_E_MEMORY. Where nothing is hashed nothing is read. */
tn_status tn_sign_words_find(tn_sign_words **out, const tn_sign_search *in,
                             tn_error *err) TN_MUST_USE;
void tn_sign_words_free(tn_sign_words *words); /* NULL is fine */

/* Returns the word of a value of slot i of eval.slices, lent; NULL: not known. `words` may be NULL.
 */
const char *tn_sign_word(const tn_sign_words *words, uint32_t i, uint64_t sign);
