/* scoredkit.c - see scoredkit.h. */
#include "cluster/scoredkit.h"

#include "io/rows/rows.h"
#include "io/schema/schema.h"
#include "support/test.h"
#include "train/golden.h"
#include "train/step/model_plan.h"

enum { KEYS_MAX = 5, ID_SIZE = 16, FILES = 3 };

void scoredkit_open(scoredkit *k)
{
    static const char *const overrides[] = {"eval.slices=[user,hist]", NULL};
    k->arena = tn_arena_new(1 << 20);
    const tn_model_plan *plan = golden_plan(k->arena, "deepfm", overrides);
    k->run = plan->run;
    k->schema = plan->schema;
}

void scoredkit_close(scoredkit *k)
{
    tn_arena_free(k->arena);
}

static void draw_keys(const scoredkit *k, tn_batch *b, uint64_t stream)
{
    b->n_slots = k->schema->n_slots;
    b->slot = TN_NEW_ARRAY(k->arena, tn_slot, b->n_slots + 1);
    for (uint32_t s = 0; s < b->n_slots; s++) {
        tn_slot *slot = &b->slot[s];
        slot->offset = TN_NEW_ARRAY(k->arena, uint32_t, b->rows + 1);
        slot->key = TN_NEW_ARRAY(k->arena, uint64_t, (size_t)b->rows * KEYS_MAX + 1);
        for (uint32_t row = 0; row < b->rows; row++) {
            const uint64_t at = (uint64_t)s * b->rows + row;
            const uint32_t n = (uint32_t)tn_below(tn_draw(stream, 8 * at), KEYS_MAX + 1);
            const uint32_t first = slot->offset[row];
            slot->offset[row + 1] = first + n;
            for (uint32_t i = 0; i < n; i++) {
                slot->key[first + i] = tn_draw(stream, 8 * at + 1 + i);
            }
        }
    }
}

static void draw_ids(const scoredkit *k, tn_batch *b)
{
    b->id_offset = TN_NEW_ARRAY(k->arena, uint32_t, b->rows + 1);
    b->id_text = TN_NEW_ARRAY(k->arena, char, (size_t)b->rows *ID_SIZE + 1);
    for (uint32_t row = 0; row < b->rows; row++) {
        const uint32_t first = b->id_offset[row];
        const int size = row % 7 == 3 ? 0 : snprintf(b->id_text + first, ID_SIZE, "r%u", row);
        b->id_offset[row + 1] = first + (uint32_t)size;
    }
}

const tn_scores *scoredkit_draw_bare(const scoredkit *k, uint64_t seed, uint32_t n)
{
    print_message("seed %llu\n", (unsigned long long)seed);
    const uint64_t rows = tn_stream2(seed, TN_RNG_GENERATE, 0);
    tn_batch *b = TN_NEW(k->arena, tn_batch);
    float *logit = TN_NEW_ARRAY(k->arena, float, n);
    b->rows = n;
    b->label = TN_NEW_ARRAY(k->arena, float, n);
    b->source = TN_NEW_ARRAY(k->arena, uint32_t, n);
    b->source_at = TN_NEW_ARRAY(k->arena, uint64_t, n);
    for (uint32_t row = 0; row < n; row++) {
        logit[row] = (float)tn_normal(tn_draw(rows, 2 * (uint64_t)row));
        b->label[row] = (float)tn_unit(tn_draw(rows, 2 * (uint64_t)row + 1));
        b->source[row] = row * FILES / n;
        b->source_at[row] = (row > 0 && b->source[row] == b->source[row - 1])
                                ? b->source_at[row - 1] + 1 + row % 90
                                : 0;
    }
    draw_keys(k, b, tn_stream2(seed, TN_RNG_GENERATE, 1));
    tn_scores *s = TN_NEW(k->arena, tn_scores);
    *s = (tn_scores){.batch = b, .logit = logit};
    return s;
}

const tn_scores *scoredkit_draw(const scoredkit *k, uint64_t seed, uint32_t n)
{
    const tn_scores *bare = scoredkit_draw_bare(k, seed, n);
    tn_batch *b = TN_NEW(k->arena, tn_batch);
    *b = *bare->batch;
    b->weight = TN_NEW_ARRAY(k->arena, float, n);
    b->group = TN_NEW_ARRAY(k->arena, uint64_t, n);
    for (uint32_t row = 0; row < n; row++) {
        b->weight[row] = (float)(row % 4);
        b->group[row] = row % 5 == 0 ? TN_NO_GROUP : row % 11;
    }
    draw_ids(k, b);
    tn_scores *s = TN_NEW(k->arena, tn_scores);
    uint32_t *unknown = TN_NEW_ARRAY(k->arena, uint32_t, n);
    for (uint32_t row = 0; row < n; row++) {
        unknown[row] = row * 7 % 5;
    }
    *s = (tn_scores){.batch = b, .logit = bare->logit, .unknown = unknown};
    return s;
}

const tn_scores *scoredkit_part(const scoredkit *k, const tn_scores *of, uint32_t from, uint32_t n)
{
    const bool ids = of->batch->id_offset != NULL;
    const tn_scored_form form = tn_scored_form_of(k->run, k->schema, ids, k->arena);
    tn_scored_view *view = TN_NEW(k->arena, tn_scored_view);
    tn_slot *slot = TN_NEW_ARRAY(k->arena, tn_slot, k->schema->n_slots + 1);
    tn_scored_view_of(&form, of, from, n, slot, view);
    return &view->scores;
}

static uint32_t id_size(const tn_batch *b, uint32_t row)
{
    return b->id_offset != NULL ? b->id_offset[row + 1] - b->id_offset[row] : 0;
}

void scoredkit_same(const tn_scored_form *form, const tn_scores *a, uint32_t i, const tn_scores *b,
                    uint32_t j)
{
    const tn_batch *x = a->batch;
    const tn_batch *y = b->batch;
    assert_memory_equal(&a->logit[i], &b->logit[j], sizeof(float));
    assert_int_equal(a->unknown != NULL ? a->unknown[i] : 0,
                     b->unknown != NULL ? b->unknown[j] : 0);
    assert_memory_equal(&x->label[i], &y->label[j], sizeof(float));
    assert_int_equal(x->source[i], y->source[j]);
    assert_int_equal(x->source_at[i], y->source_at[j]);
    const float w_x = x->weight != NULL ? x->weight[i] : 1;
    const float w_y = y->weight != NULL ? y->weight[j] : 1;
    assert_memory_equal(&w_x, &w_y, sizeof w_x);
    assert_int_equal(x->group != NULL ? x->group[i] : TN_NO_GROUP,
                     y->group != NULL ? y->group[j] : TN_NO_GROUP);
    assert_true(!form->ids || id_size(x, i) == id_size(y, j));
    if (form->ids && id_size(x, i) > 0) {
        assert_memory_equal(x->id_text + (x->id_offset != NULL ? x->id_offset[i] : 0),
                            y->id_text + (y->id_offset != NULL ? y->id_offset[j] : 0),
                            id_size(x, i));
    }
    for (uint32_t s = 0; s < form->schema->n_slots; s++) {
        const tn_slot *p = &x->slot[s];
        const tn_slot *q = &y->slot[s];
        if (form->slot[s]) {
            const uint32_t n = p->offset[i + 1] - p->offset[i];
            assert_int_equal(n, q->offset[j + 1] - q->offset[j]);
            assert_memory_equal(p->key + p->offset[i], q->key + q->offset[j], n * sizeof *p->key);
        }
    }
}
