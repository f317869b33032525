# make run      installs what is missing, builds, generates data, trains, evaluates, exports
# make test     installs what is missing, builds, runs every test
# make bench    prints speeds beside their limits, ROW=P8 for one; see bench/README.md
# make fuzz     30 seconds for every fuzz target; SECONDS=600 for more
# make sanitize every test with the address, then with the thread sanitizer
# make analyze  what gcc -fanalyzer thinks of src/base, src/io and src/ps
#
# Everything is made in build/, data/ and runs/ of this folder.
BUILD = build/gcc

.PHONY: all run test bench fuzz sanitize analyze clean
all: build

.PHONY: build
build:
	@.ci/install build
	@cmake --preset release >/dev/null
	@cmake --build build/release -- --quiet

run: build
	@TNET_BIN=build/release datasets/demo.sh

test:
	@.ci/install test
	@cmake --preset gcc >/dev/null
	@cmake --build $(BUILD) -- --quiet
	@ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j 2

bench: build
	@TNET_BIN=build/release bench/row $(or $(ROW),all)

fuzz:
	@.ci/install gates
	@test/fuzz/run.sh $(SECONDS)

# End-to-end scripts take too long with the thread sanitizer, as does e2e/learning with any.
sanitize:
	@.ci/install gates
	@for kind in asan tsan; do \
	    cmake --preset $$kind >/dev/null && cmake --build build/$$kind -- --quiet && \
	    ctest --test-dir build/$$kind --output-on-failure --no-tests=error -j 2 \
	        -E "^e2e/$$([ $$kind = asan ] && echo learning || echo .*)$$" || exit 1; \
	done

analyze:
	@.ci/install build
	@.ci/analyze

clean:
	rm -rf build
