/* test_document.c - a table writes a struct as JSON, reads it back, and refuses what is not it. */
#include "support/test.h"

#include "base/codec/document.h"

#include <math.h>
#include <string.h>

typedef enum colour { RED, GREEN, BLUE } colour;

typedef struct spot {
    uint32_t x, y;
    bool deep;
} spot;

typedef struct pair {
    const char *name;
    double value;
} pair;

typedef struct thing {
    uint32_t small;
    uint64_t number, count, hex;
    uint32_t crc;
    double real, unknown;
    bool yes, owed, marked;
    const char *word, *note, *sha;
    char id[33];
    colour colour;
    uint64_t base;
    uint32_t n_spots, n_pairs, n_dims, n_texts;
    const spot *spot;
    const pair *pair;
    uint64_t dim[3];
    const char *const *text;
    bool flagged;
    uint32_t under_flag;
} thing;

static const tn_doc_row spot_rows[] = {
    TN_DOC_U32(spot, x, 0, 9, "x"),
    TN_DOC_U32(spot, y, 0, 9, "y"),
    TN_DOC_MARK(spot, deep, "deep", "how"),
    TN_DOC_END,
};

static const tn_doc_row pair_rows[] = {
    TN_DOC_STR(pair, name, ""),
    TN_DOC_F64(pair, value, ""),
    TN_DOC_END,
};

static const tn_doc_row base_rows[] = {TN_DOC_U64(thing, base, 1, UINT64_MAX, "ordinal"),
                                       TN_DOC_END};

static bool is_blue(const void *s)
{
    return ((const thing *)s)->colour == BLUE;
}

static const char *check_spots(void *s)
{
    const thing *t = s;
    return t->n_spots > 1 && t->spot[0].x > t->spot[1].x ? "spots.x" : NULL;
}

static const tn_doc_row thing_rows[] = {
    TN_DOC_U32(thing, small, 1, UINT32_MAX, "small"),
    TN_DOC_U64(thing, number, 0, UINT64_MAX, "number"),
    TN_DOC_COUNT(thing, count, 1000, "count"),
    TN_DOC_HEX(thing, hex, "hex"),
    TN_DOC_CRC(thing, crc, "crc"),
    TN_DOC_F64(thing, real, "real"),
    TN_DOC_NAN(thing, unknown, "unknown"),
    TN_DOC_BOOL(thing, yes, "yes"),
    TN_DOC_BOOL(thing, owed, "owed", TN_DOC_MAY_MISS),
    TN_DOC_MARK(thing, marked, "hour", "unit"),
    TN_DOC_STR(thing, word, "word"),
    TN_DOC_STR(thing, note, "note", TN_DOC_MAY_MISS),
    TN_DOC_SHA(thing, sha, "sha"),
    TN_DOC_ID(thing, id, 0, "id"),
    TN_DOC_WORD(thing, colour, colour, ((const char *const[]){"red", "green", "blue", NULL}),
                "colour"),
    TN_DOC_GROUP('{', base_rows, "base", TN_DOC_OR_NULL),
    TN_DOC_LIST(thing, n_spots, spot, const spot *, '[', spot_rows, 2, "spots"),
    TN_DOC_CHECK(check_spots),
    TN_DOC_LIST(thing, n_pairs, pair, const pair *, ':', pair_rows, 8, "pairs"),
    TN_DOC_ARRAY(thing, n_dims, dim, uint64_t, '\0', tn_doc_u64_items, 3, "dims"),
    TN_DOC_LIST(thing, n_texts, text, const char *const *, '\0', tn_doc_str_items, 8, "texts",
                TN_DOC_IF(is_blue)),
    TN_DOC_U32(thing, under_flag, 0, 9, "under", TN_DOC_FLAG(thing, flagged)),
    TN_DOC_END,
};

static const tn_document thing_doc = {
    .format = "tnet-thing", .is = "a thing", .newest = 2, .rows = thing_rows};

#define SHA "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const char least[] =
    "{\"format\":\"tnet-thing\",\"version\":[2,0],\"small\":7,\"number\":0,\"count\":\"12\","
    "\"hex\":\"00000000000000aa\",\"crc\":\"0000000b\",\"real\":0.5,\"unknown\":null,\"yes\":true,"
    "\"word\":\"w\",\"sha\":\"" SHA "\",\"id\":\"\",\"colour\":\"green\",\"base\":null,"
    "\"spots\":[],\"pairs\":{},\"dims\":[]";

static const char whole[] =
    "{\"format\":\"tnet-thing\",\"version\":[2,0],\"small\":7,\"number\":18446744073709551615,"
    "\"count\":\"12\",\"hex\":\"00000000000000aa\",\"crc\":\"0000000b\",\"real\":0.5,"
    "\"unknown\":0.25,\"yes\":false,\"owed\":true,\"unit\":\"hour\",\"word\":\"w\",\"note\":\"n\","
    "\"sha\":\"" SHA "\",\"id\":\"c1665130c99209d740b70206fae732da\",\"colour\":\"blue\","
    "\"base\":{\"ordinal\":3},\"spots\":[[1,2],[3,4,\"deep\"]],\"pairs\":{\"a\":1,\"b\":2.5},"
    "\"dims\":[4,5],\"texts\":[\"t\",\"u\"],\"under\":0";

static void assert_written(const thing *t, const char *want)
{
    tn_text text = {0};
    tn_text with_crc = {0};
    assert_int_equal(tn_document_write(&thing_doc, t, &text, NULL), TN_OK);
    tn_text_adds(&with_crc, want);
    tn_json_close_with_crc(&with_crc);
    assert_string_equal(tn_text_str(&text), tn_text_str(&with_crc));
    assert_int_equal(tn_json_check_crc(text.data, text.size, "x", NULL), TN_OK);
    tn_text_done(&with_crc);
    tn_text_done(&text);
}

static tn_status read_thing(thing *out, const char *text, tn_arena *arena, tn_error *err)
{
    tn_text all = {0};
    tn_text_adds(&all, text);
    tn_json_close_with_crc(&all);
    tn_status status = tn_document_read(&thing_doc, out, &all, arena, "t.json", err);
    tn_text_done(&all);
    return status;
}

TEST(a_struct_is_read_as_it_was_written)
{
    static const char *const texts[] = {least, whole};
    for (int i = 0; i < 2; i++) {
        tn_arena *arena = tn_arena_new(1 << 12);
        thing t = {0};
        tn_error err = {0};
        if (read_thing(&t, texts[i], arena, &err) != TN_OK) {
            fail_msg("%s", err.text);
        }
        assert_written(&t, texts[i]);
        assert_int_equal(t.small, 7);
        assert_int_equal(t.crc, 0xb);
        assert_int_equal(t.colour, i == 0 ? GREEN : BLUE);
        assert_int_equal(t.flagged, i == 1);
        assert_int_equal(isnan(t.unknown), i == 0);
        tn_arena_free(arena);
    }
}

TEST(what_is_absent_leaves_the_callers_value)
{
    tn_arena *arena = tn_arena_new(1 << 12);
    thing t = {.owed = true, .note = "mine", .flagged = true, .base = 9};
    assert_int_equal(read_thing(&t, least, arena, NULL), TN_OK);
    assert_true(t.owed && strcmp(t.note, "mine") == 0 && t.base == 9);
    assert_false(t.flagged); /* a flag says whether its member is there */
    tn_arena_free(arena);
}

/* Each is one change of `whole`, and the message that it makes. */
static const struct {
    const char *from, *to, *message;
} lies[] = {
    {"\"small\":7", "\"smell\":7", "member 'small' is missing"},
    {"\"small\":7", "\"small\":0", "member 'small' is wrong"},
    {"\"small\":7", "\"small\":4294967296", "'small' is wrong"},
    {"\"small\":7", "\"small\":\"seven\"", "'small' is wrong"},
    {"\"count\":\"12\"", "\"count\":\"1001\"", "'count' is wrong"},
    {"\"hex\":\"0", "\"hex\":\"", "'hex' is wrong"},
    {"\"crc\":\"0000000b\"", "\"crc\":\"0000000B\"", "'crc' is wrong"},
    {"\"real\":0.5", "\"real\":null", "'real' is wrong"},
    {"\"unknown\":0.25", "\"unknown\":\"\"", "'unknown' is wrong"},
    {"\"yes\":false", "\"yes\":0", "'yes' is wrong"},
    {"\"owed\":true", "\"owed\":null", "'owed' is wrong"},
    {"\"hour\"", "\"day\"", "'unit' is wrong"},
    {"\"word\":\"w\"", "\"word\":1", "'word' is wrong"},
    {"\"sha\":\"00", "\"sha\":\"0g", "'sha' is wrong"},
    {"\"id\":\"c1", "\"id\":\"/1", "'id' is wrong"},
    {"\"id\":\"c1", "\"id\":\"1", "'id' is wrong"},
    {"\"blue\"", "\"black\"", "'colour' is wrong"},
    {"{\"ordinal\":3}", "{\"ordinal\":0}", "'base.ordinal' is wrong"},
    {"{\"ordinal\":3}", "3", "'base' is wrong"},
    {"[3,4,\"deep\"]", "[3,4,\"deep\",1]", "'spots[1]' is wrong"},
    {"[3,4,\"deep\"]", "[3]", "'spots[1].y' is missing"},
    {"[3,4,\"deep\"]", "[3,4,\"flat\"]", "'spots[1].how' is wrong"},
    {"[3,4,\"deep\"]", "[0,4]", "'spots.x' is wrong"},
    {"[3,4,\"deep\"]", "[3,4],[5,6]", "'spots' is wrong"},
    {"\"b\":2.5", "\"b\":[]", "'pairs.b' is wrong"},
    {"\"dims\":[4,5]", "\"dims\":[4,-5]", "'dims[1]' is wrong"},
    {"\"dims\":[4,5]", "\"dims\":[1,2,3,4]", "'dims' is wrong"},
    {"\"dims\":[4,5]", "\"dims\":{}", "'dims' is wrong"},
    {",\"texts\":[\"t\",\"u\"]", "", "'texts' is missing"},
    {"\"under\":0", "\"under\":10", "'under' is wrong"},
    {"\"tnet-thing\"", "\"tnet-other\"", "'t.json' is not a thing"},
    {"[2,0]", "[0,0]", "member 'version' is missing or wrong"},
    {"[2,0]", "2", "member 'version' is missing or wrong"},
};

static tn_status read_lie(const char *from, const char *to, tn_error *err)
{
    const char *at = strstr(whole, from);
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_text text = {0};
    thing t = {0};
    assert_non_null(at);
    tn_text_add(&text, whole, (size_t)(at - whole));
    tn_text_adds(&text, to);
    tn_text_adds(&text, at + strlen(from));
    tn_status status = read_thing(&t, tn_text_str(&text), arena, err);
    tn_text_done(&text);
    tn_arena_free(arena);
    return status;
}

TEST(what_is_wrong_is_refused_by_its_path)
{
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        tn_error err = {0};
        if (read_lie(lies[i].from, lies[i].to, &err) != TN_E_CKPT ||
            strstr(err.text, lies[i].message) == NULL || strstr(err.text, "t.json") == NULL) {
            fail_msg("%s in place of %s: '%s'", lies[i].to, lies[i].from, err.text);
        }
    }
}

TEST(a_later_version_is_told_from_a_damaged_one)
{
    tn_error err = {0};
    assert_int_equal(read_lie("[2,0]", "[1,0]", &err), TN_OK);
    assert_int_equal(read_lie("[2,0]", "[2,9],\"news\":[{}]", &err), TN_OK);
    assert_int_equal(read_lie("[2,0]", "[3,0]", &err), TN_E_LIMIT);
    assert_string_equal(err.text, "'t.json' was written by a newer version");
}

TEST(a_crc_is_eight_lower_digits)
{
    tn_text text = {0};
    thing t = {0};
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_text_adds(&text, least);
    tn_json_close_with_crc(&text);
    char *digit = text.data + text.size - 11;
    digit += strcspn(digit, "abcdef");
    assert_true(*digit >= 'a'); /* of this text some digit is a letter */
    assert_int_equal(tn_document_read(&thing_doc, &t, &text, arena, "t", NULL), TN_OK);
    *digit = (char)(*digit - 'a' + 'A');
    assert_int_equal(tn_document_read(&thing_doc, &t, &text, arena, "t", NULL), TN_E_CKPT);
    tn_arena_free(arena);
    tn_text_done(&text);
}

TEST(an_object_alone_is_read_and_written)
{
    static const char text[] = "{\"y\":2,\"x\":1}";
    tn_arena *arena = tn_arena_new(1 << 12);
    const tn_json *json = NULL;
    spot s = {0};
    tn_text out = {0};
    tn_error err = {0};
    assert_int_equal(tn_json_parse(&json, text, strlen(text), arena, "s", NULL), TN_OK);
    assert_int_equal(tn_doc_get_rows(spot_rows, json, &s, arena, "s", NULL), TN_OK);
    tn_doc_put(&out, &(tn_doc_row)TN_DOC_GROUP('{', spot_rows, ""), &s);
    tn_doc_put(&out, &(tn_doc_row)TN_DOC_GROUP('[', spot_rows, ""), &s);
    assert_string_equal(tn_text_str(&out), "{\"x\":1,\"y\":2},[1,2]");
    json = json->first;
    assert_int_equal(tn_doc_get_rows(spot_rows, json, &s, arena, "s", &err), TN_E_CKPT);
    assert_string_equal(err.text, "'s' is no JSON object");
    tn_text_done(&out);
    tn_arena_free(arena);
}

typedef struct holder {
    uint32_t before, after;
    tn_doc_part part;
    tn_doc_raw any;
} holder;

static const tn_doc_row holder_rows[] = {
    TN_DOC_U32(holder, before, 0, 9, "before"),
    TN_DOC_PART(holder, part),
    TN_DOC_RAW(holder, any, "any", .words = (const char *const[]){"[]"}),
    TN_DOC_U32(holder, after, 0, 9, "after"),
    TN_DOC_END,
};

TEST(others_add_members_of_their_own)
{
    static const char want[] =
        "{\"before\":1,\"x\":2,\"y\":3,\"how\":\"deep\",\"any\":[],\"after\":4}";
    static const tn_doc_row row = TN_DOC_GROUP('{', holder_rows, "");
    spot inside = {2, 3, true};
    spot got = {0};
    holder back = {.part = {spot_rows, &got}};
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    const tn_json *json = NULL;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_doc_put(&text, &row, &(holder){1, 4, {spot_rows, &inside}, {0}});
    assert_string_equal(tn_text_str(&text), want);
    assert_int_equal(tn_json_parse(&json, text.data, text.size, arena, "f", NULL), TN_OK);
    assert_int_equal(tn_doc_get_rows(holder_rows, json, &back, arena, "f", NULL), TN_OK);
    assert_true(got.x == 2 && got.y == 3 && got.deep);
    assert_true(back.before == 1 && back.after == 4);
    strchr(text.data, 'y')[0] = 'z';
    assert_int_equal(tn_json_parse(&json, text.data, text.size, arena, "f", NULL), TN_OK);
    assert_int_equal(tn_doc_get_rows(holder_rows, json, &back, arena, "f", &err), TN_E_CKPT);
    assert_string_equal(err.text, "'f': member 'y' is missing");
}
