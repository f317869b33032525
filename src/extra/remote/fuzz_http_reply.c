/* fuzz_http_reply.c - any bytes as header lines: what is kept is bounded and means something. */
#include "extra/remote/http_reply.h"

#include "base/core/error.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    tn_http_reply r = {0};
    const char *at = (const char *)data;
    const char *end = at + size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop + 1 : end;
        tn_http_reply_line(&r, at, (size_t)(stop - at));
        at = stop;
    }
    TN_ASSERT(r.status <= 999);
    TN_ASSERT(!r.has_range || r.first <= r.last);
    TN_ASSERT(!r.has_range || !r.has_total || r.last < r.total);
    TN_ASSERT(memchr(r.etag, '\0', sizeof r.etag) != NULL &&
              (r.etag[0] == '"' || r.etag[0] == '\0'));
    TN_ASSERT(memchr(r.modified, '\0', sizeof r.modified) != NULL);
    TN_ASSERT(memchr(r.region, '\0', sizeof r.region) != NULL);
    TN_ASSERT(tn_http_reply_fits(&r, tn_http_reply_tag(&r)) || r.modified[0] == '"');
    return 0;
}
