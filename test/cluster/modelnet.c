/* modelnet.c - a binary heap by (time, number). */
#include "modelnet.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"

#include <string.h>

enum { ROOM_FIRST = 256 };

void net_init(net *x, uint64_t seed)
{
    *x = (net){.room = ROOM_FIRST, .stream = tn_stream2(seed, TN_RNG_GENERATE, 77)};
    x->heap = tn_alloc(x->room, sizeof *x->heap, "events");
}

void net_done(net *x)
{
    tn_free(x->heap);
}

uint64_t net_draw(net *x, uint64_t n)
{
    return tn_below(tn_draw(x->stream, x->drawn++), n);
}

bool net_chance(net *x, double p)
{
    return p > 0 && tn_unit(tn_draw(x->stream, x->drawn++)) < p;
}

static bool before(const net_event *a, const net_event *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->number < b->number);
}

static void grow(net *x)
{
    net_event *more = tn_alloc((size_t)x->room * 2, sizeof *more, "events");
    memcpy(more, x->heap, x->n * sizeof *more);
    tn_free(x->heap);
    x->heap = more;
    x->room *= 2;
}

void net_put(net *x, uint64_t at_ns, const net_message *message)
{
    if (x->n == x->room) {
        grow(x);
    }
    net_event e = {.at_ns = at_ns, .number = x->number++, .message = *message};
    e.message.session = x->session;
    uint32_t i = x->n++;
    while (i > 0 && before(&e, &x->heap[(i - 1) / 2])) {
        x->heap[i] = x->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    x->heap[i] = e;
}

/* Messages end with their session; kills, restarts and the like belong to none. */
static bool has_ended(const net *x, const net_message *m)
{
    const bool fate = m->kind == NET_KILL || m->kind == NET_RESTART || m->kind == NET_RECONNECT ||
                      m->kind == NET_CUT;
    return !fate && m->session != x->session;
}

/* The first event, moved out of the heap. */
static void take_first(net *x, net_message *out)
{
    TN_ASSERT(x->heap[0].at_ns >= x->now_ns);
    x->now_ns = x->heap[0].at_ns;
    *out = x->heap[0].message;
    const net_event last = x->heap[--x->n];
    uint32_t i = 0;
    for (uint32_t child = 1; child < x->n; child = 2 * i + 1) {
        child += child + 1 < x->n && before(&x->heap[child + 1], &x->heap[child]);
        if (!before(&x->heap[child], &last)) {
            break;
        }
        x->heap[i] = x->heap[child];
        i = child;
    }
    x->heap[i] = last;
}

bool net_take(net *x, net_message *out)
{
    while (x->n > 0) {
        take_first(x, out);
        if (!has_ended(x, out)) {
            return true;
        }
    }
    return false;
}
