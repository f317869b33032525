/* metrics_pack.c - packing of metrics, and the newest report of every peer.
 *
 *     u64 rows | u8 flags | u8 bands | sums, 16 bytes each | bands x (w, wy, wp), 16 bytes each
 *     then per cell that is not 0:  varint 1 + cells skipped, varint value;  at the end a varint 0
 */
#include "metrics/metrics_pack.h"

#include "base/codec/proto.h"
#include "base/core/alloc.h"
#include "metrics/metrics_state.h"

#include <string.h>

/* A peer's newest report, as it came: 4 bytes per score that occurs, all cells take 20 MB. */
typedef struct packed {
    tn_text bytes;
    uint64_t sequence; /* 0 until it reports */
} packed;

struct tn_peer_metrics {
    tn_metrics *one; /* owned; the one that is being unpacked */
    uint32_t peers;
    packed latest[]; /* newest report of each peer */
};

/* Returns the bytes of the sums, which are in the message as they are in memory. */
static size_t sums_bytes(const tn_metrics *m)
{
    return (TN_SUMS + TN_BAND_SUMS * (size_t)m->scoring.n_bands) * sizeof *m->sum;
}

void tn_metrics_pack(const tn_metrics *m, tn_text *out)
{
    tn_text_add_u64le(out, m->rows);
    tn_text_addc(out, (char)m->flags);
    tn_text_addc(out, (char)m->scoring.n_bands);
    tn_text_add(out, m->sum, sums_bytes(m));
    size_t next = 0;
    for (size_t i = 0; i < 2 * (size_t)m->n_bins; i++) {
        if (m->cell[i] != 0) {
            tn_proto_add_varint(out, 1 + i - next);
            tn_proto_add_varint(out, m->cell[i]);
            next = i + 1;
        }
    }
    tn_proto_add_varint(out, 0);
}

/* Reads the cells. Returns false when one lies outside of the histogram. */
static bool get_cells(tn_metrics *m, tn_bytes *in)
{
    const size_t cells = 2 * (size_t)m->n_bins;
    size_t next = 0;
    for (uint64_t skip = tn_proto_varint(in); skip != 0; skip = tn_proto_varint(in)) {
        if (skip > cells - next) {
            return false;
        }
        next += (size_t)skip;
        m->cell[next - 1] = tn_proto_varint(in);
    }
    return !in->failed && in->size == 0;
}

static bool get_metrics(tn_metrics *m, tn_bytes *in)
{
    m->rows = tn_get_u64(in);
    m->flags = tn_get_u8(in);
    uint8_t n_bands = tn_get_u8(in);
    const char *sums = tn_get(in, sums_bytes(m));
    if (n_bands != m->scoring.n_bands || m->flags > TN_METRIC_FLAGS || sums == NULL) {
        return false;
    }
    memcpy(m->sum, sums, sums_bytes(m));
    return get_cells(m, in);
}

tn_status tn_metrics_unpack(tn_metrics *m, const char *bytes, size_t size, tn_error *err)
{
    TN_ASSERT(m->kept == NULL);
    tn_bytes in = {bytes, size, false};
    tn_metrics_clear(m);
    if (get_metrics(m, &in)) {
        return TN_OK;
    }
    tn_metrics_clear(m);
    return tn_fail(err, TN_E_PEER, "report of metrics of %zu bytes does not follow its format",
                   size);
}

void tn_metrics_subtract(tn_metrics *m, const tn_metrics *older)
{
    TN_ASSERT(m->n_bins == older->n_bins && m->kept == NULL);
    for (size_t i = 0; i < 2 * (size_t)m->n_bins; i++) {
        m->cell[i] -= m->cell[i] < older->cell[i] ? m->cell[i] : older->cell[i];
    }
    for (uint32_t k = 0; k < TN_ALL_SUMS; k++) {
        const bool is_signed =
            m->opts.target == TN_TARGET_NUMBER && (k == TN_SUM_WY || k == TN_SUM_WP);
        const bool less = !is_signed && m->sum[k] < older->sum[k];
        m->sum[k] -= less ? m->sum[k] : older->sum[k];
    }
    m->rows -= m->rows < older->rows ? m->rows : older->rows;
}

tn_status tn_peer_metrics_new(tn_peer_metrics **out, uint32_t peers, const tn_metrics_opts *opts,
                              tn_error *err)
{
    TN_ASSERT(peers >= 1 && peers <= TN_METRIC_PEERS_MAX);
    TN_ASSERT(!opts->exact_auc && !opts->grouped);
    tn_peer_metrics *r = tn_alloc(1, sizeof *r + peers * sizeof r->latest[0], "reports of peers");
    r->peers = peers;
    tn_status status = tn_metrics_new(&r->one, opts, err);
    if (status != TN_OK) {
        tn_peer_metrics_free(r);
        return status;
    }
    *out = r;
    return TN_OK;
}

void tn_peer_metrics_free(tn_peer_metrics *r)
{
    if (r == NULL) {
        return;
    }
    for (uint32_t i = 0; i < r->peers; i++) {
        tn_text_done(&r->latest[i].bytes);
    }
    tn_metrics_free(r->one);
    tn_free(r);
}

tn_status tn_peer_metrics_put(tn_peer_metrics *r, uint32_t peer, uint64_t sequence,
                              const char *bytes, size_t size, tn_error *err)
{
    TN_ASSERT(peer < r->peers && sequence > 0);
    packed *latest = &r->latest[peer];
    if (sequence <= latest->sequence) {
        return TN_OK;
    }
    tn_status status = tn_metrics_unpack(r->one, bytes, size, err); /* before it is kept */
    if (status != TN_OK) {
        tn_error_context(err, "peer %u", peer);
        return status;
    }
    latest->sequence = sequence;
    tn_text_clear(&latest->bytes);
    tn_text_add(&latest->bytes, bytes, size);
    return tn_text_check(&latest->bytes, "a report of a peer", err);
}

tn_status tn_peer_metrics_total(tn_peer_metrics *r, tn_metrics *m, tn_error *err)
{
    tn_metrics_clear(m);
    for (uint32_t i = 0; i < r->peers; i++) {
        const packed *latest = &r->latest[i];
        if (latest->sequence > 0) {
            TN_TRY(tn_metrics_unpack(r->one, latest->bytes.data, latest->bytes.size, err));
            TN_TRY(tn_metrics_merge(m, r->one, err));
        }
    }
    return TN_OK;
}
