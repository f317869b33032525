/* naive.c - see naive.h. */
#include "naive.h"

#include <stddef.h>

naive_row *naive_find(naive *t, uint64_t key)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->row[i].key == key) {
            return &t->row[i];
        }
    }
    return NULL;
}

naive_row *naive_add(naive *t, uint64_t key)
{
    naive_row *row = &t->row[t->n++];
    *row = (naive_row){.key = key};
    return row;
}

static void update(const naive *t, naive_row *row, const float *grad, double clip)
{
    for (uint32_t i = 0; i < NAIVE_DIM; i++) {
        double g = (grad != NULL ? (double)grad[i] : 0) + t->l2 * row->w[i];
        row->m[i] = t->mu * row->m[i] + clip * g;
        row->w[i] -= t->lr * row->m[i];
    }
}

bool naive_push(naive *t, uint64_t key, const float *grad, double clip)
{
    naive_row *row = naive_find(t, key);
    if (row == NULL) {
        return false;
    }
    update(t, row, grad, clip);
    row->stamp = t->stamp;
    return true;
}

double naive_norm2(naive *t, uint64_t key, const float *grad)
{
    naive_row *row = naive_find(t, key);
    double sum = 0;
    for (uint32_t i = 0; i < NAIVE_DIM; i++) {
        double g = (double)grad[i] + (row != NULL ? t->l2 * row->w[i] : 0);
        sum += g * g;
    }
    if (row != NULL) {
        row->stamp = t->stamp;
    }
    return sum;
}

double naive_rest_norm2(const naive *t)
{
    double sum = 0;
    for (uint32_t r = 0; t->dense && r < t->n; r++) {
        for (uint32_t i = 0; i < NAIVE_DIM && t->row[r].stamp != t->stamp; i++) {
            sum += t->l2 * t->row[r].w[i] * t->l2 * t->row[r].w[i];
        }
    }
    return sum;
}

void naive_sweep(naive *t, double clip)
{
    for (uint32_t r = 0; t->dense && r < t->n; r++) {
        if (t->row[r].stamp != t->stamp) {
            update(t, &t->row[r], NULL, clip);
        }
    }
}
