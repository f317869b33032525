/* advice.c - signs of a run that went wrong without a failure. */
#include "train/report/advice.h"

#include "base/core/text.h"
#include "metrics/metrics.h"
#include "train/eval/evaluate.h"

#include <math.h>

#define FEW_STEPS 500     /* the rows' first steps are their largest: fewer are a beginning */
#define LOSS_FAR 1.15     /* logloss and ne of valid over those of train */
#define AUC_NEAR 0.05     /* to that of chance, one half */
#define COPC_OFF 0.05     /* of 1, and beyond what chance does: */
#define COPC_DEVIATIONS 4 /* of the number of clicks */
#define UNKNOWN_MANY 0.1  /* of all values in data.valid */

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

/* Passes that were chosen were enough, unless valid was at its best behind the last of them, or was
 * not there to choose more. */
static void add_steps(const tn_advice *a, tn_text *out)
{
    const bool epochs = !a->epochs_chosen || a->stops;
    const bool unseen = !epochs && a->valid == NULL;
    const bool batch = !a->batch_chosen && a->batch > 1;
    if (a->steps == 0 || a->steps >= FEW_STEPS || a->cut || a->past_best || is_overfit(a)) {
        return;
    }
    tn_text_addf(out, "%llu step%s in all: the model has hardly begun to learn; ",
                 (unsigned long long)a->steps, a->steps == 1 ? "" : "s");
    if (epochs) {
        tn_text_addf(out, "a larger train.epochs (it is %u)", a->epochs);
    } else if (unseen) {
        tn_text_adds(out, "data.valid, which lets a run take as many passes as help,");
    } else if (!batch) {
        tn_text_adds(out, "more rows in data.train");
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

static void add_diverged(const tn_advice *a, tn_text *out)
{
    const double ne = of(a->valid, "ne");
    const double auc = of(a->valid, "auc");
    if (a->steps > 0 && !a->diverged && ne > 1 && fabs(auc - 0.5) < AUC_NEAR) {
        tn_text_addf(out,
                     "valid.ne %.3f is above 1, and valid.auc %.3f near that of chance: nothing "
                     "that holds for other rows was found; pairs of slots may tell what each alone "
                     "does not (model: fm or deepfm instead of lr), or other slots\n",
                     ne, auc);
    } else if (a->steps > 0 && ne > 1) {
        tn_text_addf(out,
                     "valid.ne %.3f is above 1: the click rate alone would predict better; smaller "
                     "learning rates may help (train.optimizer.lr, train.sparse.lr)\n",
                     ne);
    }
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
    const bool diverged = a->diverged && !(of(a->valid, "ne") <= 1); /* which explains the rest */
    if (!diverged) {
        add_steps(a, lines);
    }
    add_diverged(a, lines);
    add_overfit(a, lines);
    if (!diverged) {
        add_copc(a, lines);
    }
    add_unknown(a, lines);
}
