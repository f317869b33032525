#!/usr/bin/env python3
"""others.py - what TNet, LightGBM and Vowpal Wabbit reach on six sets, and what it costs: docs/is-it-for-me.md.

    python3 -m venv VENV && VENV/bin/pip install numpy pandas scipy scikit-learn lightgbm vowpalwabbit
    TNET_BIN=build/release VENV/bin/python bench/others.py DATA FOLDER [SETS [PROGRAMS]]       a line of JSON for each
    VENV/bin/python bench/others.py table FOLDER                                              prints them as rows

DATA holds frappe, adult, bank, a9a and ml100k, as of bench/defaults.sh; movies is generated. FOLDER gets the files that
programs want, and others.jsonl; what is there is not done again. Each program is a process of its own with one thread that
computes: AUC and logloss of test, seconds of a processor from the files to the trained model, peak memory in MB.

tnet-NAME  the model NAME with nothing but data and model written; rows by tnet-train, scores by tnet-eval
lightgbm   pandas reads; rate 0.05, bagging 0.8, at most 2000 trees, stop on valid after 50; texts are categories
vw         logistic, 22 bits, at most 20 passes, stop on its own holdout; vw-q all pairs, too. Its text form is made before, with
           numbers in 20 buckets of equal share and rows of train in a random order
"""
import json
import os
import random
import re
import resource
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.abspath(os.environ.get("TNET_BIN", os.path.join(ROOT, "build/release")))
SETS = ["frappe", "adult", "bank", "a9a", "ml100k", "movies"]
PROGRAMS = ["tnet-deepfm", "tnet-lr", "lightgbm", "vw", "vw-q"]
PARTS = ("train", "valid", "test")
NUMBERS = {"adult": ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"],
           "bank": ["V1", "V6", "V10", "V12", "V13", "V14", "V15"], "movies": ["price"]}
LABEL = {"adult": "wage_class", "bank": "Class", "ml100k": "rating"}
POSITIVE = {"adult": lambda y: y.str.startswith(">50K"), "bank": lambda y: y == "2", "ml100k": lambda y: y.astype(float) > 3}
LEFT_OUT = {"ml100k": ["ts"]}


def path_of(data, folder, name, part):
    if name == "movies":
        return f"{folder}/movies.{part}.csv"
    if name == "adult" and part != "test":
        return f"{folder}/adult.{part}.csv.gz"
    return f"{data}/{name}/{part}.{'libsvm' if name == 'a9a' else 'csv'}.gz"


def prepare(data, folder, name):
    """Files that are made, and the configuration."""
    def sh(command):
        subprocess.run(["bash", "-euc", command], check=True, capture_output=True, env={**os.environ, "PATH": BIN + ":" + os.environ["PATH"]})
    if name == "movies" and not os.path.exists(f"{folder}/movies.test.csv"):
        for part, rows, first in (("valid", "100k", "100M"), ("train", "1M", "0"), ("test", "100k", "200M")):
            sh(f"tnet-data gen -q preset=movies model=deep rows={rows} first_row={first} --format csv --to {folder}/movies.{part}.csv --config-to /dev/null")
    if name == "adult" and not os.path.exists(f"{folder}/adult.valid.csv.gz"):
        for part, test in (("train", "!="), ("valid", "==")):
            sh(f"zcat {data}/adult/train.csv.gz | awk 'NR == 1 || NR % 8 {test} 0' | gzip >{folder}/adult.{part}.csv.gz")
    with open(f"{ROOT}/bench/configs/defaults/{name}.yaml", encoding="utf-8") as file:
        text = file.read().replace("DATA", data).replace("OUT/SET.train", f"{folder}/movies.train.csv")
    text = re.sub(r"OUT/movies\.(\w+)(?!\.csv)", rf"{folder}/movies.\1.csv", text).replace("OUT", folder)
    with open(f"{folder}/{name}.yaml", "w", encoding="utf-8") as file:
        file.write(text)


def frame(path, name):
    """Texts and numbers of a file, and its labels."""
    import pandas
    columns = pandas.read_csv(path, dtype=str, skipinitialspace=True, keep_default_na=False)
    columns.columns = [c.strip() for c in columns.columns]
    label = columns.pop(LABEL.get(name, "label"))
    label = POSITIVE[name](label) if name in POSITIVE else label.astype(float) > 0
    columns = columns.drop(columns=LEFT_OUT.get(name, []))
    for c in NUMBERS.get(name, []):
        columns[c] = pandas.to_numeric(columns[c], errors="coerce")
    return columns, label.astype(int).to_numpy()


def judged(y, p):
    from sklearn.metrics import log_loss, roc_auc_score
    return {"auc": float(roc_auc_score(y, p)), "logloss": float(log_loss(y, p.clip(1e-7, 1 - 1e-7)))}


# ---- programs: each returns figures, seconds and MB ----

def own():
    """Processor seconds and MB of this process and its threads so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def by_tnet(data, folder, name, model):
    words = [f"{folder}/{name}.yaml", f"model={model}", f"run.dir={folder}/run-{os.getpid()}", "train.threads=1"]
    subprocess.run([f"{BIN}/tnet-train", "-q", *words], check=True, capture_output=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run([f"{BIN}/tnet-eval", "-q", "--json", *words], check=True, capture_output=True, text=True).stdout
    subprocess.run(["rm", "-rf", f"{folder}/run-{os.getpid()}"], check=True)
    found = json.loads(said)
    return {"auc": found["auc"], "logloss": found["logloss"]}, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def by_lightgbm(data, folder, name):
    import lightgbm
    import pandas
    began = own()[0]
    if name == "a9a":
        from sklearn.datasets import load_svmlight_file
        read = {p: load_svmlight_file(path_of(data, folder, name, p), n_features=123) for p in PARTS}
        parts = {p: (x, (y > 0).astype(int)) for p, (x, y) in read.items()}
    else:
        parts = {p: frame(path_of(data, folder, name, p), name) for p in PARTS}
        for c in parts["train"][0].columns:
            several = c == "genres"
            if several:
                known = parts["train"][0][c].str.get_dummies("|").columns
            elif c not in NUMBERS.get(name, []):
                kind = pandas.CategoricalDtype(sorted(parts["train"][0][c].unique()))
            for p in PARTS:
                x, y = parts[p]
                if several:
                    more = x[c].str.get_dummies("|").reindex(columns=known, fill_value=0).add_prefix("genre")
                    parts[p] = pandas.concat([x.drop(columns=c), more], axis=1), y
                elif c not in NUMBERS.get(name, []):
                    x[c] = pandas.Categorical.from_codes(kind.categories.get_indexer(x[c]), dtype=kind)  # -1: not in train
    train = lightgbm.Dataset(*parts["train"])
    valid = lightgbm.Dataset(*parts["valid"], reference=train)
    options = {"objective": "binary", "learning_rate": .05, "verbosity": -1, "seed": 1, "bagging_fraction": .8, "bagging_freq": 1, "num_threads": 1}
    model = lightgbm.train(options, train, 2000, valid_sets=[valid], callbacks=[lightgbm.early_stopping(50, verbose=False)])
    seconds, mb = own()
    return judged(parts["test"][1], model.predict(parts["test"][0])), seconds - began, mb


def write_vw(data, folder, name):
    """Lines of one namespace: a value is a feature c=value, a number that of its bucket."""
    import numpy
    from sklearn.datasets import load_svmlight_file
    bounds = {}
    if os.path.exists(f"{folder}/{name}.test.vw"):
        return
    for p in PARTS:
        with open(f"{folder}/{name}.{p}.vw.tmp", "w", encoding="utf-8") as out:
            if name == "a9a":
                x, y = load_svmlight_file(path_of(data, folder, name, p), n_features=123)
                for i in range(len(y)):
                    row = x[i]
                    out.write(f"{1 if y[i] > 0 else -1} |f {' '.join(f'{k}:{v:g}' for k, v in zip(row.indices, row.data))}\n")
            else:
                columns, y = frame(path_of(data, folder, name, p), name)
                names = list(columns.columns)
                for c in NUMBERS.get(name, []):
                    if p == "train":
                        bounds[c] = numpy.unique(numpy.nanquantile(columns[c], numpy.arange(1, 20) / 20))
                    bucket = numpy.searchsorted(bounds[c], columns[c], "right")
                    columns[c] = [str(b) if v == v else "" for b, v in zip(bucket, columns[c])]
                for label, *row in zip(y, *(columns[c] for c in names)):
                    words = []
                    for c, v in zip(names, row):
                        words += [f"{c}={w}" for w in re.sub(r"[\s:]", "_", v).split("|") if w]
                    out.write(f"{1 if label else -1} |f {' '.join(words)}\n")
        with open(f"{folder}/{name}.{p}.vw.tmp", encoding="utf-8") as file:
            lines = file.readlines()
        if p == "train":  # VW learns rows in their order
            random.Random(1).shuffle(lines)
        with open(f"{folder}/{name}.{p}.vw", "w", encoding="utf-8") as out:
            out.writelines(lines)
        os.remove(f"{folder}/{name}.{p}.vw.tmp")


def by_vw(data, folder, name, *more):
    import numpy
    from vowpalwabbit import Workspace
    began = own()[0]
    model, cache = f"{folder}/{os.getpid()}.model", f"{folder}/{os.getpid()}.cache"
    run = Workspace(arg_list=["-d", f"{folder}/{name}.train.vw", "--loss_function", "logistic", "-b", "22", "--passes", "20", "-k", "--cache_file", cache,
                              "-f", model, "--quiet", *more])
    run.finish()
    seconds, mb = own()
    run = Workspace(arg_list=["-i", model, "-t", "--link", "logistic", "--quiet"])
    with open(f"{folder}/{name}.test.vw", encoding="utf-8") as file:
        lines = file.read().splitlines()
    p = numpy.array([run.predict(line) for line in lines])
    run.finish()
    os.remove(model)
    os.remove(cache)
    return judged(numpy.array([not line.startswith("-") for line in lines]).astype(int), p), seconds - began, mb


def one(data, folder, name, program):
    if program.startswith("tnet-"):
        return by_tnet(data, folder, name, program[5:])
    return by_lightgbm(data, folder, name) if program == "lightgbm" else by_vw(data, folder, name, *(["-q", "ff"] if program == "vw-q" else []))


def found_in(folder):
    if not os.path.exists(f"{folder}/others.jsonl"):
        return {}
    with open(f"{folder}/others.jsonl", encoding="utf-8") as file:
        return {(r["set"], r["program"]): r for r in map(json.loads, file)}


def print_table(folder):
    found = found_in(folder)
    for program in PROGRAMS:
        cells = []
        for name in SETS:
            r = found.get((name, program))
            cells.append("" if r is None else f"{r['auc']:.4f}, {r['logloss']:.4f}; {r['seconds']:.1f} s, {r['mb']:.0f} MB".replace("0.", ".", 1).replace(", 0.", ", .", 1))
        print(f"| {program} | " + " | ".join(cells) + " |")


def main():
    if sys.argv[1] == "table":
        return print_table(sys.argv[2])
    data, folder = (os.path.abspath(f) for f in sys.argv[1:3])
    if len(sys.argv) == 6:  # a process of its own, begun by a small one: its memory is what the system says
        if sys.argv[4] == "text":
            return write_vw(data, folder, sys.argv[3])
        figures, seconds, mb = one(data, folder, *sys.argv[3:5])
        line = {"set": sys.argv[3], "program": sys.argv[4], **figures, "seconds": round(seconds, 2), "mb": round(mb)}
        with open(f"{folder}/others.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return print(json.dumps(line), flush=True)
    os.makedirs(folder, exist_ok=True)
    for name in sys.argv[3].split(",") if len(sys.argv) > 3 else SETS:
        prepare(data, folder, name)
        for program in sys.argv[4].split(",") if len(sys.argv) > 4 else PROGRAMS:
            if (name, program) in found_in(folder):
                continue
            for step in (["text"] if program.startswith("vw") else []) + [program]:
                subprocess.run([sys.executable, os.path.abspath(__file__), data, folder, name, step, "alone"], check=True)


main()
