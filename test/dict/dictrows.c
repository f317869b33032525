/* dictrows.c - see dictrows.h. */
#include "dictrows.h"

#include "base/keys/record.h"
#include "base/math/key.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const tn_share_group groups[] = {
    {.name = "user", .salt = UINT64_C(0x3da0fd9c44cfc9ee), .record = 0},
    {.name = "item", .salt = UINT64_C(0x5fe193bb4b6b9cd0), .record = 0},
};

static const tn_record record = {
    .width = 3, .n_segments = 2, .segment = {{"wide", 0, 1}, {"deep", 1, 2}}};

const tn_layout tn_dictrows_layout = {
    .n_groups = 2, .group = groups, .n_records = 1, .record = &record};

tn_dict_spec tn_dictrows_spec(void)
{
    tn_dict_spec spec = {.layout = &tn_dictrows_layout,
                         .type = TN_DICT_F32,
                         .check_groups = true,
                         .json = "{}",
                         .partitions = 1024,
                         .last = 1023};
    for (uint32_t i = 0; i < TN_MODEL_ID_BYTES; i++) {
        spec.model_id[i] = (uint8_t)i;
    }
    return spec;
}

void tn_dictrows_add(tn_dictrows *r, const tn_layout *layout, uint16_t group, uint64_t sign,
                     uint16_t present, const float *values)
{
    assert(r->n < TN_DICTROWS_MAX);
    uint64_t key = tn_key_of(sign, layout->group[group].salt);
    uint32_t width = tn_record_of(layout, group)->width;
    assert(width <= TN_DICTROWS_WIDTH);
    for (uint32_t i = 0; i < width; i++) {
        r->values[r->n][i] =
            values != NULL ? values[i] : (float)((double)(tn_mix(key + i) >> 40) * 0x1p-24 - 0.5);
    }
    r->row[r->n] =
        (tn_dict_entry){.key = key, .group = group, .present = present, .values = r->values[r->n]};
    r->n++;
}

static int by_key(const void *a, const void *b)
{
    const tn_dict_entry *x = a;
    const tn_dict_entry *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

void tn_dictrows_sort(tn_dictrows *r)
{
    qsort(r->row, r->n, sizeof r->row[0], by_key);
}

static tn_status walk(void *arg, uint32_t piece, tn_dict_visit *visit, void *visitor, tn_error *err)
{
    const tn_dictrows *r = arg;
    uint32_t end = r->n * (piece + 1) / TN_DICTROWS_PIECES;
    for (uint32_t i = r->n * piece / TN_DICTROWS_PIECES; i < end; i++) {
        TN_TRY(visit(visitor, &r->row[i], err));
    }
    return TN_OK;
}

tn_dict_source tn_dictrows_source(tn_dictrows *r)
{
    return (tn_dict_source){.n_pieces = TN_DICTROWS_PIECES, .walk = walk, .arg = r};
}
