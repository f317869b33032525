/* run_state.c - the parts of an epoch as a manifest lists them, and the way back. */
#include "train/checkpoint/run_state.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "io/read/blocks.h"

const tn_epoch_parts *tn_epoch_parts_of(const tn_reader *reader, const tn_sources *sources,
                                        tn_arena *arena)
{
    tn_epoch_parts *map = TN_NEW(arena, tn_epoch_parts);
    map->sources = sources;
    map->cut_for = tn_reader_cut_for(reader);
    map->n_parts = tn_reader_n_parts(reader);
    tn_part_info *part = TN_NEW_ARRAY(arena, tn_part_info, map->n_parts);
    for (uint32_t i = 0; i < map->n_parts; i++) {
        part[i] = tn_reader_part(reader, i);
    }
    map->part = part;
    return map;
}

static bool continues(const tn_manifest_part *before, const tn_part_info *part)
{
    return before->state == TN_PART_DONE && before->source == part->source &&
           before->end == part->first;
}

/* Part i of the epoch is the (i / n)-th of rank i mod n. */
static tn_manifest_part part_of(const tn_part_info *part, uint32_t i, uint32_t n,
                                const tn_progress *progress)
{
    const tn_progress *at = &progress[i % n];
    const bool here = i / n == at->part && at->position > 0;
    return (tn_manifest_part){
        .source = part->source,
        .begin = part->first,
        .end = part->end,
        .state = i / n < at->part ? TN_PART_DONE
                 : here           ? TN_PART_DEALT
                                  : TN_PART_FREE,
        .position = here ? at->position : 0,
    };
}

const tn_manifest_part *tn_epoch_parts_manifest(const tn_epoch_parts *map, const tn_progress *at,
                                                uint32_t n_ranks, tn_arena *arena, uint32_t *n)
{
    bool begun = false;
    for (uint32_t r = 0; r < n_ranks; r++) {
        begun = begun || at[r].part > 0 || at[r].position > 0;
    }
    *n = 0;
    if (map == NULL || !begun) {
        return NULL; /* between two epochs */
    }
    tn_manifest_part *out = TN_NEW_ARRAY(arena, tn_manifest_part, map->n_parts);
    for (uint32_t i = 0; i < map->n_parts; i++) {
        const tn_manifest_part part = part_of(&map->part[i], i, n_ranks, at);
        if (*n > 0 && part.state == TN_PART_DONE && continues(&out[*n - 1], &map->part[i])) {
            out[*n - 1].end = part.end;
        } else {
            out[(*n)++] = part;
        }
    }
    return out;
}

tn_status tn_epoch_position_init(tn_epoch_position *out, const tn_manifest *m, tn_error *err)
{
    *out = (tn_epoch_position){0};
    tn_manifest_part *part = NULL;
    TN_TRY(TN_ALLOC(part, (size_t)m->n_parts + 1, "the parts of an epoch", err));
    for (uint32_t i = 0; i < m->n_parts; i++) {
        part[i] = m->part[i];
    }
    *out = (tn_epoch_position){.within = m->n_parts > 0,
                               .epoch = m->epoch,
                               .shared = m->shared,
                               .cut_for = m->n_parts > 0 ? m->cut_for : 0,
                               .n_parts = m->n_parts,
                               .part = part};
    return TN_OK;
}

void tn_epoch_position_done(tn_epoch_position *s)
{
    tn_free(s->part);
    *s = (tn_epoch_position){0};
}

static bool same_part(const tn_manifest_part *a, const tn_manifest_part *b)
{
    return a->source == b->source && a->begin == b->begin && a->end == b->end &&
           a->state == b->state && a->position == b->position;
}

/* Returns whether a position in part i of the epoch has the same parts before and after it. */
static bool stands_in(const tn_epoch_parts *map, const tn_progress *at,
                      const tn_epoch_position *stand)
{
    TN_ASSERT(at->part < map->n_parts);
    tn_arena *arena = tn_arena_new(1 << 12);
    uint32_t n = 0;
    const tn_manifest_part *parts = tn_epoch_parts_manifest(map, at, 1, arena, &n);
    bool same = n == stand->n_parts;
    for (uint32_t i = 0; same && i < n; i++) {
        same = same_part(&parts[i], &stand->part[i]);
    }
    tn_arena_free(arena);
    return same;
}

tn_status tn_epoch_parts_refuse(tn_error *err)
{
    return tn_fail(err, TN_E_DATA,
                   "the data of the checkpoint was cut into other parts\nhint: data.train, "
                   "data.part_bytes, data.shuffle and run.seed must be as they were");
}

tn_status tn_epoch_parts_find(const tn_epoch_parts *map, const tn_epoch_position *stand,
                              tn_progress *at, tn_error *err)
{
    TN_ASSERT(!stand->shared);
    uint32_t first = 0; /* the first part that is not done */
    while (first < stand->n_parts && stand->part[first].state == TN_PART_DONE) {
        first++;
    }
    for (uint32_t i = 0; i < map->n_parts && first < stand->n_parts; i++) {
        const tn_manifest_part *in = &stand->part[first];
        const tn_part_info *part = &map->part[i];
        const tn_progress here = {.part = i, .position = in->position};
        if (part->source == in->source && part->first == in->begin && part->end == in->end &&
            stands_in(map, &here, stand)) {
            at->part = i;
            at->position = in->position;
            return TN_OK;
        }
    }
    return tn_epoch_parts_refuse(err);
}

tn_status tn_epoch_parts_check(const tn_epoch_parts *map, const tn_epoch_position *stand,
                               tn_error *err)
{
    tn_progress at = {0};
    return stand->shared ? TN_OK : tn_epoch_parts_find(map, stand, &at, err);
}
