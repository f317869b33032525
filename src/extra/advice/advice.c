/* advice.c - signs of a run that went wrong without a failure. */
#include "extra/advice/advice.h"

#include "base/core/text.h"
#include "metrics/metrics.h"
#include "train/eval/evaluate.h"

#include <math.h>

#define BEGINNING 50 /* steps too few to know a slope from chance */
#define SLOPE                                                                                      \
    0.01 /* least fall of the loss in a tenth of the steps, as a share of the first loss */
#define DEVIATIONS 2      /* least difference of two means, in standard deviations */
#define WORSE 0.001       /* valid.logloss over its best: more than rounding */
#define NE_DIVERGED 1.5   /* ne of valid; the click rate alone has 1 */
#define LOSS_FAR 1.15     /* logloss and ne of valid over those of train */
#define AUC_NEAR 0.05     /* distance to the AUC of chance, one half */
#define NE_BLIND 0.998    /* no better than the click rate alone */
#define COPC_OFF 0.05     /* distance to 1 */
#define COPC_DEVIATIONS 4 /* and standard deviations of the number of clicks */
#define UNKNOWN_MANY 0.1  /* share of all values in data.valid */

static double of(const tn_metrics *m, const char *name)
{
    return m != NULL ? tn_metrics_get(m, name) : (double)NAN;
}

/* Rows of a later epoch were learned before they are scored. */
static bool is_overfit(const tn_advice *a)
{
    const bool rates_differ = !(of(a->valid, "ne") > LOSS_FAR * of(a->train, "ne"));
    const bool learned = !(of(a->valid, "ne") > 1); /* else it has diverged */
    return a->epochs > 1 && !a->stops && learned && !rates_differ &&
           of(a->valid, "logloss") > LOSS_FAR * of(a->train, "logloss");
}

static double mean_of(const double *x, uint32_t n, double *squares)
{
    double sum = 0;
    *squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += x[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        *squares += (x[i] - sum / n) * (x[i] - sum / n);
    }
    return sum / n;
}

/* Whether the loss of the last tenth of all steps is still below that of the tenth before. */
static bool still_falls(const tn_advice *a)
{
    const tn_loss_curve *c = a->curve;
    const uint32_t n = c != NULL ? c->n : 0;
    if (a->steps < BEGINNING) {
        return true;
    }
    if (n < BEGINNING || n > TN_LOSS_CURVE_MAX) {
        return false; /* not known: the run has gone on */
    }
    TN_ASSERT(a->curve != NULL);
    const uint32_t tenth = n / 10;
    double spread[3];
    const double first = mean_of(c->loss, tenth, &spread[0]);
    const double before = mean_of(c->loss + n - 2 * (size_t)tenth, tenth, &spread[1]);
    const double last = mean_of(c->loss + n - tenth, tenth, &spread[2]);
    const double chance = sqrt((spread[1] + spread[2]) / fmax(1, tenth - 1.) / tenth);
    return before - last > SLOPE * first && before - last > DEVIATIONS * chance;
}

/* Whether an earlier model was better on data.valid than the one that stays. */
static bool has_risen(const tn_advice *a)
{
    return !a->past_best && a->best_step > 0 &&
           of(a->valid, "logloss") > a->best_loss * (1 + WORSE);
}

/* Passes that were chosen were enough, unless valid was at its best after the last of them, or was
 * not there to choose more. */
static void add_steps(const tn_advice *a, tn_text *out)
{
    const bool epochs = (!a->epochs_chosen || a->stops) && !a->days; /* a day has one pass */
    const bool unseen = !epochs && a->valid == NULL && !a->days;
    const bool batch = !a->batch_chosen && a->batch > 1;
    if (a->steps == 0 || a->steps >= TN_LOSS_CURVE_MAX || a->cut || a->past_best || is_overfit(a) ||
        has_risen(a) || !still_falls(a)) {
        return;
    }
    tn_text_addf(out, "%llu step%s in all: the model has hardly begun to learn; ",
                 (unsigned long long)a->steps, a->steps == 1 ? "" : "s");
    if (epochs) {
        tn_text_addf(out, "a larger train.epochs (it is %u)", a->epochs);
    } else if (unseen) {
        tn_text_adds(out, "data.valid, which lets a run take as many passes as help,");
    } else if (!batch) {
        tn_text_adds(out, a->days ? "more days" : "more rows in data.train");
    }
    if (batch) {
        tn_text_addf(out, "%sa smaller train.batch (it is %u)", epochs || unseen ? " or " : "",
                     a->batch);
    }
    tn_text_adds(out, " would help\n");
}

static void add_overfit(const tn_advice *a, tn_text *out)
{
    if (is_overfit(a)) {
        tn_text_addf(
            out,
            "valid.logloss %.4f is far above that of train, %.4f: the model knows its rows "
            "by heart; 'train.stop.monitor=valid.logloss' ends a run at its best\n",
            of(a->valid, "logloss"), of(a->train, "logloss"));
    }
}

static void add_risen(const tn_advice *a, tn_text *out)
{
    if (has_risen(a) && !is_overfit(a)) {
        tn_text_addf(
            out,
            "valid.logloss was best at step %llu, epoch %.3g of %u: %.4f, and is %.4f now; "
            "'train.stop.monitor=valid.logloss' keeps the best model\n",
            (unsigned long long)a->best_step, (double)a->best_step * a->epochs / (double)a->steps,
            a->epochs, a->best_loss, of(a->valid, "logloss"));
    }
}

/* Whether the loss is lost beyond what a sum of chances that is off explains, as after row weights
 * that only training has. */
static bool has_diverged(const tn_advice *a)
{
    return of(a->valid, "ne") > NE_DIVERGED && !(of(a->valid, "calibration_free_ne") < 1);
}

/* Says that scores know nothing of rows that were not learned. */
static void add_blind(const tn_advice *a, double ne, double auc, tn_text *out)
{
    const bool is_above = ne >= 1.0005; /* as it is printed */
    if (is_above) {
        tn_text_addf(out, "valid.ne %.3f is above 1, and ", ne);
    }
    tn_text_addf(out,
                 "valid.auc %.3f %snear that of chance: nothing that holds for other rows was "
                 "found; %sother slots may tell more\n",
                 auc, is_above ? "" : "is ",
                 a->linear ? "pairs of slots may tell what each alone does not (model: fm or "
                             "deepfm instead of lr), or "
                           : "larger first values (embedding.init), another model or ");
}

static void add_diverged(const tn_advice *a, tn_text *out)
{
    const double ne = of(a->valid, "ne");
    const double auc = of(a->valid, "auc");
    if (a->steps > 0 && ne <= 1 && ne > NE_BLIND && fabs(auc - 0.5) < AUC_NEAR) {
        add_blind(a, ne, auc, out);
    }
    if (a->steps == 0 || !(ne > 1) || (ne > NE_DIVERGED && !has_diverged(a) && !a->diverged)) {
        return; /* add_copc speaks of rates that are off */
    }
    if (a->ordered) {
        tn_text_addf(out,
                     "valid.ne %.3f is above 1: the rows that were learned last, all of one kind, "
                     "weigh too much; mix the files, or hold back more rows (data.shuffle)\n",
                     ne);
    } else if (has_diverged(a)) {
        tn_text_addf(out,
                     "valid.ne %.3f is far above 1: the run has diverged; smaller learning rates "
                     "(train.optimizer.lr, train.sparse.lr) would help\n",
                     ne);
    } else if (!a->diverged && fabs(auc - 0.5) < AUC_NEAR) {
        add_blind(a, ne, auc, out);
    } else {
        tn_text_addf(out,
                     "valid.ne %.3f is above 1: the click rate alone would predict better; smaller "
                     "learning rates may help (train.optimizer.lr, train.sparse.lr)\n",
                     ne);
    }
}

/* Whether rows of one class leave nothing else to say. */
static bool add_one_class(const tn_advice *a, tn_text *out)
{
    const char *train = a->train != NULL ? tn_metrics_one_class(a->train) : NULL;
    const char *valid = a->valid != NULL ? tn_metrics_one_class(a->valid) : NULL;
    if (a->steps > 0 && (train != NULL || valid != NULL)) {
        tn_text_addf(out, "data.%s has %s: %s; is data.label right?\n",
                     train != NULL ? "train" : "valid", train != NULL ? train : valid,
                     train != NULL ? "there is nothing to learn from rows of one kind"
                                   : "rows of one kind do not judge a model");
    }
    return train != NULL || valid != NULL;
}

static void add_copc(const tn_advice *a, tn_text *out)
{
    const double copc = of(a->valid, "copc");
    const double rows = a->valid != NULL ? (double)tn_metrics_rows(a->valid) : 0;
    const double clicks = of(a->valid, "ctr") * rows;
    const double predicted = of(a->valid, "pctr") * rows;
    const double chance = COPC_DEVIATIONS * sqrt(fmax(clicks, predicted));
    if (!a->calibrates && fabs(copc - 1) > COPC_OFF && fabs(clicks - predicted) > chance) {
        tn_text_addf(
            out,
            "valid.copc %.3f: %.0f clicks where %.0f were predicted; 'eval.calibrate=platt' "
            "corrects that in tnet-eval and tnet-export: the same command with it fits "
            "the map\n",
            copc, clicks, predicted);
    }
}

static void add_unknown(const tn_advice *a, tn_text *out)
{
    const tn_unknown_keys *k = a->keys;
    if (k != NULL && (double)k->unknown > UNKNOWN_MANY * (double)k->values) {
        tn_text_addf(
            out,
            "data.valid: %.0f %% of all keys were not met in training (slot '%s': %.0f %%) "
            "and add nothing to a score; coarser slots beside them (a category, a region) "
            "tell the model something of new ones\n",
            100 * (double)k->unknown / (double)k->values, k->slot, 100 * k->share);
    }
}

void tn_advice_text(const tn_advice *a, tn_text *lines)
{
    if (add_one_class(a, lines)) {
        return;
    }
    const bool diverged = (a->diverged || has_diverged(a)) &&
                          !(of(a->valid, "ne") <= 1); /* a divergence explains the rest */
    if (!diverged) {
        add_steps(a, lines);
    }
    add_diverged(a, lines);
    add_overfit(a, lines);
    if (!diverged) {
        add_risen(a, lines);
        add_copc(a, lines);
    }
    add_unknown(a, lines);
}
