/* json_members.c - see json_members.h. */
#include "base/codec/json_members.h"

#include <stdlib.h>
#include <string.h>

void tn_member_spoil(tn_members *r, const char *member)
{
    r->wrong = r->wrong != NULL ? r->wrong : member;
}

uint64_t tn_member_u64(tn_members *r, const tn_json *object, const char *key, uint64_t max)
{
    uint64_t value = 0;
    if (!tn_json_as_u64(tn_json_get(object, key), &value) || value > max) {
        tn_member_spoil(r, key);
        return 0;
    }
    return value;
}

uint32_t tn_member_u32(tn_members *r, const tn_json *object, const char *key, uint32_t max)
{
    return (uint32_t)tn_member_u64(r, object, key, max);
}

uint64_t tn_member_hex(tn_members *r, const tn_json *object, const char *key)
{
    uint64_t value = 0;
    if (!tn_json_as_hex64(tn_json_get(object, key), &value)) {
        tn_member_spoil(r, key);
    }
    return value;
}

double tn_member_f64(tn_members *r, const tn_json *object, const char *key)
{
    double value = 0;
    if (!tn_json_as_f64(tn_json_get(object, key), &value)) {
        tn_member_spoil(r, key);
    }
    return value;
}

const char *tn_member_str(tn_members *r, const tn_json *object, const char *key)
{
    const char *value = tn_json_as_str(tn_json_get(object, key));
    if (value == NULL) {
        tn_member_spoil(r, key);
    }
    return value != NULL ? value : "";
}

bool tn_member_bool(tn_members *r, const tn_json *object, const char *key)
{
    const tn_json *value = tn_json_get(object, key);
    if (value == NULL || value->kind != TN_JSON_BOOL) {
        tn_member_spoil(r, key);
        return false;
    }
    return value->boolean;
}

static const tn_json *get_kind(tn_members *r, const tn_json *object, const char *key,
                               tn_json_kind kind, uint32_t max)
{
    static const tn_json nothing = {.kind = TN_JSON_NULL};
    const tn_json *value = tn_json_get(object, key);
    if (value == NULL || value->kind != kind || value->n > max) {
        tn_member_spoil(r, key);
        return &nothing;
    }
    return value;
}

const tn_json *tn_member_list(tn_members *r, const tn_json *object, const char *key, uint32_t max)
{
    return get_kind(r, object, key, TN_JSON_LIST, max);
}

const tn_json *tn_member_object(tn_members *r, const tn_json *object, const char *key, uint32_t max)
{
    return get_kind(r, object, key, TN_JSON_OBJECT, max);
}

static bool is_hex(const char *text, size_t digits)
{
    return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

uint32_t tn_member_crc(tn_members *r, const tn_json *object, const char *key)
{
    const char *text = tn_member_str(r, object, key);
    if (!is_hex(text, 8)) {
        tn_member_spoil(r, key);
        return 0;
    }
    return (uint32_t)strtoul(text, NULL, 16);
}

const char *tn_member_sha(tn_members *r, const tn_json *object, const char *key)
{
    const char *text = tn_member_str(r, object, key);
    if (!is_hex(text, 64)) {
        tn_member_spoil(r, key);
    }
    return text;
}

const tn_json *tn_json_item(const tn_json *list, uint32_t i)
{
    const tn_json *at = list != NULL && list->kind == TN_JSON_LIST ? list->first : NULL;
    for (; i > 0 && at != NULL; i--) {
        at = at->next;
    }
    return at;
}
