/* fuzz_crb.c - any bytes as blocks of crb: the same rows or failure for reads of any size. */
#include "base/core/text.h"
#include "extra/crb/crb_blocks.h"
#include "io/schema/dataopts.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

enum { RECORD_MAX = 1 << 20, ROWS_MAX = 1 << 20 };

static tn_status read_bytes(void *arg, void *to, size_t size, size_t *n, tn_error *err)
{
    tn_bytes *left = arg;
    (void)err;
    *n = size < left->size ? size : left->size;
    memcpy(to, tn_get(left, *n), *n);
    return TN_OK;
}

static tn_status unpack(const uint8_t *data, size_t size, size_t step, tn_text *out)
{
    tn_bytes left = {(const char *)data, size, false};
    const tn_decompress_from from = {read_bytes, &left};
    tn_decompressor *d = NULL;
    tn_error err = {0};
    static char piece[4096];
    TN_ASSERT(tn_decompressor_new(&d, TN_COMPRESSION_CONTAINER, &tn_container_crb, RECORD_MAX, "f",
                                  NULL) == TN_OK);
    tn_status status = TN_OK;
    for (size_t n = 1; status == TN_OK && n > 0 && out->size < ROWS_MAX;) {
        status = tn_decompressor_read(d, &from, piece, step, &n, &err);
        TN_ASSERT(status == TN_OK || err.code == TN_E_DATA);
        tn_text_add(out, piece, n);
    }
    tn_decompressor_free(d);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    tn_text large = {0};
    tn_text small = {0};
    const tn_status status = unpack(data, size, 4096, &large);
    TN_ASSERT(unpack(data, size, 997, &small) == status || large.size >= ROWS_MAX);
    const size_t same = large.size < small.size ? large.size : small.size;
    TN_ASSERT(status != TN_OK || memcmp(tn_text_str(&large), tn_text_str(&small), same) == 0);
    tn_text_done(&large);
    tn_text_done(&small);
    return 0;
}
