/* fieldjson.c - writing options as JSON by their table, and reading JSON as a tree. */
#include "config/fieldjson.h"

#include "base/codec/json.h"
#include "base/core/error.h"
#include "config/tree.h"
#include "config/values.h"

#include <stdio.h>
#include <string.h>

enum { SIZE_TEXT = 32 };

/* Appends a tree as a value; key NULL: inside a list. */
static void add_tree(tn_text *out, const char *key, const tn_tree *tree)
{
    if (tree == NULL || tree->kind == TN_TREE_NULL) {
        tn_json_str(out, key, NULL);
        return;
    }
    if (tree->kind == TN_TREE_SCALAR) {
        tn_json_str(out, key, tree->text);
        return;
    }
    bool list = tree->kind == TN_TREE_LIST;
    tn_json_open_key(out, key, list ? '[' : '{');
    for (const tn_tree *t = tree->first; t != NULL; t = t->next) {
        add_tree(out, list ? NULL : t->key, t);
    }
    tn_json_close(out, list ? ']' : '}');
}

static void put_strs(tn_text *out, const char *key, const tn_strs *list)
{
    if (list->n == 0 && list->item == NULL) {
        tn_json_str(out, key, NULL);
        return;
    }
    tn_json_open_key(out, key, '[');
    for (uint32_t i = 0; i < list->n; i++) {
        tn_json_str(out, NULL, list->item[i]);
    }
    tn_json_close(out, ']');
}

static void put_f64s(tn_text *out, const char *key, const tn_f64s *list)
{
    if (list->n == 0) {
        tn_json_str(out, key, NULL);
        return;
    }
    tn_json_open_key(out, key, '[');
    for (uint32_t i = 0; i < list->n; i++) {
        tn_json_f64(out, NULL, list->item[i]);
    }
    tn_json_close(out, ']');
}

static uint32_t n_words(const tn_field *f)
{
    uint32_t n = 0;
    while (f->words != NULL && f->words[n] != NULL) {
        n++;
    }
    return n;
}

static void put_u32(tn_text *out, const tn_field *f, uint32_t value)
{
    uint32_t word = UINT32_MAX - 1U - value; /* TN_WORD_U32 is its own way back */
    if (value == TN_UNSET_U32) {
        tn_json_str(out, f->key, NULL);
    } else if (f->kind == TN_KIND_CHOICE) {
        TN_ASSERT(value < n_words(f));
        tn_json_str(out, f->key, f->words[value]);
    } else if (word < n_words(f)) {
        tn_json_str(out, f->key, f->words[word]);
    } else {
        tn_json_u64(out, f->key, value);
    }
}

void tn_field_json(tn_text *out, const tn_field *f, const void *opts)
{
    const void *at = (const char *)opts + f->offset;
    char bytes[SIZE_TEXT];
    switch (f->kind) {
    case TN_KIND_BOOL:
        tn_json_bool(out, f->key, *(const bool *)at);
        break;
    case TN_KIND_U32:
    case TN_KIND_CHOICE:
        put_u32(out, f, *(const uint32_t *)at);
        break;
    case TN_KIND_U64:
        tn_json_count(out, f->key, *(const uint64_t *)at);
        break;
    case TN_KIND_SIZE:
        (void)snprintf(bytes, sizeof bytes, "%lluB", (unsigned long long)*(const uint64_t *)at);
        tn_json_str(out, f->key, bytes);
        break;
    case TN_KIND_F64:
        tn_json_f64(out, f->key, *(const double *)at);
        break;
    case TN_KIND_STR:
        tn_json_str(out, f->key, *(const char *const *)at);
        break;
    case TN_KIND_STRS:
        put_strs(out, f->key, at);
        break;
    case TN_KIND_F64S:
        put_f64s(out, f->key, at);
        break;
    case TN_KIND_TREE:
        add_tree(out, f->key, *(const tn_tree *const *)at);
        break;
    case TN_KIND_END:
    case TN_KIND_DURATION:
    case TN_KIND_TABLE:
    case TN_KIND_TABLES:
    case TN_KIND_VARIANT:
    default:
        TN_ASSERT(f->kind == TN_KIND_END); /* data and slots have no option of another kind */
    }
}

static bool is_among(const char *const *keys, const char *key)
{
    while (*keys != NULL && strcmp(*keys, key) != 0) {
        keys++;
    }
    return *keys != NULL;
}

void tn_fields_json_changed(tn_text *out, const tn_field *fields, const void *opts,
                            const void *usual, const char *const *without)
{
    tn_text mine = {0};
    tn_text other = {0};
    for (const tn_field *f = fields; f->kind != TN_KIND_END; f++) {
        if (is_among(without, f->key)) {
            continue;
        }
        tn_text_clear(&mine);
        tn_text_clear(&other);
        tn_field_json(&mine, f, opts);
        tn_field_json(&other, f, usual);
        if (strcmp(tn_text_str(&mine), tn_text_str(&other)) != 0) {
            tn_field_json(out, f, opts);
        }
    }
    tn_text_done(&mine);
    tn_text_done(&other);
}

tn_tree *tn_json_tree(tn_arena *arena, const tn_json *value, const char *source)
{
    tn_origin at = {.source = source};
    tn_tree *tree = NULL;
    switch (value->kind) {
    case TN_JSON_LIST:
    case TN_JSON_OBJECT:
        tree = tn_tree_new(arena, value->kind == TN_JSON_LIST ? TN_TREE_LIST : TN_TREE_MAP, at);
        for (const tn_json *v = value->first; v != NULL; v = v->next) {
            tn_tree *child = tn_json_tree(arena, v, source);
            child->key = value->kind == TN_JSON_OBJECT ? v->key : NULL;
            tn_tree_append(tree, child); /* the parser has refused members that occur twice */
        }
        return tree;
    case TN_JSON_STRING:
    case TN_JSON_NUMBER:
        tree = tn_tree_scalar(arena, value->string, at);
        tree->quoted = value->kind == TN_JSON_STRING;
        return tree;
    case TN_JSON_BOOL:
        return tn_tree_scalar(arena, value->boolean ? "true" : "false", at);
    case TN_JSON_NULL:
    default:
        return tn_tree_new(arena, TN_TREE_NULL, at);
    }
}
