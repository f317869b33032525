/* report_page.c - report.html with the numbers of an evaluation in it. */
#include "base/codec/json.h"
#include "base/core/arena.h"
#include "extra/report/report_json.h"
#include "train/report/eval_pages.h"

#include <string.h>

/* report.html, its bytes with commas between them, by CMake (extra.cmake). */
static const unsigned char template[] = {
#include "extra/report/report.html.inc"
    0,
};

/* Appends text with & < > " ' escaped, and U+FFFD for what HTML must not hold. */
static void put_text(const char *text, tn_text *out)
{
    static const char special[] = "&<>\"'";
    static const char *const escaped[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (const char *at = text; *at != '\0'; at++) {
        const char *found = strchr(special, *at);
        if (found != NULL) {
            tn_text_adds(out, escaped[found - special]);
        } else if ((unsigned char)*at < ' ' && *at != '\t' && *at != '\n') {
            tn_text_adds(out, "\xef\xbf\xbd");
        } else {
            tn_text_addc(out, *at);
        }
    }
}

/* Appends JSON as a script holds it: no `<` begins an end tag or a comment there. All of them are
 * in strings. */
static void put_data(const tn_text *json, tn_text *out)
{
    const char *at = tn_text_str(json);
    for (const char *found; (found = strchr(at, '<')) != NULL; at = found + 1) {
        tn_text_add(out, at, (size_t)(found - at));
        tn_text_adds(out, "\\u003c");
    }
    tn_text_adds(out, at);
}

/* Appends the items of a list as rows of a table, for readers without scripts. */
static void put_rows(const tn_json *list, tn_text *out)
{
    for (const tn_json *row = tn_json_item(list, 0); row != NULL; row = row->next) {
        tn_text_adds(out, "<tr>");
        for (const tn_json *cell = row->first; cell != NULL; cell = cell->next) {
            tn_text_adds(out, "<td>");
            put_text(cell->kind == TN_JSON_NULL ? "n/a" : cell->string, out);
            tn_text_adds(out, "</td>");
        }
        tn_text_adds(out, "</tr>\n");
    }
}

/* Appends report.html, with what {{title}}, {{rows}} and {{data}} are in their places. */
static void put_page(const tn_json *top, const tn_text *json, tn_text *out)
{
    const char *at = (const char *)template;
    for (const char *mark; (mark = strstr(at, "{{")) != NULL;) {
        tn_text_add(out, at, (size_t)(mark - at));
        if (strncmp(mark, "{{title}}", 9) == 0) {
            put_text(tn_json_as_str(tn_json_get(top, "title")), out);
        } else if (strncmp(mark, "{{rows}}", 8) == 0) {
            put_rows(tn_json_get(top, "facts"), out);
            put_rows(tn_json_get(tn_json_get(top, "metrics"), "rows"), out);
        } else {
            put_data(json, out);
        }
        at = strstr(mark, "}}") + 2;
    }
    tn_text_adds(out, at);
}

static tn_status make_html(const tn_eval_result *f, const char *config, tn_text *out, tn_error *err)
{
    tn_text json = {0};
    const tn_json *top = NULL;
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_status status = tn_report_json(f, config, &json, err);
    if (status == TN_OK) {
        status = tn_json_parse(&top, json.data, json.size, arena, "the report", err);
    }
    if (status == TN_OK) {
        put_page(top, &json, out);
        status = tn_text_check(out, "the report", err);
    }
    tn_arena_free(arena);
    tn_text_done(&json);
    return status;
}

extern const tn_eval_page tn_eval_page_html;
const tn_eval_page tn_eval_page_html = {make_html};
