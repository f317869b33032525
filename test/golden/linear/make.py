#!/usr/bin/env python3
"""make.py - trains the models of models.tar.gz with VW and xLearn, and keeps here what they print and predict.

    python3 -m venv v && v/bin/pip install vowpalwabbit==9.11.9 xlearn==0.40a1 && USER=x v/bin/python make.py

300 made rows of three fields: 260 to learn, 40 that are predicted. In VW's text a page has a word and a scale too.
"""
import math
import os
import random

import vowpalwabbit
import xlearn

USERS = ["alice", "bob", "carol", "dave", "erin", "frank"]
PAGES = ["a1", "a2", "b1", "b2", "c1"]
TAGS = ["x", "y", "z"]


def made_row(r):
    user, page, tags = r.choice(USERS), r.choice(PAGES), r.sample(TAGS, r.randint(1, 2))
    u, p = USERS.index(user), PAGES.index(page)
    z = (u - 2.5) * 0.5 + (p - 2) * 0.4 * (1 if u < 3 else -1) + 0.3 * len(tags)
    return r.random() < 1 / (1 + math.exp(-z)), user, page, [(t, round(r.uniform(0.2, 2), 2)) for t in tags], r.choice([1, 1, 2])


def vw_line(click, user, page, tags, scale):
    lang = "en" if page < "b" else "de"
    tag = " ".join(f"{t}:{x}" for t, x in tags)
    return f"{1 if click else -1} |user {user} |page:{scale} {page} lang:{lang} |tag {tag} |_ {scale} k\n"


def index_line(click, user, page, tags, scale, fields):
    pairs = [(0, USERS.index(user), 1), (1, 6 + PAGES.index(page), scale)] + [(2, 11 + TAGS.index(t), x) for t, x in tags]
    return f"{int(click)} " + " ".join((f"{f}:" if fields else "") + f"{i}:{x}" for f, i, x in pairs) + "\n"


def write(name, lines):
    with open(name, "w", encoding="ascii") as out:
        out.writelines(lines)


def vw(args):
    vowpalwabbit.Workspace(args + " --loss_function logistic --quiet").finish()


def main():
    r = random.Random(7)
    rows = [made_row(r) for _ in range(300)]
    for part, some in (("/tmp/train", rows[:260]), ("rows", rows[260:])):
        write(part + ".vw", [vw_line(*row) for row in some])
        write(part + ".svm", [index_line(*row, False) for row in some])
        write(part + ".ffm", [index_line(*row, True) for row in some])
    for name, options in (("vw", "--ftrl --ftrl_alpha .1"), ("vw-lrq", "--lrq up3 --lrq ut3 --lrq pt3 -l 2")):
        vw(f"-d /tmp/train.vw -k -c --passes 6 -b 24 {options} -f /tmp/{name}.model")
        vw(f"-d /tmp/train.vw -t -i /tmp/{name}.model --invert_hash {name}.txt")
        vw(f"-d rows.vw -t -i /tmp/{name}.model -r {name}.pred")
    for name, model in (("lr", xlearn.create_linear()), ("fm", xlearn.create_fm()), ("ffm", xlearn.create_ffm())):
        kind = "ffm" if name == "ffm" else "svm"
        model.setTrain(f"/tmp/train.{kind}")
        model.setTXTModel(f"xlearn-{name}.txt")
        model.disableLockFree()
        if name == "fm":
            model.disableNorm()
        model.fit({"task": "binary", "lr": 0.2, "lambda": 0.0002, "k": 3, "epoch": 8, "nthread": 1}, f"/tmp/{name}.model")
        model.setTest(f"rows.{kind}")
        model.predict(f"/tmp/{name}.model", f"xlearn-{name}.pred")
        os.remove(f"rows.{kind}.bin")


if __name__ == "__main__":
    main()
