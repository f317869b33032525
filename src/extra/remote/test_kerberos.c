/* test_kerberos.c - tickets for NameNodes, from a credential cache that the test writes: who gets
 * one, and what is said when there is none.
 */
#include "base/core/failpoint.h"
#include "base/core/text.h"
#include "io/source/remote.h"
#include "support/served.h"
#include "support/test.h"
#include "support/tickets.h"

#include <unistd.h>

enum { BYTES = 6000000 }; /* two ranges */

static const char word[] = "webhdfs_kerberos = true\n";

typedef struct world {
    served s;
    char tickets[256]; /* a folder */
    char *data;
} world;

static world the;

GROUP_SET_UP
{
    tn_tmpdir_make(the.tickets);
    tickets_configure(the.tickets);
    (void)setenv("TNET_FAST", "100", 1); /* NOLINT(concurrency-mt-unsafe): no thread is there yet */
    (void)unsetenv("http_proxy");        /* NOLINT(concurrency-mt-unsafe) */
    served_silence("1");
    served_open(&the.s, "!kerberos !badticket !httpfs d");
    the.data = served_bytes(BYTES);
    served_write(the.s.dir, "a.bin", the.data, BYTES);
    *state = &the;
}

GROUP_TEAR_DOWN
{
    served_close(&the.s);
    free(the.data);
    tn_tmpdir_remove(the.tickets);
}

static void have_ticket(const world *w)
{
    tickets_write(w->tickets, time(NULL) - 60, time(NULL) + 3600);
}

/* Reads the first object of a URI into `out`. */
static tn_status fetch(const world *w, const char *form, tn_text *out, tn_error *err)
{
    char uri[SERVED_URI];
    tn_remote *r = NULL;
    tn_remote_stream *s = NULL;
    tn_remote_object *object = NULL;
    uint32_t n = 0;
    tn_arena *arena = tn_arena_new(1 << 12);
    served_uri(&w->s, form, uri);
    tn_status status = tn_remotes()->open(&r, w->s.secrets, err);
    status = status == TN_OK ? tn_remotes()->list(r, uri, arena, &object, &n, err) : status;
    status = status == TN_OK ? tn_remotes()->stream_open(&s, r, object, 0, NULL, err) : status;
    for (size_t got = 1; status == TN_OK && got > 0;) {
        char *to = tn_text_grow(out, BYTES);
        status = tn_remotes()->stream_read(s, to, BYTES, &got, err);
        out->size -= BYTES - (status == TN_OK ? got : 0);
    }
    tn_remotes()->stream_close(s);
    tn_remotes()->close(r);
    tn_arena_free(arena);
    store_await_idle(w->s.server);
    return status;
}

static void check_read(const world *w, const char *form)
{
    tn_text got CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    fail_if(fetch(w, form, &got, &err) != TN_OK, "%s: %s", form, err.text);
    assert_int_equal(got.size, BYTES);
    assert_memory_equal(got.data, w->data, BYTES);
}

/* After so many requests at most. */
static void check_fails(const world *w, const char *form, tn_status wanted, const char *words,
                        uint32_t requests)
{
    tn_text got CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    const uint64_t before = store_requests(w->s.server);
    const tn_status status = fetch(w, form, &got, &err);
    fail_if(status != wanted || strstr(err.text, words) == NULL, "%s: status %d, %s", form,
            (int)status, err.text);
    assert_true(store_requests(w->s.server) - before <= requests);
    assert_int_equal(got.size, 0);
}

TEST_ON(const world *w, a_ticket_goes_to_name_nodes_alone)
{
    have_ticket(w);
    served_secrets(&w->s, word);
    check_read(w, "webhdfs://127.0.0.1:%n/!kerberos/a.bin");
    check_read(w, "webhdfs://127.0.0.1:%u/!kerberos/a*");
    assert_true(store_tickets(w->s.server) >= 6);
    assert_int_equal(store_leaks(w->s.server), 0);
}

TEST_ON(const world *w, a_file_is_written_with_a_ticket)
{
    char uri[SERVED_URI];
    char path[600];
    tn_remote *r = NULL;
    tn_map map = {0};
    tn_error err = {0};
    have_ticket(w);
    served_secrets(&w->s, word);
    (void)snprintf(path, sizeof path, "%s/a.bin", w->s.dir);
    served_uri(&w->s, "webhdfs://127.0.0.1:%u/!kerberos/out/x", uri);
    assert_int_equal(tn_remotes()->open(&r, w->s.secrets, &err), TN_OK);
    for (int i = 0; i < 2; i++) { /* the second time over what is there */
        assert_ok(tn_remotes()->put(r, path, uri, NULL, &err), err.text);
    }
    tn_remotes()->close(r);
    (void)snprintf(path, sizeof path, "%s/out/x", w->s.dir);
    assert_int_equal(tn_map_file(&map, path, &err), TN_OK);
    assert_int_equal(map.size, BYTES);
    assert_memory_equal(map.data, w->data, BYTES);
    tn_unmap(&map);
    assert_int_equal(store_leaks(w->s.server), 0);
}

/* The secrets name a user, too, who may be another one. */
TEST_ON(const world *w, a_token_goes_without_a_name)
{
    const uint64_t before = store_tickets(w->s.server);
    have_ticket(w);
    served_secrets(&w->s, "webhdfs_delegation = T\n");
    check_read(w, "webhdfs://127.0.0.1:%u/!kerberos/a.bin");
    assert_int_equal(store_tickets(w->s.server), before);
}

TEST_ON(const world *w, nobody_gets_a_ticket_unasked)
{
    const uint64_t before = store_tickets(w->s.server);
    have_ticket(w);
    served_secrets(&w->s, "webhdfs_kerberos = false\n");
    check_read(w, "webhdfs://127.0.0.1:%u/a.bin");
    check_fails(w, "webhdfs://127.0.0.1:%u/!kerberos/a.bin", TN_E_DATA,
                "the server wants Kerberos (401)\nhint: a line 'webhdfs_kerberos = true'", 1);
    served_secrets(&w->s, word);
    check_fails(w, "http://127.0.0.1:%u/webhdfs/v1/!kerberos/a.bin?op=OPEN", TN_E_DATA,
                "the server answers 401", 1);
    assert_int_equal(store_tickets(w->s.server), before);
}

TEST_ON(const world *w, without_a_good_ticket_one_request_is_enough)
{
    static const char uri[] = "webhdfs://127.0.0.1:%u/!kerberos/a.bin";
    static const char none[] = "the server wants Kerberos (401), and there is no ticket: ";
    served_secrets(&w->s, word);
    tickets_remove(w->tickets);
    check_fails(w, uri, TN_E_DATA, none, 1);
    check_fails(w, uri, TN_E_DATA, "hint: klist shows the tickets, kinit gets one", 1);
    tickets_write(w->tickets, time(NULL) - 7200, time(NULL) - 3600);
    check_fails(w, uri, TN_E_DATA, "there is no ticket: Ticket expired\nhint:", 1);
    have_ticket(w);
    check_fails(w, "webhdfs://localhost:%u/!kerberos/a.bin", TN_E_DATA, none, 1);
    check_fails(w, "webhdfs://127.0.0.1:%u/!badticket/a.bin", TN_E_DATA,
                "the server refuses the Kerberos ticket (401)\nhint:", 1);
    check_fails(w, "webhdfs://127.0.0.1:%u/!kerberos/!httpfs/a.bin", TN_E_DATA,
                "the place that the server redirects to wants Kerberos (401)", 1 + 2 * 4);
    assert_int_equal(store_leaks(w->s.server), 0);
}

TEST_ON(const world *w, what_cannot_be_kerberos_is_refused)
{
    static const char uri[] = "webhdfs://127.0.0.1:%u/!kerberos/a.bin";
    have_ticket(w);
    served_secrets(&w->s, "webhdfs_kerberos = yes\n");
    check_fails(w, uri, TN_E_CONFIG, "webhdfs_kerberos is 'yes', and must be true or false", 0);
    served_secrets(&w->s, word);
    assert_int_equal(tn_failpoint_set("library.gssapi:error", NULL), TN_OK);
    check_fails(w, uri, TN_E_CONFIG, "has no GSS-API, which webhdfs_kerberos needs", 0);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
}
