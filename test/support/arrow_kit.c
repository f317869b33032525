/* arrow_kit.c - arrays and schemas of Arrow, built by hand. */
#include "support/arrow_kit.h"

#include "support/test.h"

#include <errno.h>

enum { PARTS_MAX = 40 };

int kit_live;

typedef struct schema_parts {
    struct ArrowSchema *child[PARTS_MAX];
} schema_parts;

typedef struct array_parts {
    struct ArrowArray *child[PARTS_MAX];
    const void *buffer[PARTS_MAX];
    void *copy[PARTS_MAX]; /* the same, to free */
    size_t size[PARTS_MAX];
} array_parts;

static void *zeroed(size_t size)
{
    void *memory = calloc(1, size);
    assert_non_null(memory);
    return memory;
}

/* ---- schemas ---- */

static void release_schema(struct ArrowSchema *schema)
{
    schema_parts *parts = schema->private_data;
    assert_non_null(schema->release);
    for (int64_t i = 0; i < PARTS_MAX && parts->child[i] != NULL; i++) {
        parts->child[i]->release(parts->child[i]);
        free(parts->child[i]);
    }
    if (schema->dictionary != NULL) {
        schema->dictionary->release(schema->dictionary);
        free(schema->dictionary);
    }
    free(parts);
    schema->release = NULL;
    kit_live--;
}

void kit_schema(struct ArrowSchema *out, const char *format, const char *name)
{
    schema_parts *parts = zeroed(sizeof *parts);
    *out = (struct ArrowSchema){.format = format,
                                .name = name,
                                .flags = ARROW_FLAG_NULLABLE,
                                .children = parts->child,
                                .release = release_schema,
                                .private_data = parts};
    kit_live++;
}

struct ArrowSchema *kit_schema_child(struct ArrowSchema *of, const char *format, const char *name)
{
    struct ArrowSchema *child = zeroed(sizeof *child);
    assert_true(of->n_children < PARTS_MAX);
    kit_schema(child, format, name);
    of->children[of->n_children++] = child;
    return child;
}

struct ArrowSchema *kit_schema_dictionary(struct ArrowSchema *of, const char *format)
{
    of->dictionary = zeroed(sizeof *of->dictionary);
    kit_schema(of->dictionary, format, "");
    return of->dictionary;
}

/* ---- arrays ---- */

static void release_array(struct ArrowArray *array)
{
    array_parts *parts = array->private_data;
    assert_non_null(array->release);
    for (int64_t i = 0; i < PARTS_MAX && parts->child[i] != NULL; i++) {
        parts->child[i]->release(parts->child[i]);
        free(parts->child[i]);
    }
    for (int64_t i = 0; i < PARTS_MAX; i++) {
        free(parts->copy[i]);
    }
    if (array->dictionary != NULL) {
        array->dictionary->release(array->dictionary);
        free(array->dictionary);
    }
    free(parts);
    array->release = NULL;
    kit_live--;
}

void kit_array(struct ArrowArray *out, int64_t length, const char *valid)
{
    array_parts *parts = zeroed(sizeof *parts);
    *out = (struct ArrowArray){.length = length,
                               .null_count = valid != NULL ? -1 : 0,
                               .buffers = parts->buffer,
                               .children = parts->child,
                               .release = release_array,
                               .private_data = parts};
    kit_live++;
    kit_bits(out, valid);
}

struct ArrowArray *kit_child(struct ArrowArray *of, int64_t length, const char *valid)
{
    struct ArrowArray *child = zeroed(sizeof *child);
    assert_true(of->n_children < PARTS_MAX);
    kit_array(child, length, valid);
    of->children[of->n_children++] = child;
    return child;
}

struct ArrowArray *kit_dictionary(struct ArrowArray *of, int64_t length, const char *valid)
{
    of->dictionary = zeroed(sizeof *of->dictionary);
    kit_array(of->dictionary, length, valid);
    return of->dictionary;
}

void kit_buffer(struct ArrowArray *of, const void *data, size_t size)
{
    array_parts *parts = of->private_data;
    assert_true(of->n_buffers < PARTS_MAX);
    if (data != NULL) {
        char *copy = zeroed(size > 0 ? size : 1);
        memcpy(copy, data, size);
        parts->copy[of->n_buffers] = copy;
        parts->buffer[of->n_buffers] = size > 0 ? copy : copy + 1;
    }
    parts->size[of->n_buffers++] = size;
}

void kit_bits(struct ArrowArray *of, const char *bits)
{
    uint8_t packed[64] = {0};
    const size_t n = bits != NULL ? strlen(bits) : 0;
    assert_true(n <= sizeof packed * 8);
    for (size_t i = 0; i < n; i++) {
        packed[i / 8] |= (uint8_t)((bits[i] == '1') << i % 8);
    }
    kit_buffer(of, bits != NULL ? packed : NULL, (n + 7) / 8);
}

void kit_view_sizes(struct ArrowArray *of)
{
    const array_parts *parts = of->private_data;
    int64_t size[PARTS_MAX] = {0};
    for (int64_t i = 2; i < of->n_buffers; i++) {
        size[i - 2] = (int64_t)parts->size[i];
    }
    kit_buffer(of, size, (size_t)(of->n_buffers - 2) * sizeof *size);
}

struct ArrowArray *kit_column(struct ArrowSchema *schema, struct ArrowArray *batch,
                              const char *format, const char *valid, const void *data, size_t size)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    assert_true(schema->n_children < (int64_t)(sizeof names / sizeof *names));
    (void)kit_schema_child(schema, format, names[schema->n_children]);
    struct ArrowArray *column = kit_child(batch, batch->length + batch->offset, valid);
    kit_buffer(column, data, size);
    return column;
}

/* ---- streams ---- */

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    kit_stream *s = stream->private_data;
    *out = s->schema;
    s->schema.release = NULL;
    return out->release != NULL ? 0 : EINVAL;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    kit_stream *s = stream->private_data;
    if (s->at == s->n) {
        out->release = NULL;
        return s->fails;
    }
    *out = s->batch[s->at];
    s->batch[s->at++].release = NULL;
    return 0;
}

static const char *stream_error(struct ArrowArrayStream *stream)
{
    return ((const kit_stream *)stream->private_data)->error;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    kit_stream *s = stream->private_data;
    if (s->schema.release != NULL) {
        s->schema.release(&s->schema);
    }
    for (int i = 0; i < s->n; i++) {
        if (s->batch[i].release != NULL) {
            s->batch[i].release(&s->batch[i]);
        }
    }
    assert_non_null(stream->release);
    stream->release = NULL;
    kit_live--;
}

void kit_stream_open(struct ArrowArrayStream *out, kit_stream *of)
{
    *out = (struct ArrowArrayStream){.get_schema = stream_schema,
                                     .get_next = stream_next,
                                     .get_last_error = stream_error,
                                     .release = release_stream,
                                     .private_data = of};
    kit_live++;
}
