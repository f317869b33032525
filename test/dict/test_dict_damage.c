/* test_dict_damage.c - dictionaries that are cut, flipped or lie: refused, or at least kept inside.
 */
#include "dict/dict.h"

#include "support/test.h"

#include "base/math/crc32c.h"
#include "base/math/key.h"
#include "dictfile.h"

typedef tn_dictfile fixture;

static void write_dict(fixture *f, const tn_dict_spec *spec)
{
    tn_error err = {0};
    tn_dict_written done;
    tn_dictrows_sort(f->rows);
    tn_dict_source source = tn_dictrows_source(f->rows);
    assert_ok(tn_dict_write(f->path, spec, &source, &done, &err), err.text);
}

static void read_back(const fixture *f, tn_text *out)
{
    assert_int_equal(tn_file_read_all(f->path, 1 << 24, out, NULL), TN_OK);
}

static void many_rows(fixture *f, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        static const uint16_t present[] = {3, 3, 3, 1, 2};
        tn_dictrows_add(f->rows, &tn_dictrows_layout, i % 3 == 0 ? 0 : 1, i, present[i % 5], NULL);
    }
}

static void put_file(const fixture *f, const char *data, size_t size)
{
    assert_int_equal(tn_file_replace(f->path, data, size, NULL), TN_OK);
}

/* Opens a file that may be anything and looks everything up; false: somebody noticed. */
static bool survives(const fixture *f, tn_verify verify)
{
    tn_error err = {0};
    tn_dict *d = NULL;
    if (tn_dict_open(&d, f->path, verify, &err) != TN_OK) {
        assert_true(err.code == TN_E_CKPT || err.code == TN_E_LIMIT);
        assert_null(d);
        return false;
    }
    bool good = true;
    for (uint32_t i = 0; i < f->rows->n && good; i++) {
        tn_dict_row row;
        const tn_dict_entry *e = &f->rows->row[i];
        if (e->group < tn_dict_head(d)->n_groups) {
            float w[2];
            good = tn_dict_find_all(d, 1, &(tn_dict_query){e->key, e->group}, &row, &err) == TN_OK;
            (void)(good && tn_dict_get(&row, 1, 2, w));
        }
    }
    tn_dict_close(d);
    return good;
}

FIXTURE(tn_dictfile_set_up, tn_dictfile_tear_down);

TEST_ON(fixture *f, every_flipped_bit_is_noticed)
{
    many_rows(f, 40);
    tn_dict_spec spec = tn_dictrows_spec();
    write_dict(f, &spec);
    tn_text bytes CLEANUP(tn_text_done) = {0};
    read_back(f, &bytes);
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.data[i] = (char)(bytes.data[i] ^ 1 << i % 8);
        put_file(f, bytes.data, bytes.size);
        assert_false(survives(f, TN_VERIFY_FULL));
        assert_false(survives(f, TN_VERIFY_LAZY));
        bytes.data[i] = (char)(bytes.data[i] ^ 1 << i % 8);
    }
}

TEST_ON(fixture *f, every_cut_file_is_noticed)
{
    many_rows(f, 3);
    tn_dict_spec spec = tn_dictrows_spec();
    write_dict(f, &spec);
    tn_text bytes CLEANUP(tn_text_done) = {0};
    read_back(f, &bytes);
    for (size_t size = 0; size < bytes.size; size++) {
        put_file(f, bytes.data, size);
        assert_false(survives(f, TN_VERIFY_NONE));
    }
    tn_text_add(&bytes, "", 1);
    put_file(f, bytes.data, bytes.size);
    assert_false(survives(f, TN_VERIFY_NONE));
}

/* Without checksums wrong values may come out, but nothing leaves the mapping (ASan watches). */
TEST_ON(fixture *f, a_trusted_file_may_lie_but_not_lead_outside)
{
    many_rows(f, 64);
    tn_dict_spec spec = tn_dictrows_spec();
    write_dict(f, &spec);
    tn_text bytes CLEANUP(tn_text_done) = {0};
    read_back(f, &bytes);
    uint32_t noticed = 0;
    for (uint32_t round = 0; round < 3000; round++) {
        char *copy FREED(tn_free) = tn_alloc(bytes.size, 1, "a copy");
        memcpy(copy, bytes.data, bytes.size);
        for (uint32_t k = 0; k <= round % 4; k++) {
            uint64_t r = tn_mix(round * 8 + k);
            copy[128 + r % (bytes.size - 128)] = (char)(r >> 32);
        }
        uint32_t crc = tn_crc32c(0, copy, 124);
        memcpy(copy + 124, &crc, sizeof crc);
        put_file(f, copy, bytes.size);
        noticed += !survives(f, TN_VERIFY_NONE);
    }
    assert_in_range(noticed, 1, 2999);
}
