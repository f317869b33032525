/* format_tsv.c - delimited text by its usual defaults: tab, no header, no quotes. */
#include "io/format/delimited.h"
#include "io/format/format.h"

extern const tn_format tn_format_tsv;
const tn_format tn_format_tsv = {
    .name = "tsv",
    .help = "tab-separated; data.columns or a header name the columns",
    .data_options = tn_delimited_options,
    .cut = tn_delimited_cut,
    .resync = tn_line_resync,
    .head = tn_delimited_head,
    .parse = tn_delimited_parse,
};
