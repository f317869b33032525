/* fuzz_s3_list.c - any bytes as a list of S3, as an answer of a NameNode, as a file of secrets:
 * each ends, and whatever comes out has its members.
 */
#include "base/codec/json.h"
#include "extra/remote/s3_list.h"
#include "extra/remote/scheme_webhdfs.h"
#include "extra/remote/secrets.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

static void scan_list(tn_bytes text)
{
    tn_s3_scan scan = {.text = text};
    tn_s3_object o = {0};
    size_t n = 0;
    while (tn_s3_next(&scan, &o)) {
        TN_ASSERT(o.key.size > 0 && n++ < text.size);
        TN_ASSERT(memchr(o.key.data, '\0', o.key.size) == NULL ||
                  memchr(text.data, '\0', text.size) != NULL);
    }
    TN_ASSERT(scan.broken || scan.text.size == 0);
    tn_text_clear(&o.key);
    (void)tn_s3_element(text, "Code", &o.key);
    tn_text_done(&scan.token);
    tn_text_done(&o.key);
    tn_text_done(&o.etag);
}

static void walk_statuses(tn_bytes text)
{
    tn_arena *arena = tn_arena_new(1 << 12);
    const tn_json *tree = NULL;
    if (tn_json_parse(&tree, text.data, text.size, arena, "fuzz", NULL) == TN_OK) {
        const tn_json *list = tn_json_get(tn_json_get(tree, "FileStatuses"), "FileStatus");
        for (const tn_json *one = list != NULL ? list->first : NULL; one != NULL; one = one->next) {
            tn_webhdfs_status s;
            TN_ASSERT(!tn_webhdfs_read(one, &s) || strchr(s.name, '/') == NULL);
        }
    }
    tn_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    const tn_bytes text = {(const char *)data, size, false};
    tn_bytes value;
    scan_list(text);
    walk_statuses(text);
    if (tn_secrets_find(text, "default", "region", &value)) {
        TN_ASSERT(value.size > 0 && value.data > text.data &&
                  value.data + value.size <= text.data + size);
        TN_ASSERT(memchr(value.data, '\n', value.size) == NULL);
    }
    return 0;
}
