/* arrow_kit.h - arrays and schemas of Arrow, built by hand, for the tests of io/arrow.
 *
 *     struct ArrowSchema schema;
 *     kit_schema(&schema, "+s", "");
 *     kit_schema_child(&schema, "u", "city");
 *     struct ArrowArray batch, *city;
 *     kit_array(&batch, 2, NULL);
 *     city = kit_child(&batch, 2, "10");                     the second is null
 *     kit_buffer(city, (int32_t[]){0, 4, 4}, 12);
 *     kit_buffer(city, "Oslo", 4);
 *
 * Every buffer is copied into memory of exactly its size, so that the address sanitizer sees a byte
 * too many. kit_live is how many structures are not released yet, children included; a second
 * release of one fails the test.
 */
#pragma once

#include "io/arrow/arrow_abi.h"

#include <stddef.h>
#include <stdint.h>

extern int kit_live;

void kit_schema(struct ArrowSchema *out, const char *format, const char *name);
struct ArrowSchema *kit_schema_child(struct ArrowSchema *of, const char *format, const char *name);
struct ArrowSchema *kit_schema_dictionary(struct ArrowSchema *of, const char *format);

/* `valid` has a character for each value from the array's offset, which is set later, back to the
 * buffer's first: "101", or NULL for no bitmap. It becomes buffer 0. */
void kit_array(struct ArrowArray *out, int64_t length, const char *valid);
struct ArrowArray *kit_child(struct ArrowArray *of, int64_t length, const char *valid);
struct ArrowArray *kit_dictionary(struct ArrowArray *of, int64_t length, const char *valid);

/* Adds a buffer; `data` NULL: one that is not there. */
void kit_buffer(struct ArrowArray *of, const void *data, size_t size);
void kit_bits(struct ArrowArray *of, const char *bits); /* the same of bits, "101" */

/* The last buffer of an array of views: the sizes of those between. */
void kit_view_sizes(struct ArrowArray *of);

/* A column of a format whose array has one buffer of values, without nulls where valid is NULL. */
struct ArrowArray *kit_column(struct ArrowSchema *schema, struct ArrowArray *batch,
                              const char *format, const char *valid, const void *data, size_t size);

/* A stream of `n` batches, moved into it; after them, `fails` != 0 is the code of a failure. */
typedef struct kit_stream {
    struct ArrowSchema schema; /* given once, by the first call */
    struct ArrowArray batch[4];
    int n;
    int at;
    int fails;
    const char *error;
} kit_stream;

void kit_stream_open(struct ArrowArrayStream *out, kit_stream *of);
