/* zipf.c - the tables of Walker's alias method, and drawing from them. */
#include "extra/synth/zipf.h"

#include "base/core/alloc.h"
#include "base/math/fmath.h"
#include "base/math/rng.h"

#include <math.h>

enum { HEAD = 4096, STEPS_PER_E = 64 };

typedef struct cell {
    uint64_t keep; /* a word below it stays in this cell, the others go to `other` */
    uint32_t other;
} cell;

typedef struct span {
    uint64_t first; /* ids first .. first + size - 1 */
    uint64_t size;
} span;

struct tn_zipf {
    uint64_t n;
    uint32_t n_cells;
    span *span; /* ids of cell i, below HEAD the id i alone; owned, with the cells */
    cell *cell; /* small, since every draw reads it */
};

/* The width of the cell that begins at `id`. */
static uint64_t cell_size(uint64_t id, uint64_t n)
{
    uint64_t size = id < HEAD ? 1 : id / STEPS_PER_E;
    return size < n - id ? size : n - id;
}

/* Returns the sum of r^-s over the ranks of a cell; after the head its integral between half ranks.
 */
static double cell_mass(uint64_t first, uint64_t size, double s)
{
    if (size == 1) {
        return tn_exp(-s * tn_ln((double)(first + 1)));
    }
    double from = tn_ln((double)first + 0.5);
    double to = tn_ln((double)(first + size) + 0.5);
    if (fabs(s - 1) < 1e-9) {
        return to - from;
    }
    return (tn_exp((1 - s) * to) - tn_exp((1 - s) * from)) / (1 - s);
}

/* *mass: of each cell, together 1. */
static void fill_cells(tn_zipf *z, double s, double *mass)
{
    double sum = 0;
    uint32_t i = 0;
    for (uint64_t id = 0; id < z->n; id += z->span[i].size, i++) {
        uint64_t size = cell_size(id, z->n);
        z->span[i] = (span){id, size};
        z->cell[i].other = i;
        mass[i] = cell_mass(id, size, s);
        sum += mass[i];
    }
    TN_ASSERT(i == z->n_cells);
    for (i = 0; i < z->n_cells; i++) {
        mass[i] /= sum;
    }
}

/* Vose 1991: every cell with less than the mean is topped up by one that has more. `left`, at first
 * the mass, is what remains to be given away, `stack` holds the small cells in front, the large at
 * the end. */
static void pair_cells(tn_zipf *z, double *left, uint32_t *stack)
{
    uint32_t n = z->n_cells;
    uint32_t small = 0;
    uint32_t large = n;
    for (uint32_t i = 0; i < n; i++) {
        left[i] *= n;
        if (left[i] < 1) {
            stack[small++] = i;
        } else {
            stack[--large] = i;
        }
    }
    while (small > 0 && large < n) {
        uint32_t poor = stack[--small];
        uint32_t rich = stack[large];
        z->cell[poor].keep = (uint64_t)(left[poor] * 0x1p64); /* below 1 */
        z->cell[poor].other = rich;
        left[rich] -= 1 - left[poor];
        if (left[rich] < 1) {
            large++;
            stack[small++] = rich;
        }
    }
    while (small > 0) { /* only rounding leaves any */
        z->cell[stack[--small]].keep = UINT64_MAX;
    }
    while (large < n) {
        z->cell[stack[large++]].keep = UINT64_MAX;
    }
}

static uint32_t count_cells(uint64_t n)
{
    uint32_t cells = 0;
    for (uint64_t id = 0; id < n; id += cell_size(id, n)) {
        cells++;
    }
    return cells;
}

tn_status tn_zipf_new(tn_zipf **out, uint64_t n, double s, tn_error *err)
{
    TN_ASSERT(n >= 1 && n <= UINT64_C(1) << 32 && s >= 0 && s <= 8);
    *out = NULL;
    tn_zipf *z = tn_alloc(1, sizeof *z, "a popularity law");
    z->n = n;
    z->n_cells = count_cells(n);
    z->span = tn_try_alloc(z->n_cells, sizeof *z->span + sizeof *z->cell, "a popularity law", err);
    double *left =
        tn_try_alloc(z->n_cells, sizeof *left + sizeof(uint32_t), "a popularity law", err);
    if (z->span == NULL || left == NULL) {
        tn_free(left);
        tn_zipf_free(z);
        return TN_E_MEMORY;
    }
    z->cell = (cell *)(void *)(z->span + z->n_cells);
    fill_cells(z, s, left);
    pair_cells(z, left, (uint32_t *)(void *)(left + z->n_cells));
    tn_free(left);
    *out = z;
    return TN_OK;
}

void tn_zipf_free(tn_zipf *z)
{
    if (z != NULL) {
        tn_free(z->span);
        tn_free(z);
    }
}

uint64_t tn_zipf_id(const tn_zipf *z, uint64_t x, uint64_t y)
{
    uint64_t i = tn_below(x, z->n_cells);
    uint64_t rest = x * z->n_cells; /* the low half of the product: uniform within the cell */
    if (rest >= z->cell[i].keep) {
        i = z->cell[i].other;
    }
    if (i < HEAD) {
        return i;
    }
    const span *s = &z->span[i];
    return s->size == 1 ? s->first : s->first + tn_below(y, s->size);
}
