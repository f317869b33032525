/* sources.c - what the training files are, by samples of them, and two lists of them compared. */
#include "train/checkpoint/sources.h"

#include "base/codec/document.h"
#include "base/file/file.h"
#include "base/math/sha256.h"
#include "config/tree.h"
#include "io/read/fileset.h"
#include "io/source/remote.h"

#include <string.h>
#include <sys/stat.h>

/* ---- one file ---- */

/* A file that is gone, or cannot be read twice, is not known. */
static tn_source_id identify(const char *path)
{
    struct stat st;
    tn_infile *f = NULL;
    tn_source_id id = {0};
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || tn_infile_open(&f, path, NULL) != TN_OK) {
        return id;
    }
    id.bytes = tn_infile_size(f);
    id.known = id.hashed = tn_infile_sample(f, &id.hash, NULL) == TN_OK;
    tn_infile_close(f);
    return id;
}

static tn_source_id identify_object(const tn_remote_object *object)
{
    tn_source_id id = {.bytes = object->size, .tagged = object->tag != NULL};
    id.known = id.tagged && object->size != UINT64_MAX;
    if (id.tagged) {
        tn_sha256 h;
        tn_sha256_init(&h);
        tn_sha256_add(&h, object->tag, strlen(object->tag));
        id.hash = tn_sha256_end64(&h);
    }
    return id;
}

/* ---- all of them ---- */

static const tn_sources *make(const char *const *uri, const tn_source_id *id, uint32_t n,
                              tn_arena *arena)
{
    tn_sources *s = TN_NEW(arena, tn_sources);
    *s = (tn_sources){.n = n, .uri = uri, .id = id};
    return s;
}

const tn_sources *tn_sources_again(const tn_sources *s, tn_arena *arena)
{
    tn_source_id *id = TN_NEW_ARRAY(arena, tn_source_id, s->n + 1);
    for (uint32_t i = 0; i < s->n; i++) {
        id[i] = s->id != NULL && s->id[i].tagged ? s->id[i] : identify(s->uri[i]);
    }
    return make(s->uri, id, s->n, arena);
}

tn_status tn_sources_now(const tn_sources **out, const tn_strs *paths, const tn_schema *schema,
                         tn_arena *arena, tn_error *err)
{
    tn_fileset *files = NULL;
    TN_TRY(tn_fileset_new(&files, paths, schema, 1, err));
    const char **uri = TN_NEW_ARRAY(arena, const char *, files->n + 1);
    tn_source_id *id = TN_NEW_ARRAY(arena, tn_source_id, files->n + 1);
    for (uint32_t i = 0; i < files->n; i++) {
        const tn_file_entry *f = &files->file[i];
        uri[i] = tn_tree_text(arena, f->path, strlen(f->path));
        id[i] = f->object != NULL ? identify_object(f->object) : identify(f->path);
    }
    *out = make(uri, id, files->n, arena);
    tn_fileset_free(files);
    return TN_OK;
}

static bool same(const tn_source_id *was, const tn_source_id *now)
{
    const bool comparable = was->known && now->known;
    const bool hashed = (was->hashed && now->hashed) || (was->tagged && now->tagged);
    return !comparable || (was->bytes == now->bytes && (!hashed || was->hash == now->hash));
}

static void tell(const tn_sources *was, const tn_sources *now, uint32_t i, tn_text *how)
{
    TN_ASSERT(i < was->n && i < now->n);
    if (strcmp(was->uri[i], now->uri[i]) != 0) {
        tn_text_addf(how, "'%s' is not what '%s' was", now->uri[i], was->uri[i]);
    } else if (was->id[i].bytes != now->id[i].bytes) {
        tn_text_addf(how, "'%s' has %llu bytes, %llu before", now->uri[i],
                     (unsigned long long)now->id[i].bytes, (unsigned long long)was->id[i].bytes);
    } else {
        tn_text_addf(how, "'%s' %s than before", now->uri[i],
                     now->id[i].tagged ? "is of another version" : "holds other bytes");
    }
}

bool tn_sources_differ(const tn_sources *was, const tn_sources *now, tn_text *how)
{
    if (was->n == 0 || now->n == 0) {
        return false;
    }
    for (uint32_t i = 0; i < was->n && i < now->n; i++) {
        if (!same(&was->id[i], &now->id[i])) {
            tell(was, now, i, how);
            return true;
        }
    }
    if (was->n != now->n) {
        tn_text_addf(how, "%u file%s, %u before", now->n, now->n == 1 ? "" : "s", was->n);
    }
    return was->n != now->n;
}

/* ---- sources.jsonl ---- */

typedef struct source_line {
    const char *uri;
    tn_source_id id;
    uint64_t tag; /* in earlier versions: a time of change, 0 where nothing was known */
} source_line;

static const tn_doc_row line_rows[] = {
    TN_DOC_STR(source_line, uri, "uri"),
    TN_DOC_COUNT(source_line, id.bytes, UINT64_MAX, "bytes"),
    TN_DOC_HEX(source_line, id.hash, "hash", TN_DOC_FLAG(source_line, id.hashed)),
    TN_DOC_HEX(source_line, id.hash, "version", TN_DOC_FLAG(source_line, id.tagged)),
    TN_DOC_COUNT(source_line, tag, UINT64_MAX, "tag", TN_DOC_MAY_MISS),
    TN_DOC_END,
};

tn_status tn_sources_write(const tn_sources *s, tn_text *out, tn_error *err)
{
    TN_ASSERT(s == NULL || s->n == 0 || s->id != NULL);
    for (uint32_t i = 0; s != NULL && i < s->n; i++) {
        const source_line line = {.uri = s->uri[i], .id = s->id[i]};
        tn_doc_put(out, &(tn_doc_row)TN_DOC_GROUP('{', line_rows, ""), &line);
        tn_text_addc(out, '\n');
    }
    return tn_text_check(out, "sources.jsonl", err);
}

tn_status tn_sources_read(const tn_sources **out, const tn_text *lines, const char *what,
                          tn_arena *arena, tn_error *err)
{
    const char *at = tn_text_str(lines);
    const char *end = at + lines->size;
    size_t most = 1;
    for (const char *c = at; c < end; c++) {
        most += *c == '\n';
    }
    const char **uri = TN_NEW_ARRAY(arena, const char *, most);
    tn_source_id *id = TN_NEW_ARRAY(arena, tn_source_id, most);
    uint32_t n = 0;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        const tn_json *json = NULL;
        source_line line = {.uri = NULL};
        TN_TRY(tn_json_parse(&json, at, (size_t)(stop - at), arena, what, err));
        TN_TRY(tn_doc_get_rows(line_rows, json, &line, arena, what, err));
        TN_ASSERT(n < most);
        line.id.known = line.id.hashed || line.id.tagged || line.tag != 0;
        uri[n] = line.uri;
        id[n++] = line.id;
        at = stop + 1;
    }
    *out = make(uri, id, n, arena);
    return TN_OK;
}
