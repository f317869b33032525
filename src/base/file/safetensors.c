/* safetensors.c - the header is JSON; everything in it is checked against the bytes after it.
 */
#include "base/file/safetensors.h"

#include "base/codec/json.h"
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

static void add_tensor(tn_text *text, const tn_tensor *t, uint64_t *at)
{
    tn_json_open_key(text, t->name, '{');
    tn_json_str(text, "dtype", t->dtype);
    tn_json_open_key(text, "shape", '[');
    for (uint32_t i = 0; i < t->rank; i++) {
        tn_json_u64(text, NULL, t->shape[i]);
    }
    tn_json_close(text, ']');
    tn_json_open_key(text, "data_offsets", '[');
    tn_json_u64(text, NULL, *at);
    *at += t->size;
    tn_json_u64(text, NULL, *at);
    tn_json_close(text, ']');
    tn_json_close(text, '}');
}

/* Appends the length and the JSON, padded. */
static void add_header(tn_text *text, const tn_safetensors *doc, const tn_tensor *sorted)
{
    uint64_t at = 0;
    tn_text json = {0};
    tn_json_open(&json, '{');
    if (doc->n_meta > 0) {
        tn_json_open_key(&json, "__metadata__", '{');
        for (uint32_t i = 0; i < doc->n_meta; i++) {
            tn_json_str(&json, doc->meta[i].key, doc->meta[i].value);
        }
        tn_json_close(&json, '}');
    }
    for (uint32_t i = 0; i < doc->n_tensors; i++) {
        add_tensor(&json, &sorted[i], &at);
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
static tn_status read_tensor(const tn_json *member, const char *data, uint64_t data_size,
                             tn_tensor *out, tn_error *err)
{
    tn_tensor t = {.name = member->key};
    int type = find_type(tn_json_as_str(tn_json_get(member, "dtype")));
    const tn_json *shape = tn_json_get(member, "shape");
    const tn_json *offsets = tn_json_get(member, "data_offsets");
    if (type < 0) {
        return tn_fail(err, TN_E_CKPT, "tensor '%.64s' has no known dtype", t.name);
    }
    if (shape == NULL || shape->kind != TN_JSON_LIST || shape->n > TN_TENSOR_RANK_MAX) {
        return tn_fail(err, TN_E_CKPT, "tensor '%.64s' has no shape of at most %d dimensions",
                       t.name, TN_TENSOR_RANK_MAX);
    }
    for (const tn_json *item = shape->first; item != NULL; item = item->next) {
        if (item->kind != TN_JSON_NUMBER || !tn_json_as_u64(item, &t.shape[t.rank++])) {
            return tn_fail(err, TN_E_CKPT, "tensor '%.64s' has a bad shape", t.name);
        }
    }
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t bytes = 0;
    if (offsets == NULL || offsets->kind != TN_JSON_LIST || offsets->n != 2 ||
        !tn_json_as_u64(offsets->first, &begin) || !tn_json_as_u64(offsets->first->next, &end) ||
        begin > end || end > data_size) {
        return tn_fail(err, TN_E_CKPT, "tensor '%.64s' has data_offsets outside the file", t.name);
    }
    if (!tensor_bytes(&t, types[type].bytes, &bytes) || bytes != end - begin) {
        return tn_fail(err, TN_E_CKPT, "tensor '%.64s' has %llu bytes, its shape says otherwise",
                       t.name, (unsigned long long)(end - begin));
    }
    t.dtype = types[type].name;
    t.data = data + begin;
    t.size = (size_t)bytes;
    *out = t;
    return TN_OK;
}

static tn_status read_meta(const tn_json *object, tn_arena *arena, tn_safetensors *out,
                           tn_error *err)
{
    if (object == NULL) {
        return TN_OK;
    }
    if (object->kind != TN_JSON_OBJECT) {
        return tn_fail(err, TN_E_CKPT, "__metadata__ is not an object");
    }
    tn_tensor_meta *meta = TN_NEW_ARRAY(arena, tn_tensor_meta, object->n);
    uint32_t n = 0;
    for (const tn_json *m = object->first; m != NULL; m = m->next) {
        const char *value = tn_json_as_str(m);
        if (value == NULL) {
            return tn_fail(err, TN_E_CKPT, "metadata '%.64s' is not a string", m->key);
        }
        TN_ASSERT(n < object->n);
        meta[n++] = (tn_tensor_meta){.key = m->key, .value = value};
    }
    TN_ASSERT(n == object->n);
    out->meta = meta;
    out->n_meta = n;
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
    const size_t bytes = n * sizeof(tn_tensor) +
                         (meta != NULL ? meta->n : 0) * sizeof(tn_tensor_meta) + TN_CACHE_LINE;
    TN_TRY(tn_arena_reserve(arena, bytes, "the tensors of a file", err));
    tn_tensor *list = TN_NEW_ARRAY(arena, tn_tensor, n);
    TN_TRY(read_meta(meta, arena, out, err));
    uint32_t i = 0;
    for (const tn_json *m = header->first; m != NULL; m = m->next) {
        if (m != meta) {
            TN_ASSERT(i < n);
            TN_TRY(read_tensor(m, rest->data, rest->size, &list[i++], err));
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
