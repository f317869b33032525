/* format_csv.c - delimited text by its usual defaults: comma, header, quotes within a line. */
#include "io/format/delimited.h"
#include "io/format/format.h"

extern const tn_format tn_format_csv;
const tn_format tn_format_csv = {
    .name = "csv",
    .help = "comma-separated, with a header that names the columns",
    .data_options = tn_delimited_options,
    .cut = tn_delimited_cut,
    .resync = tn_line_resync,
    .head = tn_delimited_head,
    .parse = tn_delimited_parse,
};
