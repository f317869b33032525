/* run_state.c - the parts of an epoch as a manifest lists them, and the way back; the table of what
 * a manifest says of a run. */
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

static bool continues(const tn_epoch_part *before, const tn_part_info *part)
{
    return before->state == TN_PART_DONE && before->source == part->source &&
           before->end == part->first;
}

/* Part i of the epoch is the (i / n)-th of rank i mod n. */
static tn_epoch_part part_of(const tn_part_info *part, uint32_t i, uint32_t n,
                             const tn_progress *progress)
{
    const tn_progress *at = &progress[i % n];
    const bool here = i / n == at->part && at->position > 0;
    return (tn_epoch_part){
        .source = part->source,
        .begin = part->first,
        .end = part->end,
        .state = i / n < at->part ? TN_PART_DONE
                 : here           ? TN_PART_DEALT
                                  : TN_PART_FREE,
        .position = here ? at->position : 0,
    };
}

tn_epoch_part *tn_epoch_parts_manifest(const tn_epoch_parts *map, const tn_progress *at,
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
    tn_epoch_part *out = TN_NEW_ARRAY(arena, tn_epoch_part, map->n_parts);
    for (uint32_t i = 0; i < map->n_parts; i++) {
        const tn_epoch_part part = part_of(&map->part[i], i, n_ranks, at);
        if (*n > 0 && part.state == TN_PART_DONE && continues(&out[*n - 1], &map->part[i])) {
            out[*n - 1].end = part.end;
        } else {
            out[(*n)++] = part;
        }
    }
    return out;
}

tn_status tn_epoch_position_init(tn_epoch_position *out, const tn_epoch_position *from,
                                 tn_error *err)
{
    tn_epoch_part *part = NULL;
    *out = (tn_epoch_position){0};
    TN_TRY(TN_ALLOC(part, (size_t)from->n_parts + 1, "the parts of an epoch", err));
    for (uint32_t i = 0; i < from->n_parts; i++) {
        part[i] = from->part[i];
    }
    *out = *from;
    out->part = part;
    return TN_OK;
}

void tn_epoch_position_done(tn_epoch_position *s)
{
    tn_free(s->part);
    *s = (tn_epoch_position){0};
}

static bool same_part(const tn_epoch_part *a, const tn_epoch_part *b)
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
    const tn_epoch_part *parts = tn_epoch_parts_manifest(map, at, 1, arena, &n);
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
        const tn_epoch_part *in = &stand->part[first];
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

/* ---- the sections of a manifest ---- */

enum { RANKS_MAX = 1024 };

static bool is_open(const void *part)
{
    return ((const tn_epoch_part *)part)->state != TN_PART_DONE;
}

static const char *check_part(void *part)
{
    const tn_epoch_part *p = part;
    return p->begin <= p->end ? NULL : "end";
}

/* [source, first byte, end, "done"] or [.., "free" or "dealt", attempt, position] */
static const tn_doc_row part_rows[] = {
    TN_DOC_U32(tn_epoch_part, source, 0, UINT32_MAX, "source"),
    TN_DOC_COUNT(tn_epoch_part, begin, UINT64_MAX, "begin"),
    TN_DOC_COUNT(tn_epoch_part, end, UINT64_MAX, "end"),
    TN_DOC_CHECK(check_part),
    TN_DOC_WORD(tn_epoch_part, state, tn_part_state,
                ((const char *const[]){"free", "dealt", "done", NULL}), "state"),
    TN_DOC_U32(tn_epoch_part, attempt, 0, UINT32_MAX, "attempt", TN_DOC_IF(is_open)),
    TN_DOC_COUNT(tn_epoch_part, position, UINT64_MAX, "position", TN_DOC_IF(is_open)),
    TN_DOC_END,
};

static const tn_doc_row progress_rows[] = {
    TN_DOC_U32(tn_run_sections, progress.epoch, 0, UINT32_MAX, "epoch"),
    TN_DOC_LIST(tn_run_sections, progress.n_parts, progress.part, tn_epoch_part *, '[', part_rows,
                UINT32_MAX, "parts"),
    TN_DOC_U32(tn_run_sections, progress.shuffle, 0, UINT32_MAX, "shuffle",
               TN_DOC_FLAG(tn_run_sections, progress.shared)),
    TN_DOC_U32(tn_run_sections, progress.cut_for, 1, RANKS_MAX, "ranks", TN_DOC_MAY_MISS),
    TN_DOC_U64(tn_run_sections, kept.epoch_step, 0, UINT64_MAX, "step", TN_DOC_MAY_MISS),
    TN_DOC_CRC(tn_run_sections, kept.begun_crc, "begun", TN_DOC_FLAG(tn_run_sections, kept.begun)),
    TN_DOC_END,
};

static const tn_doc_row export_rows[] = {
    TN_DOC_BOOL(tn_publish_state, due, "due"),
    TN_DOC_ID(tn_publish_state, newest, 0, "newest"), /* becomes a path */
    TN_DOC_BOOL(tn_publish_state, awaits, "awaits_calibration", TN_DOC_MAY_MISS),
    TN_DOC_STR(tn_publish_state, calibration, "calibration", TN_DOC_MAY_MISS),
    TN_DOC_END,
};

static bool is_published(const void *sections)
{
    const tn_publish_state *s = &((const tn_run_sections *)sections)->kept.export;
    return s->due || s->newest[0] != '\0';
}

static bool has_best(const void *kept)
{
    const tn_early_stopping_state *s = &((const tn_run_kept *)kept)->patience;
    return s->seen && s->monitor != NULL;
}

/* Until "counted" says otherwise the best counts. */
static const char *count_best(void *state)
{
    tn_early_stopping_state *s = state;
    s->seen = true;
    s->counted = s->best;
    return NULL;
}

static bool counts_other(const void *state)
{
    const tn_early_stopping_state *s = state;
    return s->counted != s->best;
}

static const tn_doc_row best_rows[] = {
    TN_DOC_STR(tn_early_stopping_state, monitor, "name"),
    TN_DOC_F64(tn_early_stopping_state, best, "value"),
    TN_DOC_U64(tn_early_stopping_state, step, 0, UINT64_MAX, "step"),
    TN_DOC_CHECK(count_best),
    TN_DOC_NAN(tn_early_stopping_state, counted, "counted", TN_DOC_MAY_MISS, .has = counts_other),
    TN_DOC_END,
};

static const tn_doc_row metrics_rows[] = {
    TN_DOC_OBJECT(tn_run_kept, patience, tn_early_stopping_state, '{', best_rows, "best",
                  TN_DOC_OR_NULL, .has = has_best),
    TN_DOC_U32(tn_run_kept, patience.bad, 0, UINT32_MAX, "bad_evals"),
    TN_DOC_F64(tn_run_kept, patience.lr_scale, "lr_scale"),
    TN_DOC_BOOL(tn_run_kept, eval_owed, "eval_owed", TN_DOC_MAY_MISS),
    TN_DOC_END,
};

static const tn_doc_row host_rows[] = {
    TN_DOC_STR(tn_run_sections, cpu, "cpu"),
    TN_DOC_STR(tn_run_sections, blas, "blas"),
    TN_DOC_END,
};

static const char *check_days(void *sections)
{
    const tn_run_sections *s = sections;
    return s->kept.days.epoch > s->progress.epoch ? "days.epoch" : NULL;
}

const tn_doc_row tn_run_sections_rows[] = {
    TN_DOC_GROUP('{', progress_rows, "progress"),
    TN_DOC_OBJECT(tn_run_sections, kept.days, tn_learned_days, '{', tn_learned_days_rows, "days",
                  TN_DOC_FLAG(tn_run_sections, kept.days.used)),
    TN_DOC_CHECK(check_days),
    TN_DOC_OBJECT(tn_run_sections, kept.export, tn_publish_state, '{', export_rows, "export",
                  TN_DOC_MAY_MISS, .has = is_published),
    TN_DOC_HEX(tn_run_sections, seed, "seed"),
    TN_DOC_RAW(tn_run_sections, unused, "requests", .words = (const char *const[]){"[]"}),
    TN_DOC_OBJECT(tn_run_sections, kept, tn_run_kept, '{', metrics_rows, "metrics"),
    TN_DOC_RAW(tn_run_sections, unused, "logs", .words = (const char *const[]){"{}"}),
    TN_DOC_GROUP('{', host_rows, "host"),
    TN_DOC_END,
};

const tn_run_sections *tn_run_sections_of(const tn_manifest *m)
{
    TN_ASSERT(m->sections.rows == tn_run_sections_rows);
    return m->sections.of;
}
