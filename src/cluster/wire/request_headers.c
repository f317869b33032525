/* request_headers.c - fixed fields of requests and replies are written, read and checked. */
#include "cluster/wire/request_headers.h"

#include "base/core/bytes.h"
#include "ps/table/row.h"

#include <math.h>

/* -0 is not: it would not be written back as it came. */
static bool in_range(double x)
{
    return isfinite(x) && signbit(x) == 0;
}

void tn_pull_params_put(char *payload, const tn_pull_params *params)
{
    tn_store_u64(payload, params->examples);
    tn_store_f64(payload + 8, params->weight_sum);
}

tn_drop tn_pull_params_get(tn_pull_params *out, const char *payload)
{
    tn_pull_params p = {tn_load_u64(payload), tn_load_f64(payload + 8)};
    if (!in_range(p.weight_sum) || (p.examples == 0 && p.weight_sum > 0)) {
        return TN_DROP_PARAMS;
    }
    *out = p;
    return TN_DROP_NONE;
}

void tn_push_params_put(char *payload, const tn_push_params *params)
{
    tn_store_u64(payload, params->pull);
    tn_store_f64(payload + 8, params->lr_factor);
    tn_store_u32(payload + 16, params->day);
    tn_store_f32(payload + 20, params->norm);
    tn_store_f64(payload + 24, params->loss);
}

tn_drop tn_push_params_get(tn_push_params *out, const char *payload)
{
    tn_push_params p = {tn_load_u64(payload), tn_load_f64(payload + 8), tn_load_u32(payload + 16),
                        tn_load_f32(payload + 20), tn_load_f64(payload + 24)};
    if (p.pull == 0 || !in_range(p.lr_factor) || p.day > TN_ROW_DAY_MAX ||
        !in_range((double)p.norm) || !isfinite(p.loss)) {
        return TN_DROP_PARAMS;
    }
    *out = p;
    return TN_DROP_NONE;
}

void tn_rows_params_put(char *payload, const tn_rows_params *params)
{
    tn_store_u64(payload, params->first);
    tn_store_u64(payload + 8, params->examples);
    tn_store_f64(payload + 16, params->weight_sum);
}

tn_drop tn_rows_params_get(tn_rows_params *out, const char *payload)
{
    tn_rows_params p = {tn_load_u64(payload), tn_load_u64(payload + 8), tn_load_f64(payload + 16)};
    bool weighs_nothing = p.examples == 0 && p.weight_sum > 0;
    if (p.first > p.examples || !in_range(p.weight_sum) || weighs_nothing) {
        return TN_DROP_PARAMS;
    }
    *out = p;
    return TN_DROP_NONE;
}

void tn_dense_params_put(char *payload, const tn_dense_params *params)
{
    tn_store_f64(payload, params->grad_norm);
    tn_store_u64(payload + 8, params->staleness);
    tn_store_f64(payload + 16, params->loss);
}

tn_drop tn_dense_params_get(tn_dense_params *out, const char *payload)
{
    tn_dense_params p = {tn_load_f64(payload), tn_load_u64(payload + 8), tn_load_f64(payload + 16)};
    if (!in_range(p.grad_norm) || !isfinite(p.loss)) {
        return TN_DROP_PARAMS;
    }
    *out = p;
    return TN_DROP_NONE;
}

void tn_share_put(char *payload, const double *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tn_store_f64(payload + i * sizeof(double), values[i]);
    }
}

tn_drop tn_share_get(double *out, uint32_t n, const char *payload)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(tn_load_f64(payload + i * sizeof(double)))) {
            return TN_DROP_VALUES;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        out[i] = tn_load_f64(payload + i * sizeof(double));
    }
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
