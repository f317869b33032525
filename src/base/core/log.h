/* log.h - one line per fact, to the embedder of the thread (base/core/embedder.h); without one, to
 * the sink of the process, which src/cli installs to print on stderr.
 *
 * Libraries say what happened; they never print. Where nobody listens lines vanish.
 * Any thread may log; a line is handed over whole. Lower case, no full stop.
 */
#pragma once

#include "base/core/compiler.h"

typedef enum tn_log_level { TN_LOG_ERROR, TN_LOG_WARN, TN_LOG_INFO, TN_LOG_DEBUG } tn_log_level;

typedef void tn_log_sink(tn_log_level level, const char *line);

void tn_log_set(tn_log_sink *sink, tn_log_level most);
void tn_log(tn_log_level level, const char *fmt, ...) TN_PRINTF(2, 3);
