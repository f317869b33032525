/* uri.c - scheme, authority, path and query by RFC 3986; secrets are looked for by name. */
#include "extra/remote/uri.h"

#include "base/core/number.h"
#include "io/source/remote.h"

#include <string.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 64 }; /* no name of a secret parameter is as long */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "x%2Damz" is "x-amz"; false: it has no room. */
static bool decode_name(tn_bytes from, char out[NAME_MAX_BYTES])
{
    size_t n = 0;
    for (size_t i = 0; i < from.size && n < NAME_MAX_BYTES; i++) {
        uint64_t byte = 0;
        const bool coded = from.data[i] == '%' && from.size - i > 2 &&
                           tn_read_hex(from.data + i + 1, 2, &byte) == TN_NUM_OK;
        out[n++] = (char)(coded ? (int)byte : from.data[i]);
        i += coded ? 2 : 0;
    }
    out[n < NAME_MAX_BYTES ? n : 0] = '\0';
    return n < NAME_MAX_BYTES;
}

/* Parameters of a query that are secrets, or grant what only their holder may do. */
static bool is_secret(tn_bytes name)
{
    static const char *const secret[] = {"sig",
                                         "signature",
                                         "token",
                                         "access_token",
                                         "refresh_token",
                                         "id_token",
                                         "session_token",
                                         "private_token",
                                         "auth",
                                         "authorization",
                                         "bearer",
                                         "jwt",
                                         "password",
                                         "passwd",
                                         "pwd",
                                         "secret",
                                         "client_secret",
                                         "secret_key",
                                         "secretkey",
                                         "secret_access_key",
                                         "access_key",
                                         "accesskey",
                                         "access_key_id",
                                         "accesskeyid",
                                         "api_key",
                                         "apikey",
                                         "api-key",
                                         "x-api-key",
                                         "key",
                                         "credential",
                                         "credentials",
                                         "delegation",
                                         "x-amz-signature",
                                         "x-amz-credential",
                                         "x-amz-security-token",
                                         "x-goog-signature",
                                         "x-goog-credential",
                                         "awsaccesskeyid"};
    char plain[NAME_MAX_BYTES];
    for (size_t i = 0; i < sizeof secret / sizeof *secret && decode_name(name, plain); i++) {
        if (strcasecmp(secret[i], plain) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_secret(tn_bytes query)
{
    const char *at = query.data;
    const char *end = at + query.size;
    while (at < end) {
        const char *amp = memchr(at, '&', (size_t)(end - at));
        amp = amp != NULL ? amp : end;
        const char *equals = memchr(at, '=', (size_t)(amp - at));
        const char *stop = equals != NULL ? equals : amp;
        if (is_secret((tn_bytes){at, (size_t)(stop - at), false})) {
            return true;
        }
        at = amp + (amp < end);
    }
    return false;
}

static tn_status refuse_secret(const tn_uri *u, const char *what, tn_error *err)
{
    const char *at = u->host.size > 0 ? memrchr(u->host.data, '@', u->host.size) : NULL;
    const char *host = at != NULL ? at + 1 : u->host.data;
    return tn_fail(err, TN_E_DATA,
                   "%s in a URI of '%.*s://%.*s', where others can read it\n"
                   "hint: put it into the file of data.secrets",
                   what, (int)u->scheme.size, u->scheme.data,
                   (int)(u->host.data + u->host.size - host), host);
}

static bool is_word(tn_bytes text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* Checks the host. An '@' precedes it, but in abfs separates container and account. */
static tn_status check_host(const tn_uri *u, tn_error *err)
{
    const bool abfs = is_word(u->scheme, "abfs") || is_word(u->scheme, "abfss");
    const char *at = u->host.size > 0 ? memchr(u->host.data, '@', u->host.size) : NULL;
    const char *last = at != NULL ? memrchr(u->host.data, '@', u->host.size) : NULL;
    if (at != NULL &&
        (!abfs || at != last || memchr(u->host.data, ':', (size_t)(at - u->host.data)) != NULL)) {
        return refuse_secret(u, "a user or a password", err);
    }
    return TN_OK;
}

tn_status tn_uri_read(tn_uri *out, const char *text, tn_error *err)
{
    tn_uri u = {0};
    const size_t scheme = tn_uri_scheme(text);
    if (scheme == 0) {
        return tn_fail(err, TN_E_DATA, "'%s' is not a URI", text);
    }
    const char *host = text + scheme + 3;
    const size_t host_size = strcspn(host, "/?#");
    u.scheme = (tn_bytes){text, scheme, false};
    u.host = (tn_bytes){host, host_size, false};
    TN_TRY(check_host(&u, err));
    const char *path = host + host_size;
    path += *path == '/';
    const bool http = is_word(u.scheme, "http") || is_word(u.scheme, "https");
    const size_t path_size = http ? strcspn(path, "?#") : strlen(path);
    u.path = (tn_bytes){path, path_size, false};
    const char *query = path + path_size;
    query += *query == '?';
    u.query = (tn_bytes){query, http ? strcspn(query, "#") : 0, false};
    if (has_secret(u.query)) {
        return refuse_secret(&u, "a signature or a token", err);
    }
    if (host_size == 0) {
        return tn_fail(err, TN_E_DATA, "'%s' names no %s", text,
                       is_word(u.scheme, "s3") || is_word(u.scheme, "gs") ? "bucket" : "host");
    }
    for (const char *c = host; c < host + host_size; c++) {
        if (!is_letter(*c) && !is_digit(*c) && strchr("-._:[],@", *c) == NULL) {
            return tn_fail(err, TN_E_DATA, "'%s' has no '%.*s' that could be looked up", text,
                           (int)host_size, host);
        }
    }
    *out = u;
    return TN_OK;
}

static void add_hex(tn_text *out, char c)
{
    tn_text_addf(out, "%%%02X", (unsigned)(unsigned char)c);
}

void tn_uri_encode(tn_text *out, tn_bytes bytes, bool slashes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        const char c = bytes.data[i];
        if (is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~' ||
            (c == '/' && slashes)) {
            tn_text_addc(out, c);
        } else {
            add_hex(out, c);
        }
    }
}

void tn_uri_mend(tn_text *out, tn_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        const char c = bytes.data[i];
        if (c > ' ' && c < 0x7f && strchr("\"<>\\^`{|}", c) == NULL) {
            tn_text_addc(out, c);
        } else {
            add_hex(out, c);
        }
    }
}

size_t tn_uri_plain(tn_bytes path)
{
    size_t n = 0;
    while (n < path.size && path.data[n] != '*' && path.data[n] != '?' && path.data[n] != '[') {
        n++;
    }
    return n;
}
