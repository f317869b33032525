"""Optuna: a callback that reports every evaluation to a trial and ends those that are pruned.

    def objective(trial):
        m = tnet.Model("deepfm", lr=trial.suggest_float("lr", 1e-3, 1, log=True))
        m.fit(df, label="click", valid=held, callbacks=[PruningCallback(trial, "auc")])
        return m.evaluate()["auc"]
"""

import optuna

from .callbacks import higher_is_better


class PruningCallback:
    """Reports `metric` of the validation rows after each evaluation; raises TrialPruned where the
    study's pruner says so. The study's direction must fit the metric."""

    order = 40

    def __init__(self, trial, metric="auc", valid_name="valid"):
        wanted = optuna.study.StudyDirection.MAXIMIZE if higher_is_better(metric) else \
            optuna.study.StudyDirection.MINIMIZE
        if trial.study.direction != wanted:
            raise ValueError(f"the study's direction is {trial.study.direction.name.lower()}, and "
                             f"{metric} wants {wanted.name.lower()}")
        self.trial, self.metric, self.valid_name = trial, metric, valid_name

    def __call__(self, env):
        for data, metric, value, _ in env.evaluation_result_list:
            if (data, metric) == (self.valid_name, self.metric):
                self.trial.report(value, step=env.iteration)
                if self.trial.should_prune():
                    raise optuna.TrialPruned(f"pruned after evaluation {env.iteration}")
                return
        raise ValueError(f"there is no metric '{self.metric}' of '{self.valid_name}'")
