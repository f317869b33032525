/* test_data_memory.c - the data tools when memory runs out: every allocation fails once, and each
 * time it is reported, nothing is left behind and the next try goes well. */
#include "datasets.h"
#include "io/inspect/inspect_stat.h"
#include "io/read/row_scan.h"
#include "io/rows/rows.h"
#include "io/write/write_sink.h"
#include "support/test.h"

static const char rows[] = "id,label,w,a,t,p\nr1,1,2,7,x|y,0.5\nr2,0,1,,\"q,\",\n";

SET_UP
{
    static datasets d;
    datasets_open(&d, 1);
    datasets_write(&d, "in", rows, sizeof rows - 1);
    *state = &d;
}

TEAR_DOWN
{
    datasets_close(*state);
}

static tn_status convert(datasets *d, const tn_dataset *from, const tn_dataset *to)
{
    const char *path = datasets_path(d, "in");
    const tn_strs paths = {1, &path};
    const tn_convert_in job = {from, to, &paths, 0, NULL};
    tn_sink *sink = NULL;
    tn_row_scan_counts counts;
    TN_TRY(tn_sink_open(&sink, datasets_path(d, "out"), NULL, TN_COMPRESSION_GZIP, &d->err));
    tn_status status = tn_convert(&job, sink, NULL, &counts, &d->err);
    if (status != TN_OK) {
        tn_sink_abandon(sink);
        return status;
    }
    return tn_sink_commit(sink, &d->err);
}

static tn_status sample(datasets *d, const tn_dataset *from, const tn_dataset *to)
{
    (void)to;
    const char *path = datasets_path(d, "in");
    const tn_strs paths = {1, &path};
    const tn_sample_in job = {from, &paths, 1, (double)NAN, 1, NULL};
    uint64_t taken = 0;
    tn_sink *sink = NULL;
    tn_row_scan_counts counts;
    TN_TRY(tn_sink_open(&sink, "/dev/null", NULL, TN_COMPRESSION_NONE, &d->err));
    tn_status status =
        tn_sample_rows(&job, &(tn_sample_sinks){sink, NULL}, &taken, &counts, &d->err);
    tn_sink_abandon(sink);
    return status;
}

static tn_status add_block(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    return tn_stat_add(ctx, block->rows, NULL, err);
}

static tn_status count(datasets *d, const tn_dataset *from, const tn_dataset *to)
{
    (void)to;
    const char *path = datasets_path(d, "in");
    const tn_strs paths = {1, &path};
    tn_stat *stat = NULL;
    TN_TRY(tn_stat_new(&stat, from->schema, &d->err));
    const tn_row_scan_in in = {.schema = from->schema, .paths = &paths, .keep = TN_ROWS_SIGNS};
    const tn_row_scan_visitor visitor = {.ctx = stat, .block = add_block};
    tn_row_scan_counts counts;
    tn_status status = tn_row_scan_run(&in, &visitor, &counts, &d->err);
    tn_stat_free(stat);
    return status;
}

TEST(converting_survives)
{
    datasets_torture(*state, convert);
}

TEST(sampling_survives)
{
    datasets_torture(*state, sample);
}

TEST(counting_survives)
{
    datasets_torture(*state, count);
}
