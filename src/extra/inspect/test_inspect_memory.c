/* test_inspect_memory.c - samples and counts when memory runs out: every allocation fails once,
 * and each time it is reported, nothing is left over and the next try goes well. */
#include "extra/inspect/inspect_stat.h"
#include "extra/inspect/row_sample.h"
#include "io/datasets.h"
#include "io/read/row_scan.h"
#include "io/rows/rows.h"
#include "io/write/write_sink.h"
#include "support/test.h"

static tn_status sample(datasets *d, const tn_dataset *from, const tn_dataset *to)
{
    (void)to;
    const char *path = datasets_path(d, "in");
    const tn_strs paths = {1, &path};
    tn_sample_in job = {.from = from, .paths = &paths, .rows = 1, .share = (double)NAN, .seed = 1};
    uint64_t taken = 0;
    tn_row_scan_counts counts;
    TN_TRY(tn_sink_open(&job.sample, "/dev/null", NULL, TN_COMPRESSION_NONE, &d->err));
    tn_status status = tn_sample_rows(&job, &taken, &counts, &d->err);
    tn_sink_abandon(job.sample);
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

TEST(sampling_survives)
{
    datasets_torture(sample);
}

TEST(counting_survives)
{
    datasets_torture(count);
}
