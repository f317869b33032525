/* test_docs.c - the documentation says what the tables say. */
#include "cli/describe.h"
#include "config/absent.h"
#include "support/test.h"
#include "train/config/run.h"

static const tn_program program = {
    .name = "tnet-train", .summary = "s", .words = "CONFIG", .config = tn_run_fields};

/* The first line that is not the same, from 1; 0: none. */
static size_t first_difference(const char *a, const char *b)
{
    size_t line = 1;
    for (; *a == *b && *a != '\0'; a++, b++) {
        line += *a == '\n';
    }
    return *a == *b ? 0 : line;
}

TEST(config_md_is_made_from_the_tables)
{
    tn_text want CLEANUP(tn_text_done) = {0};
    tn_text page CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    if (tn_is_absent("tune")) {
        skip(); /* the page has the sections of all extras */
    }
    tn_describe(&want, &program, TN_ANSWER_CONFIG_DOC);
    assert_ok(tn_file_read_all("docs/config.md", 1 << 20, &page, &err), err.text);
    const size_t line = first_difference(tn_text_str(&page), tn_text_str(&want));
    fail_if(line != 0,
            "docs/config.md:%zu: differs from 'tnet-train --print-config-doc': run 'make docs'",
            line);
}
