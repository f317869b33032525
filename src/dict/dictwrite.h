/* dictwrite.h - writing an inference dictionary (.tnd); dict/dict.h reads it.
 *
 *     tn_dict_source from = {.n_pieces = 1024, .walk = my_rows, .arg = me};
 *     TN_TRY(tn_dict_write("dict.tnd", &spec, &from, &done, err));
 *
 * The source is walked several times (once, and once per table) and must give the same rows every
 * time. It comes in pieces: keys ascend within one and from each to the next. With a team pieces
 * are walked side by side. Memory: 12 bytes per row and a piece's rows per thread. Rows of one
 * layout and one set of present segments share a table; a group lists up to 8 tables, fullest
 * first, and a rarer set goes, zero-filled, to the smallest table that contains it. One content,
 * one file: bytes depend on spec and rows alone.
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/keyspace.h"
#include "dict/dictformat.h"
#include "dict/dictvalue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_layout tn_layout; /* base/keys/record.h */
typedef struct tn_record tn_record;
typedef struct tn_team tn_team; /* base/thread/team.h */

/* One row of the source, lent for the call. */
typedef struct tn_dict_entry {
    uint64_t key;
    uint16_t group;
    uint16_t present;    /* bit i: segment i of its record; 0: the row is left out */
    bool removed;        /* deltas only: the key is gone */
    const float *values; /* all segments; absent ones are not read */
    const uint32_t *at;  /* begin of each segment in `values`; NULL: tn_segment.at */
} tn_dict_entry;

/* Returns the values of the s-th segment, whose tn_segment.at is `at`. */
static inline const float *tn_dict_values(const tn_dict_entry *e, uint32_t s, uint32_t at)
{
    return e->values + (e->at != NULL ? e->at[s] : at);
}

typedef tn_status tn_dict_visit(void *visitor, const tn_dict_entry *entry, tn_error *err);

/* Walks of different pieces may run at the same time, of one piece never two. */
typedef struct tn_dict_source {
    uint32_t n_pieces;
    tn_status (*walk)(void *arg, uint32_t piece, tn_dict_visit *visit, void *visitor,
                      tn_error *err);
    void *arg;
} tn_dict_source;

typedef struct tn_dict_spec {
    uint8_t model_id[TN_MODEL_ID_BYTES];
    uint8_t base_id[TN_MODEL_ID_BYTES]; /* the layer below a delta */
    bool delta;
    const tn_layout *layout; /* segments are numbered as tn_dict_segments does */
    tn_dict_type type;       /* asked for, see tn_dict_type_for */
    bool check_groups;       /* store each row's group */
    const char *json;
    uint32_t partitions;  /* how many the whole key space has, 1 .. 65536 */
    uint32_t first, last; /* partitions of this file */
    tn_team *team;        /* threads that walk; NULL: the calling one alone */
} tn_dict_spec;

typedef struct tn_dict_written {
    uint64_t bytes, rows;
    uint32_t crc;
} tn_dict_written;

/* Lists the names of the layout's segments, each once, in the order of records. TN_E_LIMIT: more
 * than TN_SEGMENTS_MAX. */
tn_status tn_dict_segments(const tn_layout *layout, const char *names[TN_SEGMENTS_MAX], uint32_t *n,
                           tn_error *err) TN_MUST_USE;

/* Returns the scale of the segments of a row that are kept as `type` when `asked` is wanted. */
float tn_dict_row_scale(tn_dict_type asked, tn_dict_type type, const tn_record *record,
                        const tn_dict_entry *e);

/* Creates `path`, which must not exist; a failure leaves nothing. TN_E_CKPT: keys do not ascend, or
 * a weight is not finite. */
tn_status tn_dict_write(const char *path, const tn_dict_spec *spec, const tn_dict_source *source,
                        tn_dict_written *out, tn_error *err) TN_MUST_USE;
