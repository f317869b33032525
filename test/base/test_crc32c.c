/* test_crc32c.c - vectors of docs/formats.md; the CPU and the tables agree. */
#include "base/math/crc32c.h"
#include "support/test.h"

TEST(golden_crc)
{
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

TEST(golden_mask)
{
    assert_int_equal(tn_crc_mask(0xe3069283), 0xc78ab0e5);
    assert_int_equal(tn_crc_mask(tn_crc32c(0, "\0\0\0\0\0\0\0\0", 8)), 0x07980329);
    assert_int_equal(tn_crc_mask(tn_crc32c(0, "", 0)), 0xa282ead8);
    assert_int_equal(tn_crc_mask(tn_crc32c(0, "\4\0\0\0\0\0\0\0", 8)), 0x04524542);
    assert_int_equal(tn_crc_mask(tn_crc32c(0, "TNet", 4)), 0x29375441);
}

TEST(pieces_give_the_crc_of_the_whole)
{
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

TEST(a11_cpu_and_tables_agree_at_every_length_and_place)
{
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
TEST(three_runs_side_by_side_give_the_crc_of_one)
{
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
