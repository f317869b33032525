/* producer.c - finds the producer of a path in the thread's embedder. */
#include "io/source/producer.h"

#include "base/core/embedder.h"

#include <string.h>

const tn_producer *tn_producer_of(const char *path)
{
    const tn_embedder *embedder = tn_embedder_here();
    const size_t prefix = strlen(TN_PRODUCER_PREFIX);
    if (embedder == NULL || embedder->producers == NULL ||
        strncmp(path, TN_PRODUCER_PREFIX, prefix) != 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < embedder->producers->n; i++) {
        if (strcmp(embedder->producers->producer[i].name, path + prefix) == 0) {
            return &embedder->producers->producer[i];
        }
    }
    return NULL;
}
