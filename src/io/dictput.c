/* dictput.c - see dictput.h. */
#include "io/dictput.h"

#include "base/alloc.h"
#include "base/crc32c.h"

#include <string.h>

tn_status tn_dict_out_open(tn_dict_out *o, const char *path, tn_error *err)
{
    *o = (tn_dict_out){0};
    o->buffer = tn_try_alloc(TN_DICT_CHUNK + TN_DICT_ROW_MAX, 1, "rows of a dictionary", err);
    return o->buffer != NULL ? tn_file_create(&o->file, path, err) : TN_E_MEMORY;
}

void tn_dict_out_done(tn_dict_out *o)
{
    tn_text_done(&o->crcs);
    tn_free(o->buffer);
    o->buffer = NULL;
}

tn_status tn_dict_put_header(tn_dict_out *o, const char header[TN_DICT_HEADER], tn_error *err)
{
    TN_ASSERT(o->at == 0 && o->used == 0);
    o->at = TN_DICT_HEADER;
    return tn_file_write(o->file, header, TN_DICT_HEADER, err);
}

/* Writes the buffer's first bytes, and has the rest begin it. */
static tn_status put_front(tn_dict_out *o, size_t size, tn_error *err)
{
    size_t rest = o->used - size;
    tn_text_add_u32le(&o->crcs, tn_crc32c(0, o->buffer, size));
    TN_TRY(tn_file_write(o->file, o->buffer, size, err));
    o->at += size;
    if (rest > 0) {
        memmove(o->buffer, o->buffer + size, rest);
    }
    memset(o->buffer + rest, 0, o->used - rest);
    o->used = rest;
    return TN_OK;
}

tn_status tn_dict_put_chunk(tn_dict_out *o, tn_error *err)
{
    TN_ASSERT(o->used >= TN_DICT_CHUNK && o->used <= TN_DICT_CHUNK + TN_DICT_ROW_MAX);
    return put_front(o, TN_DICT_CHUNK, err);
}

tn_status tn_dict_put(tn_dict_out *o, const void *data, size_t size, tn_error *err)
{
    const char *from = data;
    while (size > 0) {
        size_t room = TN_DICT_CHUNK - o->used;
        size_t n = size < room ? size : room;
        memcpy(o->buffer + o->used, from, n);
        o->used += n;
        from += n;
        size -= n;
        if (n == room) {
            TN_TRY(tn_dict_put_chunk(o, err));
        }
    }
    return TN_OK;
}

tn_status tn_dict_put_gap(tn_dict_out *o, uint64_t at, tn_error *err)
{
    static const char zeros[TN_DICT_ALIGN];
    uint64_t now = o->at + o->used;
    TN_ASSERT(at >= now && at - now < TN_DICT_ALIGN);
    return tn_dict_put(o, zeros, (size_t)(at - now), err);
}

tn_status tn_dict_put_checksums(tn_dict_out *o, tn_error *err)
{
    if (o->used > 0) {
        TN_TRY(put_front(o, o->used, err));
    }
    TN_TRY(tn_text_check(&o->crcs, "a dictionary", err));
    tn_text_add_u32le(&o->crcs, tn_crc32c(0, o->crcs.data, o->crcs.size));
    TN_TRY(tn_text_check(&o->crcs, "a dictionary", err));
    return tn_file_write(o->file, o->crcs.data, o->crcs.size, err);
}
