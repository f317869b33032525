/* datamap.c - see datamap.h. */
#include "train/datamap.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/json.h"

#include <string.h>
#include <sys/stat.h>

static const char *kept(tn_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(TN_NEW_ARRAY(arena, char, size), text, size);
}

/* ---- sources ---- */

/* False: there is no such file; stdin is always the same. */
static bool identify(const char *path, tn_source_id *out)
{
    struct stat st;
    *out = (tn_source_id){0};
    if (strcmp(path, "-") == 0) {
        return true;
    }
    if (stat(path, &st) != 0) {
        return false;
    }
    out->bytes = (uint64_t)st.st_size;
    out->tag = (uint64_t)st.st_mtim.tv_sec * 1000000000U + (uint64_t)st.st_mtim.tv_nsec;
    return true;
}

const tn_data_map *tn_data_map_of(const tn_reader *reader, tn_arena *arena)
{
    tn_data_map *map = TN_NEW(arena, tn_data_map);
    map->n_sources = tn_reader_n_sources(reader);
    const char **source = TN_NEW_ARRAY(arena, const char *, map->n_sources);
    tn_source_id *id = TN_NEW_ARRAY(arena, tn_source_id, map->n_sources);
    for (uint32_t i = 0; i < map->n_sources; i++) {
        source[i] = kept(arena, tn_reader_source(reader, i));
        (void)identify(source[i], &id[i]); /* gone already: of no run that goes on */
    }
    map->n_parts = tn_reader_n_parts(reader);
    tn_part_info *part = TN_NEW_ARRAY(arena, tn_part_info, map->n_parts);
    for (uint32_t i = 0; i < map->n_parts; i++) {
        part[i] = tn_reader_part(reader, i);
    }
    map->source = source;
    map->id = id;
    map->part = part;
    return map;
}

tn_status tn_data_map_sources(const tn_data_map *map, tn_text *out, tn_error *err)
{
    for (uint32_t i = 0; map != NULL && i < map->n_sources; i++) {
        tn_json_open(out, '{');
        tn_json_str(out, "uri", map->source[i]);
        tn_json_count(out, "bytes", map->id[i].bytes);
        tn_json_count(out, "tag", map->id[i].tag);
        tn_json_close(out, '}');
        tn_text_addc(out, '\n');
    }
    return tn_text_check(out, "sources.jsonl", err);
}

static tn_status check_line(const tn_json *line, const char *what, tn_error *err)
{
    const char *uri = tn_json_as_str(tn_json_get(line, "uri"));
    tn_source_id was = {0};
    if (uri == NULL || !tn_json_as_u64(tn_json_get(line, "bytes"), &was.bytes) ||
        !tn_json_as_u64(tn_json_get(line, "tag"), &was.tag)) {
        return tn_fail(err, TN_E_CKPT, "'%s': a line lacks uri, bytes or tag", what);
    }
    tn_source_id now;
    if (!identify(uri, &now)) {
        return tn_fail(err, TN_E_DATA, "source '%s' of the checkpoint is gone", uri);
    }
    if (now.bytes != was.bytes || now.tag != was.tag) {
        return tn_fail(
            err, TN_E_DATA,
            "source '%s' has changed since the checkpoint\nhint: checkpoint.resume=never "
            "starts anew",
            uri);
    }
    return TN_OK;
}

tn_status tn_data_map_check(const tn_text *lines, const char *what, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 12);
    const char *at = tn_text_str(lines);
    const char *end = at + lines->size;
    tn_status status = TN_OK;
    while (status == TN_OK && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        const tn_json *line = NULL;
        status = tn_json_parse(&line, at, (size_t)(stop - at), arena, what, err);
        if (status == TN_OK) {
            status = check_line(line, what, err);
        }
        at = stop + 1;
    }
    tn_arena_free(arena);
    return status;
}

/* ---- parts ---- */

static bool continues(const tn_manifest_part *before, const tn_part_info *part)
{
    return before->state == TN_PART_DONE && before->source == part->source &&
           before->end == part->first;
}

const tn_manifest_part *tn_data_map_parts(const tn_data_map *map, const tn_progress *at,
                                          tn_arena *arena, uint32_t *n)
{
    *n = 0;
    if (map == NULL || (at->part == 0 && at->position == 0)) {
        return NULL; /* between two epochs */
    }
    tn_manifest_part *out = TN_NEW_ARRAY(arena, tn_manifest_part, map->n_parts);
    for (uint32_t i = 0; i < map->n_parts; i++) {
        const tn_part_info *part = &map->part[i];
        if (i<at->part && * n> 0 && continues(&out[*n - 1], part)) {
            out[*n - 1].end = part->end;
            continue;
        }
        bool here = i == at->part && at->position > 0;
        out[(*n)++] = (tn_manifest_part){
            .source = part->source,
            .begin = part->first,
            .end = part->end,
            .state = i < at->part ? TN_PART_DONE
                     : here       ? TN_PART_DEALT
                                  : TN_PART_FREE,
            .position = here ? at->position : 0,
        };
    }
    return out;
}

/* Over the members that a manifest keeps. */
static uint32_t crc_of_parts(const tn_manifest_part *part, uint32_t n)
{
    uint32_t crc = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t words[] = {part[i].source, part[i].begin, part[i].end, part[i].state,
                                  part[i].position};
        crc = tn_crc32c(crc, words, sizeof words);
    }
    return crc;
}

tn_status tn_data_stand_init(tn_data_stand *out, const tn_manifest *m, tn_error *err)
{
    *out = (tn_data_stand){0};
    tn_data_stand stand = {.within = m->n_parts > 0,
                           .epoch = m->epoch,
                           .shared = m->shared,
                           .source = UINT32_MAX,
                           .parts_crc = crc_of_parts(m->part, m->n_parts),
                           .n_parts = m->n_parts};
    stand.part =
        tn_try_alloc((size_t)m->n_parts + 1, sizeof *stand.part, "the parts of an epoch", err);
    if (stand.part == NULL) {
        return TN_E_MEMORY;
    }
    for (uint32_t i = m->n_parts; i > 0; i--) { /* the first that is not done stays */
        const tn_manifest_part *p = &m->part[i - 1];
        stand.part[i - 1] = *p;
        if (p->state != TN_PART_DONE) {
            stand.source = p->source;
            stand.begin = p->begin;
            stand.end = p->end;
            stand.position = p->position;
        }
    }
    *out = stand;
    return TN_OK;
}

void tn_data_stand_done(tn_data_stand *s)
{
    tn_free(s->part);
    *s = (tn_data_stand){0};
}

static bool has_sources(const tn_data_map *map, uint32_t crc)
{
    tn_text lines = {0};
    bool same = tn_data_map_sources(map, &lines, NULL) == TN_OK &&
                tn_crc32c(0, tn_text_str(&lines), lines.size) == crc;
    tn_text_done(&lines);
    return same;
}

/* Whether reading that stands in part i has the same parts behind it and before it. */
static bool stands_in(const tn_data_map *map, uint32_t i, const tn_data_stand *stand)
{
    const tn_part_info *part = &map->part[i];
    if (part->source != stand->source || part->first != stand->begin || part->end != stand->end) {
        return false;
    }
    tn_arena *arena = tn_arena_new(1 << 12);
    uint32_t n = 0;
    const tn_progress at = {.part = i, .position = stand->position};
    const tn_manifest_part *parts = tn_data_map_parts(map, &at, arena, &n);
    bool same = crc_of_parts(parts, n) == stand->parts_crc;
    tn_arena_free(arena);
    return same;
}

static tn_status check_sources(const tn_data_map *map, const tn_data_stand *stand, tn_error *err)
{
    if (!stand->has_sources || has_sources(map, stand->sources_crc)) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_DATA,
                   "data.train does not name the files of the checkpoint, which stands within "
                   "an epoch\nhint: the same files, or checkpoint.resume=never to begin anew");
}

tn_status tn_data_map_refuse(tn_error *err)
{
    return tn_fail(err, TN_E_DATA,
                   "the data of the checkpoint was cut into other parts\nhint: data.train, "
                   "data.part_bytes, data.shuffle and run.seed must be as they were");
}

tn_status tn_data_map_find(const tn_data_map *map, const tn_data_stand *stand, tn_progress *at,
                           tn_error *err)
{
    TN_ASSERT(!stand->shared);
    TN_TRY(check_sources(map, stand, err));
    for (uint32_t i = 0; i < map->n_parts; i++) {
        if (stands_in(map, i, stand)) {
            at->part = i;
            at->position = stand->position;
            return TN_OK;
        }
    }
    return tn_data_map_refuse(err);
}

tn_status tn_data_map_check_stand(const tn_data_map *map, const tn_data_stand *stand, tn_error *err)
{
    tn_progress at = {0};
    return stand->shared ? check_sources(map, stand, err) : tn_data_map_find(map, stand, &at, err);
}
