# A bare `make` lists the targets. Everything is done by the go command; make only
# remembers how. Nothing needs to be installed but Go, and a C compiler for `race`.

.DEFAULT_GOAL := help
SHELL := /bin/bash

# Packages that start goroutines, or whose tests do: in others no race can be seen.
RACE := ./cmd/taxon ./coordinator ./coordinator/journal ./worker/... ./store/... \
	./internal/cluster/... ./internal/ui/console ./internal/data/dataset ./internal/app/engine ./internal/model ./internal/model/export ./internal/model/scoring ./internal/model/pruning ./internal/model/parallel ./internal/fs/... ./internal/data/generate ./internal/cluster/jobs ./internal/hadoop/mapreduce/... ./internal/cluster/secure ./internal/app/serve ./internal/cluster/metrics ./internal/app/train ./internal/app/tune ./internal/hadoop/yarn

# Inputs that each fuzz target tries. A count, not a time: with a time, go test can
# report its own deadline as a failure.
FUZZ ?= 5000x

STATICCHECK := go tool -modfile=internal/tools/lint/go.mod staticcheck
BENCHSTAT := go tool -modfile=internal/tools/benchstat/go.mod benchstat
KERNELGEN   := go -C internal/tools/kernelgen run . -root ../../..
PROTOGEN    := go -C internal/tools/protogen run . -root ../../..

help: ## list the targets
	@awk -F '## ' '/^[a-z-]+:.*## / { split($$1, name, ":"); printf "%-18s%s\n", name[1], $$2 }' Makefile

demo: ## train with and without a hierarchy on real text inside the binary, and compare
	go run ./cmd/taxon demo

build: ## bin/taxon; git's revision is stamped into it (taxon version)
	go build -trimpath -tags grpcnotrace -o bin/taxon ./cmd/taxon

test: ## all tests
	go test ./...

# Packages with files that differ from the last commit; if none do, those that it changed.
TOUCHED = { git diff --name-only HEAD -- '*.go'; git ls-files -o --exclude-standard -- '*.go'; } | grep . || git show --name-only --format= HEAD -- '*.go'

check: ## before a commit, under a minute: format, vet, the house's rules, the tests of the packages that you touched
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "run gofmt -w on:"; echo "$$files"; exit 1; fi
	go vet ./...
	go test ./test
	@packages=$$({ $(TOUCHED); } | xargs -r -n1 dirname | sort -u | grep -v '^test\|/testdata\|^internal/tools' | sed 's|^|./|'); \
	packages=$$(for p in $$packages; do if ls $$p/*.go >/dev/null 2>&1; then echo $$p; fi; done); \
	if [ -n "$$packages" ]; then echo "go test -short" $$packages; go test -short $$packages; fi

# Without GORACE each process that a test starts would wait a second as it ends. `lint` has run vet.
race: ## tests of the packages that run goroutines, under the race detector (needs a C compiler)
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 go test -race -short -vet=off $(RACE)

lint: ## gofmt, go vet, staticcheck (pinned in internal/tools/lint)
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "run gofmt -w on:"; echo "$$files"; exit 1; fi
	go vet ./...
	$(STATICCHECK) ./...

# TestAll links new methods, so it comes before what asks them.
lists: ## what follows from declarations: the file that links the methods, tables in docs, the picture of the storeys, Python's parameters
	go test ./internal/methods/all -run TestAll -rewrite
	go test ./internal/methods/all -rewrite
	go test ./test -run 'Lists|PictureOfStoreys' -rewrite-lists -rewrite-storeys
	$(MAKE) build
	cd deploy/python && TAXON_BINARY=$(CURDIR)/bin/taxon $(PYTHON) generate.py

generate: ## generated code from proto/, and mapper's assembly (pinned generators, nothing to install)
	$(PROTOGEN)
	$(KERNELGEN)

generate-check: ## fail if the committed generated code is not what `generate` gives
	$(PROTOGEN) -check
	$(KERNELGEN) -check

# Two at a time: linking and the first inputs of one leave a core idle.
fuzz-short: ## every fuzz target for FUZZ inputs (5000x)
	@grep -r --include='*_test.go' '^func Fuzz' . | sed -E 's|^(.*)/[^/]*:func (Fuzz[A-Za-z0-9_]*).*|\1 \2|' | sort | \
	xargs -L 1 -P 2 bash -c 'echo "$$0 $$1"; \
		out=$$(go test -run "^$$" -fuzz "^$$1$$" -fuzztime $(FUZZ) -fuzzminimizetime 100x $$0) || { echo "$$out"; exit 255; }'

test-memory: ## ingest holds its memory bound on an input ten times larger (2.7 GB of disk)
	TAXON_TEST_MEMORY=1 go test -v -count=1 -run MemoryBound ./internal/data/dataset

test-memory-short: ## the same with a bound and an input ten times smaller
	go test -v -count=1 -run MemoryBound ./internal/data/dataset

test-store: ## shards at full size: 1.4 GB through one, out of one by 24 clients, and a job's weights of 1 GB, in bounded memory; 400 flipped bits
	TAXON_TEST_MEMORY=1 TAXON_TEST_FLIPS=400 go test -v -count=1 -run 'MemoryBound|ExportMemory|FlippedBits|StreamWeightsMemory' ./store/badger ./store/storerpc ./worker

test-exact: ## every awkward problem with every C, loss, bias and schedule against the true optimum, hblr against its twins
	TAXON_TEST_EXACT=full go test -count=1 -timeout 40m ./test/exact
	TAXON_TEST_EXACT=full go test -count=1 -timeout 40m -run 'HBLRBound$$|HBLRSoftmax' ./test/direct

# The readers' Python environment stays outside the repository.
FORMATS_ENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/taxon/formats

test-dear: ## the cases that `go test ./...` leaves out because they are slow
	TAXON_TEST_DEAR=1 go test -count=1 -timeout 30m -run 'KillsOfMethods|WarmStart|TuneMethods|SoftmaxLengths|RollingUpgrade' ./test/e2e ./cmd/taxon ./test/direct ./test/cluster

test-formats: ## exports are opened by SciPy, scikit-learn, safetensors, pyarrow and LIBLINEAR; what pyarrow and polars write now is read; every byte of some files is damaged (builds a Python environment in the user's cache)
	@test -x $(FORMATS_ENV)/bin/python || python3 -m venv $(FORMATS_ENV)
	$(FORMATS_ENV)/bin/pip install -q --disable-pip-version-check -r test/formats/requirements.txt
	TAXON_TEST_FORMATS=1 TAXON_FORMATS_PYTHON=$(FORMATS_ENV)/bin/python go test -count=1 -v ./test/formats
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; $(FORMATS_ENV)/bin/python internal/data/table/testdata/kinds.py "$$dir" && \
	TAXON_TEST_TABLES="$$dir" TAXON_TEST_DAMAGE=full go test -count=1 -v -run 'Kinds|Damage' ./internal/data/table

# Another PYTHON and other PYTHON_PACKAGES have an environment of their own.
PYTHON ?= python3
PYTHON_PACKAGES ?= scikit-learn
PYTHON_ENV = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/taxon/$(notdir $(PYTHON))-$(firstword $(subst *,,$(PYTHON_PACKAGES)))

test-python: build ## the Python package's tests, with its examples
	@test -x $(PYTHON_ENV)/bin/python || $(PYTHON) -m venv $(PYTHON_ENV)
	$(PYTHON_ENV)/bin/pip install -q --disable-pip-version-check $(PYTHON_PACKAGES) 'pytest>=8' pandas networkx grpcio grpcio-reflection onnx onnxruntime mypy numpydoc 'hatchling>=1.24' polars pyarrow
	cd deploy/python && TAXON_BINARY=$(CURDIR)/bin/taxon OMP_NUM_THREADS=1 $(PYTHON_ENV)/bin/python -m pytest -q -p no:cacheprovider tests

# On each the versions that pip finds newest, but for the three that pyproject.toml says may be this old.
test-python-versions: ## the same on the oldest and the newest Python and scikit-learn (Pythons that the PATH lacks come from Maven Central; needs mvn); without them on python3
	@old=$$(deploy/python/interpreter.sh 3.10) && new=$$(deploy/python/interpreter.sh 3.14) || { echo "no Python 3.10 and 3.14 to be had: python3 alone is tested"; exec $(MAKE) test-python; }; \
	$(MAKE) test-python PYTHON="$$old" PYTHON_PACKAGES='scikit-learn==1.4.0 numpy==1.23.* scipy==1.9.*' && $(MAKE) test-python PYTHON="$$new"

RELEASE_ENV = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/taxon/release

release: ## archives and wheels for each platform, licences, changelog, checksums, into dist
	@test -x $(RELEASE_ENV)/bin/python || python3 -m venv $(RELEASE_ENV)
	$(RELEASE_ENV)/bin/pip install -q --disable-pip-version-check build==1.6.1
	PYTHON=$(RELEASE_ENV)/bin/python deploy/release.sh dist

# AGAIN: what the second build builds. Its build cache is empty, so all three take minutes.
release-check: release ## a release holds what it should, its wheel trains, and a clone elsewhere gives the same bytes
	$(if $(AGAIN),TARGETS=$(AGAIN)) $(RELEASE_ENV)/bin/python deploy/release_check.py dist

release-check-short: ## the same, but the clone builds linux/amd64 alone
	$(MAKE) release-check AGAIN=linux/amd64

sim: ## a thousand simulated clusters with every fault; SIM_SEED=n plays one again
	SIM_SEEDS=1000 go test -count=1 -v -run TestSimulation ./test/sim

sim-mutants: ## bugs planted on purpose, each of which the simulation must find
	SIM_MUTANTS=1 go test -count=1 -timeout 1h -v -run TestMutants ./test/sim

chaos: ## kill random processes of a cluster while it trains, 20 runs: TAXON_DATA=DIR make chaos
	TAXON_CHAOS_RUNS=$${TAXON_CHAOS_RUNS:-20} go test -count=1 -timeout 2h -v ./test/chaos

chaos-short: ## the same three times on made-up data, with full disks, a bad network and many callers
	TAXON_CHAOS_RUNS=3 go test -count=1 -v ./test/chaos

hadoop-short: ## HDFS, Kerberos and the three ways of training against real Hadoop, small data: five minutes (takes its jars from Maven Central; needs java and mvn)
	TAXON_HADOOP=$${TAXON_HADOOP:-1} go test -count=1 -timeout 20m -v -skip 'YARN|MapReduce' ./test/hadoop

hadoop-engines: ## all that can happen to YARN placement and MapReduce against real Hadoop, small data: some nine minutes
	TAXON_HADOOP=$${TAXON_HADOOP:-1} go test -count=1 -timeout 40m -v -run 'YARN$$|MapReduce' ./test/hadoop

hadoop-long: ## train WordNet's frequent classes on a cluster that YARN places, scales and loses: TAXON_DATA=DIR make hadoop-long
	TAXON_HADOOP=required TAXON_HADOOP_LONG=1 go test -count=1 -timeout 90m -v -run 'Long$$' ./test/hadoop

# Two at a time (make -j2), what waits for Hadoop or for the network meets what computes.
ci-long: hadoop-short lint generate-check deploy-check pictures race test-formats test-python-versions fuzz-short test-memory-short test-exact test-dear sim sim-mutants chaos-short release-check-short ## what CI runs behind the tests

# Where the pictures of the tests that open browsers are kept.
PICTURES ?= $(or $(TMPDIR),/tmp)/taxon-pictures

pictures: ## the report (light, dark, PDF) and the cluster's page as the browser tests see them, kept in PICTURES (/tmp/taxon-pictures)
	@mkdir -p $(PICTURES)
	go test -count=1 -artifacts -outputdir $(PICTURES) -run InBrowser ./internal/app/report ./internal/cluster/page
	@find $(PICTURES) -name '*.png' -o -name '*.pdf'

deploy-check: ## Kubernetes manifests, alerts, dashboard, systemd units, strictly and against each other (no cluster needed)
	go -C test/deploy test -count=1 .

bench-go: ## Go benchmarks
	go test -run '^$$' -bench . -benchmem ./...

bench-kernels: ## the mapper's inner loops, each kernel beside plain Go, six times, by benchstat
	@f=$$(mktemp); trap 'rm -f $$f' EXIT INT; go test -run '^$$' -bench . -count 6 ./mapper | tee $$f && $(BENCHSTAT) -col /kernel $$f

bench-env: ## a Python environment with PECOS and omikuji for `bench`
	test/bench/versus/bench-env.sh

# What `accuracy` runs on, and where it keeps searches and models to go on with.
SETS ?= clef,news20,enron,proteins_go,wordnet-freq,wordnet
KEEP ?=

# CASE=flat-hinge-news20 measures one claim; go run ./test/bench/versus -list names all.
CASE ?= all

bench: ## every claim about speed against other programs, both sides in one run: TAXON_DATA=DIR make bench
	go run ./test/bench/versus -case '$(CASE)' -write

race-plot: ## F1 and certificate by CPU second, ours and the peers', into docs/race.svg: TAXON_DATA=DIR make race-plot (half an hour)
	go run ./test/bench/versus -race docs/race.svg

papers: ## the papers' tables with C by cross-validation, days on two cores: TAXON_DATA=DIR make papers
	go run ./test/papers -tune -max-time 0

accuracy: ## what tune --time 10m reaches on six data sets, beside the best known: TAXON_DATA=DIR make accuracy (an hour; SETS=clef,enron and TIME=2m are less; EACH=1 also searches every method for itself: hours)
	go run ./test/bench/accuracy -sets '$(SETS)' -keep '$(KEEP)' -time '$(or $(TIME),10m)' $(if $(EACH),-each)

warm: ## what a warm start saves over training from nothing, by what has changed: TAXON_DATA=DIR make warm
	go run ./test/bench/warm

search: ## what tune saves over training its whole grid from nothing: make search ARGS='--data FILE --hierarchy FILE'
	go run ./test/bench/search -- $(ARGS)

overhead: ## what the machine costs over calling mapper and reducer directly: TAXON_DATA=DIR make overhead
	go run ./test/bench/overhead

cluster-cost: ## a cluster of processes against train, taking turns: TAXON_DATA=DIR make cluster-cost
	go run ./test/bench/cluster

tour: ## run the commands of README.md and docs/tour.md and put what they print into them
	go run ./test/bench/tour

clean: ## remove what build left
	rm -rf bin

.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\#.*/\1/p' Makefile)
