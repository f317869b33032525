/* remote_put.c - checks where a file is to go, and sends it again when the store has lost it. */
#include "base/file/file.h"
#include "extra/remote/remote_client.h"

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

tn_status tn_http_check_target(const char *uri, bool is_file, tn_error *err)
{
    tn_uri u;
    const tn_scheme *scheme = NULL;
    return parse(uri, is_file, &u, &scheme, err);
}

tn_status tn_http_put(tn_remote *r, const char *path, const char *uri, const atomic_bool *stop,
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
