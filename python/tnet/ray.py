"""Ray: a callback that reports every evaluation to ray.tune or ray.train.

    def trainable(config):
        m = tnet.Model("deepfm", lr=config["lr"], threads=1)
        m.fit(df, label="click", valid=held, callbacks=[ReportCallback()])
"""

from ray import tune


class ReportCallback:
    """Reports {"valid-auc": .., "valid-logloss": .., "training_iteration": ..}."""

    order = 50

    def __init__(self, metrics=None, report=tune.report):
        self.metrics, self.report = metrics, report

    def __call__(self, env):
        values = {f"{data}-{metric}": value for data, metric, value, _ in env.evaluation_result_list}
        if self.metrics is not None:
            values = {name: values[name] for name in self.metrics}
        self.report({**values, "training_iteration": env.iteration + 1})
