/* drive.h - one row or vector under one rule, driven by hand: for the tests of optimizers. */
#pragma once

#include "kit.h"

enum { DRIVE_DIM_MAX = 80 };

typedef struct drive {
    tn_rule rule;
    tn_state spec[TN_STATES_MAX];
    uint32_t n_states;
    float w[DRIVE_DIM_MAX];
    float memory[TN_STATES_MAX][DRIVE_DIM_MAX];
    float *state[TN_STATES_MAX];
    uint64_t t;
} drive;

/* Zero weights and state; the optimizer's init is up to the caller. */
void drive_begin(drive *x, tn_arena *arena, const char *optim, const char *options);

/* Step `at`, 0-based: the chain, then the update. */
void drive_step(drive *x, uint64_t at, size_t n, const float *grad);

/* To 1e-6 max(1, |want|). */
void assert_near(double got, double want);
