/* remote_stream.c - an object as a stream of bytes: ranges under way in a ring of flights.
 *
 * The first range is short, so that who reads a head only does not fetch megabytes; each later one
 * is twice as long, up to the flight's buffer.
 */
#include "base/core/alloc.h"
#include "extra/remote/remote_client.h"

#include <string.h>

enum { FIRST_BYTES = 1 << 18 };

struct tn_remote_stream {
    tn_remote *remote;
    const tn_remote_object *object;
    tn_uri uri;
    tn_wish wish;
    tn_wire *wire;
    uint64_t until;
    uint64_t position; /* of the next byte that is read */
    uint64_t planned;  /* ranges are asked for up to here */
    size_t step;       /* of the next range */
    uint32_t head, n;  /* flights of the ring */
    bool verified;     /* the version, where bytes do not come with it .. */
    bool verified_all; /* .. when all had come */
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
    s->wish = (tn_wish){.uri = &s->uri, .size = object->size, .tag = object->tag, .stop = stop};
    tn_status status = tn_remote_parse(object->uri, &s->uri, &s->wish.scheme, err);
    s->wish.path = s->uri.path;
    status = status == TN_OK ? tn_remote_take(r, &s->wire, err) : status;
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
        tn_remote_give(s->remote, s->wire);
        tn_free(s);
    }
}

void tn_http_stream_until(tn_remote_stream *s, uint64_t until)
{
    s->until = until;
}

/* The next range, or all at once where there are no ranges. */
static tn_status begin_flight(tn_remote_stream *s, tn_error *err)
{
    tn_wish wish = s->wish;
    const uint64_t left = s->object->size - s->planned;
    uint64_t size = s->planned < s->until ? s->step : FIRST_BYTES;
    if (s->planned < s->until && s->until - s->planned < size) {
        size = s->until - s->planned;
    }
    size = size < left ? size : left;
    wish.from = s->planned;
    wish.end = s->object->ranged ? s->planned + size : UINT64_MAX;
    TN_TRY(tn_flight_begin(&s->wire->flight[(s->head + s->n) % TN_FLIGHTS], &wish, err));
    s->planned = s->object->ranged ? wish.end : UINT64_MAX;
    s->step = s->step < TN_FLIGHT_BYTES ? 2 * s->step : TN_FLIGHT_BYTES;
    s->n++;
    return TN_OK;
}

/* Whether another range is to be under way: what is read soon, or now. */
static bool wants_flight(const tn_remote_stream *s)
{
    return s->planned < s->object->size && !s->ended && s->n < TN_FLIGHTS &&
           (s->planned < s->until || s->n == 0);
}

/* Of a store whose answers do not say which version they are of: asks for it before the first byte
 * and when all has come. */
static tn_status verify(tn_remote_stream *s, tn_error *err)
{
    uint64_t size = 0;
    tn_text tag = {0};
    const tn_scheme *scheme = s->wish.scheme;
    const bool all =
        s->n == 1 && !wants_flight(s) && s->wire->flight[s->head].state == TN_FLIGHT_LANDED;
    if (scheme->look == NULL || (s->verified && !all) || s->verified_all) {
        return TN_OK;
    }
    tn_status status = scheme->look(s->remote, &s->wish, &size, &tag, err);
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
    s->wire->flight[s->head].state = TN_FLIGHT_IDLE;
    s->head = (s->head + 1) % TN_FLIGHTS;
    s->n--;
    s->ended = s->ended || !s->object->ranged;
}

/* Bytes that the first flight has brought, if any. */
static size_t take(tn_remote_stream *s, void *data, size_t size)
{
    tn_flight *f = &s->wire->flight[s->head];
    const size_t have = f->have - f->read;
    const size_t n = have < size ? have : size;
    memcpy(data, f->buffer + f->read, n);
    f->read += n;
    s->position += n;
    tn_flight_resume(f);
    if (f->state == TN_FLIGHT_LANDED && f->read == f->have) {
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
        while (wants_flight(s)) {
            TN_TRY(begin_flight(s, err));
        }
        if (s->n == 0) {
            TN_ASSERT(s->ended || s->position == s->object->size);
            return TN_OK;
        }
        tn_flight *f = &s->wire->flight[s->head];
        tn_wire_work(s->wire);
        if (f->have > f->read || f->state == TN_FLIGHT_LANDED) {
            TN_TRY(verify(s, err));
        }
        if (f->have > f->read) {
            *n = take(s, data, size);
            return TN_OK;
        }
        if (f->state == TN_FLIGHT_FAILED) {
            return tn_fail(err, f->err.code, "%s", f->err.text);
        }
        if (f->state == TN_FLIGHT_LANDED) { /* an end that nobody had announced */
            drop_head(s);
        } else {
            TN_TRY(tn_wire_wait(s->wire, s->wish.stop, err));
        }
    }
}
