/* remote.c - the row of remotes.def, and what a build without one does with a URI. */
#include "io/source/remote.h"

#include "config/absent.h"
#include "io/source/uri.h"

#define TN_REMOTE_KIND(name) extern const tn_remote_kind tn_remote_kind_##name;
#include "io/source/remotes.def"
#undef TN_REMOTE_KIND

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
