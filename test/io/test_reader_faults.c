/* test_reader_faults.c - bad records, files that cannot be read, and inputs that never end. */
#include "base/thread/threads.h"
#include "setup.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(bad_records_end_the_stream_or_are_counted)
{
    static const char rows[] = "1 1\n0 x\n1 2\n\n7 3\n0 4:y\n1 5\n";
    const char *allowed[] = {"0", "2", "3", "100%"};
    for (uint32_t i = 0; i < 4; i++) {
        setup s CLEANUP(setup_close);
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
        assert_true(i != 0 || strstr(err.text, "\nhint: 'bad_records_max: 1%' in 'data' passes"));
        assert_true(i != 1 || strstr(err.text, "rows:6:5: error: expected a number, found \"y\""));
        if (status == TN_OK) {
            tn_read_counts counts;
            tn_text reasons CLEANUP(tn_text_done) = {0};
            assert_int_equal(batch->rows, 3);
            assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_END);
            tn_reader_counts(reader, &counts);
            assert_int_equal(counts.bad, 3);
            assert_int_equal(counts.records, 6);
            assert_int_equal(counts.blank, 1);
            assert_int_equal(batch->progress.records, 6);
            tn_reader_counts_of(reader, UINT32_MAX, &counts, &reasons);
            assert_memory_equal(reasons.data,
                                "expected an index\0"
                                "1\0expected a label\0"
                                "1\0expected a number\0"
                                "1\0",
                                reasons.size);
        }
        tn_reader_close(reader);
    }
}

TEST(what_cannot_be_read_is_named)
{
    setup s;
    tn_error err = {0};
    setup_open(&s, "{data: {format: libsvm}}");
    const char *path = "test/io/data/none.svm";
    const tn_reader_opts none = {.paths = {1, &path}, .batch_rows = 4, .prefetch = 1};
    assert_int_equal(setup_drain(&s, &none, &err), TN_E_DATA);
    assert_string_equal(err.text, "cannot find 'test/io/data/none.svm': No such file or directory");
    const tn_reader_opts nothing = {.batch_rows = 4, .prefetch = 1};
    assert_int_equal(setup_drain(&s, &nothing, &err), TN_E_DATA);
    setup_close(&s);
    setup_open(&s, "{data: {format: libsvm, bad_records_max: many}}");
    assert_int_equal(setup_drain(&s, &none, &err), TN_E_CONFIG);
    setup_close(&s);
}

TEST(a_share_of_bad_records_is_judged_from_ten_thousand_on_and_at_the_end)
{
    tn_error err = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, "{data: {format: libsvm, bad_records_max: 1%}}");
    for (uint32_t i = 0; i < 9000; i++) {
        tn_text_adds(&text, i % 50 == 0 ? "x\n" : "1 2\n");
    }
    const char *path = setup_file(&s, "rows", text.data, text.size);
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 100, .prefetch = 1};
    assert_int_equal(setup_drain(&s, &opts, &err), TN_E_DATA);
    assert_non_null(
        strstr(err.text, "180 of 9000 records are bad, more than data.bad_records_max"));
    const tn_reader_opts rest = {
        .paths = {1, &path}, .batch_rows = 100, .prefetch = 1, .from = {.position = 8000}};
    assert_int_equal(setup_drain(&s, &rest, &err), TN_END); /* it does not know the whole */
    for (uint32_t i = 0; i < 9000; i++) {
        tn_text_adds(&text, i % 50 == 0 ? "x\n" : "1 2\n");
    }
    (void)setup_file(&s, "rows", text.data, text.size);
    assert_int_equal(setup_drain(&s, &opts, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "rows:"));
    assert_non_null(strstr(err.text, "records are bad, more than data.bad_records_max (1%)"));
}

TEST(data_without_a_good_record_are_refused_whatever_is_allowed)
{
    static const char *const allowed[] = {"1000", "100%"};
    for (uint32_t i = 0; i < 2; i++) {
        setup s CLEANUP(setup_close);
        char config[128];
        tn_error err = {0};
        (void)snprintf(config, sizeof config, "{data: {format: libsvm, bad_records_max: '%s'}}",
                       allowed[i]);
        setup_open(&s, config);
        const char *path = setup_file(&s, "rows", "x\n\ny\n", 5);
        const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 4, .prefetch = 1};
        assert_int_equal(setup_drain(&s, &opts, &err), TN_E_DATA);
        assert_non_null(strstr(err.text, "no record is good: all 2 are bad"));
        path = setup_file(&s, "rows", "x\n\ny\n1 2\n", 9);
        assert_int_equal(setup_drain(&s, &opts, &err), TN_END);
    }
}

TEST(standard_input_is_one_part_and_waiting_for_it_can_be_stopped)
{
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    int ends[2];
    int kept = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(write(ends[1], "1 2\n0 3\n", 8), 8);
    OPEN(setup, s, "{data: {format: libsvm}}");
    const char *path = "-";
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 1, .prefetch = 1};
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_reader_n_parts(reader), 1);
    assert_int_equal(tn_reader_total_bytes(reader), 0);
    tn_reader_close(reader); /* the other end is still open, and silent */
    assert_int_not_equal(fcntl(STDIN_FILENO, F_GETFD), -1); /* it is not the reader's to close */
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(write(ends[1], "1 2\n0 3\n", 8), 8);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
    }
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_END);
    tn_reader_close(reader);
    assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
}

TEST(a_share_of_nothing_is_none)
{
    tn_error err = {0};
    OPEN(setup, s, "{data: {format: libsvm, bad_records_max: 0%}}");
    const char *path = setup_file(&s, "rows", "1 2\nx\n1 3\n", 10);
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 4, .prefetch = 1};
    assert_int_equal(setup_drain(&s, &opts, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "/rows:2:1: error: expected a label"));
}

TEST(bad_records_without_memory_end_the_stream)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, "{data: {format: libsvm, bad_records_max: 100%, part_bytes: 200B}}");
    for (uint32_t i = 0; i < 100; i++) {
        tn_text_addf(&text, "x %u\n1 %u\n", i, i);
    }
    const char *path = setup_file(&s, "rows", text.data, text.size);
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 4, .prefetch = 1};
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

/* Opening waits until the reader has opened the other end. */
static tn_status write_two_rows(void *path, tn_error *err)
{
    (void)err;
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, "1 2\n0 3\n", 8), 8);
    assert_int_equal(close(fd), 0);
    return TN_OK;
}

TEST(a_pipe_with_a_name_is_one_part_and_waiting_for_it_can_be_stopped)
{
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_thread *writer = NULL;
    OPEN(setup, s, "{data: {format: libsvm}}");
    PATH_IN(path, s.dir, "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    const char *paths = path;
    const tn_reader_opts opts = {.paths = {1, &paths}, .batch_rows = 1, .prefetch = 1};
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_reader_n_parts(reader), 1);
    tn_error err = {0};
    tn_prior prior;
    tn_reader_stop(reader); /* nobody ever opens the other end */
    assert_int_equal(tn_reader_prior(reader, &prior, &err), TN_E_STOPPED);
    assert_string_equal(err.text, "the reader was stopped");
    tn_reader_close(reader);
    int silent = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    tn_reader_close(reader); /* somebody does, and says nothing */
    assert_int_equal(close(silent), 0);

    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_thread_start(&writer, "writer", write_two_rows, path, NULL), TN_OK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
        assert_int_equal(batch->rows, 1);
        tn_reader_recycle(reader, batch);
    }
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_END);
    assert_int_equal(tn_thread_join(writer, NULL), TN_OK);
    tn_reader_close(reader);
}

static void end_what_hangs(void)
{
    (void)alarm(500);
}

BEFORE(end_what_hangs);
