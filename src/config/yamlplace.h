/* yamlplace.h - from libyaml's marks to places that an editor understands.
 *
 * libyaml counts characters from 0, people and editors count lines from 1; our
 * columns are bytes. Part of yaml.c; nobody else includes it.
 */
#ifndef TN_CONFIG_YAMLPLACE_H
#define TN_CONFIG_YAMLPLACE_H

#include "config/yaml.h"

typedef struct tn_yaml_lines {
    const tn_yaml_in *in;
    const char *text; /* copy of the text in which every line ends with a NUL */
    const char **line;
    uint32_t n;
} tn_yaml_lines;

/* Splits at what libyaml takes for line breaks. `text` has `size` bytes, valid UTF-8 or not. */
tn_yaml_lines tn_yaml_split(tn_arena *arena, const tn_yaml_in *in, const char *text, size_t size);

/* `line` and `column` from 0, the column in characters. */
tn_origin tn_yaml_place(const tn_yaml_lines *lines, size_t line, size_t column);

/* The place of byte `offset` of the text. */
tn_origin tn_yaml_place_of_byte(const tn_yaml_lines *lines, size_t offset);

#endif
