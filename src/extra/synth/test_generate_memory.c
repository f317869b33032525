/* test_generate_memory.c - every allocation of generating fails once, and no file is left. */
#include "extra/synth/generate_file.h"
#include "io/datasets.h"
#include "support/test.h"

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

TEST(generating_survives)
{
    datasets_torture(generate);
}
