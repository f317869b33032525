#!/bin/sh
# earlier_run.sh - a run of an earlier version, whose configuration has options that are no more: evaluated, exported and
# gone on with. A user who gives them is refused, with the place. test/golden/README.md says how the run was made.
. "$(dirname "$0")/kit"
tar xzf test/golden/earlier_run.tar.gz -C "$dir"
cd "$dir"
config=runs/earlier/ckpt-2/config.yaml
for option in workers: recovery: 'gemm: onednn' 'l2_mode: exact' 'cache: cache'; do
    grep -q "$option" $config || fail "the earlier run has no '$option'"
done

expect 0 tnet-eval runs/earlier --data clicks.libsvm --json
grep -q '"logloss":0.612196' out || fail "another log loss: $(cat out)"
expect 0 tnet-export runs/earlier --to export
expect 3 tnet-eval runs/earlier --data clicks.libsvm compute.gemm=onednn
grep -q "unknown value of 'gemm': 'onednn'" err || fail "$(cat err)"
expect 3 tnet-eval runs/earlier --data clicks.libsvm train.workers=1
grep -q "unknown key 'workers'" err || fail "$(cat err)"

# the configuration as it was: every option that is no more, with its place; and what remains of it
expect 3 tnet-train c.yaml train.workers=1 cluster.recovery=exact
for fault in "c.yaml:11:17: error: unknown value of 'gemm': 'onednn'" "error: unknown key 'workers'" "error: unknown key 'recovery'"; do
    grep -q "$fault" err || fail "no '$fault' in: $(cat err)"
done
expect 3 tnet-train c.yaml compute.gemm=auto
grep -q "c.yaml:8:152: error: unknown value of 'l2_mode': 'exact'" err || fail "$(cat err)"
sed 's/, l2_mode: exact//; /^compute:/d' c.yaml >now.yaml
expect 0 tnet-train now.yaml train.epochs=3
grep -q 'goes on from ckpt-2 (epoch 3 of 3, step 12)' err || fail "did not go on: $(cat err)"
! grep -q 'option.* differ' err || fail "options differ: $(cat err)"
expect 0 tnet-eval runs/earlier --data clicks.libsvm
