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

enum { TN_MANIFEST_BYTES_MAX = 64 << 20, TN_MANIFEST_RANK_MAX = 8, TN_MANIFEST_RANKS_MAX = 1024 };

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

typedef enum tn_part_state { TN_PART_FREE, TN_PART_DEALT, TN_PART_DONE } tn_part_state;

typedef struct tn_manifest_part {
    uint32_t source;
    uint64_t begin, end; /* bytes */
    tn_part_state state;
    uint32_t attempt;  /* not of a part that is done */
    uint64_t position; /* records */
} tn_manifest_part;

typedef struct tn_manifest_file {
    const char *name, *type; /* sparse dense admit metrics config sources */
    uint64_t bytes, rows;    /* rows and partitions: of a sparse file only */
    uint32_t crc, first, last;
} tn_manifest_file;

/* Days that a run over days has learned, in days since 1970-01-01, or all in hours. */
typedef struct tn_day_range {
    uint32_t first, last;
} tn_day_range;

/* An hour, of a run over hours, is TN_HOUR_MIN and its number since then. */
enum {
    TN_DAY_RANGES_MAX = 64,
    TN_DAY_MAX = 2932896, /* 9999-12-31 */
    TN_HOUR_MIN = 1 << 30,
    TN_HOUR_MAX = TN_HOUR_MIN + TN_DAY_MAX * 24 + 23,
};

static inline bool tn_day_is_hour(uint64_t day)
{
    return day >= TN_HOUR_MIN && day <= TN_HOUR_MAX;
}

typedef struct tn_manifest_days {
    bool used;  /* false: no run over days, and all else is 0 */
    bool hours; /* in the document only: its numbers are hours from 0 */
    uint32_t n;
    tn_day_range range[TN_DAY_RANGES_MAX]; /* learned; ascending, with days between them */
    bool within;                           /* a day that is not learned to its end */
    uint32_t day;     /* this one; outside of one the day that was learned last; 0: not known */
    uint32_t epoch;   /* that the day within began with */
    uint64_t before;  /* the checkpoint before it began; 0: none, or not known */
    uint64_t samples; /* when it began */
} tn_manifest_days;

enum { TN_MODEL_ID_TEXT = 33 };

/* What a run publishes while it trains. */
typedef struct tn_manifest_export {
    bool due; /* this checkpoint is to be exported */
    char
        newest[TN_MODEL_ID_TEXT]; /* model id of the export before, when this was begun; "": none */
    bool awaits;             /* due, once its calibration is fitted, which a signal has ended */
    const char *calibration; /* of this model, as JSON (serve/calibration_file.h); NULL: none */
} tn_manifest_export;

typedef struct tn_manifest {
    uint64_t ordinal, base; /* base 0: a full one; else the ordinal of a delta's predecessor */
    uint32_t base_crc;
    bool is_delta; /* in the document only: base is not 0 */
    uint64_t run_id, step, samples, rows;
    uint32_t clock;
    const char *config_hash, *structure; /* 64 hex digits each */
    tn_row_schema sparse;
    tn_manifest_dense dense;
    uint32_t epoch, n_parts, n_files;
    const tn_manifest_part *part;
    uint64_t epoch_step; /* steps when this epoch began; 0: at the first, or not known */
    uint32_t begun_crc;  /* if begun: of that checkpoint's manifest; 0: it began with files */
    bool begun;          /* the run began with weights that are not its own */
    bool shared;         /* several readers read these parts, in any order */
    uint32_t shuffle;    /* if shared: data.shuffle, which positions of parts depend on */
    uint32_t cut_for;    /* the ranks that the parts were cut for, at least 1 */
    tn_manifest_days days;
    tn_manifest_export export;
    tn_doc_raw requests, logs;    /* have a place in the format only */
    const tn_manifest_file *file; /* by name, bytewise */
    uint64_t seed;
    const char *best_name; /* NULL: none yet */
    double best_value, lr_scale;
    double best_counted; /* of the evaluations that count for train.stop; NAN: none yet */
    uint64_t best_step, bad_evals;
    bool eval_owed; /* an evaluation due at this step is still to come */
    const char *cpu, *blas;
    uint32_t crc; /* of a manifest that was read: its last member */
} tn_manifest;

/* Lists must be sorted already (TN_ASSERT). *crc: the crc32c member. */
tn_status tn_manifest_write(const tn_manifest *m, tn_text *out, uint32_t *crc,
                            tn_error *err) TN_MUST_USE;
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
