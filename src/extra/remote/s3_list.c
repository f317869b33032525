/* s3_list.c - finds elements by their names, one after another. */
#include "extra/remote/s3_list.h"

#include "base/codec/utf8.h"
#include "base/core/number.h"
#include "base/math/key.h"

#include <string.h>

enum { ENTITY_MAX = 12 };

typedef struct element {
    tn_bytes name; /* "/Contents" ends one */
    tn_bytes text; /* text after it, up to the next '<' */
} element;

/* Finds the next element, past which *at goes. Returns false when none is left. */
static bool next_element(tn_bytes *at, element *out)
{
    const char *open = at->size > 0 ? memchr(at->data, '<', at->size) : NULL;
    const char *end = at->data + at->size;
    const char *close = open != NULL ? memchr(open, '>', (size_t)(end - open)) : NULL;
    if (close == NULL) {
        at->data = end;
        at->size = 0;
        return false;
    }
    const char *name = open + 1;
    size_t size = 0;
    while (name + size < close && strchr(" \t\r\n", name[size]) == NULL) {
        size++;
    }
    const char *text = close + 1;
    const char *stop = text < end ? memchr(text, '<', (size_t)(end - text)) : NULL;
    stop = stop != NULL ? stop : end;
    *out = (element){{name, size, false}, {text, (size_t)(stop - text), false}};
    at->data = stop;
    at->size = (size_t)(end - stop);
    return true;
}

static bool is(tn_bytes text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* Decodes the bytes between '&' and ';'. Returns false when this is no entity. */
static bool add_entity(tn_bytes name, tn_text *out)
{
    static const struct {
        const char *name;
        char c;
    } named[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        if (is(name, named[i].name)) {
            tn_text_addc(out, named[i].c);
            return true;
        }
    }
    uint64_t code = 0;
    char utf8[4];
    if (name.size < 2 || name.data[0] != '#') {
        return false;
    }
    const bool hex = name.data[1] == 'x';
    const tn_numeral read = hex ? tn_read_hex(name.data + 2, name.size - 2, &code)
                                : tn_read_u64(name.data + 1, name.size - 1, &code);
    if (read != TN_NUM_OK || code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        return false;
    }
    tn_text_add(out, utf8, (size_t)(tn_utf8_put(utf8, (uint32_t)code) - utf8));
    return true;
}

static void decode(tn_bytes text, tn_text *out)
{
    for (size_t i = 0; i < text.size; i++) {
        const size_t left = text.size - i < ENTITY_MAX ? text.size - i : ENTITY_MAX;
        const char *semicolon = text.data[i] == '&' ? memchr(text.data + i, ';', left) : NULL;
        const size_t size = semicolon != NULL ? (size_t)(semicolon - text.data) - i : 0;
        if (size > 1 && add_entity((tn_bytes){text.data + i + 1, size - 1, false}, out)) {
            i += size;
        } else {
            tn_text_addc(out, text.data[i]);
        }
    }
}

/* Reads the members of one <Contents>. Returns false when it does not end, or lacks one. */
static bool read_object(tn_bytes *at, tn_s3_object *out)
{
    element e;
    bool sized = false;
    tn_text_clear(&out->key);
    tn_text_clear(&out->etag);
    while (next_element(at, &e)) {
        if (is(e.name, "/Contents")) {
            return sized && out->key.size > 0;
        }
        if (is(e.name, "Key")) {
            tn_text_clear(&out->key);
            decode(e.text, &out->key);
        } else if (is(e.name, "Size")) {
            sized = tn_read_u64(e.text.data, e.text.size, &out->size) == TN_NUM_OK;
        } else if (is(e.name, "ETag")) {
            tn_text_clear(&out->etag);
            decode(e.text, &out->etag);
        }
    }
    return false;
}

bool tn_s3_next(tn_s3_scan *scan, tn_s3_object *out)
{
    element e;
    while (next_element(&scan->text, &e)) {
        if (is(e.name, "Contents")) {
            scan->broken = scan->broken || !read_object(&scan->text, out);
            scan->n++;
            scan->names = tn_xxh64(out->key.data, out->key.size, scan->names);
            return !scan->broken;
        }
        if (is(e.name, "CommonPrefixes")) {
            scan->n++;
            /* prefix of a folder; the prefix of the request is always the same */
        } else if (is(e.name, "Prefix")) {
            scan->names = tn_xxh64(e.text.data, e.text.size, scan->names);
        } else if (is(e.name, "IsTruncated")) {
            scan->truncated = is(e.text, "true");
        } else if (is(e.name, "NextContinuationToken")) {
            tn_text_clear(&scan->token);
            decode(e.text, &scan->token);
        }
    }
    return false;
}

bool tn_s3_element(tn_bytes text, const char *name, tn_text *out)
{
    element e;
    while (next_element(&text, &e)) {
        if (is(e.name, name)) {
            decode(e.text, out);
            return true;
        }
    }
    return false;
}
