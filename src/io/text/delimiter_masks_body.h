/* delimiter_masks_body.h - the loops over a line, included once per set of delimiter_masks.c.
 *
 * Before: TARGET, the attributes of the set; SET(name), which puts the set's name behind a name;
 * SET(field_mask)(p, mark, odd) and SET(pair_mask)(p, odd), which look at 64 bytes, give a bit for
 * each mark and set bits of *odd; SET(put_marks)(to, mask, base), which writes the places of the
 * bits of a mask, 64 places at most, and returns what is behind those that count. After:
 * SET(find_fields)() and SET(find_pairs)().
 */
#ifdef TARGET

TARGET static uint32_t SET(find_fields)(const char *line, size_t size, char mark, uint16_t *at,
                                        bool *odd)
{
    uint64_t strange = 0;
    uint16_t *to = at;
    size_t i = 0;
    for (; i + LOOK <= size; i += LOOK) {
        to = SET(put_marks)(to, SET(field_mask)(line + i, mark, &strange), (uint32_t)i);
    }
    if (i < size) {
        LAST_LOOK(line, size, i, SET(field_mask)(p, mark, &strange));
    }
    *odd = strange != 0;
    return (uint32_t)(to - at);
}

TARGET static uint32_t SET(find_pairs)(const char *line, size_t size, uint16_t *at, bool *odd)
{
    uint64_t strange = 0;
    uint16_t *to = at;
    size_t i = 0;
    for (; i + LOOK <= size; i += LOOK) {
        to = SET(put_marks)(to, SET(pair_mask)(line + i, &strange), (uint32_t)i);
    }
    if (i < size) {
        LAST_LOOK(line, size, i, SET(pair_mask)(p, &strange));
    }
    *odd = strange != 0;
    return (uint32_t)(to - at);
}

#endif
