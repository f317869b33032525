/* row_estimate.c - counting or sampling blocks of some files for the number of their rows. */
#include "io/read/row_estimate.h"

#include "io/read/blockparse.h"

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
} probe;

/* A block at fault counts as far as it can be parsed: who trains on it will hear of it. */
static void parse(probe *p)
{
    tn_parsed parsed = {.rows = p->rows};
    tn_block_parse(&p->block, p->schema, p->files, 0, &parsed);
    for (uint32_t i = 0; i < parsed.rows->n; i++) {
        const tn_parsed_row *row = &parsed.rows->row[i];
        const double share = row->label > 0.5F ? 1 : p->schema->data->negative_sampling;
        p->kept += row->weight == 0 ? 0 : share;
    }
    p->blocks++;
    p->taken += (double)p->block.taken;
    tn_parsed_done(&parsed);
}

/* At most `most` blocks of a part. False: there are more. */
static bool look(probe *p, uint32_t part, uint32_t most)
{
    tn_block_reader_go(p->reader, part);
    for (uint32_t i = 0; i < most; i++) {
        tn_block_reader_next(p->reader, &p->block);
        parse(p);
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

static double sample(probe *p, uint32_t most)
{
    const uint32_t n_parts = p->files->n_parts;
    const uint32_t n = n_parts < PARTS_MAX ? n_parts : PARTS_MAX;
    p->kept = p->taken = 0;
    for (uint32_t i = 0; i < n; i++) { // cppcheck-suppress knownConditionTrueFalse
        const uint32_t part = (uint32_t)((uint64_t)n_parts * i / n);
        (void)look(p, part, most / n > 0 ? most / n : 1);
    }
    return p->taken > 0 ? p->kept / p->taken * (double)p->files->bytes : 0;
}

static tn_status estimate(probe *p, uint32_t most, double *out, tn_error *err)
{
    *out = -1;
    for (uint32_t i = 0; i < p->files->n; i++) {
        if (p->files->file[i].size == UINT64_MAX) {
            return TN_OK;
        }
    }
    TN_TRY(tn_block_reader_new(&p->reader, p->schema, p->files, NULL, err));
    TN_TRY(tn_rows_new(&p->rows, p->schema, 0, err));
    const bool is_short = p->files->bytes <= (uint64_t)most * TN_BLOCK_BYTES;
    *out = is_short && count_all(p, most) ? p->kept : sample(p, most);
    return TN_OK;
}

tn_status tn_row_estimate(const tn_strs *paths, const tn_schema *schema, uint32_t blocks_max,
                          double *out, tn_error *err)
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
