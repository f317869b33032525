/* diag.h - all faults of a configuration, collected, in the style of a compiler.
 *
 *     configs/a.yaml:14:3: error: unknown key 'unitss' (did you mean 'units'?)
 *       unitss: 256
 *       ^~~~~~
 *
 * Binding goes on after a fault so that the user sees every one at once. Owned
 * by the caller; one thread. `at` may be NULL: the fault has no place. An origin
 * without a line ("command line") is shown by its name alone.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"

typedef struct tn_origin tn_origin; /* config/tree.h */

enum { TN_DIAG_MAX = 50 }; /* more are counted, not kept */

typedef struct tn_diag {
    uint32_t n_errors;
    tn_text text;  /* every message, ready to print */
    bool repeated; /* the last one was there already: it is printed and counted once */
} tn_diag;

void tn_diag_done(tn_diag *d);
void tn_diag_error(tn_diag *d, const tn_origin *at, const char *fmt, ...) TN_PRINTF(3, 4);
void tn_diag_hint(tn_diag *d, const char *fmt, ...) TN_PRINTF(2, 3); /* "hint: ..", last message */

/* Returns TN_OK without errors; else TN_E_CONFIG with "n errors in the configuration". The program
 * prints d->text before it ends. */
tn_status tn_diag_check(const tn_diag *d, tn_error *err) TN_MUST_USE;

/* Returns the best "did you mean" among `n` names for `word`, or NULL when none is near: by edits
 * (insert, drop, replace, swap of neighbours); a change of case is free. */
const char *tn_nearest(const char *word, const char *const *names, uint32_t n);
/* Adds "unknown <what> '<word>'", with the nearest name or else with all of them when they are
 * few. */
void tn_diag_unknown(tn_diag *d, const tn_origin *at, const char *what, const char *word,
                     const char *const *names, uint32_t n);
