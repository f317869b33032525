/* task_predictions.c - writes the scores of several tasks into lines of predictions. */
#include "train/eval/task_predictions.h"

#include "base/core/text.h"
#include "base/math/fmath.h"
#include "io/rows/batch.h"

#include <stdio.h>

void tn_task_prediction_head(tn_text *out, const tn_tasks *tasks)
{
    static const char *const score[TN_TARGETS] = {"logit", "score", "prediction", "score"};
    for (uint32_t k = 1; k < tn_tasks_count(tasks); k++) {
        const tn_task *t = &tasks->task[k];
        tn_text_addf(out, "\t%s.label\t%s.%s", t->name, t->name, score[t->target]);
        if (t->target == TN_TARGET_CLICK) {
            tn_text_addf(out, "\t%s.pctr", t->name);
        }
        if (t->of != TN_NO_TASK) {
            tn_text_addf(out, "\t%s.given", t->name);
        }
    }
}

static void add_float(tn_text *out, float x)
{
    enum { MOST = 32 };
    char text[MOST];
    const int size = snprintf(text, sizeof text, "\t%.9g", (double)x);
    tn_text_add(out, text, (size_t)size);
}

void tn_task_prediction_line(tn_text *out, const tn_tasks *tasks, const tn_scores *scores,
                             uint32_t row)
{
    for (uint32_t k = 1; k < tn_tasks_count(tasks) && scores->task != NULL; k++) {
        const tn_task_rows *rows = scores->batch->task != NULL ? &scores->batch->task[k] : NULL;
        TN_ASSERT(row < scores->batch->rows && scores->task->score[k] != NULL);
        const float z = scores->task->score[k][row];
        if (rows != NULL && rows->factor[row] != 0) {
            add_float(out, rows->label[row]);
        } else {
            tn_text_addc(out, '\t');
        }
        add_float(out, z);
        if (tasks->task[k].target == TN_TARGET_CLICK) {
            add_float(out, (float)tn_sigmoid((double)z));
        }
        if (tasks->task[k].of != TN_NO_TASK) {
            add_float(out, (float)tn_sigmoid((double)scores->task->given[k][row]));
        }
    }
}
