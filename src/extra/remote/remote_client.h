/* remote_client.h - what the requests of one set of files share: libcurl, secrets, connections; and
 * whole answers at once, for lists.
 *
 *     TN_TRY(tn_remote_ask(client, &request, &answer, &reply, err));
 *
 * Pools go round: a stream takes an idle one, with its connections and buffers, and gives it back.
 * Any thread.
 */
#pragma once

#include "base/core/arena.h"
#include "extra/remote/transfer.h"
#include "io/source/remote.h"

#include <pthread.h>

struct tn_remote {
    tn_curl curl;
    tn_secrets *secrets;
    pthread_mutex_t lock;
    tn_http_pool *idle; /* guarded by `lock` */
};

/* Finds the scheme of a URI. TN_E_DATA: no URI, with a secret, or of a scheme that is not read. */
tn_status tn_remote_parse(const char *uri, tn_uri *out, const tn_scheme **scheme,
                          tn_error *err) TN_MUST_USE;

tn_status tn_remote_take(tn_remote *c, tn_http_pool **out, tn_error *err) TN_MUST_USE;
void tn_remote_give(tn_remote *c, tn_http_pool *pool); /* NULL is fine */

/* Asks for one answer, whole: a document, or the first bytes of an object. `answer` is cleared;
 * `reply` is that of the last attempt, also after a failure (status 0: there was none).
 * TN_E_STOPPED. */
tn_status tn_remote_ask(tn_remote *c, const tn_request *request, tn_text *answer,
                        tn_http_reply *reply, tn_error *err) TN_MUST_USE;

/* Objects that a list has found so far. */
struct tn_found {
    tn_arena *arena;
    tn_remote_object *object;
    uint32_t n, max;
    uint64_t names; /* names in all answers, meant or not */
};

enum { TN_OBJECTS_MAX = 10000000 };

/* Counts `n` names more; TN_E_LIMIT: above TN_OBJECTS_MAX in all. */
tn_status tn_found_count(tn_found *found, const tn_request *request, uint64_t n,
                         tn_error *err) TN_MUST_USE;
/* Adds "<scheme>://<host>/<path>"; `tag` may be NULL. TN_E_MEMORY; TN_E_DATA: a name with control
 * characters, which would get into our messages and files. */
tn_status tn_found_add(tn_found *found, const tn_request *request, tn_bytes path, uint64_t size,
                       const tn_text *tag, tn_error *err) TN_MUST_USE;

/* The functions of the row of remotes.def, as io/source/remote.h says of tn_remote_NAME. */
tn_status tn_http_is(const char *path, bool *out, tn_error *err) TN_MUST_USE;
tn_status tn_http_open(tn_remote **out, const char *secrets, tn_error *err) TN_MUST_USE;
void tn_http_close(tn_remote *r);
tn_status tn_http_list(tn_remote *r, const char *uri, tn_arena *arena, tn_remote_object **out,
                       uint32_t *n, tn_error *err) TN_MUST_USE;
tn_status tn_http_probe(tn_remote *r, tn_remote_object *object, tn_arena *arena,
                        tn_error *err) TN_MUST_USE;
tn_status tn_http_stream_open(tn_remote_stream **out, tn_remote *r, const tn_remote_object *object,
                              uint64_t from, const atomic_bool *stop, tn_error *err) TN_MUST_USE;
void tn_http_stream_close(tn_remote_stream *s);
void tn_http_stream_until(tn_remote_stream *s, uint64_t until);
tn_status tn_http_stream_read(tn_remote_stream *s, void *data, size_t size, size_t *n,
                              tn_error *err) TN_MUST_USE;
