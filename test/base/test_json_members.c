/* test_json_members.c - members of hostile JSON: right ones are read, the first wrong one is named.
 */
#include "base/codec/json_members.h"
#include "support/test.h"

#include <string.h>

static const char text[] =
    "{\"n\":7,\"s\":\"18446744073709551615\",\"big\":4294967296,\"hex\":\"00ff00ff00ff00ff\","
    "\"crc\":\"d06f75ab\",\"CRC\":\"D06F75AB\",\"x\":-0.5,\"yes\":true,\"word\":\"abc\",\"null\":"
    "null,"
    "\"sha\":\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","
    "\"list\":[1,2,3],\"map\":{\"a\":1}}";

typedef struct fixture {
    tn_arena *arena;
    const tn_json *top;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f.arena = tn_arena_new(1 << 12);
    *state = &f;
    return tn_json_parse(&f.top, text, sizeof text - 1, f.arena, "test", NULL) == TN_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    const fixture *f = *state;
    tn_arena_free(f->arena);
    return 0;
}

static void right_members_are_read(void **state)
{
    const fixture *f = *state;
    tn_members r = {.arena = f->arena};
    assert_int_equal(tn_member_u64(&r, f->top, "n", 7), 7);
    assert_true(tn_member_u64(&r, f->top, "s", UINT64_MAX) == UINT64_MAX);
    assert_int_equal(tn_member_u32(&r, f->top, "n", UINT32_MAX), 7);
    assert_true(tn_member_hex(&r, f->top, "hex") == UINT64_C(0x00ff00ff00ff00ff));
    assert_int_equal(tn_member_crc(&r, f->top, "crc"), 0xd06f75ab);
    assert_true(tn_member_f64(&r, f->top, "x") == -0.5);
    assert_true(tn_member_bool(&r, f->top, "yes"));
    assert_string_equal(tn_member_str(&r, f->top, "word"), "abc");
    assert_int_equal(strlen(tn_member_sha(&r, f->top, "sha")), 64);
    assert_int_equal(tn_member_list(&r, f->top, "list", 3)->n, 3);
    assert_int_equal(tn_member_object(&r, f->top, "map", 1)->n, 1);
    assert_null(r.wrong);
}

/* Each of these is one fault: what is returned is harmless, and the member is named. */
static void wrong_members_are_harmless_and_named(void **state)
{
    const fixture *f = *state;
    enum { OBJECTS = 3 };
    const tn_json *const objects[OBJECTS] = {f->top, NULL, tn_json_get(f->top, "n")};
    for (size_t i = 0; i < OBJECTS; i++) {
        const tn_json *o = objects[i];
        tn_members r = {.arena = f->arena};
#define CHECK(call, member, harmless)                                                              \
    do {                                                                                           \
        r.wrong = NULL;                                                                            \
        assert_true((call) == (harmless));                                                         \
        assert_string_equal(r.wrong, member);                                                      \
    } while (0)
        CHECK(tn_member_u64(&r, o, "n", 6), "n", 0);
        CHECK(tn_member_u64(&r, o, "x", 6), "x", 0);
        CHECK(tn_member_u64(&r, o, "none", UINT64_MAX), "none", 0);
        CHECK(tn_member_u32(&r, o, "big", UINT32_MAX), "big", 0);
        CHECK(tn_member_hex(&r, o, "crc"), "crc", 0);
        CHECK(tn_member_crc(&r, o, "CRC"), "CRC", 0);
        CHECK(tn_member_crc(&r, o, "hex"), "hex", 0);
        CHECK(tn_member_crc(&r, o, "n"), "n", 0);
        CHECK(tn_member_f64(&r, o, "word"), "word", 0);
        CHECK(tn_member_bool(&r, o, "n"), "n", false);
        CHECK(tn_member_str(&r, o, "null")[0], "null", '\0');
        CHECK(tn_member_list(&r, o, "list", 2)->n, "list", 0);
        CHECK(tn_member_list(&r, o, "map", 9)->n, "map", 0);
        CHECK(tn_member_object(&r, o, "list", 9)->n, "list", 0);
        r.wrong = NULL;
        (void)tn_member_sha(&r, o, "hex");
        assert_string_equal(r.wrong, "hex");
    }
}

static void the_first_fault_is_the_one_to_tell(void **state)
{
    const fixture *f = *state;
    tn_members r = {.arena = f->arena};
    tn_member_spoil(&r, "own");
    (void)tn_member_u64(&r, f->top, "none", 1);
    assert_string_equal(r.wrong, "own");
}

static void items_are_found_by_place(void **state)
{
    const fixture *f = *state;
    const tn_json *list = tn_json_get(f->top, "list");
    uint64_t value = 0;
    assert_true(tn_json_as_u64(tn_json_item(list, 2), &value) && value == 3);
    assert_null(tn_json_item(list, 3));
    assert_null(tn_json_item(NULL, 0));
    assert_null(tn_json_item(tn_json_get(f->top, "map"), 0));
}

#define WITH_JSON(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_JSON(right_members_are_read),
        WITH_JSON(wrong_members_are_harmless_and_named),
        WITH_JSON(the_first_fault_is_the_one_to_tell),
        WITH_JSON(items_are_found_by_place),
    };
    return cmocka_run_group_tests_name("base/members", tests, NULL, NULL);
}
