/* test_reader.c - the stream of batches: the same whatever the threads, and from any point on. */
#include "io/reader.h"

#include "base/key.h"
#include "base/rng.h"
#include "setup.h"
#include "support/mallocs.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FFM_SLOTS                                                                                  \
    "slots: [{name: user, field: 0}, {name: item, field: 1}, {name: hist, field: 2, share: item}," \
    " {name: tags, field: 3}, {name: city, field: 4}, {name: rare, field: 5},"                     \
    " {name: price, field: 6, as: value, transform: log}]"
#define NAMED_SLOTS                                                                                \
    "slots: [{name: user}, {name: item}, {name: hist, share: item},"                               \
    " {name: tags, values: tags_x}, {name: city}, {name: rare},"                                   \
    " {name: price, type: float, as: value, transform: log}]"

static const char golden_ffm[] = "{data: {format: libffm, shuffle: 0}, " FFM_SLOTS "}";
static const char golden_tsv[] =
    "{data: {format: tsv, header: true, weight: weight, list: ',', shuffle: 0}, " NAMED_SLOTS "}";
static const char golden_tfrecord[] =
    "{data: {format: tfrecord, weight: weight, shuffle: 0}, " NAMED_SLOTS "}";

static void dump_golden(const char *config, const char *path, tn_text *out)
{
    setup s;
    setup_open(&s, config);
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 32, .prefetch = 2};
    setup_dump(&s, &opts, out);
    setup_close(&s);
}

static void golden_rows_are_the_same_in_three_formats(void **state)
{
    (void)state;
    tn_text ffm = {0};
    tn_text tsv = {0};
    tn_text tfrecord = {0};
    dump_golden(golden_ffm, "test/golden/data/rows.ffm", &ffm);
    dump_golden(golden_tsv, "test/golden/data/rows.tsv", &tsv);
    dump_golden(golden_tfrecord, "test/golden/data/rows.tfrecord", &tfrecord);
    assert_string_equal(ffm.data, tsv.data);
    assert_string_equal(ffm.data, tfrecord.data);
    tn_text_done(&ffm);
    tn_text_done(&tsv);
    tn_text_done(&tfrecord);
}

/* Occurrences per key in rows of weight > 0, against data/keys.tsv. */
typedef struct counted {
    uint64_t key[256];
    uint32_t group[256];
    uint32_t shows[256];
    uint32_t n;
} counted;

static void count_key(counted *c, uint64_t key, uint32_t group)
{
    uint32_t i = 0;
    while (i < c->n && c->key[i] != key) {
        i++;
    }
    if (i == c->n) {
        assert_true(c->n < 256);
        c->key[c->n] = key;
        c->group[c->n++] = group;
    }
    c->shows[i]++;
}

static void count_batch(counted *c, const tn_schema *schema, const tn_batch *b)
{
    for (uint32_t s = 0; s < b->n_slots; s++) {
        for (uint32_t i = 0; i < b->slot[s].offset[b->rows]; i++) {
            count_key(c, b->slot[s].key[i], schema->slot[s]->group);
        }
    }
}

static void check_line(const counted *c, const tn_schema *schema, const char *line)
{
    char group[32];
    uint64_t sign;
    uint64_t key;
    uint32_t partition;
    uint32_t shows;
    assert_int_equal(sscanf(line, "%31s %" SCNu64 " %" SCNx64 " %" SCNu32 " %" SCNu32, group, &sign,
                            &key, &partition, &shows),
                     5);
    uint32_t i = 0;
    while (i < c->n && c->key[i] != key) {
        i++;
    }
    assert_true(i < c->n);
    const tn_group *g = &schema->group[c->group[i]];
    assert_string_equal(g->name, group);
    assert_true(tn_sign_of(key, g->salt) == sign);
    assert_int_equal(key >> 54, partition);
    assert_int_equal(c->shows[i], shows);
}

static void golden_keys_are_exact(void **state)
{
    (void)state;
    setup s;
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    counted c = {.n = 0};
    const char *path = "test/golden/data/rows.tsv";
    setup_open(&s, "{data: {format: tsv, header: true, weight: weight, list: ',', shuffle: 0}, "
                   "slots: [{name: user}, {name: item}, {name: hist, share: item}, {name: tags, "
                   "values: tags_x}, {name: city}, {name: rare}, {name: price, type: float, as: "
                   "weighted, transform: log}]}");
    const tn_reader_opts opts = {
        .paths = {1, &path}, .batch_rows = 32, .training = true, .prefetch = 1};
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    uint32_t rows = 0;
    while (tn_reader_next(reader, &batch, NULL) == TN_OK) {
        count_batch(&c, s.schema, batch);
        rows += batch->rows;
        tn_reader_recycle(reader, batch);
    }
    tn_read_counts counts;
    tn_reader_counts(reader, &counts);
    assert_int_equal(rows, 251);
    assert_int_equal(counts.records, 256);
    assert_int_equal(counts.zero_weight, 5);
    tn_reader_close(reader);
    FILE *f = fopen("test/golden/data/keys.tsv", "r");
    assert_non_null(f);
    char line[256];
    uint32_t lines = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        if (line[0] != '#') {
            check_line(&c, s.schema, line);
            lines++;
        }
    }
    (void)fclose(f);
    assert_int_equal(lines, c.n);
    setup_close(&s);
}

static void golden_tfrecord_counts_the_name_that_stands_twice(void **state)
{
    (void)state;
    setup s;
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_read_counts counts;
    const char *path = "test/golden/data/rows.tfrecord";
    setup_open(&s, golden_tfrecord);
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 300, .prefetch = 1};
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
    assert_int_equal(batch->rows, 256);
    tn_reader_counts(reader, &counts);
    assert_int_equal(counts.duplicate_key, 1);
    assert_int_equal(counts.bad, 0);
    tn_reader_close(reader);
    setup_close(&s);
}

/* Rows whose only key tells their number, in several files; some weigh nothing. */
static void make_files(const setup *s, uint32_t n, const char *paths[3])
{
    uint32_t row = 0;
    for (uint32_t f = 0; f < 3; f++) {
        char name[16];
        tn_text text = {0};
        (void)snprintf(name, sizeof name, "rows%u", f);
        for (uint32_t end = n * (f + 1) / 3; row < end; row++) {
            tn_text_addf(&text, "%u:%g %u:%u\n", row % 3 == 0, row % 7 == 0 ? 0.0 : 1.0, row,
                         1 + row % 4);
        }
        paths[f] = setup_file(s, name, tn_text_str(&text), text.size);
        tn_text_done(&text);
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

static void the_stream_is_the_same_for_any_number_of_threads(void **state)
{
    (void)state;
    tn_text one = {0};
    for (uint32_t threads = 1; threads <= 4; threads *= 2) {
        setup s;
        const char *paths[3];
        tn_text many = {0};
        open_numbers(&s, 50, threads, 1000);
        make_files(&s, 3000, paths);
        dump_from(&s, paths, (tn_progress){.epoch = 0}, threads == 1 ? &one : &many);
        if (threads > 1) {
            assert_string_equal(one.data, many.data);
        }
        tn_text_done(&many);
        setup_close(&s);
    }
    tn_text_done(&one);
}

static void d5_epochs_differ_in_order_and_seeds_repeat_it(void **state)
{
    (void)state;
    setup s;
    const char *paths[3];
    tn_text first = {0};
    tn_text again = {0};
    tn_text second = {0};
    open_numbers(&s, 64, 1, 1000);
    make_files(&s, 600, paths);
    dump_from(&s, paths, (tn_progress){.epoch = 0}, &first);
    dump_from(&s, paths, (tn_progress){.epoch = 0}, &again);
    dump_from(&s, paths, (tn_progress){.epoch = 1}, &second);
    assert_string_equal(first.data, again.data);
    assert_string_not_equal(first.data, second.data);
    assert_int_equal(first.size > 0, 1);
    tn_text_done(&first);
    tn_text_done(&again);
    tn_text_done(&second);
    setup_close(&s);
}

typedef struct cut {
    tn_progress progress;
    size_t at; /* bytes of the dump in front of it */
} cut;

/* All of the stream, with every place where it may be taken up again. */
static uint32_t dump_with_cuts(const setup *s, const tn_reader_opts *opts, tn_text *out, cut *cuts)
{
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    uint32_t n = 0;
    assert_int_equal(tn_reader_open(&reader, s->schema, opts, NULL), TN_OK);
    while (tn_reader_next(reader, &batch, NULL) == TN_OK) {
        setup_dump_batch(batch, out);
        cuts[n++] = (cut){batch->progress, out->size};
        tn_reader_recycle(reader, batch);
    }
    tn_reader_close(reader);
    return n;
}

static void check_cuts(uint32_t shuffle, uint32_t threads)
{
    enum { CUTS_MAX = 256 };
    static cut cuts[CUTS_MAX];
    static cut later[CUTS_MAX];
    setup s;
    const char *paths[3];
    tn_text whole = {0};
    open_numbers(&s, shuffle, threads, 500);
    make_files(&s, 400, paths);
    tn_reader_opts opts = {
        .paths = {3, paths}, .batch_rows = 7, .training = true, .seed = 9, .prefetch = 2};
    uint32_t n = dump_with_cuts(&s, &opts, &whole, cuts);
    assert_true(n > 20 && n < CUTS_MAX);
    assert_in_range(cuts[n - 1].progress.records, 390, 400); /* the last may be left out */
    for (uint32_t i = 0; i < n; i++) {
        tn_text rest = {0};
        opts.from = cuts[i].progress;
        uint32_t m = dump_with_cuts(&s, &opts, &rest, later);
        assert_int_equal(m, n - 1 - i);
        assert_string_equal(tn_text_str(&rest), whole.data + cuts[i].at);
        for (uint32_t k = 0; k < m; k++) {
            assert_memory_equal(&later[k].progress, &cuts[i + 1 + k].progress, sizeof(tn_progress));
        }
        tn_text_done(&rest);
    }
    tn_text_done(&whole);
    setup_close(&s);
}

static void i2_the_stream_goes_on_from_any_batch_as_if_it_had_never_stopped(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads *= 2) {
        check_cuts(0, threads);
        check_cuts(16, threads);
        check_cuts(1000, threads);
    }
}

static void every_record_is_read_once_however_files_are_cut(void **state)
{
    (void)state;
    for (uint32_t bytes = 1; bytes < 200; bytes += bytes < 20 ? 1 : 37) {
        setup s;
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
        setup_close(&s);
    }
}

static void d1_a_tenth_of_the_negatives_is_kept_with_and_without_shuffle(void **state)
{
    (void)state;
    for (uint32_t shuffle = 0; shuffle <= 1000; shuffle += 1000) {
        setup s;
        char config[128];
        tn_text text = {0};
        (void)snprintf(config, sizeof config,
                       "{data: {format: libsvm, shuffle: %u, negative_sampling: 0.1}}", shuffle);
        setup_open(&s, config);
        for (uint32_t i = 0; i < 20000; i++) {
            tn_text_addf(&text, "%u %u\n", i % 2, i);
        }
        const char *path = setup_file(&s, "rows", text.data, text.size);
        const tn_reader_opts opts = {
            .paths = {1, &path}, .batch_rows = 30000, .training = true, .seed = 5, .prefetch = 1};
        tn_reader *reader = NULL;
        tn_batch *batch = NULL;
        double prior = 0;
        assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
        assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
        uint32_t negatives = 0;
        for (uint32_t i = 0; i < batch->rows; i++) {
            negatives += batch->label[i] < 0.5F;
        }
        assert_int_equal(batch->rows - negatives, 10000);
        assert_in_range(negatives, 850, 1150); /* 1000 +- 5 deviations */
        assert_int_equal(tn_reader_prior(reader, &prior, NULL), TN_OK);
        assert_true(prior > 0.88 && prior < 0.94);
        tn_reader_close(reader);
        tn_text_done(&text);
        setup_close(&s);
    }
}

static void closing_early_never_hangs(void **state)
{
    (void)state;
    for (uint32_t batches = 0; batches < 12; batches++) {
        setup s;
        const char *paths[3];
        tn_reader *reader = NULL;
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
        tn_reader_close(reader);
        setup_close(&s);
    }
}

static void a_warm_reader_allocates_nothing(void **state)
{
    (void)state;
    setup s;
    const char *paths[3];
    tn_reader *reader = NULL;
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
    /* What is left is opening files: a part or a file needs a source. */
    assert_in_range(tn_mallocs() - before, 0, 40);
    tn_reader_close(reader);
    setup_close(&s);
}

static void bad_records_end_the_stream_or_are_counted(void **state)
{
    (void)state;
    static const char rows[] = "1 1\n0 x\n1 2\n\n7 3\n0 4:y\n1 5\n";
    const char *allowed[] = {"0", "2", "3", "100%"};
    for (uint32_t i = 0; i < 4; i++) {
        setup s;
        char config[128];
        tn_reader *reader = NULL;
        tn_batch *batch = NULL;
        tn_error err = {0};
        (void)snprintf(config, sizeof config, "{data: {format: libsvm, bad_records_max: '%s'}}",
                       allowed[i]);
        setup_open(&s, config);
        const char *path = setup_file(&s, "rows", rows, sizeof rows - 1);
        const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 10, .prefetch = 1};
        assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
        tn_status status = tn_reader_next(reader, &batch, &err);
        assert_int_equal(status, i < 2 ? TN_E_DATA : TN_OK);
        assert_true(i != 0 || strstr(err.text, "rows:2:3: error: expected an index, found 'x'"));
        assert_true(i != 1 || strstr(err.text, "rows:6:5: error: expected a number, found \"y\""));
        if (status == TN_OK) {
            tn_read_counts counts;
            tn_text reasons = {0};
            assert_int_equal(batch->rows, 3);
            assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_END);
            tn_reader_counts(reader, &counts);
            assert_int_equal(counts.bad, 3);
            assert_int_equal(counts.records, 6);
            assert_int_equal(counts.blank, 1);
            assert_int_equal(batch->progress.records, 6);
            tn_reader_bad_reasons(reader, &reasons);
            assert_memory_equal(reasons.data,
                                "expected an index\0"
                                "1\0expected a label\0"
                                "1\0expected a number\0"
                                "1\0",
                                reasons.size);
            tn_text_done(&reasons);
        }
        tn_reader_close(reader);
        setup_close(&s);
    }
}

static void ids_and_places_come_along_when_wanted(void **state)
{
    (void)state;
    setup s;
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    setup_open(&s, "{data: {format: csv, record_id: id, group: u}, slots: [{name: u}]}");
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
    assert_string_equal(tn_reader_source(reader, batch->source[0]), path);
    tn_reader_close(reader);
    setup_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_rows_are_the_same_in_three_formats),
        cmocka_unit_test(golden_keys_are_exact),
        cmocka_unit_test(golden_tfrecord_counts_the_name_that_stands_twice),
        cmocka_unit_test(the_stream_is_the_same_for_any_number_of_threads),
        cmocka_unit_test(d5_epochs_differ_in_order_and_seeds_repeat_it),
        cmocka_unit_test(i2_the_stream_goes_on_from_any_batch_as_if_it_had_never_stopped),
        cmocka_unit_test(every_record_is_read_once_however_files_are_cut),
        cmocka_unit_test(d1_a_tenth_of_the_negatives_is_kept_with_and_without_shuffle),
        cmocka_unit_test(closing_early_never_hangs),
        cmocka_unit_test(a_warm_reader_allocates_nothing),
        cmocka_unit_test(bad_records_end_the_stream_or_are_counted),
        cmocka_unit_test(ids_and_places_come_along_when_wanted),
    };
    return cmocka_run_group_tests_name("io/reader", tests, NULL, NULL);
}
