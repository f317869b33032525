#!/usr/bin/env python3
"""sequences.py - the numbers of test/models/test_history.c, by the formulas of the papers.

DIN's unit takes [h, t, h - t, h * t] with one matrix, as its authors wrote it; TNet has a matrix for
each of the three sums that this is. BST is a block of a Transformer after the target was appended.
Plain Python in double, so that it runs anywhere: `test/golden/sequences.py` prints the arrays.
"""
import math

HISTORY = [[], [2], [1, 2, 3, 4, 5], [7, 1, 7]]
TARGET = [0, 1, 2, 3]
DIM = 4


def vector(key):
    return [math.sin(3 * key + c) for c in range(DIM)]


def param(index, rows, cols):
    """The index-th trained parameter, in the order in which a layer asks for them."""
    return [[0.4 * math.sin(1 + 7 * index + 0.37 * (r * cols + c)) for c in range(cols)] for r in range(rows)]


def times(x, w):
    return [sum(a * w[i][j] for i, a in enumerate(x)) for j in range(len(w[0]))]


def plus(a, b):
    return [p + q for p, q in zip(a, b)]


def dice(rows, alpha):
    """Over all positions of the batch."""
    n = len(rows)
    out = [[0.0] * len(alpha) for _ in rows]
    for c, a in enumerate(alpha):
        mean = sum(r[c] for r in rows) / n
        var = sum((r[c] - mean) ** 2 for r in rows) / n
        for i, r in enumerate(rows):
            share = 1 / (1 + math.exp(-(r[c] - mean) / math.sqrt(var + 1e-8)))
            out[i][c] = r[c] * (a + (1 - a) * share)
    return out


def din(softmax):
    w = param(0, 2 * DIM, 6)  # of h and of h * t
    sums, products = w[:DIM], w[DIM:]
    of_target, bias = param(1, DIM, 6), param(2, 1, 6)[0]
    differences = param(99, DIM, 6)  # any: the paper's matrix has one degree of freedom more
    paper = [plus(a, [-x for x in d]) for a, d in zip(sums, differences)]
    paper += [plus(a, d) for a, d in zip(of_target, differences)]
    paper += differences + products
    positions = [(r, vector(k)) for r, keys in enumerate(HISTORY) for k in keys]
    z = []
    for r, h in positions:
        t = vector(TARGET[r])
        x = h + t + [a - b for a, b in zip(h, t)] + [a * b for a, b in zip(h, t)]
        z.append(plus(times(x, paper), bias))
    z = dice(z, param(3, 1, 6)[0])
    z = dice([plus(times(x, param(4, 6, 3)), param(5, 1, 3)[0]) for x in z], param(6, 1, 3)[0])
    weight = [times(x, param(7, 3, 1))[0] + param(8, 1, 1)[0][0] for x in z]
    out = []
    for r in range(len(HISTORY)):
        own = [(a, h) for a, (q, h) in zip(weight, positions) if q == r]
        if softmax and own:
            most = max(a for a, _ in own)
            total = sum(math.exp(a - most) for a, _ in own)
            own = [(math.exp(a - most) / total, h) for a, h in own]
        out.append([sum(a * h[c] for a, h in own) for c in range(DIM)])
    return out


def norm(x, gamma, beta):
    mean = sum(x) / len(x)
    var = sum((a - mean) ** 2 for a in x) / len(x)
    return [g * (a - mean) / math.sqrt(var + 1e-5) + b for a, g, b in zip(x, gamma, beta)]


def attention(q, k, v, heads):
    d = DIM // heads
    out = [[0.0] * DIM for _ in q]
    for h in range(0, DIM, d):
        for i, a in enumerate(q):
            s = [sum(a[c] * b[c] for c in range(h, h + d)) / math.sqrt(d) for b in k]
            e = [math.exp(x - max(s)) for x in s]
            for c in range(h, h + d):
                out[i][c] = sum(p / sum(e) * b[c] for p, b in zip(e, v))
    return out


def bst():
    out = []
    table = param(0, 6, DIM)
    w = [param(i, DIM, DIM) for i in range(1, 5)]
    gamma, beta, up, up_b, down, down_b, gamma2, beta2 = (
        param(5, 1, DIM)[0], param(6, 1, DIM)[0], param(7, DIM, DIM), param(8, 1, DIM)[0],
        param(9, DIM, DIM), param(10, 1, DIM)[0], param(11, 1, DIM)[0], param(12, 1, DIM)[0])
    for keys, target in zip(HISTORY, TARGET):
        x = [vector(k) for k in keys + [target]]
        x = [plus(a, table[len(x) - 1 - i]) for i, a in enumerate(x)]
        y = attention(*[[times(a, m) for a in x] for m in w[:3]], heads=2)
        x = [norm(plus(a, times(b, w[3])), gamma, beta) for a, b in zip(x, y)]
        for i, a in enumerate(x):
            u = [b if b > 0 else 0.01 * b for b in plus(times(a, up), up_b)]
            x[i] = norm(plus(a, plus(times(u, down), down_b)), gamma2, beta2)
        out.append([sum(a[c] for a in x) / len(x) for c in range(DIM)])
    return out


for name, rows in (("din", din(False)), ("din_softmax", din(True)), ("bst", bst())):
    print(f"static const double {name}[ROWS][DIM] = {{")
    for r in rows:
        print("    {" + ", ".join(f"{x:.9f}" for x in r) + "},")
    print("};")
