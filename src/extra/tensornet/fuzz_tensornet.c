/* fuzz_tensornet.c - any bytes as a file of a TensorNet checkpoint: refused with file and place, or
 * rows by sign, values that are finite, and variables whose names end.
 *
 * The first byte: which file, and of rows which rule; the second: weights of a row.
 */
#include "base/core/arena.h"
#include "extra/tensornet/tensorflow_index.h"
#include "extra/tensornet/tensornet.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

static void see_rows(tn_bytes bytes, uint8_t kind, uint8_t dim)
{
    const tn_tensornet_shape shape = {(tn_tensornet_rule)(kind % 3), 1 + dim % 8U, kind == 3};
    tn_tensornet_rows rows = {0};
    tn_error err = {0};
    if (tn_tensornet_rows_read(&rows, &shape, bytes, "f", &err) == TN_OK) {
        uint64_t before = 0;
        for (uint64_t i = 0; i < rows.n; i++) {
            const tn_tensornet_row row = tn_tensornet_row_at(&rows, i);
            TN_ASSERT(i == 0 || row.sign > before);
            before = row.sign;
            for (uint32_t k = 0; k < tn_tensornet_width(&shape); k++) {
                TN_ASSERT(row.values[k] - row.values[k] == 0);
            }
        }
    } else {
        TN_ASSERT(strncmp(err.text, "f:", 2) == 0 || strstr(err.text, "rows in a block") != NULL);
    }
    tn_tensornet_rows_done(&rows);
}

static void see_dense(tn_bytes bytes)
{
    tn_tensornet_dense d = {0};
    tn_error err = {0};
    const bool good = tn_tensornet_dense_read(&d, 0, bytes, "f", &err) == TN_OK;
    TN_ASSERT(good ? d.n > 0 && d.ranks > 0 && d.reached <= d.n : err.text[0] != '\0');
    for (uint64_t i = 0; i < d.reached; i++) {
        TN_ASSERT(d.w[i] - d.w[i] == 0 && d.v[i] >= 0);
    }
    tn_tensornet_dense_done(&d);
}

static void see_norm(tn_bytes bytes, uint8_t cols)
{
    float mean[256] = {0};
    float spread[256] = {0};
    const tn_tensornet_norm norm = {cols, mean, spread};
    tn_error err = {0};
    if (tn_tensornet_norm_read(&norm, bytes, "f", &err) == TN_OK) {
        for (uint32_t i = 0; i < cols; i++) {
            TN_ASSERT(mean[i] - mean[i] == 0 && spread[i] >= 0);
        }
    }
}

/* The index is the first half, rounded up. */
static void see_variables(tn_bytes bytes)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_tensorflow_variables all;
    tn_error err = {0};
    const size_t half = bytes.size - bytes.size / 2;
    const tn_bytes index = {.data = bytes.data, .size = half};
    const tn_bytes rest = {.data = bytes.data + half, .size = bytes.size - half};
    if (tn_tensorflow_variables_read(&all, index, rest, arena, "f", &err) == TN_OK) {
        for (uint32_t i = 0; i < all.n; i++) {
            const size_t n = strlen(all.variable[i].name);
            TN_ASSERT(n > 2 && strcmp(all.variable[i].name + n - 2, ":0") == 0);
            TN_ASSERT(all.variable[i].rank <= TN_TENSORFLOW_RANK_MAX);
        }
    }
    tn_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    enum { ROWS = 4 };
    if (size < 2) {
        return 0;
    }
    const uint8_t kind = data[0] % (ROWS + 3);
    const tn_bytes bytes = {.data = (const char *)data + 2, .size = size - 2};
    if (kind < ROWS) {
        see_rows(bytes, kind, data[1]);
    } else if (kind == ROWS) {
        see_dense(bytes);
    } else if (kind == ROWS + 1) {
        see_norm(bytes, data[1]);
    } else {
        see_variables(bytes);
    }
    return 0;
}
