# make run      installs what is missing, builds, generates data, trains, evaluates, exports
# make test     installs what is missing, builds, runs every test
# make check    tests of the rooms that take less than a second each: some 20 seconds, for every save
# make bench    prints speeds beside their limits, ROW=P8 for one; see bench/README.md
# make docs     writes docs/config.md and docs/man/ anew, after an option has changed
# make way      writes the list of docs/way.md anew, after a function on the way of one row has changed
# make fuzz     30 seconds for every fuzz target; SECONDS=600 for more
# make nightly  what .ci/run leaves out for its time; STEPS="asan tsan" for some of it, NIGHT=all for every part
# make interop  exports, data and curves read by other programs, data read from nginx, S3 and behind Kerberos: languages, onnxruntime, scikit-learn, VW,
#               TensorFlow, safetensors, TensorBoard; scores served to tritonclient; where those are installed
# make packages build/packages: Debian packages and a .tar.gz that may be unpacked anywhere
# make wheel    build/wheel/dist: the wheel of the Python package and its source distribution
# make test-python   the tests of the Python package with the newest numpy, pandas, pyarrow, polars, DuckDB and scikit-learn from PyPI, in build/python
# make claims   the figures of quality that README and docs state, found again; DATA=/data holds public sets
# make analyze  clang-tidy and cppcheck on every file, gcc -fanalyzer on src/base, src/io, src/ps and src/cluster
#
# Everything is made in build/, data/ and runs/ of this folder.
# make test PRESET=strict is the same in another tree, and so make run; CMakePresets.json lists them. TESTS=REGEX runs the tests of that name,
# JOBS=3 three at a time.
JOBS = 2

.PHONY: all run test test-python check docs way bench fuzz nightly interop packages wheel claims analyze clean
all: build

.PHONY: build
build:
	@.ci/install build
	@.ci/build release

run:
	@.ci/install build
	@.ci/build $(or $(PRESET),release) tnet-data tnet-train tnet-eval tnet-export tnet-score tnet tnet_archive
	@TNET_BIN=build/$(or $(PRESET),release) datasets/demo.sh

tree = $(or $(PRESET),gcc)
test:
	@.ci/install test
	@.ci/build $(tree)
	@ctest --test-dir build/$(tree) --output-on-failure --no-tests=error -j $(JOBS) $${TESTS:+-R "$$TESTS"} $${WITHOUT:+-LE "$$WITHOUT"} </dev/null

test-python: build
	@python/test.sh

quick_rooms = base config dict io nn ps models metrics extra
check:
	@.ci/install test
	@.ci/build $(tree) $(quick_rooms:%=test_%)
	@ctest --test-dir build/$(tree) --output-on-failure --no-tests=error -j $(JOBS) -L '^quick$$' </dev/null

programs = train data eval export score serve tune keygen
docs:
	@.ci/install build
	@.ci/build $(tree) $(programs:%=tnet-%)
	@build/$(tree)/tnet-train --print-config-doc >docs/config.md
	@for p in $(programs); do build/$(tree)/tnet-$$p --man >docs/man/tnet-$$p.1 || exit; done
	@docs/man/of-header src/serve/tnet.h >docs/man/tnet.3
	@docs/man/of-header src/api/tnet_train.h >docs/man/tnet_train.3
	@git --no-pager diff --stat -- docs

way:
	@.ci/install build
	@test/way/run.sh --write

bench: build
	@TNET_BIN=build/release bench/row $(or $(ROW),all)

fuzz:
	@.ci/install gates
	@test/fuzz/run.sh $(SECONDS)

nightly:
	@.ci/nightly $(STEPS)

interop: build
	@TNET_BIN=build/release test/interop/run.sh

packages:
	@.ci/install packages
	@.ci/packages

wheel:
	@.ci/install build
	@python/build-wheel

claims: build
	@TNET_BIN=build/release DATA=$(or $(DATA),data) bench/claims.py $(WORDS)

analyze:
	@.ci/nightly analyze

clean:
	rm -rf build
