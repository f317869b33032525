/* inputs.c - the inputs of a list: which slots take part, and how rows are laid out for them. */
#include "base/core/arena.h"
#include "base/keys/record.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "models/layerlist.h"
#include "nn/layer/layers.h"

#include "base/core/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- reading ---- */

typedef struct input_opts {
    const tn_tree *embed;
    const tn_tree *numeric;
    const tn_tree *cvm;
    uint32_t form; /* form of cvm */
    uint32_t dim;
    uint32_t field_dim;
    const tn_tree *init;
    const char *sequence;
    const char *vectors;
} input_opts;

enum { FORM_LOG, FORM_TENSORNET };
static const char *const form_words[] = {"log", "tensornet", NULL};

static const tn_field input_fields[] = {
    TN_FIELD_TREE(input_opts, embed, "~", "slots whose vectors stand side by side: all, or a list"),
    TN_FIELD_TREE(input_opts, numeric, "~", "numbers and vectors side by side: all, or a list"),
    TN_FIELD_TREE(input_opts, cvm, "~",
                  "slots whose rows' counts stand side by side: all, or a list"),
    TN_FIELD_CHOICE(input_opts, form, "log", form_words,
                    "of cvm: logarithms, or show itself, pooled like the slot"),
    TN_FIELD_U32(input_opts, dim, "0", 0, TN_DIM_MAX, "floats", "width of each slot; 0: its own"),
    TN_FIELD_U32(input_opts, field_dim, "0", 0, TN_DIM_MAX, "floats",
                 "instead of dim: width of a slot's vector for each slot of this input, for ffm"),
    TN_FIELD_TREE(input_opts, init, "~", "first values of this segment"),
    TN_FIELD_STR(input_opts, sequence, "~",
                 "name of a sequence: the vectors of its slots for each position"),
    TN_FIELD_STR(input_opts, vectors, "~",
                 "of embed and sequence: the input whose vectors it takes; ~: its own"),
    TN_FIELD_END,
};

static bool is_all(const tn_tree *tree)
{
    return tree->kind == TN_TREE_SCALAR && strcmp(tree->text, "all") == 0;
}

static bool may_use(const tn_model_slot *slot, const char *input)
{
    for (uint32_t i = 0; i < slot->uses.n; i++) {
        if (strcmp(slot->uses.item[i], input) == 0) {
            return true;
        }
    }
    return slot->uses.n == 0;
}

static bool find_slot(const tn_features *f, const tn_tree *name, tn_diag *diag, uint32_t *out)
{
    const char *text = name->kind == TN_TREE_SCALAR ? name->text : "";
    for (uint32_t i = 0; i < f->n_slots; i++) {
        if (strcmp(f->slot[i].name, text) == 0) {
            *out = i;
            return true;
        }
    }
    const char *names[512];
    uint32_t n = 0;
    for (; n < f->n_slots && n < 512; n++) {
        names[n] = f->slot[n].name;
    }
    const char *near = tn_nearest(text, names, n);
    tn_diag_error(diag, &name->at, "no slot '%s' with keys%s%s%s", text,
                  near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                  near != NULL ? "'?)" : "");
    return false;
}

static bool is_new(const tn_model_input *in, uint32_t item, const tn_tree *name, tn_diag *diag)
{
    for (uint32_t i = 0; i < in->n; i++) {
        if (in->item[i] == item) {
            tn_diag_error(diag, &name->at, "slot '%s' stands twice in input '%s'", name->text,
                          in->name);
            return false;
        }
    }
    return true;
}

static void report_no_slot(const tn_model_input *in, const tn_tree *which, const tn_features *f,
                           tn_diag *diag)
{
    tn_diag_error(diag, &which->at, "input '%s' reads keys, and no slot has any for it", in->name);
    if (f->n_slots == 0) {
        tn_diag_hint(diag,
                     "all slots are numbers for a numeric input; without 'as: value' one is a "
                     "key, a float that of a bucket");
    } else {
        tn_diag_hint(diag, "name '%s' in 'uses' of a slot, or take a model without that input",
                     in->name);
    }
}

/* Reads which slots an embedding input takes. */
static bool read_slots(tn_model_input *in, const tn_tree *which, const tn_features *f,
                       const tn_binder *b)
{
    uint32_t *item = TN_NEW_ARRAY(b->arena, uint32_t, f->n_slots + tn_tree_count(which) + 1);
    in->item = item;
    if (is_all(which)) {
        for (uint32_t i = 0; i < f->n_slots; i++) {
            if (may_use(&f->slot[i], in->name)) {
                item[in->n++] = i;
            }
        }
    } else {
        const tn_tree *name = which->kind == TN_TREE_LIST ? which->first : which;
        for (; name != NULL; name = which->kind == TN_TREE_LIST ? name->next : NULL) {
            if (!find_slot(f, name, b->diag, &item[in->n]) ||
                !is_new(in, item[in->n], name, b->diag)) {
                return false;
            }
            in->n++;
        }
    }
    if (in->n == 0) {
        report_no_slot(in, which, f, b->diag);
        return false;
    }
    return true;
}

/* Widens a slot's vector to `field_dim` floats for each slot. */
static bool widen(tn_model_input *in, uint32_t field_dim, tn_diag *diag)
{
    uint64_t dim = (uint64_t)in->n * field_dim;
    if (in->dim != 0) {
        tn_diag_error(diag, in->at, "input '%s' has 'dim' and 'field_dim'", in->name);
        return false;
    }
    if (dim > TN_DIM_MAX) {
        tn_diag_error(diag, in->at,
                      "input '%s' has %u slots of %u x %u floats, more than the %d of a key",
                      in->name, in->n, in->n, field_dim, TN_DIM_MAX);
        tn_diag_hint(diag,
                     "%u for each slot fit (k of ffm); or list fewer slots, or take the model "
                     "fwfm, whose vectors do not grow with the slots",
                     (uint32_t)TN_DIM_MAX / in->n);
        return false;
    }
    in->dim = (uint32_t)dim;
    return true;
}

static bool read_counts(tn_model_input *in, const input_opts *o, const tn_features *f,
                        const tn_binder *b)
{
    if (o->dim != 0 || o->field_dim != 0 || !tn_tree_is_null(o->init)) {
        tn_diag_error(b->diag, in->at, "counts of input '%s' have no 'dim', 'field_dim' or 'init'",
                      in->name);
        return false;
    }
    in->cvm = true;
    in->dim = TN_COUNTS;
    in->raw_show = o->form == FORM_TENSORNET;
    return read_slots(in, o->cvm, f, b);
}

static bool find_sequence(tn_model_input *in, const char *name, const tn_features *f, tn_diag *diag)
{
    for (uint32_t i = 0; i < f->n_sequences; i++) {
        const tn_model_sequence *s = &f->sequence[i];
        if (strcmp(s->name, name) == 0) {
            in->n = s->n;
            in->item = s->item;
            in->max_len = s->max_len;
            return true;
        }
    }
    const char *names[64];
    uint32_t n = 0;
    for (; n < f->n_sequences && n < 64; n++) {
        names[n] = f->sequence[n].name;
    }
    const char *near = tn_nearest(name, names, n);
    tn_diag_error(diag, in->at, "input '%s' reads sequence '%s', and 'sequences' has none%s%s%s",
                  in->name, name, near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                  near != NULL ? "'?)" : "");
    return false;
}

static bool read_sequence(tn_model_input *in, const input_opts *o, const tn_features *f,
                          const tn_binder *b)
{
    if (o->field_dim != 0) {
        tn_diag_error(b->diag, in->at, "'field_dim' of input '%s' belongs to 'embed'", in->name);
        return false;
    }
    return find_sequence(in, o->sequence, f, b->diag);
}

/* Gives inputs that take another one's vectors its segment. */
static bool share_vectors(tn_model_input *in, const tn_model_inputs *all, tn_diag *diag)
{
    for (uint32_t i = 0; i < all->n; i++) {
        const tn_model_input *of = &all->input[i];
        const bool own = strcmp(of->segment, of->name) == 0;
        if (of != in && own && !of->numeric && !of->cvm && strcmp(of->name, in->segment) == 0) {
            in->dim = of->dim;
            in->init = of->init;
            return true;
        }
    }
    tn_diag_error(diag, in->at, "input '%s' takes vectors of '%s', which has none of its own",
                  in->name, in->segment);
    return false;
}

/* Adds the number of that name to an input, once. */
static bool add_number(tn_model_input *in, uint32_t *item, const tn_tree *t, const tn_features *f,
                       tn_diag *diag)
{
    const char *name = t->kind == TN_TREE_SCALAR ? t->text : "";
    bool again = false;
    uint32_t i = 0;
    while (i < f->n_numbers && strcmp(f->number[i].name, name) != 0) {
        i++;
    }
    for (uint32_t k = 0; k < in->n; k++) {
        again = again || item[k] == i;
    }
    if (i == f->n_numbers || again) {
        tn_diag_error(diag, &t->at,
                      again ? "'%s' stands twice in input '%s'"
                            : "there is no number or vector '%s' for input '%s'",
                      name, in->name);
        return false;
    }
    item[in->n++] = i;
    return true;
}

/* Reads which numbers a numeric input takes. */
static bool read_numbers(tn_model_input *in, const tn_tree *which, const tn_features *f,
                         const tn_binder *b)
{
    const bool all = is_all(which);
    uint32_t *item = TN_NEW_ARRAY(b->arena, uint32_t, f->n_numbers + tn_tree_count(which) + 1);
    in->numeric = true;
    in->item = item;
    if (f->n_numbers == 0 || (!all && (which->kind != TN_TREE_LIST || which->first == NULL))) {
        tn_diag_error(b->diag, &which->at,
                      f->n_numbers == 0
                          ? "there are no numeric columns ('as: value' or 'type: vector')"
                          : "numeric inputs take 'all' or a list of numbers");
        return false;
    }
    for (; all && in->n < f->n_numbers; in->n++) {
        item[in->n] = in->n;
    }
    bool good = true;
    for (const tn_tree *t = all ? NULL : which->first; t != NULL && good; t = t->next) {
        good = add_number(in, item, t, f, b->diag);
    }
    return good;
}

static bool read_input(tn_model_input *in, const tn_tree *tree, const tn_features *f,
                       const tn_binder *b)
{
    input_opts o;
    uint32_t faults = b->diag->n_errors;
    tn_fields_bind(b, input_fields, tree, &o);
    *in = (tn_model_input){.name = tree->key,
                           .dim = o.dim,
                           .init = o.init,
                           .segment = o.vectors != NULL ? o.vectors : tree->key,
                           .at = &tree->key_at};
    if (b->diag->n_errors > faults) {
        return false;
    }
    if (tree->key[0] == '\0' || strlen(tree->key) > TN_LAYER_NAME_MAX - 32) {
        tn_diag_error(b->diag, &tree->key_at, "an input needs a name of 1 to %d bytes",
                      TN_LAYER_NAME_MAX - 32);
        return false;
    }
    const bool has_vectors = !tn_tree_is_null(o.embed) || o.sequence != NULL;
    if (!tn_tree_is_null(o.embed) + !tn_tree_is_null(o.numeric) + !tn_tree_is_null(o.cvm) +
            (o.sequence != NULL) !=
        1) {
        tn_diag_error(b->diag, &tree->key_at,
                      "input '%s' needs one of 'embed', 'numeric', 'cvm' and 'sequence'",
                      tree->key);
        return false;
    }
    if (o.vectors != NULL &&
        (!has_vectors || o.dim != 0 || o.field_dim != 0 || !tn_tree_is_null(o.init))) {
        tn_diag_error(b->diag, &tree->key_at,
                      "'vectors' of input '%s' are another's: it has 'embed' or 'sequence', and no "
                      "'dim', 'field_dim' or 'init'",
                      tree->key);
        return false;
    }
    if (!tn_tree_is_null(o.cvm)) {
        return read_counts(in, &o, f, b);
    }
    if (o.form != FORM_LOG) {
        tn_diag_error(b->diag, &tree->key_at, "'form' of input '%s' belongs to 'cvm'", tree->key);
        return false;
    }
    if (o.sequence != NULL) {
        return read_sequence(in, &o, f, b);
    }
    if (!tn_tree_is_null(o.embed)) {
        return read_slots(in, o.embed, f, b) &&
               (o.field_dim == 0 || widen(in, o.field_dim, b->diag));
    }
    return read_numbers(in, o.numeric, f, b);
}

const tn_model_inputs *tn_inputs_read(const tn_tree *list, const tn_features *features,
                                      const tn_binder *b)
{
    const tn_tree *inputs = tn_tree_get(list, "inputs");
    if (inputs == NULL || inputs->kind != TN_TREE_MAP || inputs->first == NULL) {
        tn_diag_error(b->diag, inputs != NULL ? &inputs->at : &list->at,
                      "a model needs 'inputs': {name: {embed: all}}");
        return NULL;
    }
    tn_model_inputs *out = TN_NEW(b->arena, tn_model_inputs);
    tn_model_input *input = TN_NEW_ARRAY(b->arena, tn_model_input, tn_tree_count(inputs));
    out->input = input;
    bool good = true;
    uint32_t n_counts = 0;
    for (const tn_tree *t = inputs->first; t != NULL; t = t->next) {
        good = read_input(&input[out->n], t, features, b) && good;
        n_counts += input[out->n++].cvm;
        if (n_counts == 2) {
            tn_diag_error(b->diag, &t->key_at, "input '%s' is the second with 'cvm'; one takes all",
                          t->key);
            return NULL;
        }
    }
    for (uint32_t i = 0; good && i < out->n; i++) {
        const bool other = strcmp(input[i].segment, input[i].name) != 0;
        good = !other || share_vectors(&input[i], out, b->diag);
    }
    return good ? out : NULL;
}

/* ---- laying out rows ---- */

/* Adds segment `name` of `dim` to a group's record; the same name must have the same width. */
static bool add_segment(tn_record *r, const tn_model_input *in, uint32_t dim,
                        const tn_model_slot *slot, tn_diag *diag)
{
    for (uint32_t i = 0; i < r->n_segments; i++) {
        if (strcmp(r->segment[i].name, in->segment) == 0) {
            if (r->segment[i].dim == dim) {
                return true;
            }
            tn_diag_error(diag, in->at, "slot '%s' shares vectors of '%s' that are %u wide, not %u",
                          slot->name, in->segment, r->segment[i].dim, dim);
            return false;
        }
    }
    if (r->n_segments == TN_SEGMENTS_MAX) {
        tn_diag_error(diag, in->at, "slot '%s' feeds more than %d inputs", slot->name,
                      TN_SEGMENTS_MAX);
        return false;
    }
    r->segment[r->n_segments++] = (tn_segment){.name = in->segment, .at = r->width, .dim = dim};
    r->width += dim;
    return true;
}

/* Adds the counts of a group's rows, once all its segments are there. */
static bool add_counts(tn_record *r, const tn_model_input *in, const tn_model_slot *slot,
                       tn_diag *diag)
{
    if (r->n_segments == 0 || r->n_segments == TN_SEGMENTS_MAX) {
        tn_diag_error(diag, in->at,
                      r->n_segments == 0 ? "input '%s' reads counts of slot '%s', which no "
                                           "embedding input takes"
                                         : "with input '%s' slot '%s' feeds too many",
                      in->name, slot->name);
        return false;
    }
    if (r->counts.dim == 0) {
        r->counts = (tn_segment){.name = in->name, .at = r->width, .dim = TN_COUNTS};
        r->raw_show = in->raw_show;
        r->width += TN_COUNTS;
    }
    return true;
}

static bool same_record(const tn_record *a, const tn_record *b)
{
    bool same =
        a->n_segments == b->n_segments && a->counts.dim == b->counts.dim && a->waits == b->waits;
    for (uint32_t i = 0; same && i < a->n_segments; i++) {
        same = a->segment[i].dim == b->segment[i].dim &&
               strcmp(a->segment[i].name, b->segment[i].name) == 0;
    }
    return same;
}

/* Makes one record per kind of group: equal segments and equal class. */
static void share_records(tn_layout *layout, tn_share_group *group, const tn_record *of_group,
                          tn_record *record, const tn_features *f)
{
    for (uint32_t g = 0; g < f->n_groups; g++) {
        uint32_t h = 0;
        while (h < g && !(f->group_class[h] == f->group_class[g] &&
                          same_record(&of_group[h], &of_group[g]))) {
            h++;
        }
        if (h < g) {
            group[g].record = group[h].record;
        } else {
            group[g].record = layout->n_records;
            record[layout->n_records++] = of_group[g];
        }
    }
}

tn_pool tn_input_pool(const tn_model_input *in, const tn_model_slot *slot)
{
    return in->cvm && !in->raw_show ? TN_POOL_MEAN : slot->pool;
}

uint64_t tn_input_cols(const tn_model_input *in, const tn_features *f)
{
    uint64_t cols = 0;
    for (uint32_t k = 0; in->numeric && k < in->n; k++) {
        cols += f->number[in->item[k]].cols;
    }
    for (uint32_t k = 0; !in->numeric && k < in->n; k++) {
        const tn_model_slot *slot = &f->slot[in->item[k]];
        cols += (uint64_t)(in->dim != 0 ? in->dim : slot->dim) *
                (in->max_len == 0 && tn_input_pool(in, slot) == TN_POOL_CONCAT ? slot->pool_k : 1);
    }
    return cols;
}

static bool add_slots(tn_record *of_group, const tn_model_input *in, const tn_features *f,
                      tn_diag *diag)
{
    bool good = true;
    for (uint32_t k = 0; !in->numeric && k < in->n; k++) {
        const tn_model_slot *slot = &f->slot[in->item[k]];
        tn_record *r = &of_group[slot->group];
        good = (in->cvm ? add_counts(r, in, slot, diag)
                        : add_segment(r, in, in->dim != 0 ? in->dim : slot->dim, slot, diag)) &&
               good;
    }
    return good;
}

static bool is_embedding(const tn_model_inputs *inputs, const char *name)
{
    bool is = false;
    for (uint32_t i = 0; i < inputs->n; i++) {
        const tn_model_input *in = &inputs->input[i];
        is = is || (!in->numeric && !in->cvm && strcmp(in->segment, name) == 0);
    }
    return is;
}

static bool check_waits(const tn_group_waits *waits, const tn_model_inputs *inputs, tn_diag *diag)
{
    for (uint32_t u = 0; waits->any && u < waits->uses.n; u++) {
        if (!is_embedding(inputs, waits->uses.item[u])) {
            tn_diag_error(diag, waits->at,
                          "admission: 'uses' names '%s', which is no embedding "
                          "input of the model",
                          waits->uses.item[u]);
            return false;
        }
    }
    return true;
}

/* Sets which of a record's segments wait for admission. */
static bool add_waits(tn_record *of_group, const tn_model_inputs *inputs, const tn_features *f,
                      tn_diag *diag)
{
    bool good = true;
    for (uint32_t g = 0; good && f->waits != NULL && g < f->n_groups; g++) {
        const tn_group_waits *waits = &f->waits[g];
        tn_record *r = &of_group[g];
        good = check_waits(waits, inputs, diag);
        for (uint32_t s = 0; waits->any && s < r->n_segments; s++) {
            const bool named = tn_strs_has(&waits->uses, r->segment[s].name);
            if (waits->uses.n == 0 || named) {
                r->waits |= (uint16_t)(1U << s);
            }
        }
    }
    return good;
}

const tn_layout *tn_layout_make(const tn_model_inputs *inputs, const tn_features *f,
                                const tn_binder *b)
{
    tn_record *of_group = TN_NEW_ARRAY(b->arena, tn_record, f->n_groups);
    bool good = true;
    for (uint32_t i = 0; i < inputs->n; i++) {
        const tn_model_input *in = &inputs->input[i];
        const uint64_t cols = tn_input_cols(in, f);
        good = (in->cvm || add_slots(of_group, in, f, b->diag)) && good;
        if (cols > TN_COLS_MAX) {
            tn_diag_error(b->diag, in->at, "input '%s' has %" PRIu64 " columns, more than %d",
                          in->name, cols, TN_COLS_MAX);
            good = false;
        }
    }
    for (uint32_t i = 0; i < inputs->n; i++) {
        const tn_model_input *in = &inputs->input[i];
        good = (!in->cvm || add_slots(of_group, in, f, b->diag)) && good;
    }
    if (!good || !add_waits(of_group, inputs, f, b->diag)) {
        return NULL;
    }
    tn_layout *layout = TN_NEW(b->arena, tn_layout);
    tn_share_group *group = TN_NEW_ARRAY(b->arena, tn_share_group, f->n_groups);
    tn_record *record = TN_NEW_ARRAY(b->arena, tn_record, f->n_groups);
    memcpy(group, f->group, f->n_groups * sizeof *group);
    layout->n_groups = f->n_groups;
    layout->group = group;
    layout->record = record;
    share_records(layout, group, of_group, record, f);
    return layout;
}

/* ---- first values ---- */

typedef struct init_word {
    const char *name;
    tn_init_kind kind;
    uint32_t n_args;
} init_word;

static const init_word init_words[] = {
    {"constant", TN_INIT_CONSTANT, 1},
    {"uniform", TN_INIT_UNIFORM, 2},
    {"normal", TN_INIT_NORMAL, 2},
    {"truncated", TN_INIT_TRUNCATED, 2},
    {"glorot_uniform", TN_INIT_GLOROT_UNIFORM, 0},
    {"xavier_normal", TN_INIT_XAVIER_NORMAL, 0},
    {"he_uniform", TN_INIT_HE_UNIFORM, 0},
    {"he_normal", TN_INIT_HE_NORMAL, 0},
};

enum { N_INIT_WORDS = sizeof init_words / sizeof init_words[0] };

static const init_word *find_init(const char *name)
{
    for (uint32_t i = 0; i < N_INIT_WORDS; i++) {
        if (strcmp(init_words[i].name, name) == 0) {
            return &init_words[i];
        }
    }
    return NULL;
}

/* Reads `n` numbers from a scalar or a list. */
static bool read_args(const tn_tree *tree, uint32_t n, tn_diag *diag, double out[2])
{
    static const tn_field number = {.kind = TN_KIND_F64, .key = "init", .min = -1e30, .max = 1e30};
    const tn_binder b = {.arena = NULL, .diag = diag};
    bool list = tree->kind == TN_TREE_LIST;
    const tn_tree *item = list ? tree->first : tree;
    if ((list ? tn_tree_count(tree) : 1) != n) {
        tn_diag_error(diag, &tree->at, "expected %u number%s", n, n == 1 ? "" : "s");
        return false;
    }
    for (uint32_t i = 0; i < n; i++, item = item->next) {
        if (!tn_read_scalar(&b, &number, item, &out[i])) {
            return false;
        }
    }
    return true;
}

bool tn_init_read(const tn_tree *tree, tn_diag *diag, tn_init *out)
{
    double args[2] = {0, 0};
    const init_word *word = &init_words[0];
    if (tree->kind == TN_TREE_MAP && tn_tree_count(tree) == 1) {
        word = find_init(tree->first->key);
        if (word != NULL && word->n_args > 0 && !read_args(tree->first, word->n_args, diag, args)) {
            return false;
        }
    } else if (tree->kind == TN_TREE_SCALAR && find_init(tree->text) != NULL) {
        word = find_init(tree->text);
        if (word->n_args > 0) {
            word = NULL;
        }
    } else if (tree->kind != TN_TREE_SCALAR || !read_args(tree, 1, diag, args)) {
        word = NULL;
    }
    if (word == NULL) {
        tn_diag_error(diag, &tree->at,
                      "expected a number, {uniform: [a, b]}, {normal: [mean, deviation]}, "
                      "{truncated: [..]}, glorot_uniform, xavier_normal, he_uniform or he_normal");
        return false;
    }
    *out = (tn_init){.kind = word->kind, .a = args[0], .b = args[1]};
    return true;
}
