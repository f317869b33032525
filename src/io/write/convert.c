/* convert.c - writes rows in parallel, piece by piece, and stores them in order. */
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
