/* row_scan.c - looking at the rows of some files: at all of them, in rounds of blocks that are read
 * in order, parsed in parallel and handed on in order; or at some, to estimate how many there are.
 */
#include "io/read/row_scan.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/thread/team.h"
#include "io/read/block_reader.h"
#include "io/read/fileset.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "io/source/producer.h"

#include <math.h>
#include <string.h>

typedef struct piece {
    tn_block block;
    tn_parsed parsed;
    tn_bytes *raw; /* the record of each row */
    uint32_t raw_max;
    tn_status status; /* result of the visitor, or no memory for it */
    tn_error err;
} piece;

typedef struct pass {
    const tn_row_scan_in *in;
    const tn_row_scan_visitor *visitor;
    tn_row_scan_counts counts;
    tn_fileset *files;
    tn_block_reader *reader;
    uint32_t part;     /* the part of the reader; files->n_parts: all are read */
    uint32_t n_pieces; /* pieces of this round */
    piece piece[TN_ROW_SCAN_PIECES];
} pass;

enum { PARTS_MAX = 8 };

typedef struct probe {
    const tn_schema *schema;
    const tn_fileset *files;
    tn_block_reader *reader;
    tn_block block;
    tn_rows *rows;
    uint32_t blocks; /* parsed */
    double kept;     /* rows of them that training keeps, about where negatives are sampled */
    double taken;    /* their bytes on disk */
    double values;   /* values of their keys */
    double n, bytes; /* all their rows, and what these take in memory */
    double clicks;
    double squares; /* sum over blocks of clicks^2 / rows */
} probe;

/* Up to eight blocks. */
static void fetch_round(pass *p)
{
    p->n_pieces = 0;
    while (p->n_pieces < TN_ROW_SCAN_PIECES && p->part < p->files->n_parts) {
        tn_block *block = &p->piece[p->n_pieces++].block;
        tn_block_reader_next(p->reader, block);
        if (!block->last) {
            continue;
        }
        p->part++;
        if (p->part < p->files->n_parts) {
            tn_block_reader_go(p->reader, p->part);
        }
    }
}

/* Finds the record of each row. Both have the same order, but some records are no rows. */
static tn_status find_raw(piece *out)
{
    const tn_block *block = &out->block;
    const tn_rows *rows = out->parsed.rows;
    if (!tn_rows_grow(&out->raw, 0, rows->n, sizeof *out->raw, &out->raw_max)) {
        return tn_fail(&out->err, TN_E_MEMORY, "no memory for a block of records");
    }
    uint32_t i = 0;
    for (uint32_t r = 0; r < rows->n; r++, i++) {
        while (block->offset + block->record[i].at != rows->row[r].at) {
            i++;
            TN_ASSERT(i < block->n_records);
        }
        const tn_extent *record = &block->record[i];
        out->raw[r] = (tn_bytes){block->bytes.data + record->at, record->size, false};
    }
    return TN_OK;
}

static tn_row_scan_block block_of(const pass *p, uint32_t i)
{
    const piece *done = &p->piece[i];
    return (tn_row_scan_block){i, p->files->file[done->block.file].path, done->parsed.rows,
                               done->raw};
}

static void do_piece(void *job, uint32_t i)
{
    pass *p = job;
    piece *out = &p->piece[i];
    tn_block_parse(&out->block, p->in->schema, p->files, UINT32_MAX, &out->parsed);
    out->status = find_raw(out);
    if (out->status == TN_OK && p->visitor->piece != NULL) {
        tn_row_scan_block block = block_of(p, i);
        out->status = p->visitor->piece(p->visitor->ctx, &block, &out->err);
    }
}

static tn_status tell_faults(pass *p, const tn_parsed *parsed, tn_error *err)
{
    const char *text = tn_text_str(&parsed->messages);
    for (uint32_t i = 0; i < parsed->n_messages; i++) {
        p->counts.bad++;
        if (p->visitor->fault == NULL) {
            return tn_fail(err, TN_E_DATA, "%s", text);
        }
        TN_TRY(p->visitor->fault(p->visitor->ctx, text, err));
        text += strlen(text) + 1;
    }
    return tn_text_check(&parsed->messages, "messages of records at fault", err);
}

static tn_status hand_on(pass *p, uint32_t i, tn_error *err)
{
    piece *done = &p->piece[i];
    const tn_parsed *parsed = &done->parsed;
    p->counts.blank += parsed->blank;
    p->counts.bytes += parsed->bytes;
    p->counts.duplicate_key += parsed->rows->duplicate_key;
    p->counts.rows += parsed->rows->n;
    TN_TRY(tell_faults(p, parsed, err));
    if (done->status != TN_OK) {
        return tn_fail(err, done->status, "%s", done->err.text);
    }
    if (p->visitor->block != NULL) {
        tn_row_scan_block block = block_of(p, i);
        TN_TRY(p->visitor->block(p->visitor->ctx, &block, err));
    }
    return parsed->fault == TN_OK ? TN_OK : tn_fail(err, parsed->fault, "%s", parsed->err.text);
}

static tn_status run(pass *p, tn_error *err)
{
    TN_TRY(tn_fileset_new(&p->files, p->in->paths, p->in->schema, 1, err));
    TN_TRY(tn_block_reader_new(&p->reader, p->in->schema, p->files, NULL, err));
    for (uint32_t i = 0; i < TN_ROW_SCAN_PIECES; i++) {
        TN_TRY(tn_rows_new(&p->piece[i].parsed.rows, p->in->schema, p->in->keep, err));
    }
    p->counts.sources = p->files->n;
    if (p->files->n_parts > 0) {
        tn_block_reader_go(p->reader, 0);
    }
    while (p->part < p->files->n_parts) {
        fetch_round(p);
        tn_team_run(p->in->team, p->n_pieces, do_piece, p);
        for (uint32_t i = 0; i < p->n_pieces; i++) {
            TN_TRY(hand_on(p, i, err));
        }
    }
    return TN_OK;
}

tn_status tn_row_scan_run(const tn_row_scan_in *in, const tn_row_scan_visitor *visitor,
                          tn_row_scan_counts *out, tn_error *err)
{
    pass *p = tn_alloc(1, sizeof *p, "a pass over data");
    p->in = in;
    p->visitor = visitor;
    tn_status status = run(p, err);
    *out = p->counts;
    for (uint32_t i = 0; i < TN_ROW_SCAN_PIECES; i++) {
        tn_rows_free(p->piece[i].parsed.rows);
        tn_parsed_done(&p->piece[i].parsed);
        tn_block_done(&p->piece[i].block);
        tn_free(p->piece[i].raw);
    }
    tn_block_reader_free(p->reader);
    tn_fileset_free(p->files);
    tn_free(p);
    return status;
}

/* Parses a block. One at fault counts as far as it can be parsed; training reports the fault. */
static void parse_probe(probe *p)
{
    tn_parsed parsed = {.rows = p->rows};
    double clicks = 0;
    tn_block_parse(&p->block, p->schema, p->files, 0, &parsed);
    for (uint32_t i = 0; i < parsed.rows->n; i++) {
        const tn_parsed_row *row = &parsed.rows->row[i];
        const double share = row->label > 0.5F ? 1 : p->schema->data->negative_sampling;
        p->kept += row->weight == 0 ? 0 : share * (1 - p->schema->data->held_part);
        clicks += row->label > 0.5F;
    }
    const double n = parsed.rows->n;
    p->n += n;
    for (uint32_t i = 0; i < parsed.rows->n_entries; i++) {
        p->values += fmin(fabs((double)parsed.rows->entry[i].value), 1);
    }
    p->bytes +=
        n * sizeof *parsed.rows->row + (double)parsed.rows->n_entries * sizeof *parsed.rows->entry;
    p->clicks += clicks;
    p->squares += n > 0 ? clicks * clicks / n : 0;
    p->blocks++;
    p->taken += (double)parsed.taken;
    tn_parsed_done(&parsed);
}

/* At most `most` blocks of a part. False: there are more. */
static bool look(probe *p, uint32_t part, uint32_t most)
{
    tn_block_reader_go(p->reader, part);
    for (uint32_t i = 0; i < most; i++) {
        tn_block_reader_next(p->reader, &p->block);
        parse_probe(p);
        if (p->block.last) {
            return true;
        }
    }
    return false;
}

static bool count_all(probe *p, uint32_t most)
{
    bool whole = true;
    for (uint32_t i = 0; i < p->files->n_parts && whole; i++) {
        whole = p->blocks < most && look(p, i, most - p->blocks);
    }
    return whole;
}

static void sample_parts(probe *p, uint32_t most)
{
    const uint32_t n_parts = p->files->n_parts;
    const uint32_t n = n_parts < PARTS_MAX ? n_parts : PARTS_MAX;
    p->kept = p->taken = p->n = p->values = p->bytes = p->clicks = p->squares = 0;
    for (uint32_t i = 0; i < n; i++) { // cppcheck-suppress knownConditionTrueFalse
        const uint32_t part = (uint32_t)((uint64_t)n_parts * i / n);
        (void)look(p, part, most / n > 0 ? most / n : 1);
    }
}

/* Between blocks lies what clicks of each differ from those of its rows at the rate of all. */
static double order_of(const probe *p)
{
    const double within = p->clicks - p->clicks * p->clicks / fmax(1, p->n);
    return within > 0 ? (p->squares - p->clicks * p->clicks / p->n) / within : 0;
}

/* Counts the rows in memory. *known false: some data are files, or cannot be counted alone. */
static tn_status count_in_memory(const probe *p, double *rows, bool *known, tn_error *err)
{
    *known = true;
    *rows = 0;
    for (uint32_t i = 0; i < p->files->n && *known; i++) {
        const tn_file_entry *file = &p->files->file[i];
        const tn_producer *producer = file->in_memory ? tn_producer_of(file->path) : NULL;
        uint64_t n = 0;
        *known = producer != NULL && producer->count != NULL;
        if (*known) {
            TN_TRY(producer->count(producer->arg, &n, err));
        }
        *rows += (double)n;
    }
    return TN_OK;
}

static tn_status estimate(probe *p, uint32_t most, tn_row_sample *out, tn_error *err)
{
    double counted = 0;
    bool known = false;
    *out = (tn_row_sample){.rows = -1};
    TN_TRY(count_in_memory(p, &counted, &known, err));
    for (uint32_t i = 0; i < p->files->n; i++) {
        const tn_file_entry *file = &p->files->file[i];
        if (file->size == UINT64_MAX && !file->in_memory) {
            return TN_OK;
        }
        most = file->in_memory && !known ? UINT32_MAX : most; /* then all of them are looked at */
    }
    TN_TRY(tn_block_reader_new(&p->reader, p->schema, p->files, NULL, err));
    TN_TRY(tn_rows_new(&p->rows, p->schema, 0, err));
    const bool is_short = p->files->bytes <= (uint64_t)most * TN_BLOCK_BYTES;
    const bool whole = is_short && count_all(p, most);
    if (!whole) {
        sample_parts(p, most);
    }
    const double of_files = p->taken > 0 ? (double)p->files->bytes / p->taken : 0;
    const double of_memory = p->n > 0 ? counted / p->n : 0;
    const double times = whole ? 1 : known ? of_memory : of_files;
    *out = (tn_row_sample){.rows = p->kept * times,
                           .all = p->n * times,
                           .row_bytes = p->bytes / fmax(1, p->n),
                           .values = p->values / fmax(1, p->n),
                           .order = order_of(p)};
    return TN_OK;
}

tn_status tn_row_scan_estimate(const tn_strs *paths, const tn_schema *schema, uint32_t blocks_max,
                               double *out, tn_error *err)
{
    tn_row_sample sample = {.rows = -1};
    const tn_status status = tn_row_scan_sample(paths, schema, blocks_max, &sample, err);
    *out = sample.rows;
    return status;
}

tn_status tn_row_scan_sample(const tn_strs *paths, const tn_schema *schema, uint32_t blocks_max,
                             tn_row_sample *out, tn_error *err)
{
    tn_fileset *files = NULL;
    TN_TRY(tn_fileset_new(&files, paths, schema, 1, err));
    probe p = {.schema = schema, .files = files};
    tn_status status = estimate(&p, blocks_max, out, err);
    tn_rows_free(p.rows);
    tn_block_done(&p.block);
    tn_block_reader_free(p.reader);
    tn_fileset_free(files);
    return status;
}
