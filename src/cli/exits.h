/* exits.h - the one place that prints failures; it ends a program with the documented exit code.
 *
 *     0 done        3 config       6 peer        9 diverged
 *     1 internal    4 data         7 memory     75 stopped, can go on
 *     2 usage       5 checkpoint   8 storage   130 second SIGINT
 *
 *     return tn_exit_with("tnet-train", &err);
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_diag tn_diag; /* config/diag.h */
typedef struct tn_text tn_text; /* base/core/text.h */

/* "tnet-train: error: <text>" for stderr, with peers "tnet-train: rank 2: error: <text>", where the
 * text need not name that rank again; a text that begins with its own place and severity
 * ("a.yaml:3:1: error: ..") stays as it is. */
void tn_exit_message(tn_text *out, const char *program, const tn_error *err);

/* Prints the message of a failure on stderr, once; returns the exit code. */
int tn_exit_with(const char *program, const tn_error *err);

/* Prints the faults that `diag` collected on stderr, and their number, and returns code 3; 0 when
 * there are none. */
int tn_exit_diag(const char *program, const tn_diag *diag);

/* Ends main: results that could not be written to stdout are a failure, which is reported unless
 * the reader of a pipe has gone, as `head` does. */
int tn_exit_done(const char *program, int code);
