/* test_remote_put.c - files sent to stores that cut, stall, lose answers and have no room: what
 * lies there afterwards is the file, or what was there before.
 */

#include "base/core/clock.h"
#include "base/core/failpoint.h"
#include "base/core/stop.h"
#include "io/source/remote.h"
#include "support/served.h"
#include "support/test.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 16777219 }; /* two parts of S3, the last of three bytes */

/* Divides silences, to 3 s, while the store holds a request that is to count as failed. */
static const char brief[] = "10";

typedef struct world {
    served s;        /* folder that the store serves */
    char local[256]; /* file that is sent */
    char *data;
} world;

GROUP_SET_UP
{
    static world w;
    served_silence("1");
    (void)setenv("TNET_FAST", "60", 1); /* NOLINT(concurrency-mt-unsafe): no thread is there yet */
    (void)unsetenv("http_proxy");       /* NOLINT(concurrency-mt-unsafe) */
    tn_tmpdir_make(w.local);
    served_open(&w.s, "!cut !stall !slow !mute !spoil !swap !liar !full !old !hang !busy !flood "
                      "!denied !dead !safe b signed");
    w.data = served_bytes(BYTES);
    served_write(w.local, "large", w.data, BYTES);
    served_write(w.local, "middle", w.data, 3000000);
    served_write(w.local, "short", w.data, 10);
    served_write(w.local, "empty", w.data, 0);
    PATH_IN(path, w.s.dir, ".parts");
    assert_int_equal(mkdir(path, 0755), 0);
    served_secrets(&w.s, "aws_access_key_id = AKID\naws_secret_access_key = " STORE_SECRET "\n");
    *state = &w;
}

GROUP_TEAR_DOWN
{
    world *w = *state;
    served_close(&w->s);
    free(w->data);
    tn_tmpdir_remove(w->local);
}

/* ---- what lies there ---- */

static uint32_t entries(const world *w, const char *name)
{
    char path[600];
    uint32_t n = 0;
    (void)snprintf(path, sizeof path, "%s/%s", w->s.dir, name);
    DIR *dir = opendir(path);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this thread's */
    for (const struct dirent *e = NULL; dir != NULL && (e = readdir(dir)) != NULL;) {
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return n;
}

static void check_there(const world *w, const char *name, size_t size)
{
    char path[600];
    tn_map map = {0};
    (void)snprintf(path, sizeof path, "%s/out/%s", w->s.dir, name);
    assert_int_equal(tn_map_file(&map, path, NULL), TN_OK);
    assert_int_equal(map.size, size);
    assert_true(size == 0 || memcmp(map.data, w->data, size) == 0);
    tn_unmap(&map);
}

/* Nothing is half done: one file in out/, no parts. */
static void check_clean(const world *w, uint32_t files)
{
    assert_int_equal(entries(w, "out"), files);
    assert_int_equal(entries(w, ".parts"), 0);
}

static void clear(const world *w)
{
    tn_error err = {0};
    PATH_IN(path, w->s.dir, "out");
    assert_true(!tn_path_exists(path) || tn_remove_tree(path, &err) == TN_OK);
}

static tn_status send(const world *w, const char *file, const char *where, const atomic_bool *stop,
                      tn_error *err)
{
    char path[600];
    char uri[SERVED_URI];
    tn_remote *r = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", w->local, file);
    served_uri(&w->s, where, uri);
    assert_int_equal(tn_remotes()->open(&r, w->s.secrets, err), TN_OK);
    const tn_status status = tn_remotes()->put(r, path, uri, stop, err);
    tn_remotes()->close(r);
    store_await_idle(w->s.server);
    return status;
}

/* `n` files from `first` on. */
static void check_sent(const world *w, uint32_t first, uint32_t n, const char *where)
{
    static const struct {
        const char *name;
        size_t size;
    } files[] = {{"empty", 0}, {"short", 10}, {"middle", 3000000}, {"large", BYTES}};
    for (uint32_t i = first; i < first + n; i++) {
        char uri[300];
        tn_error err = {0};
        (void)snprintf(uri, sizeof uri, "%s/out/%s", where, files[i].name);
        fail_if(send(w, files[i].name, uri, NULL, &err) != TN_OK, "%s: %s", uri, err.text);
        check_there(w, files[i].name, files[i].size);
    }
    check_clean(w, n);
    clear(w);
}

/* ---- tests ---- */

TEST(files_of_any_size_lie_there_as_they_are)
{
    check_sent(*state, 0, 4, "s3://b");
    check_sent(*state, 0, 4, "s3://signed");
    check_sent(*state, 0, 3, "gs://signed");
    check_sent(*state, 0, 4, "webhdfs://127.0.0.1:%n");
}

TEST(what_fails_for_once_is_sent_again)
{
    static const char *const faults[] = {"cut", "mute", "stall", "slow", "busy", "spoil", "swap"};
    for (uint32_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const uint32_t first = i == 1 || i == 2 ? 2 : 0;
        char where[100];
        served_silence(i == 2 ? brief : "1");
        (void)snprintf(where, sizeof where, "s3://signed/!%s", faults[i]);
        check_sent(*state, first, i < 2 ? 4 - first : 3 - first, where);
        (void)snprintf(where, sizeof where, "webhdfs://127.0.0.1:%%n/!%s", faults[i]);
        if (i < 5) { /* HDFS has sums of its own, and no ETags */
            check_sent(*state, first, 3 - first, where);
        }
    }
    served_silence("1");
    check_sent(*state, 1, 1, "webhdfs://127.0.0.1:%n/!safe");
}

TEST_ON(const world *w, an_older_file_is_replaced)
{
    static const char *const where[] = {"s3://b/out/x", "webhdfs://127.0.0.1:%n/out/x",
                                        "webhdfs://127.0.0.1:%n/!mute/out/x",
                                        "webhdfs://127.0.0.1:%n/!old/out/x"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(send(w, "short", where[i], NULL, NULL), TN_OK);
        check_there(w, "x", 10);
        assert_int_equal(send(w, "middle", where[i], NULL, NULL), TN_OK);
        check_there(w, "x", 3000000);
        check_clean(w, 1);
    }
    clear(w);
}

/* Checks the first `n` files. */
static void check_refused(const world *w, uint32_t n, const char *where, const char *words)
{
    const char *silence = strstr(where, "!hang") != NULL ? "60" : "1";
    static const char *const files[] = {"short", "middle", "large"};
    char uri[300];
    const char *scheme = strstr(where, "://");
    (void)snprintf(uri, sizeof uri, "%.*s://%s/out/x", (int)(scheme - where), where,
                   strncmp(where, "s3", 2) == 0 ? "b" : "127.0.0.1:%n");
    for (uint32_t i = 0; i < n; i++) {
        tn_error err = {0};
        assert_int_equal(send(w, "empty", uri, NULL, &err), TN_OK); /* this file stays */
        served_silence(silence);
        assert_int_equal(send(w, files[i], where, NULL, &err), TN_E_IO);
        served_silence("1");
        fail_if(strstr(err.text, words) == NULL, "%s: %s", where, err.text);
        check_there(w, "x", 0);
        check_clean(w, 1);
    }
    clear(w);
}

TEST_ON(const world *w, a_failure_leaves_what_was_there)
{
    check_refused(w, 3, "s3://b/!full/out/x", "the server answers 507 (XMinioStorageFull)");
    check_refused(w, 2, "s3://b/!denied/out/x", "the server answers 403 (AccessDenied)");
    check_refused(w, 2, "s3://b/!flood/out/x", "the server answers 503, 8 times without progress");
    check_refused(w, 2, "webhdfs://127.0.0.1:%n/!full/out/x",
                  "the server answers 403 (DSQuotaExceededException)");
    check_refused(w, 2, "webhdfs://127.0.0.1:%n/!denied/out/x", "the server answers 403");
    check_refused(w, 2, "webhdfs://127.0.0.1:%n/!flood/out/x", "8 times without progress");
    check_refused(w, 1, "s3://b/!hang/out/x", "cannot write 's3://b/!hang/out/x'");
    check_refused(w, 1, "webhdfs://127.0.0.1:%n/!hang/out/x", "cannot write 'webhdfs://");
}

TEST_ON(const world *w, what_a_store_has_lost_twice_is_a_failure)
{
    tn_error err = {0};
    const uint64_t before = store_requests(w->s.server);
    assert_int_equal(send(w, "short", "s3://b/!liar/out/x", NULL, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "has something else there than what was sent"));
    assert_int_equal(store_requests(w->s.server) - before, 4); /* a PUT and a look, twice */
    assert_int_equal(send(w, "empty", "webhdfs://127.0.0.1:%n/out/y", NULL, &err), TN_OK);
    assert_int_equal(send(w, "short", "webhdfs://127.0.0.1:%n/!liar/out/y", NULL, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "something else lies there than what was sent"));
    check_there(w, "y", 0); /* the older one */
    check_clean(w, 2);
    clear(w);
}

/* Stopped while the store holds a request; what is taken back then may take its time, too. */
static void check_stopped(const world *w, const char *where, bool process)
{
    served_stop s = {.s = &w->s, .held = store_held(w->s.server) + 1};
    pthread_t thread;
    tn_error err = {0};
    tn_stop_set(process ? &s.stop : NULL);
    assert_int_equal(pthread_create(&thread, NULL, served_stop_thread, &s), 0);
    const double begun = tn_clock_s();
    const tn_status status = send(w, "large", where, process ? NULL : &s.stop, &err);
    assert_int_equal(pthread_join(thread, NULL), 0);
    tn_stop_set(NULL);
    assert_int_equal(status, TN_E_STOPPED);
    assert_true(tn_clock_s() - begun < 30); /* the silence after which it would try again */
    check_clean(w, 0);
}

TEST(a_stop_leaves_nothing)
{
    assert_int_equal(tn_failpoint_set("remote.hurry:error", NULL), TN_OK);
    for (int process = 0; process < 2; process++) {
        check_stopped(*state, "s3://b/!hang/out/x", process);
        check_stopped(*state, "webhdfs://127.0.0.1:%n/!hang/out/x", process);
    }
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    check_stopped(*state, "webhdfs://127.0.0.1:%n/!dead/out/x", true); /* it gets 3 s */
}

TEST(what_cannot_be_written_to_is_refused_unasked)
{
    static const struct {
        const char *uri, *words;
    } refused[] = {
        {"http://h/a", "nothing is written to http://"},
        {"https://h/a", "nothing is written to https://"},
        {"abfs://c@a.dfs.core.windows.net/x", "hint: s3, gs, webhdfs and swebhdfs are written to"},
        {"ftp://h/a", "this build knows no store of ftp://"},
        {"s3:///a", "names no bucket"},
        {"s3://b/a*", "is a pattern"},
        {"webhdfs://me:hidden@h/a", "a user or a password in a URI"},
    };
    tn_error err = {0};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(tn_remotes()->check_target(refused[i].uri, false, &err), TN_E_CONFIG);
        assert_int_equal(err.code, TN_E_CONFIG);
        fail_if(strstr(err.text, refused[i].words) == NULL, "%s: %s", refused[i].uri, err.text);
    }
    assert_int_equal(tn_remotes()->check_target("s3://b", false, &err), TN_OK);
    assert_int_equal(tn_remotes()->check_target("gs://b/a/", false, &err), TN_OK);
    assert_int_equal(tn_remotes()->check_target("swebhdfs://n:1,m:2/a", false, &err), TN_OK);
}

TEST_ON(const world *w, a_folder_is_no_file)
{
    tn_error err = {0};
    assert_int_equal(send(w, "short", "s3://b/out/", NULL, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "names no file"));
    assert_int_equal(send(w, "absent", "s3://b/out/x", NULL, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "absent': No such file or directory"));
    assert_int_equal(send(w, "short", "webhdfs://127.0.0.1:%n/out/d/x", NULL, &err), TN_OK);
    assert_int_equal(send(w, "short", "webhdfs://127.0.0.1:%n/out/d", NULL, &err), TN_E_IO);
    check_clean(w, 1);
    clear(w);
}
