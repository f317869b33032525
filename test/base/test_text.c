/* test_text.c - appending, the ceiling, failures that are remembered. */
#include "base/core/bytes.h"
#include "base/core/text.h"
#include "support/test.h"

TEST(everything_appended_stands_there_in_order)
{
    tn_text t = {0};
    tn_text_adds(&t, "a");
    tn_text_addc(&t, '-');
    tn_text_addf(&t, "%s %d", "x", -3);
    tn_text_add(&t, "\0z", 2);
    tn_text_add_u64(&t, UINT64_MAX);
    tn_text_add_u64(&t, 0);
    const char expected[] = "a-x -3\0z184467440737095516150";
    assert_int_equal(t.size, sizeof expected - 1);
    assert_memory_equal(t.data, expected, sizeof expected);
    assert_int_equal(tn_text_check(&t, "text", NULL), TN_OK);
    tn_text_done(&t);
    assert_null(t.data);
    tn_text_adds(&t, "again");
    assert_string_equal(tn_text_str(&t), "again");
    tn_text_done(&t);
}

TEST(numbers_are_written_little_endian)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_text_add_u16(&t, 0x0102);
    tn_text_add_u32le(&t, 0x03040506);
    tn_text_add_u64le(&t, UINT64_C(0x0708090a0b0c0d0e));
    tn_text_add_f32le(&t, -2);
    const unsigned char expected[] = {2,    1,    6, 5, 4, 3, 0x0e, 0x0d, 0x0c,
                                      0x0b, 0x0a, 9, 8, 7, 0, 0,    0,    0xc0};
    assert_int_equal(t.size, sizeof expected);
    assert_memory_equal(t.data, expected, sizeof expected);
}

TEST(a_long_text_grows_and_keeps_its_bytes)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < 20000; i++) {
        tn_text_addf(&t, "%05u,", i);
    }
    assert_int_equal(t.size, 120000);
    for (uint32_t i = 0; i < 20000; i += 777) {
        char expected[8];
        (void)snprintf(expected, sizeof expected, "%05u,", i);
        assert_memory_equal(t.data + 6 * (size_t)i, expected, 6);
    }
}

TEST(a_formatted_piece_longer_than_the_room_is_written_whole)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    for (int width = 200; width < 600; width += 7) {
        tn_text_clear(&t);
        tn_text_addf(&t, "%*d", width, 5);
        assert_int_equal(t.size, width);
        assert_int_equal(t.data[width - 1], '5');
        assert_int_equal(t.data[width], 0);
    }
}

TEST(the_ceiling_is_exact_and_its_breach_is_remembered)
{
    tn_text t = {.size_max = 10};
    tn_text_adds(&t, "12345");
    tn_text_addf(&t, "%d", 67890);
    assert_int_equal(tn_text_check(&t, "text", NULL), TN_OK);
    tn_text_addf(&t, "%d", 1);
    tn_text_clear(&t);
    tn_text_adds(&t, "1234567");
    tn_text_addf(&t, "%d", 1234); /* fits the memory, not the ceiling */
    tn_text_adds(&t, "x");        /* ignored */
    assert_string_equal(t.data, "1234567");
    tn_error err = {0};
    assert_int_equal(tn_text_check(&t, "MANIFEST", &err), TN_E_LIMIT);
    assert_string_equal(err.text, "too large: 'MANIFEST' has more than 10 bytes");
    assert_null(tn_text_grow(&t, 1));
    tn_text_clear(&t);
    tn_text_adds(&t, "ok");
    assert_int_equal(tn_text_check(&t, "text", NULL), TN_OK);
    tn_text_done(&t);
    assert_int_equal(t.size_max, 10);
}

TEST(no_memory_is_reported_at_the_end)
{
    tn_text t = {0};
    tn_text_adds(&t, "kept");
    tn_alloc_fail_at(1);
    for (int i = 0; i < 1000; i++) {
        tn_text_adds(&t, "more");
    }
    tn_error err = {0};
    assert_int_equal(tn_text_check(&t, "text", &err), TN_E_MEMORY);
    assert_memory_equal(t.data, "keptmore", 8);
    tn_text_done(&t);
    tn_alloc_fail_at(1);
    tn_text_addf(&t, "%d", 1);
    assert_string_equal(tn_text_str(&t), "");
    assert_int_equal(tn_text_check(&t, "text", &err), TN_E_MEMORY);
    tn_text_done(&t);
}

TEST(a_reader_stops_at_the_end_and_says_so)
{
    tn_bytes in = {"\x01\x02\x03\x04\x05\x06\x07", 7, false};
    assert_int_equal(tn_get_u32(&in), 0x04030201);
    assert_int_equal(tn_get_u16(&in), 0x0605);
    assert_false(in.failed);
    assert_int_equal(tn_get_u32(&in), 0);
    assert_true(in.failed);
    assert_int_equal(tn_get_u8(&in), 0);
    assert_null(tn_get(&in, 0));
}
