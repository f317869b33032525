/* dict_passes.c - see dict_passes.h. A piece is noted or packed by one thread into buffers of its
 * own; what follows in the order of the pieces is short: counting, or the bytes' way to the file.
 */
#include "io/dict/dict_passes.h"

#include "base/core/alloc.h"
#include "base/keys/keyset.h" /* tn_partition_of */
#include "base/thread/ordered_work.h"
#include "io/dict/dictrow.h"

#include <pthread.h>

static bool is_left_out(const tn_dict_entry *e)
{
    return e->present == 0 && !e->removed;
}

static tn_status walk_all(tn_dict_writer *w, tn_inorder *how, tn_error *err)
{
    how->n = w->source->n_pieces;
    return tn_inorder_run(how, w->spec->team, err);
}

/* ---- notes ---- */

/* The set of the row before of a group: runs of alike rows need not ask the plan. */
typedef struct met_last {
    uint16_t present, met;
    bool removed, known;
} met_last;

typedef struct notes_job {
    tn_dict_writer *w;
    pthread_mutex_t lock; /* guards the plan's list of sets */
    uint64_t last_key;    /* of the pieces that are joined .. */
    bool any;             /* .. when they had rows */
} notes_job;

typedef struct notes_hand {
    notes_job *job;
    tn_dict_list pad;
    met_last *last;    /* per group */
    uint64_t last_key; /* of the piece .. */
    bool any;          /* .. when it had rows */
} notes_hand;

static tn_status not_ascending(tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "keys of a dictionary do not ascend, or not in its partitions");
}

static tn_status find_set(notes_hand *h, const tn_dict_entry *e, uint16_t *met, tn_error *err)
{
    met_last *l = &h->last[e->group];
    if (!l->known || l->present != e->present || l->removed != e->removed) {
        notes_job *j = h->job;
        pthread_mutex_lock(&j->lock);
        const tn_dict_set *set = tn_dict_plan_set(j->w->plan, e, err);
        pthread_mutex_unlock(&j->lock);
        if (set == NULL) {
            return err->code;
        }
        *l = (met_last){e->present, set->met, e->removed, true};
    }
    *met = l->met;
    return TN_OK;
}

static tn_status note_row(void *visitor, const tn_dict_entry *e, tn_error *err)
{
    notes_hand *h = visitor;
    const tn_dict_spec *spec = h->job->w->spec;
    TN_ASSERT(e->group < spec->layout->n_groups && (!e->removed || spec->delta));
    uint32_t partition = tn_partition_of(e->key, spec->partitions);
    if ((h->any && e->key < h->last_key) || partition < spec->first || partition > spec->last) {
        return not_ascending(err);
    }
    h->any = true;
    h->last_key = e->key;
    uint16_t met = 0;
    if (is_left_out(e)) {
        return TN_OK;
    }
    TN_TRY(find_set(h, e, &met, err));
    return tn_dict_note(&h->pad, e->key, e->group, met, err);
}

static tn_status note_piece(void *job, uint32_t piece, void *hand, tn_error *err)
{
    notes_hand *h = hand;
    h->job = job;
    h->pad.n = 0;
    h->any = false;
    tn_dict_writer *w = h->job->w;
    if (h->last == NULL) {
        h->last =
            tn_try_alloc(w->spec->layout->n_groups, sizeof *h->last, "groups of a dictionary", err);
        if (h->last == NULL) {
            return TN_E_MEMORY;
        }
    }
    TN_TRY(w->source->walk(w->source->arg, piece, note_row, h, err));
    return tn_dict_notes_keep(&w->notes, piece, &h->pad, err);
}

static tn_status count_piece(void *job, uint32_t piece, void *hand, tn_error *err)
{
    notes_job *j = job;
    const notes_hand *h = hand;
    const tn_dict_list *l = &j->w->notes.list[piece];
    if (j->any && l->n > 0 && l->key[0] < j->last_key) {
        return not_ascending(err);
    }
    if (h->any) {
        j->any = true;
        j->last_key = h->last_key;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        tn_dict_set *set = &j->w->plan->set[l->set[i]];
        set->rows++;
        set->group_rows[l->group[i]]++;
    }
    return TN_OK;
}

static void drop_notes(void *hand)
{
    notes_hand *h = hand;
    tn_dict_pad_done(&h->pad);
    tn_free(h->last);
}

tn_status tn_dict_pass_notes(tn_dict_writer *w, tn_error *err)
{
    notes_job job = {.w = w};
    int failure = pthread_mutex_init(&job.lock, NULL);
    TN_ASSERT(failure == 0);
    tn_inorder how = {.job = &job,
                      .hand_bytes = sizeof(notes_hand),
                      .make = note_piece,
                      .join = count_piece,
                      .drop = drop_notes};
    tn_status status = tn_dict_notes_init(&w->notes, w->source->n_pieces, err);
    if (status == TN_OK) {
        status = walk_all(w, &how, err);
    }
    pthread_mutex_destroy(&job.lock);
    return status;
}

/* ---- rows ---- */

typedef struct rows_hand {
    tn_dict_writer *w;
    const tn_dict_list *list;
    uint32_t next; /* the note of the row that must come next */
    char *rows;
    size_t used, most; /* bytes */
} rows_hand;

tn_status tn_dict_changed(tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "the rows changed while a dictionary was written");
}

/* Whether this is the row that was noted next. */
static bool follows(const rows_hand *h, const tn_dict_entry *e)
{
    const tn_dict_list *l = h->list;
    uint32_t i = h->next;
    if (i == l->n || l->key[i] != e->key || l->group[i] != e->group) {
        return false;
    }
    const tn_dict_plan *p = h->w->plan;
    const tn_dict_set *set = &p->set[p->place_of[l->set[i]]];
    return set->present == (e->removed ? 0 : e->present);
}

static tn_status pack_row(void *visitor, const tn_dict_entry *e, tn_error *err)
{
    rows_hand *h = visitor;
    if (is_left_out(e)) {
        return TN_OK;
    }
    if (!follows(h, e)) {
        return tn_dict_changed(err);
    }
    const tn_dict_plan *p = h->w->plan;
    if (p->table_of[h->list->set[h->next++]] != h->w->table) {
        return TN_OK;
    }
    const tn_dict_plan_table *t = &p->table[h->w->table];
    TN_ASSERT(h->most - h->used >= t->stride);
    char *row = h->rows + h->used;
    h->used += t->stride;
    return tn_dict_row_put(h->w->spec, t, e, row, err);
}

/* Room for all rows that the piece has in the table. */
static tn_status make_room(rows_hand *h, tn_error *err)
{
    const tn_dict_plan *p = h->w->plan;
    size_t rows = tn_dict_rows_of(h->list, p->table_of, h->w->table);
    size_t bytes = rows * p->table[h->w->table].stride;
    if (bytes > h->most) {
        tn_free(h->rows);
        h->most = 0;
        h->rows = tn_try_alloc(bytes, 1, "rows of a dictionary", err);
        if (h->rows == NULL) {
            return TN_E_MEMORY;
        }
        h->most = bytes;
    }
    return TN_OK;
}

static tn_status pack_piece(void *job, uint32_t piece, void *hand, tn_error *err)
{
    tn_dict_writer *w = job;
    rows_hand *h = hand;
    h->w = w;
    h->list = &w->notes.list[piece];
    h->next = 0;
    h->used = 0;
    TN_TRY(make_room(h, err));
    TN_TRY(w->source->walk(w->source->arg, piece, pack_row, h, err));
    return h->next == h->list->n ? TN_OK : tn_dict_changed(err);
}

static tn_status put_piece(void *job, uint32_t piece, void *hand, tn_error *err)
{
    (void)piece;
    tn_dict_writer *w = job;
    const rows_hand *h = hand;
    return tn_dict_put(&w->out, h->rows, h->used, err);
}

static void drop_rows(void *hand)
{
    rows_hand *h = hand;
    tn_free(h->rows);
}

tn_status tn_dict_pass_rows(tn_dict_writer *w, tn_error *err)
{
    tn_inorder how = {.job = w,
                      .hand_bytes = sizeof(rows_hand),
                      .make = pack_piece,
                      .join = put_piece,
                      .drop = drop_rows};
    return walk_all(w, &how, err);
}
