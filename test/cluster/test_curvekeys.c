/* test_curvekeys.c - CURVE keys made, written and read; what tnet-keygen does. */
#include "support/test.h"

#include "base/core/failpoint.h"
#include "cluster/keys.h"
#include "cluster/testdir.h"

#include <sys/stat.h>

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

FIXTURE(testdir_set_up, testdir_tear_down);

TEST(a_pair_reads_back_from_its_two_files)
{
    tn_curve_pair made = keys_make(testdir, "a");
    tn_curve_pair read;
    uint8_t open[TN_CURVE_BYTES];
    assert_int_equal(tn_curve_read(keys_zmq(), keys_path(testdir, "a.key"), &read, NULL), TN_OK);
    assert_memory_equal(&read, &made, sizeof made);
    assert_int_equal(tn_curve_read_open(keys_zmq(), keys_path(testdir, "a.pub"), open, NULL),
                     TN_OK);
    assert_memory_equal(open, made.open, sizeof open);
    tn_curve_pair other = keys_make(testdir, "b");
    assert_memory_not_equal(other.secret, made.secret, sizeof made.secret);
}

TEST(files_are_forty_characters_and_the_secret_one_is_private)
{
    const mode_t mask = umask(022); /* one may let nobody read anything */
    (void)keys_make(testdir, "a");
    (void)umask(mask);
    tn_text text = {0};
    assert_int_equal(tn_file_read_all(keys_path(testdir, "a.key"), 1000, &text, NULL), TN_OK);
    assert_int_equal(text.size, TN_CURVE_CHARS + 1);
    assert_int_equal(text.data[TN_CURVE_CHARS], '\n');
    tn_text_done(&text);
    assert_int_equal(mode_of(keys_path(testdir, "a.key")), 0600);
    assert_int_equal(mode_of(keys_path(testdir, "a.pub")) & 0444, 0444);
}

TEST(nothing_is_overwritten_and_no_half_pair_stays)
{
    tn_error err = {0};
    tn_curve_pair pair;
    assert_int_equal(tn_curve_make(keys_zmq(), &pair, &err), TN_OK);
    const char *secret = keys_path(testdir, "a.key");
    const char *open = keys_path(testdir, "a.pub");
    keys_put(open, "mine", 0644);
    assert_int_equal(tn_curve_write(keys_zmq(), &pair, secret, open, &err), TN_E_IO);
    assert_false(tn_path_exists(secret));
    assert_int_equal(tn_remove_file(open, &err), TN_OK);
    keys_put(secret, "mine", 0600);
    assert_int_equal(tn_curve_write(keys_zmq(), &pair, secret, open, &err), TN_E_IO);
    assert_false(tn_path_exists(open));
}

TEST(a_failing_disk_leaves_no_half_pair)
{
    static const char *const rules[] = {"io.write#1:ENOSPC", "io.write#2:ENOSPC", "io.fsync#2:EIO",
                                        "io.create#2:EACCES"};
    tn_curve_pair pair;
    assert_int_equal(tn_curve_make(keys_zmq(), &pair, NULL), TN_OK);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        tn_error err = {0};
        const char *secret = keys_path(testdir, "a.key");
        const char *open = keys_path(testdir, "a.pub");
        assert_int_equal(tn_failpoint_set(rules[i], &err), TN_OK);
        assert_int_equal(tn_curve_write(keys_zmq(), &pair, secret, open, &err), TN_E_IO);
        assert_false(tn_path_exists(secret));
        assert_false(tn_path_exists(open));
    }
}

TEST(a_secret_that_others_can_open_is_refused)
{
    (void)keys_make(testdir, "a");
    const char *path = keys_path(testdir, "a.key");
    static const unsigned modes[] = {0640, 0604, 0620, 0602, 0644, 0610, 0601};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        tn_curve_pair read;
        tn_error err = {0};
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(tn_curve_read(keys_zmq(), path, &read, &err), TN_E_CONFIG);
        assert_non_null(strstr(err.text, "is open to others"));
        assert_non_null(strstr(err.text, "hint: chmod 600"));
    }
    tn_curve_pair read;
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(tn_curve_read(keys_zmq(), path, &read, NULL), TN_OK);
}

TEST(what_is_no_key_is_named_and_never_shown)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "is no key: not 40 characters"},
        {"0123456789012345678901234567890123456789\n\n", "is no key: not 40 characters"},
        {"0123456789012345678901234567890123456789x", "is no key: not 40 characters"},
        {"012345678901234567890123456789012345678", "is no key: not 40 characters"},
        {"012345678901234567890123456789012345678 ", "is no key: not Z85"},
        {"#####0123456789012345678901234567890123", "is no key: not 40 characters"},
        {"##########012345678901234567890123456789", "is no key: not Z85"}, /* above 2^32 */
    };
    const char *path = keys_path(testdir, "bad");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_curve_pair pair;
        uint8_t open[TN_CURVE_BYTES];
        tn_error err = {0};
        keys_put(path, cases[i].text, 0600);
        assert_int_equal(tn_curve_read(keys_zmq(), path, &pair, &err), TN_E_CONFIG);
        assert_non_null(strstr(err.text, cases[i].want));
        assert_null(strstr(err.text, "0123456789"));
        assert_int_equal(tn_curve_read_open(keys_zmq(), path, open, &err), TN_E_CONFIG);
        assert_non_null(strstr(err.text, cases[i].want));
    }
}

TEST(a_key_without_its_newline_is_a_key)
{
    char text[TN_CURVE_CHARS + 1];
    uint8_t read[TN_CURVE_BYTES];
    tn_curve_pair pair = keys_make(testdir, "a");
    assert_non_null(keys_zmq()->zmq_z85_encode(text, pair.open, TN_CURVE_BYTES));
    keys_put(keys_path(testdir, "bare.pub"), text, 0644);
    assert_int_equal(tn_curve_read_open(keys_zmq(), keys_path(testdir, "bare.pub"), read, NULL),
                     TN_OK);
    assert_memory_equal(read, pair.open, sizeof read);
}

TEST(missing_and_huge_files_are_faults_of_the_configuration)
{
    tn_curve_pair pair;
    uint8_t open[TN_CURVE_BYTES];
    tn_error err = {0};
    const char *path = keys_path(testdir, "none.key");
    assert_int_equal(tn_curve_read(keys_zmq(), path, &pair, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "none.key': No such file"));
    err = (tn_error){0};
    assert_int_equal(tn_curve_read_open(keys_zmq(), path, open, &err), TN_E_CONFIG);
    assert_int_equal(err.code, TN_E_CONFIG);
    char text[5000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    keys_put(path, text, 0600);
    assert_int_equal(tn_curve_read(keys_zmq(), path, &pair, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "not 40 characters"));
}

static int no_curve(const char *capability)
{
    (void)capability;
    return 0;
}

static int no_keypair(char *open, char *secret)
{
    open[0] = secret[0] = '\0';
    return -1;
}

TEST(a_library_without_curve_is_a_sentence)
{
    tn_curve_pair pair;
    tn_error err = {0};
    tn_zmq z = *keys_zmq();
    z.zmq_curve_keypair = no_keypair;
    assert_int_equal(tn_curve_make(&z, &pair, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "cannot make a key"));
    z.zmq_has = no_curve;
    assert_int_equal(tn_curve_make(&z, &pair, &err), TN_E_CONFIG);
    assert_string_equal(err.text, "this libzmq was built without CURVE");
}

TEST(what_is_forgotten_is_zeros)
{
    static const tn_curve_pair zeros;
    tn_curve_pair pair = keys_make(testdir, "a");
    tn_curve_forget(&pair);
    assert_memory_equal(&pair, &zeros, sizeof pair);
}

TEST(a_pair_stands_in_a_new_folder)
{
    tn_keygen_paths paths;
    tn_error err = {0};
    PATH_IN(peers, testdir, "some/peers");
    assert_int_equal(tn_keygen(peers, "rank-0", &paths, &err), TN_OK);
    assert_non_null(strstr(paths.secret, "/some/peers/rank-0.key"));
    assert_non_null(strstr(paths.open, "/some/peers/rank-0.pub"));
    tn_zmq z;
    tn_curve_pair pair;
    uint8_t open[TN_CURVE_BYTES];
    assert_int_equal(tn_zmq_load(&z, &err), TN_OK);
    assert_int_equal(tn_curve_read(&z, paths.secret, &pair, &err), TN_OK);
    assert_int_equal(tn_curve_read_open(&z, paths.open, open, &err), TN_OK);
    assert_memory_equal(open, pair.open, sizeof open);
    /* a second one of the same name is refused, whichever half is left */
    assert_int_equal(tn_keygen(peers, "rank-0", &paths, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "rank-0.key' is there already"));
    assert_int_equal(tn_remove_file(paths.secret, &err), TN_OK);
    assert_int_equal(tn_keygen(peers, "rank-0", &paths, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "rank-0.pub' is there already"));
    assert_false(tn_path_exists(paths.secret));
}

TEST(names_that_leave_the_folder_or_hide_are_refused)
{
    static const char *const names[] = {
        "",         "..",
        ".hidden",  "-v",
        "a/b",      "../a",
        "a b",      "a\n",
        "\xc3\xa4", "a1234567890123456789012345678901234567890123456789012345678901234"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tn_keygen_paths paths;
        tn_error err = {0};
        assert_int_equal(tn_keygen(testdir, names[i], &paths, &err), TN_E_USAGE);
        assert_non_null(strstr(err.text, "cannot name a key"));
    }
}

TEST(a_folder_that_cannot_be_made_is_told)
{
    tn_keygen_paths paths;
    tn_error err = {0};
    assert_int_equal(tn_keygen("/proc/nowhere", "a", &paths, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "/proc/nowhere"));
}
