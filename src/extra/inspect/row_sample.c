/* row_sample.c - copies rows byte for byte.
 *
 * Row i draws a word of the stream (seed, 8, name64("sample")). By share, it is taken when the word
 * is small enough; by number, the rows with the n smallest words are, which are
 * chosen from up to 2n whenever there are so many.
 */
#include "extra/inspect/row_sample.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"
#include "io/format/format.h"
#include "io/read/dataset.h"
#include "io/read/fileset.h"
#include "io/read/row_scan.h"
#include "io/schema/schema.h"
#include "io/write/write_kind.h"
#include "io/write/write_sink.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GATHERED = 1 << 20 };

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
    picked *kept; /* n of room for max: those that may be taken by number */
    uint64_t n, max;
    uint64_t bound;  /* no larger word is taken */
    uint64_t passed; /* rows of these that were passed in a second reading */
    tn_text head;    /* head of the first file that has one */
} sampling;

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

static int by_row(const void *a, const void *b)
{
    const picked *x = a;
    const picked *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

static int by_word(const void *a, const void *b)
{
    const picked *x = a;
    const picked *y = b;
    return x->word != y->word ? (x->word > y->word) - (x->word < y->word) : by_row(a, b);
}

/* Drops all but the in->rows smallest words. */
static void drop_others(sampling *s)
{
    if (s->n <= s->in->rows) {
        return;
    }
    qsort(s->kept, s->n, sizeof *s->kept, by_word);
    for (; s->n > s->in->rows; s->n--) {
        tn_free(s->kept[s->n - 1].data);
    }
    s->bound = s->n > 0 ? s->kept[s->n - 1].word : 0;
}

static tn_status keep(sampling *s, uint64_t word, tn_bytes record, tn_error *err)
{
    if (s->n == s->max) {
        const uint64_t max = s->max == 0 ? 1024 : 2 * s->max;
        TN_TRY(TN_GROW(s->kept, s->n, max, "a sample", err));
        s->max = max;
    }
    picked item = {.word = word, .row = s->row, .size = record.size};
    TN_TRY(TN_ALLOC(item.data, item.size, "a sample", err));
    memcpy(item.data, record.data, item.size);
    s->kept[s->n++] = item;
    if (s->n / 2 >= s->in->rows) {
        drop_others(s);
    }
    return TN_OK;
}

/* Takes the header of the first file that has one. All others must have the same, or their rows
 * would not fit into one file. */
static tn_status take_head(sampling *s, const tn_fileset *files, uint32_t file, tn_error *err)
{
    tn_text head = {0};
    if (files->file[file].once) {
        return tn_fail(err, TN_E_DATA, "%s: the header of a stream cannot be copied",
                       files->file[file].path);
    }
    tn_status status = tn_fileset_header(files, file, s->in->from->schema, &head, err);
    if (status == TN_OK && head.size > 0) {
        tn_text_addc(&head, '\n');
    }
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
        return word <= s->bound ? keep(s, word, record, err) : TN_OK;
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

/* In a second reading: those kept are by row then. */
static tn_status see_rest(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    sampling *s = ctx;
    for (uint32_t r = 0; r < block->rows->n; r++, s->row++) {
        if (s->passed < s->n && s->kept[s->passed].row == s->row) {
            s->passed++;
        } else {
            TN_TRY(take(s, &s->rest, block->raw[r], err));
        }
    }
    return TN_OK;
}

static tn_status write_kept(sampling *s, tn_error *err)
{
    drop_others(s);
    if (s->n > 0) {
        qsort(s->kept, s->n, sizeof *s->kept, by_row);
    }
    for (uint64_t i = 0; i < s->n; i++) {
        TN_TRY(take(s, &s->sample, (tn_bytes){s->kept[i].data, s->kept[i].size, false}, err));
    }
    return store(s, &s->sample, err);
}

static void done(sampling *s)
{
    for (uint64_t i = 0; i < s->n; i++) {
        tn_free(s->kept[i].data);
    }
    tn_free(s->kept);
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
    TN_TRY(write_kept(s, err));
    if (s->rest.sink != NULL && isnan(s->in->share)) {
        tn_row_scan_counts again;
        visitor.block = see_rest;
        s->row = 0;
        TN_TRY(tn_row_scan_run(&pass, &visitor, &again, err));
    }
    return store(s, &s->rest, err);
}

tn_status tn_sample_rows(const tn_sample_in *in, uint64_t *taken, tn_row_scan_counts *out,
                         tn_error *err)
{
    *out = (tn_row_scan_counts){0};
    const tn_format *format = tn_format_find(in->from->data.format);
    if (format == NULL) {
        return tn_fail(err, TN_E_CONFIG, "unknown format '%s'", in->from->data.format);
    }
    sampling s = {.in = in,
                  .sample.sink = in->sample,
                  .rest.sink = in->rest,
                  .format = format,
                  .kind = tn_write_kind_find(format->name),
                  .bound = UINT64_MAX};
    s.stream = tn_stream2(in->seed, TN_RNG_GENERATE, tn_name64("sample"));
    tn_status status = take_sample(&s, out, err);
    if (status == TN_OK) {
        *taken = s.sample.n;
    }
    done(&s);
    return status;
}
