/* recorder.c - a ring of copied requests for each model. */
#include "extra/http/recorder.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { KEPT = 256, BYTES_MAX = 16384, TEXTS = 5 };
static const uint64_t pause_ns = 5000000; /* between two copies */

/* A copied request: its texts, each ended by NUL, and then the body. */
typedef struct copied {
    tn_recorded scored;
    tn_text text;
    uint32_t at[TEXTS]; /* places of the texts; UINT32_MAX: the request has none */
    uint32_t body_at;
} copied;

typedef struct ring {
    uint64_t n; /* requests that were ever kept */
    copied item[KEPT];
} ring;

struct tn_recorder {
    pthread_mutex_t lock;
    _Atomic uint64_t next_ns;
    uint32_t models;
    ring *ring;
};

tn_status tn_recorder_new(tn_recorder **out, uint32_t models, tn_error *err)
{
    tn_recorder *r = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(r, 1, "recorded requests", err));
    (void)pthread_mutex_init(&r->lock, NULL);
    r->models = models;
    if (TN_ALLOC(r->ring, models, "recorded requests", err) != TN_OK) {
        tn_recorder_free(r);
        return TN_E_MEMORY;
    }
    *out = r;
    return TN_OK;
}

void tn_recorder_free(tn_recorder *r)
{
    if (r == NULL) {
        return;
    }
    for (uint32_t i = 0; r->ring != NULL && i < r->models; i++) {
        for (uint32_t k = 0; k < KEPT; k++) {
            tn_text_done(&r->ring[i].item[k].text);
        }
    }
    tn_free(r->ring);
    (void)pthread_mutex_destroy(&r->lock);
    tn_free(r);
}

/* The texts of a request that its answer depends on. */
static void texts_of(tn_http_request *request, const char **out[TEXTS])
{
    out[0] = &request->content_type;
    out[1] = &request->accept;
    out[2] = &request->json_bytes;
    out[3] = &request->format;
    out[4] = &request->label;
}

static void copy_request(copied *to, const tn_http_request *request, const tn_recorded *scored)
{
    tn_http_request from = *request;
    const char **text[TEXTS];
    texts_of(&from, text);
    to->scored = *scored;
    tn_text_clear(&to->text);
    for (uint32_t i = 0; i < TEXTS; i++) {
        to->at[i] = *text[i] != NULL ? (uint32_t)to->text.size : UINT32_MAX;
        if (*text[i] != NULL) {
            tn_text_add(&to->text, *text[i], strlen(*text[i]) + 1);
        }
    }
    to->body_at = (uint32_t)to->text.size;
    tn_text_add(&to->text, request->body.data, request->body.size);
}

void tn_recorder_keep(tn_recorder *r, uint32_t model, const tn_http_request *request,
                      const tn_recorded *scored)
{
    const uint64_t now = tn_clock_ns();
    TN_ASSERT(model < r->models);
    if (now < atomic_load_explicit(&r->next_ns, memory_order_relaxed) ||
        request->body.size > BYTES_MAX || pthread_mutex_trylock(&r->lock) != 0) {
        return;
    }
    atomic_store_explicit(&r->next_ns, now + pause_ns, memory_order_relaxed);
    ring *kept = &r->ring[model];
    copy_request(&kept->item[kept->n++ % KEPT], request, scored);
    (void)pthread_mutex_unlock(&r->lock);
}

tn_status tn_recorder_replay(tn_recorder *r, uint32_t model, tn_replay_fn *replay, void *arg,
                             tn_error *err)
{
    tn_status status = TN_OK;
    TN_ASSERT(model < r->models);
    (void)pthread_mutex_lock(&r->lock);
    const ring *kept = &r->ring[model];
    for (uint32_t i = 0; i < KEPT && i < kept->n && status == TN_OK; i++) {
        const copied *c = &kept->item[i];
        tn_http_request request = {.method = "POST", .path = ""};
        const char **text[TEXTS];
        if (c->text.failed) {
            continue; /* there was no memory for it */
        }
        texts_of(&request, text);
        for (uint32_t k = 0; k < TEXTS; k++) {
            *text[k] = c->at[k] != UINT32_MAX ? tn_text_str(&c->text) + c->at[k] : NULL;
        }
        request.body =
            (tn_bytes){tn_text_str(&c->text) + c->body_at, c->text.size - c->body_at, false};
        status = replay(arg, &request, &c->scored, err);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return status;
}
