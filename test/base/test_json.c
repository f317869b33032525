/* test_json.c - JSON written, read, and refused. */
#include "base/codec/json.h"
#include "support/mallocs.h"
#include "support/test.h"

static tn_arena *arena;

static int new_arena(void **state)
{
    (void)state;
    arena = tn_arena_new(4096);
    return 0;
}

static int free_arena(void **state)
{
    (void)state;
    tn_arena_free(arena);
    return 0;
}

static const tn_json *parsed(const char *text)
{
    const tn_json *root = NULL;
    tn_error err = {0};
    tn_status status = tn_json_parse(&root, text, strlen(text), arena, "x.json", &err);
    fail_if(status != TN_OK, "%s: %s", text, err.text);
    return root;
}

static void is_refused(const char *text, size_t size, const char *problem)
{
    const tn_json *root = NULL;
    tn_error err = {0};
    assert_int_equal(tn_json_parse(&root, text, size, arena, "x.json", &err), TN_E_CKPT);
    assert_null(root);
    assert_says(err.text, problem);
}

TEST(members_are_written_in_order_without_blanks)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_json_open(&t, '{');
    tn_json_str(&t, "format", "tnet-model");
    tn_json_open_key(&t, "version", '[');
    tn_json_u64(&t, NULL, 1);
    tn_json_u64(&t, NULL, 0);
    tn_json_close(&t, ']');
    tn_json_str(&t, "base", NULL);
    tn_json_hex64(&t, "run_id", UINT64_C(0x0102030405060708));
    tn_json_count(&t, "samples", UINT64_MAX);
    tn_json_bool(&t, "train", true);
    tn_json_f64(&t, "lr", .001);
    tn_json_f32(&t, "w", .1F);
    tn_json_f64(&t, "auc", (double)NAN);
    tn_json_f32(&t, "inf", (float)INFINITY);
    tn_json_open_key(&t, "rows", '[');
    tn_json_open(&t, '{');
    tn_json_close(&t, '}');
    tn_json_open(&t, '[');
    tn_json_close(&t, ']');
    tn_json_raw(&t, NULL, "{\"a\":1}");
    tn_json_close(&t, ']');
    tn_json_close(&t, '}');
    assert_string_equal(
        tn_text_str(&t),
        "{\"format\":\"tnet-model\",\"version\":[1,0],\"base\":null,\"run_id\":"
        "\"0102030405060708\","
        "\"samples\":\"18446744073709551615\",\"train\":true,\"lr\":0.001,\"w\":0.1,\"auc\":null,"
        "\"inf\":null,\"rows\":[{},[],{\"a\":1}]}");
}

TEST(a_second_line_starts_without_a_comma)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    for (int i = 0; i < 2; i++) {
        tn_json_open(&t, '{');
        tn_json_bool(&t, "a", false);
        tn_json_close(&t, '}');
        tn_text_addc(&t, '\n');
    }
    assert_string_equal(tn_text_str(&t), "{\"a\":false}\n{\"a\":false}\n");
}

TEST(strings_are_escaped_and_bad_utf8_replaced)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_json_str(&t, NULL, "\"\\/\b\f\n\r\t\x01\x1f\x7f \xe4\xb8\xad \xf0\x9f\x98\x80");
    assert_string_equal(tn_text_str(&t), "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f "
                                         "\xe4\xb8\xad \xf0\x9f\x98\x80\"");
    tn_text_clear(&t);
    tn_json_str(&t, NULL, "a\x80|\xc0\xaf|\xe4\xb8|\xed\xa0\x80|\xf4\x90\x80\x80|\xff");
#define BAD "\xef\xbf\xbd"
    assert_string_equal(tn_text_str(&t), "\"a" BAD "|" BAD BAD "|" BAD BAD "|" BAD BAD BAD
                                         "|" BAD BAD BAD BAD "|" BAD "\"");
}

TEST(golden_crc_member)
{
    const char golden[] =
        "{\"format\":\"tnet-checkpoint\",\"version\":[1,0],\"crc32c\":\"5364139a\"}\n";
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_json_open(&t, '{');
    tn_json_str(&t, "format", "tnet-checkpoint");
    tn_json_open_key(&t, "version", '[');
    tn_json_u64(&t, NULL, 1);
    tn_json_u64(&t, NULL, 0);
    tn_json_close(&t, ']');
    tn_json_close_with_crc(&t);
    assert_string_equal(tn_text_str(&t), golden);
    assert_int_equal(tn_json_check_crc(t.data, t.size, "MANIFEST", NULL), TN_OK);
    for (size_t cut = 0; cut < t.size; cut++) {
        assert_int_equal(tn_json_check_crc(t.data, cut, "MANIFEST", NULL), TN_E_CKPT);
    }
    tn_error err = {0};
    t.data[3]++;
    assert_int_equal(tn_json_check_crc(t.data, t.size, "MANIFEST", &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "damaged 'MANIFEST' (crc 5364139a, computed "));
    tn_text_clear(&t);
    tn_json_open(&t, '{');
    tn_json_close_with_crc(&t);
    assert_int_equal(t.size, 22);
    assert_int_equal(tn_json_check_crc(t.data, t.size, "MANIFEST", NULL), TN_OK);
}

TEST_WITH(new_arena, free_arena, values_of_every_kind_are_read)
{
    const char text[] = " {\"a\" : [1, -2.5e3 ,\"x\"],\t\"b\":{},\r\n\"c\":null,\"d\":true,"
                        "\"e\":false,\"f\":[]} \n";
    const tn_json *root = parsed(text);
    assert_int_equal(root->kind, TN_JSON_OBJECT);
    assert_int_equal(root->n, 6);
    const tn_json *a = tn_json_get(root, "a");
    assert_int_equal(a->n, 3);
    assert_true(a->first->next->number == -2500);
    assert_string_equal(a->first->next->string, "-2.5e3");
    assert_string_equal(tn_json_as_str(a->first->next->next), "x");
    assert_null(a->first->next->next->next);
    assert_int_equal(text[a->begin], '[');
    assert_int_equal(text[a->end - 1], ']');
    assert_int_equal(text[root->begin], '{');
    assert_int_equal(text[root->end - 1], '}');
    assert_int_equal(tn_json_get(root, "c")->kind, TN_JSON_NULL);
    assert_true(tn_json_get(root, "d")->boolean);
    assert_false(tn_json_get(root, "e")->boolean);
    assert_int_equal(tn_json_get(root, "f")->n, 0);
    assert_null(tn_json_get(root, "g"));
    assert_true(parsed("-0.5")->number == -.5);
}

TEST_WITH(new_arena, free_arena, escapes_are_decoded)
{
    const tn_json *s = parsed("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u4e2d\\uD83D\\uDE00\"");
    assert_string_equal(s->string, "\"\\/\b\f\n\r\tA\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80");
}

TEST_WITH(new_arena, free_arena, what_is_no_json_is_refused_with_its_place)
{
    const char *const bad[][2] = {
        {"", "expected a value at byte 0 of 'x.json'"},
        {"{", "expected a string at byte 1"},
        {"[1,]", "expected a value at byte 3"},
        {"[1 2]", "expected a ',' or ']' at byte 3"},
        {"{\"a\":1 \"b\":2}", "expected a ',' or '}' at byte 7"},
        {"{\"a\" 1}", "expected a ':' at byte 5"},
        {"{a:1}", "expected a string"},
        {"{\"a\":1,}", "expected a string"},
        {"\"abc", "string without end"},
        {"\"abc\\\"", "string without end"},
        {"\"\\x\"", "unknown escape"},
        {"\"\\u12g4\"", "four hex digits"},
        {"\"\\ud800\"", "lone surrogate"},
        {"\"\\udc00\\ud800\"", "lone surrogate"},
        {"\"\\ud800\\u0041\"", "lone surrogate"},
        {"\"\\u0000\"", "NUL in a string"},
        {"\"a\nb\"", "control character"},
        {"\"\xc0\x80\"", "invalid UTF-8"},
        {"{\"\xff\":1}", "invalid UTF-8"},
        {"01", "something behind the value at byte 1"},
        {"1.", "malformed number"},
        {".5", "expected a value"},
        {"-", "malformed number"},
        {"+1", "expected a value"},
        {"1e", "malformed number"},
        {"1e400", "number too large"},
        {"nan", "expected a value"},
        {"tru", "expected a value"},
        {"nullx", "something behind"},
        {"{} {}", "something behind"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "duplicate member 'a' of 'x.json'"},
        {"{\"a\":1,\"\\u0061\":3}", "duplicate member 'a'"},
        {"[1]]", "something behind"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        is_refused(bad[i][0], strlen(bad[i][0]), bad[i][1]);
    }
    is_refused("1\0", 2, "something behind");
    is_refused("\"a\0b\"", 5, "control character");
    is_refused("[1,\0]", 5, "expected a value");
}

TEST_WITH(new_arena, free_arena, thirty_two_levels_are_read_and_no_more)
{
    char text[2 * 33 + 1] = {0};
    memset(text, '[', 32);
    memset(text + 32, ']', 32);
    assert_int_equal(parsed(text)->n, 1);
    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    is_refused(text, 66, "nested more than 32 deep");
    assert_int_equal(parsed("[[[]],[[]],[[]],[[]],[[]],[[]],[[]],[[]],[[]],[[]],[[]],[[]]]")->n,
                     12);
}

/* `text` n times between `head` and `tail`, parsed into an arena with hardly any room. */
static void is_parsed_in_one_piece(const char *head, const char *text, const char *tail)
{
    tn_text doc CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    const tn_json *root = NULL;
    tn_text_adds(&doc, head);
    for (size_t i = 0; i < 1000; i++) {
        tn_text_adds(&doc, text);
    }
    tn_text_adds(&doc, tail);
    tn_arena *small FREED(tn_arena_free) = tn_arena_new(64);
    uint64_t before = tn_mallocs();
    assert_int_equal(tn_json_parse(&root, doc.data, doc.size, small, "test", &err), TN_OK);
    assert_in_range(tn_mallocs() - before, 0, 1); /* under sanitizers none are counted */
    tn_alloc_fail_at(1);
    assert_int_equal(tn_json_parse(&root, doc.data, doc.size, small, "test", &err), TN_E_MEMORY);
    tn_alloc_fail_at(0);
}

TEST(memory_for_a_tree_is_asked_for_once_and_may_be_missing)
{
    is_parsed_in_one_piece("[", "1,", "1]");
    is_parsed_in_one_piece("[", "\"\",", "[]]");
    is_parsed_in_one_piece("[", "[[]],", "0]");
    is_parsed_in_one_piece("[", "{\"a\":1},", "{}]");
    is_parsed_in_one_piece("[", "{\"a\":\"\\u00e4\"},", "null]");
    is_parsed_in_one_piece("{\"", "long", "\":-1.5e-300}");
}

TEST_WITH(new_arena, free_arena, a_duplicate_among_many_members_is_found)
{
    enum { MEMBERS = 5000 };
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_json_open(&t, '{');
    for (unsigned i = 0; i < MEMBERS; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%u", i);
        tn_json_u64(&t, key, i);
    }
    size_t size = t.size;
    tn_json_close(&t, '}');
    const tn_json *root = parsed(t.data);
    assert_int_equal(root->n, MEMBERS);
    assert_true(tn_json_get(root, "k4999")->number == 4999);
    t.size = size;
    tn_json_u64(&t, "k1234", 0);
    tn_json_close(&t, '}');
    is_refused(t.data, t.size, "duplicate member 'k1234'");
    const tn_json *none = NULL;
    tn_alloc_fail_at(1);
    assert_int_equal(tn_json_parse(&none, t.data, t.size, arena, "x.json", NULL), TN_E_MEMORY);
}

TEST_WITH(new_arena, free_arena, accessors_accept_anything)
{
    const tn_json *root = parsed(
        "{\"n\":12,\"s\":\"18446744073709551615\",\"h\":\"00000000000000ff\",\"neg\":-1,\"f\":1.5,"
        "\"e\":1e3,\"big\":18446744073709551616,\"l\":[1],\"z\":null,\"t\":\"12x\",\"b\":true}");
    uint64_t u = 77;
    double f = 77;
    const char *not_u64[] = {"neg", "f", "big", "l", "z", "t", "b", "absent"};
    for (size_t i = 0; i < sizeof not_u64 / sizeof not_u64[0]; i++) {
        assert_false(tn_json_as_u64(tn_json_get(root, not_u64[i]), &u));
    }
    assert_int_equal(u, 77);
    assert_true(tn_json_as_u64(tn_json_get(root, "n"), &u) && u == 12);
    assert_true(tn_json_as_u64(tn_json_get(root, "e"), &u) && u == 1000);
    assert_true(tn_json_as_u64(tn_json_get(root, "s"), &u) && u == UINT64_MAX);
    assert_false(tn_json_as_f64(tn_json_get(root, "s"), &f));
    assert_false(tn_json_as_f64(tn_json_get(root, "z"), &f));
    assert_true(tn_json_as_f64(tn_json_get(root, "f"), &f) && f == 1.5);
    assert_null(tn_json_as_str(tn_json_get(root, "n")));
    assert_null(tn_json_as_str(NULL));
    assert_null(tn_json_get(NULL, "a"));
    assert_null(tn_json_get(tn_json_get(root, "l"), "a"));
    assert_false(tn_json_as_u64(NULL, &u) || tn_json_as_f64(NULL, &f));
}

TEST_WITH(new_arena, free_arena, any_prefix_and_any_flip_ends_in_a_tree_or_a_failure)
{
    const char text[] = "{\"a\":[1,-2.5e-3,\"x\\n\\u00e9\\ud83d\\ude00\"],\"b\":{\"c\":null},"
                        "\"\xe4\xb8\xad\":true}";
    enum { SIZE = sizeof text - 1 };
    const tn_json *root = NULL;
    for (size_t cut = 0; cut < SIZE; cut++) {
        char exact[SIZE];
        char *at = exact + SIZE - cut;
        memcpy(at, text, cut);
        assert_int_equal(tn_json_parse(&root, at, cut, arena, "x.json", NULL), TN_E_CKPT);
    }
    for (uint64_t i = 0; i < 20000; i++) {
        char flipped[SIZE];
        memcpy(flipped, text, SIZE);
        uint64_t x = tn_draw(5, i);
        flipped[x % SIZE] = (char)(x >> 32);
        flipped[(x >> 16) % SIZE] = (char)(x >> 40);
        tn_status status = tn_json_parse(&root, flipped, SIZE, arena, "x.json", NULL);
        assert_true(status == TN_OK || status == TN_E_CKPT);
        tn_arena_free(arena);
        arena = tn_arena_new(1 << 12);
    }
}

TEST_WITH(new_arena, free_arena, items_are_found_by_place)
{
    static const char text[] = "{\"list\":[1,2,3],\"map\":{\"a\":1}}";
    const tn_json *top = NULL;
    uint64_t value = 0;
    assert_int_equal(tn_json_parse(&top, text, strlen(text), arena, "x", NULL), TN_OK);
    const tn_json *list = tn_json_get(top, "list");
    assert_true(tn_json_as_u64(tn_json_item(list, 2), &value) && value == 3);
    assert_null(tn_json_item(list, 3));
    assert_null(tn_json_item(NULL, 0));
    assert_null(tn_json_item(tn_json_get(top, "map"), 0));
}
