/* test_run_tasks.c - the section `tasks`: what it says, what it makes of other sections, and what
 * is refused. */
#include "train/config/run_tasks.h"

#include "base/core/text.h"
#include "config/diag.h"
#include "config/tree.h"
#include "nn/loss/loss.h"
#include "support/test.h"
#include "train/config/run_bind.h"

typedef struct fixture {
    tn_arena *arena;
    tn_diag diag;
    tn_run run;
} fixture;

SET_UP
{
    static fixture f;
    f = (fixture){.arena = tn_arena_new(1 << 16)};
    *state = &f;
}

TEAR_DOWN
{
    fixture *f = *state;
    tn_diag_done(&f->diag);
    tn_arena_free(f->arena);
}

/* Binds data, slots and what `more` has beside them; returns the faults. */
static const char *bind(fixture *f, const char *more)
{
    char text[1500];
    (void)snprintf(text, sizeof text, "{slots: [u], model: mmoe, %s}", more);
    tn_diag_done(&f->diag);
    f->diag = (tn_diag){0};
    const tn_binder b = {.arena = f->arena, .diag = &f->diag};
    const tn_tree *tree = tn_tasks_spread(&b, tn_tree_read_flow(f->arena, text, "test"));
    tn_run_bind(&b, tree, &f->run);
    return tn_text_str(&f->diag.text);
}

#define CSV "data: {format: csv, train: a.csv}, "

TEST_ON(fixture *f, the_first_task_is_that_of_the_run)
{
    const char *fault = bind(f, CSV "tasks: {watch: {label: s, loss: {type: huber, delta: 2}}, "
                                    "click: {label: {column: c, threshold: 3}, weight: 0.5}, "
                                    "buy: {of: click, weight: {column: w}}}");
    assert_string_equal(fault, "");
    const tn_tasks *t = tn_run_tasks_of(&f->run);
    assert_int_equal(t->n, 3);
    assert_string_equal(f->run.data.label->text, "s");
    assert_ptr_equal(tn_loss_of(&f->run.loss), &tn_loss_huber);
    assert_int_equal(f->run.data.target, TN_TARGET_NUMBER);
    assert_int_equal(t->task[0].label, TN_NO_ASIDE);
    assert_int_equal(t->n_aside, 3);
    assert_string_equal(f->run.data.aside[t->task[1].label].column, "c");
    assert_string_equal(f->run.data.aside[t->task[2].label].column, "buy");
    assert_string_equal(f->run.data.aside[t->task[2].weight_column].column, "w");
    assert_int_equal(t->task[2].of, 1);
    assert_true(t->task[1].weight == 0.5);
    assert_string_equal(tn_run_watched(&f->run), "valid.tasks.ne");
}

TEST_ON(fixture *f, one_task_is_a_run_of_one_label)
{
    assert_string_equal(bind(f, CSV "tasks: {click: {label: c, loss: focal}}"), "");
    assert_int_equal(tn_run_tasks_of(&f->run)->n, 0);
    assert_null(f->run.data.tasks);
    assert_string_equal(f->run.data.label->text, "c");
    assert_ptr_equal(tn_loss_of(&f->run.loss), &tn_loss_focal);
    assert_string_equal(tn_run_watched(&f->run), "valid.logloss");
}

TEST_ON(fixture *f, monitors_name_a_task_or_all)
{
    assert_string_equal(bind(f, CSV "tasks: {click: {}, buy: {}}"), "");
    const tn_tasks *t = tn_run_tasks_of(&f->run);
    const char *metric = NULL;
    assert_int_equal(tn_monitor_task(t, "auc", &metric), 0);
    assert_string_equal(metric, "auc");
    assert_int_equal(tn_monitor_task(t, "buy.copc", &metric), 1);
    assert_string_equal(metric, "copc");
    assert_int_equal(tn_monitor_task(t, "tasks.ne", &metric), TN_ALL_TASKS);
    assert_int_equal(tn_monitor_task(t, "bu.ne", &metric), TN_NO_TASK);
}

TEST_ON(fixture *f, what_does_not_go_together_is_said_in_a_sentence)
{
    static const char *const cases[][2] = {
        {CSV "tasks: {}", "expected {name: {label: ..}, ..} of 1 to 16 tasks"},
        {CSV "tasks: [click]", "expected {name: {label: ..}, ..} of 1 to 16 tasks"},
        {CSV "tasks: {click: {}, 'b c': {}}", "task 'b c' is not 1 to 64 of"},
        {CSV "tasks: {click: {}, auc: {}}", "a task cannot be called 'auc'"},
        {CSV "tasks: {click: {}, buy: yes}", "expected {label: .., loss: .., of: ..}"},
        {CSV "tasks: {click: {}, buy: {of: clock}}",
         "unknown task 'clock' (did you mean 'click'?)"},
        {CSV "tasks: {click: {}, buy: {of: click, where: click}}", "has 'of' and 'where'"},
        {CSV "tasks: {click: {}, buy: {where: buy}}", "task 'buy' has itself as 'where'"},
        {CSV "tasks: {a: {of: c}, b: {of: a}, c: {of: b}}",
         "task 'a' is, by 'of', a share of itself"},
        {CSV "tasks: {click: {}, s: {loss: mse}, buy: {of: s}}", "whose labels are not clicks"},
        {CSV "tasks: {click: {}, s: {loss: mse, of: click}}", "makes no probability of a click"},
        {CSV "tasks: {click: {}, s: {loss: pairwise}}", "which several tasks do not take"},
        {CSV "tasks: {click: {}, s: {label: none}}", "the label of task 's' is no column"},
        {CSV "tasks: {click: {}, s: {weight: {by: x}}}",
         "expected a number, learned, or {column: name}"},
        {CSV "tasks: {click: {weight: 2}}", "the weight of the only task 'click'"},
        {CSV "tasks: {click: {}, u: {}}", "slot 'u' reads the column 'u', which is a task's label"},
        {CSV "tasks: {click: {}, b: {weight: {column: u}}}", "which is a task's weight"},
        {CSV "tasks: {u: {}, b: {}}", "slot 'u' reads the column 'u', which is the label"},
        {CSV "loss: mse, tasks: {click: {loss: focal}, buy: {}}",
         "'loss' is mse, and the first task 'click' has the loss focal"},
        {"data: {format: csv, train: a.csv, label: y}, tasks: {click: {}, buy: {}}",
         "'data.label' is another label than that of the first task 'click'"},
        {"data: {format: libsvm, train: a}, tasks: {click: {}, buy: {}}",
         "records of format 'libsvm' have one label"},
        {"data: {format: csv, train: a.csv, negative_sampling: 0.1}, tasks: {click: {}, buy: {}}",
         "leaves out rows by the label of 'click', and scores of 'buy' cannot be corrected"},
        {"data: {format: csv, train: a.csv, valid: b.csv}, tasks: {click: {}, s: {loss: mse}}, "
         "train: {stop: {monitor: valid.s.auc}}",
         "metric 'auc' does not judge a model of loss 'mse'"},
        {"data: {format: csv, train: a.csv, valid: b.csv}, tasks: {click: {}, s: {}}, "
         "train: {stop: {monitor: valid.t.auc}}",
         "is not valid.<metric>, as valid.auc, nor valid.<task>.<metric>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *got = bind(f, cases[i][0]);
        fail_if(strstr(got, cases[i][1]) == NULL, "\"%s\": \"%s\" is not \"%s\"", cases[i][0], got,
                cases[i][1]);
    }
}
