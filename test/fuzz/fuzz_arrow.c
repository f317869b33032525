/* fuzz_arrow.c - any bytes as a table of Arrow: schema, arrays and buffers, each of exactly the
 * size that lengths and offsets claim. They become cells that can be read, the same in pieces as at
 * once; or a sentence.
 */
#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "io/arrow/arrow_abi.h"
#include "io/arrow/arrow_cells.h"
#include "io/arrow/cells.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

enum { DEPTH_MAX = 4, CHILDREN_MAX = 6, BUFFERS_MAX = 8, LENGTH_MAX = 20, TEXTS_MAX = 1 << 12 };

/* The rest of the input, and all memory that was made of it. */
typedef struct maker {
    tn_bytes in;
    void *made[2048];
    uint32_t n;
    bool has_runs;
} maker;

static uint8_t take(maker *m)
{
    return tn_get_u8(&m->in);
}

static void *make(maker *m, size_t size)
{
    TN_ASSERT(m->n < sizeof m->made / sizeof *m->made);
    char *memory = calloc(1, size > 0 ? size : 1);
    TN_ASSERT(memory != NULL);
    m->made[m->n++] = memory;
    return size > 0 ? memory : memory + 1;
}

/* A buffer of the input's next bytes; zeros follow where there are fewer. */
static void *make_buffer(maker *m, size_t size)
{
    void *buffer = make(m, size);
    const size_t n = size < m->in.size ? size : m->in.size;
    if (n > 0) {
        memcpy(buffer, tn_get(&m->in, n), n);
    }
    return buffer;
}

/* ---- schemas ---- */

static const char *const formats[] = {
    "n",   "b",   "c",   "C",     "s",          "S",         "i",          "I",          "l",
    "L",   "e",   "f",   "g",     "z",          "Z",         "u",          "U",          "vz",
    "vu",  "w:3", "w:0", "d:9,2", "d:76,5,256", "d:9,-3,32", "d:18,0,64",  "tdD",        "tdm",
    "tts", "ttm", "ttu", "ttn",   "tss:",       "tsm:UTC",   "tsu:+05:30", "tsn:-08:00", "+l",
    "+L",  "+vl", "+vL", "+w:2",  "+w:0",       "+r",        "+r",         "+s",
};

enum { FORMATS = sizeof formats / sizeof *formats };

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static struct ArrowSchema *make_schema(maker *m, uint32_t depth);

static const char *make_format(maker *m)
{
    const uint8_t which = take(m);
    if (which < 240) {
        return formats[which % FORMATS];
    }
    char *own = make(m, 8);
    memcpy(own, make_buffer(m, which - 240U < 7 ? which - 240U : 7),
           which - 240U < 7 ? which - 240U : 7);
    return own;
}

static struct ArrowSchema *make_schema(maker *m, uint32_t depth)
{
    struct ArrowSchema *s = make(m, sizeof *s);
    s->format = make_format(m);
    s->name = "x";
    s->release = release_schema;
    s->children = make(m, CHILDREN_MAX * sizeof(void *));
    if (depth > 0 && s->format[0] == '+') {
        s->n_children = s->format[1] == 'r' ? 2 : 1;
        for (int64_t i = 0; i < s->n_children; i++) {
            s->children[i] = make_schema(m, depth - 1);
        }
    }
    if (depth > 0 && strchr("cCsSiIlL", s->format[0]) != NULL && take(m) % 4 == 0) {
        s->dictionary = make_schema(m, depth - 1);
    }
    m->has_runs = m->has_runs || strcmp(s->format, "+r") == 0;
    return s;
}

/* ---- arrays ---- */

static void release_array(struct ArrowArray *array)
{
    array->release = NULL;
}

/* d:precision,scale,bits */
static size_t width_of_decimal(const char *format)
{
    const char *scale = strchr(format, ',');
    const char *bits = scale != NULL ? strchr(scale + 1, ',') : NULL;
    const long n = bits != NULL ? strtol(bits + 1, NULL, 10) : 128;
    return n > 0 && n <= 256 ? (size_t)n / 8 : 0;
}

/* Bytes of a value of the second buffer; 0: none. */
static size_t width_of(const char *format)
{
    static const char *const wide[] = {"", "cC", "sSe", "", "iIfuz"};
    for (size_t width = 1; format[1] == '\0' && width < sizeof wide / sizeof *wide; width++) {
        if (format[0] != '\0' && strchr(wide[width], format[0]) != NULL) {
            return width;
        }
    }
    if (format[0] == 'w' && format[1] == ':') {
        const long width = strtol(format + 2, NULL, 10);
        return width > 0 ? (size_t)width : 0;
    }
    if (format[0] == 'v') {
        return 16;
    }
    if (format[0] == 'd') {
        return width_of_decimal(format);
    }
    static const char *const narrow[] = {"tdD", "tts", "ttm", "+l", "+vl"};
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++) {
        if (strcmp(format, narrow[i]) == 0) {
            return 4;
        }
    }
    return 8;
}

static bool has_offsets(const char *format)
{
    return strcmp(format, "+l") == 0 || strcmp(format, "+L") == 0 ||
           (format[0] != '\0' && strchr("uUzZ", format[0]) != NULL && format[1] == '\0');
}

/* The bytes that the last offset claims; a buffer that is not there where that cannot be. */
static void *make_texts(maker *m, const char *offsets, size_t width, int64_t n)
{
    const int64_t last =
        width == 4 ? (int32_t)tn_load_u32(offsets + 4 * n) : (int64_t)tn_load_u64(offsets + 8 * n);
    return last >= 0 && last <= TEXTS_MAX ? make_buffer(m, (size_t)last) : NULL;
}

static void make_views(maker *m, struct ArrowArray *a)
{
    int64_t *sizes = make(m, 2 * sizeof *sizes);
    for (int i = 0; i < 2; i++) {
        sizes[i] = take(m);
        a->buffers[2 + i] = make_buffer(m, (size_t)sizes[i]);
    }
    a->buffers[4] = sizes;
    a->n_buffers = 5;
}

/* Buffers of `n` values. */
static void make_buffers(maker *m, struct ArrowArray *a, const char *format, int64_t n)
{
    const size_t width = width_of(format);
    const uint8_t choice = take(m);
    a->buffers[0] = choice % 4 == 0 ? NULL : make_buffer(m, ((size_t)n + 7) / 8);
    a->null_count = choice % 4 - 1;
    const size_t values = (size_t)n + has_offsets(format);
    a->buffers[1] =
        format[0] == 'b' ? make_buffer(m, ((size_t)n + 7) / 8) : make_buffer(m, values * width);
    a->n_buffers = 2;
    if (format[0] == 'v') {
        make_views(m, a);
    } else if (strncmp(format, "+v", 2) == 0) {
        a->buffers[a->n_buffers++] = make_buffer(m, values * width);
    } else if (has_offsets(format) && format[0] != '+') {
        a->buffers[a->n_buffers++] = make_texts(m, a->buffers[1], width, n);
    }
    if (choice == 255) {
        a->n_buffers = take(m) % 3;
    } else if (choice >= 252) {
        a->buffers[choice - 252] = NULL;
    }
}

static struct ArrowArray *make_array(maker *m, const struct ArrowSchema *s, int64_t least)
{
    static const int64_t strange[] = {-1, INT64_MIN, INT64_MAX, INT64_C(1) << 60};
    struct ArrowArray *a = make(m, sizeof *a);
    const uint8_t choice = take(m);
    a->release = release_array;
    a->buffers = make(m, BUFFERS_MAX * sizeof(void *));
    a->children = make(m, CHILDREN_MAX * sizeof(void *));
    a->length = choice >= 250 ? take(m) % LENGTH_MAX : least + choice % 3;
    a->offset = take(m) % 10;
    const int64_t n = a->length + a->offset;
    make_buffers(m, a, s->format, n);
    for (; a->n_children < s->n_children; a->n_children++) {
        const int64_t of = strncmp(s->format, "+w:", 3) == 0 ? 2 * n : take(m) % LENGTH_MAX;
        a->children[a->n_children] = make_array(m, s->children[a->n_children], of);
    }
    if (s->dictionary != NULL) {
        a->dictionary = make_array(m, s->dictionary, take(m) % LENGTH_MAX);
    }
    if (choice == 249) {
        a->length = strange[take(m) % 4];
    } else if (choice == 248) {
        a->offset = strange[take(m) % 4];
    }
    return a;
}

/* ---- cells ---- */

/* Takes cells apart to the last byte. */
static void look_at(tn_bytes in, uint64_t first, uint64_t rows)
{
    for (uint64_t row = 0; row < rows; row++) {
        const uint32_t size = tn_get_u32(&in);
        tn_bytes cells = {tn_get(&in, size), size, false};
        TN_ASSERT(!in.failed && tn_get_u64(&cells) == first + row);
        while (cells.size > 0) {
            tn_arrow_cell cell = tn_arrow_cell_take(&cells);
            while (cell.kind == TN_CELL_LIST && cell.bytes.size > 0) {
                TN_ASSERT(tn_arrow_cell_take(&cell.bytes).kind != TN_CELL_LIST);
                TN_ASSERT(!cell.bytes.failed);
            }
            TN_ASSERT(!cells.failed);
        }
    }
    TN_ASSERT(in.size == 0);
}

static void convert(const maker *m, tn_arrow_cells *cells, const struct ArrowArray *batch)
{
    tn_error err = {0};
    tn_text whole = {0};
    tn_text pieces = {0};
    const uint64_t n = batch->length > 0 && batch->length < 1000 ? (uint64_t)batch->length : 0;
    const uint64_t middle = n / 2;
    const tn_status status =
        tn_arrow_cells_rows(cells, batch, (tn_arrow_rows){0, n, 7}, &whole, &err);
    TN_ASSERT(status == TN_OK || (err.text[0] != '\0' && whole.size == 0));
    if (status == TN_OK) {
        look_at((tn_bytes){whole.data, whole.size, false}, 7, n);
    }
    tn_status other =
        tn_arrow_cells_rows(cells, batch, (tn_arrow_rows){0, middle, 7}, &pieces, &err);
    if (other == TN_OK) {
        other = tn_arrow_cells_rows(cells, batch, (tn_arrow_rows){middle, n, 7 + middle}, &pieces,
                                    &err);
    }
    if (!m->has_runs) { /* ends of runs that go back may be found in several places */
        TN_ASSERT(status == other);
        TN_ASSERT(status != TN_OK ||
                  (whole.size == pieces.size &&
                   (whole.size == 0 || memcmp(whole.data, pieces.data, whole.size) == 0)));
    }
    tn_text_done(&whole);
    tn_text_done(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    static maker m;
    tn_error err = {0};
    tn_arrow_cells *cells = NULL;
    tn_text head = {0};
    if (size > 1 << 12) {
        return 0;
    }
    m = (maker){.in = {(const char *)data, size, false}};
    struct ArrowSchema schema = {.format = "+s", .n_children = 1 + take(&m) % 4};
    schema.release = release_schema;
    schema.children = make(&m, CHILDREN_MAX * sizeof(void *));
    struct ArrowArray batch = {.release = release_array, .n_buffers = 1};
    batch.length = take(&m) % LENGTH_MAX;
    batch.offset = take(&m) % 4;
    batch.null_count = take(&m) % 4 == 0;
    batch.buffers = make(&m, sizeof(void *));
    batch.buffers[0] = make_buffer(&m, (size_t)(batch.length + batch.offset + 7) / 8);
    batch.children = make(&m, CHILDREN_MAX * sizeof(void *));
    for (; batch.n_children < schema.n_children; batch.n_children++) {
        const int64_t i = batch.n_children;
        schema.children[i] = make_schema(&m, DEPTH_MAX);
        batch.children[i] = make_array(&m, schema.children[i], batch.length + batch.offset);
    }
    if (tn_arrow_cells_new(&cells, &schema, "fuzz", &err) == TN_OK &&
        tn_arrow_cells_head(cells, &head, &err) == TN_OK) {
        convert(&m, cells, &batch);
    } else {
        TN_ASSERT(err.text[0] != '\0');
    }
    tn_arrow_cells_free(cells);
    tn_text_done(&head);
    for (uint32_t i = 0; i < m.n; i++) {
        free(m.made[i]);
    }
    return 0;
}
