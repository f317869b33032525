/* ordered_work.c - pieces made in parallel and joined in order. A thread puts its finished piece at
 * its place in a ring, where the thread that joins at the moment finds it. If it is the next piece
 * and no thread is joining, the thread that put it there joins. So threads wait for room in the
 * ring only. */
#include "base/thread/ordered_work.h"

#include "base/core/alloc.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct hand {
    struct hand *next;
    _Alignas(TN_CACHE_LINE) char memory[];
} hand;

/* How making a piece went. */
typedef struct made {
    bool there;
    hand *hand; /* NULL: there was no memory for it, or no need to make it */
    tn_status status;
    tn_error err;
} made;

typedef struct run {
    const tn_inorder *how;
    pthread_mutex_t lock; /* guards all below but what `joining` says */
    pthread_cond_t room;
    uint32_t waiting; /* threads that wait for room */
    uint32_t turn;    /* the piece that is joined next */
    bool joining;     /* a thread is joining; it owns the piece at its turn, status and err */
    tn_status status; /* these two: of the first that failed */
    tn_error err;
    hand *idle;
    made ring[TN_INORDER_AHEAD];
} run;

/* Waits for room in the ring. Returns NULL for lack of memory, or when the run is over and needs no
 * more. */
static hand *begin(run *r, uint32_t piece, made *m)
{
    pthread_mutex_lock(&r->lock);
    TN_ASSERT(piece >= r->turn);
    r->waiting++;
    while (piece - r->turn >= TN_INORDER_AHEAD) {
        pthread_cond_wait(&r->room, &r->lock);
    }
    r->waiting--;
    bool over = r->status != TN_OK;
    hand *h = r->idle;
    if (h != NULL) {
        r->idle = h->next;
    }
    pthread_mutex_unlock(&r->lock);
    if (h == NULL && !over) {
        h = tn_try_alloc(1, sizeof *h + r->how->hand_bytes, "a piece of work", &m->err);
        m->status = h != NULL ? TN_OK : TN_E_MEMORY;
    }
    m->hand = h;
    return over ? NULL : h;
}

/* Joins one piece. Unlocked, but nobody else joins. */
static void join(run *r, made *m)
{
    if (m->status == TN_OK) {
        TN_ASSERT(m->hand != NULL);
        m->status = r->how->join(r->how->job, r->turn, m->hand->memory, &m->err);
    }
}

/* Joins all pieces that are there, from the one whose turn it is on. Locked. */
static void join_what_is_there(run *r)
{
    r->joining = true;
    for (;;) {
        made *m = &r->ring[r->turn % TN_INORDER_AHEAD];
        if (!m->there) {
            break;
        }
        if (r->status == TN_OK) {
            pthread_mutex_unlock(&r->lock);
            join(r, m);
            pthread_mutex_lock(&r->lock);
            if (m->status != TN_OK) {
                r->status = m->status;
                r->err = m->err;
            }
        }
        if (m->hand != NULL) {
            m->hand->next = r->idle;
            r->idle = m->hand;
        }
        m->there = false;
        r->turn++;
        if (r->waiting > 0) {
            pthread_cond_broadcast(&r->room);
        }
    }
    r->joining = false;
}

static void do_piece(void *arg, uint32_t piece)
{
    run *r = arg;
    made *m = &r->ring[piece % TN_INORDER_AHEAD];
    made mine = {.status = TN_OK};
    hand *h = begin(r, piece, &mine);
    if (h != NULL) {
        mine.status = r->how->make(r->how->job, piece, h->memory, &mine.err);
    }
    mine.there = true;
    pthread_mutex_lock(&r->lock);
    TN_ASSERT(!m->there && piece - r->turn < TN_INORDER_AHEAD);
    *m = mine;
    if (!r->joining) {
        join_what_is_there(r);
    }
    pthread_mutex_unlock(&r->lock);
}

static void drop_hands(run *r)
{
    while (r->idle != NULL) {
        hand *h = r->idle;
        r->idle = h->next;
        if (r->how->drop != NULL) {
            r->how->drop(h->memory);
        }
        tn_free(h);
    }
}

tn_status tn_inorder_run(const tn_inorder *how, tn_team *team, tn_error *err)
{
    TN_ASSERT(how->make != NULL && how->join != NULL);
    run r = {.how = how};
    int failure = pthread_mutex_init(&r.lock, NULL);
    TN_ASSERT(failure == 0);
    failure = pthread_cond_init(&r.room, NULL);
    TN_ASSERT(failure == 0);
    tn_team_run_in_order(team, how->n, do_piece, &r);
    TN_ASSERT(r.turn == how->n);
    TN_ASSERT(!r.joining && r.waiting == 0);
    drop_hands(&r);
    pthread_cond_destroy(&r.room);
    pthread_mutex_destroy(&r.lock);
    if (r.status != TN_OK && err != NULL) {
        *err = r.err;
    }
    return r.status;
}
