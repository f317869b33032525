/* test_column_discovery.c - columns of files that no end-to-end script makes. */
#include "config/values.h"
#include "extra/inspect/column_discovery.h"
#include "io/setup.h"
#include "support/test.h"

/* A TFRecord of a tf.Example with the features "label" and "", int64 lists of 1 and of 7. */
static const char nameless[] =
    "\x1d\x00\x00\x00\x00\x00\x00\x00\x60\x2f\xdf\x23\x0a\x1b\x0a\x0e\x0a\x05"
    "\x6c\x61\x62\x65\x6c\x12\x05\x1a\x03\x0a\x01\x01\x0a\x09\x0a\x00\x12\x05"
    "\x1a\x03\x0a\x01\x07\xe8\x3f\xdd\xd8";

TEST(a_feature_without_a_name_is_no_column)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_discovery found;
    tn_error err = {0};
    OPEN(setup, s, "{data: {format: tfrecord}, slots: [{name: a}]}");
    const char *path = setup_file(&s, "nameless", nameless, sizeof nameless - 1);
    assert_ok(tn_discovery_find(&found, &(tn_strs){1, &path}, NULL, arena, &err), err.text);
    assert_int_equal(found.n, 1);
    assert_string_equal(found.column[0].name, "label");
}
