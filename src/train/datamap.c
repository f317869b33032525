/* datamap.c - see datamap.h. */
#include "train/datamap.h"

#include "base/json.h"

#include <string.h>
#include <sys/stat.h>

static const char *kept(tn_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(TN_NEW_ARRAY(arena, char, size), text, size);
}

const tn_data_map *tn_data_map_of(const tn_reader *reader, tn_arena *arena)
{
    tn_data_map *map = TN_NEW(arena, tn_data_map);
    map->n_sources = tn_reader_n_sources(reader);
    const char **source = TN_NEW_ARRAY(arena, const char *, map->n_sources);
    for (uint32_t i = 0; i < map->n_sources; i++) {
        source[i] = kept(arena, tn_reader_source(reader, i));
    }
    map->n_parts = tn_reader_n_parts(reader);
    tn_part_info *part = TN_NEW_ARRAY(arena, tn_part_info, map->n_parts);
    for (uint32_t i = 0; i < map->n_parts; i++) {
        part[i] = tn_reader_part(reader, i);
    }
    map->source = source;
    map->part = part;
    return map;
}

/* ---- sources ---- */

typedef struct identity {
    uint64_t bytes;
    uint64_t tag; /* last change, in ns */
} identity;

/* False: there is no such file; stdin is always the same. */
static bool identify(const char *path, identity *out)
{
    struct stat st;
    *out = (identity){0};
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

tn_status tn_data_map_sources(const tn_data_map *map, tn_text *out, tn_error *err)
{
    for (uint32_t i = 0; map != NULL && i < map->n_sources; i++) {
        identity id;
        if (!identify(map->source[i], &id)) {
            return tn_fail(err, TN_E_DATA, "source '%s' is gone", map->source[i]);
        }
        tn_json_open(out, '{');
        tn_json_str(out, "uri", map->source[i]);
        tn_json_count(out, "bytes", id.bytes);
        tn_json_count(out, "tag", id.tag);
        tn_json_close(out, '}');
        tn_text_addc(out, '\n');
    }
    return tn_text_check(out, "sources.jsonl", err);
}

static tn_status check_line(const tn_json *line, const char *what, tn_error *err)
{
    const char *uri = tn_json_as_str(tn_json_get(line, "uri"));
    identity was = {0};
    if (uri == NULL || !tn_json_as_u64(tn_json_get(line, "bytes"), &was.bytes) ||
        !tn_json_as_u64(tn_json_get(line, "tag"), &was.tag)) {
        return tn_fail(err, TN_E_CKPT, "'%s': a line lacks uri, bytes or tag", what);
    }
    identity now;
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

tn_data_stand tn_data_stand_of(const tn_manifest *m)
{
    for (uint32_t i = 0; i < m->n_parts; i++) {
        const tn_manifest_part *p = &m->part[i];
        if (p->state != TN_PART_DONE) {
            return (tn_data_stand){.within = true,
                                   .source = p->source,
                                   .begin = p->begin,
                                   .end = p->end,
                                   .position = p->position};
        }
    }
    return (tn_data_stand){.within = m->n_parts > 0, .end = 0, .source = UINT32_MAX};
}
