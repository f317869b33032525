/* test_inspect.c - counts of different and frequent values; the report on known rows. */
#include "base/codec/json.h"
#include "extra/inspect/inspect_sketch.h"
#include "extra/inspect/inspect_stat.h"
#include "io/datasets.h"
#include "io/read/row_scan.h"
#include "io/rows/rows.h"
#include "io/schema/schema.h"
#include "support/test.h"

static uint64_t counted(uint32_t n, uint32_t times, bool *exact)
{
    tn_distinct *d FREED(tn_free) = tn_alloc(1, sizeof *d, "keys");
    for (uint32_t k = 0; k < times; k++) {
        for (uint32_t i = 0; i < n; i++) {
            tn_distinct_add(d, tn_mix(i));
        }
    }
    uint64_t count = tn_distinct_count(d, exact);
    tn_distinct_done(d);
    return count;
}

TEST(few_keys_are_counted_exactly_and_many_closely)
{
    bool exact = false;
    assert_int_equal(counted(0, 1, &exact), 0);
    assert_int_equal(counted(1000, 3, &exact), 1000); /* mix(0) is 0, the mark of a free place */
    assert_true(exact);
    assert_int_equal(counted(65536, 2, &exact), 65536);
    assert_true(exact);
    double many = (double)counted(65537, 2, &exact);
    assert_false(exact);
    assert_true(fabs(many / 65537 - 1) < 0.03);
    many = (double)counted(1000000, 1, &exact);
    assert_true(fabs(many / 1e6 - 1) < 0.03); /* four standard errors */
}

TEST(frequent_keys_are_found_among_many)
{
    tn_top *t FREED(tn_free) = tn_alloc(1, sizeof *t, "keys");
    for (uint32_t i = 0; i < 200000; i++) {
        tn_top_add(t, tn_mix(1000 + i), "rare", 4);
        if (i % 4 == 0) {
            tn_top_add(t, 17, "fourth", 6);
        }
        if (i % 10 == 0) {
            tn_top_add(t, 18, "tenth", 5);
        }
    }
    tn_top_add(t, 19, NULL, 0); /* an empty text in a block without any */
    assert_true(tn_top_sort(t) >= 2);
    const tn_top_item *item = t->kept;
    uint64_t missed = t->missed;
    assert_int_equal(item[0].key, 17);
    assert_int_equal(item[1].key, 18);
    assert_memory_equal(item[0].text, "fourth", 6);
    assert_in_range(item[0].count, 50000 - missed, 50000);
    assert_in_range(item[1].count, 20000 - missed, 20000);
    assert_true(missed < 1000);
    tn_top_done(t);
}

TEST(short_streams_take_little_memory)
{
    tn_distinct d = {.n = 0};
    tn_top t = {.n = 0};
    for (uint32_t i = 0; i < 500; i++) {
        tn_distinct_add(&d, tn_mix(i + 1));
        tn_top_add(&t, tn_mix(i + 1), NULL, 0);
    }
    assert_in_range(d.places * sizeof *d.set + t.places * sizeof *t.item, 1, 1 << 17);
    assert_null(d.rank);
    tn_distinct_done(&d);
    tn_top_done(&t);
}

typedef struct counting {
    tn_stat *stat;
    tn_team *team;
} counting;

static tn_status count_block(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    counting *c = ctx;
    return tn_stat_add(c->stat, block->rows, c->team, err);
}

static tn_stat *stat_of(datasets *d, const char *yaml, const char *text)
{
    tn_dataset *set = datasets_bind(d, yaml, TN_DATASET_AS_READ);
    datasets_write(d, "in", text, strlen(text));
    const char *path = datasets_path(d, "in");
    const tn_strs paths = {1, &path};
    counting c = {.team = d->team};
    assert_int_equal(tn_stat_new(&c.stat, set->schema, NULL), TN_OK);
    const tn_row_scan_in in = {
        .schema = set->schema, .paths = &paths, .keep = TN_ROWS_SIGNS, .team = d->team};
    const tn_row_scan_visitor visitor = {.ctx = &c, .block = count_block};
    tn_row_scan_counts n;
    assert_ok(tn_row_scan_run(&in, &visitor, &n, &d->err), d->err.text);
    return c.stat;
}

static const char rows[] = "label,w,a,t,p,c\n"
                           "1,1,7,x|y|x,1.5,100\n"
                           "0,0,,,,\n"
                           "0.75,2,7,x,-2,3\n"
                           "0,1,9,z,4,\n";
static const char config[] =
    "{data: {format: csv, weight: w}, slots: [{name: a}, {name: t, type: str, list: \"|\"}, "
    "{name: p, type: float, as: value, absent: 9}, {name: c, type: int, transform: ln2_bucket}]}";

static const tn_json *parsed(datasets *d, tn_stat *stat)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    const tn_json *out = NULL;
    tn_stat_json(stat, 2, &text);
    assert_int_equal(tn_json_parse(&out, text.data, text.size, d->arena, "stat", &d->err), TN_OK);
    return out;
}

static uint64_t member(const tn_json *object, const char *key)
{
    uint64_t value = 0;
    assert_true(tn_json_as_u64(tn_json_get(object, key), &value));
    return value;
}

static double real(const tn_json *object, const char *key)
{
    double value = 0;
    assert_true(tn_json_as_f64(tn_json_get(object, key), &value));
    return value;
}

TEST(a_report_counts_rows_and_slots)
{
    OPEN(datasets, d, 2);
    tn_stat *stat = stat_of(&d, config, rows);
    const tn_json *all = parsed(&d, stat);
    assert_int_equal(member(all, "rows"), 4);
    assert_int_equal(member(all, "clicks"), 2);
    assert_int_equal(member(all, "soft"), 1);
    assert_int_equal(member(all, "zero_weight"), 1);
    assert_true(real(all, "label_mean") == 0.4375);
    assert_true(real(all, "weight_mean") == 1);
    const tn_json *a = tn_json_get(all, "slots")->first;
    assert_int_equal(member(a, "filled"), 3);
    assert_int_equal(member(a, "distinct"), 2);
    const tn_json *t = a->next;
    assert_int_equal(member(t, "filled"), 3);
    assert_int_equal(member(t, "values"), 5);
    assert_int_equal(member(t, "values_max"), 3);
    assert_int_equal(member(t, "distinct"), 3);
    assert_string_equal(tn_json_as_str(tn_json_get(tn_json_get(t, "top")->first, "value")), "x");
    assert_int_equal(member(tn_json_get(t, "top")->first, "count"), 3);
    const tn_json *p = tn_json_get(t->next, "numbers");
    assert_int_equal(member(p, "n"), 3); /* the missing one does not count as 9 */
    assert_true(real(p, "min") == -2 && real(p, "max") == 4);
    const tn_json *c = tn_json_get(t->next->next, "numbers");
    assert_true(real(c, "max") == 100); /* before the transform */
    tn_stat_free(stat);
}

TEST(different_numbers_are_counted_rather_than_their_buckets)
{
    OPEN(datasets, d, 1);
    tn_stat *stat = stat_of(&d, "{data: {format: csv}, slots: [{name: p, type: float}]}",
                            "label,p\n0,1700000090\n0,1700000091\n1,0.5\n0,.50\n1,0\n1,-0\n");
    const tn_json *p = tn_json_get(parsed(&d, stat), "slots")->first;
    assert_int_equal(member(p, "distinct"), 4);
    assert_int_equal(member(p, "values"), 6);
    tn_stat_free(stat);
}

TEST(bounds_cut_into_equal_parts)
{
    OPEN(datasets, d, 1);
    tn_text csv CLEANUP(tn_text_done) = {0};
    tn_text_adds(&csv, "label,p\n");
    for (uint32_t i = 0; i < 1000; i++) {
        tn_text_addf(&csv, "0,%u\n", i < 500 ? 0 : i);
    }
    tn_stat *stat =
        stat_of(&d, "{data: {format: csv}, slots: [{name: p, type: float, as: value}]}", csv.data);
    tn_text bounds CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_stat_bounds(stat, "p", 4, &bounds, &d.err), TN_OK);
    assert_string_equal(bounds.data, "500\n667\n834\n"); /* half of them are 0 */
    assert_int_equal(tn_stat_bounds(stat, "q", 4, &bounds, &d.err), TN_E_USAGE);
    datasets_write(&d, "bounds", bounds.data, bounds.size);
    char yaml[1000];
    (void)snprintf(yaml, sizeof yaml,
                   "{data: {format: csv}, slots: [{name: p, type: float, transform: {quantiles: "
                   "\"%s\"}}]}",
                   datasets_path(&d, "bounds"));
    const tn_dataset *set = datasets_bind(&d, yaml, 0);
    assert_int_equal(set->schema->slot[0]->transform.n_bounds, 3);
    tn_stat_free(stat);
}

TEST(the_figures_do_not_depend_on_threads)
{
    tn_text text[2] = {{0}, {0}};
    tn_text csv CLEANUP(tn_text_done) = {0};
    tn_text_adds(&csv, "label,w,a,t,p,c\n");
    uint64_t s = tn_stream0(1);
    for (uint32_t i = 0; i < 60000; i++) {
        uint64_t x = tn_draw(s, i);
        tn_text_addf(&csv, "%u,1,%u,t%u|x,%u.5,%u\n", (unsigned)(x & 1), (unsigned)(x >> 50),
                     (unsigned)(x >> 60), (unsigned)(x >> 56), (unsigned)(x >> 45));
    }
    for (uint32_t k = 0; k < 2; k++) {
        OPEN(datasets, d, k == 0 ? 1 : 4);
        tn_stat *stat = stat_of(&d, config, csv.data);
        tn_stat_text(stat, 5, &text[k]);
        tn_stat_free(stat);
    }
    assert_string_equal(text[0].data, text[1].data);
    tn_text_done(&text[0]);
    tn_text_done(&text[1]);
}
