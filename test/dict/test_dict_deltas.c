/* test_dict_deltas.c - deltas on a dictionary: the newest layer that knows a key decides. */
#include "dict/dict_deltas.h"

#include "support/test.h"

#include "base/math/key.h"
#include "dictrows.h"

static char dir[256];
static tn_dictrows *rows;

SET_UP
{
    tn_tmpdir_make(dir);
    rows = tn_alloc(1, sizeof *rows, "rows");
}

TEAR_DOWN
{
    tn_tmpdir_remove(dir);
    tn_free(rows);
}

/* Model `id` (all of its bytes are that), on `base`; 0: a full one. Takes the rows that are there.
 */
static void write_layer(uint8_t id, uint8_t base)
{
    char path[400];
    char folder[33];
    tn_error err = {0};
    tn_dict_written done;
    tn_dict_spec spec = tn_dictrows_spec();
    memset(spec.model_id, id, sizeof spec.model_id);
    memset(spec.base_id, base, sizeof spec.base_id);
    spec.delta = base != 0;
    spec.json = "{\"segments\":[\"wide\",\"deep\"]}";
    for (size_t i = 0; i < 16; i++) {
        (void)snprintf(folder + 2 * i, 3, "%02x", id);
    }
    (void)snprintf(path, sizeof path, "%s/%s", dir, folder);
    assert_int_equal(tn_dir_make(path, &err), TN_OK);
    (void)snprintf(path, sizeof path, "%s/%s/dict.tnd", dir, folder);
    tn_dictrows_sort(rows);
    tn_dict_source source = tn_dictrows_source(rows);
    assert_ok(tn_dict_write(path, &spec, &source, &done, &err), err.text);
    rows->n = 0;
}

static tn_status open_stack(uint8_t id, tn_dict_stack *s, tn_error *err)
{
    char path[400];
    char folder[33];
    for (size_t i = 0; i < 16; i++) {
        (void)snprintf(folder + 2 * i, 3, "%02x", id);
    }
    (void)snprintf(path, sizeof path, "%s/%s", dir, folder);
    return tn_dict_stack_open(s, path, "dict.tnd", TN_VERIFY_FULL, err);
}

static void add(uint64_t sign, float wide)
{
    tn_dictrows_add(rows, &tn_dictrows_layout, 0, sign, 3, (const float[]){wide, 1, 2});
}

static void add_removed(uint64_t sign)
{
    tn_dictrows_add(rows, &tn_dictrows_layout, 0, sign, 0, NULL);
    rows->row[rows->n - 1].removed = true;
}

/* Weight of a user; -1: there is none. */
static float wide_of(const tn_dict_stack *s, uint64_t sign)
{
    float w = 0;
    tn_dict_row row;
    const tn_dict_query q = {tn_key_of(sign, tn_dict_salt(s->layer[0], 0)), 0};
    assert_int_equal(tn_dict_stack_find(s, 1, &q, &row, NULL), TN_OK);
    return tn_dict_get(&row, 0, 1, &w) ? w : -1;
}

TEST(the_newest_layer_decides)
{
    tn_dict_stack s;
    add(1, 10);
    add(2, 20);
    add(3, 30);
    write_layer(1, 0);
    add(2, 21);
    add(4, 40);
    add_removed(3);
    write_layer(2, 1);
    add(3, 32);
    add_removed(1);
    write_layer(3, 2);
    static const float want[3][5] = {
        {10, 20, 30, -1, -1}, {10, 21, -1, 40, -1}, {-1, 21, 32, 40, -1}};
    for (uint8_t id = 1; id <= 3; id++) {
        assert_int_equal(open_stack(id, &s, NULL), TN_OK);
        assert_int_equal(s.n, id);
        uint32_t there = 0;
        for (uint64_t sign = 1; sign <= 5; sign++) {
            assert_float_equal(wide_of(&s, sign), want[id - 1][sign - 1], 0);
            there += want[id - 1][sign - 1] > 0;
        }
        tn_dict_live *live FREED(tn_free) = NULL;
        uint64_t n = 0;
        assert_int_equal(tn_dict_stack_list(&s, &live, &n, NULL), TN_OK);
        assert_int_equal(n, there);
        for (uint64_t i = 1; i < n; i++) {
            assert_true(live[i - 1].key < live[i].key);
        }
        tn_dict_stack_close(&s);
    }
}

TEST(more_than_eight_deltas_are_refused)
{
    tn_error err = {0};
    tn_dict_stack s;
    for (uint8_t id = 1; id <= 10; id++) {
        add(id, id);
        write_layer(id, id - 1);
    }
    assert_int_equal(open_stack(9, &s, &err), TN_OK);
    assert_int_equal(s.n, 9);
    assert_float_equal(wide_of(&s, 1), 1, 0);
    tn_dict_stack_close(&s);
    assert_int_equal(open_stack(10, &s, &err), TN_E_CKPT);
    assert_int_equal(s.n, 0);
}

TEST(a_wrong_base_is_refused)
{
    char to[400];
    tn_error err = {0};
    tn_dict_stack s;
    add(1, 1);
    write_layer(1, 0);
    add(1, 2);
    write_layer(2, 1);
    PATH_IN(from, dir, "01010101010101010101010101010101");
    (void)snprintf(to, sizeof to, "%s/elsewhere", dir);
    assert_int_equal(tn_rename(from, to, &err), TN_OK);
    assert_int_equal(open_stack(2, &s, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "is missing"));
    add(1, 3);
    write_layer(7, 0);
    (void)snprintf(to, sizeof to, "%s/07070707070707070707070707070707", dir);
    assert_int_equal(tn_rename(to, from, &err), TN_OK);
    assert_int_equal(open_stack(2, &s, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "is not the model that its folder says"));
}
