/* format_criteo.c - Criteo's columns: label I1..I13 C1..C26 by tabs; 39 fields without the label.
 *
 * A header or data.columns, when set, name the columns instead.
 */
#include "io/format/delimited.h"
#include "io/format/format.h"
#include "io/schema/dataopts.h"

#include <stdio.h>
#include <string.h>

enum { CRITEO_INTEGERS = 13, CRITEO_CATEGORIES = 26 };

static const char criteo_preset[] = "data:\n"
                                    "  label: label\n"
                                    "slots:\n"
                                    "  - {name: \"I{1..13}\", type: int, as: key, "
                                    "transform: ln2_bucket}\n"
                                    "  - {name: \"C{1..26}\", type: hex}\n";

static uint32_t set_numbered(tn_head *head, const tn_schema *schema, char letter, int n,
                             uint32_t column)
{
    for (int i = 1; i <= n; i++) {
        char name[16];
        int size = snprintf(name, sizeof name, "%c%d", letter, i);
        (void)tn_head_set(head, schema, name, (size_t)size, column++);
    }
    return column;
}

static tn_status criteo_head(tn_bytes *window, bool last, const tn_schema *schema,
                             const tn_record_location *place, tn_head *head, tn_error *err)
{
    static const tn_bytes no_line = {"", 0, false};
    const char *label = schema->label->column;
    if (schema->header || schema->data->columns.n > 0) {
        return tn_delimited_head(window, last, schema, place, head, err);
    }
    tn_head_clear(head, schema);
    uint32_t column = 0;
    if (label != NULL) {
        (void)tn_head_set(head, schema, label, strlen(label), column++);
    }
    column = set_numbered(head, schema, 'I', CRITEO_INTEGERS, column);
    head->n_columns = set_numbered(head, schema, 'C', CRITEO_CATEGORIES, column);
    return tn_head_check(head, schema, place, no_line, err);
}

extern const tn_format tn_format_criteo;
const tn_format tn_format_criteo = {
    .name = "criteo",
    .help = "tab-separated: label, 13 integers, 26 hex categories",
    .preset = criteo_preset,
    .data_options = tn_delimited_options,
    .cut = tn_delimited_cut,
    .resync = tn_line_resync,
    .head = criteo_head,
    .parse = tn_delimited_parse,
};
