/* test_describe.c - programs in their own words. */
#include "cli/describe.h"
#include "config/field.h"
#include "support/test.h"

typedef struct flags {
    uint32_t peers;
    bool dry_run;
    const char *data;
    const char *profile;
} flags;

static const char *const bare_profile[] = {"", NULL};

static const tn_field flag_rows[] = {
    TN_FIELD_U32(flags, peers, "1", 1, 64, "", "processes on this machine"),
    TN_FLAG_BOOL(flags, dry_run, "check everything, train nothing"),
    TN_FLAG_STR(flags, data, "PATH", "what is evaluated"),
    TN_FLAG_STR_OR(flags, profile, bare_profile, "FILE", "a picture of the run"),
    TN_FIELD_END,
};

typedef struct config {
    const char *dir;
} config;

static const tn_field config_rows[] = {
    TN_FIELD_STR(config, dir, "runs\\x", "where it goes"),
    TN_FIELD_END,
};

static const tn_program program = {
    .name = "tnet-test",
    .summary = "does nothing - well",
    .words = "CONFIG [key=value ..]",
    .flags = flag_rows,
    .config = config_rows,
    .words_min = 1,
    .words_max = 1,
    .notes = ".looks like a command",
};

static void assert_all_in(tn_answer answer, const char *const *want)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_describe(&out, &program, answer);
    for (; *want != NULL; want++) {
        assert_says(tn_text_str(&out), *want);
    }
}

TEST(help_lists_options_keys_and_exit_codes)
{
    static const char *const want[] = {
        "usage: tnet-test [option ..] CONFIG [key=value ..]\n\ndoes nothing - well\n",
        "\n  --peers N                  processes on this machine\n",
        "\n  --dry-run                  check everything",
        "\n  --data PATH                what is",
        "\n  --profile[=FILE]           a picture",
        "\n  -h, --help                 this text\n",
        "\n  --schema ",
        "\nkeys of the configuration: 'tnet-test --help-all' and docs/config.md\n",
        "exit codes: 0 done,",
        NULL,
    };
    static const char *const keys[] = {"\n  -h, --help ", "\n  dir  ", "exit codes: 0 done,", NULL};
    assert_all_in(TN_ANSWER_HELP, want);
    assert_all_in(TN_ANSWER_HELP_ALL, keys);
}

TEST(the_manual_page_says_what_help_says)
{
    static const char *const want[] = {
        ".TH \"tnet-test\" 1 \"\" \"TNet ",
        ".SH NAME\ntnet\\-test \\- does nothing \\- well\n",
        ".TP\n\\fB\\-\\-peers N\\fR\nprocesses on this machine\n",
        ".TP\n\\fB\\-h, \\-\\-help\\fR\nthis text\n",
        "\n\\&.looks like a command\n",
        "default runs\\ex\n",
        ".SH EXIT STATUS\n",
        NULL,
    };
    assert_all_in(TN_ANSWER_MAN, want);
}

TEST(completion_knows_options_and_keys)
{
    static const char *const bash[] = {
        "_tnet_test() {\n",
        "words='--peers --dry-run --data --profile --quiet --verbose --help ",
        " all='dir '\n",
        "files=1 keys=$all ;;",
        "complete -o nospace -o filenames -F _tnet_test tnet-test\n",
        NULL,
    };
    static const char *const zsh[] = {
        "#compdef tnet-test\n",
        "'--peers=[processes on this machine]:N:_files'",
        "'--dry-run[check everything, train nothing]'",
        "'--profile=-[a picture of the run]::FILE:_files'",
        "'(-q --quiet)'{-q,--quiet}'[warnings",
        "keys=(dir )\n",
        NULL,
    };
    static const char *const fish[] = {
        "complete -c tnet-test -l peers -r -d 'processes on this machine'\n",
        "complete -c tnet-test -l profile -d 'a picture of the run'\n",
        "complete -c tnet-test -s q -l quiet -d ",
        "complete -c tnet-test -a 'dir= '\n",
        NULL,
    };
    assert_all_in(TN_ANSWER_COMPLETION, bash);
    assert_all_in(TN_ANSWER_COMPLETION_ZSH, zsh);
    assert_all_in(TN_ANSWER_COMPLETION_FISH, fish);
}

TEST(completion_knows_commands_and_their_options)
{
    static const tn_field rows[] = {
        TN_FLAG_STR(flags, data, "PATH", "it's [one] place"),
        TN_FIELD_END,
    };
    static const tn_program tool = {
        .name = "tnet-many one", .summary = "does one", .words = "", .flags = rows};
    static const tn_program *const tools[] = {&tool, NULL};
    static const tn_program many = {
        .name = "tnet-many", .summary = "does much", .words = "one", .tools = tools};
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_describe(&out, &many, TN_ANSWER_COMPLETION);
    assert_says(tn_text_str(&out), "--completion one ' ;;\n    *,one)\n");
    assert_says(tn_text_str(&out), "-*) words='--data --quiet");
    tn_describe(&out, &many, TN_ANSWER_COMPLETION_ZSH);
    assert_says(tn_text_str(&out), "'one:does one'");
    assert_says(tn_text_str(&out), "'--data=[it'\\''s \\[one\\] place]:PATH:_files'");
    tn_describe(&out, &many, TN_ANSWER_COMPLETION_FISH);
    assert_says(tn_text_str(&out), " -n __fish_use_subcommand -f -a one -d 'does one'\n");
    assert_says(tn_text_str(&out), "-n '__fish_seen_subcommand_from one' -l data -r -d 'it'\\''s");
}

TEST(version_schema_and_documentation_are_there)
{
    static const char *const version[] = {"tnet-test " TN_VERSION "\n", NULL};
    static const char *const schema[] = {"\"title\":\"TNet configuration\"", "\"dir\":{", NULL};
    static const char *const doc[] = {"# Configuration\n", "| `dir` | text | `runs\\x` |", NULL};
    assert_all_in(TN_ANSWER_VERSION, version);
    assert_all_in(TN_ANSWER_SCHEMA, schema);
    assert_all_in(TN_ANSWER_CONFIG_DOC, doc);
}

TEST(only_questions_are_answered)
{
    const tn_options none = {0};
    const tn_options version = {.answer = TN_ANSWER_VERSION};
    assert_false(tn_describe_answer(&program, &none));
    assert_true(tn_describe_answer(&program, &version));
}
