/* fuzz_shard.c - any bytes as a shard file. The reader works on files, so each input becomes one in
 * memory; the checksums of header, first block, index and trailer are put right first. */
#include "base/core/bytes.h"
#include "base/math/crc32c.h"
#include "ps/snapshot/snapshot.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

enum { HEADER = 64, BLOCK = 32, TRAILER = 32, SIZE_MAX_TRIED = 1 << 16 };

static const tn_row_record record[2] = {{.n_segments = 2, .segment = {{.dim = 3}, {.dim = 12}}},
                                        {.n_segments = 1, .segment = {{.dim = 1}}}};
static const tn_row_group group[2] = {{.record = 0}, {.record = 1}};
static const tn_row_schema schema = {
    .n_records = 2, .n_groups = 2, .record = record, .group = group};

static void repair(char *bytes, size_t size)
{
    if (size < HEADER + BLOCK + TRAILER) {
        return;
    }
    tn_store_u32(bytes + 60, tn_crc32c(0, bytes, 60));
    uint32_t stored = tn_load_u32(bytes + HEADER);
    if (stored <= size - HEADER - BLOCK) {
        uint32_t crc = tn_crc32c(0, bytes + HEADER, 28);
        tn_store_u32(bytes + HEADER + 28, tn_crc32c(crc, bytes + HEADER + BLOCK, stored));
    }
    char *trailer = bytes + size - TRAILER;
    uint64_t index = tn_load_u64(trailer);
    if (index <= size - TRAILER) {
        tn_store_u32(trailer + 24, tn_crc32c(0, bytes + index, size - TRAILER - index));
    }
    tn_store_u32(trailer + 28, tn_crc32c(0, trailer, 28));
}

static tn_status sum_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    float *sum = arg;
    for (uint32_t i = 0; i < row->n_floats; i++) {
        *sum += row->data[i];
    }
    return TN_OK;
}

static void read_path(const char *path)
{
    tn_snapshot *s = NULL;
    float sum = 0;
    if (tn_snapshot_open(&s, path, NULL) == TN_OK) {
        const tn_snapshot_head *head = tn_snapshot_head_of(s);
        tn_status status = TN_OK;
        for (uint32_t p = head->first; p <= head->last && status == TN_OK; p++) {
            status = tn_snapshot_read(s, p, &schema, sum_row, &sum, NULL);
        }
    }
    tn_snapshot_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    static char bytes[SIZE_MAX_TRIED];
    char path[64];
    if (size > sizeof bytes) {
        return 0;
    }
    memcpy(bytes, data, size);
    repair(bytes, size);
    int fd = memfd_create("shard", MFD_CLOEXEC);
    TN_ASSERT(fd >= 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, bytes, size) == (ssize_t)size) {
        read_path(path);
    }
    (void)close(fd);
    return 0;
}
