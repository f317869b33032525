/* s3_list.h - the XML that S3 answers: lists of objects, and errors.
 *
 *     tn_s3_scan scan = {.text = body};
 *     while (tn_s3_next(&scan, &key, &object)) ..            object.key etc. are in `key`
 *     scan.truncated: ask again with scan.token
 *
 * A pull scanner of the few elements that matter; whatever is around or between them is passed
 * over. Texts of elements are decoded (&amp; &lt; &gt; &quot; &apos; &#n; &#xn;). Any thread.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/text.h"

#include <stdint.h>

typedef struct tn_s3_scan {
    tn_bytes text;  /* not scanned yet */
    bool truncated; /* there is more to list, from `token` on */
    bool broken;    /* an element does not end, or its value makes no sense */
    tn_text token;  /* token of the next page; owned */
    uint32_t n;     /* objects and folders so far */
    uint64_t names; /* hash of their names */
} tn_s3_scan;

/* Object of one <Contents>. Texts are cleared and filled, and owned by the caller. */
typedef struct tn_s3_object {
    tn_text key, etag; /* the ETag with its quotes; empty: none */
    uint64_t size;
} tn_s3_object;

/* Reads the next object. Returns false when there are no more. */
bool tn_s3_next(tn_s3_scan *scan, tn_s3_object *out);

/* Appends the text of the first element of this name. Returns false when there is none. */
bool tn_s3_element(tn_bytes text, const char *name, tn_text *out);
