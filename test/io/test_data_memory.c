/* test_data_memory.c - converting when memory runs out: every allocation fails once, and each
 * time it is reported, nothing is left behind and the next try goes well. */
#include "datasets.h"
#include "io/read/row_scan.h"
#include "io/rows/rows.h"
#include "io/write/write_sink.h"
#include "support/test.h"

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

TEST(converting_survives)
{
    datasets_torture(convert);
}
