/* test_http_reply.c - header lines as servers write them, and as they should not. */
#include "extra/remote/http_reply.h"

#include "support/test.h"

static tn_http_reply reply_of(const char *lines)
{
    tn_http_reply r = {0};
    for (const char *end = NULL; (end = strchr(lines, '\n')) != NULL; lines = end + 1) {
        tn_http_reply_line(&r, lines, (size_t)(end - lines) + 1);
    }
    return r;
}

TEST(an_answer_is_read_line_by_line)
{
    const tn_http_reply r =
        reply_of("HTTP/1.1 206 Partial Content\r\ncontent-length: 10\r\nETAG:\t\"ab\" \r\n"
                 "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Range: bytes 5-14/100\r\n"
                 "X-Amz-Bucket-Region: eu-west-1\r\nTransfer-Encoding: Chunked\r\n\r\n");
    assert_int_equal(r.status, 206);
    assert_true(r.has_length && r.has_range && r.has_total && r.chunked && !r.has_retry);
    assert_int_equal(r.length, 10);
    assert_int_equal(r.first, 5);
    assert_int_equal(r.last, 14);
    assert_int_equal(r.total, 100);
    assert_string_equal(r.etag, "\"ab\"");
    assert_string_equal(r.region, "eu-west-1");
    assert_string_equal(tn_http_reply_tag(&r), "\"ab\"");
}

TEST(lengths_that_differ_are_seen)
{
    assert_true(reply_of("Content-Length: 5\nContent-Length: 6\n").torn);
    assert_true(reply_of("Content-Length: 5\nContent-Length: x\n").torn);
    assert_false(reply_of("Content-Length: 5\nContent-Length: 5\n").torn);
    assert_false(reply_of("Content-Length: 5\n\nHTTP/1.1 200\nContent-Length: 6\n").torn);
}

TEST(another_status_line_begins_anew)
{
    const tn_http_reply r =
        reply_of("HTTP/1.1 100 Continue\r\nETag: \"a\"\r\n\r\nHTTP/1.1 200\r\n");
    assert_int_equal(r.status, 200);
    assert_string_equal(r.etag, "");
}

TEST(ranges_come_in_three_forms)
{
    tn_http_reply r = reply_of("Content-Range: bytes 0-9/*\n");
    assert_true(r.has_range && !r.has_total);
    r = reply_of("Content-Range: bytes */77\n");
    assert_true(!r.has_range && r.has_total);
    assert_int_equal(r.total, 77);
    static const char *const wrong[] = {
        "bytes 5-4/9",  "bytes 0-9/9", "bytes 0-9",
        "bytes 0-9/9x", "lines 0-8/9", "bytes -9/9",
        "bytes a-8/9",  "bytes 0-/9",  "bytes 0-99999999999999999999999/*"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[100];
        (void)snprintf(line, sizeof line, "Content-Range: %s\n", wrong[i]);
        r = reply_of(line);
        assert_false(r.has_range || r.has_total);
    }
}

TEST(a_weak_etag_names_no_version)
{
    tn_http_reply r = reply_of("ETag: W/\"a\"\nLast-Modified: yesterday\n");
    assert_string_equal(tn_http_reply_tag(&r), "yesterday");
    assert_true(tn_http_reply_fits(&r, "\"a\"")); /* it says nothing against it */
    assert_true(tn_http_reply_fits(&r, "yesterday"));
    assert_false(tn_http_reply_fits(&r, "today"));
    assert_true(tn_http_reply_fits(&r, ""));
    r = reply_of("ETag: \"a\"\n");
    assert_false(tn_http_reply_fits(&r, "\"b\""));
    assert_true(tn_http_reply_fits(&r, "today"));
    char line[TN_TAG_SIZE + 20];
    memset(line, 'x', sizeof line);
    const char begin[] = {'E', 'T', 'a', 'g', ':', ' ', '"'};
    memcpy(line, begin, sizeof begin);
    line[sizeof line - 2] = '"';
    line[sizeof line - 1] = '\n';
    r = (tn_http_reply){0};
    tn_http_reply_line(&r, line, sizeof line);
    assert_string_equal(r.etag, ""); /* too long to be kept whole */
}

TEST(a_server_says_when_to_ask_again)
{
    tn_http_reply r = reply_of("Retry-After: 120\n");
    assert_true(r.has_retry && !r.retry_at);
    assert_int_equal(r.retry_s, 120);
    r = reply_of("Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\n");
    assert_true(r.has_retry && r.retry_at);
    assert_int_equal(r.retry_s, 784111777);
    static const char *const wrong[] = {
        "soon", "-1", "1.5", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[100];
        (void)snprintf(line, sizeof line, "Retry-After: %s\n", wrong[i]);
        assert_false(reply_of(line).has_retry);
    }
}

TEST(a_server_that_takes_kerberos_says_so)
{
    static const char *const yes[] = {"Negotiate", "negotiate YIIabc=", "Negotiate, Basic"};
    static const char *const no[] = {"Basic realm=\"Negotiate\"", "Negotiated", "Nego", ""};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        char lines[200];
        (void)snprintf(lines, sizeof lines, "WWW-Authenticate: %s\nWWW-Authenticate: Basic\n",
                       yes[i]);
        assert_true(reply_of(lines).negotiate);
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        char lines[200];
        (void)snprintf(lines, sizeof lines, "WWW-Authenticate: %s\n", no[i]);
        assert_false(reply_of(lines).negotiate);
    }
}
