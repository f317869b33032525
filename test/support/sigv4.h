/* sigv4.h - AWS Signature Version 4 as a store computes it, to compare with what a client sends.
 *
 * https://docs.aws.amazon.com/general/latest/gr/sigv4-calculate-signature.html
 */
#pragma once

#include <stddef.h>

typedef struct sigv4_request {
    const char *path, *query; /* as they are sent, without '?' */
    const char *headers;      /* lines "name: value\r\n" */
    const char *signed_names; /* "host;x-amz-date" */
    const char *date;         /* 20130524T000000Z */
    const char *region;
    const char *content_hash; /* 64 hex digits */
    const char *method;       /* NULL: GET */
} sigv4_request;

/* 64 hex digits and a NUL. */
void sigv4_sign(const sigv4_request *r, const char *secret, char out[65]);

/* The value of a header in lines, without blanks around it; false: there is none. */
int sigv4_header(const char *headers, const char *name, char *out, size_t size);
