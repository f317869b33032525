/* http_reply.c - header lines of RFC 9110, one at a time. */
#include "extra/remote/http_reply.h"

#include "base/core/number.h"

#include <string.h>
#include <strings.h>
#include <time.h>

typedef struct span {
    const char *at;
    size_t size;
} span;

static span trimmed(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r' || end[-1] == '\n')) {
        end--;
    }
    return (span){at, (size_t)(end - at)};
}

static bool is(span text, const char *word)
{
    return text.size == strlen(word) && strncasecmp(text.at, word, text.size) == 0;
}

/* Takes the decimal digits in front of `text`, which shrinks. */
static bool take_number(span *text, uint64_t *out)
{
    size_t n = 0;
    while (n < text->size && text->at[n] >= '0' && text->at[n] <= '9') {
        n++;
    }
    if (tn_read_u64(text->at, n, out) != TN_NUM_OK) {
        return false;
    }
    text->at += n;
    text->size -= n;
    return true;
}

static bool take_char(span *text, char c)
{
    if (text->size == 0 || *text->at != c) {
        return false;
    }
    text->at++;
    text->size--;
    return true;
}

/* Reads "bytes 0-9/100", "bytes 0-9/" and a star, "bytes", star, "/100". */
static void read_range(tn_http_reply *r, span value)
{
    uint64_t first = 0;
    uint64_t last = 0;
    uint64_t total = 0;
    if (value.size < 6 || strncasecmp(value.at, "bytes ", 6) != 0) {
        return;
    }
    value = trimmed(value.at + 6, value.at + value.size);
    const bool none = take_char(&value, '*');
    if (!none && (!take_number(&value, &first) || !take_char(&value, '-') ||
                  !take_number(&value, &last) || last < first)) {
        return;
    }
    if (!take_char(&value, '/')) {
        return;
    }
    const bool has_total = !is(value, "*");
    if (has_total && (!take_number(&value, &total) || value.size > 0 || (!none && last >= total))) {
        return;
    }
    r->has_range = !none;
    r->has_total = has_total;
    r->first = first;
    r->last = last;
    r->total = total;
}

/* Reads "Sun, 06 Nov 1994 08:49:37 GMT". */
static bool read_date(span value, uint64_t *out)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    static const uint8_t at[] = {5, 12, 17, 20, 23};
    uint64_t number[5]; /* day, year, hour, minute, second */
    if (value.size != 29 || memcmp(value.at + 26, "GMT", 3) != 0) {
        return false;
    }
    for (size_t i = 0; i < 5; i++) {
        if (tn_read_u64(value.at + at[i], i == 1 ? 4 : 2, &number[i]) != TN_NUM_OK) {
            return false;
        }
    }
    struct tm tm = {.tm_mday = (int)number[0],
                    .tm_mon = -1,
                    .tm_year = (int)number[1] - 1900,
                    .tm_hour = (int)number[2],
                    .tm_min = (int)number[3],
                    .tm_sec = (int)number[4]};
    for (int m = 0; m < 12; m++) {
        if (memcmp(value.at + 8, months + 3 * (size_t)m, 3) == 0) {
            tm.tm_mon = m;
        }
    }
    const time_t when = tm.tm_mon >= 0 ? timegm(&tm) : -1;
    *out = (uint64_t)when;
    return when >= 0;
}

static void read_retry(tn_http_reply *r, span value)
{
    span left = value;
    r->has_retry = take_number(&left, &r->retry_s) && left.size == 0;
    if (!r->has_retry) {
        r->retry_at = r->has_retry = read_date(value, &r->retry_s);
    }
}

static void keep(char *to, size_t room, span value)
{
    if (value.size < room) {
        memcpy(to, value.at, value.size);
        to[value.size] = '\0';
    }
}

/* Returns whether a value is "Negotiate" or "Negotiate <token>"; it does not look for several
 * schemes of one line. */
static bool names_scheme(span value, const char *word)
{
    const size_t n = strlen(word);
    return value.size >= n && is((span){value.at, n}, word) &&
           (value.size == n || value.at[n] == ' ' || value.at[n] == ',');
}

static void read_field(tn_http_reply *r, span name, span value)
{
    if (is(name, "content-length")) {
        uint64_t length = 0;
        const bool good = take_number(&value, &length) && value.size == 0;
        r->torn = r->torn || (r->has_length && (!good || length != r->length));
        r->has_length = good;
        r->length = length;
    } else if (is(name, "transfer-encoding")) {
        r->chunked = is(value, "chunked");
    } else if (is(name, "content-range")) {
        read_range(r, value);
    } else if (is(name, "etag") && value.size > 2 && *value.at == '"') {
        keep(r->etag, sizeof r->etag, value); /* a weak one (W/"..") does not name bytes */
    } else if (is(name, "last-modified")) {
        keep(r->modified, sizeof r->modified, value);
    } else if (is(name, "retry-after")) {
        read_retry(r, value);
    } else if (is(name, "www-authenticate")) {
        r->negotiate = r->negotiate || names_scheme(value, "negotiate");
    } else if (is(name, "x-amz-bucket-region")) {
        keep(r->region, sizeof r->region, value);
    }
}

void tn_http_reply_line(tn_http_reply *reply, const char *line, size_t size)
{
    const char *end = line + size;
    if (size >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        *reply = (tn_http_reply){0};
        const char *blank = memchr(line, ' ', size);
        uint64_t status = 0;
        span code = blank != NULL ? trimmed(blank, end) : (span){line, 0};
        if (code.size >= 3 && tn_read_u64(code.at, 3, &status) == TN_NUM_OK) {
            reply->status = (uint32_t)status;
        }
        return;
    }
    const char *colon = size > 0 ? memchr(line, ':', size) : NULL;
    if (colon != NULL) {
        read_field(reply, (span){line, (size_t)(colon - line)}, trimmed(colon + 1, end));
    }
}

const char *tn_http_reply_tag(const tn_http_reply *reply)
{
    return reply->etag[0] != '\0' ? reply->etag : reply->modified;
}

bool tn_http_reply_fits(const tn_http_reply *reply, const char *tag)
{
    const char *sent = *tag == '"' ? reply->etag : reply->modified;
    return *sent == '\0' || *tag == '\0' || strcmp(sent, tag) == 0;
}
