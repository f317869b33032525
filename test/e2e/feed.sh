#!/bin/sh
# feed.sh - tnet-eval --feed: a node that was fetched and is fed again gives the same predictions, bit for bit; other
# values give others; files that do not fit are refused.
. "$(dirname "$0")/kit"
clicks "$dir/train.tsv" 3000 0
clicks "$dir/test.tsv" 700 3000
clicks "$dir/more.tsv" 701 3000
clicks "$dir/fewer.tsv" 699 3000
cat >"$dir/c.yaml" <<END
run: {dir: $dir/run}
data: {format: criteo, train: $dir/train.tsv, valid: ~, test: $dir/test.tsv}
embedding: {dim: 4}
model:
  type: graph
  inputs: {wide: {embed: all, dim: 1}, deep: {embed: all}}
  layers:
    - {name: h, dense: deep, units: 16, activation: relu, dropout: 0.1}
    - {name: x, concat: [h, wide]}
    - {name: g, dense: x, units: 8, activation: tanh}
    - {name: z, dense: [g, h, wide], units: 1}
  output: z
train: {epochs: 1, batch: 128, threads: 2}
eval: {batch: 64}
log: {progress: false}
END
config=$dir/c.yaml
cd "$dir"
expect 0 tnet-train "$config"
expect 0 tnet-eval "$config" --predictions plain.tsv

# What is fetched is what is computed: inputs, a node that a dense layer would have swallowed, a matrix that lies inside
# another, a concat, the output.
nodes="in.deep in.wide h h.matmul h.bias x.in g z"
for node in $nodes; do
    expect 0 tnet-eval "$config" --fetch "$node" --predictions fetched.tsv
    cmp plain.tsv fetched.tsv || fail "fetching $node changes predictions"
    mv fetch.npz "$node.npz"
    expect 0 tnet-eval "$config" --feed "$node=$node.npz" --predictions fed.tsv
    cmp plain.tsv fed.tsv || fail "feeding $node changes predictions"
    expect 0 tnet-eval "$config" --feed "$node=$node.npz" --fetch "$node"
    cmp fetch.npz "$node.npz" || fail "$node is not what was fed"
done
expect 0 tnet-eval "$config" --feed g=g.npz --feed h=h.npz --feed in.wide=in.wide.npz --predictions fed.tsv
cmp plain.tsv fed.tsv || fail "feeding three nodes changes predictions"

# values of another model give other predictions
expect 0 tnet-train "$config" run.dir="$dir/other" run.seed=9
expect 0 tnet-eval "$config" run.dir="$dir/other" --feed g=g.npz --fetch g --predictions mixed.tsv
cmp -s plain.tsv mixed.tsv && fail "another model predicts the same"
cmp fetch.npz g.npz || fail "g is not what was fed"
expect 0 tnet-eval "$config" run.dir="$dir/other" --feed z=z.npz --predictions fed.tsv
cmp plain.tsv fed.tsv || fail "a fed output is not what is predicted"

# what does not fit
expect 4 tnet-eval "$config" --feed g=g.npz --data more.tsv
says "'g.npz' has 700 rows for node 'g', the data more"
expect 4 tnet-eval "$config" --feed g=g.npz --data fewer.tsv --predictions nothing.tsv
says "'g.npz' has 700 rows for node 'g', the data 699"
[ ! -e nothing.tsv ] || fail "predictions of a file that does not fit"
expect 4 tnet-eval "$config" --feed g=h.npz
says "'h.npz' has no array 'g'"
sed 's/units: 8/units: 4/' c.yaml >narrow.yaml
expect 0 tnet-train narrow.yaml run.dir="$dir/narrow"
expect 0 tnet-eval narrow.yaml run.dir="$dir/narrow" --fetch g
expect 4 tnet-eval "$config" --feed g=fetch.npz
says "'fetch.npz': array 'g' has 4 columns, the node has 8"
expect 8 tnet-eval "$config" --feed g=absent.npz
says "cannot open 'absent.npz'"
expect 4 tnet-eval "$config" --feed g=plain.tsv
says "'plain.tsv' is no npz file that is read here: it does not end in a directory of arrays"
expect 3 tnet-eval "$config" --feed gg=g.npz
says "no node 'gg' in the graph"
expect 3 tnet-eval "$config" --feed g=g.npz --feed x.in=x.in.npz
says "node 'x.in' cannot be fed: the output does not need it"
expect 3 tnet-eval "$config" --feed g=g.npz --peers 2
says "'--feed' sets rows in the order of the data"
for wrong in g =g.npz g=; do
    expect 2 tnet-eval "$config" --feed "$wrong"
    says "'--feed' is NODE=FILE.npz, not '$wrong'"
done
expect 2 tnet-eval "$config" --feed g=g.npz --feed g=h.npz
says "'--feed' has node 'g' twice"
expect 2 tnet-eval "$config" --feed g=g.npz --calibrate platt --data fewer.tsv
says "not with '--feed'"
expect 2 tnet-eval "$config" --export x --feed g=g.npz
says "'--feed' needs a checkpoint"
