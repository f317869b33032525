/* remote_hosts.c - the row of remotes.def; and which hosts would get a header of secrets. */
#include "base/core/log.h"
#include "config/values.h"
#include "extra/remote/remote_client.h"
#include "extra/remote/secrets.h"
#include "io/source/uri.h"

#include <string.h>

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
    .check_target = tn_http_check_target,
    .put = tn_http_put,
    .check_hosts = check_hosts,
};
