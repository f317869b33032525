/* scheme_http.c - http, https, and Azure's abfs(s), which is https with a shared access signature;
 * and the memory of one attempt and the words of a judgement, of any scheme.
 *
 * https://learn.microsoft.com/rest/api/storageservices: GET Blob takes Range and If-Range as any
 * server does. A SAS says what its holder may do; listing is a request of its own, and left out.
 */
#include "extra/remote/scheme.h"

#include "extra/remote/secrets.h"

#include <string.h>

/* ---- an attempt ---- */

void tn_attempt_header(tn_attempt *a, const char *name, tn_bytes value)
{
    tn_text line = {0};
    tn_text_addf(&line, "%s%s%.*s", name, *name != '\0' ? ": " : "", (int)value.size, value.data);
    struct curl_slist *more =
        line.failed ? NULL : a->curl->curl_slist_append(a->headers, tn_text_str(&line));
    a->failed = a->failed || more == NULL;
    a->headers = more != NULL ? more : a->headers;
    if (line.data != NULL) {
        explicit_bzero(line.data, line.size);
    }
    tn_text_done(&line);
}

void tn_attempt_clear(tn_attempt *a)
{
    if (a->user.data != NULL) {
        explicit_bzero(a->user.data, a->user.size);
    }
    tn_text_clear(&a->url);
    tn_text_clear(&a->sign);
    tn_text_clear(&a->user);
    a->curl->curl_slist_free_all(a->headers);
    a->headers = NULL;
    a->netrc = false;
    a->kerberos = false;
    a->failed = false;
}

bool tn_attempt_is_short(const tn_attempt *a)
{
    return a->failed || a->url.failed || a->user.failed || a->sign.failed;
}

void tn_attempt_done(tn_attempt *a)
{
    tn_attempt_clear(a);
    tn_text_done(&a->url);
    tn_text_done(&a->sign);
    tn_text_done(&a->user);
}

void tn_judgement_name(tn_judgement *v, const char *name)
{
    const size_t size = v->why.size;
    if (*name != '\0') {
        tn_text_addf(&v->why, " (%.100s)", name);
    }
    if (v->why.size > size) {
        tn_make_printable(v->why.data + size, "");
    }
}

/* ---- the schemes ---- */

static void http_build(const tn_request *request, tn_attempt *out)
{
    const tn_uri *u = request->uri;
    tn_text header = {0};
    tn_text_addf(&out->url, "%s://%.*s/", request->scheme->name, (int)u->host.size, u->host.data);
    tn_uri_mend(&out->url, u->path);
    if (u->query.size > 0) {
        tn_text_addc(&out->url, '?');
        tn_uri_mend(&out->url, u->query);
    }
    if (!out->away && tn_secrets_add_header(out->secrets, u->host, &header)) {
        tn_attempt_header(out, "", (tn_bytes){header.data, header.size, false});
    }
    if (header.data != NULL) {
        explicit_bzero(header.data, header.size);
    }
    tn_text_done(&header);
    out->netrc = !out->away;
}

/* abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH, at ACCOUNT.blob.core.windows.net. */
static void abfs_build(const tn_request *request, tn_attempt *out)
{
    static const char dfs[] = ".dfs.";
    const tn_bytes host = request->uri->host;
    const char *at = memchr(host.data, '@', host.size);
    const char *end = host.data + host.size;
    const char *account = at != NULL ? at + 1 : host.data;
    const char *kind = memmem(account, (size_t)(end - account), dfs, sizeof dfs - 1);
    tn_text_addf(&out->url, "https://%.*s", (int)((kind != NULL ? kind : end) - account), account);
    if (kind != NULL) {
        tn_text_addf(&out->url, ".blob.%.*s", (int)(end - kind - (ptrdiff_t)(sizeof dfs - 1)),
                     kind + sizeof dfs - 1);
    }
    tn_text_addc(&out->url, '/');
    if (at != NULL) {
        tn_text_addf(&out->url, "%.*s/", (int)(at - host.data), host.data);
    }
    tn_uri_encode(&out->url, request->path, true);
    if (!out->away) {
        const size_t size = out->url.size;
        tn_text_addc(&out->url, '?');
        if (!tn_secrets_add(out->secrets, TN_SECRET_SAS, &out->url)) {
            out->url.data[size] = '\0';
            out->url.size = size;
        }
    }
}

const tn_scheme tn_scheme_http = {
    .name = "http", .version_header = "If-Range", .redirects_max = 5, .build = http_build};
const tn_scheme tn_scheme_https = {
    .name = "https", .version_header = "If-Range", .redirects_max = 5, .build = http_build};
const tn_scheme tn_scheme_abfs = {
    .name = "abfs", .version_header = "If-Range", .redirects_max = 0, .build = abfs_build};
const tn_scheme tn_scheme_abfss = {
    .name = "abfss", .version_header = "If-Range", .redirects_max = 0, .build = abfs_build};
