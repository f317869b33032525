#!/bin/sh
# run.sh - what other programs make of TNet's files; not part of `make test`, since it wants what they are
# written in: each check is skipped, and says so, where that is missing.
#
#     TNET_BIN=build/release test/interop/run.sh
set -eu
cd "$(dirname "$0")/../.."
bad=0
for check in readers data arrow stores onnx tensorboard python serve; do
    got=0
    "test/interop/$check.sh" || got=$?
    [ "$got" -eq 0 ] || [ "$got" -eq 77 ] || bad=1
done
exit "$bad"
