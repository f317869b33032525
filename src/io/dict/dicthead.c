/* dicthead.c - where the parts of a dictionary lie, and what stands in front of the rows; bytes in
 * dictformat.h. */
#include "base/core/bytes.h"
#include "base/math/crc32c.h"
#include "io/dict/dictplan.h"

#include <string.h>

static uint64_t aligned(uint64_t at)
{
    return (at + TN_DICT_ALIGN - 1) / TN_DICT_ALIGN * TN_DICT_ALIGN;
}

void tn_dict_plan_places(tn_dict_plan *p)
{
    const tn_layout *layout = p->spec->layout;
    uint64_t names_bytes = 0;
    p->names_at = TN_DICT_HEADER + (uint64_t)layout->n_groups * TN_DICT_GROUP +
                  (uint64_t)p->n_tables * TN_DICT_TABLE;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        names_bytes += strlen(layout->group[g].name) + 1;
    }
    p->json_at = p->names_at + names_bytes;
    p->json_bytes = strlen(p->spec->json);
    uint64_t at = p->json_at + p->json_bytes;
    for (uint32_t i = 0; i < p->n_tables; i++) {
        tn_dict_plan_table *t = &p->table[i];
        tn_dict_plan_buckets(p, t);
        t->start_at = aligned(at);
        t->key_at = aligned(t->start_at + ((uint64_t)t->buckets + 1) * sizeof(uint32_t));
        t->rows_at = aligned(t->key_at + t->rows * sizeof(uint64_t));
        at = t->rows_at + t->rows * t->stride;
        if (p->spec->check_groups) {
            t->group_at = aligned(at);
            at = t->group_at + t->rows * sizeof(uint16_t);
        }
    }
    p->crc_at = aligned(at);
}

static uint32_t chunks_of(const tn_dict_plan *p)
{
    return (uint32_t)((p->crc_at - TN_DICT_HEADER + TN_DICT_CHUNK - 1) / TN_DICT_CHUNK);
}

static tn_status put_header(tn_dict_out *o, const tn_dict_plan *p, tn_error *err)
{
    const tn_dict_spec *s = p->spec;
    char h[TN_DICT_HEADER] = {0};
    tn_store_u64(h, TN_DICT_MAGIC);
    tn_store_u16(h + 8, 1);
    tn_store_u32(h + 12, TN_DICT_HEADER);
    memcpy(h + 16, s->model_id, TN_MODEL_ID_BYTES);
    if (s->delta) {
        memcpy(h + 32, s->base_id, TN_MODEL_ID_BYTES);
    }
    tn_store_u64(h + 48, p->crc_at + ((uint64_t)chunks_of(p) + 1) * sizeof(uint32_t));
    tn_store_u64(h + 56, p->rows);
    tn_store_u64(h + 64, TN_DICT_HEADER);
    tn_store_u64(h + 72, p->names_at);
    tn_store_u64(h + 80, p->json_at);
    tn_store_u64(h + 88, p->crc_at);
    tn_store_u32(h + 96, s->layout->n_groups);
    tn_store_u32(h + 100, p->n_tables);
    tn_store_u32(h + 104, (uint32_t)p->json_bytes);
    tn_store_u32(h + 108, chunks_of(p));
    tn_store_u32(h + 112, (s->delta ? (uint32_t)TN_DICT_DELTA : 0) |
                              (s->check_groups ? (uint32_t)TN_DICT_GROUP_ARRAYS : 0));
    tn_store_u16(h + 116, (uint16_t)s->partitions);
    tn_store_u16(h + 118, (uint16_t)s->first);
    tn_store_u16(h + 120, (uint16_t)s->last);
    tn_store_u16(h + 122, TN_DICT_CHUNK_LOG);
    tn_store_u32(h + 124, tn_crc32c(0, h, TN_DICT_HEADER - sizeof(uint32_t)));
    return tn_dict_put_header(o, h, err);
}

static tn_status put_groups(tn_dict_out *o, const tn_dict_plan *p, tn_error *err)
{
    const tn_layout *layout = p->spec->layout;
    uint32_t name_at = 0;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        char out[TN_DICT_GROUP] = {0};
        uint16_t table[TN_DICT_GROUP_TABLES];
        uint32_t n = tn_dict_plan_group(p, g, table);
        uint32_t length = (uint32_t)strlen(layout->group[g].name);
        tn_store_u64(out, layout->group[g].salt);
        tn_store_u32(out + 8, name_at);
        tn_store_u16(out + 12, (uint16_t)length);
        out[14] = (char)n;
        for (uint32_t i = 0; i < n; i++) {
            tn_store_u16(out + 16 + (size_t)i * 2, table[i]);
        }
        name_at += length + 1;
        TN_TRY(tn_dict_put(o, out, sizeof out, err));
    }
    return TN_OK;
}

static tn_status put_tables(tn_dict_out *o, const tn_dict_plan *p, tn_error *err)
{
    for (uint32_t i = 0; i < p->n_tables; i++) {
        const tn_dict_plan_table *t = &p->table[i];
        char out[TN_DICT_TABLE] = {0};
        tn_store_u64(out, t->rows);
        tn_store_u64(out + 8, t->start_at);
        tn_store_u64(out + 16, t->key_at);
        tn_store_u64(out + 24, t->rows_at);
        tn_store_u64(out + 32, t->group_at);
        tn_store_u64(out + 40, t->base);
        tn_store_u32(out + 48, t->buckets);
        tn_store_u32(out + 52, t->stride);
        out[56] = (char)t->shift;
        out[57] = (char)t->n_columns;
        tn_store_u16(out + 58, t->set->present == 0 ? TN_DICT_REMOVED : 0);
        for (uint32_t k = 0; k < t->n_columns; k++) {
            char *at = out + TN_DICT_SEGMENTS_AT + (size_t)k * TN_DICT_SEGMENT;
            const tn_dict_column *c = &t->column[k];
            tn_store_u32(at, c->offset);
            tn_store_u32(at + 4, c->scale);
            tn_store_u16(at + 8, (uint16_t)c->dim);
            at[10] = (char)p->spec->type;
            at[11] = (char)c->segment;
        }
        TN_TRY(tn_dict_put(o, out, sizeof out, err));
    }
    return TN_OK;
}

static tn_status put_names(tn_dict_out *o, const tn_dict_plan *p, tn_error *err)
{
    const tn_layout *layout = p->spec->layout;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        TN_TRY(tn_dict_put(o, layout->group[g].name, strlen(layout->group[g].name) + 1, err));
    }
    return tn_dict_put(o, p->spec->json, p->json_bytes, err);
}

tn_status tn_dict_put_head(tn_dict_out *o, const tn_dict_plan *p, tn_error *err)
{
    TN_TRY(put_header(o, p, err));
    TN_TRY(put_groups(o, p, err));
    TN_TRY(put_tables(o, p, err));
    return put_names(o, p, err);
}
