/* error.h - how TNet says that something went wrong.
 *
 * Three kinds of wrong, three mechanisms, never mixed:
 *
 *   the outside world failed   tn_status + tn_error   bad file, bad YAML, dead peer
 *   the program is wrong       TN_ASSERT()            aborts; it is a bug in TNet
 *   memory ran out             see alloc.h            a failure, or the end
 *
 * A function that can fail for an outside reason returns tn_status and takes a tn_error pointer
 * last. It fills the error exactly once, where the fault is seen; callers only add context on the
 * way up. Libraries never print: the programs in src/cli/ do, once, at the top.
 *
 *     tn_error err = {0};
 *     if (tn_reader_open(&r, &opts, &err) != TN_OK)
 *         return tn_exit_with(&err);
 *
 * Message style: lower case, no full stop, fault first, subject in quotes:
 * "cannot open 'a.tfrecord': No such file or directory".
 */
#pragma once

#include "base/core/compiler.h"

/* tn_exit_code turns these into the documented exit codes, given here in brackets. */
typedef enum tn_status {
    TN_OK = 0,     /* [0] */
    TN_END,        /* a stream ended; not a failure, carries no message */
    TN_E_USAGE,    /* [2] the command line makes no sense */
    TN_E_CONFIG,   /* [3] the user's YAML or an override is wrong */
    TN_E_DATA,     /* [4] input is missing or does not follow its format */
    TN_E_CKPT,     /* [5] a checkpoint or an export is missing, damaged or does not fit */
    TN_E_PEER,     /* [6] a peer or the network */
    TN_E_MEMORY,   /* [7] tn_try_alloc found none */
    TN_E_IO,       /* [8] the operating system refused to read or write */
    TN_E_DIVERGED, /* [9] a loss or a gradient is not finite */
    TN_E_LIMIT,    /* [4] a size is over a stated limit */
    TN_E_STOPPED,  /* [75] a signal asked to stop; everything is saved */
} tn_status;

typedef struct tn_error {
    tn_status code;
    char text[1500]; /* may hold several lines: the source line and a caret, "hint: ..." */
} tn_error;

/* Fills *err (which may be NULL) and returns `code`, so that failing is one line:
 *     return tn_fail(err, TN_E_IO, "cannot open '%s': %s", path,
 *                    strerrordesc_np(errno)); */
tn_status tn_fail(tn_error *err, tn_status code, const char *fmt, ...) TN_PRINTF(3, 4);

/* Returns the exit code of a program that ends with this status. */
int tn_exit_code(tn_status status);

/* Puts "<context>: " in front of the text. For callers that know more than the callee. */
void tn_error_context(tn_error *err, const char *fmt, ...) TN_PRINTF(2, 3);

/* Makes a text from elsewhere safe to print, in place: control characters, which steer terminals,
 * become '?', but for those of `but`. Every error and log line is cleaned so, but for line ends and
 * tabs. Whoever puts a text from outside into one removes its line ends first, so that it forges no
 * second line. */
void tn_make_printable(char *text, const char *but);

/* Hands a failure on to the caller. The only control-flow macro in the project. */
#define TN_TRY(expr)                                                                               \
    do {                                                                                           \
        tn_status try_status_ = (expr);                                                            \
        if (try_status_ != TN_OK) {                                                                \
            return try_status_;                                                                    \
        }                                                                                          \
    } while (0)

/* States what must be true unless TNet itself has a bug. On in every build. */
#define TN_ASSERT(cond) ((cond) ? (void)0 : tn_assert_failed(__FILE__, __LINE__, __func__, #cond))
_Noreturn void tn_assert_failed(const char *file, int line, const char *func, const char *cond);
