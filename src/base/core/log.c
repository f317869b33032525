/* log.c - formats a log line and hands it to the embedder of the thread, or to the sink. */
#include "base/core/log.h"

#include "base/core/embedder.h"
#include "base/core/error.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MAX_BYTES = 4096 };

static const char cut_mark[] = " ...";

/* Both may change while other threads log: their lines go to the old sink or to the new one. */
static _Atomic(tn_log_sink *) log_sink;
static _Atomic int log_most = TN_LOG_INFO;

void tn_log_set(tn_log_sink *sink, tn_log_level most)
{
    atomic_store(&log_most, (int)most);
    atomic_store(&log_sink, sink);
}

void tn_log(tn_log_level level, const char *fmt, ...)
{
    const tn_embedder *embedder = tn_embedder_here();
    tn_log_sink *sink = embedder == NULL ? atomic_load(&log_sink) : NULL;
    const bool heard = embedder != NULL ? embedder->line != NULL
                                        : sink != NULL && (int)level <= atomic_load(&log_most);
    if (!heard) {
        return;
    }
    char line[LINE_MAX_BYTES];
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (length < 0) {
        return;
    }
    if ((size_t)length >= sizeof line) {
        memcpy(line + sizeof line - sizeof cut_mark, cut_mark, sizeof cut_mark);
    }
    tn_make_printable(line, "\n\t");
    if (embedder != NULL) {
        embedder->line(embedder->arg, (int)level, line);
    } else {
        sink(level, line);
    }
}
