/* test_dictwrite.c - what the writer of a dictionary does not take: sources that change between two
 * walks, weights that are not finite, keys out of order; and what it makes of several threads. */

#include "base/thread/team.h"
#include "support/test.h"

#include "dict/dict.h"
#include "dictfile.h"

#include <float.h>

enum { ROWS = 5000 };

typedef struct fixture {
    tn_dictfile file;
    uint32_t walks; /* so far; after the first, what `change` does is done */
    void (*change)(tn_dictrows *rows);
} fixture;

SET_UP
{
    fixture *f = tn_alloc(1, sizeof *f, "a fixture");
    tn_dictfile_open(&f->file);
    *state = f;
}

TEAR_DOWN
{
    fixture *f FREED(tn_free) = *state;
    tn_dictfile_close(&f->file);
}

static tn_status walk(void *arg, uint32_t piece, tn_dict_visit *visit, void *visitor, tn_error *err)
{
    fixture *f = arg;
    const tn_dict_source source = tn_dictrows_source(f->file.rows);
    if (piece == 0 && f->walks++ == 1) {
        f->change(f->file.rows);
    }
    return source.walk(source.arg, piece, visit, visitor, err);
}

static tn_dict_source changing(fixture *f)
{
    return (tn_dict_source){.n_pieces = TN_DICTROWS_PIECES, .walk = walk, .arg = f};
}

static void nothing(tn_dictrows *rows)
{
    (void)rows;
}

static void one_more(tn_dictrows *rows)
{
    rows->row[rows->n] = rows->row[rows->n - 1];
    rows->row[rows->n++].key++;
}

static void one_less(tn_dictrows *rows)
{
    rows->n--;
}

static void another_key(tn_dictrows *rows)
{
    rows->row[ROWS / 2].key++;
}

static void another_set(tn_dictrows *rows)
{
    rows->row[ROWS / 2].present ^= 2;
}

static void a_new_set(tn_dictrows *rows)
{
    rows->row[ROWS - 1].present = 2;
}

/* With a second table of another set, unless the change is to be the first to have it. */
static void fill(fixture *f)
{
    f->file.rows->n = 0;
    f->walks = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        tn_dictrows_add(f->file.rows, &tn_dictrows_layout, 0, i, i % 7 == 0 ? 1 : 3, NULL);
    }
    tn_dictrows_sort(f->file.rows);
}

TEST_ON(fixture *f, a_source_that_changes_between_walks_is_noticed)
{
    static void (*const changes[])(tn_dictrows *) = {one_more, one_less, another_key, another_set,
                                                     a_new_set};
    const tn_dict_source source = changing(f);
    const tn_dict_spec spec = tn_dictrows_spec();
    tn_dict_written done = {0};
    tn_error err = {0};
    for (uint32_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        fill(f);
        f->change = changes[i];
        assert_int_equal(tn_dict_write(f->file.path, &spec, &source, &done, &err), TN_E_CKPT);
        assert_non_null(strstr(err.text, "the rows changed while a dictionary was written"));
        assert_false(tn_path_exists(f->file.path));
    }
    fill(f);
    f->change = nothing;
    assert_int_equal(tn_dict_write(f->file.path, &spec, &source, &done, &err), TN_OK);
    assert_int_equal(f->walks, 3); /* one, and one per table */
    assert_int_equal(done.rows, ROWS);
}

/* At every place of a row, in rows that are copied whole and in rows that are not. */
TEST_ON(fixture *f, every_weight_is_looked_at)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    static const float good[] = {FLT_MAX, -FLT_MAX, FLT_MIN, -0.0F};
    const tn_dict_source source = changing(f);
    tn_dict_spec spec = tn_dictrows_spec();
    tn_dict_written done = {0};
    f->change = nothing;
    for (uint32_t i = 0; i < 3 * 4 * 2 * 2; i++) {
        uint32_t place = i % 3;
        float values[3] = {1, 2, 3};
        uint16_t present = i / 24 == 0 ? 3 : (uint16_t)(place == 0 ? 1 : 2);
        bool is_bad = i / 12 % 2 == 0;
        tn_error err = {0};
        values[place] = (is_bad ? bad : good)[i / 3 % 4];
        f->file.rows->n = 0;
        f->walks = 0;
        tn_dictrows_add(f->file.rows, &tn_dictrows_layout, 0, 1, present, values);
        tn_status status = tn_dict_write(f->file.path, &spec, &source, &done, &err);
        assert_int_equal(status, is_bad ? TN_E_CKPT : TN_OK);
        assert_true(!is_bad || strstr(err.text, "not finite") != NULL);
        assert_int_equal(tn_path_exists(f->file.path), !is_bad);
        assert_int_equal(tn_remove_file(f->file.path, NULL), TN_OK);
    }
}

static tn_text bytes_of(fixture *f, const tn_dict_spec *spec)
{
    const tn_dict_source source = tn_dictrows_source(f->file.rows);
    tn_dict_written done = {0};
    tn_text bytes = {0};
    assert_int_equal(tn_dict_write(f->file.path, spec, &source, &done, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(f->file.path, 1 << 28, &bytes, NULL), TN_OK);
    assert_int_equal(bytes.size, done.bytes);
    assert_int_equal(tn_remove_file(f->file.path, NULL), TN_OK);
    return bytes;
}

/* Three tables and, as a delta, one of keys that are gone; most pieces have rows of each. */
TEST_ON(fixture *f, any_number_of_threads_writes_the_same_bytes)
{
    fill(f);
    for (uint32_t i = 0; i < ROWS; i++) {
        tn_dict_entry *e = &f->file.rows->row[i];
        e->present = (uint16_t)(e->key % 3 + 1);
        e->group = (uint16_t)(e->key % 2);
    }
    for (uint32_t kind = 0; kind < 2 * TN_DICT_TYPES; kind++) {
        tn_dict_spec spec = tn_dictrows_spec();
        spec.type = (tn_dict_type)(kind / 2);
        spec.delta = kind % 2 == 1;
        for (uint32_t i = 0; i < ROWS; i += 5) {
            f->file.rows->row[i].removed = spec.delta;
        }
        tn_text alone CLEANUP(tn_text_done) = bytes_of(f, &spec);
        for (uint32_t threads = 1; threads <= 4; threads++) {
            assert_int_equal(tn_team_open(&spec.team, threads, NULL), TN_OK);
            tn_text together CLEANUP(tn_text_done) = bytes_of(f, &spec);
            assert_int_equal(together.size, alone.size);
            assert_memory_equal(together.data, alone.data, alone.size);
            tn_team_close(spec.team);
        }
    }
}

/* In a piece of its own each, and in one with others. */
TEST_ON(fixture *f, keys_that_do_not_ascend_are_told)
{
    const tn_dict_source source = tn_dictrows_source(f->file.rows);
    const tn_dict_spec spec = tn_dictrows_spec();
    tn_dict_written done = {0};
    for (uint32_t at = 1; at < 2 * TN_DICTROWS_PIECES; at++) {
        tn_error err = {0};
        f->file.rows->n = 0;
        for (uint32_t i = 0; i < 2 * TN_DICTROWS_PIECES; i++) {
            tn_dictrows_add(f->file.rows, &tn_dictrows_layout, 0, i, 3, NULL);
        }
        tn_dictrows_sort(f->file.rows);
        f->file.rows->row[at].key = f->file.rows->row[at - 1].key - 1;
        assert_int_equal(tn_dict_write(f->file.path, &spec, &source, &done, &err), TN_E_CKPT);
        assert_non_null(strstr(err.text, "do not ascend"));
        assert_false(tn_path_exists(f->file.path));
    }
}
