"""Callbacks of training, with the words of LightGBM: each is called after an evaluation of the
validation rows with a `CallbackEnv`."""

import collections

CallbackEnv = collections.namedtuple(
    "CallbackEnv", ["model", "params", "iteration", "begin_iteration", "end_iteration",
                    "evaluation_result_list"])

_LOWER = ("logloss", "rmse", "mae", "mse", "ne", "ece", "brier")


class EarlyStopException(Exception):
    """Raised by a callback to end training; the model so far stays."""

    def __init__(self, best_iteration=None, best_score=None):
        super().__init__()
        self.best_iteration, self.best_score = best_iteration, best_score


def higher_is_better(metric):
    """Whether a greater value of a metric is a better one."""
    return metric not in _LOWER


def record_evaluation(eval_result):
    """Keeps every evaluation: eval_result["valid"]["auc"] becomes the list of its values."""

    def callback(env):
        for data, metric, value, _ in env.evaluation_result_list:
            eval_result.setdefault(data, {}).setdefault(metric, []).append(value)

    callback.order = 20
    return callback


def log_evaluation(period=1):
    """Prints every `period`-th evaluation."""

    def callback(env):
        if period > 0 and (env.iteration + 1) % period == 0:
            values = "\t".join(f"{d}'s {m}: {v:.6g}" for d, m, v, _ in env.evaluation_result_list)
            print(f"[{env.iteration + 1}]\t{values}")

    callback.order = 10
    return callback


def early_stopping(stopping_rounds, first_metric_only=False, verbose=True, min_delta=0.0):
    """Ends training when no metric has become better by more than `min_delta` in
    `stopping_rounds` evaluations. `train.stop` of a configuration does the same and also brings
    the best model back."""
    best = {}

    def callback(env):
        metrics = env.evaluation_result_list[:1] if first_metric_only else \
            env.evaluation_result_list
        for data, metric, value, higher in metrics:
            key = (data, metric)
            score = value if higher else -value
            if key not in best or score > best[key][0] + min_delta:
                best[key] = (score, env.iteration, env.evaluation_result_list)
            elif env.iteration - best[key][1] >= stopping_rounds:
                if verbose:
                    print(f"no better {metric} in {stopping_rounds} evaluations: training ends")
                raise EarlyStopException(best[key][1], best[key][2])

    callback.order = 30
    return callback


def progress(stream=None):
    """Draws how far training is, on `stream` (stderr), in a terminal or a notebook."""
    import sys

    def callback(p):
        share = "" if p.done != p.done else f"{100 * p.done:3.0f} %  "
        out = stream or sys.stderr
        out.write(f"\r{share}{p.rows:,} rows  {p.seconds:.0f} s  loss {p.loss:.4f}  ")
        out.flush()

    callback.on_progress = True
    return callback
