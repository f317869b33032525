/* bench_wire.c - a step's messages: nanoseconds per key to write and to read them.
 *
 *     bench_wire [--json] [REPEATS]     CPU time of one thread
 *     bench_wire --list | NAME          for .ci/check-instructions
 *
 * 9000 keys of one owner over 1024 partitions, 40 groups, rows of 9 floats. "sort": the order in
 * which keys travel. "write", "read": keys to bytes and back, the latter with the places of rows
 * and partitions. "gather", "scatter": rows to bytes and back. "seal", "open": the header of a
 * message, with the checksum over all of it.
 */
#include "counted.h"
#include "figure.h"
#include "machine.h"

#include "base/core/alloc.h"
#include "base/math/key.h"
#include "base/thread/threads.h"
#include "cluster/wire/key_codec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 9000, GROUPS = 40, DIM = 9, FLOATS = KEYS * DIM, REPEATS_MAX = 4000 };

/* A keyset as a localizer leaves it, and room for what is made of it. */
typedef struct sample {
    uint64_t key[KEYS];
    uint16_t group[KEYS];
    uint32_t at[KEYS], show[KEYS], click[KEYS], first[TN_PARTITIONS + 1], index[KEYS];
    tn_key_place scratch[2 * KEYS];
    float rows[FLOATS];
    char bytes[4 * FLOATS], packed[4 * FLOATS];
    char message[TN_FRAME_HEAD + 8 * FLOATS]; /* a SHARE of as many doubles */
    tn_keyset keys;
    tn_key_order order;
    tn_keyblock_shape shape;
    tn_keyblock block;
    tn_keyblock_rules rules;
    tn_values kind;
} sample;

static void must(bool right)
{
    if (!right) {
        (void)fputs("bench_wire: a message did not come back\n", stderr);
        _Exit(1);
    }
}

/* ---- what is measured ---- */

static void sort(void *job)
{
    sample *s = job;
    s->order = tn_keyblock_sort(&s->keys, 0, s->scratch, s->index);
}

static void write_keys(void *job)
{
    sample *s = job;
    s->shape = tn_keyblock_measure(&s->keys, s->order);
    tn_keyblock_write(&s->keys, s->order, &s->shape, s->bytes);
}

static void read_keys(void *job)
{
    sample *s = job;
    const uint32_t count[TN_FRAME_COUNTS] = {KEYS, FLOATS};
    must(tn_keyblock_read(&s->block, s->bytes, s->shape.bytes, count, &s->rules) == TN_DROP_NONE);
}

static void gather(void *job)
{
    sample *s = job;
    must(tn_values_gather(s->kind, &s->keys, s->order, s->rows, s->packed) == TN_VALUES_FINITE);
}

static void scatter(void *job)
{
    sample *s = job;
    must(tn_values_scatter(s->kind, s->packed, &s->keys, s->order, s->rows) == TN_VALUES_FINITE);
}

static tn_frame frame_of(void)
{
    return (tn_frame){.type = TN_FRAME_SHARE,
                      .sequence = 1,
                      .count = {0, 0, FLOATS},
                      .bytes = UINT64_C(8) * FLOATS};
}

static void seal(void *job)
{
    sample *s = job;
    tn_frame f = frame_of();
    tn_frame_seal(s->message, &f);
}

static void read_frame(void *job)
{
    const sample *s = job;
    const tn_frame_limits limits = {
        .peers = 1, .bytes_max = UINT64_MAX, .count_max = {KEYS, FLOATS, FLOATS}};
    tn_frame f;
    must(tn_frame_read(&f, s->message, sizeof s->message, &limits) == TN_DROP_NONE);
}

typedef struct task {
    const char *name;
    void (*work)(void *job);
    tn_values kind;
} task;

/* Each needs what those before it left. */
static const task tasks[] = {
    {"sort", sort, TN_VALUES_F32},
    {"write", write_keys, TN_VALUES_F32},
    {"read", read_keys, TN_VALUES_F32},
    {"gather_f32", gather, TN_VALUES_F32},
    {"scatter_f32", scatter, TN_VALUES_F32},
    {"gather_f16", gather, TN_VALUES_F16},
    {"scatter_f16", scatter, TN_VALUES_F16},
    {"gather_bf16", gather, TN_VALUES_BF16},
    {"scatter_bf16", scatter, TN_VALUES_BF16},
    {"seal, 72 bytes each", seal, TN_VALUES_F32},
    {"open, 72 bytes each", read_frame, TN_VALUES_F32},
};
enum { TASKS = sizeof tasks / sizeof tasks[0] };

/* Keys by partition, within one as they come. */
static sample *sample_new(void)
{
    static const uint32_t from[] = {0, TN_PARTITIONS};
    static const tn_owners owners = {1, TN_PARTITIONS, from};
    static const tn_record record = {.width = DIM};
    static const tn_share_group group[GROUPS];
    static const tn_layout layout = {GROUPS, group, 1, &record};
    sample *s = tn_alloc(1, sizeof *s, "messages");
    uint32_t place[TN_PARTITIONS + 1] = {0};
    for (uint32_t i = 0; i < KEYS; i++) {
        s->first[tn_partition_of(tn_mix(i), TN_PARTITIONS) + 1]++;
    }
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        s->first[p + 1] += s->first[p];
        place[p + 1] = s->first[p + 1];
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        uint64_t key = tn_mix(i);
        uint32_t at = place[tn_partition_of(key, TN_PARTITIONS)]++;
        s->key[at] = key;
        s->group[at] = (uint16_t)(i % GROUPS);
        s->show[at] = i % 16 == 0 ? 100 : 1; /* most keys stand once in a batch */
        s->click[at] = i % 16 == 0;
        s->at[i] = i * DIM;
    }
    for (uint32_t i = 0; i < FLOATS; i++) {
        s->rows[i] = (float)(tn_mix(i) >> 40) * 0x1p-24F;
    }
    s->keys = (tn_keyset){&owners,  &layout, KEYS,    FLOATS,   s->key,
                          s->group, s->at,   s->show, s->click, s->first};
    s->rules = (tn_keyblock_rules){&owners, &layout, 0};
    return s;
}

static void sample_free(sample *s)
{
    tn_keyblock_done(&s->block);
    tn_free(s);
}

static void prepare(sample *s, uint32_t last)
{
    for (uint32_t i = 0; i < last; i++) {
        s->kind = tasks[i].kind;
        tasks[i].work(s);
    }
    s->kind = tasks[last].kind;
    tasks[last].work(s); /* memory is touched, blocks are grown */
}

static void count_task(uint32_t which)
{
    sample *s = sample_new();
    prepare(s, which);
    tn_count(tasks[which].work, s);
    sample_free(s);
}

static void count_sort(void)
{
    count_task(0);
}

static void count_write(void)
{
    count_task(1);
}

static void count_read(void)
{
    count_task(2);
}

static void count_gather(void)
{
    count_task(3);
}

static void count_scatter(void)
{
    count_task(4);
}

static void count_gather_bf16(void)
{
    count_task(7);
}

static const tn_counted counted[] = {
    {"sort", count_sort},
    {"write", count_write},
    {"read", count_read},
    {"gather", count_gather},
    {"scatter", count_scatter},
    {"gather_bf16", count_gather_bf16},
    {NULL, NULL},
};

/* Turns change between tasks, so that a busy neighbour slows all of them. */
static void run_all(uint32_t repeats, bool json)
{
    static tn_samples ns[TASKS];
    sample *s = sample_new();
    prepare(s, TASKS - 1);
    for (uint32_t i = 0; i < repeats; i++) {
        for (uint32_t k = 0; k < TASKS; k++) {
            s->kind = tasks[k].kind;
            double start = tn_machine_thread_s();
            tasks[k].work(s);
            tn_sample(&ns[k], 1e9 * (tn_machine_thread_s() - start) / KEYS);
        }
    }
    for (uint32_t k = 0; k < TASKS; k++) {
        tn_figure_print(&(tn_figure){.row = "wire",
                                     .what = tasks[k].name,
                                     .unit = "ns per key",
                                     .is = tn_spread_of(&ns[k]),
                                     .target = (double)NAN,
                                     .at_most = true},
                        json);
    }
    double bytes = (double)s->shape.bytes / KEYS;
    tn_figure_print(&(tn_figure){.row = "wire",
                                 .what = "a key in a pull",
                                 .unit = "bytes",
                                 .is = tn_spread_one(bytes),
                                 .target = (double)NAN,
                                 .at_most = true},
                    json);
    sample_free(s);
}

int main(int argc, char **argv)
{
    enum { REPEATS = 500 };
    if (tn_counted_main(argc, argv, counted)) {
        return 0;
    }
    bool json = tn_json_wanted(&argc, argv);
    uint64_t repeats = argc > 1 ? strtoull(argv[1], NULL, 10) : REPEATS;
    tn_flush_denormals();
    tn_machine_print(json);
    run_all(repeats < 1 ? 1 : repeats > REPEATS_MAX ? REPEATS_MAX : (uint32_t)repeats, json);
    return 0;
}
