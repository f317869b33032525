/* dict.c - opening a dictionary and all its rows; see dict.h. What may be believed of the file is
 * decided in dictcheck.c, single keys are looked up in dictfind.c. */
#include "io/dict/dict.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "io/dict/dictinside.h"

#include <string.h>

static tn_status open_heads(tn_dict *d, const char *path, tn_error *err)
{
    size_t size = strlen(path) + 1;
    char *what = tn_try_alloc(1, size, "a dictionary", err);
    d->what = what;
    if (what == NULL) {
        return TN_E_MEMORY;
    }
    memcpy(what, path, size);
    TN_TRY(tn_map_file(&d->map, path, err));
    TN_TRY(tn_dict_check(d, err));
    d->group = tn_try_alloc((size_t)d->n_groups + 1, sizeof *d->group, "a dictionary", err);
    d->table = tn_try_alloc((size_t)d->n_tables + 1, sizeof *d->table, "a dictionary", err);
    d->checked = tn_try_alloc((size_t)d->n_chunks + 1, sizeof *d->checked, "a dictionary", err);
    if (d->group == NULL || d->table == NULL || d->checked == NULL) {
        return TN_E_MEMORY;
    }
    TN_TRY(tn_dict_read_heads(d, err));
    return d->verify == TN_VERIFY_FULL ? tn_dict_check_data(d, err) : TN_OK;
}

tn_status tn_dict_open(tn_dict **out, const char *path, tn_verify verify, tn_error *err)
{
    *out = NULL;
    tn_dict *d = tn_try_alloc(1, sizeof *d, "a dictionary", err);
    if (d == NULL) {
        return TN_E_MEMORY;
    }
    d->verify = verify;
    tn_status status = open_heads(d, path, err);
    if (status != TN_OK) {
        tn_dict_close(d);
        return status;
    }
    *out = d;
    return TN_OK;
}

void tn_dict_close(tn_dict *d)
{
    if (d == NULL) {
        return;
    }
    tn_unmap(&d->map);
    char *what = NULL;
    memcpy(&what, &d->what, sizeof what);
    tn_free(what);
    tn_free(d->group);
    tn_free(d->table);
    tn_free(d->checked);
    tn_free(d);
}

tn_dict_about tn_dict_about_of(const tn_dict *d)
{
    return (tn_dict_about){
        .model_id = (const uint8_t *)d->map.data + 16,
        .base_id = (const uint8_t *)d->map.data + 32,
        .delta = d->delta,
        .rows = d->rows,
        .bytes = d->map.size,
        .n_groups = d->n_groups,
        .n_tables = d->n_tables,
        .json = d->map.data + d->json_at,
        .json_bytes = d->json_bytes,
    };
}

uint32_t tn_dict_group(const tn_dict *d, const char *name)
{
    for (uint32_t g = 0; g < d->n_groups; g++) {
        if (strcmp(d->group[g].name, name) == 0) {
            return g;
        }
    }
    return TN_DICT_NO_GROUP;
}

const char *tn_dict_group_name(const tn_dict *d, uint32_t group)
{
    TN_ASSERT(group < d->n_groups);
    return d->group[group].name;
}

uint64_t tn_dict_salt(const tn_dict *d, uint32_t group)
{
    TN_ASSERT(group < d->n_groups);
    return d->group[group].salt;
}

bool tn_dict_get(const tn_dict_row *row, uint32_t segment, uint32_t dim, float *w)
{
    const tn_dict_table *t = row->at != NULL ? row->table : NULL;
    for (uint32_t i = 0; t != NULL && i < t->n_fields; i++) {
        const tn_dict_field *f = &t->field[i];
        if (f->segment == segment && f->dim == dim) {
            float scale = f->scale != TN_DICT_NO_SCALE ? tn_load_f32(row->at + f->scale) : 1;
            tn_dict_decode(f->type, dim, row->at + f->offset, scale, w);
            return true;
        }
    }
    memset(w, 0, dim * sizeof *w);
    return false;
}

tn_status tn_dict_walk(const tn_dict *d, tn_dict_each *each, void *arg, tn_error *err)
{
    for (uint32_t i = 0; i < d->n_tables; i++) {
        const tn_dict_table *t = &d->table[i];
        TN_TRY(tn_dict_touch(d, t->key, (size_t)t->rows * sizeof *t->key, err));
        TN_TRY(tn_dict_touch(d, t->row, (size_t)t->rows * t->stride, err));
        TN_TRY(tn_dict_touch(d, t->group, t->group != NULL ? (size_t)t->rows * sizeof *t->group : 0,
                             err));
        for (uint64_t k = 0; k < t->rows; k++) {
            tn_dict_item item = {
                .key = t->key[k],
                .group = t->group != NULL ? t->group[k] : TN_DICT_NO_GROUP,
                .row = {t, t->removed ? NULL : t->row + (size_t)k * t->stride},
            };
            if (t->group != NULL && item.group >= d->n_groups) {
                return tn_dict_damaged(d, "groups", err);
            }
            TN_TRY(each(arg, &item, err));
        }
    }
    return TN_OK;
}
