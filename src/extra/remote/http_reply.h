/* http_reply.h - what the header of an HTTP answer says of the object: its length, its version, the
 * range that follows, when to ask again.
 *
 *     tn_http_reply reply = {0};
 *     tn_http_reply_line(&reply, line, size);      for each line, in order; "HTTP/.." begins anew
 *
 * Lines that do not follow their grammar count as not there. A pure function of bytes: any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TN_TAG_SIZE = 256, TN_REGION_SIZE = 40 };

typedef struct tn_http_reply {
    uint32_t status; /* 0: no answer yet */
    bool has_length; /* Content-Length */
    bool torn;       /* several lengths, which differ */
    bool chunked;    /* the end of the body is marked */
    bool has_range;  /* Content-Range, bytes */
    bool has_total;  /* Content-Range with the size of the object */
    bool has_retry;  /* Retry-After */
    bool retry_at;   /* retry_s is Unix seconds; else seconds from now */
    bool negotiate;  /* WWW-Authenticate names it: the server takes Kerberos */
    uint64_t length;
    uint64_t first, last, total; /* range of the answer; without one (416) first and last are 0 */
    uint64_t retry_s;
    char etag[TN_TAG_SIZE];      /* strong, with its quotes; "": none */
    char modified[TN_TAG_SIZE];  /* Last-Modified */
    char region[TN_REGION_SIZE]; /* x-amz-bucket-region */
} tn_http_reply;

void tn_http_reply_line(tn_http_reply *reply, const char *line, size_t size);

/* Returns the name of the object's version: its ETag, else Last-Modified; "": the answer has
 * none. */
const char *tn_http_reply_tag(const tn_http_reply *reply);
/* Returns whether an answer can be of the version with this tag: a header of its kind is equal or
 * absent. */
bool tn_http_reply_fits(const tn_http_reply *reply, const char *tag);
