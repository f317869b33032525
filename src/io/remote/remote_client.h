/* remote_client.h - what the requests of one set of files share: libcurl, secrets, connections; and
 * whole answers at once, for lists.
 *
 *     TN_TRY(tn_remote_ask(client, &wish, &body, &reply, err));
 *
 * Wires go round: a stream takes an idle one, with its connections and buffers, and gives it back.
 * Any thread.
 */
#pragma once

#include "base/core/arena.h"
#include "io/remote/flight.h"
#include "io/remote/remote_object.h"

#include <pthread.h>

struct tn_remote {
    tn_curl curl;
    tn_secrets *secrets;
    pthread_mutex_t lock;
    tn_wire *idle; /* guarded by `lock` */
};

/* TN_E_DATA: no URI, with a secret, or of a scheme that is not read. */
tn_status tn_remote_parse(const char *uri, tn_uri *out, const tn_scheme **scheme,
                          tn_error *err) TN_MUST_USE;

tn_status tn_remote_init(tn_remote *c, const char *secrets, tn_error *err) TN_MUST_USE;
void tn_remote_done(tn_remote *c); /* also of one that failed */

tn_status tn_remote_take(tn_remote *c, tn_wire **out, tn_error *err) TN_MUST_USE;
void tn_remote_give(tn_remote *c, tn_wire *wire); /* NULL is fine */

/* One answer, whole: a document, or the first bytes of an object. `body` is cleared; `reply` is
 * that of the last attempt, also after a failure (status 0: there was none). TN_E_STOPPED. */
tn_status tn_remote_ask(tn_remote *c, const tn_wish *wish, tn_text *body, tn_http_reply *reply,
                        tn_error *err) TN_MUST_USE;

/* Objects as they are found. */
struct tn_found {
    tn_arena *arena;
    tn_remote_object *object;
    uint32_t n, max;
    uint64_t told; /* names in all answers, meant or not */
};

enum { TN_OBJECTS_MAX = 10000000 };

/* So many names more; TN_E_LIMIT: above TN_OBJECTS_MAX in all. */
tn_status tn_found_told(tn_found *found, const tn_wish *wish, uint64_t n,
                        tn_error *err) TN_MUST_USE;
/* "<scheme>://<host>/<path>"; `tag` may be NULL. TN_E_MEMORY; TN_E_DATA: a name with control
 * characters, which would stand in messages and files of ours. */
tn_status tn_found_add(tn_found *found, const tn_wish *wish, tn_bytes path, uint64_t size,
                       const tn_text *tag, tn_error *err) TN_MUST_USE;
