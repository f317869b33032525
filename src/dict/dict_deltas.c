/* dict_deltas.c - opening a stack of dictionaries, and asking its layers from the newest down. */
#include "dict/dict_deltas.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/file/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 64 };

tn_status tn_dict_segment_names(const tn_dict *d, tn_arena *arena, tn_bytes *out, tn_error *err)
{
    const char *text = tn_dict_json(d);
    const tn_json *json = NULL;
    TN_TRY(tn_json_parse(&json, text, tn_dict_head(d)->json_bytes, arena, "a dictionary", err));
    const tn_json *list = tn_json_get(json, "segments");
    *out = list != NULL ? (tn_bytes){text + list->begin, list->end - list->begin, false}
                        : (tn_bytes){"[]", 2, false};
    return TN_OK;
}

/* Whether numbers of groups and segments mean the same in both. */
static tn_status check_same(const tn_dict *a, const tn_dict *b, const char *path, tn_error *err)
{
    uint32_t n = tn_dict_head(a)->n_groups;
    bool same = n == tn_dict_head(b)->n_groups;
    for (uint32_t g = 0; same && g < n; g++) {
        same = tn_dict_salt(a, g) == tn_dict_salt(b, g) &&
               strcmp(tn_dict_group_name(a, g), tn_dict_group_name(b, g)) == 0;
    }
    tn_arena *arena = NULL;
    TN_TRY(tn_arena_open(&arena, 1 << 12, "a dictionary", err));
    tn_bytes one = {0};
    tn_bytes two = {0};
    tn_status status = tn_dict_segment_names(a, arena, &one, err);
    if (status == TN_OK) {
        status = tn_dict_segment_names(b, arena, &two, err);
    }
    if (status == TN_OK &&
        !(same && one.size == two.size && memcmp(one.data, two.data, one.size) == 0)) {
        status =
            tn_fail(err, TN_E_CKPT, "'%s' has other groups or segments than the layer on it", path);
    }
    tn_arena_free(arena);
    return status;
}

static tn_status base_path(const tn_dict *d, const char *dir, const char *name,
                           char out[TN_PATH_SIZE], tn_error *err)
{
    char hex[TN_MODEL_HEX];
    tn_dict_hex(tn_dict_head(d)->base_id, hex);
    int length = snprintf(out, TN_PATH_SIZE, "%s/../%s/%s", dir, hex, name);
    if (length < 0 || length >= TN_PATH_SIZE) {
        return tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       dir);
    }
    return TN_OK;
}

static tn_status open_below(tn_dict_stack *s, const char *dir, const char *name, tn_verify verify,
                            tn_error *err)
{
    char path[TN_PATH_SIZE];
    const tn_dict *top = s->layer[s->n - 1];
    if (s->n > TN_DICT_DELTAS_MAX) {
        return tn_fail(err, TN_E_CKPT, "'%s' stands on more than %d deltas", dir,
                       TN_DICT_DELTAS_MAX);
    }
    TN_TRY(base_path(top, dir, name, path, err));
    if (!tn_path_exists(path)) {
        return tn_fail(err, TN_E_CKPT, "'%s' is a delta and its base '%s' is missing", dir, path);
    }
    TN_TRY(tn_dict_open(&s->layer[s->n], path, verify, err));
    s->n++;
    const tn_dict *base = s->layer[s->n - 1];
    if (memcmp(tn_dict_head(base)->model_id, tn_dict_head(top)->base_id, TN_MODEL_ID_BYTES) != 0) {
        return tn_fail(err, TN_E_CKPT, "'%s' is not the model that its folder says", path);
    }
    return check_same(top, base, path, err);
}

tn_status tn_dict_stack_open(tn_dict_stack *out, const char *dir, const char *name,
                             tn_verify verify, tn_error *err)
{
    char path[TN_PATH_SIZE];
    *out = (tn_dict_stack){0};
    TN_TRY(tn_path_join(dir, name, path, err));
    TN_TRY(tn_dict_open(&out->layer[0], path, verify, err));
    out->n = 1;
    tn_status status = TN_OK;
    while (status == TN_OK && (tn_dict_head(out->layer[out->n - 1])->flags & TN_DICT_DELTA) != 0) {
        status = open_below(out, dir, name, verify, err);
    }
    if (status != TN_OK) {
        tn_dict_stack_close(out);
    }
    return status;
}

void tn_dict_stack_close(tn_dict_stack *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        tn_dict_close(s->layer[i]);
    }
    *s = (tn_dict_stack){0};
}

/* Asks layers below the first for what nobody above knows; at most AT_ONCE keys. */
static tn_status ask_below(const tn_dict_stack *s, uint32_t n, const tn_dict_query *query,
                           tn_dict_row *out, tn_error *err)
{
    for (uint32_t l = 1; l < s->n; l++) {
        tn_dict_query open[AT_ONCE];
        tn_dict_row found[AT_ONCE];
        uint32_t place[AT_ONCE];
        uint32_t n_open = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (out[i].table == NULL) {
                open[n_open] = query[i];
                place[n_open++] = i;
            }
        }
        TN_TRY(tn_dict_find_all(s->layer[l], n_open, open, found, err));
        for (uint32_t i = 0; i < n_open; i++) {
            out[place[i]] = found[i];
        }
    }
    return TN_OK;
}

tn_status tn_dict_stack_find(const tn_dict_stack *s, uint32_t n, const tn_dict_query *query,
                             tn_dict_row *out, tn_error *err)
{
    TN_TRY(tn_dict_find_all(s->layer[0], n, query, out, err));
    for (uint32_t from = 0; s->n > 1 && from < n; from += AT_ONCE) {
        uint32_t left = n - from;
        uint32_t count = left < AT_ONCE ? left : (uint32_t)AT_ONCE;
        TN_TRY(ask_below(s, count, query + from, out + from, err));
    }
    return TN_OK;
}

/* ---- all keys ---- */

/* A row of some layer on its way into the list. */
typedef struct listing {
    tn_dict_live *item;
    uint64_t n;
    uint32_t layer;
} listing;

enum { REMOVED = 1 << 8 }; /* beside the layer, until the list is done */

static tn_status list_item(void *arg, const tn_dict_item *item, tn_error *err)
{
    listing *l = arg;
    if (item->group == TN_DICT_NO_GROUP) {
        return tn_fail(err, TN_E_CKPT,
                       "the dictionary does not store groups\nhint: export with "
                       "export.check_groups: true");
    }
    uint32_t removed = item->row.at == NULL ? REMOVED : 0;
    l->item[l->n++] = (tn_dict_live){item->key, item->group, l->layer | removed};
    return TN_OK;
}

static int by_key(const void *left, const void *right)
{
    const tn_dict_live *a = left;
    const tn_dict_live *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    uint32_t x = a->layer & (REMOVED - 1);
    uint32_t y = b->layer & (REMOVED - 1);
    return (x > y) - (x < y);
}

/* The newest row of each key, unless it says that the key is gone. */
static uint64_t keep_newest(tn_dict_live *item, uint64_t n)
{
    uint64_t kept = 0;
    tn_dict_live before = {0};
    for (uint64_t i = 0; i < n; i++) {
        const tn_dict_live now = item[i]; /* its place may be written below */
        bool newest = i == 0 || now.key != before.key || now.group != before.group;
        if (newest && (now.layer & REMOVED) == 0) {
            item[kept++] = now;
        }
        before = now;
    }
    return kept;
}

tn_status tn_dict_stack_list(const tn_dict_stack *s, tn_dict_live **out, uint64_t *n, tn_error *err)
{
    uint64_t rows = 0;
    for (uint32_t l = 0; l < s->n; l++) {
        rows += tn_dict_head(s->layer[l])->rows;
    }
    listing list = {.item = NULL};
    TN_TRY(TN_ALLOC(list.item, (size_t)rows + 1, "keys", err));
    tn_status status = TN_OK;
    for (; list.layer < s->n && status == TN_OK; list.layer++) {
        status = tn_dict_walk(s->layer[list.layer], list_item, &list, err);
    }
    if (status != TN_OK) {
        tn_free(list.item);
        return status;
    }
    qsort(list.item, (size_t)list.n, sizeof *list.item, by_key);
    *n = keep_newest(list.item, list.n);
    *out = list.item;
    return TN_OK;
}
