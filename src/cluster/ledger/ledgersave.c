/* ledgersave.c - a ledger's way into a manifest and back; see ledger.h. */
#include "base/core/alloc.h"
#include "cluster/ledger/ledger.h"
#include "cluster/ledger/ledgerstate.h"

/* Whether `p` is done and begins where the done part `before` ends. */
static bool continues(const tn_manifest_part *before, const tn_ledger_part *p)
{
    return before->state == TN_PART_DONE && p->state == TN_PART_DONE &&
           before->source == p->source && before->end == p->begin;
}

uint32_t tn_ledger_save(const tn_ledger *l, tn_manifest_part *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n_parts; i++) {
        const tn_ledger_part *p = &l->part[l->sorted[i]];
        const bool done = p->state == TN_PART_DONE;
        if (n > 0 && continues(&out[n - 1], p)) {
            out[n - 1].end = p->end;
            continue;
        }
        out[n++] = (tn_manifest_part){
            .source = p->source,
            .begin = p->begin,
            .end = p->end,
            .state = p->state,
            .attempt = done ? 0 : p->attempt,
            .position = done ? 0 : p->position,
        };
    }
    return n;
}

/* The first of the sorted parts that is not before `row`. */
static uint32_t find(const tn_ledger *l, const tn_manifest_part *row)
{
    uint32_t low = 0;
    uint32_t high = l->n_parts;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const tn_ledger_part *p = &l->part[l->sorted[middle]];
        bool before =
            p->source < row->source || (p->source == row->source && p->begin < row->begin);
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

/* Gives the parts that `row` covers to it. False: it is no sequence of whole parts, or one of them
 * is covered already. */
static bool cover(const tn_ledger *l, const tn_manifest_part *row, uint32_t number,
                  uint32_t *covered)
{
    const bool done = row->state == TN_PART_DONE; /* else it is one part alone */
    uint64_t reached = row->begin;
    uint32_t n = 0;
    for (uint32_t i = find(l, row); i < l->n_parts && (done || n == 0); i++) {
        const tn_ledger_part *p = &l->part[l->sorted[i]];
        if (p->source != row->source || p->begin != reached || p->end > row->end ||
            covered[l->sorted[i]] != TN_NOBODY) {
            break;
        }
        covered[l->sorted[i]] = number;
        reached = p->end;
        n++;
    }
    return n > 0 && reached == row->end;
}

static tn_status cover_all(const tn_ledger *l, const tn_manifest_part *part, uint32_t n,
                           uint32_t *covered, tn_error *err)
{
    for (uint32_t i = 0; i < l->n_parts; i++) {
        covered[i] = TN_NOBODY;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (!cover(l, &part[k], k, covered)) {
            return tn_fail(err, TN_E_CKPT,
                           "the checkpoint's parts are not those of the data: "
                           "source %u, bytes %llu to %llu",
                           part[k].source, (unsigned long long)part[k].begin,
                           (unsigned long long)part[k].end);
        }
    }
    for (uint32_t i = 0; i < l->n_parts; i++) {
        if (covered[i] == TN_NOBODY) {
            return tn_fail(err, TN_E_CKPT,
                           "the checkpoint does not know a part of the data: "
                           "source %u, bytes %llu to %llu",
                           l->part[i].source, (unsigned long long)l->part[i].begin,
                           (unsigned long long)l->part[i].end);
        }
    }
    return TN_OK;
}

static void stand(tn_ledger_part *p, const tn_manifest_part *row)
{
    const bool done = row->state == TN_PART_DONE;
    p->state = done ? TN_PART_DONE : TN_PART_FREE;
    p->attempt = done ? 0 : row->attempt + (row->state == TN_PART_DEALT);
    p->start = p->position = done ? 0 : row->position;
}

tn_status tn_ledger_restore(tn_ledger *l, const tn_manifest_part *part, uint32_t n, tn_error *err)
{
    uint32_t *covered =
        tn_try_alloc((size_t)l->n_parts + 1, sizeof *covered, "the ledger of parts", err);
    if (covered == NULL) {
        return TN_E_MEMORY;
    }
    tn_status status = cover_all(l, part, n, covered, err);
    if (status == TN_OK) {
        for (uint32_t i = 0; i < l->n_parts; i++) {
            stand(&l->part[i], &part[covered[i]]);
        }
        tn_ledger_relist(l);
    }
    tn_free(covered);
    return status;
}
