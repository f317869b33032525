/* test_output_file.c - outputs: files appear whole, streams are written to, nothing of value is
 * lost.
 */
#include "support/test.h"

#include "base/core/failpoint.h"
#include "base/file/output_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct place {
    char dir[256];
    char path[2][TN_PATH_SIZE];
    uint32_t n;
    tn_error err;
} place;

SET_UP
{
    static place p;
    p = (place){0};
    tn_tmpdir_make(p.dir);
    *state = &p;
}

TEAR_DOWN
{
    const place *p = *state;
    tn_tmpdir_remove(p->dir);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
}

/* A path in the folder; the two last ones stay. */
static const char *in(place *p, const char *name)
{
    char *path = p->path[p->n++ % 2];
    assert_int_equal(tn_path_join(p->dir, name, path, NULL), TN_OK);
    return path;
}

static void make(place *p, const char *name, const char *text)
{
    assert_int_equal(tn_file_replace(in(p, name), text, strlen(text), &p->err), TN_OK);
}

static void assert_holds(place *p, const char *name, const char *text)
{
    tn_text read CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(in(p, name), 1 << 20, &read, &p->err), TN_OK);
    assert_string_equal(tn_text_str(&read), text);
}

static uint32_t files_in(const place *p)
{
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(p->dir, &names, &n, NULL), TN_OK);
    return n;
}

static tn_status put(place *p, const char *name, const char *text)
{
    return tn_output_put(in(p, name), text, strlen(text), NULL, &p->err);
}

static mode_t type_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & S_IFMT;
}

/* ---- files ---- */

TEST_ON(place *p, a_file_appears_whole_or_not_at_all)
{
    make(p, "out", "old");
    tn_output *o = NULL;
    assert_int_equal(tn_output_open(&o, in(p, "out"), NULL, &p->err), TN_OK);
    assert_int_equal(tn_output_write(o, "new", 3, &p->err), TN_OK);
    assert_int_equal(tn_output_size(o), 3);
    assert_false(tn_output_is_stream(o));
    assert_true(tn_path_exists(tn_output_tmp(o)));
    assert_holds(p, "out", "old");
    assert_int_equal(tn_output_commit(o, &p->err), TN_OK);
    assert_holds(p, "out", "new");
    assert_int_equal(tn_output_open(&o, in(p, "out"), NULL, &p->err), TN_OK);
    tn_output_abandon(o);
    tn_output_abandon(NULL);
    assert_holds(p, "out", "new");
    assert_int_equal(files_in(p), 1);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

TEST_ON(place *p, what_replaces_a_file_is_for_the_same_eyes)
{
    static const mode_t modes[] = {0600, 0640, 0664, 0755, 0400};
    tn_output *o = NULL;
    const mode_t before = umask(022);
    assert_int_equal(put(p, "out", "new"), TN_OK);
    assert_int_equal(mode_of(in(p, "out")), 0644); /* by the mask */
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(in(p, "out"), modes[i]), 0);
        assert_int_equal(tn_output_open(&o, in(p, "out"), NULL, &p->err), TN_OK);
        assert_int_equal(mode_of(tn_output_tmp(o)), modes[i]); /* and so is what is unfinished */
        assert_int_equal(tn_output_write(o, "more", 4, &p->err), TN_OK);
        assert_int_equal(tn_output_commit(o, &p->err), TN_OK);
        assert_int_equal(mode_of(in(p, "out")), modes[i]);
    }
    assert_int_equal(chmod(in(p, "out"), 0600), 0);
    assert_int_equal(symlink("out", in(p, "link")), 0);
    assert_int_equal(put(p, "link", "again"), TN_OK);
    assert_int_equal(mode_of(in(p, "out")), 0600);
    assert_holds(p, "out", "again");
    (void)umask(077);
    assert_int_equal(put(p, "other", "new"), TN_OK);
    assert_int_equal(mode_of(in(p, "other")), 0600);
    (void)umask(before);
    if (geteuid() == 0) { /* who may give files away keeps their owner */
        assert_int_equal(chown(in(p, "out"), 12345, 12346), 0);
        assert_int_equal(put(p, "out", "new"), TN_OK);
        struct stat st;
        assert_int_equal(stat(in(p, "out"), &st), 0);
        assert_int_equal(st.st_uid, 12345);
        assert_int_equal(st.st_gid, 12346);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
}

static char announced[TN_PATH_SIZE];

static void announce(const char *tmp)
{
    assert_false(tn_path_exists(tmp));
    (void)snprintf(announced, sizeof announced, "%s", tmp);
}

/* So that whoever removes it after a signal knows of it at every moment of its life. */
TEST_ON(place *p, an_unfinished_file_is_announced_before_it_is_made)
{
    tn_output *o = NULL;
    const tn_output_with with = {.announce = announce};
    assert_int_equal(tn_output_open(&o, in(p, "out"), &with, &p->err), TN_OK);
    assert_string_equal(announced, tn_output_tmp(o));
    assert_true(tn_path_exists(announced));
    tn_output_abandon(o);
    announced[0] = '\0';
    assert_int_equal(tn_output_open(&o, "/dev/null", &with, &p->err), TN_OK);
    assert_string_equal(announced, "");
    tn_output_abandon(o);
}

TEST_ON(place *p, a_failure_leaves_the_old_file_and_nothing_else)
{
    static const char *const rules[] = {"io.create:EDQUOT", "io.write:ENOSPC", "io.fsync:EIO",
                                        "io.close:EIO", "io.rename:EXDEV"};
    make(p, "out", "old");
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        assert_int_equal(tn_failpoint_set(rules[i], &p->err), TN_OK);
        assert_int_equal(put(p, "out", "new"), TN_E_IO);
        assert_int_equal(tn_failpoint_set(NULL, &p->err), TN_OK);
        assert_holds(p, "out", "old");
        assert_int_equal(files_in(p), 1);
    }
}

TEST_ON(place *p, after_a_failed_sync_another_file_is_tried)
{
    assert_int_equal(tn_failpoint_set("io.fsync#1:EIO", &p->err), TN_OK);
    assert_int_equal(put(p, "out", "new"), TN_OK);
    assert_holds(p, "out", "new");
    assert_int_equal(files_in(p), 1);
}

TEST_ON(place *p, a_folder_is_not_written_to)
{
    assert_int_equal(tn_output_put(p->dir, "x", 1, NULL, &p->err), TN_E_IO);
    assert_non_null(strstr(p->err.text, "it is a folder"));
    assert_int_equal(tn_output_put("", "x", 1, NULL, &p->err), TN_E_USAGE);
}

TEST_ON(place *p, trying_leaves_nothing_and_finds_what_cannot_be_made)
{
    assert_int_equal(tn_output_try(in(p, "out"), NULL, &p->err), TN_OK);
    assert_int_equal(files_in(p), 0);
    assert_int_equal(tn_output_try(in(p, "no/out"), NULL, &p->err), TN_E_IO);
}

TEST_ON(place *p, what_has_no_room_is_told_at_the_start)
{
    tn_output *o = NULL;
    assert_int_equal(tn_output_open(&o, in(p, "out"), NULL, &p->err), TN_OK);
    assert_int_equal(tn_output_expect(o, 1, &p->err), TN_OK);
    assert_int_equal(tn_output_expect(o, UINT64_MAX, &p->err), TN_E_IO);
    assert_non_null(strstr(p->err.text, "no room for '"));
    tn_output_abandon(o);
    assert_int_equal(tn_output_open(&o, "/dev/null", NULL, &p->err), TN_OK);
    assert_int_equal(tn_output_expect(o, UINT64_MAX, &p->err), TN_OK);
    tn_output_abandon(o);
}

/* ---- links ---- */

TEST_ON(place *p, a_link_stays_and_its_target_is_replaced)
{
    assert_int_equal(tn_dir_make(in(p, "far"), &p->err), TN_OK);
    make(p, "far/target", "old");
    assert_int_equal(symlink("far/target", in(p, "middle")), 0);
    assert_int_equal(symlink("middle", in(p, "link")), 0);
    assert_int_equal(put(p, "link", "new"), TN_OK);
    assert_int_equal(type_of(in(p, "link")), S_IFLNK);
    assert_int_equal(type_of(in(p, "far/target")), S_IFREG);
    assert_holds(p, "far/target", "new");
    assert_int_equal(files_in(p), 3);
}

TEST_ON(place *p, a_link_to_nothing_makes_its_target)
{
    assert_int_equal(symlink("target", in(p, "link")), 0);
    assert_int_equal(put(p, "link", "new"), TN_OK);
    assert_int_equal(type_of(in(p, "link")), S_IFLNK);
    assert_holds(p, "target", "new");
}

TEST_ON(place *p, links_in_a_circle_are_refused)
{
    assert_int_equal(symlink("b", in(p, "a")), 0);
    assert_int_equal(symlink("a", in(p, "b")), 0);
    assert_int_equal(put(p, "a", "x"), TN_E_IO);
    assert_non_null(strstr(p->err.text, "Too many levels of symbolic links"));
}

/* ---- streams ---- */

TEST_ON(place *p, devices_are_written_to_and_stay)
{
    assert_int_equal(tn_output_put("/dev/null", "x", 1, NULL, &p->err), TN_OK);
    assert_int_equal(type_of("/dev/null"), S_IFCHR);
    if (access("/dev/full", F_OK) != 0) {
        print_message("/dev/full is not there\n");
        skip();
    }
    assert_int_equal(tn_output_put("/dev/full", "x", 1, NULL, &p->err), TN_E_IO);
    assert_string_equal(p->err.text, "cannot write '/dev/full': No space left on device");
    assert_int_equal(type_of("/dev/full"), S_IFCHR);
    assert_int_equal(symlink("/dev/full", in(p, "link")), 0);
    assert_int_equal(put(p, "link", "x"), TN_E_IO);
    assert_int_equal(type_of(in(p, "link")), S_IFLNK);
}

static void *read_fifo(void *path)
{
    static char got[100];
    FILE *f = fopen(path, "r");
    size_t n = f != NULL ? fread(got, 1, sizeof got - 1, f) : 0;
    got[n] = '\0';
    if (f != NULL) {
        (void)fclose(f);
    }
    return got;
}

TEST_ON(place *p, a_fifo_reaches_its_reader_and_stays)
{
    void *got = NULL;
    pthread_t reader;
    char path[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(p->dir, "fifo", path, NULL), TN_OK);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_fifo, path), 0);
    assert_int_equal(put(p, "fifo", "by the pipe"), TN_OK);
    assert_int_equal(pthread_join(reader, &got), 0);
    assert_string_equal(got, "by the pipe");
    assert_int_equal(type_of(path), S_IFIFO);
    assert_int_equal(files_in(p), 1);
}

TEST_ON(place *p, a_signal_ends_the_wait_for_a_reader)
{
    const atomic_bool stop = true;
    tn_output *o = NULL;
    assert_int_equal(mkfifo(in(p, "fifo"), 0600), 0);
    assert_int_equal(tn_output_open(&o, p->path[0], &(tn_output_with){.stop = &stop}, &p->err),
                     TN_E_STOPPED);
    assert_null(o);
}

TEST_ON(place *p, a_socket_is_connected_to)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", in(p, "s"));
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(server, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server, 1), 0);
    assert_int_equal(put(p, "s", "by the socket"), TN_OK);
    char got[100] = "";
    int client = accept(server, NULL, NULL);
    assert_int_equal(read(client, got, sizeof got - 1), 13);
    assert_string_equal(got, "by the socket");
    (void)close(client);
    (void)close(server);
    assert_int_equal(type_of(in(p, "s")), S_IFSOCK);
}

/* Runs a write with standard output in a file of the folder. */
static void assert_goes_to_stdout(place *p, const char *name)
{
    int kept = dup(STDOUT_FILENO);
    int fd = open(in(p, "stdout"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)fflush(stdout);
    (void)dup2(fd, STDOUT_FILENO);
    ssize_t before = write(STDOUT_FILENO, "<", 1);
    bool is_stdout = tn_output_is_stdout(name);
    tn_status status = tn_output_put(name, "text", 4, NULL, &p->err);
    ssize_t after = write(STDOUT_FILENO, ">", 1);
    (void)dup2(kept, STDOUT_FILENO);
    (void)close(kept);
    (void)close(fd);
    assert_int_equal(status, TN_OK);
    assert_true(is_stdout && before == 1 && after == 1);
    assert_holds(p, "stdout", "<text>");
    assert_int_equal(unlink(in(p, "stdout")), 0);
}

TEST_ON(place *p, standard_output_is_written_to_at_its_place)
{
    assert_goes_to_stdout(p, "-");
    assert_goes_to_stdout(p, "/proc/self/fd/1");
    for (size_t i = 0; i < 2; i++) { /* links to it, which a bare /dev has not */
        static const char *const links[] = {"/dev/stdout", "/dev/fd/1"};
        if (access(links[i], F_OK) == 0) {
            assert_goes_to_stdout(p, links[i]);
        }
    }
    assert_int_equal(symlink("/proc/self/fd/1", in(p, "link")), 0);
    assert_goes_to_stdout(p, in(p, "link"));
    assert_false(tn_output_is_stdout("/dev/null"));
    assert_false(tn_output_is_stdout(in(p, "out")));
    assert_false(tn_output_is_stdout(NULL));
}

/* ---- what is refused ---- */

TEST_ON(place *p, an_input_of_the_run_is_refused_through_links_too)
{
    tn_inputs inputs = {0};
    static const char *const names[] = {"data", "link", "hard"};
    make(p, "data", "rows");
    assert_int_equal(symlink("data", in(p, "link")), 0);
    assert_int_equal(link(in(p, "data"), in(p, "hard")), 0);
    assert_int_equal(tn_inputs_add(&inputs, in(p, "missing"), &p->err), TN_OK);
    assert_int_equal(tn_inputs_add(&inputs, "/dev/null", &p->err), TN_OK);
    assert_int_equal(tn_inputs_add(&inputs, in(p, "data"), &p->err), TN_OK);
    for (size_t i = 0; i < 3; i++) {
        tn_output *o = NULL;
        const tn_output_with with = {.inputs = &inputs};
        assert_int_equal(tn_output_open(&o, in(p, names[i]), &with, &p->err), TN_E_USAGE);
        assert_null(o);
        assert_non_null(strstr(p->err.text, "which is read by this run") != NULL
                            ? p->err.text
                            : strstr(p->err.text, "is read by this run"));
        assert_int_equal(tn_output_check(in(p, names[i]), &inputs, &p->err), TN_E_USAGE);
        assert_int_equal(tn_output_try(in(p, names[i]), &inputs, &p->err), TN_E_USAGE);
    }
    assert_holds(p, "data", "rows");
    assert_int_equal(tn_output_check(in(p, "other"), &inputs, &p->err), TN_OK);
    assert_int_equal(tn_output_check("/dev/null", &inputs, &p->err), TN_OK);
    tn_inputs_done(&inputs);
}

TEST_ON(place *p, checkpoints_and_exports_are_not_written_into)
{
    static const char *const folders[] = {"run/ckpt-1", "out/0123", "run/ckpt-2.damaged"};
    static const char *const marks[] = {"MANIFEST", "EXPORT.json", "MANIFEST"};
    for (size_t i = 0; i < 3; i++) {
        char name[200];
        (void)snprintf(name, sizeof name, "%s/sub", folders[i]);
        assert_int_equal(tn_dir_make(in(p, name), &p->err), TN_OK);
        assert_int_equal(tn_output_check_folder(in(p, folders[i]), &p->err), TN_OK);
        (void)snprintf(name, sizeof name, "%s/%s", folders[i], marks[i]);
        make(p, name, "{}");
        assert_int_equal(put(p, name, "x"), TN_E_USAGE);
        assert_holds(p, name, "{}");
        (void)snprintf(name, sizeof name, "%s/sub/new", folders[i]);
        assert_int_equal(put(p, name, "x"), TN_E_USAGE);
        assert_int_equal(symlink(in(p, name), in(p, "link")), 0);
        assert_int_equal(put(p, "link", "x"), TN_E_USAGE);
        assert_int_equal(unlink(in(p, "link")), 0);
        assert_int_equal(tn_output_check_folder(in(p, folders[i]), &p->err), TN_E_USAGE);
        (void)snprintf(name, sizeof name, "%s/new-folder", folders[i]);
        assert_int_equal(tn_output_check_folder(in(p, name), &p->err), TN_E_USAGE);
    }
    assert_int_equal(put(p, "run/report.html", "x"), TN_OK);
    assert_int_equal(tn_output_check_folder(in(p, "out"), &p->err), TN_OK);
}

/* ---- what killed writers leave ---- */

TEST_ON(place *p, left_overs_of_the_same_output_are_removed_and_no_others)
{
    static const char *const stay[] = {
        "out.tmp",
        "out.0123456789abcde.tmp",
        "out.0123456789abcdef0.tmp",
        "out.0123456789ABCDEF.tmp",
        "other.0123456789abcdef.tmp",
        "out.0123456789abcdef.tmp.1",
        "xout.0123456789abcdef.tmp",
    };
    enum { N = sizeof stay / sizeof stay[0] };
    for (size_t i = 0; i < N; i++) {
        make(p, stay[i], "mine");
    }
    make(p, "out.0123456789abcdef.tmp", "half");
    make(p, "out.ffffffffffffffff.tmp", "half");
    assert_int_equal(put(p, "out", "new"), TN_OK);
    assert_holds(p, "out", "new");
    assert_int_equal(files_in(p), N + 1);
    for (size_t i = 0; i < N; i++) {
        assert_holds(p, stay[i], "mine");
    }
}

TEST_ON(place *p, what_a_living_writer_writes_is_left_to_it)
{
    tn_output *living = NULL;
    assert_int_equal(tn_output_open(&living, in(p, "out"), NULL, &p->err), TN_OK);
    assert_int_equal(tn_output_write(living, "slow", 4, &p->err), TN_OK);
    assert_int_equal(put(p, "out", "quick"), TN_OK);
    assert_holds(p, "out", "quick");
    assert_int_equal(tn_output_finish(living, &p->err), TN_OK);
    assert_int_equal(put(p, "out", "quick"), TN_OK);
    assert_int_equal(tn_output_commit(living, &p->err), TN_OK);
    assert_holds(p, "out", "slow");
    assert_int_equal(files_in(p), 1);
}

TEST_ON(place *p, the_lock_of_the_first_stands_for_all_that_appear_together)
{
    tn_output *first = NULL;
    tn_output *second = NULL;
    assert_int_equal(tn_output_open(&first, in(p, "a"), NULL, &p->err), TN_OK);
    assert_int_equal(tn_output_finish(first, &p->err), TN_OK);
    const tn_output_with with = {.lead = first};
    assert_int_equal(tn_output_open(&second, in(p, "b"), &with, &p->err), TN_OK);
    assert_int_equal(tn_output_write(second, "mine", 4, &p->err), TN_OK);
    assert_int_equal(tn_output_finish(second, &p->err), TN_OK);

    tn_output *other = NULL; /* another process that writes the same two */
    tn_output *others = NULL;
    assert_int_equal(tn_output_open(&other, in(p, "a"), NULL, &p->err), TN_OK);
    const tn_output_with same = {.lead = other};
    assert_int_equal(tn_output_open(&others, in(p, "b"), &same, &p->err), TN_OK);
    /* `b` of the first is not locked, and its lead is not the other's: it may go only when its own
     * lead is gone */
    assert_true(tn_path_exists(tn_output_tmp(second)));
    tn_output_abandon(others);
    tn_output_abandon(other);

    assert_int_equal(tn_output_commit(second, &p->err), TN_OK);
    assert_int_equal(tn_output_commit(first, &p->err), TN_OK);
    assert_holds(p, "b", "mine");
    assert_int_equal(files_in(p), 2);
}

TEST_ON(place *p, without_memory_nothing_is_left)
{
    tn_status status = TN_E_MEMORY;
    for (uint64_t n = 1; status == TN_E_MEMORY; n++) {
        assert_true(n < 100);
        tn_alloc_fail_at(n);
        status = put(p, "out", "x");
        tn_alloc_fail_at(0);
        assert_int_equal(files_in(p), status == TN_OK);
    }
    assert_int_equal(status, TN_OK);
}

TEST_ON(place *p, a_nameless_file_is_read_again_and_leaves_nothing)
{
    tn_file *f = NULL;
    tn_map map;
    assert_int_equal(tn_file_create_nameless(&f, in(p, "x"), &p->err), TN_OK);
    assert_int_equal(files_in(p), 0);
    assert_int_equal(tn_file_map(&map, f, &p->err), TN_OK);
    assert_int_equal(map.size, 0);
    tn_unmap(&map);
    assert_int_equal(tn_file_write(f, "abc", 3, &p->err), TN_OK);
    assert_int_equal(tn_file_map(&map, f, &p->err), TN_OK);
    assert_int_equal(map.size, 3);
    assert_memory_equal(map.data, "abc", 3);
    tn_unmap(&map);
    tn_file_abandon(f);
    assert_int_equal(files_in(p), 0);
}
