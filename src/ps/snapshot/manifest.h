/* manifest.h - MANIFEST: the document that makes a folder of files a checkpoint.
 *
 *     TN_TRY(tn_manifest_write(&m, &text, &crc, err));              JSON that ends in its own crc
 *     TN_TRY(tn_manifest_read(&m, text, size, arena, path, err));   hostile input
 *
 * Plain values. For a write, strings and lists are lent until it returns; after a read they live in
 * the arena. A list is a pointer and its n_. The members are those of the JSON
 * document, in its order. Errors: TN_E_CKPT with the file and the member; TN_E_LIMIT: whole, but
 * newer or larger than this build reads.
 */
#pragma once

#include "base/codec/document.h"
#include "ps/snapshot/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_arena tn_arena; /* base/core/arena.h */
typedef struct tn_text tn_text;   /* base/core/text.h */

enum { TN_MANIFEST_BYTES_MAX = 64 << 20, TN_MANIFEST_RANK_MAX = 8 };

typedef struct tn_manifest_param {
    const char *name;
    uint32_t rank;
    uint64_t shape[TN_MANIFEST_RANK_MAX];
    uint64_t at; /* in the flat vector */
    bool train;
} tn_manifest_param;

typedef struct tn_manifest_dense {
    uint64_t size;
    const char *optimizer;
    uint32_t n_states, n_params;
    uint64_t t; /* steps of the dense optimizer */
    const char *state[TN_ROW_STATES_MAX];
    const tn_manifest_param *param;
} tn_manifest_dense;

typedef struct tn_manifest_file {
    const char *name, *type; /* sparse dense admit metrics config sources */
    uint64_t bytes, rows;    /* rows and partitions: of a sparse file only */
    uint32_t crc, first, last;
} tn_manifest_file;

/* The sections of rows, weights and files; whoever trains adds sections of its own. */
typedef struct tn_manifest {
    uint64_t ordinal, base; /* base 0: a full one; else the ordinal of a delta's predecessor */
    uint32_t base_crc;
    bool is_delta; /* in the document only: base is not 0 */
    uint64_t run_id, step, samples, rows;
    uint32_t clock;
    const char *config_hash, *structure; /* 64 hex digits each */
    tn_row_schema sparse;
    tn_manifest_dense dense;
    tn_doc_part sections; /* members between "dense" and "files" */
    uint32_t n_files;
    const tn_manifest_file *file; /* by name, bytewise */
    uint32_t crc;                 /* set by a read: the last member of the document */
} tn_manifest;

/* Lists must be sorted already (TN_ASSERT). *crc: the crc32c member. */
tn_status tn_manifest_write(const tn_manifest *m, tn_text *out, uint32_t *crc,
                            tn_error *err) TN_MUST_USE;
/* out->sections are those to read; all else is set. */
tn_status tn_manifest_read(tn_manifest *out, const tn_text *text, tn_arena *arena, const char *what,
                           tn_error *err) TN_MUST_USE;

/* Appends the text whose hash names a model: "<structure>", and of the member "files" the entries
 * of rows and dense values. The other files depend on paths and times of the data. */
void tn_manifest_add_learned(tn_text *out, const tn_manifest *m);

/* SHA-256 in hex over "sparse", "params" and `nodes`, the training graph as in model.json. */
tn_status tn_manifest_structure(const tn_manifest *m, const char *nodes, char out[65],
                                tn_error *err) TN_MUST_USE;

/* First bytes of the SHA-256 of the member "sparse", for the heads of shard files. */
tn_status tn_row_schema_hash(const tn_row_schema *schema, uint8_t out[TN_SNAPSHOT_SCHEMA_BYTES],
                             tn_error *err) TN_MUST_USE;
