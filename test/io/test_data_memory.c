/* test_data_memory.c - the data tools when memory runs out: every allocation fails once, and each
 * time it is reported, nothing is left behind and the next try goes well. */
#include "base/core/alloc.h"
#include "base/file/file.h"
#include "datasets.h"
#include "io/inspect/inspect_stat.h"
#include "io/read/row_scan.h"
#include "io/rows/rows.h"
#include "io/synth/generate_file.h"
#include "support/test.h"

#include <math.h>

enum { TRIES_MAX = 5000 };

#define CONFIG                                                                                     \
    "{data: {format: csv, weight: w, record_id: id}, slots: [{name: a}, "                          \
    "{name: t, type: str, list: \"|\"}, {name: p, type: float, as: value}]}"

static const char rows[] = "id,label,w,a,t,p\nr1,1,2,7,x|y,0.5\nr2,0,1,,\"q,\",\n";

static int set_up(void **state)
{
    static datasets d;
    datasets_open(&d, 1);
    datasets_write(&d, "in", rows, sizeof rows - 1);
    *state = &d;
    return 0;
}

static int tear_down(void **state)
{
    tn_alloc_fail_at(0);
    datasets_close(*state);
    return 0;
}

FIXTURE(set_up, tear_down);

typedef tn_status attempt(datasets *d, const tn_dataset *from, const tn_dataset *to);

/* Fails allocation 1, 2, 3, .. of one attempt until it goes well. */
static void torture(datasets *d, attempt *try_it)
{
    tn_dataset *from = datasets_bind(d, CONFIG, TN_DATASET_AS_READ);
    tn_dataset *to = datasets_target(d, from, "{format: tfrecord}", 0);
    tn_status status = TN_E_MEMORY;
    uint32_t n = 0;
    while (status != TN_OK) {
        assert_true(++n < TRIES_MAX);
        tn_alloc_fail_at(n);
        status = try_it(d, from, to);
        tn_alloc_fail_at(0);
        if (status != TN_OK && status != TN_E_MEMORY) {
            fail_msg("allocation %u: %d %s", n, (int)status, d->err.text);
        }
    }
    assert_true(n > 5);
    tn_text names = {0};
    uint32_t left = 0;
    assert_int_equal(tn_dir_list(d->dir, &names, &left, NULL), TN_OK);
    assert_true(left <= 2); /* the input, and the output of the last one */
    tn_text_done(&names);
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

static tn_status generate(datasets *d, const tn_dataset *from, const tn_dataset *to)
{
    (void)from;
    (void)to;
    const tn_gen_opts o = {.rows = 20,
                           .seed = 1,
                           .slots = 2,
                           .ids = 5,
                           .values_max = 1,
                           .zipf = 1,
                           .rate = 0.5,
                           .spread = 1,
                           .dim = 1,
                           .multi = 0,
                           .numeric = 0};
    tn_dataset *set = datasets_bind(
        d, "{data: {format: libffm}, slots: [{name: s0, field: 0}, {name: s1, field: 1}]}", 0);
    tn_generator *g = NULL;
    tn_sink *sink = NULL;
    tn_gen_report report;
    TN_TRY(tn_generator_new(&g, &o, NULL, &d->err));
    tn_status status = tn_sink_open(&sink, "/dev/null", NULL, TN_COMPRESSION_NONE, &d->err);
    if (status == TN_OK) {
        status = tn_gen_write(g, set->schema, sink, NULL, &report, &d->err);
    }
    tn_sink_abandon(sink);
    tn_generator_free(g);
    return status;
}

TEST(converting_survives)
{
    torture(*state, convert);
}

TEST(sampling_survives)
{
    torture(*state, sample);
}

TEST(counting_survives)
{
    torture(*state, count);
}

TEST(generating_survives)
{
    torture(*state, generate);
}
