/* fuzz_safetensors.c - any bytes as safetensors; what is accepted lies inside the file. */
#include "base/file/safetensors.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    tn_map bytes = {.data = (const char *)data, .size = size};
    tn_safetensors doc = {0};
    tn_arena *arena = tn_arena_new(1 << 12);
    if (tn_safetensors_read(&doc, &bytes, arena, "fuzz", NULL) == TN_OK) {
        size_t total = 0;
        for (uint32_t i = 0; i < doc.n_tensors; i++) {
            const tn_tensor *t = &doc.tensor[i];
            TN_ASSERT(t->data >= bytes.data + 8);
            TN_ASSERT(t->size <= (size_t)(bytes.data + size - t->data));
            TN_ASSERT(tn_tensor_find(&doc, t->name) == t);
            total += t->size;
        }
        TN_ASSERT(total <= size - 8); /* they tile: no byte belongs to two */
    }
    tn_arena_free(arena);
    return 0;
}
