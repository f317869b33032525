/* test_words.c - lines of the format of the recipe's test. */
#include "io/rows/rows.h"
#include "io/setup.h"
#include "support/test.h"

static const char config[] = "{data: {format: words}, slots: [{name: a, type: str}]}";

TEST(every_word_is_a_value)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    OPEN(setup, s, config);
    setup_parse_str(&s, "1 a b\n\n0\n1 a a a\n", &parsed);
    assert_int_equal(parsed.fault, TN_OK);
    assert_int_equal(parsed.rows->n, 3);
    assert_int_equal(parsed.rows->n_entries, 5);
    assert_int_equal(parsed.blank, 1);
}
