#!/usr/bin/env python3
"""claims.py - re-runs the quality figures that README, docs and datasets state, for data at hand: `make claims`.

    TNET_BIN=build/release DATA=/data bench/claims.py [WORD ..]

DATA holds frappe, adult, bank, a9a and ml100k as datasets/ says; what is not there is listed as skipped. Generated data
are made. CLAIMS=all also runs the recipes of Frappe, which take long. Words select functions below by a part of their name.

A claim quotes its page; one whose page no longer says so fails, and figures of tables are read from the page itself, so
that this list cannot grow old. The last lines count the other lines of the pages with an AUC or logloss; --unlisted
shows them. Exit code 1: a claim is off its tolerance, or its quote is gone.
"""
import glob
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.abspath(os.environ.get("TNET_BIN", os.path.join(ROOT, "build/release")))
DATA = os.environ.get("DATA", os.path.join(ROOT, "data"))
ALL = os.environ.get("CLAIMS") == "all"
PAGES = sorted(f for p in ("README.md", "docs/*.md", "datasets/*.md", "datasets/*/*.md") for f in glob.glob(os.path.join(ROOT, p)))
SEED = {"auc": 0.004, "logloss": 0.012}  # what seeds differ by, docs/models.md
SETS = {"Frappe": "frappe", "adult": "adult", "bank": "bank", "a9a": "a9a", "MovieLens-100k": "ml100k"}

results = []  # verdicts
quotes = []  # page, text


def page_text(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def run(folder, command, **env):
    return subprocess.run(["bash", "-euc", command], cwd=folder, check=True, capture_output=True, text=True,
                          env={**os.environ, "PATH": BIN + ":" + os.environ["PATH"], "TNET_BIN": BIN, **env}).stdout


def evaluated(folder, words):
    return json.loads(run(folder, f"tnet-eval -q --json {words}"))


def number(text):
    return float(text.replace(",", ""))


def add(name, page, stated, found, verdict):
    results.append(verdict)
    print(f"{name:30} {page:28} {stated:>9} {found:>10}  {verdict}", flush=True)


def judge(name, page, quote, figures):
    """figures: (stated, found, within), of a quote that holds the stated ones; found None: skipped, within says why"""
    quotes.append((page, quote))
    if quote not in page_text(page):
        add(name, page, "", "", f"GONE: the page does not say '{quote}'")
        return
    for stated, found, within in figures:
        if stated not in quote:
            add(name, page, stated, "", f"GONE: not in '{quote}'")
        elif found is None:
            add(name, page, stated, "", f"skipped: {within}")
        else:
            verdict = "ok" if abs(number(stated) - found) <= within else f"OFF by more than {within}"
            add(name, page, stated, f"{found:.6g}", verdict)


def named_blocks(page, folder):
    """The YAML blocks of a page that begin with their name, as files."""
    for name, text in re.findall(r"^```yaml\n# (\w+\.yaml)\n(.*?)^```", page_text(page), re.M | re.S):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


# ---- generated data ----

def demo(folder):
    """`make run`, in a folder of its own"""
    run(folder, f"ln -s '{ROOT}/configs' '{ROOT}/datasets' . && mkdir -p data && sh datasets/demo.sh")
    rows = {line.split()[0]: line.split()[1:] for line in run(folder, "cat runs/widedeep/test.txt").splitlines() if line.split()}
    with open(os.path.join(folder, "runs/widedeep/summary.json"), encoding="utf-8") as file:
        valid = json.load(file)["valid"]
    return float(valid["auc"]), float(valid["logloss"]), float(rows["auc"][0]), float(rows["logloss"][0])


def readme(folder):
    a, l, test_a, test_l = demo(folder)
    judge("make run", "README.md", "auc        0.766987  0.773046", [("0.766987", a, 0.001), ("0.773046", test_a, 0.001)])
    judge("make run", "README.md", "logloss    0.478014  0.474566", [("0.478014", l, 0.001), ("0.474566", test_l, 0.001)])
    judge("make run", "README.md", "valid loss 0.4780, auc 0.7670", [("0.4780", l, 0.001), ("0.7670", a, 0.001)])
    judge("make run", "README.md", "1000000 .773", [(".773", test_a, 0.001)])
    judge("make run", "docs/training.md", "valid loss 0.4780, auc 0.7670", [("0.4780", l, 0.001), ("0.7670", a, 0.001)])


def ffm_files(folder):
    run(folder, "tnet-data gen -q rows=20k slots=8 model=fm ids=500 spread=2 --to train.ffm;"
                "tnet-data gen -q rows=5k first_row=20k slots=8 model=fm ids=500 spread=2 --to valid.ffm")


def from_vw(folder):
    ffm_files(folder)
    named_blocks("docs/from-vw.md", folder)
    run(folder, "for f in train valid; do tnet-data convert -q $f.ffm.yaml to.format=vw --to $f.vw; done")

    def logloss(words):
        run(folder, f"tnet-train -q vw.yaml run.dir=run checkpoint.resume=never {words}")
        return evaluated(folder, f"vw.yaml run.dir=run {words} eval.calibrate=none --data valid.vw")["logloss"]

    def adagrad(lr):
        return f"train.sparse='{{type: adagrad, lr: {lr}}}' train.optimizer='{{type: adagrad, lr: {lr}}}'"

    page = "docs/from-vw.md"
    judge("vw", page, "same logloss on `valid.vw`, .44236", [(".44236", logloss(""), 0.0002)])
    judge("vw, adagrad", page, "with `lr: 0.2` has .4357, with `lr: 0.5` .4594",
          [(".4357", logloss(adagrad(0.2)), 0.001), (".4594", logloss(adagrad(0.5)), 0.001)])


def from_xlearn(folder):
    ffm_files(folder)
    named_blocks("docs/from-xlearn-libffm.md", folder)
    run(folder, "tnet-train -q ffm.yaml run.dir=run train.epochs=5 train.stop=~")
    found = evaluated(folder, "ffm.yaml run.dir=run eval.calibrate=none --data valid.ffm")["logloss"]
    judge("libffm", "docs/from-xlearn-libffm.md", "for five passes, at .4587", [(".4587", found, 0.002)])


def daily(folder):
    block = re.search(r"^```sh\n(.*?)^```", page_text("docs/daily.md"), re.M | re.S).group(1)
    said = run(folder, block.replace("tnet-train daily.yaml", "tnet-train daily.yaml 2>&1 || true"))
    for day, loss, auc in (("01", "0.5294", "0.6872"), ("02", "0.4929", "0.7436"), ("05", "0.4874", "0.7580")):
        found = re.search(f"day 2026-11-{day} is learned: .* loss ([0-9.]+), auc ([0-9.]+)", said)
        judge("days", "docs/daily.md", f"day 2026-11-{day} is learned: 20000 rows; progressive loss {loss}, auc {auc}",
              [(loss, float(found[1]), 0.002), (auc, float(found[2]), 0.002)])


# ---- tables ----

def table_rows(page, head):
    """The rows of the table whose first column is called `head`, as dictionaries, with the line itself."""
    lines = page_text(page).splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith("|") and line.split("|")[1].strip() == head), None)
    if at is None:
        sys.exit(f"{page} has no table '{head}'")
    names = [cell.strip() for cell in lines[at][1:-1].split("|")]
    for line in lines[at + 2:]:
        if not line.startswith("|"):
            return
        yield dict(zip(names, (cell.strip() for cell in line[1:-1].split("|")))), line


def defaults(folder):
    """docs/models.md, Defaults: one seed of each mean of three, by bench/defaults.sh, on public sets"""
    page = "docs/models.md"
    for row, line in table_rows(page, "test AUC, logloss"):
        model = re.fullmatch(r"`(\w+)`(, one pass)?", row.pop("test AUC, logloss"))
        for title, cell in row.items():
            if model is None or cell == "" or title not in SETS:
                continue  # of others, or not asked
            data, name, mode = SETS[title], model[1], "one" if model[2] else "auto"
            stated = cell.split(", ")
            found = dict.fromkeys(("auc", "logloss"))
            why = f"no {DATA}/{data}"
            if os.path.isdir(os.path.join(DATA, data)):
                run(folder, f"'{ROOT}/bench/defaults.sh' '{DATA}' out {data} {name} {mode} 1")
                key = {"set": data, "model": name, "mode": mode, "seed": 1}
                with open(os.path.join(folder, "out/results.jsonl"), encoding="utf-8") as file:
                    found = next(r for r in map(json.loads, file) if key.items() <= r.items())
            judge(f"{title}, {model[0]}", page, line,
                  [(s, found[k], SEED[k] if found[k] is not None else why) for s, k in zip(stated, ("auc", "logloss"))])


def adult(folder):
    page = "datasets/adult/README.md"
    for name, config, more in (("`adult.yaml`", "adult", ""), ("`adult-numeric.yaml`", "adult-numeric", ""),
                               ("the same columns, FM", "adult-numeric", "model.type=fm")):
        row, line = next((r, x) for r, x in table_rows(page, "") if r[""].startswith(name))
        found = {"accuracy": None, "auc": None, "logloss": None}
        if os.path.isdir(os.path.join(DATA, "adult")):
            run(folder, f"ln -sfn '{DATA}' data; ln -sfn '{ROOT}/configs' configs")
            words = f"configs/{config}.yaml run.dir=run-{config}{len(more)} {more}"
            run(folder, f"tnet-train -q {words}")
            found = evaluated(folder, f"{words} --data data/adult/test.csv.gz")
        judge(f"adult, {name.strip('`')}", page, line,
              [(row[t].split(" ")[0], found[k], 0.004 if found[k] is not None else f"no {DATA}/adult")
               for t, k in (("accuracy", "accuracy"), ("AUC", "auc"), ("logloss", "logloss"))])


def frappe(folder):
    """the recipes of BARS, minutes each; published logloss is not calibrated"""
    page = "docs/models.md"
    tables = [(row["`configs/frappe/`"], row["TNet (3 seeds)"], line) for row, line in table_rows(page, "`configs/frappe/`")]
    tables += [(row["configuration"], row["TNet"], line) for row, line in table_rows(page, "configuration")]
    there = os.path.isdir(os.path.join(DATA, "frappe"))
    for name, cell, line in tables:
        name = name.strip("`")
        found = dict.fromkeys(("auc", "logloss"))
        if there and ALL:
            run(folder, f"ln -sfn '{DATA}' data; ln -sfn '{ROOT}/configs' configs; tnet-train -q configs/frappe/{name} run.dir=run-{name}")
            found = evaluated(folder, f"configs/frappe/{name} run.dir=run-{name} eval.calibrate=none --data data/frappe/test.csv.gz")
        why = "takes long: CLAIMS=all" if there else f"no {DATA}/frappe"
        judge(f"Frappe, {name}", page, line, [(s, found[k], SEED[k] if found[k] is not None else why)
                                              for s, k in zip(re.findall(r"\.\d+", cell), ("auc", "logloss"))])


def others(folder):
    """docs/is-it-for-me.md, by bench/others.py; LightGBM and Vowpal Wabbit where this Python has them, one seed"""
    page, sets = "docs/is-it-for-me.md", {**SETS, "movies": "movies"}
    programs = {"TNet `deepfm`": ("tnet-deepfm", "json"), "TNet `lr`": ("tnet-lr", "json"), "LightGBM": ("lightgbm", "lightgbm"),
                "Vowpal Wabbit": ("vw", "vowpalwabbit"), "Vowpal Wabbit, pairs": ("vw-q", "vowpalwabbit")}
    for row, line in table_rows(page, "test AUC, logloss"):
        title = row.pop("test AUC, logloss")
        if title not in programs:
            quotes.append((page, line))  # of docs/models.md
            continue
        program, module = programs[title]
        for name, cell in row.items():
            key, found = sets[name], dict.fromkeys(("auc", "logloss"))
            why = f"no {module}" if importlib.util.find_spec(module) is None else f"no {DATA}/{key}"
            if why != f"no {module}" and (key == "movies" or os.path.isdir(os.path.join(DATA, key))):
                said = run(folder, f"'{sys.executable}' '{ROOT}/bench/others.py' '{DATA}' out {key} {program}")
                found = json.loads(said.splitlines()[-1])
            judge(f"{name}, {title}", page, line, [(s, found[k], SEED[k] if found[k] is not None else why)
                                                   for s, k in zip(cell.split(", "), ("auc", "logloss"))])


def unlisted():
    for path in PAGES:
        page = os.path.relpath(path, ROOT)
        for i, line in enumerate(page_text(page).splitlines(), 1):
            if re.search(r"auc|logloss", line, re.I) and re.search(r"(^|[^0-9])0?\.\d{3,}", line) and \
                    not any(page == p and q in line for p, q in quotes):
                yield f"{page}:{i}: {line.strip()[:120]}"


CLAIMS = [readme, from_vw, from_xlearn, daily, adult, defaults, others, frappe]


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    for claim in CLAIMS:
        if words and not any(word in claim.__name__ for word in words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                claim(folder)
            except subprocess.CalledProcessError as error:
                add(claim.__name__, "", "", "", "FAILED: " + (error.stderr.strip().splitlines() or ["?"])[-1])
    others = list(unlisted())
    if "--unlisted" in sys.argv:
        print("\n".join(others))
    bad = [verdict for verdict in results if not verdict.startswith(("ok", "skipped"))]
    skipped = sum(verdict.startswith("skipped") for verdict in results)
    print(f"{len(results)} figures: {len(results) - len(bad) - skipped} ok, {len(bad)} not, {skipped} skipped; "
          f"{len(others)} other lines with figures (--unlisted)")
    sys.exit(bool(bad))


main()
