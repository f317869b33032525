/* safetensors.c - the header is JSON; everything in it is checked against the bytes after it.
 */
#include "base/file/safetensors.h"

#include "base/codec/document.h"
#include "base/core/alloc.h"
#include "base/core/bytes.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t bytes;
} types[] = {
    {"F32", 4}, {"U8", 1},   {"U64", 8}, {"F64", 8}, {"I64", 8}, {"U32", 4},  {"I32", 4},
    {"F16", 2}, {"BF16", 2}, {"I16", 2}, {"U16", 2}, {"I8", 1},  {"BOOL", 1},
};

/* Returns the entry of types[] of this name; its `name` lives for ever. -1: unknown. */
static int find_type(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Computes the bytes of a tensor. Returns false when the product does not fit 64 bits. */
static bool tensor_bytes(const tn_tensor *t, uint32_t each, uint64_t *out)
{
    uint64_t bytes = each;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (__builtin_mul_overflow(bytes, t->shape[i], &bytes)) {
            return false;
        }
    }
    *out = bytes;
    return true;
}

static int by_name(const void *left, const void *right)
{
    const tn_tensor *a = left;
    const tn_tensor *b = right;
    return strcmp(a->name, b->name);
}

/* A tensor of the header. */
typedef struct entry {
    tn_tensor tensor;
    uint64_t begin, end; /* bytes after the header */
} entry;

static const tn_doc_row offset_rows[] = {
    TN_DOC_U64(entry, begin, 0, UINT64_MAX, "begin"),
    TN_DOC_U64(entry, end, 0, UINT64_MAX, "end"),
    TN_DOC_END,
};

static const tn_doc_row entry_rows[] = {
    TN_DOC_STR(entry, tensor.dtype, "dtype"),
    TN_DOC_ARRAY(entry, tensor.rank, tensor.shape, uint64_t, '\0', tn_doc_u64_items,
                 TN_TENSOR_RANK_MAX, "shape"),
    TN_DOC_GROUP('[', offset_rows, "data_offsets"),
    TN_DOC_END,
};

static const tn_doc_row meta_rows[] = {
    TN_DOC_STR(tn_tensor_meta, key, ""),
    TN_DOC_STR(tn_tensor_meta, value, ""),
    TN_DOC_END,
};

static const tn_doc_row header_rows[] = {
    TN_DOC_LIST(tn_safetensors, n_meta, meta, const tn_tensor_meta *, ':', meta_rows, UINT32_MAX,
                "__metadata__", TN_DOC_MAY_MISS),
    TN_DOC_END,
};

/* Appends the length and the JSON, padded. */
static void add_header(tn_text *text, const tn_safetensors *doc, const tn_tensor *sorted)
{
    uint64_t at = 0;
    tn_text json = {0};
    tn_json_open(&json, '{');
    tn_doc_put_rows(&json, header_rows, doc);
    for (uint32_t i = 0; i < doc->n_tensors; i++) {
        const entry e = {sorted[i], at, at + sorted[i].size};
        tn_json_open_key(&json, sorted[i].name, '{');
        tn_doc_put_rows(&json, entry_rows, &e);
        tn_json_close(&json, '}');
        at = e.end;
    }
    tn_json_close(&json, '}');
    while (json.size % 8 != 0 && !json.failed) {
        tn_text_addc(&json, ' ');
    }
    text->failed = text->failed || json.failed;
    tn_text_add_u64le(text, json.size);
    tn_text_add(text, tn_text_str(&json), json.size);
    tn_text_done(&json);
}

tn_status tn_safetensors_write(tn_file *f, const tn_safetensors *doc, tn_error *err)
{
    TN_ASSERT(tn_file_size(f) == 0);
    tn_tensor *sorted = NULL;
    TN_TRY(TN_ALLOC(sorted, doc->n_tensors, "tensor names", err));
    for (uint32_t i = 0; i < doc->n_tensors; i++) {
        const tn_tensor *t = &doc->tensor[i];
        uint64_t bytes = 0;
        int type = find_type(t->dtype);
        TN_ASSERT(type >= 0 && t->rank <= TN_TENSOR_RANK_MAX);
        TN_ASSERT(tensor_bytes(t, types[type].bytes, &bytes) && bytes == t->size);
        sorted[i] = *t;
    }
    qsort(sorted, doc->n_tensors, sizeof *sorted, by_name);
    tn_text header = {.size_max = TN_SAFETENSORS_HEADER_MAX};
    add_header(&header, doc, sorted);
    tn_status status = tn_text_check(&header, "a safetensors header", err);
    if (status == TN_OK) {
        status = tn_file_write(f, header.data, header.size, err);
    }
    for (uint32_t i = 0; i < doc->n_tensors && status == TN_OK; i++) {
        status = tn_file_write(f, sorted[i].data, sorted[i].size, err);
    }
    tn_text_done(&header);
    tn_free(sorted);
    return status;
}

/* Reads one member of the header; the data pointer is set once the offsets are known to fit. */
static tn_status read_tensor(const tn_json *member, const tn_bytes *rest, tn_arena *arena,
                             tn_tensor *out, tn_error *err)
{
    entry e = {.begin = 0};
    uint64_t bytes = 0;
    TN_TRY(tn_doc_get_rows(entry_rows, member, &e, arena, member->key, err));
    const int type = find_type(e.tensor.dtype);
    if (type < 0) {
        return tn_fail(err, TN_E_CKPT, "tensor '%.64s' has no known dtype", member->key);
    }
    if (e.begin > e.end || e.end > rest->size) {
        return tn_fail(err, TN_E_CKPT, "tensor '%.64s' has data_offsets outside the file",
                       member->key);
    }
    if (!tensor_bytes(&e.tensor, types[type].bytes, &bytes) || bytes != e.end - e.begin) {
        return tn_fail(err, TN_E_CKPT, "tensor '%.64s' has %llu bytes, its shape says otherwise",
                       member->key, (unsigned long long)(e.end - e.begin));
    }
    *out = e.tensor;
    out->name = member->key;
    out->dtype = types[type].name;
    out->data = (const char *)rest->data + e.begin;
    out->size = (size_t)bytes;
    return TN_OK;
}

static int by_place(const void *left, const void *right)
{
    const tn_tensor *a = left;
    const tn_tensor *b = right;
    if (a->data != b->data) {
        return a->data < b->data ? -1 : 1;
    }
    return (a->size > b->size) - (a->size < b->size);
}

/* Checks that, in order of place, each begins where the last one ended; then sorts the list by
 * name. */
static tn_status check_tiling(tn_tensor *list, uint32_t n, const char *data, const char *data_end,
                              tn_error *err)
{
    qsort(list, n, sizeof *list, by_place);
    const char *at = data;
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].data != at) {
            return tn_fail(err, TN_E_CKPT, "%s before tensor '%.64s'",
                           list[i].data < at ? "an overlap" : "a hole", list[i].name);
        }
        at += list[i].size;
    }
    if (at != data_end) {
        return tn_fail(err, TN_E_CKPT, "%llu bytes behind the last tensor",
                       (unsigned long long)(data_end - at));
    }
    qsort(list, n, sizeof *list, by_name);
    return TN_OK;
}

static tn_status read_header(const tn_json *header, const tn_bytes *rest, tn_arena *arena,
                             tn_safetensors *out, tn_error *err)
{
    const tn_json *meta = tn_json_get(header, "__metadata__");
    uint32_t n = header->n - (meta != NULL);
    TN_TRY(tn_doc_get_rows(header_rows, header, out, arena, "the header", err));
    TN_TRY(tn_arena_reserve(arena, n * sizeof(tn_tensor) + TN_CACHE_LINE, "the tensors of a file",
                            err));
    tn_tensor *list = TN_NEW_ARRAY(arena, tn_tensor, n);
    uint32_t i = 0;
    for (const tn_json *m = header->first; m != NULL; m = m->next) {
        if (m != meta) {
            TN_ASSERT(i < n);
            TN_TRY(read_tensor(m, rest, arena, &list[i++], err));
        }
    }
    TN_ASSERT(i == n);
    TN_TRY(check_tiling(list, n, rest->data, rest->data + rest->size, err));
    out->tensor = list;
    out->n_tensors = n;
    return TN_OK;
}

static tn_status read_all(tn_safetensors *out, const tn_map *bytes, tn_arena *arena, tn_error *err)
{
    tn_bytes in = {.data = bytes->data, .size = bytes->size};
    uint64_t header_size = tn_get_u64(&in);
    if (in.failed || header_size > in.size) {
        return tn_fail(err, TN_E_CKPT, "the file ends within its header");
    }
    if (header_size > TN_SAFETENSORS_HEADER_MAX) {
        return tn_fail(err, TN_E_CKPT, "a header of %llu bytes, at most %d are allowed",
                       (unsigned long long)header_size, TN_SAFETENSORS_HEADER_MAX);
    }
    const char *json = tn_get(&in, (size_t)header_size);
    if (header_size < 2 || json[0] != '{') {
        return tn_fail(err, TN_E_CKPT, "the header does not begin with '{'");
    }
    const tn_json *header = NULL;
    TN_TRY(tn_json_parse(&header, json, (size_t)header_size, arena, "header", err));
    TN_ASSERT(header->kind == TN_JSON_OBJECT); /* it begins with a brace */
    return read_header(header, &in, arena, out, err);
}

tn_status tn_safetensors_read(tn_safetensors *out, const tn_map *bytes, tn_arena *arena,
                              const char *what, tn_error *err)
{
    tn_safetensors doc = {0};
    tn_status status = read_all(&doc, bytes, arena, err);
    if (status != TN_OK) {
        tn_error_context(err, "'%s'", what);
        return status;
    }
    *out = doc;
    return TN_OK;
}

const tn_tensor *tn_tensor_find(const tn_safetensors *doc, const char *name)
{
    const tn_tensor key = {.name = name};
    return doc->n_tensors > 0 ? bsearch(&key, doc->tensor, doc->n_tensors, sizeof key, by_name)
                              : NULL;
}

const char *tn_tensor_meta_find(const tn_safetensors *doc, const char *key)
{
    for (uint32_t i = 0; i < doc->n_meta; i++) {
        if (strcmp(doc->meta[i].key, key) == 0) {
            return doc->meta[i].value;
        }
    }
    return NULL;
}

tn_status tn_tensor_get(const tn_safetensors *doc, const tn_tensor_want *want, const char *what,
                        const tn_tensor **out, tn_error *err)
{
    TN_ASSERT(want->rank <= TN_TENSOR_RANK_MAX);
    const tn_tensor *t = tn_tensor_find(doc, want->name);
    if (t == NULL) {
        return tn_fail(err, TN_E_CKPT, "'%s': no tensor '%s'", what, want->name);
    }
    if (strcmp(t->dtype, want->dtype) != 0) {
        return tn_fail(err, TN_E_CKPT, "'%s': tensor '%s' is %s, %s expected", what, want->name,
                       t->dtype, want->dtype);
    }
    if (t->rank != want->rank || memcmp(t->shape, want->shape, t->rank * sizeof t->shape[0]) != 0) {
        return tn_fail(err, TN_E_CKPT, "'%s': tensor '%s' has another shape than the model", what,
                       want->name);
    }
    *out = t;
    return TN_OK;
}
