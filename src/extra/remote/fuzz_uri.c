/* fuzz_uri.c - any bytes as a URI: its parts lie in it, and what is encoded for a signature holds
 * only what a signature takes and decodes to the same; as a place that a redirect leads to: what is
 * made of it asks for other bytes.
 */
#include "extra/remote/scheme_s3.h"

#include "base/core/number.h"
#include "io/source/remote.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

static void check_inside(tn_bytes part, const char *text, size_t size)
{
    TN_ASSERT(part.size == 0 || (part.data >= text && part.data + part.size <= text + size));
}

static void check_encoded(tn_bytes bytes)
{
    tn_text out = {0};
    size_t n = 0;
    tn_uri_encode(&out, bytes, false);
    for (size_t i = 0; i < out.size; i++, n++) {
        uint64_t byte = (unsigned char)out.data[i];
        TN_ASSERT(strchr("%-._~", (int)byte) != NULL || (byte >= '0' && byte <= '9') ||
                  ((byte | 32) >= 'a' && (byte | 32) <= 'z'));
        if (byte == '%') {
            TN_ASSERT(i + 2 < out.size);
            TN_ASSERT(tn_read_hex(out.data + i + 1, 2, &byte) == TN_NUM_OK);
            i += 2;
        }
        TN_ASSERT(n < bytes.size && byte == (unsigned char)bytes.data[n]);
    }
    TN_ASSERT(n == bytes.size);
    tn_text_done(&out);
}

/* As a server reads it: the first parameter of that name in the query. */
static void check_parameter(const char *url, const char *name, const char *value)
{
    const char *end = url + strcspn(url, "#");
    const char *at = memchr(url, '?', (size_t)(end - url));
    while (at != NULL && strncmp(at + 1, name, strlen(name)) != 0) {
        at = memchr(at + 1, '&', (size_t)(end - at - 1));
    }
    TN_ASSERT(at != NULL);
    at += 1 + strlen(name);
    TN_ASSERT(strncmp(at, value, strlen(value)) == 0 && strchr("&#", at[strlen(value)]) != NULL);
}

static void check_moved(const char *url)
{
    tn_text moved = {0};
    tn_text_adds(&moved, url);
    if (tn_scheme_webhdfs.move(&moved, 7, 12)) {
        check_parameter(tn_text_str(&moved), "offset=", "7");
        check_parameter(tn_text_str(&moved), "length=", "5");
    }
    tn_text_done(&moved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    tn_text text = {0};
    tn_text out = {0};
    tn_uri u;
    tn_text_add(&text, data, size);
    const char *uri = tn_text_str(&text);
    if (tn_uri_read(&u, uri, NULL) == TN_OK) {
        check_inside(u.scheme, uri, size);
        check_inside(u.host, uri, size);
        check_inside(u.path, uri, size);
        check_inside(u.query, uri, size);
        TN_ASSERT(tn_uri_is(uri) && u.host.size > 0);
        tn_uri_mend(&out, u.path);
        for (size_t i = 0; i < out.size; i++) {
            TN_ASSERT(out.data[i] > ' ' && out.data[i] < 0x7f);
        }
        tn_text_clear(&out);
        tn_s3_url("https://s3.amazonaws.com", (size & 1) != 0, u.host, u.path, NULL, &out);
        TN_ASSERT(strpbrk(tn_text_str(&out), " ?#\n") == NULL || (size & 1) != 0);
    }
    check_encoded((tn_bytes){(const char *)data, size, false});
    check_moved(uri);
    tn_text_done(&text);
    tn_text_done(&out);
    return 0;
}
