/* test_crc32c.c - vectors of docs/formats.md; the CPU and the tables agree. */
#include "base/math/crc32c.h"
#include "base/math/rng.h"
#include "support/test.h"

static void golden_crc(void **state)
{
    (void)state;
    unsigned char zeros[32] = {0};
    unsigned char rising[32];
    for (size_t i = 0; i < sizeof rising; i++) {
        rising[i] = (unsigned char)i;
    }
    assert_int_equal(tn_crc32c(0, "", 0), 0);
    assert_int_equal(tn_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(tn_crc32c(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(tn_crc32c(0, rising, 32), 0x46dd794e);
    assert_int_equal(tn_crc32c_portable(0, "123456789", 9), 0xe3069283);
    assert_int_equal(tn_crc32c_portable(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(tn_crc32c_portable(0, rising, 32), 0x46dd794e);
}

static void golden_mask(void **state)
{
    (void)state;
    assert_int_equal(tn_crc_mask(0xe3069283), 0xc78ab0e5);
    assert_int_equal(tn_crc_mask(tn_crc32c(0, "\0\0\0\0\0\0\0\0", 8)), 0x07980329);
    assert_int_equal(tn_crc_mask(tn_crc32c(0, "", 0)), 0xa282ead8);
    assert_int_equal(tn_crc_mask(tn_crc32c(0, "\4\0\0\0\0\0\0\0", 8)), 0x04524542);
    assert_int_equal(tn_crc_mask(tn_crc32c(0, "TNet", 4)), 0x29375441);
}

static void pieces_give_the_crc_of_the_whole(void **state)
{
    (void)state;
    unsigned char data[300];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)tn_draw(1, i);
    }
    uint32_t whole = tn_crc32c(0, data, sizeof data);
    for (size_t cut = 0; cut <= sizeof data; cut++) {
        uint32_t front = tn_crc32c(0, data, cut);
        assert_int_equal(tn_crc32c(front, data + cut, sizeof data - cut), whole);
        front = tn_crc32c_portable(0, data, cut);
        assert_int_equal(tn_crc32c_portable(front, data + cut, sizeof data - cut), whole);
    }
}

static void a11_cpu_and_tables_agree_at_every_length_and_place(void **state)
{
    (void)state;
    unsigned char data[96];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)tn_draw(2, i);
    }
    for (size_t at = 0; at < 9; at++) {
        for (size_t size = 0; size <= 80; size++) {
            assert_int_equal(tn_crc32c(99, data + at, size),
                             tn_crc32c_portable(99, data + at, size));
        }
    }
}

/* Long runs are cut in three, whose crcs meet again; every length up to where all cuts occur. */
static void three_runs_side_by_side_give_the_crc_of_one(void **state)
{
    (void)state;
    static unsigned char data[5000];
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)tn_draw(3, i);
    }
    for (size_t size = 81; size <= sizeof data; size += size < 2000 ? 1 : 37) {
        uint32_t seed = (uint32_t)tn_draw(4, size);
        const unsigned char *at = data + (sizeof data - size);
        assert_int_equal(tn_crc32c(seed, at, size), tn_crc32c_portable(seed, at, size));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_crc),
        cmocka_unit_test(golden_mask),
        cmocka_unit_test(pieces_give_the_crc_of_the_whole),
        cmocka_unit_test(a11_cpu_and_tables_agree_at_every_length_and_place),
        cmocka_unit_test(three_runs_side_by_side_give_the_crc_of_one),
    };
    return cmocka_run_group_tests_name("base/crc32c", tests, NULL, NULL);
}
