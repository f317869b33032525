/* test_arrow_stream.c - streams of batches are read as bytes, and everything is released once. */
#include "io/arrow/arrow_stream.h"

#include "base/core/embedder.h"
#include "base/core/stop.h"
#include "io/read/row_scan.h"
#include "io/setup.h"
#include "support/arrow_kit.h"
#include "support/test.h"

#include <errno.h>

typedef struct program {
    kit_stream stream;
    int opened;
    const char *refuses; /* the reason */
    int rows;            /* of each batch */
    bool is_wrong;       /* the last batch is */
} program;

enum { BATCHES = 3, ROWS_MAX = 2000 };

/* Batches of a column of whole numbers, counted on, and one of texts. */
static void make_stream(program *p, int batches)
{
    int32_t next = 0;
    kit_schema(&p->stream.schema, "+s", "");
    (void)kit_schema_child(&p->stream.schema, "i", "n");
    (void)kit_schema_child(&p->stream.schema, "w:1000", "t");
    p->stream.n = batches;
    p->stream.at = 0;
    for (int b = 0; b < batches; b++) {
        struct ArrowArray *batch = &p->stream.batch[b];
        static char text[ROWS_MAX * 1000];
        static int32_t whole[ROWS_MAX];
        for (int i = 0; i < p->rows; i++) {
            whole[i] = next++;
            memset(text + (ptrdiff_t)i * 1000, 'a' + whole[i] % 26, 1000);
        }
        kit_array(batch, p->rows, NULL);
        kit_buffer(kit_child(batch, p->rows, NULL), whole, (size_t)p->rows * sizeof *whole);
        struct ArrowArray *texts = kit_child(batch, p->rows, NULL);
        kit_buffer(texts, text, (size_t)p->rows * 1000);
        texts->length -= p->is_wrong && b == batches - 1;
    }
}

static int open_program(void *arg, struct ArrowArrayStream *out, char *why)
{
    program *p = arg;
    p->opened++;
    if (p->refuses != NULL) {
        (void)snprintf(why, 512, "%s", p->refuses);
        return 1;
    }
    make_stream(p, BATCHES);
    kit_stream_open(out, &p->stream);
    return 0;
}

static tn_arrow_source *new_source(program *p, bool once)
{
    tn_arrow_source *source = NULL;
    tn_error err = {0};
    const tn_arrow_source_opts opts = {
        .name = "train", .open = open_program, .arg = p, .once = once};
    assert_ok(tn_arrow_source_new(&source, &opts, &err), err.text);
    return source;
}

/* Reads a pass to its end, or `limit` bytes of it, a few at a time; largest is the most that was in
 * memory at once, as far as reads show. */
static tn_status read_all(tn_arrow_source *source, size_t limit, tn_text *out, tn_error *err)
{
    const tn_producer producer = tn_arrow_source_producer(source);
    void *pass = NULL;
    char room[8191];
    size_t n = 1;
    assert_string_equal(producer.name, "train");
    tn_status status = producer.open(producer.arg, &pass, err);
    assert_true((pass == NULL) == (status != TN_OK));
    while (status == TN_OK && n > 0 && out->size < limit) {
        status = producer.read(pass, room, sizeof room, &n, err);
        if (status == TN_OK) {
            tn_text_add(out, room, n);
        }
    }
    if (pass != NULL) {
        producer.close(pass);
    }
    return status;
}

/* Head; then of each row its size, its number, a whole number, a text. */
static void assert_all_rows(const tn_text *bytes, uint64_t rows)
{
    enum { HEAD = 8 + 4 + 9 + 9, ROW = 12 + 9 + 5 + 1000 };
    assert_int_equal(bytes->size, HEAD + rows * ROW);
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t number = 0;
        int64_t whole = 0;
        const char *row = tn_text_str(bytes) + HEAD + i * ROW;
        memcpy(&number, row + 4, sizeof number);
        memcpy(&whole, row + 13, sizeof whole);
        assert_int_equal(number, i);
        assert_int_equal(whole, i);
        assert_int_equal(row[ROW - 1], 'a' + (int)(i % 26));
    }
}

TEST(every_pass_reads_all_rows_of_a_fresh_stream)
{
    for (int rows = 0; rows < ROWS_MAX; rows = rows * 7 + 1) {
        program p = {.rows = rows};
        tn_arrow_source *source = new_source(&p, false);
        for (int pass = 1; pass <= 2; pass++) {
            tn_text bytes = {0};
            tn_error err = {0};
            assert_ok(read_all(source, SIZE_MAX, &bytes, &err), err.text);
            assert_all_rows(&bytes, (uint64_t)rows * BATCHES);
            assert_int_equal(p.opened, pass);
            assert_int_equal(kit_live, 0);
            tn_text_done(&bytes);
        }
        tn_arrow_source_free(source);
    }
}

TEST(a_pass_that_is_closed_early_releases_what_it_holds)
{
    program p = {.rows = 500};
    tn_arrow_source *source = new_source(&p, false);
    for (size_t limit = 0; limit < 2000000; limit = limit * 3 + 1) {
        tn_text bytes = {0};
        tn_error err = {0};
        assert_ok(read_all(source, limit, &bytes, &err), err.text);
        assert_int_equal(kit_live, 0);
        tn_text_done(&bytes);
    }
    tn_arrow_source_free(source);
}

TEST(a_stream_that_can_be_read_once_is_read_once_for_all_passes)
{
    program p = {.rows = 300};
    tn_arrow_source *source = new_source(&p, true);
    tn_text cut = {0};
    tn_error err = {0};
    assert_ok(read_all(source, 100, &cut, &err), err.text);
    assert_int_equal(kit_live, 0);
    for (int pass = 0; pass < 3; pass++) {
        tn_text bytes = {0};
        assert_ok(read_all(source, SIZE_MAX, &bytes, &err), err.text);
        assert_all_rows(&bytes, UINT64_C(300) * BATCHES);
        tn_text_done(&bytes);
    }
    assert_int_equal(p.opened, 1);
    tn_text_done(&cut);
    tn_arrow_source_free(source);
}

TEST(passes_may_be_open_side_by_side)
{
    program p = {.rows = 300};
    tn_arrow_source *source = new_source(&p, true);
    const tn_producer producer = tn_arrow_source_producer(source);
    tn_error err = {0};
    void *pass[2] = {NULL, NULL};
    char room[2][4096];
    size_t n[2] = {1, 1};
    assert_ok(producer.open(producer.arg, &pass[0], &err), err.text);
    assert_ok(producer.open(producer.arg, &pass[1], &err), err.text);
    while (n[0] > 0) {
        assert_ok(producer.read(pass[0], room[0], sizeof room[0], &n[0], &err), err.text);
        assert_ok(producer.read(pass[1], room[1], sizeof room[1], &n[1], &err), err.text);
        assert_int_equal(n[0], n[1]);
        assert_memory_equal(room[0], room[1], n[0]);
    }
    producer.close(pass[0]);
    producer.close(pass[1]);
    tn_arrow_source_free(source);
}

/* The sentence that a pass ends with. */
static void assert_pass_fails(program *p, bool once, tn_status wanted, const char *sentence)
{
    tn_arrow_source *source = new_source(p, once);
    for (int pass = 0; pass < 2; pass++) {
        tn_text bytes = {0};
        tn_error err = {0};
        assert_int_equal(read_all(source, SIZE_MAX, &bytes, &err), wanted);
        assert_says(err.text, sentence);
        assert_int_equal(kit_live, 0);
        tn_text_done(&bytes);
    }
    assert_int_equal(p->opened, once ? 1 : 2);
    tn_arrow_source_free(source);
}

TEST(faults_of_a_stream_are_told_in_its_words)
{
    for (int once = 0; once < 2; once++) {
        program p = {.rows = 5, .stream = {.fails = EIO, .error = "the disk\n is gone"}};
        assert_pass_fails(&p, once != 0, TN_E_DATA,
                          "memory:train: error: the stream failed: the disk? is gone");
        p = (program){.rows = 5, .stream = {.fails = EIO}};
        assert_pass_fails(&p, once != 0, TN_E_DATA, "the stream failed: Input/output error");
        p = (program){.refuses = "no frame\nis left"};
        assert_pass_fails(&p, once != 0, TN_E_DATA,
                          "memory:train: error: there is no stream of data: no frame?is left");
        p = (program){.refuses = ""};
        assert_pass_fails(&p, once != 0, TN_E_DATA, "the program gives no reason");
        p = (program){.rows = 5, .is_wrong = true};
        assert_pass_fails(&p, once != 0, TN_E_DATA,
                          "memory:train: error: column 't' has an array of 4 values, expected 5");
    }
}

/* A batch of 1000 bytes a row, whose last row has a code that no dictionary has. */
static int open_late_fault(void *arg, struct ArrowArrayStream *out, char *why)
{
    static char text[ROWS_MAX * 1000];
    static int8_t code[ROWS_MAX];
    program *p = arg;
    why[0] = '\0'; /* there is a stream */
    code[ROWS_MAX - 1] = 1;
    kit_schema(&p->stream.schema, "+s", "");
    (void)kit_schema_child(&p->stream.schema, "w:1000", "t");
    (void)kit_schema_dictionary(kit_schema_child(&p->stream.schema, "c", "d"), "n");
    kit_array(&p->stream.batch[0], ROWS_MAX, NULL);
    kit_buffer(kit_child(&p->stream.batch[0], ROWS_MAX, NULL), text, sizeof text);
    struct ArrowArray *codes = kit_child(&p->stream.batch[0], ROWS_MAX, NULL);
    kit_buffer(codes, code, sizeof code);
    (void)kit_dictionary(codes, 1, NULL);
    p->stream.n = 1;
    kit_stream_open(out, &p->stream);
    return 0;
}

TEST(a_large_batch_is_converted_in_pieces)
{
    program p = {.rows = 0};
    tn_arrow_source *source = NULL;
    tn_text bytes = {0};
    tn_error err = {0};
    const tn_arrow_source_opts opts = {.name = "train", .open = open_late_fault, .arg = &p};
    assert_ok(tn_arrow_source_new(&source, &opts, &err), err.text);
    assert_int_equal(read_all(source, SIZE_MAX, &bytes, &err), TN_E_DATA);
    assert_says(err.text, "memory:train: row 1999: error: column 'd' has code 1");
    assert_true(bytes.size > 1500000); /* all but the piece of the fault came before it */
    assert_int_equal(kit_live, 0);
    tn_text_done(&bytes);
    tn_arrow_source_free(source);
}

TEST(a_stop_ends_a_pass_between_batches)
{
    const atomic_bool stop = true;
    const tn_embedder mine = {.stop = &stop};
    program p = {.rows = 5};
    (void)tn_embedder_enter(&mine);
    assert_pass_fails(&p, false, TN_E_STOPPED, "stopped while reading 'memory:train'");
    p = (program){.rows = 5};
    assert_pass_fails(&p, true, TN_E_STOPPED, "stopped while reading 'memory:train'");
    (void)tn_embedder_enter(NULL);
}

TEST(memory_that_runs_out_in_a_pass_is_reported)
{
    for (int once = 0; once < 2; once++) {
        tn_status status = TN_E_MEMORY;
        uint64_t nth = 1;
        for (; status != TN_OK; nth++) {
            program p = {.rows = 5};
            tn_text bytes = {0};
            tn_error err = {0};
            tn_arrow_source *source = NULL;
            const tn_arrow_source_opts opts = {
                .name = "train", .open = open_program, .arg = &p, .once = once != 0};
            assert_int_equal(bytes.size, 0);
            char *reserved = tn_text_grow(&bytes, 1 << 16); /* the test's own never fails */
            assert_non_null(reserved);
            tn_text_clear(&bytes);
            tn_alloc_fail_at(nth);
            status = tn_arrow_source_new(&source, &opts, &err);
            status = status == TN_OK ? read_all(source, SIZE_MAX, &bytes, &err) : status;
            assert_true(status == TN_OK || (status == TN_E_MEMORY && err.text[0] != '\0'));
            assert_int_equal(kit_live, 0);
            tn_alloc_fail_at(0);
            tn_text_done(&bytes);
            tn_arrow_source_free(source);
        }
        assert_true(nth > 5);
    }
}

TEST(rows_are_counted_without_a_look_at_them)
{
    for (int once = 0; once < 2; once++) {
        program p = {.rows = ROWS_MAX};
        uint64_t rows = 0;
        tn_error err = {0};
        tn_text bytes CLEANUP(tn_text_done) = {0};
        tn_arrow_source *source = new_source(&p, once != 0);
        const tn_producer producer = tn_arrow_source_producer(source);
        for (int again = 0; again < 2; again++) {
            assert_ok(producer.count(producer.arg, &rows, &err), err.text);
            assert_int_equal(rows, BATCHES * ROWS_MAX);
        }
        assert_int_equal(p.opened, 1);
        assert_ok(read_all(source, SIZE_MAX, &bytes, &err), err.text);
        assert_all_rows(&bytes, (uint64_t)BATCHES * ROWS_MAX);
        assert_int_equal(p.opened, once ? 1 : 2);
        tn_arrow_source_free(source);
        assert_int_equal(kit_live, 0);
    }
}

TEST(an_estimate_of_many_rows_has_their_number)
{
    program p = {.rows = ROWS_MAX}; /* 2 MB a batch: more than the block that is looked at */
    double rows = 0;
    tn_error err = {0};
    OPEN(setup, s, "{data: {format: csv, label: none}, slots: [{name: t, type: str}]}");
    tn_arrow_source *source = new_source(&p, false);
    const tn_producers producers = {.producer = {tn_arrow_source_producer(source)}, .n = 1};
    const tn_embedder mine = {.producers = &producers};
    const tn_strs paths = {1, (const char *const[]){"memory:train"}};
    (void)tn_embedder_enter(&mine);
    assert_ok(tn_row_scan_estimate(&paths, s.schema, 1, &rows, &err), err.text);
    (void)tn_embedder_enter(NULL);
    assert_int_equal((int)(rows + .5), BATCHES * ROWS_MAX);
    tn_arrow_source_free(source);
    assert_int_equal(kit_live, 0);
}
