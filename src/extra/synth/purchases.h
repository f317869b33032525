/* purchases.h - purchases planted beside clicks.
 *
 *     a    logit of a click, of mean m and deviation d
 *     b    logit of a purchase given a click = c + selection (a - m) + sqrt(1 - selection^2) d v
 *     v    sum of weights of their own for all ids, less its part along a, of deviation 1
 *
 * The fit sets c so that the asked share of clicks are purchases. With a selection above 0 users
 * who click buy more than others would: the share among clicks is above the mean of sigmoid(b) over
 * all rows. The probability of both is sigmoid(a) sigmoid(b), which no model of purchases beats.
 */
#pragma once

#include <stdint.h>

typedef struct tn_gen_purchases {
    double bias, click, own; /* b = bias + click (a - mean) + own v, before v is made free of a */
    double mean;             /* mean of a */
    double rate, rate_all;   /* mean probability of b: among clicks, and over all rows */
} tn_gen_purchases;

/* Finds the scales of purchases: of n rows the logits of clicks and, before scaling, v. */
void tn_purchases_fit(double rate, double selection, const double *click, const double *v,
                      uint32_t n, tn_gen_purchases *out);

/* Returns the logit of a purchase given a click. */
double tn_purchase_logit(const tn_gen_purchases *t, double click, double v);
/* Returns the logit of a click and a purchase. */
double tn_purchase_both(double click, double purchase);
