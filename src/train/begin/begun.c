/* begun.c - the lines and the list of what a run began with. */
#include "train/begin/begun.h"

#include "base/codec/json.h"
#include "base/core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tn_begun_add(tn_begun *b, const char *what, const char *name, tn_begun_how how,
                  const char *note, ...)
{
    static const char *const words[] = {"taken", "new", "left"};
    char text[256];
    va_list args;
    va_start(args, note);
    (void)vsnprintf(text, sizeof text, note, args);
    va_end(args);
    if (b == NULL) {
        return;
    }
    TN_ASSERT(how <= TN_BEGUN_LEFT);
    b->count[how]++;
    if (how == TN_BEGUN_NEW && strcmp(what, "parameter") == 0) {
        tn_text_addf(&b->fresh, "%s%s\n", b->fresh.size > 0 ? "" : "\n", name);
    }
    tn_text_addf(&b->table, "%-9s  %-24s  %-5s  %s\n", what, name, words[how], text);
    tn_json_open(&b->json, '{');
    tn_json_str(&b->json, "what", what);
    tn_json_str(&b->json, "name", name);
    tn_json_str(&b->json, "how", words[how]);
    tn_json_str(&b->json, "note", text);
    tn_json_close(&b->json, '}');
}

void tn_begun_say(const tn_begun *b, tn_text *out)
{
    TN_ASSERT(b->from.size > 0);
    tn_text_addf(out, "begins with the weights of %s: %u taken, %u new, %u left",
                 tn_text_str(&b->from), b->count[TN_BEGUN_TAKEN], b->count[TN_BEGUN_NEW],
                 b->count[TN_BEGUN_LEFT]);
}

void tn_begun_done(tn_begun *b)
{
    tn_text_done(&b->from);
    tn_text_done(&b->table);
    tn_text_done(&b->json);
    tn_text_done(&b->fresh);
}
