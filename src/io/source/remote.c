/* remote.c - hands what concerns a URI to the row of remotes.def. */
#include "io/source/remote.h"

#include "io/source/uri.h"

#define TN_REMOTE_KIND(name) extern const tn_remote_kind tn_remote_kind_##name;
#include "io/source/remotes.def"
#undef TN_REMOTE_KIND

/* ---- a build without one ---- */

static tn_status refuse_to_read(const char *path, bool *out, tn_error *err)
{
    *out = false;
    return tn_uri_is(path) ? tn_fail(err, TN_E_DATA, "'%s': this build reads no URI", path) : TN_OK;
}

static tn_status refuse_to_write(const char *uri, tn_error *err)
{
    return tn_fail(err, TN_E_CONFIG, "'%s': this build writes to no URI", uri);
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

/* Has nothing to open: no path is a URI, and no target is good. */
static const tn_remote_kind none = {.is = refuse_to_read,
                                    .check_target = refuse_to_write,
                                    .check_file = refuse_to_write,
                                    .check_hosts = check_nothing};

static const tn_remote_kind *const kinds[] = {
#define TN_REMOTE_KIND(name) &tn_remote_kind_##name,
#include "io/source/remotes.def"
#undef TN_REMOTE_KIND
    &none,
};

/* ---- with one ---- */

tn_status tn_remote_is(const char *path, bool *out, tn_error *err)
{
    return kinds[0]->is(path, out, err);
}

tn_status tn_remote_open(tn_remote **out, const char *secrets, tn_error *err)
{
    return kinds[0]->open(out, secrets, err);
}

void tn_remote_close(tn_remote *r)
{
    if (r != NULL) {
        kinds[0]->close(r);
    }
}

tn_status tn_remote_list(tn_remote *r, const char *uri, tn_arena *arena, tn_remote_object **out,
                         uint32_t *n, tn_error *err)
{
    return kinds[0]->list(r, uri, arena, out, n, err);
}

tn_status tn_remote_probe(tn_remote *r, tn_remote_object *object, tn_arena *arena, tn_error *err)
{
    return kinds[0]->probe(r, object, arena, err);
}

tn_status tn_remote_stream_open(tn_remote_stream **out, tn_remote *r,
                                const tn_remote_object *object, uint64_t from,
                                const atomic_bool *stop, tn_error *err)
{
    return kinds[0]->stream_open(out, r, object, from, stop, err);
}

void tn_remote_stream_close(tn_remote_stream *s)
{
    if (s != NULL) {
        kinds[0]->stream_close(s);
    }
}

void tn_remote_stream_until(tn_remote_stream *s, uint64_t until)
{
    kinds[0]->stream_until(s, until);
}

tn_status tn_remote_stream_read(tn_remote_stream *s, void *data, size_t size, size_t *n,
                                tn_error *err)
{
    return kinds[0]->stream_read(s, data, size, n, err);
}

tn_status tn_remote_check_target(const char *uri, tn_error *err)
{
    return kinds[0]->check_target(uri, err);
}

tn_status tn_remote_check_file(const char *uri, tn_error *err)
{
    return kinds[0]->check_file(uri, err);
}

tn_status tn_remote_put(tn_remote *r, const char *path, const char *uri, const atomic_bool *stop,
                        tn_error *err)
{
    return kinds[0]->put(r, path, uri, stop, err);
}

tn_status tn_remote_check_hosts(const char *secrets, const tn_strs *const lists[], uint32_t n,
                                bool warn, tn_error *err)
{
    return kinds[0]->check_hosts(secrets, lists, n, warn, err);
}
