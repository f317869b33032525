/* test_reader.c - the stream of batches: the same whatever the threads, and from any point on. */

#include "base/keys/record.h"
#include "base/math/key.h"
#include "io/rows/rows.h"
#include "setup.h"
#include "support/mallocs.h"
#include "support/test.h"

#include <unistd.h>

CLOSER(tn_reader_close);

/* Rows whose only key tells their number, in several files; some weigh nothing. */
static void make_files(const setup *s, uint32_t n, const char *paths[3])
{
    uint32_t row = 0;
    for (uint32_t f = 0; f < 3; f++) {
        char name[16];
        tn_text text CLEANUP(tn_text_done) = {0};
        (void)snprintf(name, sizeof name, "rows%u", f);
        for (uint32_t end = n * (f + 1) / 3; row < end; row++) {
            tn_text_addf(&text, "%u:%g %u:%u\n", row % 3 == 0, row % 7 == 0 ? 0.0 : 1.0, row,
                         1 + row % 4);
        }
        paths[f] = setup_file(s, name, tn_text_str(&text), text.size);
    }
}

static void open_numbers(setup *s, uint32_t shuffle, uint32_t readers, uint32_t part_bytes)
{
    char text[256];
    (void)snprintf(text, sizeof text,
                   "{data: {format: libsvm, shuffle: %u, readers: %u, part_bytes: %uB, "
                   "negative_sampling: 0.6}}",
                   shuffle, readers, part_bytes);
    setup_open(s, text);
}

static void dump_from(const setup *s, const char *const *paths, tn_progress from, tn_text *out)
{
    const tn_reader_opts opts = {.paths = {3, paths},
                                 .batch_rows = 7,
                                 .training = true,
                                 .seed = 42,
                                 .from = from,
                                 .prefetch = 2};
    setup_dump(s, &opts, out);
}

TEST(the_stream_is_the_same_for_any_number_of_threads)
{
    tn_text one CLEANUP(tn_text_done) = {0};
    for (uint32_t threads = 1; threads <= 4; threads *= 2) {
        setup s CLEANUP(setup_close);
        const char *paths[3];
        tn_text many CLEANUP(tn_text_done) = {0};
        open_numbers(&s, 50, threads, 1000);
        make_files(&s, 3000, paths);
        dump_from(&s, paths, (tn_progress){.epoch = 0}, threads == 1 ? &one : &many);
        if (threads > 1) {
            assert_string_equal(one.data, many.data);
        }
    }
}

TEST(epochs_differ_in_order_and_seeds_repeat_it)
{
    setup s CLEANUP(setup_close);
    const char *paths[3];
    tn_text first CLEANUP(tn_text_done) = {0};
    tn_text again CLEANUP(tn_text_done) = {0};
    tn_text second CLEANUP(tn_text_done) = {0};
    open_numbers(&s, 64, 1, 1000);
    make_files(&s, 600, paths);
    dump_from(&s, paths, (tn_progress){.epoch = 0}, &first);
    dump_from(&s, paths, (tn_progress){.epoch = 0}, &again);
    dump_from(&s, paths, (tn_progress){.epoch = 1}, &second);
    assert_string_equal(first.data, again.data);
    assert_string_not_equal(first.data, second.data);
    assert_int_equal(first.size > 0, 1);
}

typedef struct cut {
    tn_progress progress;
    size_t at; /* bytes of the dump in front of it */
} cut;

/* All of the stream, with every place where it may be taken up again. */
static uint32_t dump_with_cuts(const setup *s, const tn_reader_opts *opts, tn_text *out, cut *cuts)
{
    tn_reader *reader FREED(tn_reader_close) = NULL;
    tn_batch *batch = NULL;
    uint32_t n = 0;
    assert_int_equal(tn_reader_open(&reader, s->schema, opts, NULL), TN_OK);
    while (tn_reader_next(reader, &batch, NULL) == TN_OK) {
        setup_dump_batch(batch, out);
        cuts[n++] = (cut){batch->progress, out->size};
        tn_reader_recycle(reader, batch);
    }
    return n;
}

static void check_cuts(uint32_t shuffle, uint32_t threads)
{
    enum { CUTS_MAX = 256 };
    static cut cuts[CUTS_MAX];
    static cut later[CUTS_MAX];
    setup s CLEANUP(setup_close);
    const char *paths[3];
    tn_text whole CLEANUP(tn_text_done) = {0};
    open_numbers(&s, shuffle, threads, 500);
    make_files(&s, 400, paths);
    tn_reader_opts opts = {
        .paths = {3, paths}, .batch_rows = 7, .training = true, .seed = 9, .prefetch = 2};
    uint32_t n = dump_with_cuts(&s, &opts, &whole, cuts);
    assert_true(n > 20 && n < CUTS_MAX);
    assert_in_range(cuts[n - 1].progress.records, 390, 400); /* the last may be left out */
    for (uint32_t i = 0; i < n; i++) {
        tn_text rest CLEANUP(tn_text_done) = {0};
        opts.from = cuts[i].progress;
        uint32_t m = dump_with_cuts(&s, &opts, &rest, later);
        assert_int_equal(m, n - 1 - i);
        assert_string_equal(tn_text_str(&rest), whole.data + cuts[i].at);
        for (uint32_t k = 0; k < m; k++) {
            assert_memory_equal(&later[k].progress, &cuts[i + 1 + k].progress, sizeof(tn_progress));
        }
    }
}

TEST(the_stream_goes_on_from_any_batch_as_if_it_had_never_stopped)
{
    for (uint32_t threads = 1; threads <= 4; threads *= 2) {
        check_cuts(0, threads);
        check_cuts(16, threads);
        check_cuts(1000, threads);
        check_cuts(300000, threads); /* over all parts */
    }
}

TEST(every_record_is_read_once_however_files_are_cut)
{
    for (uint32_t bytes = 1; bytes < 200; bytes += bytes < 20 ? 1 : 37) {
        setup s CLEANUP(setup_close);
        const char *paths[3];
        unsigned char seen[300] = {0};
        tn_reader *reader = NULL;
        tn_batch *batch = NULL;
        open_numbers(&s, 10, 2, bytes);
        make_files(&s, 300, paths);
        const tn_reader_opts opts = {.paths = {3, paths}, .batch_rows = 64, .prefetch = 1};
        assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
        while (tn_reader_next(reader, &batch, NULL) == TN_OK) {
            for (uint32_t i = 0; i < batch->rows; i++) {
                seen[tn_sign_of(batch->slot[0].key[i], s.schema->group[0].salt)]++;
            }
            tn_reader_recycle(reader, batch);
        }
        tn_reader_close(reader);
        for (uint32_t i = 0; i < 300; i++) {
            assert_int_equal(seen[i], 1);
        }
    }
}

TEST(a_tenth_of_the_negatives_is_kept_with_and_without_shuffle)
{
    for (uint32_t shuffle = 0; shuffle <= 1000; shuffle += 1000) {
        char config[128];
        tn_text text CLEANUP(tn_text_done) = {0};
        (void)snprintf(config, sizeof config,
                       "{data: {format: libsvm, shuffle: %u, negative_sampling: 0.1}}", shuffle);
        OPEN(setup, s, config);
        for (uint32_t i = 0; i < 20000; i++) {
            tn_text_addf(&text, "%u %u\n", i % 2, i);
        }
        const char *path = setup_file(&s, "rows", text.data, text.size);
        const tn_reader_opts opts = {
            .paths = {1, &path}, .batch_rows = 30000, .training = true, .seed = 5, .prefetch = 1};
        tn_reader *reader FREED(tn_reader_close) = NULL;
        tn_batch *batch = NULL;
        tn_prior prior;
        assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
        assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
        uint32_t negatives = 0;
        for (uint32_t i = 0; i < batch->rows; i++) {
            negatives += batch->label[i] < 0.5F;
        }
        assert_int_equal(batch->rows - negatives, 10000);
        assert_in_range(negatives, 850, 1150); /* 1000 +- 5 deviations */
        assert_int_equal(tn_reader_prior(reader, &prior, NULL), TN_OK);
        const double rate = prior.clicks / prior.weight;
        assert_true(rate > 0.88 && rate < 0.94);
    }
}

TEST(closing_early_never_hangs)
{
    for (uint32_t batches = 0; batches < 12; batches++) {
        setup s CLEANUP(setup_close);
        const char *paths[3];
        tn_reader *reader FREED(tn_reader_close) = NULL;
        tn_batch *batch = NULL;
        open_numbers(&s, batches % 2 * 100, 1 + batches % 4, 300);
        make_files(&s, 5000, paths);
        const tn_reader_opts opts = {.paths = {3, paths}, .batch_rows = 3, .prefetch = 2};
        assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
        for (uint32_t i = 0; i < batches; i++) {
            assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
        }
        if (batches % 3 == 0) {
            tn_status status;
            tn_reader_stop(reader);
            do {
                status = tn_reader_next(reader, &batch, NULL);
            } while (status == TN_OK);
            assert_int_equal(status, TN_E_STOPPED);
        }
    }
}

TEST(a_warm_reader_allocates_nothing)
{
    setup s CLEANUP(setup_close);
    const char *paths[3];
    tn_reader *reader FREED(tn_reader_close) = NULL;
    tn_batch *batch = NULL;
    open_numbers(&s, 256, 1, 1000000);
    make_files(&s, 300000, paths);
    const tn_reader_opts opts = {
        .paths = {3, paths}, .batch_rows = 64, .training = true, .prefetch = 2};
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    uint64_t before = 0;
    uint32_t n = 0;
    while (tn_reader_next(reader, &batch, NULL) == TN_OK) {
        before = n++ == 700 ? tn_mallocs() : before;
        tn_reader_recycle(reader, batch);
    }
    assert_true(n > 2000);
    /* Nothing per batch. What is left is opening files, and blocks of rows, whose number depends on
     * how far the parsers ever ran ahead but has a bound. */
    assert_in_range(tn_mallocs() - before, 0, (n - 700) / 10);
}

TEST(ids_and_places_come_along_when_wanted)
{
    tn_batch *batch = NULL;
    OPEN(setup, s, "{data: {format: csv, record_id: id, group: u}, slots: [{name: u}]}");
    tn_reader *reader FREED(tn_reader_close) = NULL;
    const char *path = setup_file(&s, "a.csv", "u,label,id\n5,1,r1\n,0,\n6,1,r3\n", 29);
    const tn_reader_opts opts = {
        .paths = {1, &path}, .batch_rows = 10, .want_ids = true, .prefetch = 1};
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
    assert_int_equal(batch->rows, 3);
    assert_memory_equal(batch->id_text, "r1r3", 4);
    assert_int_equal(batch->id_offset[1], 2);
    assert_int_equal(batch->id_offset[2], 2);
    assert_int_equal(batch->id_offset[3], 4);
    assert_int_equal(batch->source_at[0], 11);
    assert_int_equal(batch->source_at[2], 22);
    assert_int_equal(batch->group[0], 5);
    assert_true(batch->group[1] == TN_NO_GROUP);
    assert_int_equal(batch->source[0], 0);
}

TEST(a_window_is_permuted_by_the_stream_of_its_part)
{
    tn_batch *batch = NULL;
    OPEN(setup, s, "{data: {format: libsvm, shuffle: 8, part_bytes: 32B}}");
    tn_reader *reader FREED(tn_reader_close) = NULL;
    tn_text text CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < 32; i++) { /* four parts of eight rows */
        tn_text_addf(&text, "1 %u\n", i % 8);
    }
    const char *path = setup_file(&s, "rows", text.data, text.size);
    const tn_reader_opts opts = {
        .paths = {1, &path}, .batch_rows = 8, .training = true, .seed = 42, .prefetch = 1};
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    static const uint32_t expected[] = {1, 3, 7, 0, 2, 6, 4, 5}; /* stream (42, 4, 0, 3) */
    uint32_t met = 0;
    for (uint32_t place = 0; place < 4; place++) {
        assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
        if (tn_reader_part(reader, place).first == 96) {
            for (uint32_t i = 0; i < 8; i++) {
                uint64_t key = batch->slot[0].key[i];
                assert_int_equal(tn_sign_of(key, s.schema->group[0].salt), expected[i]);
            }
            met++;
        }
        tn_reader_recycle(reader, batch);
    }
    assert_int_equal(met, 1);
}

/* The labels of the first 16 rows of two files, of clicks and of others. */
static uint32_t clicks_of_first(uint32_t shuffle)
{
    tn_batch *batch = NULL;
    char config[100];
    (void)snprintf(config, sizeof config, "{data: {format: libsvm, shuffle: %u}}", shuffle);
    OPEN(setup, s, config);
    tn_reader *reader FREED(tn_reader_close) = NULL;
    tn_text clicks CLEANUP(tn_text_done) = {0};
    tn_text others CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < 64; i++) {
        tn_text_addf(&clicks, "1 %u\n", i);
        tn_text_addf(&others, "0 %u\n", i);
    }
    const char *paths[] = {setup_file(&s, "clicks", clicks.data, clicks.size),
                           setup_file(&s, "others", others.data, others.size)};
    const tn_reader_opts opts = {
        .paths = {2, paths}, .batch_rows = 16, .training = true, .seed = 42, .prefetch = 1};
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
    uint32_t n = 0;
    for (uint32_t i = 0; i < 16; i++) {
        n += batch->label[i] == 1;
    }
    tn_reader_recycle(reader, batch);
    return n;
}

TEST(a_window_of_more_than_262144_rows_reaches_over_files)
{
    const uint32_t part = clicks_of_first(262144);
    assert_true(part == 0 || part == 16);
    assert_in_range(clicks_of_first(262145), 3, 13);
}

enum { LINE = 1000, BLOCK = 256 << 10 };

/* Takes one batch of three windows of `window` lines, of `keys` keys each, and waits until the
 * reader has read `wanted` bytes, or ten seconds. How many it has read when it rests. */
static uint64_t read_ahead(uint32_t window, uint32_t keys, uint64_t wanted)
{
    char text[100];
    char line[LINE + 1];
    tn_text rows CLEANUP(tn_text_done) = {0};
    tn_batch *batch = NULL;
    (void)snprintf(text, sizeof text, "{data: {format: libsvm, shuffle: %u, readers: 1}}", window);
    OPEN(setup, s, text);
    tn_reader *reader FREED(tn_reader_close) = NULL;
    memset(line, ' ', LINE);
    line[0] = '1';
    for (uint32_t i = 0; i < keys; i++) {
        line[2 + (size_t)i * 2] = '7';
    }
    line[LINE - 1] = '\n';
    for (uint32_t i = 0; i < 3 * window; i++) {
        tn_text_add(&rows, line, LINE);
    }
    const char *path = setup_file(&s, "rows", rows.data, rows.size);
    const tn_reader_opts opts = {
        .paths = {1, &path}, .batch_rows = 8, .training = true, .prefetch = 1};
    const uint64_t before = setup_bytes_read();
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
    for (uint32_t i = 0; i < 6000 && setup_bytes_read() - before < wanted; i++) {
        (void)usleep(10000);
    }
    (void)usleep(100000);
    const uint64_t got = setup_bytes_read() - before;
    return got;
}

TEST(the_next_window_is_parsed_while_one_is_handed_out_within_limits)
{
    /* Both of them, and the blocks of one parser. */
    uint64_t got = read_ahead(4000, 1, UINT64_C(2) * 4000 * LINE);
    assert_in_range(got, UINT64_C(2) * 4000 * LINE,
                    UINT64_C(2) * 4000 * LINE + UINT64_C(7) * BLOCK);
    /* A window of 64 MB when it is parsed: 16 of them are enough, beside the blocks of the parser.
     */
    got = read_ahead(10000, 400, UINT64_C(12000) * LINE);
    assert_in_range(got, UINT64_C(12000) * LINE, UINT64_C(12700) * LINE + UINT64_C(7) * BLOCK);
}

TEST(running_out_of_memory_ends_the_stream_wherever_it_happens)
{
    setup s CLEANUP(setup_close);
    const char *paths[3];
    open_numbers(&s, 20, 2, 500);
    make_files(&s, 200, paths);
    const tn_reader_opts opts = {
        .paths = {3, paths}, .batch_rows = 16, .training = true, .want_ids = true, .prefetch = 1};
    tn_status status = TN_E_MEMORY;
    uint64_t nth = 0;
    while (status != TN_END) {
        tn_error err = {0};
        tn_alloc_fail_at(++nth);
        status = setup_drain(&s, &opts, &err);
        assert_true(status == TN_END || (status == TN_E_MEMORY && err.code == TN_E_MEMORY));
        assert_true(nth < 1000);
    }
    tn_alloc_fail_at(0);
    assert_true(nth > 20);
}

enum { ROWS = 20000, ROUNDS = 12 };

static void make_csv(tn_text *out)
{
    tn_text_adds(out, "label,a,b,c\n");
    for (uint32_t i = 0; i < ROWS; i++) {
        tn_text_addf(out, "%u,%u,%u,%u\n", i & 1U, i, i + 1, i + 2);
    }
}

/* Rows of an epoch, and the sum of what they hold, which no order changes. */
static uint64_t checksum(setup *s, const char *path, uint32_t epoch)
{
    tn_reader_opts opts = {.paths = {1, &path},
                           .batch_rows = 512,
                           .training = true,
                           .seed = 1,
                           .from = {.epoch = epoch},
                           .prefetch = 2};
    tn_reader *reader FREED(tn_reader_close) = NULL;
    assert_ok(tn_reader_open(&reader, s->schema, &opts, &s->err), s->err.text);
    assert_true(tn_reader_n_parts(reader) > 20);
    tn_batch *batch = NULL;
    tn_status status;
    uint64_t sum = 0;
    while ((status = tn_reader_next(reader, &batch, &s->err)) == TN_OK) {
        for (uint32_t k = 0; k < batch->n_slots; k++) {
            assert_int_equal(batch->slot[k].offset[batch->rows], batch->rows);
            for (uint32_t i = 0; i < batch->rows; i++) {
                sum += batch->slot[k].key[i];
            }
        }
        tn_reader_recycle(reader, batch);
    }
    fail_if(status != TN_END, "%s", s->err.text);
    return sum;
}

TEST(a_head_is_read_once_however_parts_are_visited)
{
    OPEN(setup, s,
         "{data: {format: csv, shuffle: 512, readers: 4, part_bytes: 16kB}, "
         "slots: [{name: a}, {name: b}, {name: c}]}");
    tn_text csv CLEANUP(tn_text_done) = {0};
    make_csv(&csv);
    const char *path = setup_file(&s, "rows.csv", csv.data, csv.size);
    uint64_t first = checksum(&s, path, 0);
    for (uint32_t epoch = 1; epoch < ROUNDS; epoch++) {
        assert_true(checksum(&s, path, epoch) == first);
    }
}
