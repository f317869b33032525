#!/usr/bin/env python3
"""user_tensorflow.py - a user's whole TensorFlow run from raw Criteo text: the yardstick of P0 (bench/user.sh).

    user_tensorflow.py TRAIN VALID SAVE [--threads N]

Reads, hashes, trains Wide & Deep 128-64-32 with vectors of 8 for one pass (Adagrad on the rows that a batch touches, Adam on
the net), evaluates VALID, saves to SAVE; prints one JSON line. A thread cuts blocks of the file by numpy, which hashes fields
eight bytes at a time; a tf.function makes up to 64 steps of 1024 rows a call; XLA compiles the net. Rows that fill no batch
are left out, since each shape would be compiled anew.

The best of what was tried, thousand rows/s of the pass over 300,000 rows on two cores (its first call compiles), TensorFlow
2.21:

    as it is                                                       66 to 73 (16 steps a call 69, 4 steps 70); 86 over 1,000,000 rows
    without XLA; inter_op 1; 4; oneDNN off; malloc that keeps pages   61; 70; 61; 66; 61
    blocks by Dataset.map(numpy_function), 2 calls at once         65
    blocks by Dataset.from_generator                               56
    TextLineDataset.batch(1024).map(decode_csv, to_hash_bucket_fast), 2 calls; of 8192 lines, rebatched     54; 56
    the same with tf.strings.split and to_number                   51
    `for x, y in dataset` in one tf.function                       26: its body runs without the pool of threads
    rows by gather, scatter_update, scatter_sub of IndexedSlices   58
    ResourceSparseApplyAdagradV2 without tf.unique before          46
    a dense gradient of the whole table                            16
    numbers by shifts and three products instead of digit by digit 69
    one core: a thread; reading between the steps; without XLA     47; 47; 42
"""
import argparse
import json
import os
import queue
import threading
import time

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument('train')
ap.add_argument('valid')
ap.add_argument('save')
ap.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
a = ap.parse_args()
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
begin = time.time()
import numpy as np
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(a.threads)
tf.config.threading.set_inter_op_parallelism_threads(2 if a.threads > 1 else 1)
tf.random.set_seed(1)
NUMBERS, SLOTS, DIM, ROWS, BATCH, STEPS, BLOCK = 13, 39, 8, 1 << 20, 1024, 64, 1 << 20


# ---- reading: lines to (keys [n, 39], labels [n]) ----

LOW = np.array([(1 << 8 * k) - 1 for k in range(8)] + [(1 << 64) - 1], np.uint64)
ODD = np.arange(1, SLOTS + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xBF58476D1CE4E5B9)


def cut_block(text):
    """whole lines by numpy: a field is the word of its first eight bytes"""
    b = np.frombuffer(text + bytes(8), np.uint8)
    stop = np.flatnonzero((b[:-8] == 9) | (b[:-8] == 10)).reshape(-1, SLOTS + 1)
    start, size = stop[:, :-1] + 1, np.diff(stop, axis=1) - 1
    word = np.ndarray((len(b) - 7,), '<u8', b, strides=(1,))[start] & LOW[np.minimum(size, 8)]
    digit, size = start[:, :NUMBERS], size[:, :NUMBERS]
    minus = b[digit] == ord('-')
    n = np.zeros(digit.shape, np.int64)
    for k in range(int(size.max())):
        n = np.where(k < size - minus, n * 10 + b[np.minimum(digit + minus + k, len(b) - 1)] - 48, n)
    log = np.log(np.maximum(n, 1).astype(np.float32))
    bucket = np.where((n > 2) & ~minus, (log * log).astype(np.int64) + 100, np.where(minus, -n, n))
    word[:, :NUMBERS] = np.where(size > 0, bucket + 1000, 0).astype(np.uint64)
    word = (word ^ ODD) * MIX
    word = (word ^ (word >> np.uint64(31))) * MIX
    return (word >> np.uint64(44)).astype(np.int64), (b[stop[:, 0] - 1] == ord('1')).astype(np.float32)


def blocks(path):
    with open(path, 'rb') as f:
        while text := f.read(BLOCK):
            yield cut_block(text + f.readline())


def calls(path, whole):
    """rows for up to STEPS batches; `whole`: without those that fill no batch"""
    x, y = np.zeros((0, SLOTS), np.int64), np.zeros(0, np.float32)
    for more_x, more_y in blocks(path):
        x, y = np.concatenate([x, more_x]), np.concatenate([y, more_y])
        if n := len(y) // (BATCH * STEPS) * BATCH * STEPS:
            yield x[:n], y[:n]
            x, y = x[n:], y[n:]
    n = len(y) // BATCH * BATCH if whole else len(y)
    yield x[:n], y[:n]


def ahead(items):
    """made by a thread, a few ahead"""
    ready = queue.Queue(4)

    def work():
        for item in items:
            ready.put(item)
        ready.put(None)
    threading.Thread(target=work, daemon=True).start()
    return iter(ready.get, None)


# ---- the model: a table of vectors, each with a wide weight behind it, and a net ----

table = tf.Variable(tf.random.normal([ROWS, DIM + 1], stddev=.01))
squares = tf.Variable(tf.zeros([ROWS, DIM + 1]))
net, width = [], SLOTS * DIM
for units in (128, 64, 32, 1):
    net += [tf.Variable(tf.random.normal([width, units], stddev=(2 / (width + units)) ** .5)), tf.Variable(tf.zeros([units]))]
    width = units
moments = [(tf.Variable(tf.zeros_like(w)), tf.Variable(tf.zeros_like(w))) for w in net]
powers = tf.Variable(1.), tf.Variable(1.)


def logits(rows, weights):
    h = tf.reshape(rows[:, :, :DIM], [-1, SLOTS * DIM])
    for k in range(0, len(weights), 2):
        h = tf.nn.bias_add(tf.matmul(h, weights[k]), weights[k + 1])
        h = tf.nn.relu(h) if k + 2 < len(weights) else h
    return tf.squeeze(h, 1) + tf.reduce_sum(rows[:, :, DIM], 1)


def gradients(rows, y, weights):
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([rows, *weights])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits(rows, weights)))
    return tape.gradient(loss, [rows, *weights])


gradients = tf.function(gradients, jit_compile=True)


@tf.function(input_signature=[tf.TensorSpec((None, SLOTS), tf.int64), tf.TensorSpec((None,), tf.float32)])
def train(xs, ys):
    for k in tf.range(tf.shape(ys)[0] // BATCH):
        x = tf.ensure_shape(xs[k * BATCH:(k + 1) * BATCH], [BATCH, SLOTS])
        y = tf.ensure_shape(ys[k * BATCH:(k + 1) * BATCH], [BATCH])
        ids, where = tf.unique(tf.reshape(x, [-1]))
        of_rows, *of_net = gradients(tf.gather(table, x), y, [w.read_value() for w in net])
        sums = tf.math.unsorted_segment_sum(tf.reshape(of_rows, [-1, DIM + 1]), where, tf.size(ids))
        tf.raw_ops.ResourceSparseApplyAdagradV2(var=table.handle, accum=squares.handle, lr=1e-2, epsilon=1e-10, grad=sums, indices=ids)
        powers[0].assign(powers[0] * .9)
        powers[1].assign(powers[1] * .999)
        for w, g, (m, v) in zip(net, of_net, moments):
            tf.raw_ops.ResourceApplyAdam(var=w.handle, m=m.handle, v=v.handle, beta1_power=powers[0], beta2_power=powers[1], lr=1e-3,
                                         beta1=.9, beta2=.999, epsilon=1e-8, grad=g)


@tf.function
def score(x):
    return logits(tf.gather(table, x), net)


built = time.time()
n = 0
for x, y in ahead(calls(a.train, True)):
    train(x, y)
    n += len(y)
trained = time.time()
parts = [(score(x).numpy(), y) for x, y in ahead(calls(a.valid, False))]
z, y = (np.concatenate(part) for part in zip(*parts))
rank = np.empty(len(z))
rank[np.argsort(z)] = np.arange(1, len(z) + 1)
clicks = y.sum(dtype=np.float64)
auc = (rank[y == 1].sum() - clicks * (clicks + 1) / 2) / (clicks * (len(y) - clicks))
scored = time.time()
tf.train.Checkpoint(table=table, net=net).write(a.save)
print(json.dumps({'rows': n, 'start_s': round(built - begin, 2), 'train_s': round(trained - built, 2),
                  'eval_s': round(scored - trained, 2), 'save_s': round(time.time() - scored, 2), 'auc': round(float(auc), 4)}), flush=True)
os._exit(0)
