/* test_batch_gather.c - rows are copied as they are, but for the one slot that is dealt. */
#include "io/rows/batch.h"
#include "io/rows/batch_gather.h"
#include "setup.h"
#include "support/test.h"

CLOSER(tn_batch_gather_free);

enum { ROWS = 5 };

static const char config[] =
    "{data: {format: csv, label: y}, slots: [{name: a, type: id, list: ' '}, "
    "{name: x, type: float, as: value}, {name: b, type: id}]}";

/* Slot a has 2, 0, 1, 3, 1 keys and values of its own, b one of each row; x is row + .5. */
typedef struct subject {
    setup s;
    tn_batch batch;
    tn_slot slot[2];
    tn_batch_gather *gather;
} subject;

static uint32_t a_offset[ROWS + 1] = {0, 2, 2, 3, 6, 7};
static uint64_t a_key[7] = {10, 11, 30, 40, 41, 42, 50};
static float a_value[7] = {1, 2, 3, 4, 5, 6, 7};
static uint32_t b_offset[ROWS + 1] = {0, 1, 2, 3, 4, 5};
static uint64_t b_key[ROWS] = {100, 101, 102, 103, 104};
static float numbers[ROWS] = {.5F, 1.5F, 2.5F, 3.5F, 4.5F};
static float label[ROWS] = {0, 1, 0, 1, 0};
static uint64_t group[ROWS] = {7, 7, 8, 8, 9};

static void subject_open(subject *t, const char *slots)
{
    *t = (subject){.batch = {.rows = ROWS,
                             .n_slots = 2,
                             .n_numeric = 1,
                             .n_keys = 12,
                             .label = label,
                             .numeric = numbers,
                             .group = group}};
    t->slot[0] = (tn_slot){.offset = a_offset, .key = a_key, .value = a_value};
    t->slot[1] = (tn_slot){.offset = b_offset, .key = b_key};
    t->batch.slot = t->slot;
    setup_open(&t->s, slots);
    assert_ok(tn_batch_gather_new(&t->gather, t->s.schema, &t->s.err), t->s.err.text);
}

static void subject_close(subject *t)
{
    tn_batch_gather_free(t->gather);
    setup_close(&t->s);
}

static tn_batch *gather(subject *t, tn_gathered what)
{
    tn_batch *out = NULL;
    assert_ok(tn_batch_gather_rows(t->gather, &t->batch, &what, &out, &t->s.err), t->s.err.text);
    assert_int_equal(out->rows, what.n);
    assert_ptr_equal(out->label, label + what.first);
    assert_ptr_equal(out->group, group + what.first);
    assert_null(out->weight);
    assert_null(out->source);
    return out;
}

TEST(rows_without_a_deal_are_as_they_were)
{
    OPEN(subject, t, config);
    const tn_batch *out = gather(&t, (tn_gathered){.first = 2, .n = 3, .spec = TN_NOWHERE});
    assert_memory_equal(out->slot[0].offset, ((uint32_t[]){0, 1, 4, 5}), 4 * sizeof(uint32_t));
    assert_memory_equal(out->slot[0].key, a_key + 2, 5 * sizeof(uint64_t));
    assert_memory_equal(out->slot[0].value, a_value + 2, 5 * sizeof(float));
    assert_memory_equal(out->slot[1].key, b_key + 2, 3 * sizeof(uint64_t));
    assert_null(out->slot[1].value);
    assert_memory_equal(out->numeric, numbers + 2, 3 * sizeof(float));
    assert_int_equal(out->n_keys, 8);
}

TEST(a_slot_is_dealt_with_all_its_values_and_nothing_else_is)
{
    OPEN(subject, t, config);
    static const uint32_t deal[ROWS] = {3, 0, 4, 1, 2};
    const tn_batch *out =
        gather(&t, (tn_gathered){.first = 1, .n = 3, .spec = 0, .deal = deal}); /* rows 0, 4, 1 */
    assert_memory_equal(out->slot[0].offset, ((uint32_t[]){0, 2, 3, 3}), 4 * sizeof(uint32_t));
    assert_memory_equal(out->slot[0].key, ((uint64_t[]){10, 11, 50}), 3 * sizeof(uint64_t));
    assert_memory_equal(out->slot[0].value, ((float[]){1, 2, 7}), 3 * sizeof(float));
    assert_memory_equal(out->slot[1].key, b_key + 1, 3 * sizeof(uint64_t));
    assert_memory_equal(out->numeric, numbers + 1, 3 * sizeof(float));

    out = gather(&t, (tn_gathered){.first = 0, .n = 5, .spec = 2, .deal = deal});
    assert_memory_equal(out->slot[1].key, ((uint64_t[]){103, 100, 104, 101, 102}),
                        5 * sizeof(uint64_t));
    assert_memory_equal(out->slot[0].key, a_key, sizeof a_key);
    assert_int_equal(out->n_keys, 12);

    out = gather(&t, (tn_gathered){.first = 0, .n = 5, .spec = 1, .deal = deal});
    assert_memory_equal(out->numeric, ((float[]){3.5F, .5F, 4.5F, 1.5F, 2.5F}), 5 * sizeof(float));
    assert_memory_equal(out->slot[1].key, b_key, sizeof b_key);
}

TEST(slots_of_a_sequence_are_dealt_together)
{
    OPEN(subject, t,
         "{data: {format: csv, label: y}, slots: [{name: a, list: ' ', sequence: s}, {name: x, "
         "type: float, as: value}, {name: b, list: ' ', sequence: s}]}");
    static const uint32_t deal[ROWS] = {3, 0, 4, 1, 2};
    for (uint32_t spec = 0; spec <= 2; spec += 2) {
        const tn_batch *out =
            gather(&t, (tn_gathered){.first = 1, .n = 3, .spec = spec, .deal = deal});
        assert_memory_equal(out->slot[0].key, ((uint64_t[]){10, 11, 50}), 3 * sizeof(uint64_t));
        assert_memory_equal(out->slot[1].key, ((uint64_t[]){100, 104, 101}), 3 * sizeof(uint64_t));
        assert_memory_equal(out->numeric, numbers + 1, 3 * sizeof(float));
    }
}

TEST(without_memory_rows_are_not_gathered)
{
    OPEN(subject, t, config);
    const tn_gathered what = {.first = 0, .n = ROWS, .spec = TN_NOWHERE};
    tn_batch *out = NULL;
    for (uint64_t nth = 1; nth <= 6; nth++) { /* offsets, keys and values of a, of b, numbers */
        tn_batch_gather *fresh FREED(tn_batch_gather_free) = NULL;
        assert_ok(tn_batch_gather_new(&fresh, t.s.schema, &t.s.err), t.s.err.text);
        tn_alloc_fail_at(nth);
        assert_int_equal(tn_batch_gather_rows(fresh, &t.batch, &what, &out, &t.s.err), TN_E_MEMORY);
        assert_null(out);
        tn_alloc_fail_at(0);
        assert_ok(tn_batch_gather_rows(fresh, &t.batch, &what, &out, &t.s.err), t.s.err.text);
        assert_memory_equal(out->slot[1].key, b_key, sizeof b_key);
    }
}
