/* setup.h - schemas from a line of YAML, files with given bytes, and rows from text, for the tests
 * of io. */
#pragma once

#include "base/core/arena.h"
#include "config/diag.h"
#include "io/read/block_reader.h"
#include "io/read/reader.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

typedef struct setup {
    tn_arena *arena;
    tn_diag diag;
    tn_data_opts data;
    tn_tables slots;
    const tn_schema *schema;
    tn_error err;
    char dir[256]; /* of its own */
} setup;

/* `text` is flow YAML: {data: {..}, slots: [..]}; fails the test unless it makes a schema. */
void setup_open(setup *s, const char *text);
/* The same, for what is wrong: returns the status, and s->diag says why. */
tn_status setup_try(setup *s, const char *text);
void setup_close(setup *s);

/* Parses bytes as one file, through blocks; messages of bad records and the fault stand in `out`.
 */
void setup_parse(const setup *s, const char *bytes, size_t size, tn_parsed *out);
void setup_parse_str(const setup *s, const char *text, tn_parsed *out);
void setup_parsed_free(tn_parsed *parsed);

/* The message of the only bad record of a text; "" when all is well. Lasts until the next call. */
const char *setup_fault(const setup *s, const char *text);

/* Writes bytes into a new file below the test's own folder and returns its path, which lasts. */
const char *setup_file(const setup *s, const char *name, const void *bytes, size_t size);

/* Reads all there is; the last status. */
tn_status setup_drain(const setup *s, const tn_reader_opts *opts, tn_error *err);

/* Bytes that this process has read so far, from files and pipes. */
uint64_t setup_bytes_read(void);

/* All batches of a reader, one after another, as text: one line per row. */
void setup_dump(const setup *s, const tn_reader_opts *opts, tn_text *out);
void setup_dump_batch(const tn_batch *batch, tn_text *out);
