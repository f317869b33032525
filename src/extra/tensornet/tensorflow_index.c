/* tensorflow_index.c - a table of blocks with shared prefixes, and the message that names
 * variables.
 *
 *     table   blocks | index block | footer: handles of two blocks, padded to 40 bytes, u64 magic
 *     block   entries | u32 restarts[n] | u32 n      then a byte 0 (not compressed), u32 crc
 *     entry   varints shared, own, size | own bytes of the key | value
 *     handle  varints from, size
 */
#include "extra/tensornet/tensorflow_index.h"

#include "base/codec/proto.h"
#include "base/core/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOOTER = 48, HANDLES = 40, TRAILER = 5, KEY_MAX = 512 };

#define MAGIC UINT64_C(0xdb4775248b80fb57)

static const char graph_key[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

/* A tensor of the index. */
typedef struct entry {
    const char *key;
    uint32_t rank;
    uint64_t shape[TN_TENSORFLOW_RANK_MAX];
    uint64_t offset, size;
} entry;

typedef struct reading {
    tn_bytes file;
    tn_arena *arena;
    entry *entry;
    uint32_t n;
    bool good;
} reading;

static tn_bytes part_of(tn_bytes file, uint64_t from, uint64_t size, bool *good)
{
    if (from > file.size || size > file.size - from) {
        *good = false;
        return (tn_bytes){0};
    }
    return (tn_bytes){.data = file.data + from, .size = (size_t)size};
}

/* The entries of the block that a handle names. */
static tn_bytes block_of(reading *r, tn_bytes *handle)
{
    const uint64_t from = tn_proto_varint(handle);
    const uint64_t size = tn_proto_varint(handle);
    tn_bytes block = {0};
    if (handle->failed || size > r->file.size) {
        r->good = false;
        return block;
    }
    block = part_of(r->file, from, size + TRAILER, &r->good);
    if (!r->good || size < sizeof(uint32_t) || block.data[size] != 0) {
        r->good = false;
        return (tn_bytes){0};
    }
    const uint64_t restarts = tn_load_u32(block.data + size - sizeof(uint32_t));
    const uint64_t tail = (restarts + 1) * sizeof(uint32_t);
    r->good = tail <= size;
    return (tn_bytes){.data = block.data, .size = r->good ? (size_t)(size - tail) : 0};
}

/* The next entry; `key` keeps the one before, whose beginning it may share. */
static bool next_entry(reading *r, tn_bytes *block, char key[KEY_MAX], tn_bytes *value)
{
    if (block->size == 0 || !r->good) {
        return false;
    }
    const uint64_t shared = tn_proto_varint(block);
    const uint64_t own = tn_proto_varint(block);
    const uint64_t size = tn_proto_varint(block);
    if (block->failed || shared > strlen(key) || own >= KEY_MAX - shared || own > block->size ||
        size > block->size - own) {
        r->good = false;
        return false;
    }
    memcpy(key + shared, tn_get(block, (size_t)own), (size_t)own);
    key[shared + own] = '\0';
    *value = (tn_bytes){.data = tn_get(block, (size_t)size), .size = (size_t)size};
    return true;
}

static void read_shape(tn_bytes shape, entry *e)
{
    tn_proto_field dim;
    while (tn_proto_next(&shape, &dim)) {
        tn_proto_field size;
        uint64_t n = 0;
        while (dim.tag == TN_PROTO_TAG(2, TN_WIRE_BYTES) && tn_proto_next(&dim.bytes, &size)) {
            n = size.tag == TN_PROTO_TAG(1, TN_WIRE_VARINT) ? size.value : n;
        }
        if (dim.tag == TN_PROTO_TAG(2, TN_WIRE_BYTES) && e->rank < TN_TENSORFLOW_RANK_MAX) {
            e->shape[e->rank++] = n;
        }
    }
}

static void add_tensor(reading *r, const char *key, tn_bytes value)
{
    if (r->n == TN_TENSORFLOW_VARIABLES_MAX) {
        r->good = false;
        return;
    }
    entry *e = &r->entry[r->n++];
    char *copy = TN_NEW_ARRAY(r->arena, char, strlen(key) + 1);
    *e = (entry){.key = memcpy(copy, key, strlen(key) + 1)};
    tn_proto_field f;
    while (tn_proto_next(&value, &f)) {
        if (f.tag == TN_PROTO_TAG(2, TN_WIRE_BYTES)) {
            read_shape(f.bytes, e);
        } else if (f.tag == TN_PROTO_TAG(4, TN_WIRE_VARINT)) {
            e->offset = f.value;
        } else if (f.tag == TN_PROTO_TAG(5, TN_WIRE_VARINT)) {
            e->size = f.value;
        }
    }
    r->good = r->good && !value.failed;
}

static void read_table(reading *r)
{
    char key[KEY_MAX] = "";
    tn_bytes handle = {0};
    const size_t size = r->file.size;
    r->good = size >= FOOTER && tn_load_u64(r->file.data + size - sizeof(uint64_t)) == MAGIC;
    if (!r->good) {
        return;
    }
    tn_bytes footer = {.data = r->file.data + size - FOOTER, .size = HANDLES};
    (void)tn_proto_varint(&footer); /* the block of filters: */
    (void)tn_proto_varint(&footer); /* there are none */
    tn_bytes index = block_of(r, &footer);
    while (next_entry(r, &index, key, &handle)) {
        char of_block[KEY_MAX] = "";
        tn_bytes value = {0};
        tn_bytes block = block_of(r, &handle);
        while (next_entry(r, &block, of_block, &value)) {
            add_tensor(r, of_block, value);
        }
    }
}

static const entry *find(const reading *r, const char *key, size_t size)
{
    for (uint32_t i = 0; i < r->n; i++) {
        if (strlen(r->entry[i].key) == size && memcmp(r->entry[i].key, key, size) == 0) {
            return &r->entry[i];
        }
    }
    return NULL;
}

/* {1: name, 2: full name, 3: key} of an object. */
static void add_variable(reading *r, tn_bytes attribute, tn_tensorflow_variables *out)
{
    tn_proto_field f;
    tn_bytes name = {0};
    const entry *e = NULL;
    while (tn_proto_next(&attribute, &f)) {
        if (f.tag == TN_PROTO_TAG(2, TN_WIRE_BYTES)) {
            name = f.bytes;
        } else if (f.tag == TN_PROTO_TAG(3, TN_WIRE_BYTES)) {
            e = find(r, f.bytes.data, f.bytes.size);
        }
    }
    if (e == NULL || name.size == 0 || name.size >= KEY_MAX ||
        memchr(name.data, '\0', name.size) != NULL || out->n == TN_TENSORFLOW_VARIABLES_MAX) {
        return;
    }
    char *copy = TN_NEW_ARRAY(r->arena, char, name.size + sizeof ":0");
    memcpy(copy, name.data, name.size);
    memcpy(copy + name.size, ":0", sizeof ":0");
    tn_tensorflow_variable *v = &out->variable[out->n++];
    *v = (tn_tensorflow_variable){.name = copy, .rank = e->rank};
    memcpy(v->shape, e->shape, sizeof v->shape);
}

/* Reads the message, which follows the length of its tensor's only text and a crc of that. */
static void read_graph(reading *r, tn_bytes data, tn_tensorflow_variables *out)
{
    const entry *e = find(r, graph_key, sizeof graph_key - 1);
    if (e == NULL) {
        r->good = false;
        return;
    }
    tn_bytes graph = part_of(data, e->offset, e->size, &r->good);
    const uint64_t size = tn_proto_varint(&graph);
    (void)tn_get_u32(&graph);
    if (graph.failed || size != graph.size) {
        r->good = false;
        return;
    }
    tn_proto_field node;
    while (tn_proto_next(&graph, &node)) {
        tn_proto_field f;
        while (node.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES) && tn_proto_next(&node.bytes, &f)) {
            if (f.tag == TN_PROTO_TAG(2, TN_WIRE_BYTES)) {
                add_variable(r, f.bytes, out);
            }
        }
    }
    r->good = r->good && !graph.failed;
}

static int by_name(const void *left, const void *right)
{
    const tn_tensorflow_variable *a = left;
    const tn_tensorflow_variable *b = right;
    return strcmp(a->name, b->name);
}

tn_status tn_tensorflow_variables_read(tn_tensorflow_variables *out, tn_bytes index, tn_bytes data,
                                       tn_arena *arena, const char *path, tn_error *err)
{
    reading r = {.file = index,
                 .arena = arena,
                 .entry = TN_NEW_ARRAY(arena, entry, TN_TENSORFLOW_VARIABLES_MAX)};
    *out = (tn_tensorflow_variables){
        .variable = TN_NEW_ARRAY(arena, tn_tensorflow_variable, TN_TENSORFLOW_VARIABLES_MAX)};
    read_table(&r);
    if (r.good) {
        read_graph(&r, data, out);
    }
    qsort(out->variable, out->n, sizeof *out->variable, by_name);
    return r.good ? TN_OK
                  : tn_fail(err, TN_E_CKPT,
                            "'%s' and its data are no checkpoint of TensorFlow that names its "
                            "variables",
                            path);
}
