/* htmlfigures.h - the figures of the report, each one SVG (train/report/chart.h).
 *
 * Made from the metrics alone (metrics/curves.h), so a page costs the same for any number of rows.
 * With one class only there are no curves: then nothing is drawn.
 */
#ifndef TN_TRAIN_HTMLFIGURES_H
#define TN_TRAIN_HTMLFIGURES_H

#include "metrics/metrics.h"
#include "metrics/slices.h"

void tn_figure_roc(const tn_metrics *m, tn_text *out);
void tn_figure_precision(const tn_metrics *m, tn_text *out);

/* Bins of equal weight: clicks seen over clicks predicted. */
void tn_figure_reliability(const tn_metrics *m, tn_text *out);

/* How many rows have which logit, clicks over the others. */
void tn_figure_scores(const tn_metrics *m, tn_text *out);

/* COPC of every value of a slot, largest first; `label[i]` is what value i is called. */
void tn_figure_copc(const tn_slice *slice, const char *const *label, uint32_t n, tn_text *out);

#endif
