/* test_docs.c - the documentation says what the tables say. */
#include "base/file/file.h"
#include "cli/describe.h"
#include "support/test.h"
#include "train/config/run.h"

static const tn_program program = {
    .name = "tnet-train", .summary = "s", .words = "CONFIG", .config = tn_run_fields};

static void config_md_is_made_from_the_tables(void **state)
{
    (void)state;
    tn_text want = {0};
    tn_text page = {0};
    tn_error err = {0};
    tn_describe_config_doc(&want, &program);
    if (tn_file_read_all("docs/config.md", 1 << 20, &page, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    /* else: tnet-train --print-config-doc >docs/config.md */
    assert_string_equal(tn_text_str(&page), tn_text_str(&want));
    tn_text_done(&want);
    tn_text_done(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_md_is_made_from_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
