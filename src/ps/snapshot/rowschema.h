/* rowschema.h - what the floats of a row mean, as it stands in MANIFEST under "sparse".
 *
 *     {"partitions":1024,
 *      "records":[{"segments":[{"name":"wide","dim":1,"optimizer":"ftrl","state":[["z",1],["n",1]]}]}],
 *      "groups":[{"name":"user","salt":"3da0fd9c44cfc9ee","record":0}]}
 *
 * Shard files hold only eight bytes of its hash. For a write, strings and lists are lent; after a
 * read they live in the arena.
 */
#ifndef TN_PS_ROWSCHEMA_H
#define TN_PS_ROWSCHEMA_H

#include "base/codec/json.h"
#include "base/keys/record.h"
#include "ps/snapshot/snapshot.h"

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

/* `key` NULL: the bare text, whose bytes are hashed. */
void tn_row_schema_write(tn_text *t, const char *key, const tn_row_schema *schema);

/* The first member that is missing or wrong is noted in r; lists live in its arena. */
void tn_row_schema_read(tn_members *r, const tn_json *object, tn_row_schema *out);

/* First bytes of the SHA-256 of the bare text, for the heads of shard files. */
tn_status tn_row_schema_hash(const tn_row_schema *schema, uint8_t out[TN_SNAPSHOT_SCHEMA_BYTES],
                             tn_error *err) TN_MUST_USE;

/* The layout that the reader of shard files needs. */
const tn_snapshot_layout *tn_row_schema_layout(const tn_row_schema *schema, tn_arena *arena);

#endif
