/* hostlist.c - Slurm's lists of hosts and of counts are expanded.
 *
 * A host is a chain of literal pieces and bracketed sets; it is expanded from the left, the prefix
 * in a buffer that every piece extends. Brackets do not nest, so the depth is the number of sets.
 */
#include "cluster/launch/hostlist.h"

#include "base/core/number.h"

#include <stdio.h>
#include <string.h>

enum { HOST_MAX = 255, SETS_MAX = 8, DIGITS_MAX = 9 };

typedef struct listing {
    const char *text; /* all of it, for messages */
    tn_arena *arena;
    const char **host; /* room for `capacity` */
    uint32_t n, capacity;
    uint32_t sets; /* brackets open around the piece that is being expanded */
    char name[HOST_MAX + 1];
    tn_error *err;
} listing;

static tn_status unreadable(const listing *l)
{
    return tn_fail(l->err, TN_E_CONFIG, "cannot read the list of hosts '%.300s'", l->text);
}

static tn_status add_host(listing *l, size_t size)
{
    if (size == 0) {
        return unreadable(l);
    }
    if (l->n == TN_HOSTS_MAX) {
        return tn_fail(l->err, TN_E_CONFIG, "more than %d hosts in '%.300s'", TN_HOSTS_MAX,
                       l->text);
    }
    if (l->n == l->capacity) {
        uint32_t grown = l->capacity == 0 ? 16 : 2 * l->capacity;
        const char **host = TN_NEW_ARRAY(l->arena, const char *, grown);
        if (l->n > 0) {
            memcpy(host, l->host, l->n * sizeof *host);
        }
        l->host = host;
        l->capacity = grown;
    }
    char *copy = tn_arena_alloc(l->arena, size + 1, 1, 1);
    memcpy(copy, l->name, size);
    l->host[l->n++] = copy;
    return TN_OK;
}

static tn_status expand(listing *l, size_t size, const char *at, const char *end);

/* "01-03" or "7" of a set that is followed by what is at `rest`. */
static tn_status expand_range(listing *l, size_t size, const char *at, const char *to,
                              const char *rest, const char *end)
{
    const char *dash = memchr(at, '-', (size_t)(to - at));
    size_t width = (size_t)((dash != NULL ? dash : to) - at);
    const char *second = dash != NULL ? dash + 1 : at;
    uint64_t first = 0;
    uint64_t last = 0;
    if (width > DIGITS_MAX || to - second > DIGITS_MAX ||
        tn_read_u64(at, width, &first) != TN_NUM_OK ||
        tn_read_u64(second, (size_t)(to - second), &last) != TN_NUM_OK || last < first) {
        return unreadable(l);
    }
    for (uint64_t i = first; i <= last; i++) {
        int digits =
            snprintf(l->name + size, sizeof l->name - size, "%0*u", (int)width, (unsigned)i);
        if (digits < 0 || (size_t)digits >= sizeof l->name - size) {
            return unreadable(l);
        }
        TN_TRY(expand(l, size + (size_t)digits, rest, end));
    }
    return TN_OK;
}

/* The set behind '[' at `at`; then what follows its ']'. */
static tn_status expand_set(listing *l, size_t size, const char *at, const char *end)
{
    const char *close = memchr(at, ']', (size_t)(end - at));
    if (close == NULL || l->sets == SETS_MAX) {
        return unreadable(l);
    }
    l->sets++;
    while (at <= close) {
        const char *comma = memchr(at, ',', (size_t)(close - at));
        const char *to = comma != NULL ? comma : close;
        TN_TRY(expand_range(l, size, at, to, close + 1, end));
        at = to + 1;
    }
    l->sets--;
    return TN_OK;
}

/* The names that begin with l->name[0 .. size) and go on as at..end says. */
static tn_status expand(listing *l, size_t size, const char *at, const char *end)
{
    TN_ASSERT(size <= HOST_MAX && at <= end);
    const char *open = memchr(at, '[', (size_t)(end - at));
    size_t literal = (size_t)((open != NULL ? open : end) - at);
    if (literal > HOST_MAX - size || memchr(at, ']', literal) != NULL) {
        return unreadable(l);
    }
    memcpy(l->name + size, at, literal);
    size += literal;
    return open != NULL ? expand_set(l, size, open + 1, end) : add_host(l, size);
}

/* The end of the item at `at`: a comma outside of brackets, or the end of the text. */
static const char *item_end(const char *at)
{
    bool inside = false;
    for (; *at != '\0' && (inside || *at != ','); at++) {
        inside = *at == '[' || (inside && *at != ']');
    }
    return at;
}

tn_status tn_hostlist_read(const char *text, tn_arena *arena, const char *const **out, uint32_t *n,
                           tn_error *err)
{
    listing l = {.text = text, .arena = arena, .err = err};
    for (const char *at = text;; at++) {
        const char *end = item_end(at);
        TN_TRY(expand(&l, 0, at, end));
        at = end;
        if (*at == '\0') {
            break;
        }
    }
    TN_ASSERT(l.sets == 0 && l.n > 0);
    *out = l.host;
    *n = l.n;
    return TN_OK;
}

/* One item of counts, "2" or "2(x3)", from at to end: how often it stands; 0: it cannot be read. */
static uint64_t read_count(const char *at, const char *end, uint32_t *count)
{
    const char *open = memchr(at, '(', (size_t)(end - at));
    uint64_t value = 0;
    uint64_t times = 1;
    if (open != NULL &&
        (end - open < 4 || open[1] != 'x' || end[-1] != ')' ||
         tn_read_u64(open + 2, (size_t)(end - 1 - (open + 2)), &times) != TN_NUM_OK)) {
        return 0;
    }
    const char *digits = open != NULL ? open : end;
    if (tn_read_u64(at, (size_t)(digits - at), &value) != TN_NUM_OK || value == 0 ||
        value > TN_HOSTS_MAX) {
        return 0;
    }
    *count = (uint32_t)value;
    return times;
}

tn_status tn_counts_read(const char *text, tn_arena *arena, const uint32_t **out, uint32_t *n,
                         tn_error *err)
{
    uint32_t total = 0;
    uint32_t *counts = NULL;
    for (int pass = 0; pass < 2; pass++) { /* measure, then place */
        counts = pass == 1 ? TN_NEW_ARRAY(arena, uint32_t, total) : NULL;
        total = 0;
        for (const char *at = text;; at++) {
            const char *end = at + strcspn(at, ",");
            uint32_t count = 0;
            uint64_t times = read_count(at, end, &count);
            if (times == 0 || times > TN_HOSTS_MAX - total) {
                return tn_fail(err, TN_E_CONFIG, "cannot read the counts '%.300s'", text);
            }
            for (uint64_t i = 0; counts != NULL && i < times; i++) {
                counts[total + i] = count;
            }
            total += (uint32_t)times;
            at = end;
            if (*at == '\0') {
                break;
            }
        }
    }
    TN_ASSERT(counts != NULL && total > 0);
    *out = counts;
    *n = total;
    return TN_OK;
}
