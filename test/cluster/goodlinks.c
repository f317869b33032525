/* goodlinks.c - see goodlinks.h. */
#include "cluster/goodlinks.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/file/file.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    AT_ONCE = 16, /* requests of a rank under way */
    LAST_S = 60,
};

static const uint64_t first_incarnation = UINT64_C(0x5eed0100);
static const uint64_t ns_of_s = 1000000000;

const char *good_way_name(good_way way)
{
    static const char *const names[] = {"ipc", "tcp", "curve"};
    TN_ASSERT(way < GOOD_WAYS);
    return names[way];
}

/* ---- rank 0 ---- */

static void answer_request(void *arg, tn_in_message *incoming)
{
    good_links *g = arg;
    const tn_frame *f = &incoming->frame;
    TN_ASSERT(f->rank < GOOD_SEATS); /* the link's promise */
    (void)pthread_mutex_lock(&g->lock);
    tn_dedup *dedup = &g->dedup[f->rank];
    if (dedup->incarnation != f->incarnation) {
        tn_dedup_begin(dedup, f->incarnation);
    }
    const tn_dedup_verdict verdict = tn_dedup_check(dedup, f->incarnation, f->sequence);
    if (verdict == TN_DEDUP_APPLY) {
        tn_dedup_mark(dedup, f->sequence);
        g->applied[f->rank]++;
    } else {
        g->repeated[f->rank]++;
    }
    (void)pthread_mutex_unlock(&g->lock);
    tn_out_message *outgoing = NULL;
    if (tn_out_message_take(&outgoing, g->pool, 0, NULL) == TN_OK) {
        outgoing->frame.type = TN_FRAME_NOTED;
        tn_link_answer(g->link[0], f, outgoing);
    }
    tn_in_message_close(incoming);
}

/* ---- those who ask ---- */

static bool take_request(good_asker *a, tn_out_message **out)
{
    if (tn_out_message_take(out, a->links->pool, a->bytes, NULL) != TN_OK) {
        return false;
    }
    (*out)->frame.type = TN_FRAME_SHARE;
    (*out)->frame.count[TN_DENSE_FLOATS] = a->bytes / 8;
    memset(tn_out_message_payload(*out), 0, a->bytes);
    return true;
}

/* Posts n more, as long as there are any to post. */
static void post(good_asker *a, uint32_t n)
{
    for (; n > 0 && a->to_post > 0; n--) {
        tn_out_message *outgoing = NULL;
        TN_ASSERT(take_request(a, &outgoing));
        a->to_post--;
        a->posted++;
        tn_link_post(a->links->link[a->rank], 0, outgoing);
    }
}

static void take_answer(void *arg, tn_in_message *incoming)
{
    good_asker *a = arg;
    const uint64_t sequence = incoming->frame.sequence;
    good_links *g = a->links;
    (void)pthread_mutex_lock(&g->lock);
    if (tn_dedup_check(&a->answers, 1, sequence) == TN_DEDUP_APPLY &&
        incoming->frame.type == TN_FRAME_NOTED) {
        tn_dedup_mark(&a->answers, sequence);
        a->answered++;
    } else {
        a->wrong++;
    }
    post(a, 1);
    (void)pthread_cond_broadcast(&g->changed);
    (void)pthread_mutex_unlock(&g->lock);
    tn_in_message_close(incoming);
}

static void drop_request(void *arg, tn_in_message *incoming)
{
    (void)arg;
    tn_in_message_close(incoming);
}

static void tick(void *arg, uint64_t now_ns)
{
    (void)arg;
    (void)now_ns;
}

/* ---- opening ---- */

static tn_status make_keys(const good_links *g, uint32_t seat, tn_error *err)
{
    char secret[TN_PATH_SIZE];
    char open[TN_PATH_SIZE];
    tn_curve_pair pair;
    (void)snprintf(secret, sizeof secret, "%s/rank-%u.key", g->dir, seat);
    (void)snprintf(open, sizeof open, "%s/rank-%u.pub", g->dir, seat);
    TN_TRY(tn_curve_make(g->z, &pair, err));
    tn_status status = tn_curve_write(g->z, &pair, secret, open, err);
    tn_curve_forget(&pair);
    return status;
}

static tn_status let_in(good_links *g, tn_error *err)
{
    for (uint32_t s = 0; s < GOOD_SEATS && g->way == GOOD_CURVE; s++) {
        TN_TRY(make_keys(g, s, err));
    }
    for (uint32_t s = 0; s < GOOD_SEATS; s++) {
        char key[TN_PATH_SIZE];
        (void)snprintf(key, sizeof key, "%s/rank-%u.key", g->dir, s);
        const tn_security_opts keys = {.key = key, .allow = g->dir};
        TN_TRY(tn_security_init(&g->security[s], g->z, g->way == GOOD_CURVE ? &keys : NULL, err));
    }
    return TN_OK;
}

static tn_status open_rank(good_links *g, uint32_t rank, char bound[TN_ENDPOINT_SIZE],
                           tn_error *err)
{
    good_asker *a = &g->asker[rank];
    *a = (good_asker){.links = g, .rank = rank};
    tn_dedup_begin(&a->answers, 1);
    tn_endpoint own = {.host = "127.0.0.1"};
    if (g->way == GOOD_IPC) {
        own = (tn_endpoint){.is_ipc = true};
        int length = snprintf(own.path, sizeof own.path, "%s/s/%u.sock", g->dir, rank);
        TN_ASSERT(length > 0 && length < TN_ENDPOINT_PATH);
    }
    const tn_link_events serving = {g, answer_request, drop_request, tick};
    const tn_link_events asking = {a, drop_request, take_answer, tick};
    const tn_link_opts opts = {.rank = rank,
                               .size = GOOD_SEATS,
                               .job = GOOD_JOB,
                               .incarnation = first_incarnation + rank,
                               .security = &g->security[rank],
                               .events = rank == 0 ? serving : asking};
    TN_TRY(tn_link_open(&g->link[rank], g->z, &opts, &own, bound, err));
    tn_link_set_session(g->link[rank], GOOD_SESSION);
    return TN_OK;
}

static tn_status open_all(good_links *g, tn_error *err)
{
    char bound[TN_ENDPOINT_SIZE];
    TN_TRY(tn_out_messages_new(&g->pool, err));
    TN_TRY(let_in(g, err));
    TN_TRY(open_rank(g, 0, bound, err));
    TN_TRY(tn_endpoint_read(bound, 0, &g->at, err));
    for (uint32_t r = 1; r < GOOD_RANKS; r++) {
        TN_TRY(open_rank(g, r, bound, err));
        TN_TRY(tn_link_dial(g->link[r], 0, &g->at, err));
    }
    return TN_OK;
}

tn_status good_open(good_links **out, const tn_zmq *z, good_way way, const char *dir, tn_error *err)
{
    *out = NULL;
    good_links *g = tn_alloc(1, sizeof *g, "good links");
    pthread_condattr_t clock;
    g->z = z;
    g->way = way;
    TN_ASSERT(strlen(dir) < sizeof g->dir);
    (void)snprintf(g->dir, sizeof g->dir, "%s", dir);
    (void)pthread_mutex_init(&g->lock, NULL);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&g->changed, &clock);
    (void)pthread_condattr_destroy(&clock);
    tn_status status = open_all(g, err);
    if (status != TN_OK) {
        good_close(g);
        return status;
    }
    *out = g;
    return TN_OK;
}

void good_close(good_links *g)
{
    if (g == NULL) {
        return;
    }
    for (uint32_t r = GOOD_RANKS; r > 0; r--) {
        tn_link_close(g->link[r - 1]);
    }
    for (uint32_t s = 0; s < GOOD_SEATS; s++) {
        tn_security_done(&g->security[s]);
    }
    tn_out_messages_free(g->pool);
    (void)pthread_cond_destroy(&g->changed);
    (void)pthread_mutex_destroy(&g->lock);
    tn_free(g);
}

/* ---- asking ---- */

static bool all_answered(const good_links *g)
{
    bool all = true;
    for (uint32_t r = 1; r < GOOD_RANKS; r++) {
        const good_asker *a = &g->asker[r];
        all = all && a->to_post == 0 && a->answered == a->posted;
    }
    return all;
}

static void begin(good_links *g, uint32_t requests, uint32_t bytes)
{
    for (uint32_t r = 1; r < GOOD_RANKS; r++) {
        g->asker[r].bytes = bytes;
        g->asker[r].to_post = requests;
        post(&g->asker[r], AT_ONCE);
    }
}

/* Locked. Until all is answered, if that is wanted, or the time has come. */
static bool await(good_links *g, bool answers, uint64_t deadline_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(deadline_ns / ns_of_s),
                                   .tv_nsec = (long)(deadline_ns % ns_of_s)};
    int late = 0;
    while (late == 0 && !(answers && all_answered(g))) {
        late = pthread_cond_timedwait(&g->changed, &g->lock, &until);
    }
    return all_answered(g);
}

static uint64_t answered(const good_links *g)
{
    uint64_t n = 0;
    for (uint32_t r = 1; r < GOOD_RANKS; r++) {
        n += g->asker[r].answered;
    }
    return n;
}

bool good_ask(good_links *g, const good_wish *wish)
{
    (void)pthread_mutex_lock(&g->lock);
    begin(g, wish->requests, wish->bytes);
    bool all = await(g, true, wish->deadline_ns);
    (void)pthread_mutex_unlock(&g->lock);
    return all;
}

bool good_ask_for(good_links *g, uint32_t bytes, uint64_t ns, uint64_t *n)
{
    (void)pthread_mutex_lock(&g->lock);
    const uint64_t start = tn_clock_ns();
    const uint64_t before = answered(g);
    begin(g, UINT32_MAX, bytes);
    (void)await(g, false, start + ns);
    *n = answered(g) - before;
    for (uint32_t r = 1; r < GOOD_RANKS; r++) {
        g->asker[r].to_post = 0;
    }
    bool all = await(g, true, start + ns + LAST_S * ns_of_s);
    (void)pthread_mutex_unlock(&g->lock);
    return all;
}

bool good_is_whole(good_links *g)
{
    bool whole = true;
    (void)pthread_mutex_lock(&g->lock);
    for (uint32_t r = 1; r < GOOD_RANKS; r++) {
        const good_asker *a = &g->asker[r];
        whole = whole && a->wrong == 0 && a->answered == a->posted && g->applied[r] == a->posted;
    }
    (void)pthread_mutex_unlock(&g->lock);
    return whole;
}
