/* test_s3.c - what S3's signatures cover, against signatures of AWS, and the lists that it sends;
 * what a NameNode sends, and where it leads; files of secrets.
 *
 * The signatures are those of docs "Signature Calculations for the Authorization Header" of AWS,
 * the last one of the same key.
 */
#include "base/codec/json.h"
#include "extra/remote/s3_list.h"
#include "extra/remote/scheme_s3.h"
#include "extra/remote/scheme_webhdfs.h"
#include "extra/remote/secrets.h"
#include "support/sigv4.h"
#include "support/store.h"
#include "support/test.h"

static tn_bytes bytes_of(const char *text)
{
    return (tn_bytes){text, strlen(text), false};
}

/* Checks the signature of a URL, with the host as it is written there. */
static void check_signature(const tn_text *url, const char *more, const char *names,
                            const char *expected)
{
    static const char hash[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    char host[100];
    char path[200];
    char headers[600];
    char got[65];
    const char *text = tn_text_str(url) + strlen("https://");
    const char *query = strchr(text, '?');
    (void)snprintf(host, sizeof host, "%.*s", (int)strcspn(text, "/"), text);
    (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(text + strlen(host), "?"),
                   text + strlen(host));
    (void)snprintf(headers, sizeof headers,
                   "Host: %s\r\nx-amz-content-sha256: %s\r\nx-amz-date: 20130524T000000Z\r\n%s",
                   host, hash, more);
    sigv4_sign(&(sigv4_request){path, query != NULL ? query + 1 : "", headers, names,
                                "20130524T000000Z", "us-east-1", hash, NULL},
               STORE_SECRET, got);
    assert_string_equal(got, expected);
}

TEST(what_is_signed_is_what_aws_signs)
{
    static const char names[] = "host;x-amz-content-sha256;x-amz-date";
    tn_text url CLEANUP(tn_text_done) = {0};
    tn_text query CLEANUP(tn_text_done) = {0};
    tn_s3_url("https://s3.amazonaws.com", false, bytes_of("examplebucket"), bytes_of("test.txt"),
              NULL, &url);
    assert_string_equal(tn_text_str(&url), "https://examplebucket.s3.amazonaws.com/test.txt");
    check_signature(&url, "range: bytes=0-9\r\n", "host;range;x-amz-content-sha256;x-amz-date",
                    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    tn_text_clear(&url);
    tn_s3_url("https://s3.amazonaws.com", false, bytes_of("examplebucket"), bytes_of(""),
              "max-keys=2&prefix=J", &url);
    check_signature(&url, "", names,
                    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    tn_text_clear(&url);
    tn_text token CLEANUP(tn_text_done) = {0};
    tn_text_adds(&token, "a/b+=");
    tn_s3_list_query(&token, false, bytes_of("dt=2024/"), &query);
    assert_string_equal(tn_text_str(&query),
                        "continuation-token=a%2Fb%2B%3D&list-type=2&prefix=dt%3D2024%2F");
    tn_s3_url("https://s3.us-east-1.amazonaws.com", true, bytes_of("bkt"), bytes_of(""),
              tn_text_str(&query), &url);
    check_signature(&url, "", names,
                    "7fa74e3cccf3eaf1953eb3447a831eb612bdd1f9920d86a039674216b0daf2ef");
    tn_text_clear(&query);
    tn_text_clear(&token);
    tn_s3_list_query(&token, true, bytes_of(""), &query);
    assert_string_equal(tn_text_str(&query), "delimiter=%2F&list-type=2&prefix=");
    tn_text_clear(&url);
    tn_s3_url("http://10.0.0.5:9000", true, bytes_of("b"), bytes_of("../a=1/\xc3\xa9 +"), NULL,
              &url);
    assert_string_equal(tn_text_str(&url), "http://10.0.0.5:9000/b/../a%3D1/%C3%A9%20%2B");
}

/* ---- lists ---- */

static void check_list(const char *xml, const char *expected)
{
    tn_s3_scan scan = {.text = bytes_of(xml)};
    tn_s3_object o = {0};
    tn_text got CLEANUP(tn_text_done) = {0};
    while (tn_s3_next(&scan, &o)) {
        tn_text_addf(&got, "%s,%llu,%s ", tn_text_str(&o.key), (unsigned long long)o.size,
                     tn_text_str(&o.etag));
    }
    tn_text_addf(&got, "%s%s%s", scan.truncated ? "more:" : "", tn_text_str(&scan.token),
                 scan.broken ? "broken" : "");
    assert_string_equal(tn_text_str(&got), expected);
    tn_text_done(&o.key);
    tn_text_done(&o.etag);
    tn_text_done(&scan.token);
}

TEST(lists_are_scanned_for_what_matters)
{
    check_list(
        "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"><Name>b</Name><IsTruncated>true"
        "</IsTruncated><Contents><Key>a&amp;&lt;&gt;&quot;&apos;&#65;&#x42;&nbsp;&</Key>"
        "<LastModified>2020</LastModified><ETag>&quot;e&quot;</ETag><Size>12</Size>"
        "<Owner><ID>1</ID></Owner></Contents><Contents><Size>0</Size><Key>b</Key></Contents>"
        "<NextContinuationToken>t&#43;</NextContinuationToken></ListBucketResult>",
        "a&<>\"'AB&nbsp;&,12,\"e\" b,0, more:t+");
    check_list("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>", "");
    check_list("", "");
    tn_s3_scan folder = {.text = bytes_of("<Prefix/><CommonPrefixes><Prefix>a/</Prefix>")};
    tn_s3_object none = {0};
    assert_false(tn_s3_next(&folder, &none));
    assert_int_equal(folder.n, 1); /* it is not empty */
    assert_int_not_equal(folder.names, 0);
    check_list("<Contents><Key>a</Key><Size>1</Size>", "broken");
    check_list("<Contents><Key>a</Key><Size>x</Size></Contents>", "broken");
    check_list("<Contents><Key>a</Key></Contents>", "broken");
    check_list("<Contents><Size>1</Size></Contents>", "broken");
    check_list("<Contents><Key>&#0;&#xd800;&#x110000;&#</Key><Size>1</Size></Contents>",
               "&#0;&#xd800;&#x110000;&#,1, ");
    tn_text code CLEANUP(tn_text_done) = {0};
    assert_true(tn_s3_element(bytes_of("<Error><Code>NoSuchKey</Code></Error>"), "Code", &code));
    assert_string_equal(tn_text_str(&code), "NoSuchKey");
    assert_false(tn_s3_element(bytes_of("<Error></Error>"), "Code", &code));
}

/* ---- NameNodes ---- */

static bool read_status(const char *json, tn_arena *arena, tn_webhdfs_status *out)
{
    const tn_json *tree = NULL;
    assert_int_equal(tn_json_parse(&tree, json, strlen(json), arena, "test", NULL), TN_OK);
    return tn_webhdfs_read(tree, out);
}

TEST(a_status_has_all_that_is_needed)
{
    tn_webhdfs_status s;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    assert_true(read_status("{\"pathSuffix\":\"p\",\"type\":\"FILE\",\"length\":12,"
                            "\"modificationTime\":1320171722771,\"owner\":\"x\"}",
                            arena, &s));
    assert_string_equal(s.name, "p");
    assert_false(s.folder);
    assert_int_equal(s.size, 12);
    assert_int_equal(s.changed, 1320171722771);
    assert_true(read_status("{\"pathSuffix\":\"\",\"type\":\"DIRECTORY\",\"modificationTime\":1}",
                            arena, &s));
    assert_true(s.folder);
    static const char *const wrong[] = {
        "{\"type\":\"FILE\",\"length\":1,\"modificationTime\":1}",
        "{\"pathSuffix\":\"p\",\"length\":1,\"modificationTime\":1}",
        "{\"pathSuffix\":\"p\",\"type\":\"FILE\",\"modificationTime\":1}",
        "{\"pathSuffix\":\"p\",\"type\":\"FILE\",\"length\":1}",
        "{\"pathSuffix\":\"p\",\"type\":\"FILE\",\"length\":-1,\"modificationTime\":1}",
        "{\"pathSuffix\":\"../p\",\"type\":\"FILE\",\"length\":1,\"modificationTime\":1}",
        "[]",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(read_status(wrong[i], arena, &s));
    }
    assert_false(tn_webhdfs_read(NULL, &s));
}

/* ---- secrets ---- */

static void check_moved(const char *from, const char *to)
{
    tn_text url CLEANUP(tn_text_done) = {0};
    tn_text_adds(&url, from);
    assert_int_equal(tn_scheme_webhdfs.move(&url, 7, 12), to != NULL);
    if (to != NULL) {
        assert_string_equal(tn_text_str(&url), to);
    }
}

TEST(a_redirect_is_moved_by_parameters_of_its_query_alone)
{
    check_moved("http://d/a?op=OPEN&length=64&n=nn:9000&offset=0",
                "http://d/a?op=OPEN&length=5&n=nn:9000&offset=7");
    check_moved("http://d/a?length=b?offset=3", NULL); /* one parameter with the value b?offset=3 */
    check_moved("http://d/offset=1?offset=&length=2#x", "http://d/offset=1?offset=7&length=5#x");
    check_moved("http://d/a?length=&xoffset=1&offset=0", "http://d/a?length=5&xoffset=1&offset=7");
    check_moved("http://d/a?length=1#&offset=3", NULL);
    check_moved("http://d/a#?length=1&offset=3", NULL);
    check_moved("http://d/a?length=1", NULL);
    check_moved("http://d/offset=1&length=2", NULL);
}

TEST(a_section_has_names_and_values)
{
    static const char file[] = "region = none\n# [x]\n[default]\r\n aws_access_key_id=AK ID \r\n"
                               "#region = b\nendpoint_url =\n[ work ]\nregion\t=\teu=1\n";
    tn_bytes value;
    assert_true(tn_secrets_find(bytes_of(file), "default", "aws_access_key_id", &value));
    assert_int_equal(value.size, 5);
    assert_memory_equal(value.data, "AK ID", 5);
    assert_true(tn_secrets_find(bytes_of(file), "work", "region", &value));
    assert_memory_equal(value.data, "eu=1", 4);
    assert_true(tn_secrets_find(bytes_of(file), "default", "region", &value));
    assert_memory_equal(value.data, "none", 4); /* in front of any head */
    assert_false(tn_secrets_find(bytes_of(file), "default", "endpoint_url", &value)); /* empty */
    assert_false(tn_secrets_find(bytes_of(file), "x", "region", &value));
    assert_false(tn_secrets_find(bytes_of(""), "default", "region", &value));
}
