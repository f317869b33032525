/* scalebatch.c - messages and batches: see scale.h. */
#include "scale.h"

#include "base/core/alloc.h"
#include "base/math/key.h"
#include "base/math/rng.h"

#include <math.h>
#include <string.h>
#include <time.h>

double tn_scale_cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

char *tn_scale_payload(tn_scale_message *m, size_t bytes)
{
    const size_t size = TN_FRAME_HEAD + bytes;
    if (size > m->room) {
        tn_free(m->bytes);
        m->room = size + size / 4;
        m->bytes = tn_alloc(m->room, 1, "a message");
    }
    m->size = size;
    return m->bytes + TN_FRAME_HEAD;
}

void tn_scale_seal(tn_scale_message *m, const tn_frame *frame)
{
    tn_frame f = *frame;
    f.bytes = m->size - TN_FRAME_HEAD;
    const bool has_id = tn_frame_is_request(f.type) || f.type == TN_FRAME_ROWS ||
                        f.type == TN_FRAME_DENSE || f.type == TN_FRAME_PART;
    f.sequence = has_id ? 1 : 0;
    f.incarnation = 1;
    tn_frame_seal(m->bytes, &f);
}

void tn_scale_message_done(tn_scale_message *m)
{
    tn_free(m->bytes);
    *m = (tn_scale_message){0};
}

void tn_scale_open(const tn_scale_message *m, uint32_t n_ranks, tn_frame *out)
{
    const tn_frame_limits limits = {.peers = n_ranks,
                                    .bytes_max = UINT64_MAX,
                                    .count_max = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    tn_drop why = tn_frame_read(out, m->bytes, m->size, &limits);
    TN_ASSERT(why == TN_DROP_NONE);
}

/* What the values of a batch are, each once, as first seen. */
typedef struct values {
    uint32_t n;
    uint32_t place[TN_SCALE_SLOTS * TN_SCALE_IDS]; /* 1 + index below, 0: not seen */
    uint64_t key[TN_SCALE_VALUES];
    uint16_t slot[TN_SCALE_VALUES];
    uint32_t show[TN_SCALE_VALUES], click[TN_SCALE_VALUES];
} values;

static void draw(values *v, uint32_t rank)
{
    const uint64_t stream = tn_stream2(1, TN_RNG_GENERATE, rank);
    for (uint32_t i = 0; i < TN_SCALE_VALUES; i++) {
        const uint32_t slot = i % TN_SCALE_SLOTS;
        const double id = pow(TN_SCALE_IDS, tn_unit(tn_draw(stream, i))) - 1;
        const uint32_t number = slot * TN_SCALE_IDS + (uint32_t)id;
        if (v->place[number] == 0) {
            v->key[v->n] = tn_mix(number + 1);
            v->slot[v->n] = (uint16_t)slot;
            v->place[number] = ++v->n;
        }
        const uint32_t at = v->place[number] - 1;
        v->show[at]++;
        v->click[at] += i / TN_SCALE_SLOTS % 4 == 0;
    }
}

static const tn_record record = {.width = TN_SCALE_WIDTH};
static const tn_share_group group[TN_SCALE_SLOTS];
static const tn_layout layout = {TN_SCALE_SLOTS, group, 1, &record};

void tn_scale_batch_fill(tn_scale_batch *b, const tn_owners *owners, uint32_t rank)
{
    values *v = tn_alloc(1, sizeof *v, "values of a batch");
    uint32_t place[TN_PARTITIONS + 1] = {0};
    draw(v, rank);
    memset(b->first, 0, sizeof b->first);
    for (uint32_t i = 0; i < v->n; i++) {
        b->first[tn_partition_of(v->key[i], TN_PARTITIONS) + 1]++;
    }
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        b->first[p + 1] += b->first[p];
        place[p + 1] = b->first[p + 1];
    }
    for (uint32_t i = 0; i < v->n; i++) {
        const uint32_t at = place[tn_partition_of(v->key[i], TN_PARTITIONS)]++;
        b->key[at] = v->key[i];
        b->group[at] = v->slot[i];
        b->show[at] = v->show[i];
        b->click[at] = v->click[i];
        b->at[i] = i * TN_SCALE_WIDTH;
    }
    b->keys = (tn_keyset){.owners = owners,
                          .layout = &layout,
                          .n = v->n,
                          .floats = v->n * TN_SCALE_WIDTH,
                          .key = b->key,
                          .group = b->group,
                          .at = b->at,
                          .show = b->show,
                          .click = b->click,
                          .first = b->first};
    tn_free(v);
}
