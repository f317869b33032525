/* tensornet_dense.c - dense tables, a text per rank in blocks, and the sums of a batch norm. */
#include "extra/tensornet/tensornet.h"

#include "base/core/alloc.h"
#include "base/core/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS_MAX = 4, TABLE_MAX = 1 << 30, NORM_COLUMN = 24, NORM_HEAD = 5 };

typedef struct reading {
    const char *path;
    tn_bytes left;
    uint64_t line;
} reading;

static tn_status bad(const reading *r, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "%s:%" PRIu64 ": error: %s", r->path, r->line, what);
}

/* The next line without its end; false: there is none. */
static bool next_line(reading *r, tn_bytes *out)
{
    if (r->left.size == 0) {
        return false;
    }
    const char *stop = memchr(r->left.data, '\n', r->left.size);
    const size_t size = stop != NULL ? (size_t)(stop - r->left.data) : r->left.size;
    *out = (tn_bytes){.data = r->left.data, .size = size};
    (void)tn_get(&r->left, size + (stop != NULL));
    r->line++;
    return true;
}

/* Returns the bytes after `key` on the next line; size 0: it is another line. */
static tn_bytes value_of(reading *r, const char *key)
{
    const size_t n = strlen(key);
    tn_bytes line = {0};
    const bool is_it = next_line(r, &line) && line.size > n && memcmp(line.data, key, n) == 0;
    return is_it ? (tn_bytes){.data = line.data + n, .size = line.size - n} : (tn_bytes){0};
}

static tn_status read_count(reading *r, const char *key, uint64_t most, uint64_t *out,
                            tn_error *err)
{
    const tn_bytes value = value_of(r, key);
    if (value.size == 0 || tn_read_u64(value.data, value.size, out) != TN_NUM_OK || *out > most) {
        return tn_fail(err, TN_E_CKPT,
                       "%s:%" PRIu64 ": error: expected '%s' and a number up to %" PRIu64, r->path,
                       r->line, key, most);
    }
    return TN_OK;
}

static tn_status read_power(reading *r, const char *key, double *out, tn_error *err)
{
    const tn_bytes value = value_of(r, key);
    if (value.size == 0 || tn_read_f64(value.data, value.size, out) != TN_NUM_OK ||
        !(*out >= 0 && *out <= 1)) {
        return tn_fail(err, TN_E_CKPT,
                       "%s:%" PRIu64 ": error: expected '%s' and a number from 0 to 1", r->path,
                       r->line, key);
    }
    return TN_OK;
}

/* w m v, or w d2sum g2sum m, of which only w has a counterpart. */
static tn_status read_value(reading *r, tn_tensornet_dense *d, tn_error *err)
{
    const uint32_t columns = d->adam ? COLUMNS_MAX - 1 : COLUMNS_MAX;
    float value[COLUMNS_MAX];
    tn_bytes line = {0};
    bool good = next_line(r, &line);
    for (uint32_t i = 0; i < columns && good; i++) {
        const char *tab = line.size > 0 ? memchr(line.data, '\t', line.size) : NULL;
        const size_t size = tab != NULL ? (size_t)(tab - line.data) : line.size;
        good = tn_read_f32(line.data, size, &value[i]) == TN_NUM_OK &&
               (tab != NULL) == (i + 1 < columns);
        (void)tn_get(&line, size + (tab != NULL));
    }
    if (!good) {
        return bad(r,
                   d->adam ? "expected w, m and v, decimal numbers between tabs"
                           : "expected w, d2sum, g2sum and m, decimal numbers between tabs",
                   err);
    }
    if (d->adam && value[2] < 0) {
        return bad(r, "a sum of squares below 0", err);
    }
    d->w[d->reached] = value[0];
    d->m[d->reached] = d->adam ? value[1] : 0;
    d->v[d->reached] = d->adam ? value[2] : 0;
    d->reached++;
    return TN_OK;
}

static bool is_rule(tn_bytes value, const char *name)
{
    return value.size == strlen(name) && memcmp(value.data, name, value.size) == 0;
}

static tn_status read_rule(reading *r, tn_tensornet_dense *d, tn_error *err)
{
    const tn_bytes name = value_of(r, "opt_name:");
    const bool adam = is_rule(name, "Adam");
    if (!adam && !is_rule(name, "AdaGrad")) {
        return bad(r, "expected 'opt_name:Adam' or 'opt_name:AdaGrad'", err);
    }
    if (d->reached > 0 && adam != d->adam) {
        return bad(r, "another optimizer than in the blocks before", err);
    }
    d->adam = adam;
    return TN_OK;
}

static tn_status read_block(reading *r, tn_tensornet_dense *d, uint64_t most, tn_error *err)
{
    uint64_t n = 0;
    TN_TRY(read_rule(r, d, err));
    TN_TRY(read_count(r, "array_size:", most, &n, err));
    if (d->adam) {
        TN_TRY(read_power(r, "beta1_power:", &d->power1, err));
        TN_TRY(read_power(r, "beta2_power:", &d->power2, err));
    }
    for (uint64_t i = 0; i < n; i++) {
        TN_TRY(read_value(r, d, err));
    }
    for (uint32_t i = 0; i < 2; i++) {
        tn_bytes line = {0};
        if (!next_line(r, &line) || line.size != 0) {
            return bad(r, "expected two empty lines behind a block", err);
        }
    }
    return TN_OK;
}

/* The head, which all ranks' files have alike. */
static tn_status read_head(reading *r, tn_tensornet_dense *d, tn_error *err)
{
    uint64_t n = 0;
    uint64_t ranks = 0;
    TN_TRY(read_count(r, "total_elements:", TABLE_MAX, &n, err));
    TN_TRY(read_count(r, "rank_num:", TN_TENSORNET_RANKS_MAX, &ranks, err));
    if (n == 0 || ranks == 0) {
        return bad(r, "a table without elements or ranks", err);
    }
    if (d->n != 0) {
        return n == d->n && ranks == d->ranks
                   ? TN_OK
                   : bad(r, "another number of elements or ranks than in the file of rank 0", err);
    }
    d->n = n;
    d->ranks = (uint32_t)ranks;
    TN_TRY(TN_ALLOC(d->w, n, "dense weights", err));
    TN_TRY(TN_ALLOC(d->m, n, "dense states", err));
    return TN_ALLOC(d->v, n, "dense states", err);
}

uint64_t tn_tensornet_dense_from(uint64_t n, uint32_t ranks, uint32_t rank)
{
    const uint64_t each = (n + ranks - 1) / ranks;
    return each * rank < n ? each * rank : n;
}

tn_status tn_tensornet_dense_read(tn_tensornet_dense *d, uint32_t rank, tn_bytes bytes,
                                  const char *path, tn_error *err)
{
    reading r = {.path = path, .left = bytes};
    TN_TRY(read_head(&r, d, err));
    if (rank >= d->ranks || d->reached != tn_tensornet_dense_from(d->n, d->ranks, rank)) {
        return tn_fail(err, TN_E_CKPT, "%s: error: a file of rank %u of %u", path, rank, d->ranks);
    }
    const uint64_t end = tn_tensornet_dense_from(d->n, d->ranks, rank + 1);
    while (r.left.size > 0) {
        TN_TRY(read_block(&r, d, end - d->reached, err));
    }
    if (d->reached != end) {
        return tn_fail(err, TN_E_CKPT,
                       "%s:%" PRIu64 ": error: the file ends %" PRIu64 " values before its range",
                       path, r.line, end - d->reached);
    }
    return TN_OK;
}

void tn_tensornet_dense_done(tn_tensornet_dense *d)
{
    tn_free(d->w);
    tn_free(d->m);
    tn_free(d->v);
    *d = (tn_tensornet_dense){0};
}

static void print_block(const tn_tensornet_dense *d, uint64_t from, uint64_t to, tn_text *out)
{
    tn_text_addf(out, "opt_name:%s\narray_size:%" PRIu64 "\n", d->adam ? "Adam" : "AdaGrad",
                 to - from);
    if (d->adam) {
        tn_text_addf(out, "beta1_power:%.9g\nbeta2_power:%.9g\n", d->power1, d->power2);
    }
    for (uint64_t i = from; i < to; i++) {
        if (d->adam) {
            tn_text_addf(out, "%.9g\t%.9g\t%.9g\n", (double)d->w[i], (double)d->m[i],
                         (double)d->v[i]);
        } else {
            tn_text_addf(out, "%.9g\t0\t0\t0\n", (double)d->w[i]);
        }
    }
    tn_text_adds(out, "\n\n");
}

void tn_tensornet_dense_print(const tn_tensornet_dense *d, uint32_t rank, tn_text *out)
{
    uint64_t from = tn_tensornet_dense_from(d->n, d->ranks, rank);
    const uint64_t end = tn_tensornet_dense_from(d->n, d->ranks, rank + 1);
    const uint64_t each = (end - from + TN_TENSORNET_BLOCKS - 1) / TN_TENSORNET_BLOCKS;
    tn_text_addf(out, "total_elements:%" PRIu64 "\nrank_num:%u\n", d->n, d->ranks);
    for (; from < end; from += each) {
        print_block(d, from, from + each < end ? from + each : end, out);
    }
}

/* ---- batch norm ---- */

tn_status tn_tensornet_norm_read(const tn_tensornet_norm *out, tn_bytes bytes, const char *path,
                                 tn_error *err)
{
    const size_t size = bytes.size;
    const char *variant = tn_get(&bytes, 1);
    const uint32_t cols = tn_get_u32(&bytes);
    if (bytes.failed || *variant != 0) {
        return tn_fail(err, TN_E_CKPT, "%s:@0: error: not the running sums of a batch norm", path);
    }
    if (cols != out->cols || bytes.size != (size_t)cols * NORM_COLUMN) {
        return tn_fail(err, TN_E_CKPT,
                       "%s:@1: error: %u columns in %zu bytes, of the model %u in %zu", path, cols,
                       size, out->cols, NORM_HEAD + (size_t)out->cols * NORM_COLUMN);
    }
    for (uint32_t i = 0; i < cols; i++) {
        const double sum = tn_get_f64(&bytes);
        const double squares = tn_get_f64(&bytes);
        const double count = tn_get_f64(&bytes);
        const double mean = sum / count;
        const double var = squares / count - mean * mean;
        out->mean[i] = (float)mean;
        out->var[i] = (float)(var > 0 ? var : 0);
        if (!(count > 0) || !isfinite(out->mean[i]) || !isfinite(var) || !isfinite(out->var[i])) {
            return tn_fail(err, TN_E_CKPT, "%s:@%u: error: sums that make no mean and variance",
                           path, NORM_HEAD + i * NORM_COLUMN);
        }
    }
    return TN_OK;
}

void tn_tensornet_norm_pack(const tn_tensornet_norm *norm, double count, tn_text *out)
{
    tn_text_addc(out, 0);
    tn_text_add_u32le(out, norm->cols);
    for (uint32_t i = 0; i < norm->cols; i++) {
        const double mean = (double)norm->mean[i];
        const double sum[3] = {mean * count, ((double)norm->var[i] + mean * mean) * count, count};
        tn_text_add(out, sum, sizeof sum);
    }
}
