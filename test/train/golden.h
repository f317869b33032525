/* golden.h - reads the tables, tensors and tolerances of a golden case; compares with them. */
#pragma once

#include "base/core/arena.h"
#include "base/file/safetensors.h"
#include "cluster/launch/membership.h"

typedef struct tn_model_plan tn_model_plan;

/* A tab-separated file; the last line that begins with '#' names the columns. */
typedef struct golden_table {
    uint32_t n_rows, n_cols;
    const char **name;  /* n_cols */
    const char **field; /* n_rows * n_cols */
} golden_table;

typedef struct golden_case {
    tn_arena *arena;
    const char *folder; /* with the files, unpacked from test/golden/models.tar.gz */
    golden_table tolerance;
    uint32_t n_failed;
    double worst; /* largest deviation, as a share of its tolerance */
} golden_case;

golden_table golden_read(golden_case *c, const char *file);
const char *golden_field(const golden_table *t, uint32_t row, const char *column);
double golden_number(const golden_table *t, uint32_t row, const char *column);

/* |got - want| <= tolerance(file, name) * max(1, |want|); counts and prints what is not. */
void golden_compare(golden_case *c, const char *file, const char *name, const char *where,
                    const double *got_want);

/* All tensors of a file; their bytes stay in the case's arena. */
tn_safetensors golden_tensors(golden_case *c, const char *file);

/* The configuration test/golden/<case>.yaml as a blueprint, with `overrides` ended by NULL. */
const tn_model_plan *golden_plan(tn_arena *arena, const char *name, const char *const *overrides);

/* The same for one of `size` peers. */
const tn_model_plan *golden_plan_of(tn_arena *arena, const char *name, const char *const *overrides,
                                    uint32_t rank, uint32_t size);

/* The same for the process that `membership` tells of, NULL: alone; it must outlive a run. */
const tn_model_plan *golden_plan_at(tn_arena *arena, const char *name, const char *const *overrides,
                                    const tn_membership *membership);
