/* key_codec.c - keys in ascending order, and as bytes.
 *
 * A partition of a batch holds some tens of keys, which are sorted by insertion. Where there are
 * more, sorted runs are merged, so that sorting takes n log n steps whatever the keys are.
 */
#include "cluster/wire/key_codec.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/core/error.h"

enum { FIRST_CAPACITY = 1024 };

/* Memory of a decoded block: arrays for `capacity` keys in one piece. */
struct tn_key_room {
    uint64_t *key;   /* capacity */
    uint32_t *at;    /* capacity + 1 */
    uint32_t *show;  /* capacity */
    uint32_t *click; /* capacity */
    uint16_t *group; /* capacity */
    uint32_t *first; /* n_partitions + 1 */
    uint32_t capacity, n_partitions;
};

static const uint8_t width_min[TN_KEY_ARRAYS] = {1, 0, 0, 0};
static const uint8_t width_max[TN_KEY_ARRAYS] = {8, 2, 4, 4};

/* ---- writing ---- */

/* Bytes that hold `most`. */
static uint8_t width_of(uint64_t most)
{
    return most == 0 ? 0 : (uint8_t)((71 - (uint32_t)__builtin_clzll(most)) / 8);
}

/* Returns the difference between the i-th key and the one before. */
static inline uint64_t delta_of(const tn_keyset *keys, const uint32_t *index, uint32_t i)
{
    return keys->key[index[i]] - keys->key[index[i - 1]] - 1;
}

static uint64_t bytes_of(const uint8_t *width, uint32_t n)
{
    uint64_t bytes = TN_KEYBLOCK_HEAD + (uint64_t)width[TN_KEY_DELTAS] * (n > 0 ? n - 1 : 0);
    for (uint32_t a = TN_KEY_GROUPS; a < TN_KEY_ARRAYS; a++) {
        bytes += (uint64_t)width[a] * n;
    }
    return bytes;
}

/* Computes one width per array: that of its largest value. */
tn_keyblock_shape tn_keyblock_measure(const tn_keyset *keys, tn_key_order order)
{
    uint64_t delta = 0;
    uint32_t group = 0;
    uint32_t show = 0;
    uint32_t click = 0;
    uint32_t floats = 0;
    for (uint32_t i = 0; i < order.n; i++) {
        uint32_t k = order.index[i];
        TN_ASSERT(keys->show[k] > 0);
        delta |= i > 0 ? delta_of(keys, order.index, i) : 0;
        group |= keys->group[k];
        show |= keys->show[k] - 1;
        click |= keys->click[k];
        floats += tn_row_width(keys, k);
    }
    tn_keyblock_shape shape = {
        .floats = floats,
        .width = {delta > 0 ? width_of(delta) : 1, width_of(group), width_of(show),
                  width_of(click)},
    };
    shape.bytes = bytes_of(shape.width, order.n);
    return shape;
}

/* Writes the lowest bytes of `item`; those above go where the next ones are put, unless that is
 * beyond the end. */
static inline char *put(char *at, const char *end, uint64_t item, size_t width)
{
    if (end - at >= (ptrdiff_t)sizeof item) {
        tn_store_u64(at, item);
    } else {
        memcpy(at, &item, width);
    }
    return at + width;
}

void tn_keyblock_write(const tn_keyset *keys, tn_key_order order, const tn_keyblock_shape *shape,
                       char *to)
{
    const uint8_t *width = shape->width;
    const char *end = to + shape->bytes;
    memcpy(to, width, TN_KEY_ARRAYS);
    tn_store_u32(to + 4, 0);
    tn_store_u64(to + 8, order.n > 0 ? keys->key[order.index[0]] : 0);
    char *at = to + TN_KEYBLOCK_HEAD;
    for (uint32_t i = 1; i < order.n; i++) {
        at = put(at, end, delta_of(keys, order.index, i), width[TN_KEY_DELTAS]);
    }
    for (uint32_t i = 0; i < order.n && width[TN_KEY_GROUPS] > 0; i++) {
        at = put(at, end, keys->group[order.index[i]], width[TN_KEY_GROUPS]);
    }
    for (uint32_t i = 0; i < order.n && width[TN_KEY_SHOWS] > 0; i++) {
        at = put(at, end, keys->show[order.index[i]] - 1, width[TN_KEY_SHOWS]);
    }
    for (uint32_t i = 0; i < order.n && width[TN_KEY_CLICKS] > 0; i++) {
        at = put(at, end, keys->click[order.index[i]], width[TN_KEY_CLICKS]);
    }
    TN_ASSERT(at == end);
}

/* ---- reading ---- */

/* One array of a block, read from the front. */
typedef struct cursor {
    const char *at, *end; /* end: of the whole block */
    uint64_t mask;
    size_t width;
} cursor;

static inline uint64_t take(cursor *c)
{
    uint64_t item = 0;
    if (c->end - c->at >= (ptrdiff_t)sizeof item) {
        item = tn_load_u64(c->at) & c->mask;
    } else {
        memcpy(&item, c->at, c->width);
    }
    c->at += c->width;
    return item;
}

static cursor cursor_at(const char *at, const char *end, size_t width)
{
    uint64_t mask = width == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * width) - 1;
    return (cursor){at, end, mask, width};
}

static bool grow(tn_keyblock *block, uint32_t n, uint32_t n_partitions)
{
    struct tn_key_room *room = block->room;
    if (room != NULL && n <= room->capacity && n_partitions == room->n_partitions) {
        return true;
    }
    size_t capacity = n < FIRST_CAPACITY ? FIRST_CAPACITY : (size_t)n + n / 4;
    capacity = capacity < UINT32_MAX ? capacity : UINT32_MAX;
    const size_t each = sizeof *room->key + 3 * sizeof *room->at + sizeof *room->group;
    size_t bytes =
        sizeof *room + capacity * each + ((size_t)n_partitions + 1) * sizeof *room->first;
    room = tn_try_alloc(bytes, 1, "keys of a peer", NULL);
    if (room == NULL) {
        return false;
    }
    room->key = (uint64_t *)(void *)(room + 1);
    room->at = (uint32_t *)(void *)(room->key + capacity);
    room->show = room->at + capacity;
    room->click = room->show + capacity;
    room->first = room->click + capacity;
    room->group = (uint16_t *)(void *)(room->first + n_partitions + 1);
    room->capacity = (uint32_t)capacity;
    room->n_partitions = n_partitions;
    tn_free(block->room);
    block->room = room;
    return true;
}

/* Reads keys, and in which partitions they are. */
static tn_drop read_keys(const struct tn_key_room *room, uint64_t key, cursor *deltas, uint32_t n)
{
    const uint32_t n_partitions = room->n_partitions;
    uint64_t all = 0;
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) {
            uint64_t delta = take(deltas);
            if (delta >= UINT64_MAX - key) {
                return TN_DROP_KEYS_END;
            }
            key += delta + 1;
            all |= delta;
        }
        room->key[i] = key;
        for (uint32_t p = tn_partition_of(key, n_partitions); next <= p; next++) {
            room->first[next] = i;
        }
    }
    for (; next <= n_partitions; next++) {
        room->first[next] = n;
    }
    uint8_t width = width_of(all);
    return deltas->width == (width > 0 ? width : 1) ? TN_DROP_NONE : TN_DROP_KEYS_WIDTH;
}

static tn_drop read_groups(const struct tn_key_room *room, cursor *groups, uint32_t n,
                           const tn_layout *layout, uint32_t floats)
{
    uint64_t at = 0;
    uint64_t all = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t group = groups->width > 0 ? take(groups) : 0;
        if (group >= layout->n_groups) {
            return TN_DROP_KEYS_GROUP;
        }
        room->group[i] = (uint16_t)group;
        room->at[i] = (uint32_t)at;
        all |= group;
        at += tn_record_of(layout, (uint32_t)group)->width;
        if (at > floats) {
            return TN_DROP_KEYS_FLOATS;
        }
    }
    if (groups->width != width_of(all)) {
        return TN_DROP_KEYS_WIDTH;
    }
    return at == floats ? TN_DROP_NONE : TN_DROP_KEYS_FLOATS;
}

static tn_drop read_counts(const struct tn_key_room *room, cursor *shows, cursor *clicks,
                           uint32_t n)
{
    uint64_t all_shows = 0;
    uint64_t all_clicks = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t before = shows->width > 0 ? take(shows) : 0; /* show - 1 */
        uint64_t click = clicks->width > 0 ? take(clicks) : 0;
        if (click > before + 1 || before == UINT32_MAX) {
            return TN_DROP_KEYS_SHOWS;
        }
        room->show[i] = (uint32_t)before + 1;
        room->click[i] = (uint32_t)click;
        all_shows |= before;
        all_clicks |= click;
    }
    bool narrow = shows->width == width_of(all_shows) && clicks->width == width_of(all_clicks);
    return narrow ? TN_DROP_NONE : TN_DROP_KEYS_WIDTH;
}

/* Checks that the block is `size` bytes long with n keys: proves n. */
static tn_drop check_size(const char *from, uint64_t size, uint32_t n)
{
    if (size < TN_KEYBLOCK_HEAD) {
        return TN_DROP_KEYS_SIZE;
    }
    uint8_t width[TN_KEY_ARRAYS];
    memcpy(width, from, sizeof width);
    for (uint32_t a = 0; a < TN_KEY_ARRAYS; a++) {
        if (width[a] < width_min[a] || width[a] > width_max[a]) {
            return TN_DROP_KEYS_HEAD;
        }
    }
    if (tn_load_u32(from + 4) != 0 || (n == 0 && tn_load_u64(from + 8) != 0)) {
        return TN_DROP_KEYS_HEAD;
    }
    return size == bytes_of(width, n) ? TN_DROP_NONE : TN_DROP_KEYS_SIZE;
}

/* Returns whether all keys are the owner's: ascending ones are when the first and the last one
 * are. */
static bool owned(const uint64_t *key, uint32_t n, const tn_keyblock_rules *rules)
{
    const tn_owners *o = rules->owners;
    return n == 0 || (tn_partition_of(key[0], o->n_partitions) >= o->from[rules->peer] &&
                      tn_partition_of(key[n - 1], o->n_partitions) < o->from[rules->peer + 1]);
}

static tn_drop read_arrays(const struct tn_key_room *room, const char *from, uint64_t size,
                           const uint32_t *count, const tn_keyblock_rules *rules)
{
    const uint32_t n = count[TN_KEYS];
    const char *at = from + TN_KEYBLOCK_HEAD;
    cursor array[TN_KEY_ARRAYS];
    for (uint32_t a = 0; a < TN_KEY_ARRAYS; a++) {
        size_t width = tn_load_u8(from + a);
        array[a] = cursor_at(at, from + size, width);
        at += width * (a == TN_KEY_DELTAS && n > 0 ? n - 1 : n);
    }
    TN_ASSERT(at == from + size); /* as check_size has found */
    tn_drop why = read_keys(room, tn_load_u64(from + 8), &array[TN_KEY_DELTAS], n);
    if (why == TN_DROP_NONE && !owned(room->key, n, rules)) {
        why = TN_DROP_KEYS_OWNER;
    }
    if (why == TN_DROP_NONE) {
        why = read_groups(room, &array[TN_KEY_GROUPS], n, rules->layout, count[TN_ROW_FLOATS]);
    }
    if (why == TN_DROP_NONE) {
        why = read_counts(room, &array[TN_KEY_SHOWS], &array[TN_KEY_CLICKS], n);
    }
    return why;
}

tn_drop tn_keyblock_read(tn_keyblock *block, const char *from, uint64_t size,
                         const uint32_t count[TN_FRAME_COUNTS], const tn_keyblock_rules *rules)
{
    const tn_owners *owners = rules->owners;
    uint32_t n = count[TN_KEYS];
    TN_ASSERT(rules->peer < owners->n_peers);
    block->keys = (tn_keyset){.owners = owners};
    tn_drop why = check_size(from, size, n);
    if (why == TN_DROP_NONE && !grow(block, n, owners->n_partitions)) {
        why = TN_DROP_MEMORY;
    }
    if (why == TN_DROP_NONE) {
        why = read_arrays(block->room, from, size, count, rules);
    }
    if (why == TN_DROP_NONE) {
        const struct tn_key_room *room = block->room;
        block->keys =
            (tn_keyset){owners,      rules->layout, n,          count[TN_ROW_FLOATS], room->key,
                        room->group, room->at,      room->show, room->click,          room->first};
    }
    return why;
}

void tn_keyblock_done(tn_keyblock *block)
{
    tn_free(block->room);
    *block = (tn_keyblock){0};
}

enum { RUN = 16 };

/* ---- sorting ---- */

static void sort_run(tn_key_place *list, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        tn_key_place x = list[i];
        uint32_t k = i;
        for (; k > 0 && list[k - 1].key > x.key; k--) {
            list[k] = list[k - 1];
        }
        list[k] = x;
    }
}

/* Merges two sorted runs, [0, middle) and [middle, n), into one. No key is in both. */
static void merge(const tn_key_place *from, uint32_t middle, uint32_t n, tn_key_place *to)
{
    uint32_t a = 0;
    uint32_t b = middle;
    for (uint32_t i = 0; i < n; i++) {
        bool left = b == n || (a < middle && from[a].key < from[b].key);
        to[i] = from[left ? a : b];
        a += left;
        b += !left;
    }
}

/* Sorts `list`, which has n places, `other` as many. Returns the one in which they are sorted. */
static const tn_key_place *sort(tn_key_place *list, tn_key_place *other, uint32_t n)
{
    for (uint32_t at = 0; at < n; at += RUN) {
        sort_run(list + at, n - at < RUN ? n - at : RUN);
    }
    for (uint64_t run = RUN; run < n; run *= 2) {
        for (uint64_t at = 0; at < n; at += 2 * run) {
            uint64_t left = n - at;
            uint32_t both = (uint32_t)(left < 2 * run ? left : 2 * run);
            merge(list + at, both < run ? both : (uint32_t)run, both, other + at);
        }
        tn_key_place *swap = list;
        list = other;
        other = swap;
    }
    return list;
}

tn_key_order tn_keyblock_sort(const tn_keyset *keys, uint32_t peer, tn_key_place *scratch,
                              uint32_t *index)
{
    const uint32_t *from = keys->owners->from;
    uint32_t n = 0;
    TN_ASSERT(peer < keys->owners->n_peers);
    for (uint32_t p = from[peer]; p < from[peer + 1]; p++) {
        tn_range slice = tn_keys_of_partition(keys, p);
        uint32_t here = slice.to - slice.from;
        for (uint32_t i = 0; i < here; i++) {
            scratch[i] = (tn_key_place){keys->key[slice.from + i], slice.from + i};
        }
        const tn_key_place *sorted = sort(scratch, scratch + here, here);
        for (uint32_t i = 0; i < here; i++) {
            index[n++] = sorted[i].index;
        }
    }
    TN_ASSERT(n == keys->first[from[peer + 1]] - keys->first[from[peer]]);
    return (tn_key_order){n, index};
}
