/* dict_output.c - see dict_output.h. */
#include "io/dict/dict_output.h"

#include "base/math/crc32c.h"

tn_status tn_dict_out_open(tn_dict_out *o, const char *path, tn_error *err)
{
    *o = (tn_dict_out){0};
    return tn_file_create(&o->file, path, err);
}

void tn_dict_out_done(tn_dict_out *o)
{
    tn_text_done(&o->crcs);
}

tn_status tn_dict_put_header(tn_dict_out *o, const char header[TN_DICT_HEADER], tn_error *err)
{
    TN_ASSERT(tn_file_size(o->file) == 0);
    return tn_file_write(o->file, header, TN_DICT_HEADER, err);
}

static void end_chunk(tn_dict_out *o)
{
    tn_text_add_u32le(&o->crcs, o->crc);
    o->crc = 0;
    o->so_far = 0;
}

tn_status tn_dict_put(tn_dict_out *o, const void *data, size_t size, tn_error *err)
{
    const char *from = data;
    while (size > 0) {
        size_t room = TN_DICT_CHUNK - o->so_far;
        size_t n = size < room ? size : room;
        TN_TRY(tn_file_write(o->file, from, n, err));
        o->crc = tn_crc32c(o->crc, from, n);
        o->so_far += n;
        from += n;
        size -= n;
        if (n == room) {
            end_chunk(o);
        }
    }
    return TN_OK;
}

tn_status tn_dict_put_gap(tn_dict_out *o, uint64_t at, tn_error *err)
{
    static const char zeros[TN_DICT_ALIGN];
    uint64_t now = tn_file_size(o->file);
    TN_ASSERT(at >= now && at - now < TN_DICT_ALIGN);
    return tn_dict_put(o, zeros, (size_t)(at - now), err);
}

tn_status tn_dict_put_checksums(tn_dict_out *o, tn_error *err)
{
    if (o->so_far > 0) {
        end_chunk(o);
    }
    TN_TRY(tn_text_check(&o->crcs, "a dictionary", err));
    tn_text_add_u32le(&o->crcs, tn_crc32c(0, o->crcs.data, o->crcs.size));
    TN_TRY(tn_text_check(&o->crcs, "a dictionary", err));
    return tn_file_write(o->file, o->crcs.data, o->crcs.size, err);
}
