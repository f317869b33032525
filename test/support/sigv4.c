/* sigv4.c - canonical request, string to sign, signing key, HMAC-SHA256. */
#include "support/sigv4.h"

#include "base/core/text.h"
#include "base/math/sha256.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static void hmac(const void *key, size_t size, const char *text, uint8_t out[32])
{
    uint8_t pad[64] = {0};
    uint8_t inner[32];
    tn_sha256 h;
    memcpy(pad, key, size);
    for (size_t i = 0; i < 64; i++) {
        pad[i] ^= 0x36;
    }
    tn_sha256_init(&h);
    tn_sha256_add(&h, pad, 64);
    tn_sha256_add(&h, text, strlen(text));
    tn_sha256_end(&h, inner);
    for (size_t i = 0; i < 64; i++) {
        pad[i] ^= 0x36 ^ 0x5c;
    }
    tn_sha256_init(&h);
    tn_sha256_add(&h, pad, 64);
    tn_sha256_add(&h, inner, 32);
    tn_sha256_end(&h, out);
}

static void hash_hex(const char *text, char out[65])
{
    uint8_t digest[32];
    tn_sha256 h;
    tn_sha256_init(&h);
    tn_sha256_add(&h, text, strlen(text));
    tn_sha256_end(&h, digest);
    tn_sha256_hex(digest, out);
}

int sigv4_header(const char *headers, const char *name, char *out, size_t size)
{
    const size_t n = strlen(name);
    for (const char *at = headers; *at != '\0';) {
        const size_t line = strcspn(at, "\r\n");
        if (line > n && at[n] == ':' && strncasecmp(at, name, n) == 0) {
            const char *value = at + n + 1;
            value += strspn(value, " ");
            (void)snprintf(out, size, "%.*s", (int)(at + line - value), value);
            return 1;
        }
        at += line;
        at += strspn(at, "\r\n");
    }
    return 0;
}

static void canonical(const sigv4_request *r, tn_text *out)
{
    char names[512];
    char value[2048];
    char *rest = NULL;
    (void)snprintf(names, sizeof names, "%s", r->signed_names);
    tn_text_addf(out, "%s\n%s\n%s\n", r->method != NULL ? r->method : "GET", r->path, r->query);
    for (char *name = strtok_r(names, ";", &rest); name != NULL;
         name = strtok_r(NULL, ";", &rest)) {
        value[0] = '\0';
        (void)sigv4_header(r->headers, name, value, sizeof value);
        tn_text_addf(out, "%s:%s\n", name, value);
    }
    tn_text_addf(out, "\n%s\n%s", r->signed_names, r->content_hash);
}

void sigv4_sign(const sigv4_request *r, const char *secret, char out[65])
{
    tn_text request = {0};
    tn_text scoped = {0};
    char hash[65];
    char first[200];
    char day[9];
    uint8_t key[32];
    canonical(r, &request);
    hash_hex(tn_text_str(&request), hash);
    (void)snprintf(day, sizeof day, "%.8s", r->date);
    tn_text_addf(&scoped, "AWS4-HMAC-SHA256\n%s\n%s/%s/s3/aws4_request\n%s", r->date, day,
                 r->region, hash);
    (void)snprintf(first, sizeof first, "AWS4%s", secret);
    hmac(first, strlen(first), day, key);
    hmac(key, 32, r->region, key);
    hmac(key, 32, "s3", key);
    hmac(key, 32, "aws4_request", key);
    hmac(key, 32, tn_text_str(&scoped), key);
    tn_sha256_hex(key, out);
    tn_text_done(&request);
    tn_text_done(&scoped);
}
