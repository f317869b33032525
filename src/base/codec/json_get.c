/* json_get.c - the accessors of json.h: whatever is not there or does not fit is no value. */
#include "base/codec/json.h"
#include "base/core/number.h"

#include <string.h>

enum { HEX64_DIGITS = 16 };

const tn_json *tn_json_get(const tn_json *object, const char *key)
{
    if (object == NULL || object->kind != TN_JSON_OBJECT) {
        return NULL;
    }
    for (const tn_json *member = object->first; member != NULL; member = member->next) {
        if (strcmp(member->key, key) == 0) {
            return member;
        }
    }
    return NULL;
}

/* A number such as 1e3 or 2.0 that is a whole one after all. */
static bool whole_u64(double number, uint64_t *out)
{
    if (!(number >= 0 && number <= 0x1p53) || number != (double)(uint64_t)number) {
        return false;
    }
    *out = (uint64_t)number;
    return true;
}

bool tn_json_as_u64(const tn_json *value, uint64_t *out)
{
    if (value == NULL || (value->kind != TN_JSON_NUMBER && value->kind != TN_JSON_STRING)) {
        return false;
    }
    return tn_read_u64(value->string, strlen(value->string), out) == TN_NUM_OK ||
           (value->kind == TN_JSON_NUMBER && strpbrk(value->string, ".eE") != NULL &&
            whole_u64(value->number, out));
}

bool tn_json_as_hex64(const tn_json *value, uint64_t *out)
{
    const char *text = tn_json_as_str(value);
    return text != NULL && strlen(text) == HEX64_DIGITS &&
           tn_read_hex(text, HEX64_DIGITS, out) == TN_NUM_OK;
}

bool tn_json_as_f64(const tn_json *value, double *out)
{
    if (value == NULL || value->kind != TN_JSON_NUMBER) {
        return false;
    }
    *out = value->number;
    return true;
}

const char *tn_json_as_str(const tn_json *value)
{
    return value != NULL && value->kind == TN_JSON_STRING ? value->string : NULL;
}
