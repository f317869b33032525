/* generate_oracle.c - AUC and logloss of the planted probability, as thrown and as expected. */
#include "io/synth/generate_oracle.h"

#include "base/math/fmath.h"

#include <math.h>
#include <stdlib.h>

/* Sums over rows of one score, then over everything below it. */
typedef struct tally {
    double clicks, others; /* as thrown */
    double p, q, pq;       /* as expected; pq: pairs of a row with itself */
} tally;

static int by_logit(const void *a, const void *b)
{
    const tn_oracle_row *x = a;
    const tn_oracle_row *y = b;
    return (x->logit > y->logit) - (x->logit < y->logit);
}

static tally tie_from(const tn_oracle_row *row, size_t n, size_t *i)
{
    tally t = {0, 0, 0, 0, 0};
    double logit = row[*i].logit;
    double p = tn_sigmoid(logit);
    double q = tn_sigmoid(-logit);
    for (; *i < n && row[*i].logit == logit; (*i)++) {
        t.clicks += row[*i].click ? 1 : 0;
        t.others += row[*i].click ? 0 : 1;
        t.p += p;
        t.q += q;
        t.pq += p * q;
    }
    return t;
}

static void judge_auc(const tn_oracle_row *row, size_t n, tn_oracle *out)
{
    tally below = {0, 0, 0, 0, 0};
    double won = 0;
    double won_expected = 0;
    for (size_t i = 0; i < n;) {
        tally tie = tie_from(row, n, &i);
        won += tie.clicks * (below.others + tie.others / 2);
        won_expected += tie.p * below.q + (tie.p * tie.q - tie.pq) / 2;
        below.clicks += tie.clicks;
        below.others += tie.others;
        below.p += tie.p;
        below.q += tie.q;
        below.pq += tie.pq;
    }
    out->clicks = (uint64_t)below.clicks;
    double tried = below.clicks * below.others;
    double tried_expected = below.p * below.q - below.pq;
    out->auc = tried > 0 ? won / tried : (double)NAN;
    out->auc_expected = tried_expected > 0 ? won_expected / tried_expected : (double)NAN;
}

static void judge_logloss(const tn_oracle_row *row, size_t n, tn_oracle *out)
{
    double loss = 0;
    double expected = 0;
    for (size_t i = 0; i < n; i++) {
        double if_click = tn_log1p_exp(-row[i].logit);
        double if_not = tn_log1p_exp(row[i].logit);
        loss += row[i].click ? if_click : if_not;
        expected += tn_sigmoid(row[i].logit) * if_click + tn_sigmoid(-row[i].logit) * if_not;
    }
    out->logloss = n > 0 ? loss / (double)n : (double)NAN;
    out->logloss_expected = n > 0 ? expected / (double)n : (double)NAN;
}

tn_oracle tn_oracle_judge(tn_oracle_row *row, size_t n)
{
    tn_oracle out = {.rows = n};
    if (n > 0) {
        qsort(row, n, sizeof *row, by_logit);
    }
    judge_auc(row, n, &out);
    judge_logloss(row, n, &out);
    return out;
}
