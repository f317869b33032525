/* arrow_stream.c - bytes of cells from Arrow's streams, piece by piece.
 *
 * A pass converts some rows of the batch at hand, hands their bytes over, and goes on; a batch is
 * released as soon as its last row is converted. Callbacks of a stream are the program's code: each
 * is called on one thread at a time.
 */
#include "io/arrow/arrow_stream.h"

#include "base/core/alloc.h"
#include "base/core/stop.h"
#include "base/core/text.h"
#include "base/file/file.h"
#include "io/arrow/arrow_abi.h"
#include "io/arrow/arrow_cells.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 256 << 10, ROWS_AT_ONCE = 256, WHY_BYTES = 512 };

struct tn_arrow_source {
    tn_arrow_source_opts opts;
    char *path; /* memory:NAME, owned; opts.name is its tail */
    pthread_mutex_t lock;
    /* With the lock: a stream that can be read once, and what became of it. */
    bool is_read;
    tn_error fault; /* the failure of reading it */
    tn_file *file;
    tn_map map;
    bool is_counted;
    uint64_t rows; /* rows of every pass */
};

/* One pass: over a stream, or over the file that a stream was written to. */
typedef struct pass {
    const tn_arrow_source *source;
    struct ArrowArrayStream stream;
    struct ArrowArray batch; /* release NULL: there is none */
    tn_arrow_cells *cells;
    uint64_t row;     /* the next one of the batch */
    uint64_t number;  /* the same, counted through the stream */
    size_t row_bytes; /* mean size of the rows that were converted last */
    tn_text text;     /* the piece at hand */
    const char *data; /* it, or the whole file */
    size_t size;
    size_t at;
    bool has_ended;
} pass;

/* ---- streams ---- */

/* Makes one line of a text of the program, which need not end with a NUL before `size`. */
static void clean_reason(char *out, size_t size, const char *text)
{
    (void)snprintf(out, size, "%s", text != NULL ? text : "");
    tn_make_printable(out, "");
}

static tn_status fail_stream(pass *p, int code, const char *what, tn_error *err)
{
    char why[WHY_BYTES];
    const char *text =
        p->stream.get_last_error != NULL ? p->stream.get_last_error(&p->stream) : NULL;
    clean_reason(why, sizeof why, text);
    const char *name = strerrordesc_np(code);
    return tn_fail(err, TN_E_DATA, "%s: error: %s: %s", p->source->path, what,
                   why[0] != '\0' ? why
                   : name != NULL ? name
                                  : "the program gives no reason");
}

static void release_batch(pass *p)
{
    if (p->batch.release != NULL) {
        p->batch.release(&p->batch);
    }
    p->batch.release = NULL;
}

static void release_stream(pass *p)
{
    release_batch(p);
    if (p->stream.release != NULL) {
        p->stream.release(&p->stream);
    }
    p->stream.release = NULL;
}

/* Reads the schema of a fresh stream; the first piece is the head. */
static tn_status read_schema(pass *p, tn_error *err)
{
    struct ArrowSchema schema = {.release = NULL};
    const int code = p->stream.get_schema(&p->stream, &schema);
    if (code != 0) {
        return fail_stream(p, code, "the stream gives no schema", err);
    }
    tn_status status = tn_arrow_cells_new(&p->cells, &schema, p->source->path, err);
    if (schema.release != NULL) {
        schema.release(&schema);
    }
    status = status == TN_OK ? tn_arrow_cells_head(p->cells, &p->text, err) : status;
    p->data = p->text.data;
    p->size = p->text.size;
    return status;
}

static tn_status open_stream(pass *p, tn_error *err)
{
    const tn_arrow_source_opts *opts = &p->source->opts;
    char why[WHY_BYTES] = "";
    if (opts->open(opts->arg, &p->stream, why) != 0) {
        char reason[WHY_BYTES];
        why[sizeof why - 1] = '\0';
        clean_reason(reason, sizeof reason, why);
        p->stream.release = NULL;
        return tn_fail(err, TN_E_DATA, "%s: error: there is no stream of data: %s", p->source->path,
                       reason[0] != '\0' ? reason : "the program gives no reason");
    }
    if (p->stream.release == NULL || p->stream.get_schema == NULL || p->stream.get_next == NULL) {
        return tn_fail(err, TN_E_DATA,
                       "%s: error: the program gave a stream that was released, or used up",
                       p->source->path);
    }
    return read_schema(p, err);
}

/* Pulls the next batch; TN_END: there is none. */
static tn_status pull_batch(pass *p, tn_error *err)
{
    p->row = 0;
    if (tn_stop_is(NULL)) {
        return tn_fail(err, TN_E_STOPPED, "stopped while reading '%s'", p->source->path);
    }
    const int code = p->stream.get_next(&p->stream, &p->batch);
    if (code != 0) {
        p->batch.release = NULL;
        return fail_stream(p, code, "the stream failed", err);
    }
    p->has_ended = p->batch.release == NULL;
    if (p->has_ended) {
        return TN_END;
    }
    return p->batch.length >= 0 ? TN_OK
                                : tn_fail(err, TN_E_DATA, "%s: error: a batch has %lld rows",
                                          p->source->path, (long long)p->batch.length);
}

/* Converts some rows of the batch at hand, as many as are likely to fit into the piece. */
static tn_status convert_rows(pass *p, tn_error *err)
{
    const size_t before = p->text.size;
    const uint64_t left = (uint64_t)p->batch.length - p->row;
    uint64_t n = p->row_bytes > 0 ? (PIECE_BYTES - before) / p->row_bytes + 1 : 1;
    n = n < ROWS_AT_ONCE ? n : ROWS_AT_ONCE;
    n = n < left ? n : left;
    const tn_arrow_rows rows = {p->row, p->row + n, p->number};
    TN_TRY(tn_arrow_cells_rows(p->cells, &p->batch, rows, &p->text, err));
    p->row += n;
    p->number += n;
    if (n > 0) {
        p->row_bytes = (p->text.size - before) / n;
    }
    if (p->row == (uint64_t)p->batch.length) {
        release_batch(p);
    }
    return TN_OK;
}

/* Makes the next piece; none are left where it stays empty. */
static tn_status make_piece(pass *p, tn_error *err)
{
    tn_status status = TN_OK;
    tn_text_clear(&p->text);
    while (status == TN_OK && p->text.size < PIECE_BYTES && !p->has_ended) {
        if (p->batch.release == NULL) {
            status = pull_batch(p, err);
        }
        if (status == TN_OK) {
            status = convert_rows(p, err);
        }
    }
    p->data = p->text.data;
    p->size = p->text.size;
    p->at = 0;
    return status == TN_END ? TN_OK : status;
}

/* ---- passes ---- */

static void close_pass(void *arg)
{
    pass *p = arg;
    release_stream(p);
    tn_arrow_cells_free(p->cells);
    tn_text_done(&p->text);
    tn_free(p);
}

static tn_status read_pass(void *arg, void *data, size_t size, size_t *n, tn_error *err)
{
    pass *p = arg;
    if (p->at == p->size && !p->has_ended) {
        TN_TRY(make_piece(p, err));
    }
    const size_t left = p->size - p->at;
    *n = left < size ? left : size;
    if (*n > 0) {
        memcpy(data, p->data + p->at, *n);
    }
    p->at += *n;
    return TN_OK;
}

/* Writes all of a stream that can be read once to a file without a name. */
static tn_status write_all(tn_arrow_source *s, pass *p, tn_error *err)
{
    char beside[TN_PATH_SIZE];
    const char *dir = getenv("TMPDIR"); // NOLINT(concurrency-mt-unsafe)
    TN_TRY(tn_path_join(dir != NULL && dir[0] != '\0' ? dir : "/tmp", "tnet-rows", beside, err));
    TN_TRY(tn_file_create_nameless(&s->file, beside, err));
    while (p->size > 0) {
        TN_TRY(tn_file_write(s->file, p->data, p->size, err));
        TN_TRY(make_piece(p, err));
    }
    s->rows = p->number;
    s->is_counted = true;
    return tn_file_map(&s->map, s->file, err);
}

/* Makes the pass read the file, which the first of all passes writes. */
static tn_status read_once(tn_arrow_source *s, pass *p, tn_error *err)
{
    if (!s->is_read) {
        s->is_read = true;
        tn_status status = open_stream(p, &s->fault);
        status = status == TN_OK ? write_all(s, p, &s->fault) : status;
        release_stream(p);
        s->fault.code = status;
    }
    if (s->fault.code != TN_OK) {
        return tn_fail(err, s->fault.code, "%s", s->fault.text);
    }
    p->has_ended = true;
    p->data = s->map.data;
    p->size = s->map.size;
    p->at = 0;
    return TN_OK;
}

/* Adds up the lengths of the batches, whose rows are not looked at. */
static tn_status count_stream(tn_arrow_source *s, pass *p, tn_error *err)
{
    uint64_t rows = 0;
    TN_TRY(open_stream(p, err));
    tn_status status = TN_OK;
    while ((status = pull_batch(p, err)) == TN_OK) {
        rows += (uint64_t)p->batch.length;
        release_batch(p);
    }
    s->is_counted = status == TN_END;
    s->rows = rows;
    return status == TN_END ? TN_OK : status;
}

static tn_status count_rows(void *arg, uint64_t *rows, tn_error *err)
{
    tn_arrow_source *s = arg;
    pass *p = NULL;
    tn_status status = TN_OK;
    TN_TRY(TN_ALLOC(p, 1, "a pass over a program's data", err));
    p->source = s;
    pthread_mutex_lock(&s->lock);
    if (!s->is_counted) {
        status = s->opts.once ? read_once(s, p, err) : count_stream(s, p, err);
    }
    *rows = s->rows;
    pthread_mutex_unlock(&s->lock);
    close_pass(p);
    return status;
}

static tn_status open_pass(void *arg, void **out, tn_error *err)
{
    tn_arrow_source *s = arg;
    pass *p = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(p, 1, "a pass over a program's data", err));
    p->source = s;
    pthread_mutex_lock(&s->lock);
    const tn_status status = s->opts.once ? read_once(s, p, err) : open_stream(p, err);
    pthread_mutex_unlock(&s->lock);
    if (status != TN_OK) {
        close_pass(p);
        return status;
    }
    *out = p;
    return TN_OK;
}

/* ---- the source ---- */

tn_status tn_arrow_source_new(tn_arrow_source **out, const tn_arrow_source_opts *opts,
                              tn_error *err)
{
    tn_arrow_source *s = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a source of a program's data", err));
    const size_t size = sizeof TN_PRODUCER_PREFIX + strlen(opts->name);
    s->opts = *opts;
    s->path = tn_try_alloc(size, 1, "the name of a source", err);
    if (s->path == NULL) {
        tn_free(s);
        return TN_E_MEMORY;
    }
    (void)snprintf(s->path, size, TN_PRODUCER_PREFIX "%s", opts->name);
    s->opts.name = s->path + sizeof TN_PRODUCER_PREFIX - 1;
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return TN_OK;
}

void tn_arrow_source_free(tn_arrow_source *source)
{
    if (source != NULL) {
        tn_unmap(&source->map);
        tn_file_abandon(source->file);
        pthread_mutex_destroy(&source->lock);
        tn_free(source->path);
        tn_free(source);
    }
}

tn_producer tn_arrow_source_producer(tn_arrow_source *source)
{
    return (tn_producer){.name = source->opts.name,
                         .arg = source,
                         .open = open_pass,
                         .read = read_pass,
                         .close = close_pass,
                         .count = count_rows};
}
