/* test_limits.c - limits and use of memory, as trees of files under a folder say it; the limit of
 * open files, raised where it must be. */
#include "base/machine/limits.h"
#include "support/test.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[256];

static void put(const char *path, const char *text)
{
    char whole[512];
    for (const char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        (void)snprintf(whole, sizeof whole, "%s%.*s", root, (int)(at - path), path);
        assert_int_equal(tn_dir_make(whole, NULL), TN_OK);
    }
    (void)snprintf(whole, sizeof whole, "%s%s", root, path);
    assert_int_equal(tn_file_replace(whole, text, strlen(text), NULL), TN_OK);
}

static int set_up(void **state)
{
    (void)state;
    tn_tmpdir_make(root);
    put("/proc/meminfo", "MemTotal:        4000 kB\nMemFree:         1000 kB\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tn_tmpdir_remove(root);
    return 0;
}

static void assert_limit(uint64_t resident, const char *by)
{
    tn_memory_limit limit;
    tn_memory_limit_of(root, &limit);
    assert_int_equal(limit.resident, resident);
    assert_string_equal(limit.by, by);
}

static const char v2_mount[] =
    "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
    "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
static const char v1_mounts[] =
    "31 22 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "35 22 0:31 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n";

TEST_WITH(set_up, tear_down, ram_is_the_limit_where_nothing_else_is)
{
    assert_limit(UINT64_C(4000) * 1024, "RAM");
    put("/proc/self/cgroup", "0::/a\n");
    put("/proc/self/mountinfo", v2_mount);
    assert_limit(UINT64_C(4000) * 1024, "RAM"); /* no such file */
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    assert_limit(UINT64_C(4000) * 1024, "RAM");
    put("/sys/fs/cgroup/a/memory.max", "9000000000\n");
    assert_limit(UINT64_C(4000) * 1024, "RAM"); /* more than there is */
}

TEST_WITH(set_up, tear_down, the_least_of_all_cgroups_above_counts)
{
    put("/proc/self/cgroup", "0::/a/b/c\n");
    put("/proc/self/mountinfo", v2_mount);
    put("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
    put("/sys/fs/cgroup/a/b/memory.max", "3000000\n");
    put("/sys/fs/cgroup/a/memory.max", "2000000\n");
    assert_limit(2000000, "cgroup memory.max");
    put("/sys/fs/cgroup/a/b/c/memory.max", "1000000\n");
    assert_limit(1000000, "cgroup memory.max");
    put("/sys/fs/cgroup/memory.max", "500000\n"); /* a container sees its own as the top */
    assert_limit(500000, "cgroup memory.max");
}

TEST_WITH(set_up, tear_down, version_1_says_it_in_its_own_words)
{
    put("/proc/self/cgroup", "5:cpu:/x\n4:hugetlb,memory:/a/b\n0::/\n");
    put("/proc/self/mountinfo", v1_mounts);
    put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    assert_limit(UINT64_C(4000) * 1024, "RAM");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1500000\n");
    assert_limit(1500000, "cgroup memory.limit_in_bytes");
    put("/sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1\n"); /* nobody's */
    assert_limit(1500000, "cgroup memory.limit_in_bytes");
}

/* As in a container without a namespace of cgroups: what is mounted is a part of the whole. */
TEST_WITH(set_up, tear_down, a_mounted_part_of_the_hierarchy_begins_at_its_top)
{
    put("/proc/self/cgroup", "0::/docker/123/job\n");
    put("/proc/self/mountinfo", "30 22 0:26 /docker/123 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/memory.max", "3000000\n");
    put("/sys/fs/cgroup/job/memory.max", "2000000\n");
    assert_limit(2000000, "cgroup memory.max");
    put("/proc/self/cgroup", "0::/../other\n"); /* outside of what is seen */
    assert_limit(3000000, "cgroup memory.max");
}

/* More lines than are read at once, and one that is longer than any. */
TEST_WITH(set_up, tear_down, a_long_list_of_mounts_is_read_to_its_end)
{
    tn_text mounts CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < 400; i++) {
        tn_text_addf(&mounts, "%u 22 0:27 / /mnt/%0*u rw - tmpfs tmpfs rw\n", i, i == 7 ? 9000 : 40,
                     i);
    }
    tn_text_adds(&mounts, v2_mount);
    put("/proc/self/cgroup", "0::/a");
    put("/proc/self/mountinfo", tn_text_str(&mounts));
    put("/sys/fs/cgroup/a/memory.max", "12345");
    assert_limit(12345, "cgroup memory.max");
}

TEST_WITH(set_up, tear_down, address_space_is_a_limit_of_its_own)
{
    tn_memory_limit limit;
    tn_memory_limit_of(root, &limit);
    assert_int_equal(limit.address_space, UINT64_MAX);
    put("/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max cpu time              unlimited            unlimited            seconds   \n"
        "Max address space         123456789            unlimited            bytes     \n");
    tn_memory_limit_of(root, &limit);
    assert_int_equal(limit.address_space, 123456789);
    assert_int_equal(limit.resident, UINT64_C(4000) * 1024);
    put("/proc/self/limits",
        "Max address space         unlimited            unlimited            bytes     \n");
    tn_memory_limit_of(root, &limit);
    assert_int_equal(limit.address_space, UINT64_MAX);
}

TEST_WITH(set_up, tear_down, use_is_counted_in_pages)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    tn_memory_use use = {1, 1};
    tn_memory_use_of(root, &use);
    assert_int_equal(use.resident, 0);
    put("/proc/self/statm", "3000 700 60 5 0 400 0\n");
    tn_memory_use_of(root, &use);
    assert_int_equal(use.address_space, 3000 * page);
    assert_int_equal(use.resident, 700 * page);
}

TEST(this_machine_says_it_too)
{
    tn_memory_limit limit;
    tn_memory_use use;
    struct rlimit own;
    assert_int_equal(getrlimit(RLIMIT_AS, &own), 0);
    tn_memory_limit_of("", &limit);
    tn_memory_use_of("", &use);
    assert_true(use.resident > 0 && use.resident <= use.address_space);
    assert_true(limit.resident > use.resident && limit.resident < UINT64_MAX);
    assert_int_equal(limit.address_space,
                     own.rlim_cur == RLIM_INFINITY ? UINT64_MAX : own.rlim_cur);
}

/* A hard limit that was lowered stays so: each test has a process of its own, and returns 0 when
 * all is right. */
static void run_apart(int (*test)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(test() != 0 ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool set(uint64_t soft, uint64_t hard)
{
    const struct rlimit limit = {soft, hard};
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static bool is(uint64_t soft, uint64_t hard)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == soft &&
           limit.rlim_max == hard;
}

static int play_enough(void)
{
    const bool good = set(64, 200) && tn_descriptors_need(64, "a test", NULL) == TN_OK;
    return good && is(64, 200) ? 0 : 1;
}

TEST(a_limit_that_is_high_enough_stays)
{
    run_apart(play_enough);
}

static int play_raised(void)
{
    const bool good = set(64, 200) && tn_descriptors_need(65, "a test", NULL) == TN_OK;
    return good && is(200, 200) ? 0 : 1;
}

TEST(a_soft_limit_is_raised_to_the_hard_one)
{
    run_apart(play_raised);
}

static int play_too_low(void)
{
    static const char want[] = "9 peers may need 201 open files, the hard limit is 200\nhint: ";
    tn_error err = {0};
    const bool good = set(64, 200) && tn_descriptors_need(201, "9 peers", &err) == TN_E_CONFIG;
    return good && strncmp(err.text, want, sizeof want - 1) == 0 && is(64, 200) ? 0 : 1;
}

TEST(a_hard_limit_that_is_too_low_is_told)
{
    run_apart(play_too_low);
}
