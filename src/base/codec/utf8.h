/* utf8.h - characters in UTF-8: measures and checks one, writes one.
 *
 * Overlong forms, surrogates and code points above U+10FFFF are no characters (RFC 3629).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tn_utf8_continues(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* Returns 1 to 4 bytes, or 0 when `text` does not begin with a whole valid character. */
static inline size_t tn_utf8_size(const char *text, size_t size)
{
    uint8_t b[4] = {0}; /* a missing byte is 0, which continues nothing */
    for (size_t i = 0; i < 4 && i < size; i++) {
        b[i] = (uint8_t)text[i];
    }
    if (size == 0 || b[0] < 0x80) {
        return size > 0;
    }
    if (b[0] >= 0xc2 && b[0] <= 0xdf) {
        return tn_utf8_continues(b[1]) ? 2 : 0;
    }
    if ((b[0] & 0xf0) == 0xe0) {
        bool bad = (b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] > 0x9f);
        return !bad && tn_utf8_continues(b[1]) && tn_utf8_continues(b[2]) ? 3 : 0;
    }
    if (b[0] >= 0xf0 && b[0] <= 0xf4) {
        bool bad = (b[0] == 0xf0 && b[1] < 0x90) || (b[0] == 0xf4 && b[1] > 0x8f);
        bool whole = tn_utf8_continues(b[1]) && tn_utf8_continues(b[2]) && tn_utf8_continues(b[3]);
        return !bad && whole ? 4 : 0;
    }
    return 0;
}

/* Writes code point c, below U+110000, and returns the place after its 1 to 4 bytes. */
static inline char *tn_utf8_put(char *out, uint32_t c)
{
    if (c < 0x80) {
        *out++ = (char)c;
        return out;
    }
    if (c < 0x800) {
        *out++ = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *out++ = (char)(0xe0 | c >> 12);
        } else {
            *out++ = (char)(0xf0 | c >> 18);
            *out++ = (char)(0x80 | (c >> 12 & 0x3f));
        }
        *out++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *out++ = (char)(0x80 | (c & 0x3f));
    return out;
}
