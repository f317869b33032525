/* test_remote.c - objects of URIs, from a server that cuts, stalls, lies and changes its mind:
 * the bytes are those of the file, or there is an error.
 */
#include "extra/remote/remote_client.h"
#include "io/source/remote.h"

#include "base/core/clock.h"
#include "base/core/failpoint.h"
#include "base/core/log.h"
#include "base/core/stop.h"
#include "base/core/text.h"
#include "support/served.h"
#include "support/test.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

CLOSER(tn_http_close);

enum { BYTES = 6000000, STEP = 70001 };

typedef struct world {
    served s;
    tn_arena *arena;
    char *data; /* bytes of a.bin */
} world;

/* These lines, and a header that is a secret. */
static void keep_secrets(const world *w, const char *lines)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_text_addf(&text, "http_header = X-Secret: s\n%s", lines);
    served_secrets(&w->s, tn_text_str(&text));
}

GROUP_SET_UP
{
    static world w;
    (void)setenv("TNET_FAST", "100", 1); /* NOLINT(concurrency-mt-unsafe): no thread is there yet */
    (void)unsetenv("http_proxy");        /* NOLINT(concurrency-mt-unsafe) */
    served_silence("1");
    served_open(
        &w.s, "!cut !stall !slow !busy !flood !change !sneak !bare !shift !noranges "
              "!chunked !nolength !notag !wrong !loop !bits !hop !expire !denied !dead !once "
              "badlist deadlist roundlist freshlist emptylist hugelist b signed !safe !sick !whole "
              "!rude !creep !crumbs !later !forget !twice");
    w.data = served_bytes(BYTES);
    served_write(w.s.dir, "a.bin", w.data, BYTES);
    served_write(w.s.dir, "empty", "", 0);
    served_write(w.s.dir, "short", "ten bytes.", 10);
    w.arena = tn_arena_new(1 << 16);
    keep_secrets(&w, "");
    *state = &w;
}

GROUP_TEAR_DOWN
{
    world *w = *state;
    served_close(&w->s);
    tn_arena_free(w->arena);
    free(w->data);
}

typedef struct got {
    tn_status status;
    tn_error err;
    tn_text bytes;
    tn_remote_object object;
} got;

static tn_status read_on(tn_remote *r, got *g, uint64_t from, const atomic_bool *stop)
{
    tn_remote_stream *s = NULL;
    TN_TRY(tn_remotes()->stream_open(&s, r, &g->object, from, stop, &g->err));
    tn_status status = TN_OK;
    for (size_t n = 1; status == TN_OK && n > 0;) {
        char *to = tn_text_grow(&g->bytes, STEP);
        status = tn_remotes()->stream_read(s, to, STEP, &n, &g->err);
        g->bytes.size -= STEP - (status == TN_OK ? n : 0);
    }
    tn_remotes()->stream_close(s);
    return status;
}

static void fetch(world *w, const char *form, uint64_t from, got *g)
{
    char uri[SERVED_URI];
    tn_remote *r = NULL;
    tn_remote_object *object = NULL;
    uint32_t n = 0;
    served_uri(&w->s, form, uri);
    *g = (got){.status = TN_OK};
    g->status =
        tn_remotes()->open(&r, access(w->s.secrets, R_OK) == 0 ? w->s.secrets : NULL, &g->err);
    assert_int_equal(g->status, TN_OK);
    g->status = tn_remotes()->list(r, uri, w->arena, &object, &n, &g->err);
    if (g->status == TN_OK) {
        g->object = object[0];
        g->status = read_on(r, g, from, NULL);
    }
    tn_remotes()->close(r);
    store_await_idle(w->s.server);
}

static void check_same(world *w, const char *form, uint64_t from)
{
    got g;
    const bool waits = strstr(form, "!stall") != NULL || strstr(form, "!slow") != NULL;
    served_silence(waits ? "20" : "1");
    fetch(w, form, from, &g);
    served_silence("1");
    if (g.status != TN_OK) {
        print_error("%s: %s\n", form, g.err.text);
    }
    assert_int_equal(g.status, TN_OK);
    assert_int_equal(g.bytes.size, BYTES - from);
    assert_memory_equal(g.bytes.data, w->data + from, BYTES - from);
    tn_text_done(&g.bytes);
}

/* Checks that `words` are in the message, and that no byte that came is wrong. */
static void check_fails(world *w, const char *form, tn_status status, const char *words)
{
    got g;
    fetch(w, form, 0, &g);
    if (g.status != status || strstr(g.err.text, words) == NULL) {
        print_error("%s: status %d, %s\n", form, (int)g.status, g.err.text);
    }
    assert_int_equal(g.status, status);
    assert_non_null(strstr(g.err.text, words));
    assert_true(g.bytes.size <= BYTES);
    if (g.bytes.size > 0) {
        assert_memory_equal(g.bytes.data, w->data, g.bytes.size);
    }
    tn_text_done(&g.bytes);
}

/* The objects of a URI, without scheme and host, with blanks between. */
static void check_list(world *w, const char *form, const char *names)
{
    char uri[SERVED_URI];
    tn_remote *r = NULL;
    tn_remote_object *object = NULL;
    uint32_t n = 0;
    tn_error err = {0};
    tn_text all = {0};
    served_uri(&w->s, form, uri);
    assert_int_equal(tn_remotes()->open(&r, w->s.secrets, &err), TN_OK);
    fail_if(tn_remotes()->list(r, uri, w->arena, &object, &n, &err) != TN_OK, "%s: %s", uri,
            err.text);
    for (uint32_t k = 0; k < n; k++) {
        const char *host = strstr(object[k].uri, "://") + 3;
        tn_text_addf(&all, "%s%s", k > 0 ? " " : "", strchr(host, '/') + 1);
        assert_int_equal(object[k].size, 1);
        assert_non_null(object[k].tag);
    }
    assert_string_equal(tn_text_str(&all), names);
    tn_text_done(&all);
    tn_remotes()->close(r);
    store_await_idle(w->s.server);
}

/* ---- tests ---- */

TEST_ON(world *w, an_object_is_read_from_any_byte)
{
    check_same(w, "http://127.0.0.1:%u/a.bin", 0);
    check_same(w, "http://127.0.0.1:%u/a.bin", 1);
    check_same(w, "http://127.0.0.1:%u/a.bin?x=1&y=%20", BYTES - 1);
    check_same(w, "http://127.0.0.1:%u/a.bin", BYTES);
}

TEST_ON(world *w, short_and_empty_objects_end_where_they_end)
{
    static const char *const forms[] = {"http://127.0.0.1:%u/%s", "http://127.0.0.1:%u/!bare/%s",
                                        "http://127.0.0.1:%u/!noranges/%s",
                                        "http://127.0.0.1:%u/!chunked/%s"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (size_t k = 0; k < 2; k++) {
            char form[200];
            got g;
            const char *gap = strstr(forms[i], "%s");
            (void)snprintf(form, sizeof form, "%.*s%s", (int)(gap - forms[i]), forms[i],
                           k == 0 ? "empty" : "short");
            fetch(w, form, 0, &g);
            assert_int_equal(g.status, TN_OK);
            assert_string_equal(tn_text_str(&g.bytes), k == 0 ? "" : "ten bytes.");
            assert_int_equal(g.object.n_first, k == 0 ? 0 : 10);
            tn_text_done(&g.bytes);
        }
    }
}

TEST_ON(world *w, answers_without_ranges_are_read_in_one_piece)
{
    got g;
    check_same(w, "http://127.0.0.1:%u/!noranges/a.bin", 0);
    check_same(w, "http://127.0.0.1:%u/!chunked/a.bin", 0);
    check_same(w, "http://127.0.0.1:%u/!notag/a.bin", 0);
    fetch(w, "http://127.0.0.1:%u/!noranges/short", 0, &g);
    assert_false(g.object.ranged);
    assert_int_equal(g.object.size, 10);
    tn_text_done(&g.bytes);
    fetch(w, "http://127.0.0.1:%u/!notag/short", 0, &g);
    assert_false(g.object.ranged); /* parts could be of two versions */
    tn_text_done(&g.bytes);
    check_fails(w, "http://127.0.0.1:%u/!nolength/a.bin", TN_E_DATA, "does not say how long");
}

TEST_ON(world *w, broken_connections_lose_and_repeat_nothing)
{
    check_same(w, "http://127.0.0.1:%u/!cut/a.bin", 0);
    check_same(w, "http://127.0.0.1:%u/!cut/a.bin", 12345);
    check_same(w, "http://127.0.0.1:%u/!cut/!noranges/a.bin", 0);
    check_same(w, "http://127.0.0.1:%u/!stall/a.bin", 0);
    check_same(w, "http://127.0.0.1:%u/!slow/a.bin", 0);
    check_same(w, "http://127.0.0.1:%u/!busy/a.bin", 0);
    check_same(w, "http://127.0.0.1:%u/!bits/a.bin", 0); /* more often than 8 times */
    check_same(w, "webhdfs://127.0.0.1:%u/!cut/a.bin", 0);
    check_same(w, "webhdfs://127.0.0.1:%u/!stall/a.bin", 7);
    check_same(w, "webhdfs://127.0.0.1:%u/!safe/a.bin", 0);
    check_same(w, "s3://b/!cut/a.bin", 0);
    check_same(w, "s3://b/!busy/a.bin", 99);
}

TEST_ON(world *w, bytes_on_the_way_back_to_where_it_broke_are_progress)
{
    got g;
    served_silence("60"); /* half a second, in which 30 KiB must come */
    fetch(w, "http://127.0.0.1:%u/!noranges/!creep/a.bin", 0, &g);
    served_silence("1");
    if (g.status != TN_OK) {
        print_error("%s\n", g.err.text);
    }
    assert_int_equal(g.status, TN_OK);
    assert_int_equal(g.bytes.size, BYTES);
    assert_memory_equal(g.bytes.data, w->data, BYTES);
    tn_text_done(&g.bytes);
}

TEST_ON(world *w, what_does_not_end_well_ends_with_a_sentence)
{
    check_fails(w, "http://127.0.0.1:%u/!flood/a.bin", TN_E_IO, "8 times without progress");
    check_fails(w, "http://127.0.0.1:%u/!crumbs/a.bin", TN_E_IO, "8 times without progress");
    check_fails(w, "http://127.0.0.1:%u/absent", TN_E_DATA, "is not there: the server answers 404");
    check_fails(w, "s3://b/absent", TN_E_DATA, "404 (NoSuchKey)");
    check_fails(w, "s3://b/!denied/a.bin", TN_E_DATA, "403 (AccessDenied)");
    check_fails(w, "webhdfs://127.0.0.1:%u/absent", TN_E_DATA, "(FileNotFoundException)");
    check_fails(w, "http://127.0.0.1:%u/!loop/a.bin", TN_E_DATA, "more often than is followed");
    check_fails(w, "s3://b/!hop/a.bin", TN_E_DATA, "the bucket is elsewhere");
    check_fails(w, "http://127.0.0.1:1/a", TN_E_IO, "8 times without progress");
    check_fails(w, "http://127.0.0.1:%u/*.bin", TN_E_DATA, "no lists of names");
    check_fails(w, "s3://b/*.txt", TN_E_DATA, "no object matches 's3://b/*.txt'");
    check_fails(w, "http://127.0.0.1:%u/!wrong/a.bin", TN_E_DATA, "changed while being read");
    check_fails(w, "http://127.0.0.1:%u/!shift/a.bin", TN_E_DATA, "other bytes than it was asked");
}

TEST_ON(world *w, an_answer_that_is_not_the_range_asked_for_is_refused)
{
    check_fails(w, "webhdfs://127.0.0.1:%u/!whole/a.bin", TN_E_IO,
                "6000000 bytes where 262144 were asked for");
    check_fails(w, "webhdfs://127.0.0.1:%u/!whole/!chunked/a.bin", TN_E_IO,
                "more bytes than it was asked for");
    check_fails(w, "http://127.0.0.1:%u/!twice/a.bin", TN_E_DATA, "several lengths");
    check_fails(w, "http://127.0.0.1:%u/!noranges/!twice/a.bin", TN_E_DATA, "several lengths");
    check_same(w, "webhdfs://127.0.0.1:%u/!chunked/a.bin", 0); /* as HttpFS answers */
    check_same(w, "webhdfs://127.0.0.1:%u/!chunked/a.bin", 12345);
}

TEST_ON(world *w, a_change_while_reading_is_an_error)
{
    static const char words[] = "changed while being read";
    check_fails(w, "http://127.0.0.1:%u/!change/a.bin", TN_E_DATA, words);
    check_fails(w, "http://127.0.0.1:%u/!sneak/a.bin", TN_E_DATA, words);
    check_fails(w, "http://127.0.0.1:%u/!forget/a.bin", TN_E_DATA, words);
    check_fails(w, "s3://b/!forget/a.bin", TN_E_DATA, words);
    check_fails(w, "s3://b/!change/a.bin", TN_E_DATA, words);
    /* Bytes of WebHDFS name no version: it is asked for before the first byte and after the last,
     * so those of another may have come. */
    got g;
    fetch(w, "webhdfs://127.0.0.1:%u/!change/a.bin", 0, &g);
    assert_int_equal(g.status, TN_E_DATA);
    assert_non_null(strstr(g.err.text, words));
    tn_text_done(&g.bytes);
}

TEST_ON(world *w, secrets_go_to_the_first_host_alone)
{
    check_same(w, "http://127.0.0.1:%u/!hop/a.bin", 0);
    assert_int_equal(store_leaks(w->s.server), 0);
    check_same(w, "http://localhost:%u/a.bin", 0);
    assert_true(store_leaks(w->s.server) > 0); /* here it is wanted: the header was sent at all */
}

TEST_ON(world *w, a_header_goes_to_the_host_that_it_is_of)
{
    char lines[100];
    char uri[SERVED_URI];
    tn_error err = {0};
    tn_remote *r FREED(tn_http_close) = NULL;
    tn_remote_object *object = NULL;
    uint32_t n = 0;
    const uint64_t before = store_leaks(w->s.server);
    served_secrets(&w->s, "http_header 127.0.0.1 = X-Secret: s\n");
    check_same(w, "http://localhost:%u/a.bin", 0);
    assert_int_equal(store_leaks(w->s.server), before);
    (void)snprintf(lines, sizeof lines, "http_header LocalHost:%u = X-Secret: s\n",
                   store_port(w->s.server));
    served_secrets(&w->s, lines);
    check_same(w, "http://localhost:%u/a.bin", 0);
    assert_true(store_leaks(w->s.server) > before); /* as is wanted here */
    served_secrets(&w->s, "http_header https://127.0.0.1 = X-Secret: s\n");
    assert_int_equal(tn_remotes()->open(&r, w->s.secrets, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "names no host"));

    const uint64_t leaks = store_leaks(w->s.server);
    keep_secrets(w, ""); /* one for any host is for one alone */
    assert_int_equal(tn_remotes()->open(&r, w->s.secrets, &err), TN_OK);
    served_uri(&w->s, "http://127.0.0.1:%u/a.bin", uri);
    assert_int_equal(tn_remotes()->list(r, uri, w->arena, &object, &n, &err), TN_OK);
    served_uri(&w->s, "http://localhost:%u/a.bin", uri);
    assert_int_equal(tn_remotes()->list(r, uri, w->arena, &object, &n, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "http_header of data.secrets names no host"));
    assert_int_equal(store_leaks(w->s.server), leaks);
}

TEST_ON(world *w, lists_are_whole_sorted_and_by_whole_names)
{
    static const struct {
        const char *form, *names;
    } rows[] = {
        {"s3://b/d/p*", "d/p&<+ d/p1 d/p2 d/p3"},
        {"s3://b/d/p[12]", "d/p1 d/p2"},
        {"s3://b/d/?1", "d/p1 d/q1"},
        {"s3://b/d/", "d/p&<+ d/p1 d/p2 d/p3 d/q1"},
        {"s3://b/d", "d/p&<+ d/p1 d/p2 d/p3 d/q1"},
        {"s3://b/*/p1", "d/p1"},
        {"webhdfs://127.0.0.1:%u/d/p?", "d/p1 d/p2 d/p3"},
        {"webhdfs://127.0.0.1:%u/d", "d/p&<+ d/p1 d/p2 d/p3 d/q1"},
        {"webhdfs://127.0.0.1:%u/[d]/p1", "d/p1"},
        {"webhdfs://127.0.0.1:%u/d/p1", "d/p1"},
    };
    PATH_IN(path, w->s.dir, "d");
    assert_int_equal(mkdir(path, 0700), 0);
    static const char *const files[] = {"d/p2",  "d/p1", "d/q1",  "d/_SUCCESS",
                                        "d/.p1", "d/p3", "d/p&<+"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        served_write(w->s.dir, files[i], "1", 1);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_list(w, rows[i].form, rows[i].names);
    }
    check_fails(w, "s3://badlist/d/p*", TN_E_DATA, "list of objects is damaged");
}

TEST_ON(world *w, words_of_a_server_cannot_steer_a_terminal_or_forge_a_line)
{
    PATH_IN(path, w->s.dir, "rude");
    assert_int_equal(mkdir(path, 0700), 0);
    served_write(w->s.dir, "rude/good", "1", 1);
    served_write(w->s.dir, "rude/a\033[2J\nerror: x", "1", 1);
    check_fails(w, "s3://b/!rude/a.bin", TN_E_DATA, "403 (?[2J?error: x?)");
    check_fails(w, "webhdfs://127.0.0.1:%u/!rude/a.bin", TN_E_DATA, "403 (?[2J?error: x)");
    check_fails(w, "s3://b/!hop/!rude/a.bin", TN_E_DATA, "in region ?[2J?");
    check_fails(w, "s3://b/rude/*", TN_E_DATA, "control characters: 's3://b/rude/a?[2J?error: x'");
    check_fails(w, "webhdfs://127.0.0.1:%u/rude", TN_E_DATA, "/rude/a?[2J?error: x'");
    /* a name that the pattern does not match is not shown */
    check_list(w, "s3://b/rude/g*", "rude/good");
}

TEST_ON(world *w, lists_without_end_are_damaged)
{
    const uint64_t before = store_requests(w->s.server);
    check_fails(w, "s3://roundlist/*", TN_E_DATA, "comes back to what it has told");
    check_fails(w, "s3://freshlist/*", TN_E_DATA, "comes back to what it has told");
    check_fails(w, "s3://emptylist/*", TN_E_DATA, "tells nothing page after page");
    check_fails(w, "s3://hugelist/*", TN_E_LIMIT, "more than 16777216 bytes");
    assert_in_range(store_requests(w->s.server) - before, 8, 40);
}

TEST_ON(world *w, signatures_hold_and_expired_tokens_are_renewed)
{
    static const char keys[] =
        "aws_access_key_id = AKID\naws_secret_access_key = " STORE_SECRET "\n";
    char lines[300];
    (void)snprintf(lines, sizeof lines, "%saws_session_token = old\n", keys);
    keep_secrets(w, "aws_access_key_id = AKID\naws_secret_access_key = wrong\n");
    check_fails(w, "s3://signed/a.bin", TN_E_DATA, "403");
    keep_secrets(w, lines);
    check_same(w, "s3://signed/a.bin", 0);
    check_same(w, "s3://signed/a.bin", 5000);
    check_list(w, "s3://signed/d/p*", "d/p&<+ d/p1 d/p2 d/p3"); /* '=', '/' and '+' in its query */
    check_fails(w, "s3://signed/!expire/a.bin", TN_E_DATA, "403 (ExpiredToken)");
}

TEST_ON(world *w, another_name_node_answers_for_one_on_standby_or_that_fails)
{
    char uri[SERVED_URI];
    for (int sick = 0; sick < 2; sick++) {
        (void)snprintf(uri, sizeof uri, "webhdfs://127.0.0.1:%u,127.0.0.1:%u/%sa.bin",
                       store_standby_port(w->s.server), store_port(w->s.server),
                       sick ? "!sick/" : "");
        check_same(w, uri, 0);
    }
    (void)snprintf(uri, sizeof uri, "webhdfs://127.0.0.1:%u/a.bin",
                   store_standby_port(w->s.server));
    check_fails(w, uri, TN_E_IO, "every NameNode is on standby");
}

TEST_ON(world *w, a_data_node_is_asked_for_later_ranges_without_the_name_node)
{
    enum { SIZE = 80 << 20 };
    /* Requests for 24 ranges: two each, of three that are about the file; or four at first, and up
     * to four at 64 MiB, that ask the NameNode. */
    static const struct {
        const char *form;
        uint64_t least, most;
    } rows[] = {{"webhdfs://127.0.0.1:%u/big.bin", 24 + 5 + 3, 24 + 8 + 3},
                {"webhdfs://127.0.0.1:%u/!once/big.bin", 48 + 3 + 1, 48 + 3 + 4}};
    char *data = served_bytes(SIZE);
    served_write(w->s.dir, "big.bin", data, SIZE);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        got g;
        const uint64_t before = store_requests(w->s.server);
        fetch(w, rows[i].form, 0, &g);
        assert_int_equal(g.status, TN_OK);
        assert_int_equal(g.bytes.size, SIZE);
        assert_memory_equal(g.bytes.data, data, SIZE);
        assert_in_range(store_requests(w->s.server) - before, rows[i].least, rows[i].most);
        tn_text_done(&g.bytes);
    }
    free(data);
}

/* ---- a token that expires while a stream is open ---- */

TEST_ON(world *w, a_token_may_be_renewed_while_reading)
{
    static const char form[] = "aws_access_key_id = AKID\naws_secret_access_key = " STORE_SECRET
                               "\naws_session_token = %s\n";
    char lines[300];
    got g = {.status = TN_OK};
    tn_remote *r = NULL;
    tn_remote_object *object = NULL;
    uint32_t n = 0;
    (void)snprintf(lines, sizeof lines, form, "new");
    keep_secrets(w, lines);
    assert_int_equal(tn_remotes()->open(&r, w->s.secrets, &g.err), TN_OK);
    assert_int_equal(
        tn_remotes()->list(r, "s3://signed/!expire/a.bin", w->arena, &object, &n, &g.err), TN_OK);
    g.object = object[0];
    tn_remotes()->close(r);
    (void)snprintf(lines, sizeof lines, form, "old");
    keep_secrets(w, lines);
    assert_int_equal(tn_remotes()->open(&r, w->s.secrets, &g.err), TN_OK);
    (void)snprintf(lines, sizeof lines, form, "new"); /* the secret in memory is out of date now */
    keep_secrets(w, lines);
    g.status = read_on(r, &g, 0, NULL);
    if (g.status != TN_OK) {
        print_error("%s\n", g.err.text);
    }
    assert_int_equal(g.status, TN_OK);
    assert_int_equal(g.bytes.size, BYTES);
    assert_memory_equal(g.bytes.data, w->data, BYTES);
    tn_text_done(&g.bytes);
    tn_remotes()->close(r);
}

/* ---- waits are logged ---- */

static char told[4000]; /* all lines, as far as there is room */
static uint32_t n_told;

static void keep_line(tn_log_level level, const char *line)
{
    assert_int_equal(level, TN_LOG_INFO);
    const size_t size = strlen(told);
    (void)snprintf(told + size, sizeof told - size, "%s\n", line);
    n_told++;
}

TEST_ON(world *w, a_wait_for_a_server_is_told)
{
    told[0] = '\0';
    tn_log_set(keep_line, TN_LOG_INFO);
    (void)setenv("TNET_FAST", "1000", 1); /* NOLINT(concurrency-mt-unsafe): alone */
    check_fails(w, "http://127.0.0.1:%u/!later/a.bin", TN_E_IO, "8 times without progress");
    assert_true(n_told > 0);
    assert_non_null(strstr(told, "waiting for 'http://"));
    assert_non_null(strstr(told, "the server answers 503, attempt "));
    assert_non_null(
        strstr(told, "the server asks for a pause of 3600 s, the next one is in 300 s"));
    check_same(w, "webhdfs://127.0.0.1:%u/!safe/b/a.bin", 0);
    assert_non_null(strstr(told, "the NameNode is in safe mode, attempt "));
    assert_non_null(strstr(told, "a pause of 30 s, the next one is in 30 s"));
    n_told = 0;
    served_silence("300"); /* .1 s */
    check_fails(w, "http://127.0.0.1:%u/!dead/a.bin", TN_E_IO, "the server stalls, 8 times");
    assert_true(n_told > 0);
    served_silence("1");
    n_told = 0;
    (void)setenv("TNET_FAST", "1", 1); /* NOLINT(concurrency-mt-unsafe): alone */
    check_same(w, "http://127.0.0.1:%u/!cut/a.bin", 0);
    assert_int_equal(n_told, 0);
    (void)setenv("TNET_FAST", "100", 1); /* NOLINT(concurrency-mt-unsafe): alone */
    tn_log_set(NULL, TN_LOG_INFO);
}

/* ---- stop, connections, memory ---- */

TEST_ON(world *w, a_stop_ends_a_read_that_waits)
{
    char uri[SERVED_URI];
    got g = {.status = TN_OK};
    served_stop s = {.s = &w->s, .requests = store_requests(w->s.server) + 1};
    pthread_t thread;
    tn_remote *r = NULL;
    (void)setenv("TNET_FAST", "1", 1); /* NOLINT(concurrency-mt-unsafe): alone */
    (void)snprintf(uri, sizeof uri, "http://127.0.0.1:%u/!flood/a.bin", store_port(w->s.server));
    assert_int_equal(tn_remotes()->open(&r, NULL, &g.err), TN_OK);
    g.object = (tn_remote_object){.uri = uri, .size = BYTES, .tag = "\"x\"", .ranged = true};
    assert_int_equal(pthread_create(&thread, NULL, served_stop_thread, &s), 0);
    g.status = read_on(r, &g, 0, &s.stop); /* else it would wait for a second, seven times */
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(g.status, TN_E_STOPPED);
    tn_text_done(&g.bytes);
    tn_remotes()->close(r);
    store_await_idle(w->s.server);
    (void)setenv("TNET_FAST", "100", 1); /* NOLINT(concurrency-mt-unsafe): alone */
}

/* `requests`: after so many the list of this URI waits for what does not come. */
static void check_list_stops(world *w, const char *form, uint64_t requests)
{
    char uri[SERVED_URI];
    tn_remote *r = NULL;
    tn_remote_object *object = NULL;
    uint32_t n = 0;
    tn_error err = {0};
    served_stop s = {.s = &w->s, .requests = store_requests(w->s.server) + requests};
    pthread_t thread;
    served_uri(&w->s, form, uri);
    assert_int_equal(tn_remotes()->open(&r, w->s.secrets, &err), TN_OK);
    tn_stop_set(&s.stop);
    assert_int_equal(pthread_create(&thread, NULL, served_stop_thread, &s), 0);
    const double begun = tn_clock_s();
    const tn_status status = tn_remotes()->list(r, uri, w->arena, &object, &n, &err);
    const double took = tn_clock_s() - begun;
    assert_int_equal(pthread_join(thread, NULL), 0);
    tn_stop_set(NULL);
    tn_remotes()->close(r);
    store_await_idle(w->s.server);
    fail_if(status != TN_E_STOPPED, "%s: %s", form, err.text);
    assert_non_null(strstr(err.text, "stopped by a signal"));
    assert_true(took < 30); /* the silence after which it would try again */
}

TEST(a_stop_of_the_process_ends_every_first_look)
{
    (void)setenv("TNET_FAST", "1", 1); /* NOLINT(concurrency-mt-unsafe): alone */
    check_list_stops(*state, "http://127.0.0.1:%u/!dead/a.bin", 1);
    check_list_stops(*state, "http://127.0.0.1:%u/!flood/a.bin", 1);
    check_list_stops(*state, "s3://b/!dead/a.bin", 1);
    check_list_stops(*state, "s3://deadlist/a*", 1);
    check_list_stops(*state, "s3://deadlist/absent", 2);
    check_list_stops(*state, "webhdfs://127.0.0.1:%u/!dead/a*", 1);
    check_list_stops(*state, "webhdfs://127.0.0.1:%u/!dead/a.bin", 1);
    (void)setenv("TNET_FAST", "100", 1); /* NOLINT(concurrency-mt-unsafe): alone */
}

TEST_ON(world *w, connections_are_used_again)
{
    char uri[SERVED_URI];
    tn_remote *r FREED(tn_http_close) = NULL;
    got g = {.status = TN_OK};
    tn_remote_object *object = NULL;
    uint32_t n = 0;
    served_uri(&w->s, "http://127.0.0.1:%u/a.bin", uri);
    assert_int_equal(tn_remotes()->open(&r, NULL, &g.err), TN_OK);
    assert_int_equal(tn_remotes()->list(r, uri, w->arena, &object, &n, &g.err), TN_OK);
    g.object = object[0];
    const uint64_t before = store_connections(w->s.server);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(read_on(r, &g, 0, NULL), TN_OK);
    }
    assert_int_equal(g.bytes.size, 5 * BYTES);
    assert_true(store_connections(w->s.server) - before <= 4);
    tn_text_done(&g.bytes);
}

TEST_ON(world *w, nothing_behind_the_end_of_a_span_is_fetched)
{
    char uri[SERVED_URI];
    char byte;
    tn_remote *r FREED(tn_http_close) = NULL;
    tn_remote_stream *s = NULL;
    tn_remote_object *object = NULL;
    uint32_t n = 0;
    size_t got_bytes = 0;
    served_uri(&w->s, "http://127.0.0.1:%u/a.bin", uri);
    assert_int_equal(tn_remotes()->open(&r, NULL, NULL), TN_OK);
    assert_int_equal(tn_remotes()->list(r, uri, w->arena, &object, &n, NULL), TN_OK);
    const uint64_t before = store_requests(w->s.server);
    assert_int_equal(tn_remotes()->stream_open(&s, r, object, 100, NULL, NULL), TN_OK);
    tn_remotes()->stream_until(s, 200);
    for (uint64_t i = 100; i < 210; i++) { /* asked for, it comes all the same */
        assert_int_equal(tn_remotes()->stream_read(s, &byte, 1, &got_bytes, NULL), TN_OK);
        assert_int_equal(got_bytes, 1);
        assert_int_equal(byte, w->data[i]);
    }
    assert_int_equal(store_requests(w->s.server) - before, 2);
    tn_remotes()->stream_close(s);
}

TEST(a_missing_library_is_a_sentence)
{
    tn_remote *r = NULL;
    tn_error err = {0};
    assert_int_equal(tn_failpoint_set("library.curl:error", &err), TN_OK);
    assert_int_equal(tn_remotes()->open(&r, NULL, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "data behind a URI need libcurl, which cannot be loaded"));
    assert_non_null(strstr(err.text, "install libcurl4"));
    assert_int_equal(tn_failpoint_set(NULL, &err), TN_OK);
}
