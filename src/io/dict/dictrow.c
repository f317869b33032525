/* dictrow.c - see dictrow.h. */
#include "io/dict/dictrow.h"

#include <math.h>
#include <string.h>

static tn_status not_finite(const tn_dict_spec *spec, const tn_dict_entry *e, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "a weight of group '%s', key %016llx is not finite",
                   spec->layout->group[e->group].name, (unsigned long long)e->key);
}

/* to := from; false: not all are finite. Two at a time: of a number that is not finite all bits of
 * the exponent are set, and one more in the lowest of them carries into the sign. */
static bool copy_finite(uint32_t n, const float *from, char *to)
{
    const uint64_t signs = 0x8000000080000000;
    const uint64_t one_more = 0x0080000000800000;
    uint64_t bad = 0;
    uint32_t i = 0;
    for (; i + 2 <= n; i += 2) {
        uint64_t pair;
        memcpy(&pair, from + i, sizeof pair);
        memcpy(to + i * sizeof *from, &pair, sizeof pair);
        bad |= (pair & ~signs) + one_more;
    }
    if (i < n) {
        uint32_t single;
        memcpy(&single, from + i, sizeof single);
        memcpy(to + i * sizeof *from, &single, sizeof single);
        bad |= (single & ~(uint32_t)signs) + (uint32_t)one_more;
    }
    return (bad & signs) == 0;
}

static bool all_finite(uint32_t n, const float *w)
{
    bool good = true;
    for (uint32_t i = 0; i < n; i++) {
        good &= isfinite(w[i]) != 0;
    }
    return good;
}

/* One segment into its place of a row; an absent one stays zero. */
static tn_status put_segment(const tn_dict_spec *spec, const tn_dict_column *c,
                             const tn_dict_entry *e, char *row, tn_error *err)
{
    if ((e->present >> c->of_record & 1) == 0) {
        return TN_OK;
    }
    const float *values = tn_dict_values(e, c->of_record, c->at);
    if (spec->type == TN_DICT_F32) {
        return copy_finite(c->dim, values, row + c->offset) ? TN_OK : not_finite(spec, e, err);
    }
    if (!all_finite(c->dim, values)) {
        return not_finite(spec, e, err);
    }
    float scale = tn_dict_encode(spec->type, c->dim, values, row + c->offset);
    if (c->scale != TN_DICT_NO_SCALE) {
        memcpy(row + c->scale, &scale, sizeof scale);
    }
    return TN_OK;
}

tn_status tn_dict_row_put(const tn_dict_spec *spec, const tn_dict_plan_table *t,
                          const tn_dict_entry *e, char *row, tn_error *err)
{
    uint16_t all = t->set->present;
    if (t->is_run && e->at == NULL && (e->present & all) == all) {
        uint32_t n = t->stride / (uint32_t)sizeof(float);
        return copy_finite(n, e->values + t->column[0].at, row) ? TN_OK : not_finite(spec, e, err);
    }
    if (t->has_gaps || (e->present & all) != all) {
        memset(row, 0, t->stride);
    }
    for (uint32_t i = 0; i < t->n_columns; i++) {
        TN_TRY(put_segment(spec, &t->column[i], e, row, err));
    }
    return TN_OK;
}
