/* remote_stream.c - an object as a stream of bytes: ranges under way in a ring of transfers.
 *
 * The first range is short, so that who reads a head only does not fetch megabytes; each later one
 * is twice as long, up to the transfer's buffer.
 */
#include "base/core/alloc.h"
#include "extra/remote/remote_client.h"

#include <string.h>

enum { FIRST_BYTES = 1 << 18 };

struct tn_remote_stream {
    tn_remote *remote;
    const tn_remote_object *object;
    tn_uri uri;
    tn_request request;
    tn_http_pool *pool;
    uint64_t until;
    uint64_t position; /* position of the next byte that is read */
    uint64_t planned;  /* end of the ranges that were asked for */
    size_t step;       /* size of the next range */
    uint32_t head, n;  /* first transfer of the ring, and how many */
    /* the version was checked before the first byte, where bytes do not come with it */
    bool verified;
    bool verified_all; /* and once more when all had come */
    bool ended;
};

tn_status tn_http_stream_open(tn_remote_stream **out, tn_remote *r, const tn_remote_object *object,
                              uint64_t from, const atomic_bool *stop, tn_error *err)
{
    tn_remote_stream *s = NULL;
    TN_ASSERT(from == 0 || object->ranged);
    *out = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a stream of remote data", err));
    *s = (tn_remote_stream){.remote = r,
                            .object = object,
                            .until = UINT64_MAX,
                            .position = from,
                            .planned = from,
                            .step = FIRST_BYTES};
    s->request =
        (tn_request){.uri = &s->uri, .size = object->size, .tag = object->tag, .stop = stop};
    tn_status status = tn_remote_parse(object->uri, &s->uri, &s->request.scheme, err);
    s->request.path = s->uri.path;
    status = status == TN_OK ? tn_remote_take(r, &s->pool, err) : status;
    if (status != TN_OK) {
        tn_http_stream_close(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void tn_http_stream_close(tn_remote_stream *s)
{
    if (s != NULL) {
        tn_remote_give(s->remote, s->pool);
        tn_free(s);
    }
}

void tn_http_stream_until(tn_remote_stream *s, uint64_t until)
{
    s->until = until;
}

/* Begins the next range, or all at once where there are no ranges. */
static tn_status begin_transfer(tn_remote_stream *s, tn_error *err)
{
    tn_request request = s->request;
    const uint64_t left = s->object->size - s->planned;
    uint64_t size = s->planned < s->until ? s->step : FIRST_BYTES;
    if (s->planned < s->until && s->until - s->planned < size) {
        size = s->until - s->planned;
    }
    size = size < left ? size : left;
    request.from = s->planned;
    request.end = s->object->ranged ? s->planned + size : UINT64_MAX;
    TN_TRY(tn_transfer_begin(tn_http_pool_transfer(s->pool, s->head + s->n), &request, err));
    s->planned = s->object->ranged ? request.end : UINT64_MAX;
    s->step = s->step < TN_TRANSFER_BYTES ? 2 * s->step : TN_TRANSFER_BYTES;
    s->n++;
    return TN_OK;
}

/* Returns whether another range is to be under way, for bytes that are read soon, or now. */
static bool wants_transfer(const tn_remote_stream *s)
{
    return s->planned < s->object->size && !s->ended && s->n < TN_TRANSFERS &&
           (s->planned < s->until || s->n == 0);
}

static tn_transfer *head_of(const tn_remote_stream *s)
{
    return tn_http_pool_transfer(s->pool, s->head);
}

static bool is_done(const tn_remote_stream *s)
{
    return tn_transfer_state_of(head_of(s)) == TN_TRANSFER_DONE;
}

/* Asks a store whose answers do not name their version for it: before the first byte, and when all
 * have come. */
static tn_status verify(tn_remote_stream *s, tn_error *err)
{
    uint64_t size = 0;
    tn_text tag = {0};
    const tn_scheme *scheme = s->request.scheme;
    const bool all = s->n == 1 && !wants_transfer(s) && is_done(s);
    if (scheme->look == NULL || (s->verified && !all) || s->verified_all) {
        return TN_OK;
    }
    tn_status status = scheme->look(s->remote, &s->request, &size, &tag, err);
    if (status == TN_OK &&
        (size != s->object->size || strcmp(tn_text_str(&tag), s->object->tag) != 0)) {
        status = tn_fail(err, TN_E_DATA, "'%s': changed while being read", s->object->uri);
    }
    s->verified = status == TN_OK;
    s->verified_all = status == TN_OK && all;
    tn_text_done(&tag);
    return status;
}

static void drop_head(tn_remote_stream *s)
{
    tn_transfer_end(head_of(s));
    s->head = (s->head + 1) % TN_TRANSFERS;
    s->n--;
    s->ended = s->ended || !s->object->ranged;
}

/* Takes bytes that the first transfer has brought, if any. */
static size_t take(tn_remote_stream *s, void *data, size_t size)
{
    const tn_bytes bytes = tn_transfer_bytes(head_of(s));
    const size_t n = bytes.size < size ? bytes.size : size;
    memcpy(data, bytes.data, n);
    s->position += n;
    tn_transfer_consume(head_of(s), n);
    if (is_done(s) && tn_transfer_bytes(head_of(s)).size == 0) {
        drop_head(s);
    }
    return n;
}

tn_status tn_http_stream_read(tn_remote_stream *s, void *data, size_t size, size_t *n,
                              tn_error *err)
{
    TN_ASSERT(size > 0);
    *n = 0;
    for (;;) {
        while (wants_transfer(s)) {
            TN_TRY(begin_transfer(s, err));
        }
        if (s->n == 0) {
            TN_ASSERT(s->ended || s->position == s->object->size);
            return TN_OK;
        }
        tn_http_pool_work(s->pool);
        const bool has_bytes = tn_transfer_bytes(head_of(s)).size > 0;
        if (has_bytes || is_done(s)) {
            TN_TRY(verify(s, err));
        }
        if (has_bytes) {
            *n = take(s, data, size);
            return TN_OK;
        }
        if (tn_transfer_state_of(head_of(s)) == TN_TRANSFER_FAILED) {
            const tn_error *why = tn_transfer_error(head_of(s));
            return tn_fail(err, why->code, "%s", why->text);
        }
        if (is_done(s)) { /* an end that nobody had announced */
            drop_head(s);
        } else {
            TN_TRY(tn_http_pool_wait(s->pool, s->request.stop, err));
        }
    }
}
