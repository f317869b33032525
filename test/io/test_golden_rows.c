/* test_golden_rows.c - the rows of test/golden/data come out alike, with the keys they must have.
 */
#include "base/keys/record.h"
#include "base/math/key.h"
#include "io/format/format.h"
#include "setup.h"
#include "support/test.h"

#define FFM_SLOTS                                                                                  \
    "slots: [{name: user, field: 0}, {name: item, field: 1}, {name: hist, field: 2, share: item}," \
    " {name: tags, field: 3}, {name: city, field: 4}, {name: rare, field: 5},"                     \
    " {name: price, field: 6, as: value, transform: log}]"
#define NAMED_SLOTS                                                                                \
    "slots: [{name: user}, {name: item}, {name: hist, share: item},"                               \
    " {name: tags, values: tags_x}, {name: city}, {name: rare},"                                   \
    " {name: price, type: float, as: value, transform: log}]"

TMPDIR_UNPACKED(golden, "rows"); /* all of the files but rows.tsv */

static const char golden_ffm[] = "{data: {format: libffm, shuffle: 0}, " FFM_SLOTS "}";
static const char golden_tsv[] =
    "{data: {format: tsv, header: true, weight: weight, list: ',', shuffle: 0}, " NAMED_SLOTS "}";
static const char golden_tfrecord[] =
    "{data: {format: tfrecord, weight: weight, shuffle: 0}, " NAMED_SLOTS "}";

static const char golden_jsonl[] =
    "{data: {format: jsonl, weight: weight, shuffle: 0}, " NAMED_SLOTS "}";
static const char golden_vw[] = "{data: {format: vw, shuffle: 0}, " NAMED_SLOTS "}";

static const char *path_in(const char *folder, const char *name)
{
    static char path[300];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

TEST(golden_rows_are_the_same_in_all_formats)
{
    static const struct {
        const char *format, *config, *folder, *name;
    } files[] = {
        {"libffm", golden_ffm, golden, "rows.ffm"},
        {"tsv", golden_tsv, "test/golden/data", "rows.tsv"},
        {"tfrecord", golden_tfrecord, golden, "rows.tfrecord"},
        {"vw", golden_vw, golden, "rows.vw"},
        {"jsonl", golden_jsonl, golden, "rows.jsonl"},
    };
    tn_text first CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (tn_format_find(files[i].format) == NULL) {
            continue; /* an extra that is not built */
        }
        OPEN(setup, s, files[i].config);
        const char *path = path_in(files[i].folder, files[i].name);
        const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 32, .prefetch = 2};
        tn_text rows CLEANUP(tn_text_done) = {0};
        setup_dump(&s, &opts, i == 0 ? &first : &rows);
        if (i > 0) {
            assert_string_equal(first.data, rows.data);
        }
    }
}

/* Occurrences per key in rows of weight > 0, against keys.tsv. */
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
    char *at = NULL;
    size_t size = strcspn(line, "\t");
    assert_true(size < sizeof group && line[size] == '\t');
    memset(group, 0, sizeof group);
    memcpy(group, line, size < sizeof group ? size : sizeof group - 1);
    uint64_t sign = strtoull(line + size, &at, 10);
    uint64_t key = strtoull(at, &at, 16);
    uint64_t partition = strtoull(at, &at, 10);
    uint64_t shows = strtoull(at, &at, 10);
    assert_true(*at == '\n');
    uint32_t i = 0;
    while (i < c->n && c->key[i] != key) {
        i++;
    }
    assert_true(i < c->n);
    const tn_share_group *g = &schema->group[c->group[i]];
    assert_string_equal(g->name, group);
    assert_true(tn_sign_of(key, g->salt) == sign);
    assert_int_equal(key >> 54, partition);
    assert_int_equal(c->shows[i], shows);
}

TEST(golden_keys_are_exact)
{
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    counted c = {.n = 0};
    const char *path = "test/golden/data/rows.tsv";
    OPEN(setup, s,
         "{data: {format: tsv, header: true, weight: weight, list: ',', shuffle: 0}, "
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
    FILE *f = fopen(path_in(golden, "keys.tsv"), "r");
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
}

TEST(golden_tfrecord_counts_the_name_that_stands_twice)
{
    tn_reader *reader = NULL;
    tn_batch *batch = NULL;
    tn_read_counts counts;
    const char *path = path_in(golden, "rows.tfrecord");
    OPEN(setup, s, golden_tfrecord);
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 300, .prefetch = 1};
    assert_int_equal(tn_reader_open(&reader, s.schema, &opts, NULL), TN_OK);
    assert_int_equal(tn_reader_next(reader, &batch, NULL), TN_OK);
    assert_int_equal(batch->rows, 256);
    tn_reader_counts(reader, &counts);
    assert_int_equal(counts.duplicate_key, 1);
    assert_int_equal(counts.bad, 0);
    tn_reader_close(reader);
}
