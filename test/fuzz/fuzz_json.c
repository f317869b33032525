/* fuzz_json.c - any bytes as JSON; what parses is walked, written again and must parse to the same.
 */
#include "base/codec/json.h"
#include "base/core/arena.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

/* Writes the tree in one form. Numbers keep their text, which the reader has checked. */
static void write_value(tn_text *t, const char *key, const tn_json *v)
{
    if (v->kind == TN_JSON_NULL) {
        tn_json_str(t, key, NULL);
    } else if (v->kind == TN_JSON_BOOL) {
        tn_json_bool(t, key, v->boolean);
    } else if (v->kind == TN_JSON_NUMBER) {
        tn_json_raw(t, key, v->string);
    } else if (v->kind == TN_JSON_STRING) {
        tn_json_str(t, key, v->string);
    } else {
        bool is_list = v->kind == TN_JSON_LIST;
        tn_json_open_key(t, key, is_list ? '[' : '{');
        uint32_t n = 0;
        for (const tn_json *m = v->first; m != NULL; m = m->next) {
            write_value(t, is_list ? NULL : m->key, m);
            n++;
        }
        TN_ASSERT(n == v->n);
        tn_json_close(t, is_list ? ']' : '}');
    }
}

/* Every accessor takes every kind. */
static void ask(const tn_json *v)
{
    uint64_t u = 0;
    double d = 0;
    (void)tn_json_as_u64(v, &u);
    (void)tn_json_as_f64(v, &d);
    (void)tn_json_as_str(v);
    (void)tn_json_get(v, "format");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    const char *text = (const char *)data;
    const tn_json *tree = NULL;
    tn_arena *arena = tn_arena_new(1 << 12);
    (void)(tn_json_check_crc(text, size, "fuzz", NULL) == TN_OK);
    if (tn_json_parse(&tree, text, size, arena, "fuzz", NULL) == TN_OK) {
        const tn_json *again = NULL;
        tn_text first = {0};
        tn_text second = {0};
        ask(tree);
        write_value(&first, NULL, tree);
        tn_status status =
            tn_json_parse(&again, tn_text_str(&first), first.size, arena, "again", NULL);
        TN_ASSERT(status == TN_OK);
        write_value(&second, NULL, again);
        TN_ASSERT(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
        tn_text_done(&second);
        tn_text_done(&first);
    }
    tn_arena_free(arena);
    return 0;
}
