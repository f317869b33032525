/* record_location.c - faults in data, with their place, line and a caret. */
#include "io/format/record_location.h"
#include "io/schema/schema.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 80, FOUND_MAX = 40, MESSAGE_MAX = 512 };

static const char *const fault_text[] = {
    [TN_FAULT_NONE] = "no fault",
    [TN_FAULT_ID] = "expected a decimal integer",
    [TN_FAULT_ID_RANGE] = "integer larger than 18446744073709551615",
    [TN_FAULT_INT] = "expected an integer",
    [TN_FAULT_INT_RANGE] = "integer beyond 64 bits",
    [TN_FAULT_HEX] = "expected 1 to 16 hex digits",
    [TN_FAULT_FLOAT] = "expected a number",
    [TN_FAULT_FLOAT_RANGE] = "number too large for a float",
    [TN_FAULT_NOT_FINITE] = "number is not finite",
    [TN_FAULT_LABEL] = "expected a label",
    [TN_FAULT_NO_LABEL] = "the label is missing",
    [TN_FAULT_WEIGHT] = "expected a weight from 0 to 1048576",
    [TN_FAULT_VALUES] = "more than 1048576 values in a row",
    [TN_FAULT_TWO_VALUES] = "a second value for a number",
    [TN_FAULT_DUPLICATE] = "a value stands twice in its slot",
    [TN_FAULT_BASE] = "index 0 with index_base 1",
    [TN_FAULT_SUM] = "a sum of equal keys is too large for a float",
    [TN_FAULT_MEMORY] = "no memory for parsed rows",
};

/* Appends `size` bytes as a terminal may show them. */
static void add_shown(char *out, size_t room, const char *bytes, size_t size)
{
    size_t used = strlen(out);
    for (size_t i = 0; i < size && used + 5 < room; i++) {
        unsigned char c = (unsigned char)bytes[i];
        bool plain = c >= ' ' && c < 0x7f;
        int n = plain       ? snprintf(out + used, room - used, "%c", c)
                : c == '\t' ? snprintf(out + used, room - used, "\t")
                            : snprintf(out + used, room - used, "\\x%02x", c);
        used += (size_t)n;
    }
}

/* The line around `at`, and a caret below. */
static void add_line(char *out, size_t room, tn_bytes record, size_t at)
{
    size_t from = at > SHOWN_MAX / 2 ? at - SHOWN_MAX / 2 : 0;
    size_t size = record.size - from < SHOWN_MAX ? record.size - from : SHOWN_MAX;
    size_t used = strlen(out);
    (void)snprintf(out + used, room - used, "\n  ");
    size_t head = strlen(out);
    add_shown(out, room, record.data + from, at - from);
    char under[4 * SHOWN_MAX + 1];
    size_t n = 0;
    for (const char *c = out + head; *c != '\0'; c++) {
        under[n++] = *c == '\t' ? '\t' : ' ';
    }
    under[n] = '\0';
    add_shown(out, room, record.data + at, from + size - at);
    used = strlen(out);
    (void)snprintf(out + used, room - used, "\n  %s^", under);
}

tn_status tn_record_location_fail(const tn_record_location *place, tn_bytes record, const char *at,
                                  tn_error *err, const char *fmt, ...)
{
    if (err == NULL) {
        return TN_E_DATA;
    }
    char message[MESSAGE_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    if (place->line == 0) {
        return tn_fail(err, TN_E_DATA, "%s:@%" PRIu64 ": error: %s", place->source, place->offset,
                       message);
    }
    size_t col = at != NULL ? (size_t)(at - record.data) : 0;
    TN_ASSERT(col <= record.size);
    char line[5 * SHOWN_MAX * 2] = "";
    add_line(line, sizeof line, record, col);
    return tn_fail(err, TN_E_DATA, "%s:%" PRIu64 ":%zu: error: %s%s", place->source, place->line,
                   col + 1, message, line);
}

tn_status tn_record_location_fault(const tn_record_location *place, tn_bytes record, tn_bytes token,
                                   tn_fault fault, tn_error *err)
{
    if (fault == TN_FAULT_MEMORY) {
        return tn_fail(err, TN_E_MEMORY, "%s", fault_text[fault]);
    }
    char found[4 * FOUND_MAX + 8] = "";
    bool all = token.size <= FOUND_MAX;
    size_t size = all ? token.size : FOUND_MAX;
    add_shown(found, sizeof found, token.data, size);
    return tn_record_location_fail(place, record, token.data, err, "%s, found \"%s%s\"",
                                   fault_text[fault], found, all ? "" : "..");
}

tn_status tn_record_location_rule(const tn_record_location *place, tn_bytes record,
                                  const tn_slot_spec *spec, tn_fault fault, tn_error *err)
{
    if (fault == TN_FAULT_MEMORY) {
        return tn_fail(err, TN_E_MEMORY, "%s", fault_text[fault]);
    }
    TN_ASSERT(spec != NULL);
    return tn_record_location_fail(
        place, record, NULL, err, "%s in slot '%s'",
        fault == TN_FAULT_DUPLICATE ? "a value stands twice" : fault_text[fault], spec->name);
}

tn_bytes tn_record_location_reason(const char *text)
{
    static const char mark[] = ": error: ";
    const char *from = strstr(text, mark);
    from = from != NULL ? from + sizeof mark - 1 : text;
    size_t size = 0;
    while (from[size] != '\0' && from[size] != '\n' && from[size] != '\'' && from[size] != '"' &&
           from[size] != '(' && from[size] != ',') {
        size++;
    }
    while (size > 0 && from[size - 1] == ' ') {
        size--;
    }
    return (tn_bytes){from, size, false};
}
