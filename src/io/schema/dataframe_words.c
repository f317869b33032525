/* dataframe_words.c - see dataframe_words.h. */
#include "io/schema/dataframe_words.h"

#include <string.h>

/* `word` is of small letters. */
static bool is_word(const char *text, size_t size, const char *word)
{
    bool same = size == strlen(word);
    for (size_t i = 0; same && i < size; i++) {
        same = (text[i] | 0x20) == word[i];
    }
    return same;
}

bool tn_frame_missing(const char *text, size_t size)
{
    return is_word(text, size, "nan");
}

/* Digits in front of a point and zeros; 0: something else. */
static size_t whole_part(const char *text, size_t size)
{
    size_t zeros = 0;
    while (zeros < size && text[size - zeros - 1] == '0') {
        zeros++;
    }
    bool whole = zeros > 0 && zeros + 1 < size && text[size - zeros - 1] == '.';
    return whole ? size - zeros - 1 : 0;
}

tn_bytes tn_frame_plain(const char *text, size_t size)
{
    size_t digits = whole_part(text, size);
    if (digits > 0) {
        return (tn_bytes){text, digits, false};
    }
    if (is_word(text, size, "true")) {
        return (tn_bytes){"1", 1, false};
    }
    if (is_word(text, size, "false")) {
        return (tn_bytes){"0", 1, false};
    }
    return (tn_bytes){text, 0, !tn_frame_missing(text, size)};
}
