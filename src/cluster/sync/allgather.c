/* allgather.c - messages of an exchange are kept until it runs, then put in rank order. */
#include "cluster/sync/allgather.h"

#include "base/core/alloc.h"
#include "cluster/wire/request_headers.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

enum { AHEAD = 2 };

struct tn_allgather {
    uint32_t rank, n_ranks;

    /* The worker's. */
    uint64_t step; /* step of the exchange that runs, or was last */
    uint32_t code, n;
    uint32_t n_in;
    bool *has;   /* n_ranks */
    double *all; /* n_ranks * n */
    size_t all_max;

    pthread_mutex_t lock; /* guards these two: */
    tn_in_message *inbox;
    uint8_t *kept; /* n_ranks: messages of each */
};

tn_allgather *tn_allgather_new(tn_arena *arena, uint32_t rank, uint32_t n_ranks)
{
    TN_ASSERT(rank < n_ranks);
    tn_allgather *g = TN_NEW(arena, tn_allgather);
    g->rank = rank;
    g->n_ranks = n_ranks;
    g->has = TN_NEW_ARRAY(arena, bool, n_ranks);
    g->kept = TN_NEW_ARRAY(arena, uint8_t, n_ranks);
    (void)pthread_mutex_init(&g->lock, NULL);
    return g;
}

void tn_allgather_free(tn_allgather *g)
{
    if (g == NULL) {
        return;
    }
    while (g->inbox != NULL) {
        tn_in_message *incoming = g->inbox;
        g->inbox = incoming->next;
        tn_in_message_close(incoming);
    }
    tn_free(g->all);
    (void)pthread_mutex_destroy(&g->lock);
}

bool tn_allgather_put(tn_allgather *g, tn_in_message *incoming)
{
    const uint32_t from = incoming->from;
    TN_ASSERT(from < g->n_ranks);
    (void)pthread_mutex_lock(&g->lock);
    const bool fits = g->kept[from] < AHEAD;
    if (fits) {
        g->kept[from]++;
        incoming->next = g->inbox;
        g->inbox = incoming;
    }
    (void)pthread_mutex_unlock(&g->lock);
    return fits;
}

static bool all_finite(const double *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return false;
        }
    }
    return true;
}

tn_status tn_allgather_begin(tn_allgather *g, uint64_t step, uint32_t code, const double *own,
                             uint32_t n, tn_error *err)
{
    const size_t size = (size_t)g->n_ranks * n;
    TN_ASSERT(code > 0 && n > 0);
    if (!all_finite(own, n)) {
        return tn_fail(err, TN_E_DIVERGED,
                       "a statistic of the batch is not finite at step %" PRIu64, step + 1);
    }
    TN_TRY(TN_RESERVE(g->all, g->all_max, size, "numbers of all ranks", err));
    g->step = step;
    g->code = code;
    g->n = n;
    g->n_in = 1;
    memset(g->has, 0, g->n_ranks * sizeof *g->has);
    g->has[g->rank] = true;
    memcpy(g->all + (size_t)g->rank * n, own, n * sizeof *own);
    return TN_OK;
}

/* Returns the messages of this exchange, unlinked. */
static tn_in_message *take_incoming(tn_allgather *g)
{
    tn_in_message *mine = NULL;
    (void)pthread_mutex_lock(&g->lock);
    for (tn_in_message **at = &g->inbox; *at != NULL;) {
        tn_in_message *incoming = *at;
        if (incoming->frame.step != g->step || incoming->frame.code != g->code) {
            at = &incoming->next;
            continue;
        }
        *at = incoming->next;
        TN_ASSERT(g->kept[incoming->from] > 0);
        g->kept[incoming->from]--;
        incoming->next = mine;
        mine = incoming;
    }
    (void)pthread_mutex_unlock(&g->lock);
    return mine;
}

static tn_status receive(tn_allgather *g, const tn_in_message *incoming, tn_error *err)
{
    const tn_frame *f = &incoming->frame;
    const uint32_t from = incoming->from;
    if (g->has[from] || f->count[TN_DENSE_FLOATS] != g->n ||
        tn_share_get(g->all + (size_t)from * g->n, g->n, f->payload) != TN_DROP_NONE) {
        return tn_fail(err, TN_E_PEER, "rank %u sent statistics that nobody can use", from);
    }
    g->has[from] = true;
    TN_ASSERT(g->n_in < g->n_ranks);
    g->n_in++;
    return TN_OK;
}

tn_status tn_allgather_poll(tn_allgather *g, tn_error *err)
{
    tn_status status = TN_OK;
    tn_in_message *incoming = take_incoming(g);
    while (incoming != NULL) {
        tn_in_message *next = incoming->next;
        status = status == TN_OK ? receive(g, incoming, err) : status;
        tn_in_message_close(incoming);
        incoming = next;
    }
    return status;
}

const uint32_t *tn_allgather_count(const tn_allgather *g)
{
    return &g->n_in;
}

uint32_t tn_allgather_waits_for(const tn_allgather *g)
{
    for (uint32_t r = 0; r < g->n_ranks; r++) {
        if (!g->has[r]) {
            return 1 + r;
        }
    }
    return 0;
}

const double *tn_allgather_all(const tn_allgather *g)
{
    TN_ASSERT(g->n_in == g->n_ranks);
    return g->all;
}
