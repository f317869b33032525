/* generate_file.c - rows of a world into a file: rounds of blocks, made in parallel and written in
 * order, so that neither threads nor their number show. */
#include "io/synth/generate_file.h"

#include "base/core/alloc.h"
#include "io/synth/generate_block.h"
#include "io/synth/generate_params.h"
#include "io/write/writer.h"

enum { BLOCKS_IN_ROUND = 16 };

/* One block of the round under way. */
typedef struct piece {
    tn_gen_block block;
    tn_text text;
    tn_status status;
    tn_error err;
} piece;

typedef struct work {
    const tn_generator *g;
    const tn_writer *writer;
    tn_gen_params *params;
    tn_oracle_row *judged;
    uint64_t n_judged;
    uint64_t done; /* rows of earlier rounds */
    uint64_t rows;
    uint32_t rows_in_block;
    piece piece[BLOCKS_IN_ROUND];
} work;

/* Rows of the i-th block of this round: none behind the last row. */
static uint32_t block_rows(const work *w, uint32_t i, uint64_t *first)
{
    *first = w->done + (uint64_t)i * w->rows_in_block;
    if (*first >= w->rows) {
        return 0;
    }
    uint64_t left = w->rows - *first;
    return left < w->rows_in_block ? (uint32_t)left : w->rows_in_block;
}

static tn_status make_rows(work *w, piece *p, uint64_t first, uint32_t n)
{
    const tn_gen_opts *o = tn_generator_opts(w->g);
    for (uint32_t i = 0; i < n; i++) {
        TN_TRY(tn_gen_block_fill(&p->block, w->g, o->first_row + first + i, 1, &p->err));
        TN_TRY(tn_writer_row(w->writer, &p->block.rows, 0, &p->text, &p->err));
        if (first + i < w->n_judged) {
            w->judged[first + i] = (tn_oracle_row){p->block.row.logit, p->block.row.click};
        }
        tn_gen_params_see(w->params, &p->block.row);
    }
    return tn_text_check(&p->text, "generated rows", &p->err);
}

static void make_block(void *job, uint32_t i)
{
    work *w = job;
    piece *p = &w->piece[i];
    uint64_t first = 0;
    uint32_t n = block_rows(w, i, &first);
    tn_text_clear(&p->text);
    p->status = make_rows(w, p, first, n);
}

/* Rows are about as long as those of the first round; a little less is asked for, so that nothing
 * is refused that would have had room. */
static tn_status check_room(const work *w, const tn_sink *sink, tn_error *err)
{
    uint64_t made = (uint64_t)BLOCKS_IN_ROUND * w->rows_in_block;
    double bytes = 0;
    for (uint32_t i = 0; i < BLOCKS_IN_ROUND; i++) {
        bytes += (double)w->piece[i].text.size;
    }
    double rounds = made < w->rows ? (double)w->rows / (double)made : 1;
    return tn_sink_expect(sink, (uint64_t)(0.95 * bytes * rounds), err);
}

static tn_status run_rounds(work *w, tn_sink *sink, tn_team *team, uint64_t *bytes, tn_error *err)
{
    for (w->done = 0; w->done < w->rows;) {
        tn_team_run(team, BLOCKS_IN_ROUND, make_block, w);
        if (w->done == 0) {
            TN_TRY(check_room(w, sink, err));
        }
        for (uint32_t i = 0; i < BLOCKS_IN_ROUND; i++) {
            piece *p = &w->piece[i];
            if (p->status != TN_OK) {
                return tn_fail(err, p->status, "%s", p->err.text);
            }
            TN_TRY(tn_sink_add(sink, p->text.data, p->text.size, err));
            *bytes += p->text.size;
        }
        w->done += (uint64_t)BLOCKS_IN_ROUND * w->rows_in_block;
    }
    return TN_OK;
}

static void free_work(work *w)
{
    for (uint32_t i = 0; i < BLOCKS_IN_ROUND; i++) {
        tn_gen_block_done(&w->piece[i].block);
        tn_text_done(&w->piece[i].text);
    }
    tn_gen_params_free(w->params);
    tn_free(w->judged);
    tn_free(w);
}

static tn_status new_work(work **out, const tn_generator *g, const tn_writer *writer, tn_error *err)
{
    *out = NULL;
    work *w = tn_alloc(1, sizeof *w, "a generator's threads");
    w->g = g;
    w->writer = writer;
    w->rows = tn_generator_opts(g)->rows;
    w->rows_in_block = tn_gen_block_rows(g);
    w->n_judged = w->rows < TN_GEN_ORACLE_ROWS ? w->rows : TN_GEN_ORACLE_ROWS;
    tn_status status = TN_OK;
    if (w->n_judged > 0) {
        w->judged = tn_try_alloc(w->n_judged, sizeof *w->judged, "rows to judge", err);
        status = w->judged == NULL ? TN_E_MEMORY : TN_OK;
    }
    if (status == TN_OK) {
        status = tn_gen_params_new(&w->params, g, err);
    }
    for (uint32_t i = 0; status == TN_OK && i < BLOCKS_IN_ROUND; i++) {
        status = tn_gen_block_init(&w->piece[i].block, g, tn_writer_schema(writer), 1, err);
    }
    if (status != TN_OK) {
        free_work(w);
        return status;
    }
    *out = w;
    return TN_OK;
}

tn_status tn_gen_write(const tn_generator *g, const tn_schema *schema, tn_sink *sink, tn_team *team,
                       tn_gen_report *out, tn_error *err)
{
    work *w = NULL;
    tn_writer *writer = NULL;
    tn_text head = {0};
    tn_gen_report report = {.rows = tn_generator_opts(g)->rows};
    tn_status status = tn_writer_new(&writer, schema->data->format, schema, 0, err);
    if (status != TN_OK) {
        goto done;
    }
    status = new_work(&w, g, writer, err);
    if (status != TN_OK) {
        goto done;
    }
    tn_writer_head(writer, &head);
    report.bytes = head.size;
    status = tn_sink_add(sink, tn_text_str(&head), head.size, err);
    if (status == TN_OK) {
        status = run_rounds(w, sink, team, &report.bytes, err);
    }
    if (status == TN_OK) {
        report.oracle = tn_oracle_judge(w->judged, w->n_judged);
        report.parameters = tn_gen_params_count(w->params, &report.free_parameters);
        *out = report;
    }
    free_work(w);
done:
    tn_text_done(&head);
    tn_writer_free(writer);
    return status;
}
