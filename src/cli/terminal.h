/* terminal.h - the one line that moves and the lines that stay, all on stderr.
 *
 * A moving line is wiped before any thread writes a line that stays. Any thread. Where
 * several processes write to one terminal, rank 0 moves the line, and the others name their ranks.
 */
#pragma once

#include "base/core/log.h"
#include "base/core/text.h"

#include <stdbool.h>
#include <stdint.h>

bool tn_terminal_is_one(void);    /* somebody looks at stderr, and lines may move there */
uint32_t tn_terminal_width(void); /* its columns; 80 when not known */

/* For tn_watch.show. */
void tn_terminal_show(void *unused, const char *text, bool transient);

/* Log lines of the libraries. verbosity -1: warnings; 0: what `level` says; 1: all. */
void tn_terminal_log(int verbosity, tn_log_level level);

/* This process is one of a group: its log lines begin with "[rank 2] ", and its last word, which
 * src/cli/exits.h says, with "tnet-train: rank 2: error: ". For main, before other threads. */
void tn_terminal_rank(uint32_t rank);
const char *tn_terminal_own_name(void); /* "rank 2", or "" where nothing was said of a rank */

/* Another process may move a line on the same terminal; so it is where rank is not 0. */
void tn_terminal_share(void);

/* Appends a text of others as a terminal may show it: what is no UTF-8, and what would steer it, as
 * \xNN. Lines of the log are written so. */
void tn_terminal_clean(const char *text, size_t size, tn_text *out);

void tn_terminal_done(void); /* wipes the moving line */
