/* fuzz_npz.c - any bytes as an npz file; the matrix that is found lies inside of it. */
#include "base/file/file.h"
#include "extra/arrays/npz.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    const tn_map file = {.data = (const char *)data, .size = size};
    tn_npz_matrix found = {0};
    if (tn_npz_find(&file, "fuzz", "a", &found, NULL) == TN_OK) {
        TN_ASSERT(found.data >= file.data && found.data <= file.data + size);
        TN_ASSERT(found.rows == 0 || found.cols <= size / found.rows);
        TN_ASSERT(found.rows * found.cols * sizeof(float) <=
                  (size_t)(file.data + size - found.data));
    }
    return 0;
}
