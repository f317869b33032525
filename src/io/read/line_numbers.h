/* line_numbers.h - which line of a file a byte stands in, found only when a message needs it.
 *
 * Nobody counts lines while parsing, and a part may begin anywhere. The first fault of a part
 * counts from the nearest place whose line is known; that place and every beginning of a part on
 * the way are kept, so that any number of faults costs one more pass over the file, not one each.
 *
 *     file     |....part 0....|....part 1....|....part 2....|
 *     known    0              17             x    ^ the furthest place asked for: line 40
 *
 * Owned by the fileset; any thread.
 */
#ifndef TN_IO_LINE_NUMBERS_H
#define TN_IO_LINE_NUMBERS_H

#include "io/read/fileset.h"

typedef struct tn_line_numbers tn_line_numbers;

/* NULL: no memory. */
tn_line_numbers *tn_line_numbers_new(tn_error *err) TN_MUST_USE;
void tn_line_numbers_free(tn_line_numbers *lines); /* NULL is fine */

/* How many lines end before a byte of a file that is cut into parts. False: it cannot be read. */
bool tn_line_numbers_before(const tn_fileset *files, uint32_t file, uint64_t offset,
                            uint64_t *out) TN_MUST_USE;

/* Line ends among some bytes. */
uint64_t tn_line_numbers_count(const char *data, size_t size);

#endif
