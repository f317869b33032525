/* golden.c - see golden.h. */
#include "train/golden.h"

#include "base/core/number.h"
#include "config/diag.h"
#include "io/format/format.h"
#include "models/model.h"
#include "support/test.h"
#include "train/config/config.h"
#include "train/config/run_bind.h"
#include "train/step/model_plan.h"

enum { LINES_MAX = 4096, COLUMNS_MAX = 64 };

static const char *kept(tn_arena *arena, const char *text, size_t size)
{
    char *copy = TN_NEW_ARRAY(arena, char, size + 1);
    memcpy(copy, text, size);
    return copy;
}

static uint32_t split(tn_arena *arena, const char *line, size_t size, const char **out)
{
    uint32_t n = 0;
    const char *end = line + size;
    while (line <= end) {
        const char *tab = memchr(line, '\t', (size_t)(end - line));
        const char *stop = tab != NULL ? tab : end;
        assert_true(n < COLUMNS_MAX);
        out[n++] = kept(arena, line, (size_t)(stop - line));
        line = stop + 1;
    }
    return n;
}

static const char *whole_file(golden_case *c, const char *file, size_t *size)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", c->folder, file);
    tn_error err = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_ok(tn_file_read_all(path, (size_t)1 << 26, &text, &err), err.text);
    const char *copy = kept(c->arena, text.data, text.size);
    *size = text.size;
    return copy;
}

golden_table golden_read(golden_case *c, const char *file)
{
    size_t size = 0;
    const char *text = whole_file(c, file, &size);
    const char *end = text + size;
    golden_table t = {.name = TN_NEW_ARRAY(c->arena, const char *, COLUMNS_MAX)};
    const char **field = NULL;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        stop = stop != NULL ? stop : end;
        if (*text == '#') {
            uint32_t skip = strncmp(text, "#columns\t", 9) == 0 ? 9 : 1;
            t.n_cols = split(c->arena, text + skip, (size_t)(stop - text) - skip, t.name);
        } else {
            if (field == NULL) {
                field = TN_NEW_ARRAY(c->arena, const char *, (size_t)LINES_MAX *t.n_cols);
            }
            assert_true(t.n_rows < LINES_MAX);
            uint32_t n =
                split(c->arena, text, (size_t)(stop - text), field + (size_t)t.n_rows * t.n_cols);
            assert_int_equal(n, t.n_cols);
            t.n_rows++;
        }
        text = stop + 1;
    }
    t.field = field;
    return t;
}

const char *golden_field(const golden_table *t, uint32_t row, const char *column)
{
    for (uint32_t k = 0; k < t->n_cols; k++) {
        if (strcmp(t->name[k], column) == 0) {
            return t->field[(size_t)row * t->n_cols + k];
        }
    }
    fail_msg("no column '%s'", column);
    return NULL;
}

double golden_number(const golden_table *t, uint32_t row, const char *column)
{
    const char *text = golden_field(t, row, column);
    double value = 0;
    assert_int_equal(tn_read_f64(text, strlen(text), &value), TN_NUM_OK);
    return value;
}

static double tolerance_of(const golden_case *c, const char *file, const char *name)
{
    for (uint32_t i = 0; i < c->tolerance.n_rows; i++) {
        if (strcmp(golden_field(&c->tolerance, i, "file"), file) == 0 &&
            strcmp(golden_field(&c->tolerance, i, "name"), name) == 0) {
            return golden_number(&c->tolerance, i, "tolerance");
        }
    }
    fail_msg("no tolerance for %s %s", file, name);
    return 0;
}

void golden_compare(golden_case *c, const char *file, const char *name, const char *where,
                    const double *got_want)
{
    double got = got_want[0];
    double want = got_want[1];
    double bound = tolerance_of(c, file, name) * fmax(1, fabs(want));
    double off = fabs(got - want);
    if (!(off <= bound)) {
        if (c->n_failed++ < 20) {
            print_error("%s/%s %s %s: got %.12g, want %.12g, off %.3g of %.3g\n", c->folder, file,
                        name, where, got, want, off, bound);
        }
    }
    if (bound > 0) {
        c->worst = fmax(c->worst, off / bound);
    }
}

tn_safetensors golden_tensors(golden_case *c, const char *file)
{
    tn_map map = {0};
    map.data = whole_file(c, file, &map.size);
    tn_safetensors doc;
    tn_error err = {0};
    assert_ok(tn_safetensors_read(&doc, &map, c->arena, file, &err), err.text);
    return doc;
}

const tn_model_plan *golden_plan(tn_arena *arena, const char *name, const char *const *overrides)
{
    return golden_plan_at(arena, name, overrides, NULL);
}

const tn_model_plan *golden_plan_of(tn_arena *arena, const char *name, const char *const *overrides,
                                    uint32_t rank, uint32_t size)
{
    const tn_membership membership = {.rank = rank, .size = size};
    return golden_plan_at(arena, name, overrides, size > 0 ? &membership : NULL);
}

const tn_model_plan *golden_plan_at(tn_arena *arena, const char *name, const char *const *overrides,
                                    const tn_membership *membership)
{
    char path[256];
    (void)snprintf(path, sizeof path, "test/golden/%s.yaml", name);
    tn_config_in in = {.fields = tn_run_fields, .path = path, .overrides = overrides};
    while (overrides != NULL && overrides[in.n_overrides] != NULL) {
        in.n_overrides++;
    }
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_error err = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    tn_run *run = TN_NEW(arena, tn_run);
    const tn_model_plan *plan = NULL;
    const tn_tree *tree = tn_config_load(&in, arena, &diag);
    if (tree != NULL) {
        tn_run_bind(&b, tree, run);
        run->cluster.rank = membership != NULL ? membership->rank : 0;
        run->cluster.size = membership != NULL ? membership->size : 0;
        run->cluster.membership = membership;
    }
    fail_if(diag.n_errors > 0 || tn_model_plan_new(&plan, run, &b, &err) != TN_OK, "%s%s",
            tn_text_str(&diag.text), err.text);
    return plan;
}
