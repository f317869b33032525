/* test_rendezvous_file.c - the file by which the others find rank 0. */
#include "cluster/launch/rendezvous_file.h"
#include "cluster/testdir.h"

#include "base/core/failpoint.h"
#include "cluster/keys.h"
#include "support/test.h"

FIXTURE(testdir_set_up, testdir_tear_down);

TEST(what_rank_0_tells_the_others_find)
{
    char found[TN_ENDPOINT_SIZE] = "";
    const char *path = keys_path(testdir, "run/x/peers.root");
    tn_error err = {0};
    assert_int_equal(tn_rendezvous_file_read(path, 7, found, &err), TN_END);
    assert_int_equal(tn_rendezvous_file_write(path, 7, "tcp://10.1.0.7:41234", &err), TN_OK);
    assert_int_equal(tn_rendezvous_file_read(path, 7, found, &err), TN_OK);
    assert_string_equal(found, "tcp://10.1.0.7:41234");
    /* a later start of the same run */
    assert_int_equal(tn_rendezvous_file_write(path, 7, "tcp://[fd00::7]:5", &err), TN_OK);
    assert_int_equal(tn_rendezvous_file_read(path, 7, found, &err), TN_OK);
    assert_string_equal(found, "tcp://[fd00::7]:5");
}

TEST(another_runs_address_is_not_ours)
{
    char found[TN_ENDPOINT_SIZE] = "untouched";
    const char *path = keys_path(testdir, "peers.root");
    assert_int_equal(tn_rendezvous_file_write(path, 7, "tcp://10.1.0.7:41234", NULL), TN_OK);
    assert_int_equal(tn_rendezvous_file_read(path, 8, found, NULL), TN_END);
    assert_string_equal(found, "untouched");
}

TEST(what_is_no_address_is_not_there_yet)
{
    static const char *const texts[] = {"",
                                        "0000000000000007",
                                        "0000000000000007 tcp://a:1",
                                        "0000000000000007 tcp://a:0\n",
                                        "0000000000000007 a b\n",
                                        "000000000000000x tcp://a:1\n",
                                        "0000000000000007_tcp://a:1\n"};
    const char *path = keys_path(testdir, "peers.root");
    char found[TN_ENDPOINT_SIZE];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        keys_put(path, texts[i], 0644);
        assert_int_equal(tn_rendezvous_file_read(path, 7, found, NULL), TN_END);
    }
    char large[4000];
    memset(large, '7', sizeof large);
    large[sizeof large - 1] = '\0';
    keys_put(path, large, 0644);
    assert_int_equal(tn_rendezvous_file_read(path, 7, found, NULL), TN_END);
    keys_put(path, "0000000000000007 tcp://a:1\n", 0644);
    assert_int_equal(tn_rendezvous_file_read(path, 7, found, NULL), TN_OK);
}

TEST(a_disk_that_fails_is_told)
{
    tn_error err = {0};
    char found[TN_ENDPOINT_SIZE];
    const char *path = keys_path(testdir, "peers.root");
    assert_int_equal(tn_rendezvous_file_write("/proc/none/peers.root", 7, "tcp://a:1", &err),
                     TN_E_IO);
    assert_int_equal(tn_rendezvous_file_write(path, 7, "tcp://a:1", &err), TN_OK);
    assert_int_equal(tn_failpoint_set("io.open:EIO", &err), TN_OK);
    assert_int_equal(tn_rendezvous_file_read(path, 7, found, &err), TN_E_IO);
}
