/* epoch_parts.h - the sources and parts of an epoch, and where reading stands among them: what a
 * checkpoint says of the data.
 *
 * Which files these are, and whether they are still the same, train/checkpoint/sources.h says; here
 * only how they were cut counts.
 */
#ifndef TN_TRAIN_EPOCH_PARTS_H
#define TN_TRAIN_EPOCH_PARTS_H

#include "base/core/arena.h"
#include "io/read/reader.h"
#include "ps/snapshot/manifest.h"
#include "train/checkpoint/sources.h"

typedef struct tn_data_map {
    const tn_sources *sources; /* when the epoch was opened; NULL: nobody has looked */
    uint32_t n_parts;
    const tn_part_info *part; /* in the order of this epoch */
    uint32_t cut_for;         /* ranks, as in tn_reader_opts */
} tn_data_map;

/* Copies the reader's parts into the arena. `sources` lives as long, or is NULL. */
const tn_data_map *tn_data_map_of(const tn_reader *reader, const tn_sources *sources,
                                  tn_arena *arena);

/* Parts for the manifest, adjacent done ones merged; lives in the arena. */
const tn_manifest_part *tn_data_map_parts(const tn_data_map *map, const tn_progress *at,
                                          tn_arena *arena, uint32_t *n);

/* The way back: where in an epoch a manifest stands. One reader stands in one part, behind those
 * that are done; several leave any pattern of parts (`shared`, cluster/ledger/ledger.h). */
typedef struct tn_data_stand {
    bool within;    /* somewhere in an epoch .. */
    uint32_t epoch; /* .. this one */
    bool shared;
    uint32_t cut_for; /* ranks, as in tn_reader_opts; 0: not within an epoch */
    uint32_t source;  /* of one reader: its part */
    uint64_t begin, end, position;
    uint32_t parts_crc; /* of all parts and their states */
    uint32_t n_parts;
    tn_manifest_part *part; /* as in the manifest; owned */
} tn_data_stand;

/* On failure *out is empty. */
tn_status tn_data_stand_init(tn_data_stand *out, const tn_manifest *m, tn_error *err) TN_MUST_USE;
void tn_data_stand_done(tn_data_stand *s); /* and is empty */

/* The same place in the map of the same epoch, into at->part and at->position; of one reader.
 * TN_E_DATA: the data are cut into other parts, or these come in another order. */
tn_status tn_data_map_find(const tn_data_map *map, const tn_data_stand *stand, tn_progress *at,
                           tn_error *err) TN_MUST_USE;

/* The same order, as far as the stand tells it; whether the parts are the same the ledger says.
 * TN_E_DATA. */
tn_status tn_data_map_check_stand(const tn_data_map *map, const tn_data_stand *stand,
                                  tn_error *err) TN_MUST_USE;

/* TN_E_DATA: these are other parts. */
tn_status tn_data_map_refuse(tn_error *err) TN_MUST_USE;

#endif
