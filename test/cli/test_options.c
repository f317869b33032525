/* test_options.c - argv: options, words, overrides, and what is refused. */
#include "cli/options.h"
#include "config/field.h"
#include "support/test.h"

typedef struct flags {
    uint32_t peers;
    bool dry_run;
    bool resume;
    const char *data;
    const char *profile;
    tn_strs fetch;
} flags;

static const char *const bare_profile[] = {"", NULL};

static const tn_field flag_rows[] = {
    TN_FIELD_U32(flags, peers, "1", 1, 64, "", "processes on this machine"),
    TN_FLAG_BOOL(flags, dry_run, "check everything, train nothing"),
    TN_FIELD_BOOL(flags, resume, "true", "go on where the last run ended"),
    TN_FLAG_STR(flags, data, "PATH", "what is evaluated"),
    TN_FLAG_STR_OR(flags, profile, bare_profile, "FILE", "a picture of the run"),
    TN_FIELD_STRS(flags, fetch, "~", "nodes that are written out"),
    TN_FIELD_END,
};

typedef struct keys {
    const char *dir;
} keys;

static const tn_field config_rows[] = {TN_FIELD_STR(keys, dir, "runs", "where"), TN_FIELD_END};

static const tn_program program = {
    .name = "tnet-test",
    .summary = "tests",
    .words = "CONFIG [key=value ..]",
    .flags = flag_rows,
    .config = config_rows,
    .words_min = 1,
    .words_max = 1,
};

static const tn_program bare = {
    .name = "tnet-bare", .summary = "s", .words = "A B", .words_min = 2, .words_max = 2};

typedef struct fixture {
    tn_arena *arena;
    tn_options options;
    flags flags;
    tn_error err;
} fixture;

SET_UP
{
    static fixture f;
    memset(&f, 0, sizeof f);
    f.arena = tn_arena_new(1 << 12);
    *state = &f;
}

TEAR_DOWN
{
    tn_arena_free(((fixture *)*state)->arena);
}

/* Parses a NULL-terminated argv. */
static tn_status parse(fixture *f, const tn_program *p, char *const *argv)
{
    int argc = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    memset(&f->err, 0, sizeof f->err);
    return tn_options_parse(p, (tn_argv){argc, argv}, f->arena, &f->options,
                            p->flags != NULL ? &f->flags : NULL, &f->err);
}

#define ARGV(...)                                                                                  \
    (char *const[])                                                                                \
    {                                                                                              \
        program_name, __VA_ARGS__, NULL                                                            \
    }

static char program_name[] = "tnet-test";

static void assert_refused(fixture *f, char *const *argv, const char *want)
{
    assert_int_equal(parse(f, &program, argv), TN_E_USAGE);
    assert_says(f->err.text, want);
}

/* String literals are const in C11 with -Wwrite-strings; argv is not. */
#define TEXT(name, value) static char name[] = value

TEST_ON(fixture *f, options_words_and_overrides_may_mix)
{
    TEXT(peers, "--peers");
    TEXT(four, "4");
    TEXT(config, "a.yaml");
    TEXT(epochs, "train.epochs=3");
    TEXT(dry, "--dry-run");
    TEXT(slot, "slots.C{1..2}.dim=4");
    TEXT(letters, "-vv");
    assert_int_equal(parse(f, &program, ARGV(peers, four, config, epochs, dry, slot, letters)),
                     TN_OK);
    assert_int_equal(f->flags.peers, 4);
    assert_true(f->flags.dry_run);
    assert_true(f->flags.resume);
    assert_null(f->flags.data);
    assert_int_equal(f->options.words.n, 1);
    assert_string_equal(f->options.words.item[0], "a.yaml");
    assert_int_equal(f->options.overrides.n, 2);
    assert_string_equal(f->options.overrides.item[1], "slots.C{1..2}.dim=4");
    assert_int_equal(f->options.verbosity, 2);
    assert_int_equal(tn_options_check_words(&program, &f->options, &f->err), TN_OK);
}

TEST_ON(fixture *f, values_may_follow_an_equals_sign)
{
    TEXT(peers, "--peers=8");
    TEXT(data, "--data=");
    TEXT(no, "--no-resume");
    TEXT(one, "--fetch=a");
    TEXT(two, "--fetch");
    TEXT(b, "b");
    TEXT(dry, "--dry-run=no");
    assert_int_equal(parse(f, &program, ARGV(peers, data, no, one, two, b, dry)), TN_OK);
    assert_int_equal(f->flags.peers, 8);
    assert_string_equal(f->flags.data, "");
    assert_false(f->flags.resume);
    assert_false(f->flags.dry_run);
    assert_int_equal(f->flags.fetch.n, 2);
    assert_string_equal(f->flags.fetch.item[1], "b");
}

TEST_ON(fixture *f, a_value_that_may_be_left_out_stands_behind_the_equals_sign)
{
    char bare_word[] = "--profile";
    char with_value[] = "--profile=a.json";
    char denied[] = "--no-profile";
    char config[] = "c.yaml";
    assert_int_equal(parse(f, &program, ARGV(config)), TN_OK);
    assert_null(f->flags.profile);
    assert_int_equal(parse(f, &program, ARGV(bare_word, config)), TN_OK);
    assert_string_equal(f->flags.profile, "");
    assert_int_equal(f->options.words.n, 1); /* the word behind it is no value */
    assert_int_equal(parse(f, &program, ARGV(config, with_value)), TN_OK);
    assert_string_equal(f->flags.profile, "a.json");
    assert_int_equal(parse(f, &program, ARGV(bare_word, with_value, config)), TN_E_USAGE);
    assert_refused(f, ARGV(denied, config), "unknown option '--no-profile'");
}

TEST_ON(fixture *f, paths_with_equals_signs_are_words)
{
    TEXT(path, "runs/lr=1/a.yaml");
    TEXT(dash, "-");
    TEXT(url, "s3://b/day=1");
    assert_int_equal(parse(f, &program, ARGV(path, dash, url)), TN_OK);
    assert_int_equal(f->options.words.n, 3);
    assert_int_equal(f->options.overrides.n, 0);
    assert_int_equal(tn_options_check_words(&program, &f->options, &f->err), TN_E_USAGE);
    assert_string_equal(f->err.text, "one word too many: '-'\n"
                                     "hint: tnet-test CONFIG [key=value ..]");
}

TEST_ON(fixture *f, two_dashes_end_the_options)
{
    TEXT(end, "--");
    TEXT(help, "--help");
    assert_int_equal(parse(f, &program, ARGV(end, help)), TN_OK);
    assert_int_equal(f->options.answer, TN_ANSWER_NONE);
    assert_string_equal(f->options.words.item[0], "--help");
}

TEST_ON(fixture *f, questions_need_no_words)
{
    TEXT(help, "-h");
    TEXT(version, "--version");
    TEXT(schema, "--schema");
    assert_int_equal(parse(f, &program, ARGV(help, version)), TN_OK);
    assert_int_equal(f->options.answer, TN_ANSWER_HELP);
    assert_int_equal(parse(f, &program, ARGV(version)), TN_OK);
    assert_int_equal(f->options.answer, TN_ANSWER_VERSION);
    assert_int_equal(parse(f, &program, ARGV(schema)), TN_OK);
    assert_int_equal(f->options.answer, TN_ANSWER_SCHEMA);
    assert_int_equal(tn_options_check_words(&program, &f->options, &f->err), TN_E_USAGE);
    assert_non_null(strstr(f->err.text, "no CONFIG is given\nhint: tnet-test CONFIG"));
}

TEST_ON(fixture *f, what_makes_no_sense_is_a_usage_error)
{
    TEXT(typo, "--pears=3");
    assert_refused(f, ARGV(typo), "unknown option '--pears' (did you mean '--peers'?)");
    TEXT(alien, "--rhubarb");
    assert_refused(f, ARGV(alien),
                   "unknown option '--rhubarb'\nhint: 'tnet-test --help' lists all");
    TEXT(key, "--dir=here");
    assert_refused(f, ARGV(key), "unknown option '--dir'\nhint: 'dir=VALUE', without dashes, sets");
    TEXT(letter, "-qx");
    assert_refused(f, ARGV(letter), "unknown option '-qx'");
    TEXT(peers, "--peers");
    assert_refused(f, ARGV(peers), "option '--peers' needs a value");
    TEXT(zero, "--peers=0");
    assert_refused(f, ARGV(zero), "command line: error: 'peers' is 0, not within 1 .. 64");
    TEXT(two, "--peers=2");
    assert_refused(f, ARGV(two, two), "option '--peers' is given twice");
    TEXT(help, "--help=me");
    assert_refused(f, ARGV(help), "option '--help' takes no value");
    TEXT(maybe, "--dry-run=maybe");
    assert_refused(f, ARGV(maybe), "'dry_run' is not true or false: 'maybe'");
    TEXT(no_peers, "--no-peers");
    assert_refused(f, ARGV(no_peers), "unknown option '--no-peers'");
}

TEST_ON(fixture *f, a_program_without_configuration_has_no_overrides)
{
    TEXT(word, "a=b");
    TEXT(schema, "--schema");
    assert_int_equal(parse(f, &bare, ARGV(word)), TN_OK);
    assert_int_equal(f->options.words.n, 1);
    assert_int_equal(parse(f, &bare, ARGV(schema)), TN_E_USAGE);
    assert_int_equal(tn_options_check_words(&bare, &(tn_options){0}, &f->err), TN_E_USAGE);
}

TEST_ON(fixture *f, nothing_at_all_is_not_a_crash)
{
    char *const argv[] = {NULL};
    assert_int_equal(
        tn_options_parse(&program, (tn_argv){0, argv}, f->arena, &f->options, &f->flags, NULL),
        TN_OK);
    assert_int_equal(f->flags.peers, 1);
}
