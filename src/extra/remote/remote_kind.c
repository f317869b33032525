/* remote_kind.c - the row of remotes.def: where a file is to go, sent again when the store has lost
 * it, and which hosts would get a header of secrets.
 */
#include "base/core/log.h"
#include "base/file/file.h"
#include "config/values.h"
#include "extra/remote/remote_client.h"
#include "extra/remote/secrets.h"

#include <string.h>

enum { TIMES = 2 };

static tn_status parse(const char *uri, bool is_file, tn_uri *out, const tn_scheme **scheme,
                       tn_error *err)
{
    const tn_status status = tn_remote_parse(uri, out, scheme, err);
    if (status != TN_OK) {
        if (err != NULL) {
            err->code = TN_E_CONFIG;
        }
        return TN_E_CONFIG;
    }
    if ((*scheme)->put == NULL) {
        return tn_fail(err, TN_E_CONFIG,
                       "'%s': nothing is written to %s://\nhint: s3, gs, webhdfs and swebhdfs are "
                       "written to",
                       uri, (*scheme)->name);
    }
    if (tn_uri_plain(out->path) < out->path.size) {
        return tn_fail(err, TN_E_CONFIG, "'%s' is a pattern, and an output has one name", uri);
    }
    const tn_bytes path = out->path;
    return is_file && (path.size == 0 || path.data[path.size - 1] == '/')
               ? tn_fail(err, TN_E_CONFIG, "'%s' names no file", uri)
               : TN_OK;
}

static tn_status check_target(const char *uri, bool is_file, tn_error *err)
{
    tn_uri u;
    const tn_scheme *scheme = NULL;
    return parse(uri, is_file, &u, &scheme, err);
}

static tn_status put(tn_remote *r, const char *path, const char *uri, const atomic_bool *stop,
                     tn_error *err)
{
    tn_uri u;
    tn_request request = {.stop = stop};
    tn_infile *file = NULL;
    tn_error why = {0};
    TN_TRY(parse(uri, true, &u, &request.scheme, err));
    request.uri = &u;
    request.path = u.path;
    TN_TRY(tn_infile_open(&file, path, err));
    tn_status status = TN_OK;
    bool lost = true;
    for (uint32_t i = 0; i < TIMES && lost; i++) {
        lost = false;
        status = request.scheme->put(r, &request, file, &lost, &why);
    }
    tn_infile_close(file);
    TN_ASSERT(status == TN_OK || why.text[0] != '\0');
    return status == TN_OK ? TN_OK
                           : tn_fail(err, status == TN_E_DATA ? TN_E_IO : status, "%s", why.text);
}

/* Returns whether a header goes to this machine, or encrypted. */
static bool is_private(const tn_uri *u)
{
    return u->scheme.size != 4 || strncmp(u->host.data, "127.", 4) == 0 ||
           strncmp(u->host.data, "localhost", 9) == 0 || strncmp(u->host.data, "[::1]", 5) == 0;
}

static tn_status check_host(tn_secrets *s, const char *path, bool *warn, tn_error *err)
{
    tn_uri u;
    tn_text header = {0};
    if (tn_uri_read(&u, path, NULL) != TN_OK) {
        return TN_OK;
    }
    TN_TRY(tn_secrets_admit(s, &u, err));
    if (*warn && memcmp(u.scheme.data, "http", 4) == 0 && !is_private(&u) &&
        tn_secrets_add_header(s, u.host, &header)) {
        tn_log(TN_LOG_WARN,
               "http_header of data.secrets goes to '%.*s' where others can read it: "
               "https encrypts",
               (int)u.host.size, u.host.data);
        *warn = false;
        explicit_bzero(header.data, header.size);
    }
    tn_text_done(&header);
    return TN_OK;
}

static tn_status check_hosts(const char *secrets, const tn_strs *const lists[], uint32_t n,
                             bool warn, tn_error *err)
{
    tn_secrets *s = NULL;
    tn_status status = TN_OK;
    if (tn_secrets_open(&s, secrets, NULL) != TN_OK) {
        return TN_OK;
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < lists[i]->n && status == TN_OK; k++) {
            status = check_host(s, lists[i]->item[k], &warn, err);
        }
    }
    tn_secrets_close(s);
    return status;
}

extern const tn_remote_kind tn_remote_kind_http;
const tn_remote_kind tn_remote_kind_http = {
    .is = tn_http_is,
    .open = tn_http_open,
    .close = tn_http_close,
    .list = tn_http_list,
    .probe = tn_http_probe,
    .stream_open = tn_http_stream_open,
    .stream_close = tn_http_stream_close,
    .stream_until = tn_http_stream_until,
    .stream_read = tn_http_stream_read,
    .check_target = check_target,
    .put = put,
    .check_hosts = check_hosts,
};
