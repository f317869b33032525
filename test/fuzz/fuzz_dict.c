/* fuzz_dict.c - any bytes as an inference dictionary: refused, or every look-up stays inside.
 *
 * The header's crc is made right, so that the fuzzer gets past it; checksums of the rest are not
 * looked at (verify none) and then are (verify full).
 */
#include "base/core/error.h"
#include "base/math/crc32c.h"
#include "base/math/key.h"
#include "dict/dict.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEADER = 128, FILE_AT = 48, CRC_AT = 124, KEYS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

static tn_status look_at(void *arg, const tn_dict_item *item, tn_error *err)
{
    float w[8];
    double *sum = arg;
    (void)err;
    for (uint32_t segment = 0; segment < 4; segment++) {
        (void)tn_dict_get(&item->row, segment, 8, w);
        *sum += (double)w[7];
    }
    return TN_OK;
}

static void look_up(const tn_dict *d)
{
    const uint32_t n_groups = tn_dict_head(d)->n_groups;
    tn_dict_query query[KEYS];
    tn_dict_row row[KEYS];
    tn_error err = {0};
    for (uint32_t i = 0; i < KEYS && n_groups > 0; i++) {
        uint32_t group = i % n_groups;
        query[i] = (tn_dict_query){tn_key_of(i / 4, tn_dict_salt(d, group)), group};
    }
    if (n_groups > 0 && tn_dict_find_all(d, KEYS, query, row, &err) == TN_OK) {
        for (uint32_t i = 0; i < KEYS; i++) {
            float w[2];
            (void)tn_dict_get(&row[i], i % 3, 1 + i % 2, w);
        }
    }
}

static void try_file(const char *path, tn_verify verify)
{
    tn_error err = {0};
    tn_dict *d = NULL;
    if (tn_dict_open(&d, path, verify, &err) != TN_OK) {
        TN_ASSERT(d == NULL && err.text[0] != '\0');
        return;
    }
    look_up(d);
    double sum = 0;
    tn_status status = tn_dict_walk(d, look_at, &sum, &err);
    TN_ASSERT(status == TN_OK || verify != TN_VERIFY_FULL);
    tn_dict_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    static char copy[1 << 20];
    if (size > sizeof copy) {
        return 0;
    }
    memcpy(copy, data, size);
    if (size >= HEADER) {
        uint64_t bytes = size;
        memcpy(copy + FILE_AT, &bytes, sizeof bytes);
        uint32_t crc = tn_crc32c(0, copy, CRC_AT);
        memcpy(copy + CRC_AT, &crc, sizeof crc);
    }
    int fd = memfd_create("dict", 0);
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0 && write(fd, copy, size) == (ssize_t)size) {
        try_file(path, TN_VERIFY_NONE);
        try_file(path, TN_VERIFY_LAZY);
        try_file(path, TN_VERIFY_FULL);
    }
    (void)close(fd);
    return 0;
}
