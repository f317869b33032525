/* scheme_s3.c - S3 and its relatives: signed requests (SigV4), lists with continuation.
 *
 * libcurl signs path and query as they are given, and sends what it signs, so both are written in
 * the canonical form of the signature: every byte outside A-Za-z0-9-._~ as %XX, keys of the query
 * in order. gs:// is Google's XML API, which takes the same requests with HMAC keys.
 */
#include "extra/remote/scheme_s3.h"

#include "base/math/key.h"
#include "extra/remote/remote_client.h"
#include "extra/remote/s3_list.h"

#include <fnmatch.h>
#include <string.h>

/* A page has at most 1000 names of 1024 bytes; that of some stores may be empty. */
enum { PAGE_BYTES_MAX = 16 << 20, EMPTY_PAGES_MAX = 16 };

/* SHA-256 of nothing, of requests without a body. */
static const char nothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/* ---- one request ---- */

static bool is_word(const tn_text *text, const char *word)
{
    return text->size == strlen(word) && memcmp(text->data, word, text->size) == 0;
}

/* Appends "https://HOST" without a slash at the end; true: it is the user's own endpoint. */
static bool add_endpoint(const tn_request *request, tn_attempt *out, const tn_text *region,
                         tn_text *to)
{
    const bool own = tn_secrets_add(out->secrets, TN_SECRET_ENDPOINT, to);
    if (!own && request->scheme == &tn_scheme_gs) {
        tn_text_adds(to, "https://storage.googleapis.com");
    } else if (!own) {
        tn_text_addf(to, "https://s3.%s.amazonaws.com", tn_text_str(region));
    } else if (strstr(tn_text_str(to), "://") == NULL) {
        tn_text host = *to;
        *to = (tn_text){0};
        tn_text_addf(to, "https://%s", tn_text_str(&host));
        tn_text_done(&host);
    }
    while (to->size > 0 && to->data[to->size - 1] == '/') {
        to->data[--to->size] = '\0';
    }
    return own;
}

/* Returns whether the bucket is in the path: with own endpoints, with dots in its name, which no
 * certificate covers, or because it is asked for. */
static bool is_path_style(const tn_request *request, tn_attempt *out, bool own)
{
    tn_text style = {0};
    const tn_bytes bucket = request->uri->host;
    bool path =
        own || request->scheme == &tn_scheme_gs || memchr(bucket.data, '.', bucket.size) != NULL;
    if (tn_secrets_add(out->secrets, TN_SECRET_STYLE, &style)) {
        path = is_word(&style, "path") || (path && !is_word(&style, "virtual"));
    }
    tn_text_done(&style);
    return path;
}

void tn_s3_url(const char *endpoint, bool path_style, tn_bytes bucket, tn_bytes key,
               const char *query, tn_text *out)
{
    const char *host = strstr(endpoint, "://");
    host = host != NULL ? host + 3 : endpoint;
    tn_text_add(out, endpoint, (size_t)(host - endpoint));
    if (!path_style) {
        tn_text_addf(out, "%.*s.", (int)bucket.size, bucket.data);
    }
    tn_text_addf(out, "%s/", host);
    if (path_style) {
        tn_text_add(out, bucket.data, bucket.size);
        tn_text_adds(out, key.size > 0 ? "/" : "");
    }
    tn_uri_encode(out, key, true);
    if (query != NULL) {
        tn_text_addf(out, "?%s", query);
    }
}

static void sign(const tn_request *request, tn_attempt *out, const tn_text *region)
{
    const char *sha256 = request->body != NULL ? request->body->sha256 : nothing;
    tn_text token = {0};
    if (!tn_secrets_add(out->secrets, TN_SECRET_KEY, &out->user)) {
        return;
    }
    tn_text_addc(&out->user, ':');
    (void)tn_secrets_add(out->secrets, TN_SECRET_SECRET, &out->user);
    tn_text_addf(&out->sign, "aws:amz:%s:s3", tn_text_str(region));
    tn_attempt_header(out, "x-amz-content-sha256", (tn_bytes){sha256, strlen(sha256), false});
    if (tn_secrets_add(out->secrets, TN_SECRET_TOKEN, &token)) {
        tn_attempt_header(out, "x-amz-security-token", (tn_bytes){token.data, token.size, false});
        explicit_bzero(token.data, token.size);
    }
    tn_text_done(&token);
}

static void s3_build(const tn_request *request, tn_attempt *out)
{
    tn_text region = {0};
    tn_text endpoint = {0};
    if (!tn_secrets_add(out->secrets, TN_SECRET_REGION, &region)) {
        tn_text_adds(&region, request->scheme == &tn_scheme_gs ? "auto" : "us-east-1");
    }
    const bool own = add_endpoint(request, out, &region, &endpoint);
    const char *query = request->document;
    const bool of_bucket = query != NULL && request->method == NULL;
    tn_s3_url(tn_text_str(&endpoint), is_path_style(request, out, own), request->uri->host,
              of_bucket ? (tn_bytes){"", 0, false} : request->path,
              query != NULL && *query != '\0' ? query : NULL, &out->url);
    sign(request, out, &region);
    out->failed = out->failed || region.failed || endpoint.failed;
    tn_text_done(&region);
    tn_text_done(&endpoint);
}

/* Returns whether a store says that the body of a request came late, or not as it was sent. */
static bool is_spoilt(const tn_failed_answer *answer, const tn_text *code)
{
    return answer->reply->status == 400 && answer->request->body != NULL &&
           (is_word(code, "RequestTimeout") || is_word(code, "IncompleteBody") ||
            is_word(code, "BadDigest") || is_word(code, "XAmzContentSHA256Mismatch"));
}

static void s3_judge(const tn_failed_answer *answer, tn_judgement *v)
{
    tn_text code = {0};
    const char *region = answer->reply->region;
    (void)tn_s3_element(answer->body, "Code", &code);
    if (v->kind == TN_JUDGED_REDIRECT) { /* its signature would not be good there */
        v->kind = TN_JUDGED_REFUSE;
        tn_text_clear(&v->why);
        tn_text_addf(&v->why, "the store answers %u, the bucket is elsewhere%s%s",
                     (unsigned)answer->reply->status, *region != '\0' ? ", in region " : "",
                     region);
    } else {
        v->kind = is_spoilt(answer, &code) ? TN_JUDGED_RETRY : v->kind;
        tn_judgement_name(v, tn_text_str(&code));
    }
    tn_text_done(&code);
}

/* ---- lists ---- */

void tn_s3_list_query(const tn_text *token, bool folder, tn_bytes prefix, tn_text *out)
{
    if (token->size > 0) {
        tn_text_adds(out, "continuation-token=");
        tn_uri_encode(out, (tn_bytes){token->data, token->size, false}, false);
        tn_text_addc(out, '&');
    }
    tn_text_adds(out, folder ? "delimiter=%2F&list-type=2&prefix=" : "list-type=2&prefix=");
    tn_uri_encode(out, prefix, false);
}

/* Returns whether a key matches a pattern, or lies in a folder. */
static bool is_meant(const tn_request *request, bool folder, const tn_text *key)
{
    if (!folder) { /* both end in NUL: a path of s3 goes to the end of its URI */
        return fnmatch(request->path.data, tn_text_str(key), FNM_PATHNAME | FNM_PERIOD) == 0;
    }
    const char *name = tn_text_str(key) + request->path.size;
    return *name != '\0' && *name != '.' && *name != '_' && strchr(name, '/') == NULL;
}

/* Adds the quotes of an ETag, which some stores leave out in lists. */
static void quote(tn_text *etag)
{
    if (etag->size > 0 && etag->data[0] != '"') {
        tn_text quoted = {0};
        tn_text_addf(&quoted, "\"%s\"", etag->data);
        tn_text_done(etag);
        *etag = quoted;
    }
}

static tn_status add_page(const tn_request *request, bool folder, tn_s3_scan *scan, tn_found *found,
                          tn_error *err)
{
    tn_s3_object object = {0};
    tn_status status = TN_OK;
    while (status == TN_OK && tn_s3_next(scan, &object)) {
        status = tn_text_check(&object.key, "the name of an object", err);
        const bool ours = object.key.size >= request->path.size || !folder;
        quote(&object.etag);
        if (status == TN_OK && ours && is_meant(request, folder, &object.key)) {
            status =
                tn_found_add(found, request, (tn_bytes){object.key.data, object.key.size, false},
                             object.size, &object.etag, err);
        }
    }
    tn_text_done(&object.key);
    tn_text_done(&object.etag);
    if (status == TN_OK && (scan->broken || (scan->truncated && scan->token.size == 0))) {
        status = tn_fail(err, TN_E_DATA, "'%s': the store's list of objects is damaged",
                         request->uri->scheme.data);
    }
    return status;
}

/* Progress of a list. One page is remembered, from each power of two of them on, so that every
 * circle comes back to it (Brent 1980). */
typedef struct course {
    uint64_t token, names; /* token and names of the remembered page */
    uint64_t pages;
    uint32_t empty; /* empty pages in a row */
} course;

/* Refuses a page that does not lead on. TN_E_DATA: it was there before, or names nothing, as too
 * many before it. */
static tn_status go_on(course *c, const tn_request *request, const tn_s3_scan *scan, tn_error *err)
{
    const uint64_t token = tn_xxh64(tn_text_str(&scan->token), scan->token.size, 0);
    const bool again =
        c->pages > 0 && (token == c->token || (scan->n > 0 && scan->names == c->names));
    c->empty = scan->n > 0 ? 0 : c->empty + 1;
    if (scan->truncated && (again || c->empty == EMPTY_PAGES_MAX)) {
        return tn_fail(
            err, TN_E_DATA, "'%s': the store's list of objects is damaged: it does not end, %s",
            request->uri->scheme.data,
            again ? "but comes back to what it has told" : "and tells nothing page after page");
    }
    if ((c->pages & (c->pages + 1)) == 0) {
        c->token = token;
        c->names = scan->names;
    }
    c->pages++;
    return TN_OK;
}

static tn_status s3_list(tn_remote *client, const tn_request *request, tn_found *found,
                         tn_error *err)
{
    const size_t plain = tn_uri_plain(request->path);
    const bool folder = plain == request->path.size;
    const tn_bytes prefix = {request->path.data, plain, false};
    const bool one_level =
        folder || memchr(request->path.data + plain, '/', request->path.size - plain) == NULL;
    tn_text query = {0};
    tn_text answer = {0};
    tn_s3_scan scan = {0};
    tn_http_reply reply;
    course c = {0};
    tn_status status = TN_OK;
    TN_ASSERT(!folder || plain == 0 || prefix.data[plain - 1] == '/');
    do {
        tn_text_clear(&query);
        tn_s3_list_query(&scan.token, one_level, prefix, &query);
        status = tn_text_check(&query, "a request", err);
        const tn_request page = {.scheme = request->scheme,
                                 .uri = request->uri,
                                 .document = tn_text_str(&query),
                                 .end = UINT64_MAX,
                                 .size = UINT64_MAX};
        status = status == TN_OK ? tn_remote_ask(client, &page, &answer, &reply, err) : status;
        if (status == TN_OK) {
            tn_text_clear(&scan.token);
            scan = (tn_s3_scan){.text = {tn_text_str(&answer), answer.size, false},
                                .token = scan.token};
            status = add_page(request, folder, &scan, found, err);
            status = status == TN_OK ? tn_found_count(found, request, scan.n, err) : status;
            status = status == TN_OK ? go_on(&c, request, &scan, err) : status;
        }
    } while (status == TN_OK && scan.truncated);
    tn_text_done(&scan.token);
    tn_text_done(&query);
    tn_text_done(&answer);
    return status;
}

#define S3(scheme_name)                                                                            \
    {                                                                                              \
        .name = (scheme_name), .version_header = "If-Match", .document_bytes_max = PAGE_BYTES_MAX, \
        .build = s3_build, .judge = s3_judge, .list = s3_list, .put = tn_s3_put                    \
    }

const tn_scheme tn_scheme_s3 = S3("s3");
const tn_scheme tn_scheme_gs = S3("gs");
