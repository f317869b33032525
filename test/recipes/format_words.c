/* format_words.c - label word word ..: all words are values of the first slot; the format of the
 * recipe's test. */
#include "io/format/format.h"
#include "io/schema/schema.h"

static tn_bytes next_word(const char **at, const char *end)
{
    while (*at < end && tn_is_blank(**at)) {
        (*at)++;
    }
    const char *from = *at;
    while (*at < end && !tn_is_blank(**at)) {
        (*at)++;
    }
    return (tn_bytes){from, (size_t)(*at - from), false};
}

static tn_status take_words(tn_bytes line, const tn_schema *schema, const tn_record_location *place,
                            tn_rows *rows, tn_error *err)
{
    const char *at = line.data;
    const char *end = line.data + line.size;
    tn_bytes word = next_word(&at, end);
    if (!schema->label->none) {
        tn_fault fault = tn_rows_label(rows, word.data, word.size);
        if (fault != TN_FAULT_NONE) {
            return tn_record_location_fault(place, line, word, fault, err);
        }
        word = next_word(&at, end);
    }
    for (; word.size > 0; word = next_word(&at, end)) {
        tn_fault fault = tn_rows_token(rows, &schema->spec[0], word.data, word.size, 1);
        if (fault != TN_FAULT_NONE) {
            return tn_record_location_fault(place, line, word, fault, err);
        }
    }
    return TN_OK;
}

static tn_status words_parse(tn_bytes record, const tn_schema *schema,
                             const tn_record_location *place, tn_rows *rows, tn_error *err)
{
    TN_TRY(tn_line_begin(&record, place, rows, err));
    tn_status status = take_words(record, schema, place, rows, err);
    return tn_record_end(record, place, status, rows, err);
}

extern const tn_format tn_format_words;
const tn_format tn_format_words = {
    .name = "words",
    .help = "label word word ..; all words are values of the first slot",
    .cut = tn_line_cut,
    .resync = tn_line_resync,
    .parse = words_parse,
};
