/* format.c - the list of formats, and the lines that text formats share. */
#include "io/format/format.h"

#include <inttypes.h>
#include <string.h>

#define TN_FORMAT(name) extern const tn_format tn_format_##name;
#include "io/format/formats.def"
#undef TN_FORMAT

const tn_format *const tn_all_formats[] = {
#define TN_FORMAT(name) &tn_format_##name,
#include "io/format/formats.def"
#undef TN_FORMAT
    NULL,
};

const tn_format *tn_format_find(const char *name)
{
    for (uint32_t i = 0; tn_all_formats[i] != NULL; i++) {
        if (strcmp(tn_all_formats[i]->name, name) == 0) {
            return tn_all_formats[i];
        }
    }
    return NULL;
}

tn_status tn_line_cut(tn_bytes *window, bool last, const tn_schema *schema, tn_bytes *record,
                      tn_error *err)
{
    uint64_t max = schema->data->record_bytes_max;
    const char *end = window->size > 0 ? memchr(window->data, '\n', window->size) : NULL;
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

size_t tn_line_resync(tn_bytes window, bool last, const tn_schema *schema, bool *found)
{
    (void)schema;
    const char *end = window.size > 0 ? memchr(window.data, '\n', window.size) : NULL;
    *found = end != NULL || last;
    if (end == NULL) {
        return window.size;
    }
    return (size_t)(end - window.data) + 1;
}

tn_status tn_line_clean(tn_bytes *line, const tn_record_location *place, tn_error *err)
{
    if (line->size == 0) {
        return TN_OK;
    }
    const char *nul = memchr(line->data, '\0', line->size);
    if (nul != NULL) {
        return tn_record_location_fail(place, *line, nul, err, "binary data in a text format");
    }
    const char *cr = memchr(line->data, '\r', line->size);
    if (cr == line->data + line->size - 1) {
        line->size--;
    } else if (cr != NULL) {
        return tn_record_location_fail(place, *line, cr, err, "carriage return inside a line");
    }
    return TN_OK;
}

bool tn_line_is_blank(tn_bytes line)
{
    for (size_t i = 0; i < line.size; i++) {
        if (!tn_is_blank(line.data[i])) {
            return false;
        }
    }
    return true;
}
