/* test_local.c - what --peers makes of a command line, and when it refuses to start a group. */
#include "cli/local.h"

#include "base/core/text.h"
#include "base/thread/threads.h"
#include "config/field.h"
#include "roles.h"
#include "support/test.h"
#include "support/tmpdir.h"
#include "train/group/ranks.h"

#include <fcntl.h>
#include <unistd.h>

enum { WORDS_MAX = 16, PATH_BYTES = 300 };

typedef struct flags {
    uint32_t peers;
    const char *profile;
    bool resume;
} flags;

static const char *const bare[] = {"", NULL};

static const tn_field flag_rows[] = {
    TN_FIELD_U32(flags, peers, "~", 1, 1024, "", TN_LOCAL_HELP),
    TN_FLAG_STR_OR(flags, profile, bare, "FILE", "a picture"),
    TN_FLAG_BOOL(flags, resume, "go on"),
    TN_FIELD_END,
};

static const tn_field config_rows[] = {TN_FIELD_END};

static const tn_program program = {.name = "test",
                                   .summary = "tests",
                                   .words = "CONFIG [key=value ..]",
                                   .flags = flag_rows,
                                   .config = config_rows,
                                   .words_min = 1,
                                   .words_max = 9};

typedef struct fixture {
    tn_setup setup;
    tn_options options;
    flags flags;
    char *argv[WORDS_MAX];
    char text[WORDS_MAX][PATH_BYTES];
    char dir[256];
} fixture;

SET_UP
{
    static fixture f;
    memset(&f, 0, sizeof f);
    f.setup.arena = tn_arena_new(1 << 12);
    f.setup.run.train.threads = 2;
    f.setup.run.data.readers = 1;
    f.setup.run.cluster.restarts = "3/1h";
    tn_tmpdir_make(f.dir);
    *state = &f;
}

TEAR_DOWN
{
    fixture *f = *state;
    tn_tmpdir_remove(f->dir);
    tn_arena_free(f->setup.arena);
}

/* The command line, given as one text. */
static tn_local_group parse(fixture *f, const char *line)
{
    int n = 0;
    tn_error err = {0};
    while (*line != '\0') {
        size_t size = strcspn(line, " ");
        (void)snprintf(f->text[n], sizeof f->text[n], "%.*s", (int)size, line);
        f->argv[n] = f->text[n];
        n++;
        line += size + (line[size] == ' ');
    }
    const tn_argv args = {n, f->argv};
    assert_ok(tn_options_parse(&program, args, f->setup.arena, &f->options, &f->flags, &err),
              err.text);
    return (tn_local_group){.program = &program, .options = &f->options, .peers = f->flags.peers};
}

static void assert_words(fixture *f, const char *line, const char *want)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    const tn_local_group l = parse(f, line);
    const tn_argv words = tn_local_words(&l, &f->setup.run, f->setup.arena);
    for (int i = 0; i < words.n; i++) {
        tn_text_addf(&text, "%s%s", i > 0 ? " " : "", words.item[i]);
    }
    assert_null(words.item[words.n]);
    assert_string_equal(tn_text_str(&text), want);
}

TEST_ON(fixture *f, children_get_the_same_words_but_peers)
{
    assert_words(f, "test --peers 4 a.yaml", "test a.yaml cluster.peers=4");
    assert_words(f, "test a.yaml --peers=4 -q --profile x.y=1",
                 "test a.yaml -q --profile x.y=1 cluster.peers=4");
    assert_words(f, "test --profile=p --peers 3 -- a.yaml --peers 5",
                 "test --profile=p -- a.yaml --peers 5 cluster.peers=3");
    assert_words(f, "test cluster.peers=2 a.yaml --peers 7",
                 "test cluster.peers=2 a.yaml cluster.peers=7");
}

static void assert_words_again(fixture *f, const char *line, const char *want)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_local_group l = parse(f, line);
    l.goes_on = true;
    const tn_argv words = tn_local_words_again(&l, &f->setup.run, f->setup.arena);
    for (int i = 0; i < words.n; i++) {
        tn_text_addf(&text, "%s%s", i > 0 ? " " : "", words.item[i]);
    }
    assert_string_equal(tn_text_str(&text), want);
}

TEST_ON(fixture *f, a_second_start_goes_on_from_the_newest_checkpoint)
{
    tn_run *run = &f->setup.run;
    run->checkpoint.resume = "auto";
    assert_words_again(f, "test --peers 4 a.yaml -q", "test a.yaml -q cluster.peers=4");
    run->checkpoint.resume = "must"; /* of --resume, which wants one that is there */
    assert_words_again(f, "test --peers 4 --resume a.yaml", "test a.yaml cluster.peers=4");
    run->checkpoint.fresh = true;
    assert_words_again(f, "test --peers 4 a.yaml", "");
    run->checkpoint.fresh = false;
    run->data.again = true;
    assert_words_again(f, "test --peers 4 a.yaml", "");
    run->data.again = false;
    run->checkpoint.resume = "never";
    assert_words_again(f, "test --peers 4 a.yaml", "");
    run->checkpoint.resume = "runs/other/ckpt-3";
    assert_words_again(f, "test --peers 4 a.yaml", "");
    run->checkpoint.resume = "auto";
    static const char *const from_stdin[] = {"-"};
    run->data.train = (tn_strs){1, from_stdin};
    assert_words_again(f, "test --peers 4 a.yaml", "");
}

TEST_ON(fixture *f, children_share_the_processors)
{
    char want[200];
    uint32_t cpus = tn_cpu_count();
    f->setup.run.train.threads = TN_WORD_U32(0);
    f->setup.run.data.readers = TN_AUTO;
    assert_words(f, "test a --peers 1024",
                 "test a cluster.peers=1024 train.threads=1 data.readers=1");
    (void)snprintf(want, sizeof want, "test a cluster.peers=2 train.threads=%u data.readers=%u",
                   cpus > 2 ? cpus / 2 : 1, cpus > 7 ? cpus / 4 : 1);
    assert_words(f, "test a --peers 2", want);
    f->setup.run.compute.pin = true; /* they see their own only */
    assert_words(f, "test a --peers 2", "test a cluster.peers=2");
}

TEST_ON(fixture *f, the_number_takes_the_place_of_the_configurations)
{
    tn_local_group l = parse(f, "test a cluster.peers=2 --peers 3");
    tn_options own = tn_local_options(&l, f->setup.arena);
    assert_true(tn_local_is_group(&l));
    assert_int_equal(own.overrides.n, 2);
    assert_string_equal(own.overrides.item[0], "cluster.peers=2");
    assert_string_equal(own.overrides.item[1], "cluster.peers=3");
    l = parse(f, "test a --peers 1");
    own = tn_local_options(&l, f->setup.arena);
    assert_false(tn_local_is_group(&l));
    assert_int_equal(own.overrides.n, 1);
    assert_string_equal(own.overrides.item[0], "cluster.peers=1");
    l = parse(f, "test a");
    own = tn_local_options(&l, f->setup.arena);
    assert_false(tn_local_is_group(&l));
    assert_int_equal(own.overrides.n, 0);
}

static void assert_refused(fixture *f, const char *line, const char *want)
{
    tn_error err = {0};
    const tn_local_group l = parse(f, line);
    assert_int_equal(tn_local_run(&l, &f->setup, &err), TN_E_USAGE);
    assert_string_equal(err.text, want);
}

TEST(two_launchers_are_a_usage_error)
{
    if (tn_group_built() == &tn_group_none) {
        skip(); /* this build has no cluster */
    }
    (void)setenv("TNET_RANK", "0", 1); // NOLINT(concurrency-mt-unsafe): one thread
    assert_refused(*state, "test a --peers 2",
                   "--peers 2, but TNET_RANK says that this process is one of a group already\n"
                   "hint: either of the two starts the processes");
    (void)unsetenv("TNET_RANK"); // NOLINT(concurrency-mt-unsafe): one thread
}

TEST(what_can_be_read_once_is_no_configuration_of_several)
{
    assert_refused(*state, "test - --peers 2",
                   "'-' can be read once, but with --peers every process reads it");
    assert_refused(*state, "test /dev/null --peers 2",
                   "'/dev/null' can be read once, but with --peers every process reads it");
}

/* The program that is started is this one: it plays what its words say. */
TEST_ON(fixture *f, a_group_is_this_program_several_times)
{
    if (tn_group_built() == &tn_group_none) {
        skip(); /* this build has no cluster */
    }
    int ends[2];
    char line[PATH_BYTES];
    char said[4000];
    tn_error err = {0};
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(dup2(ends[1], 100), 100);
    f->setup.run.run.dir = f->dir;
    (void)snprintf(line, sizeof line, "test tell --peers 3 100 a=b");
    tn_local_group l = parse(f, line);
    assert_ok(tn_local_run(&l, &f->setup, &err), err.text);
    assert_int_equal(f->setup.exit_code, 0);
    (void)close(ends[1]);
    (void)close(100);
    ssize_t n = read(ends[0], said, sizeof said - 1);
    assert_true(n > 0);
    said[n] = '\0';
    assert_non_null(strstr(said, "tell 100 a=b cluster.peers=3  TNET_RANK=0; TNET_PEERS=3;"));
    assert_non_null(strstr(said, "tell 100 a=b cluster.peers=3  TNET_RANK=1; TNET_PEERS=3;"));
    assert_non_null(strstr(said, "tell 100 a=b cluster.peers=3  TNET_RANK=2; TNET_PEERS=3;"));
    (void)close(ends[0]);
}

ROLES(tn_role_play);
