/* test_known_mistakes.c - mistakes that other trainers made in reading data. */
#include "datasets.h"
#include "setup.h"
#include "support/mallocs.h"
#include "support/test.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- weights of rows that are dropped, bases that are guessed per block ---- */

typedef struct totals {
    double clicks, weight, prior;
    uint32_t rows;
} totals;

static totals read_all(datasets *d, const tn_dataset *set, const char *name)
{
    totals t = {0};
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    const char *path = datasets_path(d, name);
    const tn_reader_opts opts = {
        .paths = {1, &path}, .batch_rows = 3, .prefetch = 1, .training = true};
    assert_int_equal(tn_reader_open(&reader, set->schema, &opts, &d->err), TN_OK);
    tn_prior prior;
    assert_int_equal(tn_reader_prior(reader, &prior, &d->err), TN_OK);
    t.prior = prior.clicks / prior.weight;
    while (tn_reader_next(reader, &batch, &d->err) == TN_OK) {
        for (uint32_t i = 0; i < batch->rows; i++) {
            double weight = batch->weight != NULL ? (double)batch->weight[i] : 1;
            t.weight += weight;
            t.clicks += (double)batch->label[i] * weight;
        }
        t.rows += batch->rows;
        tn_reader_recycle(reader, batch);
    }
    tn_reader_close(reader);
    return t;
}

TEST(weights_count_like_repeated_rows_in_every_format)
{
    static const char weighted[] = "label,w,a\n1,3,5\n0,1,6\n0,0,7\n1,1,5\n0,2,8\n";
    static const char repeated[] = "label,w,a\n1,1,5\n1,1,5\n1,1,5\n0,1,6\n1,1,5\n0,1,8\n0,1,8\n";
    static const char *const formats[] = {
        "{format: csv}",    "{format: tsv}",    "{format: tsv, header: true}",
        "{format: libsvm}", "{format: libffm}", "{format: tfrecord}"};
    OPEN(datasets, d, 1);
    const tn_dataset *csv =
        datasets_bind(&d, "{data: {format: csv, weight: w}, slots: [{name: a}]}", 0);
    datasets_write(&d, "weighted", weighted, sizeof weighted - 1);
    datasets_write(&d, "repeated", repeated, sizeof repeated - 1);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        /* `columns` names what a tsv without a header has no names for */
        char yaml[100];
        bool bare = strcmp(formats[i], "{format: tsv}") == 0;
        (void)snprintf(yaml, sizeof yaml, "%s",
                       bare ? "{format: tsv, columns: [w, a, label]}" : formats[i]);
        tn_dataset *to = datasets_target(&d, csv, yaml, 0);
        assert_non_null(to);
        assert_int_equal(datasets_convert(&d, csv, "weighted", to, "w", 0), TN_OK);
        assert_int_equal(datasets_convert(&d, csv, "repeated", to, "r", 0), TN_OK);
        totals w = read_all(&d, to, "w");
        totals r = read_all(&d, to, "r");
        assert_int_equal(w.rows, 4);
        assert_int_equal(r.rows, 7);
        assert_true(w.weight == 7 && r.weight == 7);
        assert_true(w.clicks == 4 && r.clicks == 4);
        assert_true(w.prior == 4.0 / 7 && r.prior == w.prior);
    }
}

TEST(the_index_base_is_decided_once_and_not_per_block)
{
    tn_error err = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < 60000; i++) { /* several blocks; the 0 is in the last one */
        tn_text_addf(&text, "1 %u\n", 1 + i % 1000);
    }
    tn_text_adds(&text, "0 0\n");
    OPEN(setup, s, "{data: {format: libsvm}}");
    const char *path = setup_file(&s, "base", text.data, text.size);
    char config[400];
    (void)snprintf(config, sizeof config,
                   "{data: {format: libsvm, index_base: auto, train: '%s', part_bytes: 100kB}}",
                   path);
    OPEN(setup, t, config);
    assert_int_equal(t.schema->index_base, 1);
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 100, .prefetch = 1};
    assert_int_equal(setup_drain(&t, &opts, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "/base:60001:3: error: index 0 with index_base 1"));
}

/* ---- whole files that are hashed or scanned before the first row ---- */

TEST(the_first_row_of_a_terabyte_does_not_wait_for_the_rest)
{
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_text text CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < 30000; i++) {
        tn_text_addf(&text, "1 %u:%u\n", i % 5, i);
    }
    OPEN(setup, s, "{data: {format: libsvm}}");
    const char *path = setup_file(&s, "large", text.data, text.size);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0); /* what follows is a hole */
    char config[400];
    (void)snprintf(config, sizeof config,
                   "{data: {format: libffm, train: '%s', record_bytes_max: 1MiB, readers: 2}}",
                   path);
    uint64_t before = setup_bytes_read();
    OPEN(setup, t, config);
    assert_int_equal(t.schema->n_slots, 5);
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 10, .prefetch = 1};
    assert_int_equal(tn_reader_open(&reader, t.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_reader_n_parts(reader), (1 << 20) / 64);
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
    tn_reader_close(reader);
    /* the head twice, and what readers took until they were told to stop: little, but how little is
     * a matter of time */
    assert_true(setup_bytes_read() - before < UINT64_C(1) << 33);
}

/* ---- data sets as matrices in memory ---- */

/* A pass over `times` copies of some rows; allocations that it took. */
static uint64_t allocations_of(const setup *s, const char *path, uint32_t times)
{
    tn_text text = {0};
    for (uint32_t i = 0; i < 20000; i++) {
        tn_text_addf(&text, "%u %u:1 %u:2 %u:3\n", i % 2, i, 2 * i, 3 * i);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (uint32_t i = 0; i < times; i++) {
        assert_int_equal(write(fd, text.data, text.size), (ssize_t)text.size);
    }
    assert_int_equal(close(fd), 0);
    tn_text_done(&text);
    tn_error err = {0};
    const tn_reader_opts opts = {
        .paths = {1, &path}, .batch_rows = 512, .prefetch = 2, .training = true, .want_ids = true};
    uint64_t before = tn_mallocs();
    assert_int_equal(setup_drain(s, &opts, &err), TN_END);
    return tn_mallocs() - before;
}

TEST(memory_does_not_grow_with_the_rows)
{
    OPEN(setup, s, "{data: {format: libsvm, shuffle: 1000, readers: 2}}");
    PATH_IN(path, s.dir, "rows");
    uint64_t few = allocations_of(&s, path, 5);
    uint64_t many = allocations_of(&s, path, 50);
    /* threads differ in how many blocks are on their way at once; nothing comes on top per row */
    assert_in_range(many, 0, few + few / 2 + 100);
}

static void end_what_hangs(void)
{
    (void)alarm(500);
}

BEFORE(end_what_hangs);
