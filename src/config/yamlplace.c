/* yamlplace.c - see yamlplace.h. */
#include "config/yamlplace.h"

#include <string.h>

/* Bytes of the line break at `at`, 0 when there is none. */
static size_t break_size(const char *at, const char *end)
{
    static const struct {
        const char *bytes;
        size_t size;
    } breaks[] = {
        {"\r\n", 2},     {"\n", 1},           {"\r", 1},
        {"\xC2\x85", 2}, {"\xE2\x80\xA8", 3}, {"\xE2\x80\xA9", 3},
    };
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        size_t size = breaks[i].size;
        if (size <= (size_t)(end - at) && memcmp(at, breaks[i].bytes, size) == 0) {
            return size;
        }
    }
    return 0;
}

tn_yaml_lines tn_yaml_split(tn_arena *arena, const tn_yaml_in *in, const char *text, size_t size)
{
    char *copy = TN_NEW_ARRAY(arena, char, size + 1);
    memcpy(copy, text, size);
    const char *end = copy + size;
    uint32_t n = 1;
    for (const char *at = copy; at < end;) {
        size_t gap = break_size(at, end);
        n += gap > 0;
        at += gap > 0 ? gap : 1;
    }
    const char **line = TN_NEW_ARRAY(arena, const char *, n);
    line[0] = copy;
    uint32_t filled = 1;
    for (char *at = copy; at < end;) {
        size_t gap = break_size(at, end);
        if (gap > 0) {
            *at = '\0';
            line[filled++] = at + gap;
        }
        at += gap > 0 ? gap : 1;
    }
    TN_ASSERT(filled == n);
    return (tn_yaml_lines){.in = in, .text = copy, .line = line, .n = n};
}

/* Bytes of the first `count` characters of a line. */
static size_t bytes_of(const char *line, size_t count)
{
    size_t at = 0;
    while (count > 0 && line[at] != '\0') {
        at++;
        while (((unsigned char)line[at] & 0xC0) == 0x80) {
            at++;
        }
        count--;
    }
    return at;
}

static tn_origin place_at(const tn_yaml_lines *lines, size_t line, size_t bytes)
{
    const tn_yaml_in *in = lines->in;
    if (in->lines) {
        return (tn_origin){.source = in->source,
                           .line = (uint32_t)line + 1,
                           .col = (uint32_t)bytes + 1,
                           .text = lines->line[line]};
    }
    /* Behind the first line columns of the text are not columns of what is shown. */
    return (tn_origin){.source = in->source,
                       .col = in->col + (line == 0 ? (uint32_t)bytes : 0),
                       .text = in->shown};
}

tn_origin tn_yaml_place(const tn_yaml_lines *lines, size_t line, size_t column)
{
    if (line >= lines->n) { /* the end of the text */
        line = lines->n - 1;
        column = strlen(lines->line[line]);
    }
    return place_at(lines, line, bytes_of(lines->line[line], column));
}

tn_origin tn_yaml_place_of_byte(const tn_yaml_lines *lines, size_t offset)
{
    size_t line = lines->n - 1;
    while (line > 0 && (size_t)(lines->line[line] - lines->text) > offset) {
        line--;
    }
    size_t bytes = offset - (size_t)(lines->line[line] - lines->text);
    size_t most = strlen(lines->line[line]);
    return place_at(lines, line, bytes < most ? bytes : most);
}
