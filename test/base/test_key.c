/* test_key.c - vectors of docs/formats.md, section 4. */
#include "base/keys/keyset.h"
#include "base/math/key.h"
#include "support/test.h"

TEST(golden_xxh64)
{
    const struct {
        const char *text;
        uint64_t seed;
        uint64_t hash;
    } vector[] = {
        {"", 0, UINT64_C(0xef46db3751d8e999)},
        {"a", 0, UINT64_C(0xd24ec4f1a98c6e5b)},
        {"68fd1e64", 0, UINT64_C(0x5d3ccd85c9c22fe4)},
        {"\xe4\xb8\xad", 0, UINT64_C(0x8a90d911229e52c9)},
        {"abc", 0, UINT64_C(0x44bc2cf5ad770999)},
        {"abc", 1, UINT64_C(0xbea9ca8199328908)},
        {"0123456789abcdef0123456789abcdef", 0, UINT64_C(0x642a94958e71e6c5)},
    };
    for (size_t i = 0; i < sizeof vector / sizeof vector[0]; i++) {
        assert_int_equal(tn_xxh64(vector[i].text, strlen(vector[i].text), vector[i].seed),
                         vector[i].hash);
    }
    unsigned char bytes[101];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)i;
    }
    assert_int_equal(tn_xxh64(bytes, sizeof bytes, 0), UINT64_C(0xe99038495f85381e));
}

TEST(xxh64_does_not_depend_on_where_the_bytes_lie)
{
    unsigned char room[128];
    for (size_t size = 0; size < 100; size++) {
        unsigned char aligned[128];
        for (size_t i = 0; i < size; i++) {
            aligned[i] = (unsigned char)(7 * i + size);
        }
        uint64_t expected = tn_xxh64(aligned, size, 3);
        for (size_t at = 0; at < 8; at++) {
            memcpy(room + at, aligned, size);
            assert_int_equal(tn_xxh64(room + at, size, 3), expected);
        }
    }
}

TEST(golden_mix_and_back)
{
    assert_int_equal(tn_mix(1), UINT64_C(0x5692161d100b05e5));
    uint64_t x = 0;
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(tn_unmix(tn_mix(x)), x);
        assert_int_equal(tn_mix(tn_unmix(x)), x);
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    }
}

TEST(golden_table_keys)
{
    const struct {
        const char *group;
        uint64_t salt, sign, key;
        uint32_t partition;
    } vector[] = {
        {"C1", UINT64_C(0x1b1aa2e0df451f4d), 0, UINT64_C(0x2f48dccdbed5e544), 189},
        {"C1", UINT64_C(0x1b1aa2e0df451f4d), 1, UINT64_C(0x92aaad35a1c6c079), 586},
        {"C1", UINT64_C(0x1b1aa2e0df451f4d), 0x68fd1e64, UINT64_C(0xe9cf42eea5831d4b), 935},
        {"C2", UINT64_C(0x363cb755ab2c9022), 1, UINT64_C(0x2d2889649ebdd72b), 180},
        {"user", UINT64_C(0x3da0fd9c44cfc9ee), UINT64_MAX, UINT64_C(0x48ed4d7af69bb9b8), 291},
    };
    for (size_t i = 0; i < sizeof vector / sizeof vector[0]; i++) {
        assert_int_equal(tn_salt(vector[i].group), vector[i].salt);
        uint64_t key = tn_key_of(vector[i].sign, vector[i].salt);
        assert_int_equal(key, vector[i].key);
        assert_int_equal(tn_sign_of(key, vector[i].salt), vector[i].sign);
        assert_int_equal(tn_partition_of(key, TN_PARTITIONS), vector[i].partition);
    }
}

TEST(a12_ids_beyond_2_24_and_2_53_stay_distinct)
{
    const uint64_t ids[] = {(1U << 24) + 1, (UINT64_C(1) << 53) + 1, UINT64_MAX};
    uint64_t salt = tn_salt("user");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tn_sign_of(tn_key_of(ids[i], salt), salt), ids[i]);
        assert_int_not_equal(tn_key_of(ids[i], salt), tn_key_of(ids[i] - 1, salt));
    }
}

TEST(r1_small_ids_are_even_over_the_partitions)
{
    enum { IDS = 100000 };
    static uint32_t count[TN_PARTITIONS];
    uint64_t salt = tn_salt("user");
    for (uint64_t id = 1; id <= IDS; id++) {
        count[tn_partition_of(tn_key_of(id, salt), TN_PARTITIONS)]++;
    }
    for (uint32_t i = 0; i < TN_PARTITIONS; i++) { /* mean 97.7, deviation 9.9 */
        assert_in_range(count[i], 50, 150);
    }
}

TEST(r2_equal_ids_of_two_groups_are_different_keys)
{
    assert_int_not_equal(tn_key_of(7, tn_salt("C1")), tn_key_of(7, tn_salt("C2")));
}
