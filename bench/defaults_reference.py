"""What other programs reach on the files of bench/defaults.sh, and the table of both.

    python3 -m venv VENV && VENV/bin/pip install numpy scipy scikit-learn lightgbm torch
    VENV/bin/python bench/defaults_reference.py DATA FOLDER [SETS [PROGRAMS]]      after bench/defaults.sh DATA FOLDER; resumable
    python3 bench/defaults_reference.py table FOLDER/results.jsonl

scikit-learn  logistic regression, a column per value, numbers in 20 buckets of equal share, L2 (C = 1)
lightgbm      rate 0.05, bagging 0.8, early stop on valid (50 rounds), at most 2000 trees; categories as categories
pytorch       DeepFM: dim 10, 400-400-400, Adam 1e-3 on everything, batch 1024 (64 of fewer than 20,000 rows), at most 20 passes,
              stop on valid logloss (two in a row, best restored); numbers in 20 buckets
scaled, mlp   where they are named: scikit-learn's logistic regression and MLP 100-50 on standard scores of numbers

A value that train does not hold adds nothing. LightGBM and PyTorch run with three seeds and all cores.
"""
import csv
import gzip
import json
import os
import sys
import time

BANK_NUMBERS = ('V1', 'V6', 'V10', 'V12', 'V13', 'V14', 'V15')
FRAPPE = ['user', 'item', 'daytime', 'weekday', 'isweekend', 'homework', 'cost', 'weather', 'country', 'city']
SETS = {  # columns: number, text, or text of several values with their separator
    'frappe': {'label': 'label', 'columns': dict.fromkeys(FRAPPE, 'text')},
    'bank': {'label': 'Class', 'values': {'1': 0, '2': 1},
             'columns': {f'V{i}': 'number' if f'V{i}' in BANK_NUMBERS else 'text' for i in range(1, 17)}},
    'adult': {'label': 'wage_class', 'values': {'>50K': 1, '<=50K': 0, '>50K.': 1, '<=50K.': 0},
              'columns': {**dict.fromkeys(['age', 'fnlwgt', 'education_num', 'capital_gain', 'capital_loss', 'hours_per_week'], 'number'),
                          **dict.fromkeys(['workclass', 'education', 'marital_status', 'occupation', 'relationship', 'race', 'sex',
                                           'native_country'], 'text')}},
    'ml100k': {'label': 'rating', 'threshold': 3,
               'columns': {**dict.fromkeys(['user', 'item', 'age', 'gender', 'occupation', 'zip', 'year'], 'text'), 'genres': '|'}},
    'a9a': {'libsvm': True},
    'criteo': {'header': ['label'] + [f'I{i}' for i in range(1, 14)] + [f'C{i}' for i in range(1, 27)], 'label': 'label',
               'columns': {**{f'I{i}': 'number' for i in range(1, 14)}, **{f'C{i}': 'text' for i in range(1, 27)}}},
    'movies': {'label': 'label', 'columns': {'user': 'text', 'movie': 'text', 'genres': '|', 'device': 'text', 'hour': 'text',
                                             'price': 'number'}},
}


def table(path):
    """Mean test AUC and logloss of each set, a row per program or model and way of ending."""
    runs = {}
    for line in open(path):
        r = json.loads(line)
        runs.setdefault((r['model'], r['mode']), {}).setdefault(r['set'], []).append(r)
    sets = list(dict.fromkeys(s for of in runs.values() for s in of))
    print('| model | passes | ' + ' | '.join(sets) + ' |\n|---' + '|---' * (len(sets) + 1) + '|')
    for (model, mode), of in runs.items():
        cells = []
        for s in sets:
            r = of.get(s, [])
            mean = {k: sum(x[k] for x in r) / len(r) for k in ('auc', 'logloss', 'passes', 'seconds')} if r else None
            cells.append(f"{mean['auc']:.4f} {mean['logloss']:.4f} ({len(r)}: {mean['passes']:.0f}, {mean['seconds']:.0f} s)"
                         if r else '')
        print(f'| {model} | {mode} | ' + ' | '.join(cells) + ' |')


if sys.argv[1] == 'table':
    table(sys.argv[2])
    sys.exit()

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

data, folder = sys.argv[1:3]
results = os.path.join(folder, 'results.jsonl')
names = sys.argv[3].split(',') if len(sys.argv) > 3 else ['frappe', 'adult', 'bank', 'a9a', 'ml100k', 'criteo1m', 'movies1m']
programs = sys.argv[4].split(',') if len(sys.argv) > 4 else ['scikit-learn', 'lightgbm', 'pytorch']
PARTS = ('train', 'valid', 'test')
if os.path.exists(f'{data}/sets.json'):  # of bench/unseen.py
    SETS.update(json.load(open(f'{data}/sets.json')))


def kind_of(name):
    return name.rstrip('m0123456789') if name[-1] == 'm' and name[-2].isdigit() else name


def path_of(name, part):
    kind = kind_of(name)
    for plain in (f'{data}/{name}/{part}.csv', f'{data}/{name}/{part}.libsvm'):
        if os.path.exists(plain):
            return plain
    if kind != name:
        return f"{folder}/{name if part == 'train' else kind}.{part}"
    if name == 'adult' and part != 'test':
        return f'{folder}/adult.{part}.csv.gz'
    return f"{data}/{name}/{part}.{'libsvm' if name == 'a9a' else 'csv'}.gz"


def opened(path):
    return gzip.open(path, 'rt') if path.endswith('.gz') else open(path)


class Values:
    """Texts of one column: all of them, where those of each row begin, and their factors."""

    def __init__(self, rows, factors=None):
        self.start = np.cumsum([0] + [len(r) for r in rows])
        self.text = np.array([v for r in rows for v in r])
        self.factor = np.ones(len(self.text)) if factors is None else np.array(factors)


def read(name, part):
    """{column: numbers or Values}, labels."""
    s = SETS[kind_of(name)]
    with opened(path_of(name, part)) as f:
        if s.get('libsvm'):
            rows = [line.split() for line in f]
            pairs = [[p.split(':') for p in r[1:]] for r in rows]
            factors = [float(p[1]) for r in pairs for p in r]
            return {'_': Values([[p[0] for p in r] for r in pairs], factors)}, np.array([float(r[0]) > 0 for r in rows])
        rows = [r for r in csv.reader(f, delimiter='\t' if 'header' in s else ',') if r]
    head = s.get('header') or [h.strip() for h in rows.pop(0)]
    column = {h: [r[i].strip() for r in rows] for i, h in enumerate(head)}
    y = column[s['label']]
    y = [s['values'][v] if 'values' in s else float(v) > s.get('threshold', 0) for v in y]
    out = {}
    for c, kind in s['columns'].items():
        if kind == 'number':
            out[c] = np.array([float(v) if v else np.nan for v in column[c]])
        else:
            out[c] = Values([(v.split(kind) if kind != 'text' else [v]) if v else [] for v in column[c]])
    return out, np.array(y, dtype=float)


def bucketed(parts):
    """The same with numbers as texts of 20 buckets of equal share in train."""
    out = {p: dict(columns) for p, (columns, _) in parts.items()}
    for c, v in parts['train'][0].items():
        if isinstance(v, np.ndarray):
            bounds = np.unique(np.nanquantile(v, np.arange(1, 20) / 20))
            for p in PARTS:
                x = parts[p][0][c]
                out[p][c] = Values([['nan'] if np.isnan(a) else [str(b)] for a, b in zip(x, np.searchsorted(bounds, x, 'right'))])
    return out


def numbered(columns):
    """{part: (row, id, column, factor) of each value that train holds}, and how many ids there are."""
    out, n = {p: [] for p in PARTS}, 0
    for field, c in enumerate(columns['train']):
        known = np.unique(columns['train'][c].text)
        for p in PARTS:
            v = columns[p][c]
            row = np.repeat(np.arange(len(v.start) - 1), np.diff(v.start))
            at = np.minimum(np.searchsorted(known, v.text), len(known) - 1)
            met = known[at] == v.text
            out[p].append((row[met], at[met] + n, np.full(met.sum(), field), v.factor[met]))
        n += len(known)
    return {p: [np.concatenate(x) for x in zip(*v)] for p, v in out.items()}, n


def by_scikit_learn(parts, seed):
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression
    ids, n = numbered(bucketed(parts))

    def matrix(p):
        row, key, _, factor = ids[p]
        return csr_matrix((factor, (row, key)), shape=(len(parts[p][1]), n))
    m = LogisticRegression(C=1.0, max_iter=500).fit(matrix('train'), parts['train'][1])
    return m.predict_proba(matrix('test'))[:, 1], 1


def scaled(parts):
    """{part: standard scores of numbers, 0 and a mark where one is missing, beside a column per value}."""
    from scipy.sparse import csr_matrix, hstack
    values = {p: {c: v for c, v in columns.items() if isinstance(v, Values)} for p, (columns, _) in parts.items()}
    ids, n = numbered(values) if values['train'] else (None, 0)
    out = {}
    for p in PARTS:
        x = []
        for c, v in parts[p][0].items():
            if not isinstance(v, Values):
                t = parts['train'][0][c]
                x += [np.nan_to_num((v - np.nanmean(t)) / (np.nanstd(t) or 1)), np.isnan(v)]
        blocks = [csr_matrix(np.column_stack(x))] if x else []
        if ids:
            blocks.append(csr_matrix((ids[p][3], (ids[p][0], ids[p][1])), shape=(len(parts[p][1]), n)))
        out[p] = hstack(blocks).tocsr()
    return out


def by_scaled(parts, seed):
    from sklearn.linear_model import LogisticRegression
    x = scaled(parts)
    m = LogisticRegression(C=1.0, max_iter=500).fit(x['train'], parts['train'][1])
    return m.predict_proba(x['test'])[:, 1], 1


def by_mlp(parts, seed):
    from sklearn.neural_network import MLPClassifier
    x = scaled(parts)
    m = MLPClassifier((100, 50), early_stopping=True, random_state=seed).fit(x['train'], parts['train'][1])
    return m.predict_proba(x['test'])[:, 1], m.n_iter_


def by_lightgbm(parts, seed):
    import lightgbm
    from scipy.sparse import csr_matrix
    known = {c: np.unique(v.text) for c, v in parts['train'][0].items() if isinstance(v, Values)}

    def matrix(p):
        out, categories = [], []
        for c, v in parts[p][0].items():
            if isinstance(v, np.ndarray):
                out.append(v)
                continue
            at = np.minimum(np.searchsorted(known[c], v.text), len(known[c]) - 1)
            met = known[c][at] == v.text
            row = np.repeat(np.arange(len(v.start) - 1), np.diff(v.start))
            if np.diff(parts['train'][0][c].start).max() <= 1:
                x = np.full(len(v.start) - 1, -1.0)
                x[row[met]] = at[met]
                categories.append(len(out))
                out.append(x)
            else:
                x = csr_matrix((v.factor[met], (row[met], at[met])), shape=(len(v.start) - 1, len(known[c])))
                if len(parts[p][0]) == 1:
                    return x, []
                out.extend(x.toarray().T)
        return np.column_stack(out), categories
    x, categories = matrix('train')
    train = lightgbm.Dataset(x, parts['train'][1], categorical_feature=categories)
    valid = lightgbm.Dataset(matrix('valid')[0], parts['valid'][1], reference=train)
    options = {'objective': 'binary', 'learning_rate': .05, 'verbosity': -1, 'seed': seed, 'bagging_fraction': .8, 'bagging_freq': 1}
    m = lightgbm.train(options, train, 2000, valid_sets=[valid], callbacks=[lightgbm.early_stopping(50, verbose=False)])
    return m.predict(matrix('test')[0]), m.best_iteration


def by_pytorch(parts, seed):
    import torch
    torch.manual_seed(seed)
    ids, n = numbered(bucketed(parts))
    fields, batch = len(parts['train'][0]), 1024 if len(parts['train'][1]) >= 20000 else 64

    class DeepFM(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.deep = torch.nn.Embedding(n + 1, 10, padding_idx=n)
            self.wide = torch.nn.Embedding(n + 1, 1, padding_idx=n)
            torch.nn.init.normal_(self.deep.weight, 0, .01)
            torch.nn.init.zeros_(self.wide.weight)
            with torch.no_grad():
                self.deep.weight[n] = 0
            width = [fields * 10, 400, 400, 400]
            hidden = [layer for a, b in zip(width, width[1:]) for layer in (torch.nn.Linear(a, b), torch.nn.ReLU())]
            self.mlp = torch.nn.Sequential(*hidden, torch.nn.Linear(400, 1))

        def forward(self, key, field, factor):
            e = self.deep(key) * factor[:, :, None]
            x = torch.zeros(len(key), fields, 10).scatter_add(1, field[:, :, None].expand(-1, -1, 10), e)
            s = x.sum(1)
            return (self.wide(key)[:, :, 0] * factor).sum(1) + .5 * (s * s - (x * x).sum(1)).sum(1) + self.mlp(x.flatten(1))[:, 0]

    def tensors(p):
        order = np.argsort(ids[p][0], kind='stable')
        row, key, field, factor = (a[order] for a in ids[p])
        count = np.bincount(row, minlength=len(parts[p][1]))
        place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        keys = np.full((len(count), max(1, count.max())), n)
        of, factors = np.zeros_like(keys), np.zeros(keys.shape, dtype=np.float32)
        keys[row, place], of[row, place], factors[row, place] = key, field, factor
        return torch.from_numpy(keys), torch.from_numpy(of), torch.from_numpy(factors), torch.from_numpy(parts[p][1]).float()
    tensor = {p: tensors(p) for p in PARTS}
    m = DeepFM()
    optimizer = torch.optim.Adam(m.parameters(), 1e-3)
    loss = torch.nn.BCEWithLogitsLoss()

    def predict(p):
        *x, y = tensor[p]
        with torch.no_grad():
            return torch.cat([torch.sigmoid(m(*(a[i:i + 8192] for a in x))) for i in range(0, len(y), 8192)]).numpy()
    best, worse, kept, passes = np.inf, 0, None, 0
    while passes < 20 and worse < 2:
        *x, y = tensor['train']
        order = torch.randperm(len(y))
        for i in range(0, len(y), batch):
            o = order[i:i + batch]
            optimizer.zero_grad()
            loss(m(*(a[o] for a in x)), y[o]).backward()
            optimizer.step()
        passes += 1
        now = log_loss(parts['valid'][1], np.clip(predict('valid'), 1e-7, 1 - 1e-7))
        worse = 0 if now < best else worse + 1
        if worse == 0:
            best, kept = now, {a: t.clone() for a, t in m.state_dict().items()}
    m.load_state_dict(kept)
    return predict('test'), passes


BY = {'scikit-learn': ('scikit-learn LR', by_scikit_learn, [1]), 'lightgbm': ('LightGBM', by_lightgbm, [1, 2, 3]),
      'pytorch': ('PyTorch DeepFM', by_pytorch, [1, 2, 3]), 'scaled': ('scikit-learn LR, scaled', by_scaled, [1]),
      'mlp': ('scikit-learn MLP', by_mlp, [1, 2])}
done = set()
if os.path.exists(results):
    done = {tuple(json.loads(line)[k] for k in ('set', 'model', 'seed')) for line in open(results)}
for name in names:
    parts = None
    for program in programs:
        title, run, seeds = BY[program]
        for seed in seeds:
            if (name, title, seed) in done:
                continue
            parts = parts or {p: read(name, p) for p in PARTS}
            began = time.time()
            score, passes = run(parts, seed)
            seconds = round(time.time() - began, 1)
            y = parts['test'][1]
            line = {'set': name, 'model': title, 'mode': 'auto', 'seed': seed, 'auc': float(roc_auc_score(y, score)),
                    'logloss': float(log_loss(y, np.clip(score, 1e-7, 1 - 1e-7))), 'copc': float(y.sum() / score.sum()),
                    'passes': passes, 'seconds': seconds}
            print(json.dumps(line), flush=True)
            with open(results, 'a') as f:
                f.write(json.dumps(line) + '\n')
