/* fuzz_inflate.c - any bytes as gzip, zlib, zstd, lz4 or snappy: the same bytes or the same
 * failure for reads of any size. */
#include "base/math/crc32c.h"
#include "io/schema/dataopts.h"
#include "io/source/source.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

enum { OUTPUT_MAX = 1 << 20 };

typedef struct outcome {
    tn_status status;
    uint64_t size;
    uint32_t crc;
} outcome;

static outcome read_all(const char *path, uint32_t compression, char *buffer, size_t step)
{
    outcome o = {.status = TN_OK};
    tn_source *s = NULL;
    TN_ASSERT(tn_source_open(&s, path, 0, NULL, NULL) == TN_OK);
    TN_ASSERT(tn_source_decompress(s, compression, NULL) == TN_OK);
    while (o.size < OUTPUT_MAX) {
        size_t n = 0;
        tn_error err = {0};
        size_t room = OUTPUT_MAX - o.size < step ? (size_t)(OUTPUT_MAX - o.size) : step;
        o.status = tn_source_read(s, buffer, room, &n, &err);
        TN_ASSERT(o.status == TN_OK || err.code == TN_E_DATA);
        if (o.status != TN_OK) {
            break;
        }
        o.crc = tn_crc32c(o.crc, buffer, n);
        o.size += n;
        if (n < room) {
            break;
        }
    }
    tn_source_close(s);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    TN_ASSERT(fd >= 0);
    TN_ASSERT(write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    static char buffer[OUTPUT_MAX];
    for (uint32_t c = TN_COMPRESSION_GZIP; c <= TN_COMPRESSION_SNAPPY; c++) {
        outcome large = read_all(path, c, buffer, OUTPUT_MAX);
        outcome small = read_all(path, c, buffer, 997);
        TN_ASSERT(large.status == small.status);
        TN_ASSERT(large.status != TN_OK || (large.size == small.size && large.crc == small.crc));
    }
    (void)close(fd);
    return 0;
}
