/* request_headers.c - fixed fields of requests and replies are read and checked. */
#include "cluster/wire/request_headers.h"

#include "base/core/bytes.h"
#include "ps/table/row.h"

#include <math.h>

/* Returns whether x is finite and not negative. -0 is refused: it would not be written back as it
 * came. */
static bool in_range(double x)
{
    return isfinite(x) && signbit(x) == 0;
}

tn_drop tn_pull_params_get(tn_pull_params *out, const char *payload)
{
    tn_pull_params p;
    memcpy(&p, payload, sizeof p);
    if (!in_range(p.weight_sum) || (p.examples == 0 && p.weight_sum > 0)) {
        return TN_DROP_PARAMS;
    }
    *out = p;
    return TN_DROP_NONE;
}

tn_drop tn_push_params_get(tn_push_params *out, const char *payload)
{
    tn_push_params p;
    memcpy(&p, payload, sizeof p);
    if (p.pull == 0 || !in_range(p.lr_factor) || p.day > TN_ROW_DAY_MAX ||
        !in_range((double)p.norm) || !isfinite(p.loss)) {
        return TN_DROP_PARAMS;
    }
    *out = p;
    return TN_DROP_NONE;
}

tn_drop tn_rows_params_get(tn_rows_params *out, const char *payload)
{
    tn_rows_params p;
    memcpy(&p, payload, sizeof p);
    bool weighs_nothing = p.examples == 0 && p.weight_sum > 0;
    if (p.first > p.examples || !in_range(p.weight_sum) || weighs_nothing) {
        return TN_DROP_PARAMS;
    }
    *out = p;
    return TN_DROP_NONE;
}

tn_drop tn_dense_params_get(tn_dense_params *out, const char *payload)
{
    tn_dense_params p;
    memcpy(&p, payload, sizeof p);
    if (!in_range(p.grad_norm) || !isfinite(p.loss)) {
        return TN_DROP_PARAMS;
    }
    *out = p;
    return TN_DROP_NONE;
}

tn_drop tn_share_get(double *out, uint32_t n, const char *payload)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(tn_load_f64(payload + i * sizeof(double)))) {
            return TN_DROP_VALUES;
        }
    }
    memcpy(out, payload, n * sizeof(double));
    return TN_DROP_NONE;
}

void tn_missing_put(char *to, const bool *missing, uint32_t n)
{
    memset(to, 0, ((size_t)n + 7) / 8);
    for (uint32_t i = 0; i < n; i++) {
        to[i / 8] = (char)((uint8_t)to[i / 8] | (uint32_t)missing[i] << i % 8);
    }
}

tn_drop tn_missing_get(bool *missing, tn_key_order order, const char *from)
{
    if (order.n % 8 != 0 && (uint8_t)from[order.n / 8] >> order.n % 8 != 0) {
        return TN_DROP_MISSING;
    }
    for (uint32_t i = 0; i < order.n; i++) {
        missing[order.index[i]] = ((uint8_t)from[i / 8] >> i % 8 & 1) != 0;
    }
    return TN_DROP_NONE;
}
