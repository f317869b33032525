/* npz.c - writing a ZIP of arrays.
 *
 *     per array   local header 30 | name | ZIP64 extra, if large | npy
 *     directory   central header 46 | name | ZIP64 extra, if large       one per array
 *     end         [ZIP64 end 56 | its locator 20] | end 22
 */
#include "extra/arrays/npz.h"

#include "base/core/alloc.h"
#include "base/file/output_file.h"

#include <string.h>
#include <zlib.h>

enum {
    LOCAL = 0x04034b50,
    CENTRAL = 0x02014b50,
    END = 0x06054b50,
    END64 = 0x06064b50,
    LOCATOR64 = 0x07064b50,
    VERSION = 20,
    VERSION64 = 45,
    DATE = 0x21, /* the first of January 1980, as ZIP has no other beginning */
    EXTRA64 = 1,
    END64_BYTES = 56,
    NPY_ALIGN = 64,
    NPY_MAGIC_BYTES = 10,
    LARGE_COUNT = 0xffff,
};
#define LARGE UINT32_C(0xffffffff)

struct tn_npz {
    tn_output *file;
    tn_text directory;
    tn_text scratch[2]; /* head and local header of the array that is added */
    uint64_t n;
};

void tn_npy_head(tn_text *out, const tn_npy *array)
{
    TN_ASSERT(array->rank >= 1 && array->rank <= TN_NPY_RANK_MAX);
    tn_text dict = {0};
    tn_text_addf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", array->type);
    for (uint32_t i = 0; i < array->rank; i++) {
        tn_text_add_u64(&dict, array->shape[i]);
        tn_text_adds(&dict, i + 1 < array->rank ? ", " : array->rank == 1 ? "," : "");
    }
    tn_text_adds(&dict, "), }");
    while ((NPY_MAGIC_BYTES + dict.size + 1) % NPY_ALIGN != 0) {
        tn_text_addc(&dict, ' ');
    }
    tn_text_addc(&dict, '\n');
    tn_text_add(out, "\x93NUMPY\x01\x00", NPY_MAGIC_BYTES - 2);
    tn_text_add_u16(out, (uint16_t)dict.size);
    tn_text_add(out, dict.data, dict.size);
    tn_text_done(&dict);
}

tn_status tn_npz_create(tn_npz **out, const char *path, tn_error *err)
{
    *out = NULL;
    tn_npz *z = NULL;
    TN_TRY(TN_ALLOC(z, 1, "an npz file", err));
    tn_status status = tn_output_open(&z->file, path, NULL, err);
    if (status != TN_OK) {
        tn_free(z);
        return status;
    }
    *out = z;
    return TN_OK;
}

/* One array in the file. */
typedef struct entry {
    const char *name;
    uint64_t at;
    uint64_t size;
    uint32_t crc;
} entry;

static uint32_t limited(uint64_t x)
{
    return x < LARGE ? (uint32_t)x : LARGE;
}

/* Appends the fields that local and central headers share, from version to length of extras. */
static void add_common(tn_text *t, const entry *e, uint32_t extra_bytes)
{
    tn_text_add_u16(t, extra_bytes > 0 ? VERSION64 : VERSION);
    tn_text_add_u16(t, 0); /* flags */
    tn_text_add_u16(t, 0); /* stored */
    tn_text_add_u16(t, 0); /* time */
    tn_text_add_u16(t, DATE);
    tn_text_add_u32le(t, e->crc);
    tn_text_add_u32le(t, limited(e->size));
    tn_text_add_u32le(t, limited(e->size));
    tn_text_add_u16(t, (uint16_t)(strlen(e->name) + strlen(".npy")));
    tn_text_add_u16(t, (uint16_t)extra_bytes);
}

static void add_local(tn_text *t, const entry *e)
{
    bool large = e->size >= LARGE;
    tn_text_add_u32le(t, LOCAL);
    add_common(t, e, large ? 20 : 0);
    tn_text_addf(t, "%s.npy", e->name);
    if (large) {
        tn_text_add_u16(t, EXTRA64);
        tn_text_add_u16(t, 16);
        tn_text_add_u64le(t, e->size);
        tn_text_add_u64le(t, e->size);
    }
}

static void add_central(tn_text *t, const entry *e)
{
    bool large = e->size >= LARGE;
    bool far = e->at >= LARGE;
    uint32_t extra = (large ? 16U : 0) + (far ? 8U : 0);
    tn_text_add_u32le(t, CENTRAL);
    tn_text_add_u16(t, extra > 0 ? VERSION64 : VERSION);
    add_common(t, e, extra > 0 ? extra + 4 : 0);
    tn_text_add_u16(t, 0); /* comment */
    tn_text_add_u16(t, 0); /* disk */
    tn_text_add_u16(t, 0); /* attributes */
    tn_text_add_u32le(t, 0);
    tn_text_add_u32le(t, limited(e->at));
    tn_text_addf(t, "%s.npy", e->name);
    if (extra > 0) {
        tn_text_add_u16(t, EXTRA64);
        tn_text_add_u16(t, (uint16_t)extra);
    }
    if (large) {
        tn_text_add_u64le(t, e->size);
        tn_text_add_u64le(t, e->size);
    }
    if (far) {
        tn_text_add_u64le(t, e->at);
    }
}

static uint64_t bytes_of(const tn_npy *a)
{
    uint64_t bytes = a->item_bytes;
    for (uint32_t i = 0; i < a->rank; i++) {
        TN_ASSERT(!__builtin_mul_overflow(bytes, a->shape[i], &bytes));
    }
    return bytes;
}

tn_status tn_npz_add(tn_npz *z, const tn_npy *array, const void *data, tn_error *err)
{
    size_t name = strlen(array->name);
    TN_ASSERT(name >= 1 && name <= TN_NPY_NAME_MAX);
    const uint64_t bytes = bytes_of(array);
    tn_text *head = &z->scratch[0];
    tn_text *local = &z->scratch[1];
    tn_text_clear(head);
    tn_text_clear(local);
    tn_npy_head(head, array);
    TN_TRY(tn_text_check(head, "an array", err));
    const uLong crc = crc32_z(0, (const Bytef *)head->data, head->size);
    const entry e = {.name = array->name,
                     .at = tn_output_size(z->file),
                     .size = head->size + bytes,
                     .crc = (uint32_t)crc32_z(crc, data, (size_t)bytes)};
    add_local(local, &e);
    add_central(&z->directory, &e);
    z->n++;
    TN_TRY(tn_text_check(local, "an array", err));
    TN_TRY(tn_output_write(z->file, local->data, local->size, err));
    TN_TRY(tn_output_write(z->file, head->data, head->size, err));
    return tn_output_write(z->file, data, (size_t)bytes, err);
}

static void add_end(tn_npz *z, uint64_t at)
{
    tn_text *t = &z->directory;
    uint64_t size = t->size;
    if (z->n >= LARGE_COUNT || at >= LARGE || size >= LARGE) {
        tn_text_add_u32le(t, END64);
        tn_text_add_u64le(t, END64_BYTES - 12);
        tn_text_add_u16(t, VERSION64);
        tn_text_add_u16(t, VERSION64);
        tn_text_add_u64le(t, 0); /* this disk and that of the directory */
        tn_text_add_u64le(t, z->n);
        tn_text_add_u64le(t, z->n);
        tn_text_add_u64le(t, size);
        tn_text_add_u64le(t, at);
        tn_text_add_u32le(t, LOCATOR64);
        tn_text_add_u32le(t, 0);
        tn_text_add_u64le(t, at + size);
        tn_text_add_u32le(t, 1);
    }
    uint16_t n = (uint16_t)(z->n < LARGE_COUNT ? z->n : LARGE_COUNT);
    tn_text_add_u32le(t, END);
    tn_text_add_u32le(t, 0);
    tn_text_add_u16(t, n);
    tn_text_add_u16(t, n);
    tn_text_add_u32le(t, limited(size));
    tn_text_add_u32le(t, limited(at));
    tn_text_add_u16(t, 0);
}

tn_status tn_npz_commit(tn_npz *z, tn_error *err)
{
    add_end(z, tn_output_size(z->file));
    tn_status status = tn_text_check(&z->directory, "the directory of an npz file", err);
    if (status == TN_OK) {
        status = tn_output_write(z->file, z->directory.data, z->directory.size, err);
    }
    if (status == TN_OK) {
        status = tn_output_commit(z->file, err);
        z->file = NULL;
    }
    tn_npz_abandon(z);
    return status;
}

void tn_npz_abandon(tn_npz *z)
{
    if (z != NULL) {
        tn_output_abandon(z->file);
        tn_text_done(&z->directory);
        tn_text_done(&z->scratch[0]);
        tn_text_done(&z->scratch[1]);
        tn_free(z);
    }
}
