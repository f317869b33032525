/* test_body_rows.c - bodies of every shape give the rows of the same records in a data file. */
#include "extra/http/body_rows.h"
#include "io/rows/rows.h"
#include "io/setup.h"
#include "support/test.h"

static const char config[] =
    "{data: {format: jsonl, label: none}, slots: [{name: user}, {name: tags, type: str}, {name: p, "
    "as: value, transform: identity}, {name: h, type: int}, {name: deep, column: u.id}]}";

static const char wanted[] = "0:7 1:a 1:b =1.5 |0:8 1:c 2:-2 =0 |";

/* The reader of a body. */
typedef enum shape { OBJECTS, COLUMNS, FRAME, TENSORS } shape;

/* Rows as text: slot and sign of each entry, and the number of `p`. */
static void dump(const setup *s, const tn_rows *rows, tn_text *out)
{
    static const char *const words[] = {"a", "b", "c"};
    for (uint32_t i = 0; i < rows->n; i++) {
        for (uint32_t k = rows->row[i].first; k < tn_rows_end_of(rows, i); k++) {
            const tn_entry *e = &rows->entry[k];
            const uint64_t sign = tn_sign_of(e->key, s->schema->slot[e->slot]->salt);
            const char *text = NULL;
            for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
                text = sign == tn_xxh64(words[w], 1, 0) ? words[w] : text;
            }
            if (text != NULL) {
                tn_text_addf(out, "%u:%s ", e->slot, text);
            } else {
                tn_text_addf(out, "%u:%lld ", e->slot, (long long)sign);
            }
        }
        tn_text_addf(out, "=%g |", (double)rows->numeric[i]);
    }
}

/* Reads a body, and `size` bytes after its JSON; the rows as text, or the fault. */
static const char *rows_of(shape how, const char *json, const char *bytes, size_t size)
{
    static char text[2000];
    OPEN(setup, s, config);
    tn_rows *rows = NULL;
    tn_text record CLEANUP(tn_text_done) = {0};
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    tn_head head = {0};
    const tn_json_span span = {json, strlen(json), strchr(json, '\n') != NULL};
    assert_ok(tn_rows_new(&rows, s.schema, 0, &err), err.text);
    tn_row_sink to = {.format = tn_format_find("jsonl"),
                      .schema = s.schema,
                      .head = &head,
                      .rows = rows,
                      .record = &record,
                      .rows_max = 4,
                      .named = true,
                      .source = "x"};
    const tn_bytes binary = {bytes, size, false};
    const tn_status status = how == OBJECTS   ? tn_rows_of_objects(&to, &span, &err)
                             : how == COLUMNS ? tn_rows_of_columns(&to, &span, &err)
                             : how == FRAME   ? tn_rows_of_frame(&to, &span, &err)
                                              : tn_rows_of_tensors(&to, &span, binary, &err);
    dump(&s, rows, &out);
    (void)snprintf(text, sizeof text, "%s", status == TN_OK ? tn_text_str(&out) : err.text);
    tn_rows_free(rows);
    return text;
}

TEST(objects_are_records)
{
    assert_string_equal(rows_of(OBJECTS,
                                "[{\"user\":7,\"tags\":[\"a\",\"b\"],\"p\":1.5},"
                                "{\"user\":\"8\",\"tags\":\"c\",\"h\":-2,\"other\":{\"x\":1}}]",
                                NULL, 0),
                        wanted);
    assert_string_equal(rows_of(OBJECTS, "{\"u\":{\"id\":5}}", NULL, 0), "3:5 =0 |");
    assert_string_equal(rows_of(OBJECTS, "[{\"user\":\n7,\n\"tags\":{\"b64\":\"YQ==\"}}]", NULL, 0),
                        "0:7 1:a =0 |");
    assert_string_equal(rows_of(OBJECTS, "[]", NULL, 0), "");
}

TEST(columns_are_records)
{
    assert_string_equal(rows_of(COLUMNS,
                                "{\"user\":[7,8],\"tags\":[[\"a\",\"b\"],\"c\"],"
                                "\"p\":[1.5,null],\"h\":[null,-2]}",
                                NULL, 0),
                        wanted);
    assert_says(rows_of(COLUMNS, "{\"user\":[7,8],\"h\":[1]}", NULL, 0),
                "columns have different numbers of values: some end after 1");
    assert_says(rows_of(COLUMNS, "{\"user\":7}", NULL, 0), "column 'user' is no list");
    assert_string_equal(rows_of(COLUMNS, "{}", NULL, 0), "");
}

TEST(frames_are_records)
{
    assert_string_equal(rows_of(FRAME,
                                "{\"index\":[0,1],\"columns\":[\"user\",\"tags\",\"p\",\"h\"],"
                                "\"data\":[[7,[\"a\",\"b\"],1.5,null],[8,\"c\",null,-2]]}",
                                NULL, 0),
                        wanted);
    assert_says(rows_of(FRAME, "{\"columns\":[\"user\",\"p\"],\"data\":[[7]]}", NULL, 0),
                "x:1: 1 values for 2 columns");
    assert_says(rows_of(FRAME, "{\"columns\":[\"user\"],\"data\":[[7],[7,8]]}", NULL, 0),
                "x:2: 2 values for 1 columns");
    assert_says(rows_of(FRAME, "{\"data\":[[7]]}", NULL, 0), "expected 'columns' and 'data'");
}

TEST(tensors_are_records)
{
    assert_string_equal(
        rows_of(TENSORS,
                "[{\"name\":\"user\",\"shape\":[2,1],\"datatype\":\"UINT64\",\"data\":[[7],[8]]},"
                "{\"name\":\"tags\",\"shape\":[2,2],\"datatype\":\"BYTES\","
                "\"data\":[\"a\",\"b\",\"c\",\"c\"]}]",
                NULL, 0),
        "0:7 1:a 1:b =0 |0:8 1:c 1:c =0 |");
}

TEST(binary_tensors_are_records)
{
    static const char bytes[] = "\x07\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0" /* INT64 */
                                "\0\0\xc0\x3f\0\0\x80\xbf"             /* FP32 1.5 -1 */
                                "\xfe\xff\x03\0"                       /* INT16 -2 3 */
                                "\x01\0\0\0a\x01\0\0\0b";              /* BYTES */
    static const char json[] =
        "[{\"name\":\"user\",\"shape\":[2],\"datatype\":\"INT64\",\"parameters\":{"
        "\"binary_data_size\":16}},{\"name\":\"p\",\"shape\":[2],\"datatype\":\"FP32\","
        "\"parameters\":{\"binary_data_size\":8}},{\"name\":\"h\",\"shape\":[2],\"datatype\":"
        "\"INT16\",\"parameters\":{\"binary_data_size\":4}},{\"name\":\"tags\",\"shape\":[2],"
        "\"datatype\":\"BYTES\",\"parameters\":{\"binary_data_size\":10}}]";
    assert_string_equal(rows_of(TENSORS, json, bytes, sizeof bytes - 1),
                        "0:7 1:a 2:-2 =1.5 |0:8 1:b 2:3 =-1 |");
    assert_says(rows_of(TENSORS, json, bytes, sizeof bytes - 2), "tensor \"tags\" has more");
}

#define TENSOR(shape, type, rest)                                                                  \
    "[{\"name\":\"user\",\"shape\":" shape ",\"datatype\":\"" type "\"," rest "}]"

TEST(tensors_that_are_none_are_refused)
{
    static const char *const pairs[][2] = {
        {TENSOR("[2]", "INT64", "\"data\":[1]"), "\"user\" has fewer values than its shape says"},
        {TENSOR("[1]", "INT64", "\"data\":[1,2]"), "\"user\" has more values than its shape says"},
        {TENSOR("[1]", "FP16", "\"data\":[1]"), "has no datatype that is read"},
        {TENSOR("[-1]", "INT64", "\"data\":[1]"), "has no shape of whole numbers"},
        {TENSOR("[]", "INT64", "\"data\":[1]"), "has no shape of whole numbers"},
        {TENSOR("[4294967295,4294967295]", "INT64", "\"data\":[1]"), "has no shape"},
        {TENSOR("[1]", "INT64", "\"x\":1"), "has no data"},
        {TENSOR("[1]", "INT64", "\"parameters\":{\"binary_data_size\":9}"), "has more binary_data"},
        {TENSOR("[5]", "INT64", "\"data\":[1,2,3,4,5]"), "more than 4 rows in a request"},
        {"[{\"shape\":[1],\"datatype\":\"INT64\",\"data\":[1]}]", "tensor ? has no name"},
        {"[]", "no tensor"},
        {"[{\"name\":\"user\",\"shape\":[2],\"datatype\":\"INT8\",\"data\":[1,2]},"
         "{\"name\":\"p\",\"shape\":[1],\"datatype\":\"INT8\",\"data\":[1]}]",
         "\"p\" has another first dimension than the first tensor"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_says(rows_of(TENSORS, pairs[i][0], "", 0), pairs[i][1]);
    }
}

TEST(faults_name_the_row)
{
    assert_says(rows_of(OBJECTS, "[{\"user\":7},{\"user\":\"x\"}]", NULL, 0),
                "x:2:10: error: expected a decimal integer");
    assert_says(rows_of(OBJECTS, "[{\"user\":7},5]", NULL, 0), "x:2: expected an object");
    assert_says(rows_of(OBJECTS, "[{},{\"usr\":1,\"v\":[2]}]", NULL, 0),
                "x:2: no member is a field of the model");
    assert_says(rows_of(COLUMNS, "{\"usr\":[1]}", NULL, 0), "no member is a field of the model");
    assert_string_equal(rows_of(OBJECTS, "[{\"usr\":1,\"user\":null},{\"p\":2}]", NULL, 0),
                        "=0 |=2 |");
    assert_says(rows_of(OBJECTS, "[{},{},{},{},{}]", NULL, 0), "more than 4 rows in a request");
}

TEST(members_of_a_body_are_found)
{
    static const char text[] =
        "{\"signature_name\":\"s\",\"instances\":[1],\"other\":2,\"id\":\"7\"}";
    static const char twice[] = "{\"id\":1,\"id\":2}";
    tn_json_body b;
    tn_error err = {0};
    assert_ok(tn_json_body_read(&b, (tn_bytes){text, sizeof text - 1, false}, &err), err.text);
    assert_true(tn_json_span_is(&b.signature_name, "s"));
    assert_memory_equal(b.instances.data, "[1]", 3);
    assert_null(b.inputs.data);
    assert_int_equal(tn_json_body_read(&b, (tn_bytes){twice, sizeof twice - 1, false}, &err),
                     TN_E_DATA);
    assert_says(err.text, "two members 'id'");
}

TEST(what_rows_share_is_marked)
{
    static const char text[] = "{\"user\":1,\"u\":{\"id\":2,\"x\":{}},\"p\":3}";
    OPEN(setup, s, config);
    bool slot[4] = {false};
    bool numeric[1] = {false};
    tn_error err = {0};
    const tn_json_span span = {text, sizeof text - 1, false};
    assert_ok(tn_mark_members(s.schema, &span, slot, numeric, &err), err.text);
    assert_true(slot[0] && !slot[1] && !slot[2] && slot[3] && numeric[0]);
}

TEST(a_shared_vector_is_all_of_its_columns)
{
    static const char text[] = "{\"t\":[1,2,3]}";
    OPEN(setup, s,
         "{data: {format: jsonl, label: none}, slots: [{name: p, as: value, transform: identity}, "
         "{name: t, type: vector, dim: 3}, {name: q, as: value, transform: identity}]}");
    bool slot[1] = {false};
    bool numeric[5] = {false};
    tn_error err = {0};
    const tn_json_span span = {text, sizeof text - 1, false};
    assert_ok(tn_mark_members(s.schema, &span, slot, numeric, &err), err.text);
    assert_true(!numeric[0] && numeric[1] && numeric[2] && numeric[3] && !numeric[4]);
}
