/* manifest.c - the table of MANIFEST, what its members must be together, and hashes of parts. */
#include "ps/snapshot/manifest.h"

#include "base/codec/document.h"
#include "base/math/sha256.h"

#include <string.h>

/* ---- rows: "sparse" ---- */

static const tn_doc_row state_rows[] = {
    /* ["t",1,"u32"] */
    TN_DOC_STR(tn_row_state, name, "name"),
    TN_DOC_U32(tn_row_state, words, 0, TN_DIM_MAX, "words"),
    TN_DOC_MARK(tn_row_state, count, "u32", "type"),
    TN_DOC_END,
};

static const tn_doc_row segment_rows[] = {
    TN_DOC_STR(tn_row_segment, name, "name"),
    TN_DOC_U32(tn_row_segment, dim, 0, TN_DIM_MAX, "dim"),
    TN_DOC_STR(tn_row_segment, optimizer, "optimizer"),
    TN_DOC_ARRAY(tn_row_segment, n_states, state, tn_row_state, '[', state_rows, TN_ROW_STATES_MAX,
                 "state"),
    TN_DOC_END,
};

static const tn_doc_row record_rows[] = {
    TN_DOC_ARRAY(tn_row_record, n_segments, segment, tn_row_segment, '{', segment_rows,
                 TN_SEGMENTS_MAX, "segments"),
    TN_DOC_END,
};

static const tn_doc_row group_rows[] = {
    TN_DOC_STR(tn_row_group, name, "name"),
    TN_DOC_HEX(tn_row_group, salt, "salt"),
    TN_DOC_U32(tn_row_group, record, 0, TN_GROUPS_MAX, "record"),
    TN_DOC_END,
};

static const char *check_groups(void *schema)
{
    const tn_row_schema *s = schema;
    for (uint32_t g = 0; g < s->n_groups; g++) {
        if (s->group[g].record >= s->n_records) {
            return "groups.record";
        }
    }
    return NULL;
}

static const tn_doc_row schema_rows[] = {
    TN_DOC_U32(tn_row_schema, partitions, 1, TN_SNAPSHOT_PARTITIONS_MAX, "partitions"),
    TN_DOC_LIST(tn_row_schema, n_records, record, const tn_row_record *, '{', record_rows,
                TN_GROUPS_MAX, "records"),
    TN_DOC_LIST(tn_row_schema, n_groups, group, const tn_row_group *, '{', group_rows,
                TN_GROUPS_MAX, "groups"),
    TN_DOC_CHECK(check_groups),
    TN_DOC_END,
};

/* ---- "dense" ---- */

static const tn_doc_row scalar_rows[] = {
    TN_DOC_COUNT(tn_manifest_dense, t, UINT64_MAX, "t"),
    TN_DOC_END,
};

static const tn_doc_row param_rows[] = {
    TN_DOC_STR(tn_manifest_param, name, "name"),
    TN_DOC_ARRAY(tn_manifest_param, rank, shape, uint64_t, '\0', tn_doc_u64_items,
                 TN_MANIFEST_RANK_MAX, "shape"),
    TN_DOC_U64(tn_manifest_param, at, 0, UINT64_MAX, "at"),
    TN_DOC_BOOL(tn_manifest_param, train, "train"),
    TN_DOC_END,
};

/* Each parameter lies within the flat vector. */
static const char *check_params(void *dense)
{
    const tn_manifest_dense *d = dense;
    for (uint32_t i = 0; i < d->n_params; i++) {
        const tn_manifest_param *p = &d->param[i];
        uint64_t size = 1;
        for (uint32_t k = 0; k < p->rank; k++) {
            if (__builtin_mul_overflow(size, p->shape[k], &size)) {
                return "params.shape";
            }
        }
        if (p->at > d->size || size > d->size - p->at) {
            return p->at > d->size ? "params.at" : "params.shape";
        }
    }
    return NULL;
}

#define PARAMS_ROW                                                                                 \
    TN_DOC_LIST(tn_manifest_dense, n_params, param, const tn_manifest_param *, '{', param_rows,    \
                UINT32_MAX, "params")

static const tn_doc_row dense_rows[] = {
    TN_DOC_U64(tn_manifest_dense, size, 0, UINT64_MAX / sizeof(float), "size"),
    TN_DOC_STR(tn_manifest_dense, optimizer, "optimizer"),
    TN_DOC_ARRAY(tn_manifest_dense, n_states, state, const char *, '\0', tn_doc_str_items,
                 TN_ROW_STATES_MAX, "state"),
    TN_DOC_GROUP('{', scalar_rows, "scalars"),
    PARAMS_ROW,
    TN_DOC_CHECK(check_params),
    TN_DOC_END,
};

/* ---- "files" ---- */

static bool is_sparse(const void *file)
{
    return strcmp(((const tn_manifest_file *)file)->type, "sparse") == 0;
}

/* Names become paths: one plain component, and not a file that every checkpoint has anyway. */
static const char *check_file_name(void *file)
{
    const char *name = ((const tn_manifest_file *)file)->name;
    const size_t size = strlen(name);
    const bool good =
        size > 0 && size <= 200 && name[0] != '.' && strcmp(name, "MANIFEST") != 0 &&
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == size;
    return good ? NULL : "name";
}

static const tn_doc_row partition_rows[] = {
    TN_DOC_U32(tn_manifest_file, first, 0, TN_SNAPSHOT_PARTITIONS_MAX, "first"),
    TN_DOC_U32(tn_manifest_file, last, 0, TN_SNAPSHOT_PARTITIONS_MAX, "last"),
    TN_DOC_END,
};

static const tn_doc_row file_rows[] = {
    TN_DOC_STR(tn_manifest_file, name, "name"),
    TN_DOC_CHECK(check_file_name),
    TN_DOC_STR(tn_manifest_file, type, "type"),
    TN_DOC_COUNT(tn_manifest_file, bytes, INT64_MAX, "bytes"),
    TN_DOC_CRC(tn_manifest_file, crc, "crc32c"),
    TN_DOC_COUNT(tn_manifest_file, rows, INT64_MAX, "rows", TN_DOC_IF(is_sparse)),
    TN_DOC_GROUP('[', partition_rows, "partitions", TN_DOC_IF(is_sparse)),
    TN_DOC_END,
};

/* The files' names ascend; the sparse ones, in that order, tile the partitions. */
static const char *check_files(void *manifest)
{
    const tn_manifest *m = manifest;
    uint32_t next = 0;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < m->n_files; i++) {
        const tn_manifest_file *f = &m->file[i];
        if (i > 0 && strcmp(f[-1].name, f->name) >= 0) {
            return "files.name";
        }
        if (is_sparse(f)) {
            if (f->first != next || f->last < f->first || f->last >= m->sparse.partitions) {
                return "files.partitions";
            }
            next = f->last + 1;
            rows += f->rows;
        }
    }
    const bool whole = m->base != 0 || (next == m->sparse.partitions && rows == m->rows);
    return whole ? NULL : "files";
}

/* ---- all of it ---- */

static const tn_doc_row base_rows[] = {
    TN_DOC_U64(tn_manifest, base, 1, INT64_MAX, "ordinal"),
    TN_DOC_CRC(tn_manifest, base_crc, "crc32c"),
    TN_DOC_END,
};

static const char *check_base(void *manifest)
{
    const tn_manifest *m = manifest;
    return m->base >= m->ordinal ? "base" : m->is_delta != (m->base != 0) ? "kind" : NULL;
}

static const tn_doc_row config_rows[] = {
    TN_DOC_SHA(tn_manifest, config_hash, "hash"),
    TN_DOC_SHA(tn_manifest, structure, "structure"),
    TN_DOC_END,
};

static const tn_doc_row manifest_rows[] = {
    TN_DOC_WORD(tn_manifest, is_delta, bool, ((const char *const[]){"full", "delta", NULL}),
                "kind"),
    TN_DOC_U64(tn_manifest, ordinal, 1, INT64_MAX, "ordinal"),
    TN_DOC_GROUP('{', base_rows, "base", TN_DOC_OR_NULL),
    TN_DOC_CHECK(check_base),
    TN_DOC_HEX(tn_manifest, run_id, "run_id"),
    TN_DOC_U64(tn_manifest, step, 0, UINT64_MAX, "step"),
    TN_DOC_COUNT(tn_manifest, samples, UINT64_MAX, "samples"),
    TN_DOC_COUNT(tn_manifest, rows, INT64_MAX, "rows"),
    TN_DOC_U32(tn_manifest, clock, 0, UINT32_MAX, "clock"),
    TN_DOC_GROUP('{', config_rows, "config"),
    TN_DOC_OBJECT(tn_manifest, sparse, tn_row_schema, '{', schema_rows, "sparse"),
    TN_DOC_OBJECT(tn_manifest, dense, tn_manifest_dense, '{', dense_rows, "dense"),
    TN_DOC_PART(tn_manifest, sections),
    TN_DOC_LIST(tn_manifest, n_files, file, const tn_manifest_file *, '{', file_rows, UINT32_MAX,
                "files"),
    TN_DOC_CHECK(check_files),
    TN_DOC_END,
};

static const tn_document manifest_document = {.format = "tnet-checkpoint",
                                              .is = "the manifest of a checkpoint",
                                              .newest = 1,
                                              .rows = manifest_rows};

tn_status tn_manifest_write(const tn_manifest *m, tn_text *out, uint32_t *crc, tn_error *err)
{
    tn_manifest doc = *m;
    TN_ASSERT(m->ordinal > 0 && m->base < m->ordinal && m->sections.rows != NULL);
    TN_ASSERT(check_files(&doc) == NULL && check_params(&doc.dense) == NULL);
    doc.is_delta = m->base != 0;
    TN_TRY(tn_document_write(&manifest_document, &doc, out, err));
    if (out->size > TN_MANIFEST_BYTES_MAX) {
        return tn_fail(err, TN_E_LIMIT, "a manifest of %zu bytes, at most %d are allowed",
                       out->size, TN_MANIFEST_BYTES_MAX);
    }
    *crc = tn_document_crc(out);
    return TN_OK;
}

tn_status tn_manifest_read(tn_manifest *out, const tn_text *text, tn_arena *arena, const char *what,
                           tn_error *err)
{
    tn_manifest m = {.sections = out->sections};
    TN_TRY(tn_document_read(&manifest_document, &m, text, arena, what, err));
    m.crc = tn_document_crc(text);
    *out = m;
    return TN_OK;
}

/* ---- hashes of parts ---- */

static const tn_doc_row sparse_row = TN_DOC_GROUP('{', schema_rows, "");

void tn_manifest_add_learned(tn_text *out, const tn_manifest *m)
{
    tn_json_str(out, NULL, m->structure);
    tn_json_open_key(out, NULL, '[');
    for (uint32_t i = 0; i < m->n_files; i++) {
        if (is_sparse(&m->file[i]) || strcmp(m->file[i].type, "dense") == 0) {
            tn_doc_put(out, &(tn_doc_row)TN_DOC_GROUP('{', file_rows, ""), &m->file[i]);
        }
    }
    tn_json_close(out, ']');
}

static tn_status hash_value(tn_sha256 *hash, const tn_doc_row *row, const void *s, tn_error *err)
{
    tn_text text = {0};
    tn_doc_put(&text, row, s);
    tn_sha256_add(hash, tn_text_str(&text), text.size);
    const tn_status status = tn_text_check(&text, "a part of a manifest", err);
    tn_text_done(&text);
    return status;
}

tn_status tn_manifest_structure(const tn_manifest *m, const char *nodes, char out[65],
                                tn_error *err)
{
    uint8_t digest[32];
    tn_sha256 hash;
    tn_sha256_init(&hash);
    TN_TRY(hash_value(&hash, &sparse_row, &m->sparse, err));
    TN_TRY(hash_value(&hash, &(tn_doc_row)PARAMS_ROW, &m->dense, err));
    tn_sha256_add(&hash, nodes, strlen(nodes));
    tn_sha256_end(&hash, digest);
    tn_sha256_hex(digest, out);
    return TN_OK;
}

tn_status tn_row_schema_hash(const tn_row_schema *schema, uint8_t out[TN_SNAPSHOT_SCHEMA_BYTES],
                             tn_error *err)
{
    uint8_t digest[32];
    tn_sha256 hash;
    tn_sha256_init(&hash);
    TN_TRY(hash_value(&hash, &sparse_row, schema, err));
    tn_sha256_end(&hash, digest);
    memcpy(out, digest, TN_SNAPSHOT_SCHEMA_BYTES);
    return TN_OK;
}
