/* test_json_cursor.c - a walk over JSON: values as they are written, faults, values on one line. */
#include "extra/http/json_cursor.h"
#include "support/test.h"

static tn_json_cursor cursor(const char *text)
{
    return tn_json_cursor_of(text, strlen(text));
}

/* "key=value;" for each member of an object; then the fault. */
static const char *members(const char *text)
{
    static char out[500];
    tn_json_cursor c = cursor(text);
    tn_json_span value;
    tn_bytes key;
    tn_error err = {0};
    int n = 0;
    bool more = tn_json_cursor_enter(&c, '{');
    while (more && tn_json_cursor_member(&c, &key)) {
        more = tn_json_cursor_value(&c, &value);
        n += snprintf(out + n, sizeof out - (size_t)n, "%.*s=%.*s;", (int)key.size, key.data,
                      (int)value.size, value.data != NULL ? value.data : "");
    }
    const tn_status status = tn_json_cursor_check(&c, "it", &err);
    (void)snprintf(out + n, sizeof out - (size_t)n, "%s", status == TN_OK ? "." : err.text);
    return out;
}

TEST(members_are_found_with_their_values)
{
    assert_string_equal(members("{}"), ".");
    assert_string_equal(members(" {\"a\" : 1 ,\n\"b\":[1, {\"c\":\"]}\"}]}\r\n"),
                        "a=1;b=[1, {\"c\":\"]}\"}];.");
    assert_string_equal(members("{\"a\":NaN,\"q\\\"\":\"x\\\\\"}"), "a=NaN;q\\\"=\"x\\\\\";.");
}

TEST(faults_name_their_byte)
{
    static const char *const pairs[][2] = {
        {"", "byte 1: expected '{'"},
        {"[1]", "byte 1: expected '{'"},
        {"{\"a\":1", "byte 7: expected ',' or '}'"},
        {"{\"a\":1 \"b\":2}", "byte 8: expected ',' or '}'"},
        {"{\"a\" 1}", "byte 6: expected ':'"},
        {"{a:1}", "byte 2: expected a key in quotes"},
        {"{\"a\":[1,2}", "byte 10: a bracket that was not opened"},
        {"{\"a\":\"x", "byte 8: the text ends within quotes"},
        {"{\"a\":}", "byte 6: a bracket that was not opened"},
        {"{\"a\":,1}", "expected a value"},
        {"{} x", "byte 4: expected its end"},
        {"{\"a\":{\"b\":[", "the text ends within"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_says(members(pairs[i][0]), pairs[i][1]);
        assert_says(members(pairs[i][0]), "it is no JSON: ");
    }
}

TEST(nesting_has_a_limit)
{
    char text[200] = "{\"a\":";
    memset(text + 5, '[', 100);
    text[105] = '\0';
    assert_says(members(text), "nested deeper than 64");
}

TEST(a_nul_ends_no_body)
{
    tn_json_cursor c = tn_json_cursor_of("{}\0{}", 5);
    tn_bytes key;
    tn_error err = {0};
    assert_true(tn_json_cursor_enter(&c, '{'));
    assert_false(tn_json_cursor_member(&c, &key));
    assert_int_equal(tn_json_cursor_check(&c, "it", &err), TN_E_DATA);
}

TEST(scalars_are_found_in_nested_lists)
{
    tn_json_cursor c = cursor("[[1, \"a\"], [], [[-2.5]]]");
    char all[100] = "";
    tn_json_span value;
    while (tn_json_cursor_scalar(&c, &value)) {
        (void)snprintf(all + strlen(all), sizeof all - strlen(all), "%.*s ", (int)value.size,
                       value.data);
    }
    assert_string_equal(all, "1 \"a\" -2.5 ");
}

/* A value on one line; "fault" where it cannot be. */
static const char *flat(const char *text)
{
    static char out[200];
    tn_text line CLEANUP(tn_text_done) = {0};
    tn_json_cursor c = cursor(text);
    tn_json_span value;
    tn_error err = {0};
    assert_true(tn_json_cursor_value(&c, &value));
    const tn_status status = tn_json_flatten(&value, &line, &err);
    (void)snprintf(out, sizeof out, "%s", status == TN_OK ? tn_text_str(&line) : "fault");
    return out;
}

TEST(line_ends_between_values_become_blanks)
{
    assert_string_equal(flat("{\n \"a\": [1,\r\n2]}"), "{  \"a\": [1,  2]}");
    assert_string_equal(flat("{\"a\":1}"), "{\"a\":1}");
}

TEST(bytes_in_base_64_become_texts)
{
    assert_string_equal(flat("{\"b64\":\"aGk=\"}"), "\"hi\"");
    assert_string_equal(flat("{\"a\": {\"b64\": \"IlwK\"}, \"b\": 1}"),
                        "{\"a\": \"\\\"\\\\\\u000a\", \"b\": 1}");
    assert_string_equal(flat("{\"b64\":\"a\"}"), "fault");
    assert_string_equal(flat("{\"b64\":\"a*b=\"}"), "fault");
    assert_string_equal(flat("{\"b64\":\"aGk=\",\"c\":1}"), "{\"b64\":\"aGk=\",\"c\":1}");
}
