/* kit.c - see kit.h. */
#include "kit.h"
#include "base/math/crc32c.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "ps/optim/optim.h"

#include "ps/optim/schedule.h"

#include "support/test.h"

static const tn_origin nowhere = {.source = "test"};

/* "a,b" is a list, everything else a scalar. */
static tn_tree *value_of(tn_arena *arena, char *text)
{
    char *rest = text;
    if (strchr(text, ',') == NULL) {
        return tn_tree_scalar(arena, text, nowhere);
    }
    tn_tree *list = tn_tree_new(arena, TN_TREE_LIST, nowhere);
    for (char *item = strsep(&rest, ","); item != NULL; item = strsep(&rest, ",")) {
        tn_tree_append(list, tn_tree_scalar(arena, item, nowhere));
    }
    return list;
}

static tn_tree *map_of(tn_arena *arena, const char *options)
{
    tn_tree *map = tn_tree_new(arena, TN_TREE_MAP, nowhere);
    size_t size = strlen(options != NULL ? options : "") + 1;
    char *copy = tn_arena_alloc(arena, size, 1, 1);
    memcpy(copy, options != NULL ? options : "", size);
    for (char *word = strsep(&copy, " "); word != NULL; word = strsep(&copy, " ")) {
        char *value = strchr(word, '=');
        if (value != NULL) {
            *value++ = '\0';
            tn_tree_put(arena, map, word, value_of(arena, value));
        }
    }
    return map;
}

static void *bind(tn_arena *arena, const tn_choice *choice, const char *options)
{
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_binder binder = {.arena = arena, .diag = &diag};
    void *opts = tn_arena_alloc(arena, 1, choice->size, _Alignof(max_align_t));
    tn_fields_bind(&binder, choice->fields, map_of(arena, options), opts);
    fail_if(diag.n_errors > 0, "options of %s: %s", choice->name, diag.text.data);
    return opts;
}

static const tn_optim *find_optim(const char *name)
{
    const tn_optim *const *o = tn_all_optims;
    while (strcmp((*o)->choice.name, name) != 0) {
        o++;
        assert_non_null(*o);
    }
    return *o;
}

tn_rule kit_rule(tn_arena *arena, const char *name, const char *options)
{
    tn_rule rule = {.optim = find_optim(name), .init = {.kind = TN_INIT_CONSTANT}};
    tn_rule_opts *opts = bind(arena, &rule.optim->choice, options);
    rule.opts = opts;
    rule.clip_row = isnan(opts->clip_row) ? (double)INFINITY : opts->clip_row;
    rule.clip_value = isnan(opts->clip_value) ? (double)INFINITY : opts->clip_value;
    return rule;
}

tn_variant kit_schedule(tn_arena *arena, const char *name, const char *options)
{
    for (const tn_choice *const *c = tn_schedule_choices; *c != NULL; c++) {
        if (strcmp((*c)->name, name) == 0) {
            return (tn_variant){.choice = *c, .opts = bind(arena, *c, options)};
        }
    }
    fail_msg("no schedule '%s'", name);
    return (tn_variant){0};
}

kit_model *kit_model_new(tn_arena *arena, const kit_segment *segments, uint32_t n_groups)
{
    kit_model *m = TN_NEW(arena, kit_model);
    tn_record *record = TN_NEW(arena, tn_record);
    tn_share_group *group = TN_NEW_ARRAY(arena, tn_share_group, n_groups);
    for (; segments->name != NULL; segments++) {
        record->segment[record->n_segments++] =
            (tn_segment){.name = segments->name, .at = record->width, .dim = segments->dim};
        record->width += segments->dim;
    }
    for (uint32_t g = 0; g < n_groups; g++) {
        group[g].name = "slot";
    }
    m->layout = (tn_layout){n_groups, group, 1, record};
    m->rule = TN_NEW_ARRAY(arena, tn_rule, (size_t)n_groups * TN_SEGMENTS_MAX);
    m->rules = (tn_rules){.layout = &m->layout, .rule = m->rule, .clip_global = (double)INFINITY};
    return m;
}

kit_model *kit_model_plain(tn_arena *arena, uint32_t dim, tn_rule rule)
{
    kit_segment segments[] = {{"deep", dim}, {NULL, 0}};
    kit_model *m = kit_model_new(arena, segments, 1);
    m->rule[0] = rule;
    return m;
}

tn_table *kit_table(const kit_model *model, uint64_t seed)
{
    tn_table *t = NULL;
    tn_table_opts opts = {.rules = &model->rules, .seed = seed, .huge_pages = true};
    assert_int_equal(tn_table_new(&t, &opts, NULL), TN_OK);
    return t;
}

static const uint32_t all_of_one_peer[] = {0, TN_PARTITIONS};
static const tn_owners one_owner = {1, TN_PARTITIONS, all_of_one_peer};

kit_keys *kit_keys_new(tn_arena *arena, const tn_layout *layout, const uint64_t *keys,
                       const uint16_t *group, uint32_t n)
{
    kit_keys *k = TN_NEW(arena, kit_keys);
    uint64_t *key = TN_NEW_ARRAY(arena, uint64_t, n + 1);
    uint16_t *of = TN_NEW_ARRAY(arena, uint16_t, n + 1);
    uint32_t *at = TN_NEW_ARRAY(arena, uint32_t, n + 1);
    uint32_t *first = TN_NEW_ARRAY(arena, uint32_t, TN_PARTITIONS + 2);
    k->show = TN_NEW_ARRAY(arena, uint32_t, n + 1);
    k->click = TN_NEW_ARRAY(arena, uint32_t, n + 1);
    k->index = TN_NEW_ARRAY(arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        first[tn_partition_of(keys[i], TN_PARTITIONS) + 2]++;
    }
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        first[p + 2] += first[p + 1];
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = first[tn_partition_of(keys[i], TN_PARTITIONS) + 1]++;
        key[to] = keys[i];
        of[to] = group != NULL ? group[i] : 0;
        k->index[i] = to;
        k->show[to] = 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        at[i] = k->n_floats;
        k->n_floats += tn_record_of(layout, of[i])->width;
    }
    k->set = (tn_keyset){.owners = &one_owner,
                         .layout = layout,
                         .n = n,
                         .floats = k->n_floats,
                         .key = key,
                         .group = of,
                         .at = at,
                         .show = k->show,
                         .click = k->click,
                         .first = first};
    return k;
}

void kit_peek(tn_table *t, const tn_layout *layout, uint64_t key, float *row)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 14);
    const kit_keys *k = kit_keys_new(arena, layout, &key, NULL, 1);
    tn_table_peek(t, NULL, &k->set, NULL, row, NULL);
}

typedef struct wanted {
    uint64_t key;
    kit_row *out;
    bool found;
} wanted;

static tn_status take(void *arg, const tn_row_view *view, tn_error *err)
{
    (void)err;
    wanted *w = arg;
    if (view->key == w->key) {
        assert_in_range(view->n_floats, 0, sizeof w->out->data / sizeof w->out->data[0]);
        w->out->view = *view;
        memcpy(w->out->data, view->data, view->n_floats * sizeof(float));
        w->out->view.data = w->out->data;
        w->found = true;
    }
    return TN_OK;
}

bool kit_row_of(tn_table *t, uint64_t key, kit_row *out)
{
    wanted w = {.key = key, .out = out};
    uint32_t partition = tn_partition_of(key, TN_PARTITIONS);
    assert_int_equal(tn_table_walk(t, partition, take, &w, NULL), TN_OK);
    return w.found;
}

tn_push kit_push(uint64_t step)
{
    return (tn_push){.step = step, .weight_sum = 1, .lr_factor = 1, .day = 1};
}

tn_status kit_add_row(void *arg, const tn_row_view *row, tn_error *err)
{
    kit_digest *d = arg;
    if (row->removed) {
        tn_refill r;
        d->removed++;
        assert_int_equal(row->n_floats, 0);
        tn_refill_begin(&r, d->copy, tn_partition_of(row->key, TN_PARTITIONS));
        tn_status status = tn_refill_remove(&r, row->key, row->group, err);
        tn_refill_end(&r);
        return status;
    }
    const uint64_t words[4] = {row->key, row->group, row->present, row->last_seen};
    const double counts[2] = {row->show, row->click};
    d->crc = tn_crc32c(d->crc, words, sizeof words);
    d->crc = tn_crc32c(d->crc, counts, sizeof counts);
    d->crc = tn_crc32c(d->crc, row->data, row->n_floats * sizeof *row->data);
    d->rows++;
    d->waiting += (row->present & 2) == 0;
    return d->copy != NULL ? tn_table_restore(d->copy, row, err) : TN_OK;
}

kit_digest kit_digest_of(tn_table *t)
{
    kit_digest d = {0};
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(tn_table_walk(t, p, kit_add_row, &d, NULL), TN_OK);
    }
    assert_int_equal(d.rows, tn_table_rows(t));
    return d;
}

void kit_same_rows(kit_digest a, kit_digest b)
{
    assert_int_equal(a.rows, b.rows);
    assert_int_equal(a.waiting, b.waiting);
    assert_int_equal(a.crc, b.crc);
}
