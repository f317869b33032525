/* source.c - opening, peeking and reading, whatever the kind. */
#include "io/source/source.h"

#include "base/core/alloc.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

enum { SLICE_MS = 50 };

struct tn_source {
    const tn_source_kind *kind;
    void *state;
    const char *path;
    tn_source *under; /* owned; NULL: this is the bottom */
    uint64_t taken;
    char ahead[TN_PEEK_MAX]; /* peeked at, not yet taken */
    size_t ahead_from;
    size_t ahead_to;
    const atomic_bool *stop; /* NULL: nobody asks */
    tn_lane *lane;           /* NULL: not recorded */
};

#define TN_SOURCE(name) extern const tn_source_kind tn_source_##name;
#include "io/source/sources.def"
#undef TN_SOURCE

static const tn_source_kind *const all_sources[] = {
#define TN_SOURCE(name) &tn_source_##name,
#include "io/source/sources.def"
#undef TN_SOURCE
    NULL,
};

tn_status tn_source_find(const char *path, const tn_source_kind **out, tn_error *err)
{
    for (uint32_t i = 0; all_sources[i] != NULL; i++) {
        if (all_sources[i]->takes(path)) {
            *out = all_sources[i];
            return TN_OK;
        }
    }
    const char *colon = strstr(path, "://");
    return tn_fail(err, TN_E_DATA, "this build cannot read from %.*s://",
                   colon != NULL ? (int)(colon - path) : 0, path);
}

tn_status tn_source_open(tn_source **out, const char *path, uint64_t from, const atomic_bool *stop,
                         tn_error *err)
{
    *out = NULL;
    const tn_source_kind *kind = NULL;
    TN_TRY(tn_source_find(path, &kind, err));
    TN_ASSERT(kind != NULL);
    tn_source *s = tn_try_alloc(1, sizeof *s, "a source", err);
    if (s == NULL) {
        return TN_E_MEMORY;
    }
    s->kind = kind;
    s->path = path;
    s->taken = from;
    s->stop = stop;
    tn_status status = kind->open(&s->state, path, from, stop, err);
    if (status != TN_OK) {
        tn_free(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

tn_status tn_source_on(tn_source **out, const tn_source_kind *kind, void *state, tn_source *under,
                       tn_error *err)
{
    tn_source *s = tn_try_alloc(1, sizeof *s, "a source", err);
    if (s == NULL) {
        return TN_E_MEMORY;
    }
    s->kind = kind;
    s->state = state;
    s->path = under->path;
    s->stop = under->stop;
    s->under = under;
    *out = s;
    return TN_OK;
}

void tn_source_close(tn_source *source)
{
    while (source != NULL) {
        tn_source *under = source->under;
        source->kind->close(source->state);
        tn_free(source);
        source = under;
    }
}

void tn_source_trace(tn_source *source, tn_lane *lane)
{
    for (tn_source *s = source; s != NULL; s = s->under) {
        s->lane = lane;
    }
}

static tn_status read_some(tn_source *s, char *data, size_t size, size_t *n, tn_error *err)
{
    *n = 0;
    while (*n < size) {
        size_t got = 0;
        if (s->stop != NULL &&
            atomic_load(s->stop)) { /* a record may be looked for through terabytes */
            return tn_fail(err, TN_E_STOPPED, "stopped while reading '%s'", s->path);
        }
        TN_TRY(s->kind->read(s->state, data + *n, size - *n, &got, err));
        if (got == 0) {
            break;
        }
        *n += got;
        s->taken += got;
    }
    return TN_OK;
}

tn_status tn_source_read(tn_source *source, void *data, size_t size, size_t *n, tn_error *err)
{
    size_t have = source->ahead_to - source->ahead_from;
    have = have < size ? have : size;
    if (have > 0) {
        memcpy(data, source->ahead + source->ahead_from, have);
        source->ahead_from += have;
    }
    *n = have;
    if (have == size) {
        return TN_OK;
    }
    size_t more = 0;
    tn_span_begin(source->lane, source->under != NULL ? TN_PHASE_INFLATE : TN_PHASE_READ);
    tn_status status = read_some(source, (char *)data + have, size - have, &more, err);
    tn_span_end(source->lane);
    *n = status == TN_OK ? have + more : *n;
    return status;
}

tn_status tn_source_peek(tn_source *source, tn_bytes *out, tn_error *err)
{
    if (source->ahead_from > 0) {
        memmove(source->ahead, source->ahead + source->ahead_from,
                source->ahead_to - source->ahead_from);
        source->ahead_to -= source->ahead_from;
        source->ahead_from = 0;
    }
    size_t n = 0;
    TN_TRY(read_some(source, source->ahead + source->ahead_to, TN_PEEK_MAX - source->ahead_to, &n,
                     err));
    source->ahead_to += n;
    *out = (tn_bytes){source->ahead, source->ahead_to, false};
    return TN_OK;
}

uint64_t tn_source_taken(const tn_source *source)
{
    while (source->under != NULL) {
        source = source->under;
    }
    return source->taken;
}

const char *tn_source_path(const tn_source *source)
{
    return source->path;
}

tn_status tn_source_wait(int fd, const char *name, const atomic_bool *stop, tn_error *err)
{
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    for (;;) {
        if (stop != NULL && atomic_load(stop)) {
            return tn_fail(err, TN_E_STOPPED, "stopped while waiting for '%s'", name);
        }
        int ready = poll(&waited, 1, SLICE_MS);
        if (ready > 0) {
            return TN_OK;
        }
        if (ready < 0 && errno != EINTR) {
            return tn_fail(err, TN_E_IO, "cannot wait for '%s': %s", name, strerrordesc_np(errno));
        }
    }
}
