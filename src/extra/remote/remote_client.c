/* remote_client.c - schemes by name, a list of idle pools, and the loop that waits for one answer.
 */
#include "extra/remote/remote_client.h"

#include "base/core/alloc.h"

#include <string.h>

enum { N_SCHEMES = 8 };

static const tn_scheme *const schemes[N_SCHEMES] = {
    &tn_scheme_http,    &tn_scheme_https,    &tn_scheme_s3,   &tn_scheme_gs,
    &tn_scheme_webhdfs, &tn_scheme_swebhdfs, &tn_scheme_abfs, &tn_scheme_abfss};

tn_status tn_remote_parse(const char *uri, tn_uri *out, const tn_scheme **scheme, tn_error *err)
{
    TN_TRY(tn_uri_read(out, uri, err));
    for (size_t i = 0; i < N_SCHEMES; i++) {
        if (strlen(schemes[i]->name) == out->scheme.size &&
            memcmp(schemes[i]->name, out->scheme.data, out->scheme.size) == 0) {
            *scheme = schemes[i];
            return TN_OK;
        }
    }
    return tn_fail(err, TN_E_DATA, "this build knows no store of %.*s://", (int)out->scheme.size,
                   out->scheme.data);
}

tn_status tn_http_open(tn_remote **out, const char *secrets, tn_error *err)
{
    tn_remote *r = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(r, 1, "a client of servers", err));
    (void)pthread_mutex_init(&r->lock, NULL);
    tn_status status = tn_curl_load(&r->curl, err);
    status = status == TN_OK ? tn_secrets_open(&r->secrets, secrets, err) : status;
    if (status != TN_OK) {
        tn_http_close(r);
        return status;
    }
    *out = r;
    return TN_OK;
}

void tn_http_close(tn_remote *r)
{
    if (r == NULL) {
        return;
    }
    for (tn_http_pool *p = r->idle, *next = NULL; p != NULL; p = next) {
        next = *tn_http_pool_next(p);
        tn_http_pool_close(p);
    }
    tn_secrets_close(r->secrets);
    (void)pthread_mutex_destroy(&r->lock);
    tn_free(r);
}

tn_status tn_remote_take(tn_remote *c, tn_http_pool **out, tn_error *err)
{
    (void)pthread_mutex_lock(&c->lock);
    *out = c->idle;
    c->idle = *out != NULL ? *tn_http_pool_next(*out) : NULL;
    (void)pthread_mutex_unlock(&c->lock);
    return *out != NULL ? TN_OK : tn_http_pool_open(out, &c->curl, c->secrets, err);
}

void tn_remote_give(tn_remote *c, tn_http_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    tn_http_pool_reset(pool);
    (void)pthread_mutex_lock(&c->lock);
    *tn_http_pool_next(pool) = c->idle;
    c->idle = pool;
    (void)pthread_mutex_unlock(&c->lock);
}

static tn_status run(tn_http_pool *p, const tn_request *request, tn_text *answer,
                     tn_http_reply *reply, tn_error *err)
{
    static const atomic_bool never;
    tn_transfer *t = tn_http_pool_transfer(p, 0);
    TN_TRY(tn_transfer_begin(t, request, err));
    for (;;) {
        tn_http_pool_work(p);
        *reply = *tn_transfer_reply(t);
        if (tn_transfer_state_of(t) == TN_TRANSFER_FAILED) {
            *err = *tn_transfer_error(t);
            return err->code;
        }
        if (tn_transfer_state_of(t) == TN_TRANSFER_DONE) {
            break;
        }
        TN_TRY(tn_http_pool_wait(p, request->once ? &never : request->stop, err));
    }
    const tn_bytes bytes = tn_transfer_bytes(t);
    tn_text_add(answer, bytes.data, bytes.size);
    return tn_text_check(answer, "an answer", err);
}

tn_status tn_remote_ask(tn_remote *c, const tn_request *request, tn_text *answer,
                        tn_http_reply *reply, tn_error *err)
{
    tn_http_pool *p = NULL;
    tn_error ours = {0};
    tn_text_clear(answer);
    *reply = (tn_http_reply){0};
    TN_TRY(tn_remote_take(c, &p, err));
    tn_status status = run(p, request, answer, reply, &ours);
    tn_remote_give(c, p);
    if (status != TN_OK && err != NULL) {
        *err = ours;
    }
    return status;
}

tn_status tn_found_count(tn_found *found, const tn_request *request, uint64_t n, tn_error *err)
{
    found->names += n;
    return found->names <= TN_OBJECTS_MAX
               ? TN_OK
               : tn_fail(err, TN_E_LIMIT,
                         "'%s': the store lists more than %d names\nhint: write more of the names "
                         "in front of the first '*'",
                         request->uri->scheme.data, TN_OBJECTS_MAX);
}

tn_status tn_found_add(tn_found *found, const tn_request *request, tn_bytes path, uint64_t size,
                       const tn_text *tag, tn_error *err)
{
    if (found->n == found->max) {
        const uint32_t max = found->max == 0 ? 64 : 2 * found->max;
        TN_TRY(tn_arena_reserve(found->arena, (max + (size_t)1) * sizeof *found->object,
                                "names of objects", err));
        tn_remote_object *object = TN_NEW_ARRAY(found->arena, tn_remote_object, max);
        if (found->n > 0) {
            memcpy(object, found->object, found->n * sizeof *object);
        }
        found->object = object;
        found->max = max;
    }
    tn_text uri = {0};
    tn_text_addf(&uri, "%.*s://%.*s/", (int)request->uri->scheme.size, request->uri->scheme.data,
                 (int)request->uri->host.size, request->uri->host.data);
    tn_text_add(&uri, path.data, path.size);
    tn_status status = tn_text_check(&uri, "the name of an object", err);
    if (status == TN_OK) {
        const bool tagged = tag != NULL && tag->size > 0;
        char *copy = tn_arena_alloc(found->arena, uri.size + 1, 1, 1);
        char *version = tagged ? tn_arena_alloc(found->arena, tag->size + 1, 1, 1) : NULL;
        memcpy(copy, uri.data, uri.size + 1);
        if (tagged) {
            memcpy(version, tag->data, tag->size + 1);
        }
        found->object[found->n++] =
            (tn_remote_object){.uri = copy, .size = size, .tag = version, .ranged = true};
        tn_make_printable(uri.data, "");
        if (strcmp(copy, uri.data) != 0 || strlen(copy) != uri.size) {
            status = tn_fail(err, TN_E_DATA,
                             "'%s': a name that the store lists holds control characters: '%s'",
                             request->uri->scheme.data, uri.data);
        }
    }
    tn_text_done(&uri);
    return status;
}
