/* test_tnet_many.c - libtnet: rows that share values score as the same rows, each whole. */
#include "serve/tnet.h"

#include "support/test.h"

#include "exportkit.h"
#include "support/mallocs.h"

#include <pthread.h>

enum { COLUMNS = 17, LINES = 8, COPIES = 70 /* of each line: more rows than go through at once */ };

/* Of the kit's lines; fields but for the label and weights. */
static const char *const columns[COLUMNS] = {
    "label", "user", "item",  "hist",   "tags",  "weights", "seq",   "top",  "topx",
    "gone",  "age",  "count", "amount", "price", "height",  "speed", "drift"};

typedef struct fixture {
    exportkit kit;
    tnet_model *model;
    tnet_scorer *scorer;
} fixture;

static fixture f;

static void good(int code, const tnet_error *err)
{
    fail_if(code != TNET_OK, "%d: %s", code, err->text);
}

static void open_model(const char *model, const char *const *overrides)
{
    tnet_error err;
    exportkit_open(&f.kit, model, overrides);
    exportkit_train(&f.kit);
    const tn_exported out = exportkit_export(&f.kit);
    good(tnet_open(out.path, TNET_VERIFY_FULL, &f.model, &err), &err);
    good(tnet_scorer_new(f.model, &f.scorer, &err), &err);
}

static void close_model(void)
{
    tnet_scorer_free(f.scorer);
    tnet_close(f.model);
    exportkit_close(&f.kit);
}

/* Adds column `c` of a line to the open row. */
static int add_cell(tnet_scorer *s, const char *line, uint32_t c, tnet_error *err)
{
    char cell[2][64];
    const char *at = line;
    for (uint32_t k = 0; k < c; k++) {
        at += strcspn(at, ",\n") + 1;
    }
    for (uint32_t k = 0; k < 2; k++, at += *at == ',') {
        (void)snprintf(cell[k], sizeof cell[k], "%.*s", (int)strcspn(at, ",\n"), at);
        at += strcspn(at, ",\n");
    }
    const int field = tnet_field(f.model, columns[c]);
    const char *x = c == 4 || c == 7 ? cell[1] : "";
    int code = TNET_OK;
    for (const char *v = cell[0]; field >= 0 && *v != '\0' && code == TNET_OK;) {
        size_t size = strcspn(v, "|");
        float weight = 1;
        if (*x != '\0') {
            assert_int_equal(sscanf(x, "%f", &weight), 1); /* NOLINT */
            x += strcspn(x, "|");
            x += *x == '|';
        }
        code = tnet_add_text(s, field, v, size, weight, err);
        v += size;
        v += *v == '|';
    }
    return code;
}

/* Those columns of a line that `shared` has, or those that it has not. */
static void add_part(tnet_scorer *s, const char *line, uint32_t shared, bool wanted)
{
    tnet_error err;
    for (uint32_t c = 1; c < COLUMNS; c++) {
        if (((shared >> c & 1) != 0) == wanted) {
            good(add_cell(s, line, c, &err), &err);
        }
    }
}

static void add_shared(tnet_scorer *s, uint32_t user, uint32_t shared)
{
    tnet_error err;
    tnet_clear(s);
    good(tnet_begin_shared(s, &err), &err);
    add_part(s, exportkit_edge_lines[user], shared, true);
    good(tnet_end_row(s, &err), &err);
}

static void add_row(tnet_scorer *s, uint32_t item, uint32_t shared)
{
    tnet_error err;
    good(tnet_begin_row(s, &err), &err);
    add_part(s, exportkit_edge_lines[item], shared, false);
    good(tnet_end_row(s, &err), &err);
}

/* Columns of one line with the rest of every other, shared and as whole rows. */
static void compare(const char *what, uint32_t user, uint32_t shared)
{
    float many[LINES];
    float whole[LINES];
    float click[LINES];
    tnet_error err;
    tnet_scorer *s = f.scorer;
    add_shared(s, user, shared);
    for (uint32_t i = 0; i < LINES; i++) {
        add_row(s, i, shared);
    }
    assert_int_equal(tnet_row_count(s), LINES);
    good(tnet_score_many(s, many, click, &err), &err);
    tnet_clear(s);
    for (uint32_t i = 0; i < LINES; i++) {
        good(tnet_begin_row(s, &err), &err);
        add_part(s, exportkit_edge_lines[user], shared, true);
        add_part(s, exportkit_edge_lines[i], shared, false);
        good(tnet_end_row(s, &err), &err);
    }
    good(tnet_score(s, whole, NULL, &err), &err);
    for (uint32_t i = 0; i < LINES; i++) {
        fail_if(!(fabsf(many[i] - whole[i]) <= 1e-5F * fmaxf(1, fabsf(whole[i]))),
                "%s: shared %x of line %u, rest of %u: %.9g, whole %.9g", what, shared, user, i,
                (double)many[i], (double)whole[i]);
        assert_true(fabsf(click[i] - 1 / (1 + expf(-many[i]))) <= 1e-6F);
    }
    tnet_clear(s);
}

enum {
    MIXED = 1 << 1 | 1 << 3 | 1 << 4 | 1 << 10 | 1 << 13, /* user hist tags age price */
    FIRST = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4,            /* slots side by side */
    NUMBERS = 1 << 13 | 1 << 14 | 1 << 16,
    RULED = 1 << 9 | 1 << 3 | 1 << 7, /* gone, whose absent key counts; hist, cut; top, a maximum */
    ALL = 0x1fffe,
};
static const uint32_t parts[] = {0, MIXED, FIRST, NUMBERS, RULED, ALL & ~4U, ALL};

static void compare_parts(const char *what)
{
    for (uint32_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (uint32_t user = 0; user < LINES; user++) {
            compare(what, user, parts[i]);
        }
    }
}

static const char sums[] = "slots.hist.pool=sum";
static const char *const few[] = {sums, "slots.tags.pool=sum", NULL};
static const char *const all[] = {sums, "slots.tags.pool=sum", "slots.seq.pool=sum",
                                  "slots.top.pool=sum", NULL};

static const char *const histories[] = {
    "sequences={seen: {slots: [hist], target: [item], max_len: 3}}", NULL};

/* Crosses of slots that are shared, that are of rows, and of both; gone has a key where it is
 * absent. */
static const char *const crossed[] = {
    "slots=[{name: user}, {name: item, type: str, share: item}, {name: hist, type: str, share: "
    "item, max_len: 3}, {name: gone, type: hex, absent: key}, {name: ui, cross: [user, item]}, "
    "{name: uh, cross: [hist, user]}, {name: gi, cross: [gone, item]}, {name: all, cross: [item, "
    "hist, gone]}, {name: price, type: float, as: value}]",
    NULL};

/* Every model, and the layers that lay slots side by side, cut them, or read their rows again. */
static const struct {
    const char *model;
    const char *const *overrides;
} models[] = {
    {"{type: lr}", NULL},
    {"{type: fm, within_slot: true, slots: {deep: [user, item, hist, tags, amount]}}", few},
    {"{type: ffm, k: 3, slots: {deep: [user, item, hist, tags, amount]}}", few},
    {"{type: ffm, within_slot: true, normalise: true, slots: {deep: [user, item, tags]}}", few},
    {"{type: fwfm, normalise: true, linear: per_field}", all},
    {"{type: widedeep, hidden: [16, 8], batch_norm: true}", NULL},
    {"{type: deepfm, hidden: [16], slots: {deep: [user, item, hist, tags, amount]}}", few},
    {"{type: dcn, hidden: [16]}", NULL},
    {"{type: dcnv2, hidden: [16]}", NULL},
    {"{type: gdcn, hidden: [4], layers: 2}", NULL},
    {"{type: nfm, hidden: [4]}", all},
    {"{type: ipnn, hidden: [4]}", all},
    {"{type: dlrm, hidden: [4], bottom: [3], interaction: cat}", NULL},
    {"{type: deepcrossing, hidden: [4, 4], batch_norm: true}", NULL},
    {"{type: finalmlp, hidden: [8], hidden2: [4], heads: 2, gate_hidden: [3], context1: [user]}",
     NULL},
    {"{type: finalnet, hidden: [6, 4], batch_norm: true}", NULL},
    {"{type: masknet, hidden: [4], blocks: 2, block_units: 3}", NULL},
    {"{type: xdeepfm, hidden: [4], cin: [3], slots: {deep: [user, item, hist, tags, amount]}}",
     few},
    {"{type: fibinet, hidden: [4], bilinear: each, slots: {deep: [user, item, hist, amount]}}",
     few},
    {"{type: onn, hidden: [4], k: 2}", all},
    {"{type: autoint, hidden: [4], layers: 1, units: 6}", all},
    {"{type: afm, attention: 3, slots: {deep: [user, item, hist, tags, amount]}}", few},
    {"{type: edcn, layers: 2}", all},
    {"{type: fcn, layers: 1, shallow: 2}", NULL},
    {"{type: dcnmix, hidden: [4], layers: 1, rank: 2, experts: 3}", NULL},
    {"{type: din, hidden: [4], attention: {hidden: [3]}}", histories},
    {"{type: bst, hidden: [4], attention: {heads: 1}}", histories},
    {"{type: widedeep, hidden: [4]}", crossed},
    {"{type: graph, inputs: {deep: {embed: [user, item, hist]}, wide: {embed: all, dim: 1}, num: "
     "{numeric: all}}, layers: "
     "[{name: x, concat: [deep, num]}, {name: cut, slice: x, first: 2, cols: 7}, {name: own, "
     "dense: "
     "cut, units: 4}, {name: twice, concat: [x, deep, own, wide]}, {name: out, dense: twice, "
     "units: 1}], "
     "output: out}",
     NULL},
};

TEST(what_is_shared_scores_as_in_whole_rows)
{
    for (uint32_t i = 0; i < sizeof models / sizeof *models; i++) {
        open_model(models[i].model, models[i].overrides);
        compare_parts(models[i].model);
        close_model();
    }
}

static int set_up(void **state)
{
    (void)state;
    open_model("{type: widedeep, hidden: [16, 8]}", NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_model();
    return 0;
}

/* Other rows, their number and their order change no bit. */
TEST_WITH(set_up, tear_down, a_score_depends_on_its_own_row_alone)
{
    static float many[LINES * COPIES];
    float one;
    tnet_error err;
    add_shared(f.scorer, 0, MIXED);
    for (uint32_t i = 0; i < LINES * COPIES; i++) {
        add_row(f.scorer, i * 3 % LINES, MIXED);
    }
    good(tnet_score_many(f.scorer, many, NULL, &err), &err);
    for (uint32_t item = 0; item < LINES; item++) {
        add_shared(f.scorer, 0, MIXED);
        add_row(f.scorer, item, MIXED);
        good(tnet_score_many(f.scorer, &one, NULL, &err), &err);
        for (uint32_t i = 0; i < LINES * COPIES; i++) {
            assert_true(i * 3 % LINES != item || many[i] == one);
        }
    }
    tnet_clear(f.scorer);
}

/* Another user, another split and plain rows in between: nothing is left of what was before. */
TEST_WITH(set_up, tear_down, a_scorer_forgets_what_was_shared)
{
    tnet_error err;
    float first[LINES] = {0};
    float again[LINES] = {0};
    float plain;
    for (uint32_t round = 0; round < 2; round++) {
        add_shared(f.scorer, 0, MIXED);
        for (uint32_t i = 0; i < LINES; i++) {
            add_row(f.scorer, i, MIXED);
        }
        good(tnet_score_many(f.scorer, round == 0 ? first : again, NULL, &err), &err);
        compare("in between", 3, FIRST);
        good(tnet_begin_shared(f.scorer, &err), &err); /* dropped: its fields are free again */
        add_part(f.scorer, exportkit_edge_lines[5], MIXED, true);
        tnet_drop_row(f.scorer);
        good(tnet_begin_row(f.scorer, &err), &err);
        add_part(f.scorer, exportkit_edge_lines[1], ALL, true);
        good(tnet_end_row(f.scorer, &err), &err);
        good(tnet_score(f.scorer, &plain, NULL, &err), &err);
        good(tnet_score_many(f.scorer, &again[1], NULL, &err), &err);
        assert_memory_equal(&again[1], &plain, sizeof plain); /* nothing shared: the same */
    }
    add_shared(f.scorer, 0, MIXED);
    for (uint32_t i = 0; i < LINES; i++) {
        add_row(f.scorer, i, MIXED);
    }
    good(tnet_score_many(f.scorer, again, NULL, &err), &err);
    assert_memory_equal(first, again, sizeof first);
    tnet_clear(f.scorer);
}

static void refused(int code, const char *why, const tnet_error *err)
{
    assert_int_equal(code, TNET_E_USAGE);
    assert_string_equal(err->text, why);
}

TEST_WITH(set_up, tear_down, a_field_is_shared_or_of_rows)
{
    tnet_error err;
    float logit;
    tnet_scorer *s = f.scorer;
    const int user = tnet_field(f.model, "user");
    const int price = tnet_field(f.model, "price");
    static const char once[] = "what rows share comes once, before the first of them";
    good(tnet_begin_shared(s, &err), &err);
    refused(tnet_begin_shared(s, &err), "a row is open already", &err);
    refused(tnet_score_many(s, &logit, NULL, &err), "a row is still open", &err);
    good(tnet_add_id(s, user, 1, 1, &err), &err);
    good(tnet_add_number(s, price, 2, &err), &err);
    assert_int_equal(tnet_add_number(s, price, 2, &err), TNET_E_DATA);
    good(tnet_end_row(s, &err), &err);
    assert_int_equal(tnet_row_count(s), 0);
    refused(tnet_begin_shared(s, &err), once, &err);
    good(tnet_score_many(s, &logit, NULL, &err), &err); /* no rows: nothing to do */
    good(tnet_begin_row(s, &err), &err);
    refused(tnet_add_id(s, user, 1, 1, &err), "the field is one that all rows share", &err);
    refused(tnet_add_number(s, price, 1, &err), "the field is one that all rows share", &err);
    good(tnet_add_text(s, tnet_field(f.model, "item"), "a1", 2, 1, &err), &err);
    good(tnet_end_row(s, &err), &err);
    refused(tnet_score(s, &logit, NULL, &err),
            "rows that share values are scored by tnet_score_many", &err);
    good(tnet_score_many(s, NULL, NULL, &err), &err);
    tnet_clear(s);
    good(tnet_begin_row(s, &err), &err);
    good(tnet_end_row(s, &err), &err);
    refused(tnet_begin_shared(s, &err), once, &err);
    tnet_clear(s);
}

TEST_WITH(set_up, tear_down, a_warm_call_allocates_nothing)
{
    float logit[LINES];
    tnet_error err;
    uint64_t before = 0;
    for (uint32_t round = 0; round < 12; round++) {
        before = round == 4 ? tn_mallocs() : before;
        add_shared(f.scorer, round % 2, MIXED);
        for (uint32_t i = 0; i < LINES; i++) {
            add_row(f.scorer, i, MIXED);
        }
        good(tnet_score_many(f.scorer, logit, NULL, &err), &err);
    }
    assert_int_equal(tn_mallocs() - before, 0);
    tnet_clear(f.scorer);
}

/* Scorers of one model, whose graphs for such rows are made at the same time. */
static void *score_alone(void *arg)
{
    tnet_error err;
    tnet_scorer *s = arg;
    float logit[LINES];
    add_shared(s, 0, MIXED);
    for (uint32_t i = 0; i < LINES; i++) {
        add_row(s, i, MIXED);
    }
    good(tnet_score_many(s, logit, NULL, &err), &err);
    return NULL;
}

TEST_WITH(set_up, tear_down, scorers_of_one_model_work_side_by_side)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    tnet_scorer *s[THREADS];
    tnet_error err;
    for (uint32_t i = 0; i < THREADS; i++) {
        good(tnet_scorer_new(f.model, &s[i], &err), &err);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, score_alone, s[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        tnet_scorer_free(s[i]);
    }
}
