/* partition.c - rows of one partition: slabs that hold them, indexes that find them. */
#include "ps/table/partition.h"

/* ---- memory of the heap, which counts as the table's ---- */

static tn_status take_heap(tn_page_arena *e, size_t bytes, const char *what, void **out,
                           tn_error *err)
{
    *out = tn_try_alloc(1, bytes, what, err);
    tn_page_arena_charge(e, *out != NULL ? bytes : 0);
    return *out != NULL ? TN_OK : TN_E_MEMORY;
}

static void give_heap(tn_page_arena *e, void *memory, size_t bytes)
{
    tn_page_arena_refund(e, bytes);
    tn_free(memory);
}

/* Moves what was in *memory to the beginning of a larger one. */
static tn_status grow_heap(tn_page_arena *e, void **memory, size_t before, size_t bytes,
                           const char *what, tn_error *err)
{
    void *more = NULL;
    TN_TRY(take_heap(e, bytes, what, &more, err));
    if (before > 0) {
        memcpy(more, *memory, before);
    }
    give_heap(e, *memory, before);
    *memory = more;
    return TN_OK;
}

/* ---- slab ---- */

enum { FULL_BYTES = 16 << 10, FIRST_ROWS_LOG2 = 3, FULL_ROWS_LOG2_MAX = 10, POINTERS_FIRST = 8 };

static void slab_init(tn_slab *s, uint32_t stride)
{
    TN_ASSERT(stride >= sizeof(tn_row) && stride % sizeof(float) == 0);
    *s = (tn_slab){.stride = stride};
    while (s->full_log2 < FULL_ROWS_LOG2_MAX &&
           ((size_t)stride << (s->full_log2 + 1)) <= FULL_BYTES) {
        s->full_log2++;
    }
    s->first_log2 = s->full_log2 < FIRST_ROWS_LOG2 ? s->full_log2 : FIRST_ROWS_LOG2;
}

static void slab_clear(tn_slab *s, tn_page_arena *e)
{
    give_heap(e, s->chunk, s->chunks_max * sizeof(char *));
    slab_init(s, s->stride);
}

static tn_status more_pointers(tn_slab *s, tn_page_arena *e, tn_error *err)
{
    const uint32_t most = s->chunks_max == 0 ? POINTERS_FIRST : 2 * s->chunks_max;
    void *chunk = s->chunk;
    TN_TRY(grow_heap(e, &chunk, s->chunks_max * sizeof(char *), most * sizeof(char *),
                     "chunks of rows", err));
    s->chunk = chunk;
    s->chunks_max = most;
    return TN_OK;
}

/* Returns the rows of the next chunk: as many as there are, from the first to the full size. */
static uint32_t next_chunk(const tn_slab *s, uint32_t capacity)
{
    const uint32_t first = UINT32_C(1) << s->first_log2;
    const uint32_t full = UINT32_C(1) << s->full_log2;
    const uint32_t rows = capacity < first ? first : capacity;
    return rows < full ? rows : full;
}

static tn_status more_rows(tn_slab *s, tn_page_arena *e, tn_error *err)
{
    if (s->n_chunks == s->chunks_max) {
        TN_TRY(more_pointers(s, e, err));
    }
    const uint32_t rows = next_chunk(s, s->capacity);
    void *chunk = NULL;
    TN_TRY(tn_page_arena_take(e, (size_t)rows * s->stride, &chunk, err));
    s->chunk[s->n_chunks++] = chunk;
    s->capacity += rows;
    return TN_OK;
}

/* Makes room for one more row. */
static tn_status slab_reserve(tn_slab *s, tn_page_arena *e, tn_error *err)
{
    if (s->n_rows == TN_SLAB_ROWS_MAX) {
        return tn_fail(err, TN_E_LIMIT, "a partition holds more than %d rows of one size",
                       TN_SLAB_ROWS_MAX);
    }
    return s->n_rows < s->capacity ? TN_OK : more_rows(s, e, err);
}

/* Returns a zeroed row after all others, whose number was n_rows; slab_reserve made its room. */
static tn_row *slab_add(tn_slab *s)
{
    TN_ASSERT(s->n_rows < s->capacity);
    return tn_slab_at(s, s->n_rows++);
}

/* Bytes that `rows` more rows take beyond the room there is. */
static uint64_t slab_growth(const tn_slab *s, uint32_t rows)
{
    uint32_t capacity = s->capacity;
    uint32_t chunks = s->n_chunks;
    while (capacity < s->n_rows + rows) {
        capacity += next_chunk(s, capacity);
        chunks++;
    }
    const uint32_t pointers = chunks > s->chunks_max ? s->chunks_max + POINTERS_FIRST : 0;
    return (uint64_t)(capacity - s->capacity) * s->stride + pointers * sizeof(char *);
}

static uint64_t slab_growth_most(const tn_slab *s, uint32_t rows)
{
    const uint64_t full = (UINT64_C(1) << s->full_log2) * s->stride;
    return (uint64_t)rows * s->stride + 2 * full;
}

/* ---- index ---- */

enum {
    FIRST_ENTRIES = 64,
    BLOCK_ENTRIES = 1024,
    AHEAD = 32,     /* rows asked for before they are needed */
    DEPTH_MAX = 14, /* bits of the hash that neither tag nor position use */
    SPREAD = 16,    /* keys by which blocks of one depth differ, at least most of them */
    SPARSE = 5,     /* if fewer than one of so many entries is taken, half as many blocks will do */
    SPLITS_FROM = 800, /* keys, on average, from which most blocks have been split */
};

static const char directory_name[] = "the directory of an index";

static size_t block_bytes(uint32_t entries)
{
    return sizeof(tn_index_block) + entries * sizeof(uint32_t);
}

/* Linear probing slows down beyond 27 of 32. */
static bool is_full(const tn_index *x, const tn_index_block *b)
{
    return b->n >= (x->mask + 1) / 32 * 27;
}

static tn_index_block *block_of(const tn_index *x, uint32_t hash)
{
    return x->directory[(uint64_t)hash >> (32 - x->depth)];
}

static void index_clear(tn_index *x, tn_page_arena *e)
{
    if (x->directory != NULL) {
        if (x->mask + 1 < BLOCK_ENTRIES) {
            give_heap(e, x->directory[0], block_bytes(x->mask + 1));
        }
        give_heap(e, x->directory, sizeof(void *) << x->depth);
    }
    *x = (tn_index){0};
}

static void put(tn_index_block *b, uint32_t mask, uint32_t hash, uint32_t entry)
{
    uint32_t at = hash & mask;
    while (b->entry[at] != 0) {
        at = (at + 1) & mask;
    }
    b->entry[at] = entry;
    b->n++;
}

/* Blocks of full size come from the extents, smaller ones from the heap, which takes them back. */
static tn_status new_block(uint32_t entries, tn_page_arena *e, tn_index_block **out, tn_error *err)
{
    void *block = NULL;
    TN_TRY(entries == BLOCK_ENTRIES
               ? tn_page_arena_take(e, block_bytes(entries), &block, err)
               : take_heap(e, block_bytes(entries), "an index of rows", &block, err));
    *out = block;
    return TN_OK;
}

static tn_status begin(tn_index *x, tn_page_arena *e, tn_error *err)
{
    void *directory = NULL;
    tn_index_block *block = NULL;
    TN_TRY(take_heap(e, sizeof(void *), directory_name, &directory, err));
    tn_status status = new_block(FIRST_ENTRIES, e, &block, err);
    if (status != TN_OK) {
        give_heap(e, directory, sizeof(void *));
        return status;
    }
    *x = (tn_index){.directory = directory, .mask = FIRST_ENTRIES - 1};
    x->directory[0] = block;
    return TN_OK;
}

static uint32_t hash_of_row(const tn_row *row)
{
    return tn_index_hash(tn_row_key(row, 0));
}

/* s: the store of whole rows, here and below. */
static inline void fetch_row(const tn_row_store *s, uint32_t entry)
{
    if (entry != 0) {
        __builtin_prefetch(tn_row_of_entry(s, entry));
    }
}

/* Puts n entries into to[0], those whose hash has a certain bit into to[1]. Their rows lie
 * anywhere. */
static void put_all(const tn_row_store *s, const uint32_t *entry, uint32_t n, uint32_t mask,
                    tn_index_block *const to[2], uint32_t bit)
{
    for (uint32_t i = 0; i < n + AHEAD; i++) {
        fetch_row(s, i < n ? entry[i] : 0);
        const uint32_t now = i < AHEAD ? 0 : entry[i - AHEAD];
        if (now != 0) {
            const uint32_t hash = hash_of_row(tn_row_of_entry(s, now));
            put(to[(hash & bit) != 0], mask, hash, now);
        }
    }
}

/* A single block below full size: copied into one of twice the size. */
static tn_status grow_first_block(tn_index *x, const tn_row_store *s, tn_page_arena *e,
                                  tn_error *err)
{
    tn_index_block *old = x->directory[0];
    uint32_t entries = x->mask + 1;
    tn_index_block *block = NULL;
    TN_TRY(new_block(2 * entries, e, &block, err));
    put_all(s, old->entry, entries, 2 * entries - 1, (tn_index_block *[2]){block, NULL}, 0);
    x->directory[0] = block;
    x->mask = 2 * entries - 1;
    give_heap(e, old, block_bytes(entries));
    return TN_OK;
}

static tn_status double_directory(tn_index *x, tn_page_arena *e, tn_error *err)
{
    if (x->depth == DEPTH_MAX) {
        return tn_fail(err, TN_E_LIMIT,
                       "a partition of the table holds more than %d blocks of keys",
                       1 << DEPTH_MAX);
    }
    void *directory = x->directory;
    const size_t bytes = sizeof(void *) << x->depth;
    TN_TRY(grow_heap(e, &directory, bytes, 2 * bytes, directory_name, err));
    x->directory = directory;
    for (uint32_t i = UINT32_C(2) << x->depth; i-- > 0;) { /* each twice, from the end */
        x->directory[i] = x->directory[i / 2];
    }
    x->depth++;
    return TN_OK;
}

/* Moves the half of b whose next bit is 1 into a new block. */
static tn_status split(tn_index *x, const tn_row_store *s, uint32_t hash, tn_page_arena *e,
                       tn_error *err)
{
    tn_index_block *b = block_of(x, hash);
    TN_ASSERT(b->depth <= x->depth && x->mask + 1 == BLOCK_ENTRIES);
    if (b->depth == x->depth) {
        TN_TRY(double_directory(x, e, err));
    }
    tn_index_block *half = NULL;
    TN_TRY(new_block(BLOCK_ENTRIES, e, &half, err));
    uint32_t entry[BLOCK_ENTRIES];
    memcpy(entry, b->entry, sizeof entry);
    memset(b->entry, 0, sizeof entry);

    const uint32_t bit = UINT32_C(1) << (31 - b->depth);
    b->n = 0;
    half->depth = ++b->depth;
    put_all(s, entry, BLOCK_ENTRIES, x->mask, (tn_index_block *[2]){b, half}, bit);
    uint32_t span = UINT32_C(1) << (x->depth - b->depth);
    uint32_t from = (uint32_t)((uint64_t)hash >> (32 - x->depth)) & ~(2 * span - 1);
    for (uint32_t i = 0; i < span; i++) {
        x->directory[from + span + i] = half;
    }
    return TN_OK;
}

/* Makes sure that one more key with this hash can be put. */
static tn_status index_reserve(tn_index *x, const tn_row_store *s, uint32_t hash, tn_page_arena *e,
                               tn_error *err)
{
    if (x->directory == NULL) {
        TN_TRY(begin(x, e, err));
    }
    while (is_full(x, block_of(x, hash))) {
        if (x->mask + 1 < BLOCK_ENTRIES) {
            TN_TRY(grow_first_block(x, s, e, err));
        } else {
            TN_TRY(split(x, s, hash, e, err));
        }
    }
    return TN_OK;
}

static uint32_t entry_of(uint32_t hash, bool waits, uint32_t number)
{
    return tn_index_tag(hash) << TN_INDEX_TAG_SHIFT | (uint32_t)waits << TN_INDEX_WAITS_BIT |
           (number + 1);
}

static uint32_t place_of(const tn_index_block *b, uint32_t mask, uint32_t hash, uint32_t entry)
{
    uint32_t at = hash & mask;
    while (b->entry[at] != entry) {
        TN_ASSERT(b->entry[at] != 0);
        at = (at + 1) & mask;
    }
    return at;
}

/* Forgets a row while its key is still in it. Knuth 6.4, algorithm R: later entries that may fill
 * the hole move up. */
static void index_remove(tn_index *x, const tn_row_store *s, uint32_t hash, uint32_t entry)
{
    tn_index_block *b = block_of(x, hash);
    uint32_t mask = x->mask;
    uint32_t hole = place_of(b, mask, hash, entry);
    for (uint32_t at = (hole + 1) & mask; b->entry[at] != 0; at = (at + 1) & mask) {
        uint32_t home = hash_of_row(tn_row_of_entry(s, b->entry[at])) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            b->entry[hole] = b->entry[at];
            hole = at;
        }
    }
    b->entry[hole] = 0;
    TN_ASSERT(b->n > 0);
    b->n--;
}

static uint64_t index_growth(const tn_index *x, uint32_t rows)
{
    if (rows == 0) {
        return 0;
    }
    const bool whole = x->directory != NULL && x->mask + 1 == BLOCK_ENTRIES;
    const uint32_t n = x->directory != NULL && !whole ? x->directory[0]->n : 0;
    uint32_t entries = x->directory == NULL ? FIRST_ENTRIES : x->mask + 1;
    if (whole) {
        const uint64_t blocks = UINT64_C(1) << x->depth;
        const uint64_t splits = 1 + rows / SPREAD;
        return (splits < blocks ? splits : blocks) * block_bytes(BLOCK_ENTRIES);
    }
    while (entries < BLOCK_ENTRIES && n + rows > entries / 32 * 27) {
        entries *= 2;
    }
    const bool grows = x->directory == NULL || entries > x->mask + 1;
    return grows ? block_bytes(entries) + sizeof(void *) : 0;
}

static uint64_t index_growth_most(uint32_t rows)
{
    return (2 + (uint64_t)rows / SPREAD) * block_bytes(BLOCK_ENTRIES);
}

/* ---- store ---- */

void tn_row_store_init(tn_row_store *s, uint32_t stride, uint16_t apart, bool waits, bool marked)
{
    TN_ASSERT(apart > 0 || !waits);
    *s = (tn_row_store){.apart = apart, .waits = waits, .marked = marked};
    slab_init(&s->slab, stride);
}

/* The store of whole rows, whose index it shares. */
static inline const tn_row_store *whole_of(const tn_row_store *s)
{
    return s->waits ? s - s->apart : s;
}

void tn_row_store_clear(tn_row_store *s, tn_page_arena *e)
{
    index_clear(&s->index, e);
    slab_clear(&s->slab, e);
    give_heap(e, s->mark, s->mark_words * sizeof *s->mark);
    s->mark = NULL;
    s->mark_words = 0;
}

/* Returns the place in b of the row of (key, group), whole or waiting, or a free one for it: *row
 * is NULL then. s: the store of whole rows. */
static uint32_t seek(const tn_row_store *s, const tn_index_block *b, uint64_t key, uint16_t group,
                     tn_row **row)
{
    const uint32_t hash = tn_index_hash(key);
    const uint32_t tag = tn_index_tag(hash);
    uint32_t at = hash & s->index.mask;
    for (uint32_t entry = b->entry[at]; entry != 0; entry = b->entry[at]) {
        if (entry >> TN_INDEX_TAG_SHIFT == tag) {
            *row = tn_row_of_entry(s, entry);
            if (tn_row_is(*row, key, group)) {
                return at;
            }
        }
        at = (at + 1) & s->index.mask;
    }
    *row = NULL;
    return at;
}

tn_row *tn_row_store_find(const tn_row_store *s, uint64_t key, uint16_t group, uint32_t *entry)
{
    TN_ASSERT(!s->waits);
    const tn_index_block *b = tn_index_block_of(&s->index, tn_index_hash(key));
    tn_row *row = NULL;
    if (b != NULL) {
        const uint32_t at = seek(s, b, key, group, &row);
        *entry = row != NULL ? b->entry[at] : *entry;
    }
    return row;
}

/* Keeps as many marks as the slab has room for rows. */
static tn_status more_marks(tn_row_store *s, tn_page_arena *e, tn_error *err)
{
    const uint32_t bits = 64;
    uint32_t words = s->slab.capacity / bits + 1;
    if (!s->marked || s->mark_words >= words) {
        return TN_OK;
    }
    void *mark = s->mark;
    TN_TRY(grow_heap(e, &mark, s->mark_words * sizeof *s->mark, (size_t)2 * words * sizeof *s->mark,
                     "marks of rows", err));
    s->mark = mark;
    s->mark_words = 2 * words;
    return TN_OK;
}

void tn_row_store_unmark(tn_row_store *s)
{
    if (s->mark != NULL) {
        memset(s->mark, 0, s->mark_words * sizeof *s->mark);
    }
}

tn_status tn_row_store_put(tn_row_store *s, tn_page_arena *e, uint64_t key, uint16_t group,
                           tn_row **out, tn_error *err)
{
    tn_row_store *whole = s->waits ? s - s->apart : s;
    tn_index *x = &whole->index;
    const uint32_t hash = tn_index_hash(key);
    tn_index_block *b = tn_index_block_of(x, hash);
    tn_row *row = NULL;
    uint32_t at = b != NULL ? seek(whole, b, key, group, &row) : 0;
    const bool moves = row != NULL;
    if (moves && tn_row_store_of_entry(whole, b->entry[at]) == s) {
        *out = row;
        return TN_OK;
    }
    if (!moves && (b == NULL || is_full(x, b))) {
        TN_TRY(index_reserve(x, whole, hash, e, err));
        b = block_of(x, hash);
        at = seek(whole, b, key, group, &row);
    }
    TN_TRY(slab_reserve(&s->slab, e, err));
    TN_TRY(more_marks(s, e, err));
    *out = slab_add(&s->slab);
    tn_row_set_id(*out, key, group);
    TN_ASSERT(s->slab.n_rows <= TN_INDEX_NUMBER);
    b->entry[at] = entry_of(hash, s->waits, s->slab.n_rows - 1);
    b->n += !moves;
    return TN_OK;
}

void tn_row_store_remove_at(tn_row_store *s, uint32_t number, bool moved)
{
    TN_ASSERT(number < s->slab.n_rows);
    tn_row_store *whole = s->waits ? s - s->apart : s;
    tn_index *x = &whole->index;
    tn_row *row = tn_slab_at(&s->slab, number);
    uint32_t last = s->slab.n_rows - 1;
    tn_row *other = tn_slab_at(&s->slab, last);
    if (!moved) {
        const uint32_t hash = hash_of_row(row);
        index_remove(x, whole, hash, entry_of(hash, s->waits, number));
    }
    if (last != number) {
        const uint32_t hash = hash_of_row(other);
        tn_index_block *b = block_of(x, hash);
        const uint32_t at = place_of(b, x->mask, hash, entry_of(hash, s->waits, last));
        b->entry[at] = entry_of(hash, s->waits, number);
        memcpy(row, other, s->slab.stride);
    }
    memset(other, 0, s->slab.stride); /* as slab_add hands rows out */
    s->slab.n_rows--;
}

void tn_row_store_fetch_last(const tn_row_store *s)
{
    if (s->slab.n_rows > 0) {
        const tn_row *last = tn_slab_at(&s->slab, s->slab.n_rows - 1);
        tn_index_fetch(&whole_of(s)->index, hash_of_row(last));
    }
}

bool tn_row_store_remove(tn_row_store *s, uint64_t key, uint16_t group)
{
    uint32_t entry = 0;
    if (tn_row_store_find(whole_of(s), key, group, &entry) == NULL ||
        (entry >> TN_INDEX_WAITS_BIT & 1) != s->waits) {
        return false;
    }
    tn_row_store_remove_at(s, (entry & TN_INDEX_NUMBER) - 1, false);
    return true;
}

/* Rows of the last chunk. */
static uint32_t last_chunk(const tn_slab *s)
{
    const uint32_t full = UINT32_C(1) << s->full_log2;
    return s->n_chunks == 1 ? s->capacity : s->capacity <= full ? s->capacity / 2 : full;
}

/* One chunk stays in spare, so that a store that gets some rows back takes none. */
static void slab_shrink(tn_slab *s, tn_page_arena *e)
{
    while (s->n_chunks > 0 && s->capacity >= s->n_rows + 2 * last_chunk(s)) {
        const uint32_t rows = last_chunk(s);
        tn_page_arena_give(e, (size_t)rows * s->stride, s->chunk[--s->n_chunks]);
        s->capacity -= rows;
    }
}

/* Indexes all rows of one form, as put() would have done. */
static tn_status index_all(tn_index *x, const tn_row_store *s, tn_page_arena *e, tn_error *err)
{
    const tn_slab *rows = &s->slab;
    for (uint32_t number = 0; number < rows->n_rows; number++) {
        __builtin_prefetch(tn_slab_at(rows, number + AHEAD < rows->n_rows ? number + AHEAD : 0));
        const uint32_t hash = hash_of_row(tn_slab_at(rows, number));
        if (x->directory == NULL || is_full(x, block_of(x, hash))) {
            TN_TRY(index_reserve(x, whole_of(s), hash, e, err));
        }
        put(block_of(x, hash), x->mask, hash, entry_of(hash, s->waits, number));
    }
    return TN_OK;
}

static uint32_t index_blocks(const tn_index *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; x->directory != NULL && i < UINT32_C(1) << x->depth; i++) {
        n += i == 0 || x->directory[i] != x->directory[i - 1];
    }
    return n;
}

static void index_free(tn_index *x, tn_page_arena *e)
{
    for (uint32_t i = 0;
         x->directory != NULL && x->mask + 1 == BLOCK_ENTRIES && i < UINT32_C(1) << x->depth; i++) {
        if (i == 0 || x->directory[i] != x->directory[i - 1]) {
            tn_page_arena_give(e, block_bytes(BLOCK_ENTRIES), x->directory[i]);
        }
    }
    index_clear(x, e);
}

static void index_shrink(tn_row_store *s, tn_page_arena *e)
{
    const tn_row_store *waiting = s + s->apart;
    const uint64_t room = (uint64_t)index_blocks(&s->index) * (s->index.mask + 1);
    const uint64_t rows = (uint64_t)s->slab.n_rows + (s->apart > 0 ? waiting->slab.n_rows : 0);
    if (room <= FIRST_ENTRIES || rows >= room / SPARSE) {
        return;
    }
    tn_index fresh = {0};
    if (index_all(&fresh, s, e, NULL) == TN_OK &&
        (s->apart == 0 || index_all(&fresh, waiting, e, NULL) == TN_OK)) {
        index_free(&s->index, e);
        s->index = fresh;
    } else {
        index_free(&fresh, e);
    }
}

void tn_row_store_shrink(tn_row_store *s, tn_page_arena *e)
{
    slab_shrink(&s->slab, e);
    if (!s->waits) {
        index_shrink(s, e);
    }
}

uint32_t tn_row_store_chunk(uint32_t stride)
{
    tn_slab s;
    slab_init(&s, stride);
    return UINT32_C(1) << s.full_log2;
}

uint64_t tn_row_store_need(uint32_t stride, uint32_t rows)
{
    tn_slab s;
    slab_init(&s, stride);
    uint32_t depth = 0;
    uint64_t entries = FIRST_ENTRIES;
    if (rows == 0) {
        return 0;
    }
    while (entries < BLOCK_ENTRIES && rows > entries / 32 * 27) {
        entries *= 2;
    }
    while (rows >> depth >= SPLITS_FROM) {
        depth++;
    }
    uint32_t room = UINT32_C(1) << s.first_log2;
    while (room < rows && room < UINT32_C(1) << s.full_log2) {
        room *= 2;
    }
    if (room < rows) {
        room = (((rows - 1) >> s.full_log2) + 1) << s.full_log2;
    }
    return (uint64_t)room * stride + (block_bytes((uint32_t)entries) << depth);
}

uint64_t tn_row_store_growth(const tn_row_store *s, uint32_t rows)
{
    return slab_growth(&s->slab, rows) + index_growth(&whole_of(s)->index, rows);
}

uint64_t tn_row_store_growth_most(const tn_row_store *s, uint32_t rows)
{
    return slab_growth_most(&s->slab, rows) + index_growth_most(rows);
}
