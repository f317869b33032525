/* snapshot.h - shard files (.tns): rows of a run of partitions, ascending by key, one file.
 *
 *     header | blocks of partition first | .. | blocks of partition last | index | trailer
 *
 *     tn_snapshot_create(&w, path, &head, err);
 *     for each partition, ascending:   tn_snapshot_begin(w, partition, err)
 *         for each row, ascending:     tn_snapshot_add(w, &row, err)
 *     tn_snapshot_commit(w, &done, err);            fsynced; frees w either way
 *
 * The reader is given the meaning of a row's floats, which the manifest has. It trusts
 * nothing: sizes are checked before memory is taken, every byte is under a crc, keys must ascend
 * and lie in their partition. It holds one block (1 MiB) at a time. A writer or a reader belongs to
 * one thread; several may work on different files. Bytes: see snapshot.c.
 *
 * Errors: TN_E_CKPT with file and offset for what is wrong in the file; TN_E_LIMIT: written by a
 * newer version; else TN_E_IO, TN_E_MEMORY.
 */
#pragma once

#include "base/keys/record.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TN_SNAPSHOT_PARTITIONS_MAX = 65536,
    TN_SNAPSHOT_BLOCK_MAX = 1 << 20,    /* bytes of rows in a block, so of a row too */
    TN_SNAPSHOT_ROW_BYTES = 32,         /* before its floats */
    TN_SNAPSHOT_FILE_BYTES = 256 << 20, /* callers cut between partitions at this size */
    TN_SNAPSHOT_SCHEMA_BYTES = 8
};

typedef struct tn_snapshot_head {
    uint64_t run_id;
    uint64_t step;
    uint64_t base_step; /* a delta's: step of its predecessor */
    uint8_t
        schema[TN_SNAPSHOT_SCHEMA_BYTES]; /* first bytes of SHA-256 of the manifest's "sparse" */
    uint32_t partitions;                  /* size of the whole key space, 1 .. 65536 */
    uint32_t first, last;                 /* partitions of this file */
    bool delta;                           /* may hold removed rows */
} tn_snapshot_head;

/* The layout of a row's floats: "sparse" of the manifest. Shard files hold 8 bytes of its hash.
 *
 *     {"partitions":1024,
 *      "records":[{"segments":[{"name":"wide","dim":1,"optimizer":"ftrl",
 *                               "state":[["z",1],["n",1]]}]}],
 *      "groups":[{"name":"user","salt":"3da0fd9c44cfc9ee","record":0}]}
 */
enum { TN_ROW_STATES_MAX = 4 };

typedef struct tn_row_state {
    const char *name;
    uint32_t words; /* 4-byte words per row */
    bool count;     /* u32, not f32 */
} tn_row_state;

typedef struct tn_row_segment {
    const char *name, *optimizer;
    uint32_t dim, n_states;
    tn_row_state state[TN_ROW_STATES_MAX];
} tn_row_segment;

typedef struct tn_row_record {
    uint32_t n_segments;
    tn_row_segment segment[TN_SEGMENTS_MAX];
} tn_row_record;

typedef struct tn_row_group {
    const char *name;
    uint64_t salt;
    uint32_t record;
} tn_row_group;

typedef struct tn_row_schema {
    uint32_t partitions, n_records, n_groups;
    const tn_row_record *record;
    const tn_row_group *group;
} tn_row_schema;

/* The numbers of a file that go into the manifest. */
typedef struct tn_snapshot_done {
    uint64_t bytes;
    uint64_t rows;
    uint32_t crc;
} tn_snapshot_done;

typedef struct tn_snapshot_writer tn_snapshot_writer;

tn_status tn_snapshot_create(tn_snapshot_writer **out, const char *path,
                             const tn_snapshot_head *head, tn_error *err) TN_MUST_USE;
tn_status tn_snapshot_begin(tn_snapshot_writer *w, uint32_t partition, tn_error *err) TN_MUST_USE;
tn_status tn_snapshot_add(tn_snapshot_writer *w, const tn_row_view *row, tn_error *err) TN_MUST_USE;
tn_status tn_snapshot_commit(tn_snapshot_writer *w, tn_snapshot_done *out,
                             tn_error *err) TN_MUST_USE;
void tn_snapshot_abandon(tn_snapshot_writer *w); /* removes the file; NULL is fine */

typedef struct tn_snapshot tn_snapshot;

/* Checks header, index and trailer. */
tn_status tn_snapshot_open(tn_snapshot **out, const char *path, tn_error *err) TN_MUST_USE;
void tn_snapshot_close(tn_snapshot *s); /* NULL is fine */

const tn_snapshot_head *tn_snapshot_head_of(const tn_snapshot *s);
uint64_t tn_snapshot_rows(const tn_snapshot *s);

/* Checks the blocks of one partition and calls visit (which may be NULL) for its rows. */
tn_status tn_snapshot_read(tn_snapshot *s, uint32_t partition, const tn_row_schema *schema,
                           tn_row_visit *visit, void *arg, tn_error *err) TN_MUST_USE;
