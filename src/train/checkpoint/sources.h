/* sources.h - the training files of an epoch, known by what is in them: sources.jsonl.
 *
 *     TN_TRY(tn_sources_now(&now, &run->data.train, schema, arena, err));
 *     if (tn_sources_differ(was, now, &how)) ...             was: of the epoch before, or of a file
 *
 * A file is its size and a hash of its head, its tail and samples between them, at places that the
 * size alone decides. Its name, its folder and its times say nothing: it may be moved, copied and
 * touched. An object of a URI is its size and a hash of its version: its ETag, or when it was
 * changed. What comes once (standard input, a pipe) is not known, and neither is what an earlier
 * version has written down by time of change: of that only the size counts.
 */
#pragma once

#include "base/core/arena.h"
#include "base/core/text.h"
#include "config/values.h"

typedef struct tn_schema tn_schema; /* io/schema/schema.h */

typedef struct tn_source_id {
    bool known, hashed;
    bool tagged; /* `hash` is of a version rather than of bytes */
    uint64_t bytes;
    uint64_t hash; /* the first 8 bytes of a SHA-256 */
} tn_source_id;

typedef struct tn_sources {
    uint32_t n; /* 0: nothing is known of them */
    const char *const *uri;
    const tn_source_id *id;
} tn_sources;

/* The files that `paths` names, as they are now; TN_E_DATA and the like when there are none. */
tn_status tn_sources_now(const tn_sources **out, const tn_strs *paths, const tn_schema *schema,
                         tn_arena *arena, tn_error *err) TN_MUST_USE;
/* The same files once more, whatever the folders hold besides. Objects are what they were: whoever
 * has read them has compared their versions. */
const tn_sources *tn_sources_again(const tn_sources *s, tn_arena *arena);

/* True: they are not the same, as far as that is known; `how` gets a clause. Names may differ. */
bool tn_sources_differ(const tn_sources *was, const tn_sources *now, tn_text *how);

/* Lines {"uri","bytes","hash"}, or "version" in the place of "hash"; NULL: none. */
tn_status tn_sources_write(const tn_sources *s, tn_text *out, tn_error *err) TN_MUST_USE;
/* TN_E_CKPT: these are no such lines. */
tn_status tn_sources_read(const tn_sources **out, const tn_text *lines, const char *what,
                          tn_arena *arena, tn_error *err) TN_MUST_USE;
