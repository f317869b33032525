/* remote.c - the row of remotes.def, and what a build without one does with a URI. */
#include "io/source/remote.h"

#include "config/absent.h"

#include <stdio.h>
#include <string.h>

#define TN_REMOTE_KIND(name) extern const tn_remote_kind tn_remote_kind_##name;
#include "io/source/remotes.def"
#undef TN_REMOTE_KIND

size_t tn_uri_scheme(const char *text)
{
    size_t n = 0;
    while ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= 'A' && text[n] <= 'Z') ||
           (n > 0 && ((text[n] >= '0' && text[n] <= '9') || text[n] == '+' || text[n] == '-' ||
                      text[n] == '.'))) {
        n++;
    }
    return strncmp(text + n, "://", 3) == 0 ? n : 0;
}

bool tn_uri_is(const char *text)
{
    return tn_uri_scheme(text) > 0;
}

tn_status tn_uri_join(const char *uri, const char *name, char out[TN_PATH_SIZE], tn_error *err)
{
    const size_t size = strlen(uri);
    const bool slash = size > 0 && uri[size - 1] == '/';
    const int length = snprintf(out, TN_PATH_SIZE, "%s%s%s", uri, slash ? "" : "/", name);
    return length > 0 && length < TN_PATH_SIZE
               ? TN_OK
               : tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                         uri);
}

static tn_status refuse_to_read(const char *path, bool *out, tn_error *err)
{
    *out = false;
    return tn_uri_is(path) ? tn_fail(err, TN_E_DATA, "'%s': " TN_ABSENT_FORM, path, "URIs") : TN_OK;
}

static tn_status refuse_to_write(const char *uri, bool is_file, tn_error *err)
{
    (void)is_file;
    return tn_fail(err, TN_E_CONFIG, "'%s': " TN_ABSENT_FORM, uri, "URIs");
}

static tn_status check_nothing(const char *secrets, const tn_strs *const lists[], uint32_t n,
                               bool warn, tn_error *err)
{
    (void)secrets;
    (void)lists;
    (void)n;
    (void)warn;
    (void)err;
    return TN_OK;
}

static void close_nothing(tn_remote *r) // cppcheck-suppress constParameter; as the list has it
{
    TN_ASSERT(r == NULL);
}

/* Has nothing to open: no path is a URI, and no target is good. */
static const tn_remote_kind none = {.is = refuse_to_read,
                                    .close = close_nothing,
                                    .check_target = refuse_to_write,
                                    .check_hosts = check_nothing};

static const tn_remote_kind *const kinds[] = {
#define TN_REMOTE_KIND(name) &tn_remote_kind_##name,
#include "io/source/remotes.def"
#undef TN_REMOTE_KIND
    &none,
};

const tn_remote_kind *tn_remotes(void)
{
    return kinds[0];
}
