/* npz_read.c - finds one matrix of floats in an npz file. */
#include "extra/arrays/npz.h"

#include "base/core/bytes.h"
#include "base/file/file.h"

#include <string.h>
#include <zlib.h>

enum {
    LOCAL = 0x04034b50,
    CENTRAL = 0x02014b50,
    END = 0x06054b50,
    END64 = 0x06064b50,
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    EXTRA64 = 1,
    LARGE_COUNT = 0xffff,
};
#define LARGE UINT32_C(0xffffffff)

typedef struct reading {
    tn_bytes file;
    const char *what; /* its name, for messages */
    tn_error *err;
} reading;

static tn_status bad(const reading *r, const char *fault)
{
    return tn_fail(r->err, TN_E_DATA, "'%s' is no npz file that is read here: %s", r->what, fault);
}

/* Returns `size` bytes of the file from `at` on; failed: there are not so many. */
static tn_bytes part(const reading *r, uint64_t at, uint64_t size)
{
    if (at > r->file.size || size > r->file.size - at) {
        return (tn_bytes){.failed = true};
    }
    return (tn_bytes){r->file.data + at, (size_t)size, false};
}

/* Finds the directory and the number of arrays that it lists. */
static tn_status find_directory(const reading *r, tn_bytes *out, uint64_t *n)
{
    if (r->file.size < END_BYTES) {
        return bad(r, "it is too short");
    }
    tn_bytes end = part(r, r->file.size - END_BYTES, END_BYTES);
    const bool known = tn_get_u32(&end) == END;
    (void)tn_get_u32(&end); /* disks */
    (void)tn_get_u16(&end);
    *n = tn_get_u16(&end);
    uint64_t size = tn_get_u32(&end);
    uint64_t at = tn_get_u32(&end);
    if (!known || tn_get_u16(&end) != 0) {
        return bad(r, "it does not end in a directory of arrays");
    }
    if (*n == LARGE_COUNT || size == LARGE || at == LARGE) {
        const uint64_t tail = END_BYTES + LOCATOR_BYTES + END64_BYTES;
        tn_bytes wide = part(r, r->file.size - tail, tail); /* none, if shorter */
        const bool wide_known = tn_get_u32(&wide) == END64;
        (void)tn_get(&wide, 28);
        *n = tn_get_u64(&wide);
        size = tn_get_u64(&wide);
        at = tn_get_u64(&wide);
        if (!wide_known || wide.failed) {
            return bad(r, "it does not end in a directory of arrays");
        }
    }
    *out = part(r, at, size);
    return out->failed ? bad(r, "its directory lies outside of it") : TN_OK;
}

/* An array as the directory has it. */
typedef struct entry {
    const char *name;
    size_t name_size;
    uint32_t method, crc;
    uint64_t size, stored, at;
} entry;

/* Reads sizes of 64 bits, where those of 32 are not enough. */
static void read_extra(tn_bytes extra, entry *e)
{
    while (!extra.failed && extra.size >= 4) {
        const uint16_t id = tn_get_u16(&extra);
        const uint16_t size = tn_get_u16(&extra);
        const char *data = tn_get(&extra, size);
        if (id != EXTRA64 || data == NULL) {
            continue;
        }
        tn_bytes wide = {data, size, false};
        e->size = e->size == LARGE ? tn_get_u64(&wide) : e->size;
        e->stored = e->stored == LARGE ? tn_get_u64(&wide) : e->stored;
        e->at = e->at == LARGE ? tn_get_u64(&wide) : e->at;
    }
}

static tn_status read_entry(const reading *r, tn_bytes *directory, entry *e)
{
    const bool known = tn_get_u32(directory) == CENTRAL;
    (void)tn_get_u32(directory); /* versions */
    const uint16_t flags = tn_get_u16(directory);
    e->method = tn_get_u16(directory);
    (void)tn_get_u32(directory); /* time */
    e->crc = tn_get_u32(directory);
    e->stored = tn_get_u32(directory);
    e->size = tn_get_u32(directory);
    e->name_size = tn_get_u16(directory);
    const uint16_t extra_size = tn_get_u16(directory);
    const uint16_t comment_size = tn_get_u16(directory);
    (void)tn_get_u64(directory); /* disk, attributes */
    e->at = tn_get_u32(directory);
    e->name = tn_get(directory, e->name_size);
    tn_bytes extra = {tn_get(directory, extra_size), extra_size, false};
    (void)tn_get(directory, comment_size);
    if (!known || directory->failed) {
        return bad(r, "its directory is damaged");
    }
    read_extra(extra, e);
    return (flags & 1U) != 0 ? bad(r, "it is encrypted") : TN_OK;
}

/* Finds the bytes of an array, after its local header, name and extras. */
static tn_status find_bytes(const reading *r, const entry *e, tn_bytes *out)
{
    enum { HEADER = 30, BEFORE_SIZES = 22 };
    if (e->method != 0 || e->stored != e->size) {
        return bad(r, "its arrays are compressed (numpy.savez writes them as they are)");
    }
    tn_bytes head = part(r, e->at, HEADER);
    const bool known = tn_get_u32(&head) == LOCAL;
    (void)tn_get(&head, BEFORE_SIZES);
    const uint32_t more = (uint32_t)tn_get_u16(&head) + tn_get_u16(&head);
    if (!known || head.failed) {
        return bad(r, "an array lies outside of it");
    }
    *out = part(r, e->at + HEADER + more, e->size);
    if (out->failed) {
        return bad(r, "an array lies outside of it");
    }
    return crc32_z(0, (const Bytef *)out->data, out->size) == e->crc
               ? TN_OK
               : bad(r, "an array has another CRC than the file says: it is damaged");
}

/* Takes blanks and `text` off the front. */
static bool take(tn_bytes *in, const char *text)
{
    while (in->size > 0 && *in->data == ' ') {
        (void)tn_get(in, 1);
    }
    const size_t size = strlen(text);
    return in->size >= size && memcmp(in->data, text, size) == 0 && tn_get(in, size) != NULL;
}

static bool take_number(tn_bytes *in, uint64_t *out)
{
    enum { DIGITS = 18 };
    uint32_t n = 0;
    for (*out = 0, (void)take(in, ""); in->size > 0 && *in->data >= '0' && *in->data <= '9'; n++) {
        *out = *out * 10 + (uint64_t)(*in->data - '0');
        (void)tn_get(in, 1);
        if (n == DIGITS) {
            return false;
        }
    }
    return n > 0;
}

static tn_status read_npy(const reading *r, tn_bytes npy, tn_npz_matrix *out)
{
    const char *magic = tn_get(&npy, 8);
    const uint16_t size = tn_get_u16(&npy);
    tn_bytes dict = {tn_get(&npy, size), size, false};
    if (npy.failed || memcmp(magic, "\x93NUMPY\x01\x00", 8) != 0) {
        return bad(r, "an array of another format than npy 1.0");
    }
    if (!take(&dict, "{'descr':") || !take(&dict, "'<f4'") || !take(&dict, ",") ||
        !take(&dict, "'fortran_order':") || !take(&dict, "False") || !take(&dict, ",") ||
        !take(&dict, "'shape':") || !take(&dict, "(") || !take_number(&dict, &out->rows) ||
        !take(&dict, ",") || !take_number(&dict, &out->cols) || !take(&dict, ")")) {
        return bad(r, "the array is not float32 of two dimensions, row behind row");
    }
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(out->rows, out->cols, &bytes) ||
        __builtin_mul_overflow(bytes, sizeof(float), &bytes) || bytes != npy.size) {
        return bad(r, "the array has another size than its shape");
    }
    out->data = npy.data;
    return TN_OK;
}

tn_status tn_npz_find(const tn_map *file, const char *what, const char *name, tn_npz_matrix *out,
                      tn_error *err)
{
    const reading r = {{file->data, file->size, false}, what, err};
    const size_t size = strlen(name);
    tn_bytes directory = {0};
    uint64_t n = 0;
    TN_TRY(find_directory(&r, &directory, &n));
    for (uint64_t i = 0; i < n; i++) {
        entry e = {0};
        TN_TRY(read_entry(&r, &directory, &e));
        if (e.name_size == size + 4 && memcmp(e.name, name, size) == 0 &&
            memcmp(e.name + size, ".npy", 4) == 0) {
            tn_bytes npy = {0};
            TN_TRY(find_bytes(&r, &e, &npy));
            return read_npy(&r, npy, out);
        }
    }
    return tn_fail(err, TN_E_DATA, "'%s' has no array '%s'", what, name);
}
