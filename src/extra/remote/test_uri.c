/* test_uri.c - URIs taken apart; secrets in them are refused and not shown. */
#include "extra/remote/uri.h"

#include "io/source/remote.h"

#include "support/test.h"

static void check(const char *text, const char *parts)
{
    tn_uri u;
    tn_error err = {0};
    tn_text got CLEANUP(tn_text_done) = {0};
    fail_if(tn_uri_read(&u, text, &err) != TN_OK, "%s: %s", text, err.text);
    tn_text_addf(&got, "%.*s|%.*s|%.*s|%.*s", (int)u.scheme.size, u.scheme.data, (int)u.host.size,
                 u.host.data, (int)u.path.size, u.path.data, (int)u.query.size, u.query.data);
    assert_string_equal(tn_text_str(&got), parts);
}

TEST(a_uri_has_four_parts)
{
    check("http://h:80/a/b.tsv?v=3#x", "http|h:80|a/b.tsv|v=3");
    check("https://h", "https|h||");
    check("https://h?q=1", "https|h||q=1");
    check("https://[::1]:80/a", "https|[::1]:80|a|");
    check("s3://b.c/d=1/p-?.tsv#2", "s3|b.c|d=1/p-?.tsv#2|"); /* names may hold them */
    check("webhdfs://n1:1,n2:2/a/b", "webhdfs|n1:1,n2:2|a/b|");
    check("abfss://c@a.dfs.core.windows.net/x", "abfss|c@a.dfs.core.windows.net|x|");
}

TEST(a_path_is_no_uri)
{
    static const char *const paths[] = {"a", "-", "./http:/x", "://x", "a b://c", "1s://c", ""};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_false(tn_uri_is(paths[i]));
    }
    assert_true(tn_uri_is("s3://x"));
    assert_true(tn_uri_is("x+y.z-1://"));
}

TEST(secrets_are_refused_and_not_shown)
{
    static const char *const texts[] = {
        "http://user:HIDDEN@h/a",
        "http://HIDDEN@h/a",
        "s3://AKID:HIDDEN@bucket/a",
        "abfs://c:HIDDEN@a.dfs/x",
        "abfs://HIDDEN@c@a.dfs/x",
        "https://h/a?x=1&sig=HIDDEN",
        "https://h/a?X-Amz-Signature=HIDDEN&x",
        "https://h/a?X-AMZ-CREDENTIAL=HIDDEN",
        "https://h/a?access_token=HIDDEN",
        "https://h/a?token=HIDDEN",
        "https://h/a?access_key=HIDDEN",
        "https://h/a?Client_Secret=HIDDEN",
        "https://h/a?jwt=HIDDEN",
        "https://h/a?x%2Damz%2dsignature=HIDDEN",
        "https://h/a?%73ig=HIDDEN",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tn_uri u;
        tn_error err = {0};
        assert_int_equal(tn_uri_read(&u, texts[i], &err), TN_E_DATA);
        assert_null(strstr(err.text, "HIDDEN"));
        assert_non_null(strstr(err.text, "data.secrets"));
    }
    check("https://h/a?signal=1&tokens=2", "https|h|a|signal=1&tokens=2"); /* whole names */
    check("https://h/a?%=1&si%=2&%zzsig=3", "https|h|a|%=1&si%=2&%zzsig=3");
}

TEST(hosts_that_are_none_are_refused)
{
    static const char *const texts[] = {"http:///a",     "s3:///a",      "http://a b/c",
                                        "http://a%2f/c", "http://a\n/c", "no uri"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tn_uri u;
        assert_int_equal(tn_uri_read(&u, texts[i], NULL), TN_E_DATA);
    }
}

TEST(bytes_are_encoded_as_a_signature_wants_them)
{
    tn_text out = {0};
    const char text[] = "az-AZ_09.~ /=+&%\xc3\xa9\x01";
    const tn_bytes bytes = {text, sizeof text - 1, false};
    tn_uri_encode(&out, bytes, true);
    assert_string_equal(tn_text_str(&out), "az-AZ_09.~%20/%3D%2B%26%25%C3%A9%01");
    tn_text_clear(&out);
    tn_uri_encode(&out, (tn_bytes){"a/b", 3, false}, false);
    assert_string_equal(tn_text_str(&out), "a%2Fb");
    tn_text_clear(&out);
    tn_uri_mend(&out, (tn_bytes){"a%20b c\"\xc3/?&=", 13, false});
    assert_string_equal(tn_text_str(&out), "a%20b%20c%22%C3/?&=");
    tn_text_done(&out);
    assert_int_equal(tn_uri_plain((tn_bytes){"a/b*", 4, false}), 3);
    assert_int_equal(tn_uri_plain((tn_bytes){"a/b", 3, false}), 3);
    assert_int_equal(tn_uri_plain((tn_bytes){"a[b", 3, false}), 1);
    assert_int_equal(tn_uri_plain((tn_bytes){"?ab", 3, false}), 0);
}
