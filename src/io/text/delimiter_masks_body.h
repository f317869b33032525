/* delimiter_masks_body.h - the loops over a line, included once per set of delimiter_masks.c.
 *
 * Before: TARGET, the attributes of the set; SET(name), which appends the set's name to a name;
 * SET(field_mask)(p, mark, odd) and SET(pair_mask)(p, odd), which look at 64 bytes, give a bit for
 * each mark and set bits of *odd, or else LANES, the bytes of a vector, and BITS(x), the top bits
 * of its bytes; SET(put_marks)(to, mask, base), which writes the places of the bits of a mask, 64
 * places at most, and returns the end of those that count. After: SET(find_marks)().
 */
#ifdef TARGET

#ifdef LANES

typedef signed char SET(bytes) __attribute__((vector_size(LANES)));

TARGET static inline uint64_t SET(field_mask)(const char *p, char mark, uint64_t *odd)
{
    uint64_t mask = 0;
    SET(bytes) x;
    SET(bytes) strange = {0};
    for (uint32_t i = 0; i < LOOK; i += LANES) {
        memcpy(&x, p + i, sizeof x);
        mask |= (uint64_t)(uint32_t)BITS(x == (signed char)mark) << i;
        strange |= (x == '\r') | (x == 0);
    }
    *odd |= (uint64_t)(uint32_t)BITS(strange);
    return mask;
}

TARGET static inline uint64_t SET(pair_mask)(const char *p, uint64_t *odd)
{
    uint64_t mask = 0;
    SET(bytes) x;
    SET(bytes) strange = {0};
    for (uint32_t i = 0; i < LOOK; i += LANES) {
        memcpy(&x, p + i, sizeof x);
        mask |= (uint64_t)(uint32_t)BITS((x == ' ') | (x == ':')) << i;
        strange |= ((x >= 0) & (x < ' ')) | (x == '#');
    }
    *odd |= (uint64_t)(uint32_t)BITS(strange);
    return mask;
}

#endif

/* The last bytes, which are less than 64: at the 64 that end the line, or at a copy of a line that
 * is shorter. */
TARGET static inline const char *SET(last_look)(const char *line, size_t size, char copy[LOOK])
{
    if (size >= LOOK) {
        return line + size - LOOK;
    }
    memset(copy, 'x', LOOK);
    memcpy(copy + LOOK - size, line, size);
    return copy;
}

TARGET static inline uint64_t SET(mask)(const char *p, char mark, uint64_t *odd)
{
    return mark != 0 ? SET(field_mask)(p, mark, odd) : SET(pair_mask)(p, odd);
}

TARGET static uint32_t SET(find_marks)(const char *line, size_t size, char mark, uint16_t *at,
                                       bool *odd)
{
    uint64_t strange = 0;
    uint16_t *to = at;
    size_t i = 0;
    for (; i + LOOK <= size; i += LOOK) {
        to = SET(put_marks)(to, SET(mask)(line + i, mark, &strange), (uint32_t)i);
    }
    if (i < size) {
        char copy[LOOK];
        const char *p = SET(last_look)(line, size, copy);
        uint64_t mask = SET(mask)(p, mark, &strange) >> (LOOK - (size - i));
        to = SET(put_marks)(to, mask, (uint32_t)i);
    }
    *odd = strange != 0;
    return (uint32_t)(to - at);
}

#endif
