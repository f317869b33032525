/* test_format.c - each format takes its own options and refuses those that only others read. */
#include "io/format/format.h"
#include "io/read/dataset.h"

#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "io/schema/dataopts.h"
#include "support/test.h"

/* A value of each such option that is not its default. */
static const char *const data_values[][2] = {
    {"index_base", "auto"},
    {"delimiter", "';'"},
    {"header", "true"},
    {"columns", "[a, b]"},
    {"quote", "none"},
    {"trim", "true"},
    {"null", "[x]"},
    {"short_rows", "pad"},
    {"list", "'|'"},
    {"comment", "'#'"},
    {"unknown_field", "ignore"},
    {"row_norm", "true"},
    {"slot_bits", "high 3"},
    {"group", "query"},
    {"record_id", "id"},
    {NULL, NULL},
};
static const char *const slot_values[][2] = {
    {"field", "0"},
    {"range", "[0, 10]"},
    {"step_pool", "concat"},
    {NULL, NULL},
};

static const char *value_of(const char *const (*values)[2], const char *key)
{
    while ((*values)[0] != NULL && strcmp((*values)[0], key) != 0) {
        values++;
    }
    return (*values)[1];
}

/* What is said of a configuration, in a buffer of the caller's. */
static void check(const char *yaml, char *out, size_t size)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    const tn_binder b = {.arena = arena, .diag = &diag, .path = "data"};
    const tn_yaml_in in = {.text = yaml, .size = strlen(yaml), .source = "t", .lines = true};
    const tn_tree *tree = tn_yaml_read(arena, &diag, &in);
    tn_dataset config = {0};
    tn_fields_bind(&b, tn_dataset_fields, tree, &config);
    assert_int_equal(diag.n_errors, 0);
    tn_format_check_data(&b, tn_tree_get(tree, "data"), &config.data);
    tn_format_check_slots(&b, config.data.format, &config.slots);
    assert_true(diag.n_errors <= 1);
    (void)snprintf(out, size, "%s", tn_text_str(&diag.text));
}

static void check_option(const tn_format *f, const char *key, bool of_slot, bool reads)
{
    char yaml[200];
    char said[400];
    char want[100];
    const char *value = value_of(of_slot ? slot_values : data_values, key);
    assert_non_null(value);
    (void)snprintf(yaml, sizeof yaml,
                   of_slot ? "{data: {format: %s}, slots: [b, {name: a, %s: %s}]}"
                           : "{data: {format: %s, %s: %s}, slots: [a]}",
                   f->name, key, value);
    (void)snprintf(want, sizeof want, "error: '%s.%s' means nothing for format '%s', only for ",
                   of_slot ? "slots" : "data", key, f->name);
    check(yaml, said, sizeof said);
    fail_if(reads ? said[0] != '\0' : strstr(said, want) == NULL, "%s: %s", yaml, said);
}

static const char *const *options_of(const tn_format *f, bool of_slot)
{
    return of_slot ? f->slot_options : f->data_options;
}

/* Every option of `owner`, given to every format; how many were given. */
static uint32_t check_options(const tn_format *owner, bool of_slot)
{
    uint32_t n = 0;
    const char *const *key = options_of(owner, of_slot);
    for (; key != NULL && *key != NULL; key++) {
        for (const tn_format *const *f = tn_all_formats; *f != NULL; f++) {
            check_option(*f, *key, of_slot, tn_format_reads(options_of(*f, of_slot), *key));
            n++;
        }
    }
    return n;
}

TEST(options_are_taken_by_the_formats_that_read_them_and_refused_by_others)
{
    uint32_t n = 0;
    for (const tn_format *const *owner = tn_all_formats; *owner != NULL; owner++) {
        const tn_format *f = *owner;
        n += check_options(f, false) + check_options(f, true);
    }
    assert_true(n >= 12 * 6);
}

TEST(a_refusal_shows_the_place_and_who_reads_the_option)
{
    char said[400];
    check("data:\n  format: csv\n  index_base: 1\nslots: [a]\n", said, sizeof said);
    assert_string_equal(said, "t:3:3: error: 'data.index_base' means nothing for format 'csv', "
                              "only for libsvm, libffm, libfm\n  index_base: 1\n  ^~~~~~~~~~\n");
}

TEST(an_option_at_its_default_is_taken_by_all)
{
    for (const tn_format *const *f = tn_all_formats; *f != NULL; f++) {
        char yaml[300];
        char said[400];
        (void)snprintf(yaml, sizeof yaml,
                       "{data: {format: %s, index_base: 0, delimiter: ~, header: auto, null: "
                       "[\"\"], trim: false, columns: ~}, slots: [{name: a, range: ~, field: ~}]}",
                       (*f)->name);
        check(yaml, said, sizeof said);
        assert_string_equal(said, "");
    }
}

TEST(an_unknown_format_is_told_with_all_there_are)
{
    char said[400];
    check("{data: {format: cvs, index_base: 1}, slots: [{name: a, field: 1}]}", said, sizeof said);
    assert_non_null(strstr(said, "unknown format 'cvs' (did you mean 'csv'?)"));
}
