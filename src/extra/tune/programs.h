/* programs.h - programs that run side by side, and what they print.
 *
 *     tn_programs p;
 *     TN_TRY(tn_programs_start(&p, id, words, err));                    words[0] is the file
 *     TN_TRY(tn_programs_wait(&p, stop, until, &ended, err));           the next that ends
 *     .. ended.id, ended.code, tn_text_str(&ended.out) ..
 *     tn_text_done(&ended.out);
 *     tn_programs_end(&p);                                              SIGTERM, and waits
 *
 * Their standard input is empty; what they write to stdout is kept, of stderr the last kilobytes.
 * When this process dies, they get SIGTERM. For the main thread of a program.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { TN_PROGRAMS_MAX = 256 };

typedef struct tn_program_run {
    uint32_t id;
    pid_t pid;       /* 0: the place is free */
    int pipe[2];     /* its stdout and stderr; -1: at their end */
    tn_text said[2]; /* their bytes so far */
} tn_program_run;

typedef struct tn_programs {
    uint32_t running;
    uint32_t n; /* places that were in use so far */
    tn_program_run run[TN_PROGRAMS_MAX];
} tn_programs;

typedef struct tn_program_end {
    uint32_t id;
    int code;         /* its exit code; 128 + the signal that ended it */
    tn_text out;      /* its stdout; to be freed */
    char reason[512]; /* its first line on stderr that names an error, else its last line */
} tn_program_end;

/* Starts the program of that file with these words, NULL-terminated. TN_E_IO. */
tn_status tn_programs_start(tn_programs *p, uint32_t id, char *const *words,
                            tn_error *err) TN_MUST_USE;

/* Waits until one of them has ended, which frees its place. TN_E_STOPPED: *stop turned true, or it
 * is `until` of tn_clock_s, before one did. One must run. */
tn_status tn_programs_wait(tn_programs *p, const atomic_bool *stop, double until,
                           tn_program_end *out, tn_error *err) TN_MUST_USE;

/* Asks all to end, as a terminal does, and waits for them. */
void tn_programs_end(tn_programs *p);
