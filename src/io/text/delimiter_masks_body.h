/* delimiter_masks_body.h - the text of a set of delimiter_masks.h, included once per vector width.
 *
 * Before: TARGET; field_mask(p, mark, odd) and pair_mask(p, odd), which look at 64 bytes, give a
 * bit for each mark and set bits of *odd; put_marks(to, mask, base), which writes the places of the
 * bits of a mask, 64 places at most, and returns what is behind those that count. After:
 * find_fields() and find_pairs().
 */
#ifdef TARGET

#include <string.h>

enum { LOOK = 64 };

/* One look at the last bytes of a line, which are less than 64: at the 64 that end it, or at a copy
 * of a line that is shorter. */
#define LAST_LOOK(line, size, i, look)                                                             \
    do {                                                                                           \
        char copy[LOOK];                                                                           \
        size_t rest = (size) - (i);                                                                \
        const char *p = (line) + (size)-LOOK;                                                      \
        if ((size) < LOOK) {                                                                       \
            memset(copy, 'x', sizeof copy);                                                        \
            memcpy(copy + LOOK - (size), line, size);                                              \
            p = copy;                                                                              \
        }                                                                                          \
        to = put_marks(to, (look) >> (LOOK - rest), (uint32_t)(i));                                \
    } while (false)

TARGET static uint32_t find_fields(const char *line, size_t size, char mark, uint16_t *at,
                                   bool *odd)
{
    uint64_t strange = 0;
    uint16_t *to = at;
    size_t i = 0;
    for (; i + LOOK <= size; i += LOOK) {
        to = put_marks(to, field_mask(line + i, mark, &strange), (uint32_t)i);
    }
    if (i < size) {
        LAST_LOOK(line, size, i, field_mask(p, mark, &strange));
    }
    *odd = strange != 0;
    return (uint32_t)(to - at);
}

TARGET static uint32_t find_pairs(const char *line, size_t size, uint16_t *at, bool *odd)
{
    uint64_t strange = 0;
    uint16_t *to = at;
    size_t i = 0;
    for (; i + LOOK <= size; i += LOOK) {
        to = put_marks(to, pair_mask(line + i, &strange), (uint32_t)i);
    }
    if (i < size) {
        LAST_LOOK(line, size, i, pair_mask(p, &strange));
    }
    *odd = strange != 0;
    return (uint32_t)(to - at);
}

#endif
