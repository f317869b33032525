/* line_numbers.c - which line of a file a byte stands in. */
#include "io/read/line_numbers.h"

#include "base/core/alloc.h"

#include <pthread.h>
#include <string.h>

enum { PIECE_BYTES = 1 << 18 };

#define UNKNOWN UINT64_MAX

/* A byte of a file, and how many lines end before it. */
typedef struct mark {
    uint64_t at;
    uint64_t lines; /* UNKNOWN: not counted yet */
} mark;

struct tn_line_numbers {
    pthread_mutex_t lock;
    /* guarded by `lock`; n_parts, NULL before the first question: */
    mark *begin;    /* where the part begins */
    mark *furthest; /* asked for in the part */
    char *piece;
};

tn_line_numbers *tn_line_numbers_new(tn_error *err)
{
    tn_line_numbers *lines = tn_try_alloc(1, sizeof *lines, "counts of lines", err);
    if (lines != NULL) {
        (void)pthread_mutex_init(&lines->lock, NULL);
    }
    return lines;
}

void tn_line_numbers_free(tn_line_numbers *lines)
{
    if (lines != NULL) {
        (void)pthread_mutex_destroy(&lines->lock);
        tn_free(lines->begin);
        tn_free(lines->furthest);
        tn_free(lines->piece);
        tn_free(lines);
    }
}

uint64_t tn_line_numbers_count(const char *data, size_t size)
{
    uint64_t n = 0;
    const char *end = data + size;
    for (const char *p = data; p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++) {
        n++;
    }
    return n;
}

/* Room for what will be known; false: no memory. */
static bool make_room(tn_line_numbers *l, const tn_fileset *files)
{
    uint32_t n = files->n_parts;
    if (l->piece != NULL) {
        return true;
    }
    mark *begin = tn_try_alloc(n, sizeof *begin, "counts of lines", NULL);
    mark *furthest = tn_try_alloc(n, sizeof *furthest, "counts of lines", NULL);
    char *piece = tn_try_alloc(1, PIECE_BYTES, "counts of lines", NULL);
    if (begin == NULL || furthest == NULL || piece == NULL) {
        tn_free(begin);
        tn_free(furthest);
        tn_free(piece);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t first = files->part[i].first;
        begin[i] = (mark){first, first == 0 ? 0 : UNKNOWN};
        furthest[i] = (mark){first, UNKNOWN};
    }
    l->begin = begin;
    l->furthest = furthest;
    l->piece = piece;
    return true;
}

/* The last part of `file` that begins at or before a byte. */
static uint32_t part_of(const tn_fileset *files, uint32_t file, uint64_t offset)
{
    uint32_t from = 0;
    uint32_t n = files->n_parts;
    while (n > 1) {
        uint32_t half = n / 2;
        const tn_part_info *p = &files->part[from + half];
        bool before = p->source < file || (p->source == file && p->first <= offset);
        from = before ? from + half : from;
        n = before ? n - half : half;
    }
    TN_ASSERT(files->part[from].source == file);
    return from;
}

/* The nearest place at or before a byte of part `p` whose line is known. */
static mark nearest(const tn_line_numbers *l, uint32_t p, uint64_t offset)
{
    for (;; p--) {
        if (l->furthest[p].lines != UNKNOWN && l->furthest[p].at <= offset) {
            return l->furthest[p];
        }
        if (l->begin[p].lines != UNKNOWN) { /* that of the first part of a file is */
            return l->begin[p];
        }
    }
}

/* Counts on to byte `to`; false: it cannot be read. */
static bool count_to(tn_source *source, char *piece, mark *m, uint64_t to)
{
    while (m->at < to) {
        size_t n = 0;
        uint64_t left = to - m->at;
        size_t size = left < PIECE_BYTES ? (size_t)left : (size_t)PIECE_BYTES;
        if (tn_source_read(source, piece, size, &n, NULL) != TN_OK || n < size) {
            return false;
        }
        m->lines += tn_line_numbers_count(piece, n);
        m->at += n;
    }
    return true;
}

static bool count(tn_line_numbers *l, const tn_fileset *files, uint32_t file, mark *m)
{
    uint64_t offset = m->at;
    uint32_t last = part_of(files, file, offset);
    tn_source *source = NULL;
    *m = nearest(l, last, offset);
    if (tn_fileset_open(files, file, m->at, NULL, &source, NULL) != TN_OK) {
        return false;
    }
    bool good = true;
    for (uint32_t p = part_of(files, file, m->at) + 1; good && p <= last; p++) {
        good = count_to(source, l->piece, m, files->part[p].first);
        l->begin[p].lines = good ? m->lines : UNKNOWN;
    }
    good = good && count_to(source, l->piece, m, offset);
    if (good && (l->furthest[last].lines == UNKNOWN || l->furthest[last].at < offset)) {
        l->furthest[last] = *m;
    }
    tn_source_close(source);
    return good;
}

bool tn_line_numbers_before(const tn_fileset *files, uint32_t file, uint64_t offset, uint64_t *out)
{
    tn_line_numbers *l = files->lines;
    mark m = {offset, 0};
    (void)pthread_mutex_lock(&l->lock);
    bool good = make_room(l, files) && count(l, files, file, &m);
    (void)pthread_mutex_unlock(&l->lock);
    if (good) {
        *out = m.lines;
    }
    return good;
}
