/* test_reader_deal.c - readers that share an epoch: parts come from a dealer, one after another. */
#include "setup.h"
#include "support/test.h"

#include <pthread.h>
#include <time.h>

CLOSER(tn_reader_close);

enum { ROWS = 900, PARTS_MAX = 64, LINES_MAX = 2 * ROWS };

/* Deals part[0 .. n-1]; those from `open` on have to be waited for. */
typedef struct table {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    tn_dealt part[PARTS_MAX];
    uint32_t n, open, given;
    bool waiting;              /* somebody is */
    tn_status last;            /* behind the last part */
    uint32_t flushed;          /* parts, in so many .. */
    uint64_t batches, records; /* .. and of so many */
} table;

static void table_begin(table *t)
{
    *t = (table){.open = PARTS_MAX, .last = TN_END};
    (void)pthread_mutex_init(&t->lock, NULL);
    (void)pthread_cond_init(&t->changed, NULL);
}

static void table_end(table *t)
{
    (void)pthread_mutex_destroy(&t->lock);
    (void)pthread_cond_destroy(&t->changed);
}

static void wait_a_little(table *t)
{
    const long tick = 20000000;
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += tick;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&t->changed, &t->lock, &until);
}

static tn_status deal(void *arg, bool wait, const atomic_bool *stop, tn_dealt *out, bool *now,
                      tn_error *err)
{
    table *t = arg;
    tn_status status = TN_OK;
    (void)pthread_mutex_lock(&t->lock);
    t->waiting = wait;
    (void)pthread_cond_broadcast(&t->changed);
    while (wait && !atomic_load(stop) && t->given < t->n && t->given == t->open) {
        wait_a_little(t);
    }
    t->waiting = false;
    if (t->given == t->n) {
        status = t->last == TN_END ? TN_END : tn_fail(err, t->last, "rank 0 is lost");
    } else if (wait && atomic_load(stop)) {
        status = TN_E_STOPPED;
    } else if (t->given < t->open) {
        *out = t->part[t->given++];
        *now = true;
    } else {
        *now = false;
    }
    (void)pthread_mutex_unlock(&t->lock);
    return status;
}

static void note_flushed(void *arg, uint32_t parts, uint64_t batches, uint64_t records)
{
    table *t = arg;
    (void)pthread_mutex_lock(&t->lock);
    t->flushed = parts;
    t->batches = batches;
    t->records = records;
    (void)pthread_cond_broadcast(&t->changed);
    (void)pthread_mutex_unlock(&t->lock);
}

/* Until so many parts are said to be in batches; returns in how many. */
static uint64_t await_flushed(table *t, uint32_t parts)
{
    (void)pthread_mutex_lock(&t->lock);
    while (t->flushed < parts) {
        (void)pthread_cond_wait(&t->changed, &t->lock);
    }
    assert_int_equal(t->flushed, parts);
    uint64_t batches = t->batches;
    (void)pthread_mutex_unlock(&t->lock);
    return batches;
}

static const char *path;

static void begin(setup *s)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    setup_open(s, "{data: {format: libsvm, shuffle: 30, part_bytes: 700B}}");
    for (uint32_t i = 0; i < ROWS; i++) {
        tn_text_addf(&text, "%u %u:%u\n", i % 3 == 0, 1 + i, 1 + i % 4);
    }
    path = setup_file(s, "rows", tn_text_str(&text), text.size);
}

static tn_reader_opts opts_of(const tn_dealer *dealer)
{
    return (tn_reader_opts){.paths = {1, &path},
                            .batch_rows = 7,
                            .training = true,
                            .seed = 42,
                            .dealer = dealer,
                            .prefetch = 2};
}

static uint32_t n_parts(const setup *s)
{
    tn_reader *reader = NULL;
    tn_reader_opts opts = opts_of(NULL);
    assert_int_equal(tn_reader_open(&reader, s->schema, &opts, NULL), TN_OK);
    uint32_t n = tn_reader_n_parts(reader);
    tn_reader_close(reader);
    assert_in_range(n, 5, PARTS_MAX);
    return n;
}

static void dump_dealt(const setup *s, table *t, tn_text *out)
{
    const tn_dealer dealer = {.next = deal, .arg = t};
    tn_reader_opts opts = opts_of(&dealer);
    setup_dump(s, &opts, out);
}

TEST(all_parts_in_order_are_the_whole_stream)
{
    setup s CLEANUP(setup_close);
    table t CLEANUP(table_end);
    tn_text whole CLEANUP(tn_text_done) = {0};
    tn_text dealt CLEANUP(tn_text_done) = {0};
    begin(&s);
    table_begin(&t);
    for (t.n = 0; t.n < n_parts(&s); t.n++) {
        t.part[t.n] = (tn_dealt){.place = t.n};
    }
    tn_reader_opts opts = opts_of(NULL);
    setup_dump(&s, &opts, &whole);
    dump_dealt(&s, &t, &dealt);
    assert_string_equal(tn_text_str(&whole), tn_text_str(&dealt));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of a text, sorted. */
static uint32_t lines_of(tn_text *text, char *line[LINES_MAX])
{
    uint32_t n = 0;
    char *rest = text->data;
    for (char *next = strsep(&rest, "\n"); next != NULL; next = strsep(&rest, "\n")) {
        assert_true(n < LINES_MAX);
        if (*next != '\0') {
            line[n++] = next;
        }
    }
    qsort(line, n, sizeof line[0], by_text);
    return n;
}

TEST(readers_that_share_an_epoch_read_every_row_once)
{
    static char *one[LINES_MAX];
    static char *many[LINES_MAX];
    setup s CLEANUP(setup_close);
    tn_text whole CLEANUP(tn_text_done) = {0};
    tn_text shared CLEANUP(tn_text_done) = {0};
    begin(&s);
    uint32_t parts = n_parts(&s);
    for (uint32_t rank = 0; rank < 3; rank++) {
        table t CLEANUP(table_end);
        table_begin(&t);
        for (uint32_t i = rank; i < parts; i += 3) {
            t.part[t.n++] = (tn_dealt){.place = i};
        }
        dump_dealt(&s, &t, &shared);
    }
    tn_reader_opts opts = opts_of(NULL);
    setup_dump(&s, &opts, &whole);
    uint32_t n = lines_of(&whole, one);
    assert_int_equal(n, ROWS);
    assert_int_equal(lines_of(&shared, many), n);
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(one[i], many[i]);
    }
}

/* Reads up to `batches`; the place of the last one. */
static tn_progress read_some(const setup *s, table *t, uint32_t batches, tn_text *out, tn_dealt *in)
{
    const tn_dealer dealer = {.next = deal, .arg = t};
    tn_reader_opts opts = opts_of(&dealer);
    tn_reader *reader FREED(tn_reader_close) = NULL;
    tn_batch *batch = NULL;
    tn_progress at = {0};
    assert_int_equal(tn_reader_open(&reader, s->schema, &opts, NULL), TN_OK);
    for (uint32_t i = 0; i < batches && tn_reader_next(reader, &batch, NULL) == TN_OK; i++) {
        at = batch->progress;
        *in = tn_reader_dealt(reader, at.part);
        setup_dump_batch(batch, out);
        tn_reader_recycle(reader, batch);
    }
    return at;
}

TEST(a_reader_goes_on_within_a_part_that_it_is_dealt)
{
    setup s CLEANUP(setup_close);
    begin(&s);
    uint32_t parts = n_parts(&s);
    for (uint32_t batches = 1; batches < 60; batches += 9) {
        table t CLEANUP(table_end);
        tn_text whole CLEANUP(tn_text_done) = {0};
        tn_text text CLEANUP(tn_text_done) = {0};
        tn_dealt in = {0};
        table_begin(&t);
        for (uint32_t i = parts; i > 0; i -= i < 2 ? 1 : 2) { /* backwards, every other */
            t.part[t.n++] = (tn_dealt){.place = i - 1};
        }
        tn_progress end = read_some(&s, &t, UINT32_MAX, &whole, &in);
        t.given = 0;
        tn_progress at = read_some(&s, &t, batches, &text, &in);
        assert_int_equal(in.place, t.part[at.part].place);
        t.given = at.part;
        t.part[at.part].position = at.position;
        tn_progress rest = read_some(&s, &t, UINT32_MAX, &text, &in);
        assert_string_equal(tn_text_str(&whole), tn_text_str(&text));
        assert_int_equal(at.records + rest.records, end.records);
    }
}

TEST(rows_do_not_wait_for_a_part_that_is_not_dealt_yet)
{
    setup s CLEANUP(setup_close);
    table t CLEANUP(table_end);
    tn_reader *reader FREED(tn_reader_close) = NULL;
    tn_batch *batch = NULL;
    begin(&s);
    table_begin(&t);
    t.part[0] = (tn_dealt){.place = 0};
    t.part[1] = (tn_dealt){.place = 1};
    t.n = 2;
    t.open = 1;
    const tn_dealer dealer = {.next = deal, .arg = &t, .flushed = note_flushed};
    tn_reader_opts opts = opts_of(&dealer);
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    uint64_t records = 0;
    uint64_t batches = 0;
    uint32_t last = 7;
    while (last == 7) { /* all of the first part, its last batch short */
        assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
        assert_int_equal(batch->progress.part, 0);
        records += batch->rows;
        batches++;
        last = batch->rows;
        assert_int_equal(batch->progress.records, records);
        tn_reader_recycle(reader, batch);
    }
    assert_int_equal(await_flushed(&t, 1), batches);
    (void)pthread_mutex_lock(&t.lock);
    t.open = 2;
    (void)pthread_cond_broadcast(&t.changed);
    (void)pthread_mutex_unlock(&t.lock);
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
    assert_int_equal(batch->progress.part, 1);
    assert_int_equal(batch->rows, 7);
    assert_int_equal(batch->progress.records, records + 7);
    do {
        records += batch->rows;
        tn_reader_recycle(reader, batch);
        batches++;
    } while (tn_reader_next(reader, &batch, NULL) == TN_OK);
    assert_int_equal(await_flushed(&t, 2), batches);
    assert_int_equal(t.records, records);
}

static tn_status look_at_parts(void *arg, const tn_reader *reader, tn_error *err)
{
    uint32_t *n = arg;
    *n = tn_reader_n_parts(reader);
    return tn_fail(err, TN_E_DATA, "not these");
}

/* Who has the parts may wait for the rate before it learns. */
TEST(without_a_part_there_is_no_prior_to_wait_for)
{
    setup s CLEANUP(setup_close);
    table t CLEANUP(table_end);
    tn_prior prior;
    tn_reader *reader FREED(tn_reader_close) = NULL;
    begin(&s);
    table_begin(&t);
    t.n = 1;
    t.open = 0;
    const tn_dealer dealer = {.next = deal, .arg = &t};
    tn_reader_opts opts = opts_of(&dealer);
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_reader_prior(reader, &prior, NULL), TN_END);
    (void)pthread_mutex_lock(&t.lock);
    t.open = 1;
    (void)pthread_cond_broadcast(&t.changed);
    (void)pthread_mutex_unlock(&t.lock);
    tn_batch *batch = NULL;
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
    tn_reader_recycle(reader, batch);
    assert_int_equal(tn_reader_prior(reader, &prior, NULL), TN_OK);
}

TEST(a_dealer_may_refuse_the_data)
{
    setup s CLEANUP(setup_close);
    uint32_t n = 0;
    tn_error err = {0};
    tn_reader *reader = NULL;
    begin(&s);
    const tn_dealer dealer = {.begin = look_at_parts, .next = deal, .arg = &n};
    tn_reader_opts opts = opts_of(&dealer);
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, &err), TN_E_DATA);
    assert_string_equal(err.text, "not these");
    assert_null(reader);
    assert_true(n > 1);
}

TEST(a_reader_that_waits_for_a_part_can_be_stopped)
{
    setup s CLEANUP(setup_close);
    table t CLEANUP(table_end);
    tn_reader *reader FREED(tn_reader_close) = NULL;
    tn_batch *batch = NULL;
    begin(&s);
    table_begin(&t);
    t.n = 1;
    t.open = 0;
    const tn_dealer dealer = {.next = deal, .arg = &t};
    tn_reader_opts opts = opts_of(&dealer);
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    (void)pthread_mutex_lock(&t.lock);
    while (!t.waiting) {
        (void)pthread_cond_wait(&t.changed, &t.lock);
    }
    (void)pthread_mutex_unlock(&t.lock);
    tn_reader_stop(reader);
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_E_STOPPED);
}

TEST(the_failure_of_a_dealer_ends_the_stream)
{
    setup s CLEANUP(setup_close);
    table t CLEANUP(table_end);
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_error err = {0};
    begin(&s);
    table_begin(&t);
    t.last = TN_E_PEER;
    const tn_dealer dealer = {.next = deal, .arg = &t};
    tn_reader_opts opts = opts_of(&dealer);
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_reader_next(reader, &batch, &err), TN_E_PEER);
    assert_string_equal(err.text, "rank 0 is lost");
    tn_reader_close(reader);
    t.last = TN_END;
    assert_int_equal(setup_drain(&s, &opts, NULL), TN_END); /* a reader without a part */
}
