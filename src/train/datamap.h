/* datamap.h - the sources and parts of an epoch, and where reading stands among them: what a
 * checkpoint says of the data.
 *
 * A source is known by its path, size and time of last change (sources.jsonl); a run that goes on
 * within an epoch refuses one that has changed.
 */
#ifndef TN_TRAIN_DATAMAP_H
#define TN_TRAIN_DATAMAP_H

#include "base/arena.h"
#include "base/text.h"
#include "io/reader.h"
#include "ps/manifest.h"

typedef struct tn_source_id {
    uint64_t bytes;
    uint64_t tag; /* last change, in ns */
} tn_source_id;

typedef struct tn_data_map {
    uint32_t n_sources;
    const char *const *source;
    const tn_source_id *id; /* of each, when the epoch was opened; 0: not known */
    uint32_t n_parts;
    const tn_part_info *part; /* in the order of this epoch */
} tn_data_map;

/* Copies what the reader knows into the arena. */
const tn_data_map *tn_data_map_of(const tn_reader *reader, tn_arena *arena);

/* Lines {"uri","bytes","tag"}; tag = time of last change in ns. */
tn_status tn_data_map_sources(const tn_data_map *map, tn_text *out, tn_error *err) TN_MUST_USE;

/* Every source of sources.jsonl is as it was. TN_E_DATA names the first that is not. */
tn_status tn_data_map_check(const tn_text *lines, const char *what, tn_error *err) TN_MUST_USE;

/* Parts for the manifest, adjacent done ones merged; lives in the arena. */
const tn_manifest_part *tn_data_map_parts(const tn_data_map *map, const tn_progress *at,
                                          tn_arena *arena, uint32_t *n);

/* The way back: where in an epoch a manifest stands. One reader stands in one part, behind those
 * that are done; several leave any pattern of parts (`shared`, ps/ledger.h). */
typedef struct tn_data_stand {
    bool within;    /* somewhere in an epoch .. */
    uint32_t epoch; /* .. this one */
    bool shared;
    uint32_t source; /* of one reader: its part */
    uint64_t begin, end, position;
    bool has_sources;     /* by whoever read sources.jsonl; else another process checks them: */
    uint32_t sources_crc; /* its crc */
    uint32_t parts_crc;   /* of all parts and their states */
    uint32_t n_parts;
    tn_manifest_part *part; /* as in the manifest; owned */
} tn_data_stand;

/* On failure *out is empty. */
tn_status tn_data_stand_init(tn_data_stand *out, const tn_manifest *m, tn_error *err) TN_MUST_USE;
void tn_data_stand_done(tn_data_stand *s); /* and is empty */

/* The same place in the map of the same epoch, into at->part and at->position; of one reader.
 * TN_E_DATA: other sources, or cut into other parts, or these in another order. */
tn_status tn_data_map_find(const tn_data_map *map, const tn_data_stand *stand, tn_progress *at,
                           tn_error *err) TN_MUST_USE;

/* The same sources and, as far as the stand tells it, the same order; whether the parts are the
 * same the ledger says. TN_E_DATA. */
tn_status tn_data_map_check_stand(const tn_data_map *map, const tn_data_stand *stand,
                                  tn_error *err) TN_MUST_USE;

/* TN_E_DATA: these are other parts. */
tn_status tn_data_map_refuse(tn_error *err) TN_MUST_USE;

#endif
