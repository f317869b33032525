/* convert.c - converting and sampling records.
 *
 * Conversion writes rows in parallel, piece by piece, and stores them in order.
 *
 * Sampling copies rows byte for byte. Row i draws a word of the stream (seed, 8, name64("sample")).
 * By share, it is taken when the word is small enough; by number, the rows with the n smallest
 * words are: a heap keeps the n smallest seen so far, largest on top.
 */
#include "io/write/convert.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/math/rng.h"
#include "io/format/delimited.h"
#include "io/format/format.h"
#include "io/read/bad_record_limit.h"
#include "io/read/dataset.h"
#include "io/read/fileset.h"
#include "io/read/row_scan.h"
#include "io/source/source.h"
#include "io/write/write_kind.h"
#include "io/write/write_sink.h"
#include "io/write/writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FAULTS_LOGGED = 20 };

typedef struct converting {
    const tn_writer *writer;
    tn_sink *sink;
    tn_bad_record_limit allowed;
    uint64_t bad, rows;
    tn_text text[TN_ROW_SCAN_PIECES];
} converting;

enum { HEAD_STEP = 1 << 16, GATHERED = 1 << 20 };

typedef struct picked {
    uint64_t word;
    uint64_t row;
    char *data; /* owned */
    size_t size;
} picked;

/* Rows on their way to a file. */
typedef struct copy {
    tn_sink *sink; /* NULL: they are dropped */
    tn_text gathered;
    uint64_t n;
} copy;

typedef struct sampling {
    const tn_sample_in *in;
    copy sample, rest;
    const tn_format *format;
    const tn_write_kind *kind; /* NULL: lines that are not written otherwise */
    uint64_t stream;
    uint64_t row; /* number of the next one */
    picked *heap; /* n of at most in->rows */
    uint64_t n, max;
    uint64_t passed; /* rows of these that were passed in a second reading */
    tn_text head;    /* head of the first file that has one */
} sampling;

static tn_status take_fault(void *ctx, const char *text, tn_error *err)
{
    converting *c = ctx;
    c->bad++;
    if (!tn_bad_record_limit_allows(&c->allowed, c->rows + c->bad, c->bad)) {
        return tn_fail(err, TN_E_DATA, "%s", text);
    }
    if (c->bad <= FAULTS_LOGGED) {
        tn_log(TN_LOG_WARN, "%s", text);
    }
    return TN_OK;
}

static tn_status write_piece(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    converting *c = ctx;
    tn_text *text = &c->text[block->piece];
    tn_text_clear(text);
    for (uint32_t r = 0; r < block->rows->n; r++) {
        tn_status status = tn_writer_row(c->writer, block->rows, r, text, err);
        if (status != TN_OK) {
            tn_error_context(err, "%s: the record at byte %llu", block->source,
                             (unsigned long long)block->rows->row[r].at);
            return status;
        }
    }
    return tn_writer_pack(c->writer, text, err);
}

static tn_status store_piece(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    converting *c = ctx;
    const tn_text *text = &c->text[block->piece];
    c->rows += block->rows->n;
    return tn_sink_add(c->sink, tn_text_str(text), text->size, err);
}

/* Stores what is gathered. */
static tn_status store(const sampling *s, copy *to, tn_error *err)
{
    if (to->sink == NULL) {
        return TN_OK;
    }
    TN_TRY(tn_write_pack(s->kind, &to->gathered, err));
    TN_TRY(tn_sink_add(to->sink, tn_text_str(&to->gathered), to->gathered.size, err));
    tn_text_clear(&to->gathered);
    return TN_OK;
}

static void swap(picked *a, picked *b)
{
    picked t = *a;
    *a = *b;
    *b = t;
}

static void sink_down(picked *heap, uint64_t n)
{
    for (uint64_t i = 0;;) {
        uint64_t most = i;
        for (uint64_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++) {
            most = heap[child].word > heap[most].word ? child : most;
        }
        if (most == i) {
            return;
        }
        swap(&heap[i], &heap[most]);
        i = most;
    }
}

static tn_status grow_heap(sampling *s, tn_error *err)
{
    if (s->n < s->max) {
        return TN_OK;
    }
    uint64_t max = s->max == 0 ? 1024 : 2 * s->max;
    TN_TRY(TN_GROW(s->heap, s->n, max, "a sample", err));
    s->max = max;
    return TN_OK;
}

static void rise(picked *heap, uint64_t i)
{
    while (i > 0 && heap[i].word > heap[(i - 1) / 2].word) {
        swap(&heap[i], &heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
}

static tn_status keep(sampling *s, uint64_t word, tn_bytes record, tn_error *err)
{
    picked item = {.word = word, .row = s->row, .size = record.size};
    TN_TRY(TN_ALLOC(item.data, item.size, "a sample", err));
    memcpy(item.data, record.data, item.size);
    if (s->n == s->in->rows) {
        tn_free(s->heap[0].data);
        s->heap[0] = item;
        sink_down(s->heap, s->n);
        return TN_OK;
    }
    tn_status status = grow_heap(s, err);
    if (status != TN_OK) {
        tn_free(item.data);
        return status;
    }
    s->heap[s->n] = item;
    rise(s->heap, s->n++);
    return TN_OK;
}

static tn_status run(const tn_convert_in *in, converting *c, tn_row_scan_counts *out, tn_error *err)
{
    tn_text head = {0};
    tn_writer_head(c->writer, &head);
    tn_status status = tn_sink_add(c->sink, tn_text_str(&head), head.size, err);
    tn_text_done(&head);
    TN_TRY(status);
    const tn_row_scan_visitor visitor = {
        .ctx = c,
        .piece = write_piece,
        .block = store_piece,
        .fault = take_fault,
    };
    const tn_row_scan_in pass = {
        .schema = in->from->schema,
        .paths = in->paths,
        .keep = TN_ROWS_SIGNS | TN_ROWS_IDS,
        .team = in->team,
    };
    TN_TRY(tn_row_scan_run(&pass, &visitor, out, err));
    return tn_bad_record_limit_end(&c->allowed, c->rows + c->bad, c->bad, err);
}

tn_status tn_convert(const tn_convert_in *in, tn_sink *sink, tn_text *columns,
                     tn_row_scan_counts *out, tn_error *err)
{
    *out = (tn_row_scan_counts){0};
    tn_bad_record_limit allowed;
    TN_TRY(tn_bad_record_limit_read(in->from->data.bad_records_max, &allowed, err));
    tn_writer *writer = NULL;
    TN_TRY(tn_writer_new(&writer, in->to->data.format, in->to->schema, in->flags, err));
    if (columns != NULL) {
        tn_writer_columns(writer, columns);
    }
    converting c = {.writer = writer, .sink = sink, .allowed = allowed};
    tn_status status = run(in, &c, out, err);
    for (uint32_t i = 0; i < TN_ROW_SCAN_PIECES; i++) {
        tn_text_done(&c.text[i]);
    }
    tn_writer_free(writer);
    return status;
}

/* The first line that is neither blank nor a comment. TN_END: more bytes are needed. */
static tn_status find_header(const sampling *s, tn_bytes window, bool last, tn_bytes *out,
                             tn_error *err)
{
    if (window.size >= 3 && memcmp(window.data, "\xef\xbb\xbf", 3) == 0) {
        window.data += 3;
        window.size -= 3;
    }
    do {
        TN_TRY(s->format->cut(&window, last, s->in->from->schema, out, err));
    } while (tn_delimited_is_nothing(*out, s->in->from->schema));
    return TN_OK;
}

/* Reads a source's header, without the bytes before it; an empty source has none. */
static tn_status read_head(const sampling *s, tn_source *source, tn_text *out, tn_error *err)
{
    tn_bytes header = {0};
    tn_status status = TN_END;
    for (bool last = false; status == TN_END && !last;) {
        char *to = tn_text_grow(out, HEAD_STEP);
        size_t n = 0;
        TN_TRY(tn_text_check(out, "a header", err));
        TN_TRY(tn_source_read(source, to, HEAD_STEP, &n, err));
        out->size -= HEAD_STEP - n;
        last = n < HEAD_STEP;
        status = find_header(s, (tn_bytes){out->data, out->size, false}, last, &header, err);
    }
    out->size = header.size;
    if (status == TN_OK) {
        memmove(out->data, header.data, header.size);
        tn_text_addc(out, '\n');
    }
    return status == TN_END ? TN_OK : status;
}

/* Takes the header of the first file that has one. All others must have the same, or their rows
 * would not fit into one file. */
static tn_status take_head(sampling *s, const tn_fileset *files, uint32_t file, tn_error *err)
{
    tn_text head = {0};
    tn_source *source = NULL;
    if (files->file[file].once) {
        return tn_fail(err, TN_E_DATA, "%s: the header of a stream cannot be copied",
                       files->file[file].path);
    }
    TN_TRY(tn_fileset_open(files, file, 0, NULL, &source, err));
    tn_status status = read_head(s, source, &head, err);
    tn_source_close(source);
    if (status == TN_OK && s->head.size == 0) {
        tn_text_add(&s->head, tn_text_str(&head), head.size);
        status = tn_text_check(&s->head, "a header", err);
    }
    bool same = head.size == 0 || (head.size == s->head.size &&
                                   memcmp(head.data, tn_text_str(&s->head), head.size) == 0);
    tn_text_done(&head);
    if (status == TN_OK && !same) {
        status = tn_fail(err, TN_E_DATA, "%s: its header differs from that of the first file",
                         files->file[file].path);
    }
    return status;
}

static tn_status write_head(sampling *s, tn_error *err)
{
    if (!s->in->from->schema->header || s->format->head == NULL) {
        return TN_OK;
    }
    tn_fileset *files = NULL;
    TN_TRY(tn_fileset_new(&files, s->in->paths, s->in->from->schema, 1, err));
    tn_status status = TN_OK;
    for (uint32_t i = 0; status == TN_OK && i < files->n; i++) {
        status = take_head(s, files, i, err);
    }
    tn_fileset_free(files);
    TN_TRY(status);
    const char *head = tn_text_str(&s->head);
    TN_TRY(tn_sink_add(s->sample.sink, head, s->head.size, err));
    return s->rest.sink != NULL ? tn_sink_add(s->rest.sink, head, s->head.size, err) : TN_OK;
}

static tn_status take(const sampling *s, copy *to, tn_bytes record, tn_error *err)
{
    to->n++;
    if (to->sink == NULL) {
        return TN_OK;
    }
    tn_write_copy(s->kind, record, &to->gathered);
    return to->gathered.failed || to->gathered.size >= GATHERED ? store(s, to, err) : TN_OK;
}

static tn_status see_row(sampling *s, tn_bytes record, tn_error *err)
{
    uint64_t word = tn_draw(s->stream, s->row);
    if (isnan(s->in->share)) {
        bool small = s->n < s->in->rows || (s->n > 0 && word < s->heap[0].word);
        return small && s->in->rows > 0 ? keep(s, word, record, err) : TN_OK;
    }
    return take(s, tn_unit(word) < s->in->share ? &s->sample : &s->rest, record, err);
}

static tn_status see_block(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    sampling *s = ctx;
    for (uint32_t r = 0; r < block->rows->n; r++, s->row++) {
        TN_TRY(see_row(s, block->raw[r], err));
    }
    return TN_OK;
}

/* In a second reading: the heap is by row then. */
static tn_status see_rest(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    sampling *s = ctx;
    for (uint32_t r = 0; r < block->rows->n; r++, s->row++) {
        if (s->passed < s->n && s->heap[s->passed].row == s->row) {
            s->passed++;
        } else {
            TN_TRY(take(s, &s->rest, block->raw[r], err));
        }
    }
    return TN_OK;
}

static int by_row(const void *a, const void *b)
{
    const picked *x = a;
    const picked *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

static tn_status write_heap(sampling *s, tn_error *err)
{
    if (s->n > 0) {
        qsort(s->heap, s->n, sizeof *s->heap, by_row);
    }
    for (uint64_t i = 0; i < s->n; i++) {
        TN_TRY(take(s, &s->sample, (tn_bytes){s->heap[i].data, s->heap[i].size, false}, err));
    }
    return store(s, &s->sample, err);
}

static void done(sampling *s)
{
    for (uint64_t i = 0; i < s->n; i++) {
        tn_free(s->heap[i].data);
    }
    tn_free(s->heap);
    tn_text_done(&s->head);
    tn_text_done(&s->sample.gathered);
    tn_text_done(&s->rest.gathered);
}

static tn_status take_sample(sampling *s, tn_row_scan_counts *out, tn_error *err)
{
    tn_row_scan_visitor visitor = {.ctx = s, .block = see_block};
    const tn_row_scan_in pass = {
        .schema = s->in->from->schema, .paths = s->in->paths, .team = s->in->team};
    TN_TRY(write_head(s, err));
    TN_TRY(tn_row_scan_run(&pass, &visitor, out, err));
    TN_TRY(write_heap(s, err));
    if (s->rest.sink != NULL && isnan(s->in->share)) {
        tn_row_scan_counts again;
        visitor.block = see_rest;
        s->row = 0;
        TN_TRY(tn_row_scan_run(&pass, &visitor, &again, err));
    }
    return store(s, &s->rest, err);
}

tn_status tn_sample_rows(const tn_sample_in *in, const tn_sample_sinks *sinks, uint64_t *taken,
                         tn_row_scan_counts *out, tn_error *err)
{
    *out = (tn_row_scan_counts){0};
    const tn_format *format = tn_format_find(in->from->data.format);
    if (format == NULL) {
        return tn_fail(err, TN_E_CONFIG, "unknown format '%s'", in->from->data.format);
    }
    sampling s = {.in = in,
                  .sample.sink = sinks->sample,
                  .rest.sink = sinks->rest,
                  .format = format,
                  .kind = tn_write_kind_find(format->name)};
    s.stream = tn_stream2(in->seed, TN_RNG_GENERATE, tn_name64("sample"));
    tn_status status = take_sample(&s, out, err);
    if (status == TN_OK) {
        *taken = s.sample.n;
    }
    done(&s);
    return status;
}
