"""Data sets that no default was chosen on: small and wild, rare and sparse, made by scikit-learn and by seeds.

    VENV/bin/python bench/unseen.py FOLDER [SETS]        writes FOLDER/SET/{train,valid,test}, FOLDER/SET.yaml and FOLDER/sets.json
    bench/defaults.sh FOLDER OUT SETS MODELS auto 1,2    then runs TNet on them, with the least configuration there is ..
    VENV/bin/python bench/defaults_reference.py FOLDER OUT SETS      .. and others on the same rows (docs/models.md, Defaults)

Rows of train, valid and test stand with each set; a set that is there is not made again.
"""
import json
import os
import sys

import numpy as np
from scipy.sparse import csr_matrix
from sklearn import datasets

PARTS, WORDS = ('train', 'valid', 'test'), {'text': 'str', '|': 'str, list: "|"'}


def numbers(x, digits=6):
    return {f'x{i}': [f'{v:.{digits}g}' for v in column] for i, column in enumerate(x.T)}


def thrown(rng, z):
    """Labels of these logits."""
    return (rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(int)


def zipf(rng, n, values, power):
    p = np.arange(1., values + 1) ** -power
    return rng.choice(values, n, p=p / p.sum())


# ---- each returns columns of texts (or a sparse matrix), labels, and columns that are not numbers ----

def cancer(rng, n):
    """breast_cancer: 30 numbers."""
    d = datasets.load_breast_cancer()
    return numbers(d.data), d.target, {}


def digits(rng, n):
    """digits, 5 or more: 64 numbers of 0 to 16, some columns all 0."""
    d = datasets.load_digits()
    return numbers(d.data), d.target >= 5, {}


def informative(rng, n):
    """make_classification: 8 informative, 6 redundant, 11 other numbers."""
    x, y = datasets.make_classification(n, 25, n_informative=8, n_redundant=6, n_clusters_per_class=4, flip_y=.05, random_state=1)
    return numbers(x), y, {}


def law(made):
    """One of scikit-learn's: hastie: the squares of 10 numbers sum to more than 9.34; friedman: 5 of 10 numbers, a pair of them as a
    product, noise; moons: two of 10 numbers."""
    return lambda rng, n: (lambda x, y: (numbers(x), y, {}))(*made(rng, n))


def svm(maker):
    """The numbers of a set as libsvm, as they are."""
    def as_libsvm(rng, n):
        columns, y, _ = maker(rng, n)
        return csr_matrix(np.array([np.zeros(n), *columns.values()], dtype=float).T), y, None
    return as_libsvm


def wild(rng, n):
    """Times of 1e9, rates of 1e-6, heavy tails, a fifth missing, a constant, and a word."""
    t = 1.6e9 + rng.integers(0, 3 * 86400 * 365, n)
    rate, tail, price = 1e-6 * rng.gamma(2, 1, n), rng.standard_cauchy(n) * 100, rng.lognormal(3, 2, n)
    gone, word = rng.random((4, n)) < .2, zipf(rng, n, 50, 1)
    z = 1.2 * np.sin(t / 2e7) + 6e5 * (rate - 2e-6) + .8 * np.tanh(tail / 200) - .5 * (np.log(price) - 3)
    z += rng.normal(size=50)[word] + .7 * gone[3] - .8
    x = [np.where(g, '', [f'{v:.10g}' for v in c]) for g, c in zip(gone, [t, rate, tail, price])]
    return {'time': x[0], 'rate': x[1], 'tail': x[2], 'price': x[3], 'constant': ['7'] * n,
            'word': [f'w{v}' for v in word]}, thrown(rng, z), {'word': 'text'}


def tfidf(rng, n):
    """Texts as libsvm: 20,000 words, 30 to 120 a text, tf-idf, rows of length 1; two classes that differ in 2,000 words."""
    weight = 1 / np.arange(1, 20002)
    tilt = np.zeros(20001)
    tilt[rng.choice(20000, 2000, replace=False)] = rng.normal(0, .6, 2000)
    y = rng.random(n) < .3
    row, word = [], []
    for i in range(n):
        p = weight * np.exp(tilt if y[i] else -tilt)
        w = np.searchsorted(np.cumsum(p) / p.sum(), rng.random(rng.integers(30, 120)))
        row += [i] * len(w)
        word += w.tolist()
    x = csr_matrix((np.ones(len(row)), (row, word)), shape=(n, 20001))
    x.sum_duplicates()
    x = x.multiply(np.log(n / (1 + np.asarray((x > 0).sum(0))))).tocsr()
    x.data /= np.repeat(np.sqrt(np.asarray(x.multiply(x).sum(1))[:, 0]), np.diff(x.indptr))
    return x, y, None


def stars(rng, n):
    """User and item by power laws, stars of 1 to 5; more than 3 is a click."""
    user, item = zipf(rng, n, 3000, .8), zipf(rng, n, 2000, .9)
    u, v = rng.normal(size=(3000, 3)), rng.normal(size=(2000, 3))
    z = 3.4 + .5 * rng.normal(size=3000)[user] + .5 * rng.normal(size=2000)[item] + .35 * (u[user] * v[item]).sum(1) + rng.normal(size=n)
    return {'user': user.astype(str), 'item': item.astype(str)}, np.clip(np.round(z), 1, 5).astype(int), {'user': 'text', 'item': 'text'}


def rare(rng, n):
    """Two clicks in 1,000 rows, 20 columns of 1,000 ids by power laws."""
    ids = [zipf(rng, n, 1000, 1.1) for _ in range(20)]
    vector = rng.normal(size=(20, 1000, 4)) * .25
    s = sum(v[i] for v, i in zip(vector, ids))
    z = sum(.3 * rng.normal(size=1000)[i] for i in ids) + .5 * (s * s - sum(v[i] ** 2 for v, i in zip(vector, ids))).sum(1)
    z = 1.2 * (z - z.mean()) / z.std()
    return {f'c{k}': i.astype(str) for k, i in enumerate(ids)}, thrown(rng, z - 7), {f'c{k}': 'text' for k in range(20)}


def mixed(rng, n):
    """Four numbers, four words of 5 to 200 values, what a table of customers holds."""
    x = np.column_stack([rng.normal(40, 12, n), rng.lognormal(8, 1, n), rng.poisson(2, n), rng.random(n)])
    words = [zipf(rng, n, k, .7) for k in (5, 12, 40, 200)]
    z = .05 * (x[:, 0] - 40) + .6 * (np.log(x[:, 1]) - 8) + .8 * (x[:, 2] > 2) + np.sin(6 * x[:, 3]) - 1.2
    z = z + sum(s * rng.normal(size=200)[w] for s, w in zip((.8, .8, .6, .4), words))
    return {**numbers(x), **{f'c{i}': [f'v{a}' for a in w] for i, w in enumerate(words)}}, thrown(rng, z), {f'c{i}': 'text' for i in range(4)}


def xor(rng, n):
    """Two columns of 100 values whose hidden bits decide together alone, two of noise."""
    ids, bit = rng.integers(0, 100, (4, n)), rng.random((2, 100)) < .5
    z = np.where(bit[0][ids[0]] ^ bit[1][ids[1]], 2, -2)
    return {f'c{k}': i.astype(str) for k, i in enumerate(ids)}, thrown(rng, z), {f'c{k}': 'text' for k in range(4)}


def tags(rng, n):
    """One to eight of 500 tags in a field, a user, an hour."""
    weight, user, hour = rng.normal(0, .7, 500), rng.integers(0, 1000, n), rng.integers(0, 24, n)
    rows = [np.unique(zipf(rng, k, 500, .8)) for k in rng.integers(1, 9, n)]
    z = np.array([weight[r].sum() for r in rows]) + .5 * rng.normal(size=1000)[user] + .4 * np.sin(hour / 4) - .7
    return {'user': user.astype(str), 'hour': hour.astype(str), 'tags': ['|'.join(f't{t}' for t in r) for r in rows]}, \
        thrown(rng, z), {'user': 'text', 'hour': 'text', 'tags': '|'}


def once(rng, n):
    """Ids of which most occur once, beside a category and a number."""
    ids, words = rng.zipf(1.25, n) % 10**9, zipf(rng, n, 30, .5)
    weight = np.random.default_rng(5).normal(0, 1.2, 4096)[ids % 4096]
    x = rng.normal(size=n)
    return {'id': ids.astype(str), 'page': (rng.permutation(4 * n)[:n]).astype(str), 'kind': [f'k{w}' for w in words],
            'x': [f'{v:.6g}' for v in x]}, thrown(rng, weight + rng.normal(size=30)[words] + .8 * x - 1.5), \
        {'id': 'text', 'page': 'text', 'kind': 'text'}


SETS = {  # maker; rows of train, valid, test
    'cancer': (cancer, 341, 114, 114), 'digits': (digits, 1079, 359, 359), 'informative': (informative, 20000, 5000, 10000),
    'hastie': (law(lambda rng, n: datasets.make_hastie_10_2(n, random_state=1)), 12000, 4000, 10000),
    'friedman': (law(lambda rng, n: (lambda x, y: (x, y > 14))(*datasets.make_friedman1(n, 10, noise=2, random_state=1))), 6000, 2000, 10000),
    'moons': (law(lambda rng, n: (lambda x, y: (np.column_stack([x, rng.normal(size=(n, 8))]), y))(
        *datasets.make_moons(n, noise=.3, random_state=1))), 3000, 1000, 10000),
    'wild': (wild, 30000, 10000, 20000), 'tfidf': (tfidf, 8000, 3000, 5000), 'stars': (stars, 50000, 15000, 20000),
    'rare': (rare, 500000, 150000, 200000), 'mixed300': (mixed, 300, 100, 10000), 'mixed1k': (mixed, 1000, 300, 10000),
    'mixed3k': (mixed, 3000, 1000, 10000), 'xor': (xor, 30000, 10000, 10000), 'tags': (tags, 25000, 8000, 10000),
    'once': (once, 60000, 20000, 20000), 'cancer-svm': (svm(cancer), 341, 114, 114), 'digits-svm': (svm(digits), 1079, 359, 359)}


def write(folder, name, columns, y, kinds, parts):
    """The files, and the configuration that a newcomer writes."""
    os.makedirs(f'{folder}/{name}', exist_ok=True)
    y = np.maximum(np.asarray(y).astype(int), 0)
    form = 'libsvm' if kinds is None else 'csv'
    for part, rows in parts.items():
        with open(f'{folder}/{name}/{part}.{form}', 'w') as f:
            if form == 'csv':
                f.write(','.join(['label', *columns]) + '\n')
                f.writelines(f'{y[r]},' + ','.join(c[r] for c in columns.values()) + '\n' for r in rows)
                continue
            for r in rows:
                at = slice(columns.indptr[r], columns.indptr[r + 1])
                f.write(f'{y[r]} ' + ' '.join(f'{i}:{v:.5g}' for i, v in zip(columns.indices[at], columns.data[at])) + '\n')
    with open(f'{folder}/{name}.yaml', 'w') as f:
        f.write(f'run: {{name: {name}}}\ndata:\n  format: {form}\n')
        f.writelines(f'  {part}: {folder}/{name}/{part}.{form}\n' for part in PARTS)
        if form == 'csv':
            f.write(f"  label: {'{column: label, threshold: 3}' if y.max() > 1 else 'label'}\nslots:\n")
            f.writelines(f'  - {{name: {c}, type: {WORDS.get(kinds.get(c), "float")}}}\n' for c in columns)
    return {'libsvm': True} if kinds is None else {
        'label': 'label', **({'threshold': 3} if y.max() > 1 else {}), 'columns': {c: kinds.get(c, 'number') for c in columns}}


folder = os.path.abspath(sys.argv[1])
path = f'{folder}/sets.json'
made = json.load(open(path)) if os.path.exists(path) else {}  # what bench/defaults_reference.py reads
for name, (maker, *rows) in SETS.items():
    if name in made or (len(sys.argv) > 2 and name not in sys.argv[2].split(',')):
        continue
    rng = np.random.default_rng(100 + list(SETS).index(name.removesuffix('-svm')))
    columns, y, kinds = maker(rng, sum(rows))
    parts = np.split(rng.permutation(sum(rows)), np.cumsum(rows)[:2])
    made[name] = write(folder, name, columns, y, kinds, dict(zip(PARTS, parts)))
    json.dump(made, open(path, 'w'), indent=1)
    print(name, *rows, 'click rate', round(float(np.mean(np.asarray(y) > (3 if np.max(y) > 1 else 0))), 4), flush=True)
