/* terminal.h - the one line that moves and the lines that stay, all on stderr.
 *
 * A moving line is wiped before a line that stays is written, whoever writes it. Any thread.
 */
#ifndef TN_CLI_TERMINAL_H
#define TN_CLI_TERMINAL_H

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

bool tn_terminal_is_one(void);    /* somebody looks at stderr, and lines may move there */
uint32_t tn_terminal_width(void); /* its columns; 80 when not known */

/* For tn_watch.show. */
void tn_terminal_show(void *unused, const char *text, bool transient);

/* Log lines of the libraries. verbosity -1: warnings; 0: what `level` says; 1: all. */
void tn_terminal_log(int verbosity, tn_log_level level);

void tn_terminal_done(void); /* wipes the moving line */

#endif
