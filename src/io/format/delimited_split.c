/* delimited_split.c - records and fields of delimited text. */
#include "io/format/delimited.h"
#include "io/format/line.h"

#include <inttypes.h>
#include <string.h>

/* The quote that ends what begins at `from`, doubled ones left aside; NULL: not here. */
static const char *closing_quote(const char *from, const char *end)
{
    const char *p = from;
    while (p < end && (*p != '"' || (p + 1 < end && p[1] == '"'))) {
        p += *p == '"' ? 2 : 1;
    }
    return p < end ? p : NULL;
}

/* Where the line that begins at `from` ends, line breaks in quotes left aside; NULL: not here. */
static const char *end_of_record(const char *from, const char *end, char delimiter, bool trim)
{
    bool field_begins = true;
    for (const char *p = from; p < end; p++) {
        if (*p == '\n') {
            return p;
        }
        if (field_begins && *p == '"') {
            p = closing_quote(p + 1, end);
            if (p == NULL) {
                return NULL;
            }
        }
        field_begins = *p == delimiter || (trim && field_begins && tn_is_blank(*p));
    }
    return NULL;
}

tn_status tn_delimited_cut(tn_bytes *window, bool last, const tn_schema *schema, tn_bytes *record,
                           tn_error *err)
{
    if (schema->quote != TN_QUOTE_MULTILINE) {
        return tn_line_cut(window, last, schema, record, err);
    }
    uint64_t max = schema->data->record_bytes_max;
    const char *end = end_of_record(window->data, window->data + window->size, schema->delimiter,
                                    schema->data->trim);
    size_t size = end != NULL ? (size_t)(end - window->data) : window->size;
    if (size > max) {
        return tn_fail(err, TN_E_LIMIT, "record longer than record_bytes_max (%" PRIu64 ")", max);
    }
    if (end == NULL && (!last || size == 0)) {
        return TN_END;
    }
    *record = (tn_bytes){window->data, size, false};
    size_t taken = size + (end != NULL);
    window->data += taken;
    window->size -= taken;
    return TN_OK;
}

/* Eight bytes at a time: the top bit of each byte of the result says that it is the delimiter. */
static inline uint64_t delimiters_in(uint64_t word, uint64_t pattern)
{
    uint64_t x = word ^ pattern;
    uint64_t low = (x & UINT64_C(0x7f7f7f7f7f7f7f7f)) + UINT64_C(0x7f7f7f7f7f7f7f7f);
    return ~(low | x) & UINT64_C(0x8080808080808080);
}

static inline uint64_t pattern_of(char delimiter)
{
    return (unsigned char)delimiter * UINT64_C(0x0101010101010101);
}

static const char *find_delimiter(const char *p, const char *end, char delimiter)
{
    while (end - p >= 8) {
        uint64_t hits = delimiters_in(tn_load_u64(p), pattern_of(delimiter));
        if (hits != 0) {
            return p + (__builtin_ctzll(hits) >> 3);
        }
        p += 8;
    }
    while (p < end && *p != delimiter) {
        p++;
    }
    return p;
}

/* Fields between delimiters and nothing else; where the next one begins. */
static inline const char *put_field(tn_bytes line, const char *from, const char *to, tn_span *out)
{
    *out = (tn_span){.text = from,
                     .size = (uint32_t)(to - from),
                     .at = (uint32_t)(from - line.data),
                     .found = true};
    return to + 1;
}

uint32_t tn_split_plain(tn_bytes line, char delimiter, tn_span *out, uint32_t max)
{
    const uint64_t pattern = pattern_of(delimiter);
    const char *from = line.data;
    const char *end = line.data + line.size;
    const char *p = from;
    uint32_t n = 0;
    for (; end - p >= 8 && n < max; p += 8) {
        uint64_t hits = delimiters_in(tn_load_u64(p), pattern);
        for (; hits != 0 && n < max; hits &= hits - 1) {
            from = put_field(line, from, p + (__builtin_ctzll(hits) >> 3), &out[n++]);
        }
    }
    p = from > p || n == max ? from : p;
    while (n < max) {
        const char *to = find_delimiter(p, end, delimiter);
        from = put_field(line, from, to, &out[n++]);
        if (to == end) {
            break;
        }
        p = from;
    }
    return n;
}

static void trim_span(tn_span *span)
{
    while (span->size > 0 && tn_is_blank(span->text[0])) {
        span->text++;
        span->at++;
        span->size--;
    }
    while (span->size > 0 && tn_is_blank(span->text[span->size - 1])) {
        span->size--;
    }
}

/* A field in quotes, from its first quote. Stands behind the last one then. */
static const char *take_quoted(tn_split *split, const char *p, tn_span *out, const char **bad)
{
    const char *end = split->line.data + split->line.size;
    const char *from = ++p;
    size_t begin = split->scratch->size;
    bool pieces = false;
    for (;;) {
        const char *quote = p < end ? memchr(p, '"', (size_t)(end - p)) : NULL;
        if (quote == NULL) {
            *bad = from - 1;
            return end;
        }
        bool doubled = quote + 1 < end && quote[1] == '"';
        if (doubled || pieces) {
            tn_text_add(split->scratch, p, (size_t)(quote - p) + doubled);
            pieces = true;
        }
        p = quote + 1 + doubled;
        if (!doubled) {
            *out = (tn_span){.text = from, .size = (uint32_t)(quote - from), .quoted = true};
            break;
        }
    }
    if (pieces) { /* an offset, as the text may move until the line is split */
        out->text = NULL;
        out->size = (uint32_t)(split->scratch->size - begin);
    }
    out->at = (uint32_t)(from - split->line.data);
    return p;
}

bool tn_split_next(tn_split *split, tn_span *out, const char **bad)
{
    const char *end = split->line.data + split->line.size;
    const char *p = split->at;
    if (p == NULL) {
        return false;
    }
    const char *first = p;
    while (split->trim && split->quotes && first < end && tn_is_blank(*first)) {
        first++;
    }
    if (split->quotes && first < end && *first == '"') {
        p = take_quoted(split, first, out, bad);
        while (split->trim && p < end && tn_is_blank(*p)) {
            p++;
        }
        if (p < end && *p != split->delimiter && *bad == NULL) {
            *bad = p;
        }
    } else {
        const char *stop = find_delimiter(p, end, split->delimiter);
        *out = (tn_span){
            .text = p, .size = (uint32_t)(stop - p), .at = (uint32_t)(p - split->line.data)};
        if (split->trim) {
            trim_span(out);
        }
        p = stop;
    }
    split->at = p < end ? p + 1 : NULL;
    return true;
}
