/* dictwrite.c - writing a dictionary; bytes in dictformat.h.
 *
 * The first walk over the source notes keys and counts sets, so every offset is known before the
 * first byte is written; then one walk per table writes its rows. All else comes from the notes. A
 * piece is noted or packed by one thread into buffers of its own; what follows in the order of the
 * pieces is short: counting, or the bytes' way to the file.
 */
#include "dict/dictwrite.h"

#include "base/core/alloc.h"
#include "base/core/text.h"
#include "base/file/file.h"
#include "base/keys/record.h"
#include "base/math/crc32c.h"
#include "base/thread/ordered_work.h"
#include "base/thread/range.h"
#include "dict/dictplan.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* The file that is written. Each chunk after the header gets a checksum as its bytes pass. */
typedef struct output {
    tn_file *file;
    uint32_t crc;  /* checksum of the chunk that has begun */
    size_t so_far; /* bytes of that chunk */
    tn_text crcs;  /* checksums of full chunks */
} output;

/* A note of a row, in 12 bytes. */
typedef struct __attribute__((packed, aligned(4))) note {
    uint64_t key;
    uint16_t group, set;
} note;

/* Notes of the rows of a piece of the source, in their order. A walk over a piece notes its rows on
 * a pad, which grows and serves piece after piece; the copy that is kept has no spare room. */
typedef struct note_list {
    uint32_t n, most;
    note *note; /* NULL: no room yet */
} note_list;

typedef struct writer {
    const tn_dict_spec *spec;
    const tn_dict_source *source;
    tn_dict_plan plan;
    note_list *notes; /* a list for each piece */
    output out;
    uint32_t table; /* the table that is written */
} writer;

/* The set of the row before of a group: runs of alike rows need not ask the plan. None at first:
 * a row that is not removed has some segment. */
typedef struct met_last {
    uint16_t present, set;
    bool removed;
} met_last;

typedef struct notes_job {
    writer *w;
    pthread_mutex_t lock; /* guards the plan's list of sets */
    uint64_t last_key;    /* the last key of the pieces that are joined */
} notes_job;

typedef struct notes_hand {
    notes_job *job;
    note_list pad;
    met_last *last;    /* per group */
    uint64_t last_key; /* the last key of the piece so far */
} notes_hand;

typedef struct rows_hand {
    writer *w;
    const note_list *list;
    uint32_t next; /* the note of the row that must come next */
    char *rows;
    size_t used, most; /* bytes */
} rows_hand;

enum { AT_ONCE = 1024 /* keys */, FIRST_NOTES = 1 << 10 };

/* Calls put for all keys of the table, some at a time. */
typedef struct keys {
    const tn_dict_table_head *table;
    uint64_t key[AT_ONCE];
    uint16_t group[AT_ONCE];
    uint32_t n;
    uint64_t rows;   /* before these */
    uint32_t bucket; /* the first whose start is not noted */
    uint32_t start[AT_ONCE];
    uint32_t n_starts; /* starts that are noted and not written */
} keys;

typedef tn_status put_keys(writer *w, keys *k, tn_error *err);

static void end_chunk(output *o)
{
    tn_text_add_u32le(&o->crcs, o->crc);
    o->crc = 0;
    o->so_far = 0;
}

static tn_status put_bytes(output *o, const void *data, size_t size, tn_error *err)
{
    const char *from = data;
    while (size > 0) {
        size_t room = TN_DICT_CHUNK - o->so_far;
        size_t n = size < room ? size : room;
        TN_TRY(tn_file_write(o->file, from, n, err));
        o->crc = tn_crc32c(o->crc, from, n);
        o->so_far += n;
        from += n;
        size -= n;
        if (n == room) {
            end_chunk(o);
        }
    }
    return TN_OK;
}

/* Zeros up to `at` bytes of the file, less than TN_DICT_ALIGN of them. */
static tn_status put_gap(output *o, uint64_t at, tn_error *err)
{
    static const char zeros[TN_DICT_ALIGN];
    uint64_t now = tn_file_size(o->file);
    TN_ASSERT(at >= now && at - now < TN_DICT_ALIGN);
    return put_bytes(o, zeros, (size_t)(at - now), err);
}

/* Ends the last chunk and writes the checksums of all. */
static tn_status put_checksums(output *o, tn_error *err)
{
    if (o->so_far > 0) {
        end_chunk(o);
    }
    TN_TRY(tn_text_check(&o->crcs, "a dictionary", err));
    tn_text_add_u32le(&o->crcs, tn_crc32c(0, o->crcs.data, o->crcs.size));
    TN_TRY(tn_text_check(&o->crcs, "a dictionary", err));
    return tn_file_write(o->file, o->crcs.data, o->crcs.size, err);
}

static tn_status not_finite(const tn_dict_spec *spec, const tn_dict_entry *e, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "a weight of group '%s', key %016llx is not finite",
                   spec->layout->group[e->group].name, (unsigned long long)e->key);
}

/* to := from; false: not all are finite. Two at a time: of a number that is not finite all bits of
 * the exponent are set, and one more in the lowest of them carries into the sign. */
static bool copy_finite(uint32_t n, const float *from, char *to)
{
    const uint64_t signs = 0x8000000080000000;
    const uint64_t one_more = 0x0080000000800000;
    uint64_t bad = 0;
    uint32_t i = 0;
    for (; i + 2 <= n; i += 2) {
        uint64_t pair;
        memcpy(&pair, from + i, sizeof pair);
        memcpy(to + i * sizeof *from, &pair, sizeof pair);
        bad |= (pair & ~signs) + one_more;
    }
    if (i < n) {
        uint32_t single;
        memcpy(&single, from + i, sizeof single);
        memcpy(to + i * sizeof *from, &single, sizeof single);
        bad |= (single & ~(uint32_t)signs) + (uint32_t)one_more;
    }
    return (bad & signs) == 0;
}

static bool all_finite(uint32_t n, const float *w)
{
    bool good = true;
    for (uint32_t i = 0; i < n; i++) {
        good &= isfinite(w[i]) != 0;
    }
    return good;
}

float tn_dict_row_scale(tn_dict_type asked, tn_dict_type type, const tn_record *record,
                        const tn_dict_entry *e)
{
    tn_dict_part part[TN_SEGMENTS_MAX];
    uint32_t n = 0;
    for (uint32_t s = 0; s < record->n_segments; s++) {
        const tn_segment *segment = &record->segment[s];
        if ((e->present >> s & 1) != 0 && tn_dict_type_for(asked, segment->dim) == type) {
            part[n++] = (tn_dict_part){segment->dim, tn_dict_values(e, s, segment->at)};
        }
    }
    return tn_dict_scale(type, n, part);
}

/* One segment into its place of a row; an absent one stays zero. */
static tn_status put_segment(const tn_dict_spec *spec, const tn_dict_plan_table *t, uint32_t i,
                             const tn_dict_entry *e, char *row, tn_error *err)
{
    const tn_dict_column *c = &t->column[i];
    const tn_dict_segment_head *s = &t->head.segment[i];
    if ((e->present >> c->of_record & 1) == 0) {
        return TN_OK;
    }
    const float *values = tn_dict_values(e, c->of_record, c->at);
    const tn_dict_type type = (tn_dict_type)s->type;
    if (type == TN_DICT_F32) {
        return copy_finite(s->dim, values, row + s->offset) ? TN_OK : not_finite(spec, e, err);
    }
    if (!all_finite(s->dim, values)) {
        return not_finite(spec, e, err);
    }
    float scale = 1;
    if (s->scale != TN_DICT_NO_SCALE) {
        const tn_record *record = &spec->layout->record[t->set->layout];
        scale = tn_dict_row_scale(spec->type, type, record, e);
        memcpy(row + s->scale, &scale, sizeof scale);
    }
    tn_dict_encode(type, s->dim, values, scale, row + s->offset);
    return TN_OK;
}

/* Writes the t->stride bytes at `row`; zeros where the entry has nothing. TN_E_CKPT: a weight is
 * not finite. */
static tn_status put_row(const tn_dict_spec *spec, const tn_dict_plan_table *t,
                         const tn_dict_entry *e, char *row, tn_error *err)
{
    uint16_t all = t->set->present;
    if (t->is_run && e->at == NULL && (e->present & all) == all) {
        uint32_t n = t->head.stride / (uint32_t)sizeof(float);
        return copy_finite(n, e->values + t->column[0].at, row) ? TN_OK : not_finite(spec, e, err);
    }
    if (t->has_gaps || (e->present & all) != all) {
        memset(row, 0, t->head.stride);
    }
    for (uint32_t i = 0; i < t->head.n_segments; i++) {
        TN_TRY(put_segment(spec, t, i, e, row, err));
    }
    return TN_OK;
}

/* `out` with room for `most` rows, and those of `from` in it. */
static tn_status copy_notes(note_list *out, uint32_t most, const note_list *from, tn_error *err)
{
    note *copy = NULL;
    TN_TRY(TN_ALLOC(copy, most, "keys of a dictionary", err));
    if (from->n > 0) {
        memcpy(copy, from->note, from->n * sizeof *copy);
    }
    *out = (note_list){from->n, most, copy};
    return TN_OK;
}

static tn_status add_note(note_list *pad, note row, tn_error *err)
{
    if (pad->n == pad->most) {
        note_list more;
        if (pad->most > UINT32_MAX / 2) {
            return tn_fail(err, TN_E_LIMIT, "more than %u rows in a piece of a dictionary",
                           pad->most);
        }
        TN_TRY(copy_notes(&more, pad->most == 0 ? (uint32_t)FIRST_NOTES : 2 * pad->most, pad, err));
        tn_free(pad->note);
        *pad = more;
    }
    pad->note[pad->n++] = row;
    return TN_OK;
}

/* Takes those of some rows of a list that go to the table. Every row is written to k, the next one
 * over it when it was not of the table: no branch that could be guessed wrong. */
static void take_keys(const writer *w, const note_list *l, tn_range rows, keys *k)
{
    const tn_dict_set *set = w->plan.set;
    uint32_t n = 0;
    TN_ASSERT(rows.to <= l->n);
    for (uint32_t i = rows.from; i < rows.to; i++) {
        k->key[n] = l->note[i].key;
        k->group[n] = l->note[i].group;
        n += set[l->note[i].set].table == w->table;
    }
    k->n = n;
}

static bool is_left_out(const tn_dict_entry *e)
{
    return e->present == 0 && !e->removed;
}

static tn_status not_ascending(tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "keys of a dictionary do not ascend, or not in its partitions");
}

static tn_status find_set(notes_hand *h, const tn_dict_entry *e, uint16_t *out, tn_error *err)
{
    met_last *l = &h->last[e->group];
    if (l->present != e->present || l->removed != e->removed) {
        notes_job *j = h->job;
        pthread_mutex_lock(&j->lock);
        tn_status status = tn_dict_plan_set(&j->w->plan, e, &l->set, err);
        pthread_mutex_unlock(&j->lock);
        TN_TRY(status);
        *l = (met_last){e->present, l->set, e->removed};
    }
    *out = l->set;
    return TN_OK;
}

static tn_status note_row(void *visitor, const tn_dict_entry *e, tn_error *err)
{
    notes_hand *h = visitor;
    const tn_dict_spec *spec = h->job->w->spec;
    TN_ASSERT(e->group < spec->layout->n_groups && (!e->removed || spec->delta));
    uint32_t partition = tn_partition_of(e->key, spec->partitions);
    if (e->key < h->last_key || partition < spec->first || partition > spec->last) {
        return not_ascending(err);
    }
    h->last_key = e->key;
    uint16_t set = 0;
    if (is_left_out(e)) {
        return TN_OK;
    }
    TN_TRY(find_set(h, e, &set, err));
    return add_note(&h->pad, (note){e->key, e->group, set}, err);
}

static tn_status note_piece(void *job, uint32_t piece, void *hand, tn_error *err)
{
    notes_hand *h = hand;
    h->job = job;
    h->pad.n = 0;
    h->last_key = 0;
    writer *w = h->job->w;
    if (h->last == NULL) {
        TN_TRY(TN_ALLOC(h->last, w->spec->layout->n_groups, "groups of a dictionary", err));
    }
    TN_TRY(w->source->walk(w->source->arg, piece, note_row, h, err));
    return h->pad.n > 0 ? copy_notes(&w->notes[piece], h->pad.n, &h->pad, err) : TN_OK;
}

static tn_status count_piece(void *job, uint32_t piece, void *hand, tn_error *err)
{
    notes_job *j = job;
    const notes_hand *h = hand;
    const note_list *l = &j->w->notes[piece];
    if (l->n > 0 && l->note[0].key < j->last_key) {
        return not_ascending(err);
    }
    j->last_key = h->last_key > j->last_key ? h->last_key : j->last_key;
    for (uint32_t i = 0; i < l->n; i++) {
        tn_dict_set *set = &j->w->plan.set[l->note[i].set];
        set->rows++;
        set->group_rows[l->note[i].group]++;
    }
    return TN_OK;
}

static void drop_notes(void *hand)
{
    notes_hand *h = hand;
    tn_free(h->pad.note);
    tn_free(h->last);
}

static tn_status note_rows(writer *w, tn_error *err)
{
    notes_job job = {.w = w};
    int failure = pthread_mutex_init(&job.lock, NULL);
    TN_ASSERT(failure == 0);
    const tn_inorder how = {.job = &job,
                            .n = w->source->n_pieces,
                            .hand_bytes = sizeof(notes_hand),
                            .make = note_piece,
                            .join = count_piece,
                            .drop = drop_notes};
    w->notes = tn_try_alloc((size_t)how.n + 1, sizeof *w->notes, "keys of a dictionary", err);
    tn_status status = w->notes != NULL ? tn_inorder_run(&how, w->spec->team, err) : TN_E_MEMORY;
    pthread_mutex_destroy(&job.lock);
    return status;
}

/* Fails because two walks do not agree. */
static tn_status changed(tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "the rows changed while a dictionary was written");
}

/* The set of the next noted row, when this is it; NULL: it is not. */
static const tn_dict_set *next_set(const rows_hand *h, const tn_dict_entry *e)
{
    const note *n = h->next < h->list->n ? &h->list->note[h->next] : NULL;
    if (n == NULL || n->key != e->key || n->group != e->group) {
        return NULL;
    }
    const tn_dict_set *set = &h->w->plan.set[n->set];
    return set->present == (e->removed ? 0 : e->present) ? set : NULL;
}

static tn_status pack_row(void *visitor, const tn_dict_entry *e, tn_error *err)
{
    rows_hand *h = visitor;
    if (is_left_out(e)) {
        return TN_OK;
    }
    const tn_dict_set *set = next_set(h, e);
    if (set == NULL) {
        return changed(err);
    }
    h->next++;
    if (set->table != h->w->table) {
        return TN_OK;
    }
    const tn_dict_plan_table *t = &h->w->plan.table[set->table];
    TN_ASSERT(h->most - h->used >= t->head.stride);
    char *row = h->rows + h->used;
    h->used += t->head.stride;
    return put_row(h->w->spec, t, e, row, err);
}

/* Room for all rows that the piece has in the table. */
static tn_status make_room(rows_hand *h, tn_error *err)
{
    const tn_dict_plan *p = &h->w->plan;
    size_t rows = 0;
    for (uint32_t i = 0; i < h->list->n; i++) {
        rows += p->set[h->list->note[i].set].table == h->w->table;
    }
    size_t bytes = rows * p->table[h->w->table].head.stride;
    if (bytes > h->most) {
        tn_free(h->rows);
        h->most = 0;
        TN_TRY(TN_ALLOC(h->rows, bytes, "rows of a dictionary", err));
        h->most = bytes;
    }
    return TN_OK;
}

static tn_status pack_piece(void *job, uint32_t piece, void *hand, tn_error *err)
{
    writer *w = job;
    rows_hand *h = hand;
    h->w = w;
    h->list = &w->notes[piece];
    h->next = 0;
    h->used = 0;
    TN_TRY(make_room(h, err));
    TN_TRY(w->source->walk(w->source->arg, piece, pack_row, h, err));
    return h->next == h->list->n ? TN_OK : changed(err);
}

static tn_status put_piece(void *job, uint32_t piece, void *hand, tn_error *err)
{
    (void)piece;
    writer *w = job;
    const rows_hand *h = hand;
    return put_bytes(&w->out, h->rows, h->used, err);
}

static void drop_rows(void *hand)
{
    rows_hand *h = hand;
    tn_free(h->rows);
}

static tn_status write_rows(writer *w, tn_error *err)
{
    const tn_inorder how = {.job = w,
                            .n = w->source->n_pieces,
                            .hand_bytes = sizeof(rows_hand),
                            .make = pack_piece,
                            .join = put_piece,
                            .drop = drop_rows};
    return tn_inorder_run(&how, w->spec->team, err);
}

/* Writes all that precedes the data of tables. No chunk's checksum covers the header. */
static tn_status put_head(output *o, const tn_dict_plan *p, tn_error *err)
{
    tn_text head = {0};
    tn_dict_plan_head(p, &head);
    tn_status status = tn_text_check(&head, "a dictionary", err);
    if (status == TN_OK) {
        status = tn_file_write(o->file, head.data, sizeof(tn_dict_header), err);
    }
    if (status == TN_OK) {
        status = put_bytes(o, head.data + sizeof(tn_dict_header),
                           head.size - sizeof(tn_dict_header), err);
    }
    tn_text_done(&head);
    return status == TN_OK ? put_bytes(o, p->spec->json, p->head.json_bytes, err) : status;
}

static tn_status each_key(writer *w, put_keys *each, keys *k, tn_error *err)
{
    for (uint32_t p = 0; p < w->source->n_pieces; p++) {
        const note_list *l = &w->notes[p];
        for (uint32_t i = 0; i < tn_tile_count(l->n, AT_ONCE); i++) {
            tn_range run = tn_tile(l->n, AT_ONCE, i);
            take_keys(w, l, run, k);
            TN_TRY(each(w, k, err));
            k->rows += k->n;
        }
    }
    return k->rows == k->table->rows ? TN_OK : changed(err);
}

static tn_status put_key(writer *w, keys *k, tn_error *err)
{
    return put_bytes(&w->out, k->key, k->n * sizeof *k->key, err);
}

static tn_status put_group(writer *w, keys *k, tn_error *err)
{
    return put_bytes(&w->out, k->group, k->n * sizeof *k->group, err);
}

static tn_status write_starts(writer *w, keys *k, tn_error *err)
{
    uint32_t n = k->n_starts;
    k->n_starts = 0;
    return put_bytes(&w->out, k->start, n * sizeof *k->start, err);
}

/* Starts of buckets up to and with `last`: all of them begin with the row `at`. */
static tn_status put_starts(writer *w, keys *k, uint64_t last, uint64_t at, tn_error *err)
{
    for (; k->bucket <= last; k->bucket++) {
        if (k->n_starts == AT_ONCE) {
            TN_TRY(write_starts(w, k, err));
        }
        k->start[k->n_starts++] = (uint32_t)at;
    }
    return TN_OK;
}

static tn_status put_buckets(writer *w, keys *k, tn_error *err)
{
    const tn_dict_table_head *t = k->table;
    for (uint32_t i = 0; i < k->n; i++) {
        uint64_t b = t->shift < TN_DICT_ONE_BUCKET ? (k->key[i] - t->key_base) >> t->shift : 0;
        if (b >= k->bucket) {
            TN_TRY(put_starts(w, k, b, k->rows + i, err));
        }
    }
    return TN_OK;
}

static tn_status put_table(writer *w, tn_error *err)
{
    const tn_dict_table_head *t = &w->plan.table[w->table].head;
    keys starts = {.table = t};
    keys all = {.table = t};
    keys groups = {.table = t};
    TN_TRY(put_gap(&w->out, t->start_at, err));
    TN_TRY(each_key(w, put_buckets, &starts, err));
    TN_TRY(put_starts(w, &starts, t->buckets, t->rows, err));
    TN_TRY(write_starts(w, &starts, err));
    TN_TRY(put_gap(&w->out, t->key_at, err));
    TN_TRY(each_key(w, put_key, &all, err));
    TN_TRY(put_gap(&w->out, t->rows_at, err));
    if (t->stride > 0) {
        TN_TRY(write_rows(w, err));
    }
    if (!w->spec->check_groups) {
        return TN_OK;
    }
    TN_TRY(put_gap(&w->out, t->group_at, err));
    return each_key(w, put_group, &groups, err);
}

static tn_status write_all(writer *w, const char *path, tn_error *err)
{
    const uint64_t crc_at = w->plan.head.crc_at;
    TN_TRY(tn_file_create(&w->out.file, path, err));
    TN_TRY(tn_disk_need(path, crc_at, err)); /* the checksums after it are few */
    TN_TRY(put_head(&w->out, &w->plan, err));
    for (w->table = 0; w->table < w->plan.head.n_tables; w->table++) {
        TN_TRY(put_table(w, err));
    }
    TN_TRY(put_gap(&w->out, crc_at, err));
    return put_checksums(&w->out, err);
}

static tn_status plan_all(writer *w, tn_error *err)
{
    TN_TRY(tn_dict_plan_init(&w->plan, w->spec, err));
    TN_TRY(note_rows(w, err));
    return tn_dict_plan_tables(&w->plan, err);
}

tn_status tn_dict_write(const char *path, const tn_dict_spec *spec, const tn_dict_source *source,
                        tn_dict_written *out, tn_error *err)
{
    TN_ASSERT(spec->type < TN_DICT_TYPES && spec->partitions <= UINT16_MAX + 1U);
    TN_ASSERT(strlen(spec->json) <= TN_DICT_JSON_MAX);
    writer w = {.spec = spec, .source = source};
    tn_status status = plan_all(&w, err);
    if (status == TN_OK) {
        status = write_all(&w, path, err);
    }
    tn_file *f = w.out.file;
    if (status == TN_OK) {
        *out = (tn_dict_written){tn_file_size(f), w.plan.head.rows, tn_file_crc(f)};
        status = tn_file_commit(f, err);
    } else {
        tn_file_abandon(f);
    }
    tn_text_done(&w.out.crcs);
    for (uint32_t i = 0; w.notes != NULL && i < source->n_pieces; i++) {
        tn_free(w.notes[i].note);
    }
    tn_free(w.notes);
    tn_dict_plan_done(&w.plan);
    return status;
}
