# Every target runs on a fresh machine with Go; those under "clients" install what they need first.
export GOTOOLCHAIN := $(shell awk '/^toolchain/ { print $$2 }' go.mod)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# ---- the two that a newcomer needs

.PHONY: run
run: build ## build the broker and start it on localhost:9092
	bin/sluice

.PHONY: test
test: ## format, vet and every unit test (under three minutes)
	@unformatted=$$(gofmt -l cmd broker protocol storage replication internal compat-tests); [ -z "$$unformatted" ] || { echo "gofmt these: $$unformatted"; exit 1; }
	go vet ./...
	go test ./...

# ---- building

.PHONY: build
build: ## build bin/sluice, static
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/sluice ./cmd/sluice

.PHONY: cross
cross: ## compile for every system that a release serves
	@for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do \
	  echo "$$target"; CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} go build -trimpath -o /dev/null ./cmd/sluice || exit 1; done

.PHONY: docs
docs: ## write docs/APIS.md, docs/CONFIG.md and docs/METRICS.md anew from their tables
	go run ./cmd/sluice docs apis > docs/APIS.md
	go run ./cmd/sluice docs config > docs/CONFIG.md
	go run ./cmd/sluice docs metrics > docs/METRICS.md

# ---- checking

.PHONY: check
check: test lint ## what to run before a commit

.PHONY: lint
lint: ## static analysis with the list of .golangci.yml
	cd tools/golangci-lint && go build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	bin/golangci-lint run ./...

.PHONY: race
race: ## every unit test under the race detector
	go test -race ./...

FUZZTIME ?= 10s
.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (10s)
	@go list ./... | while read -r package; do \
	  go test -list '^Fuzz' "$$package" | grep '^Fuzz' | while read -r target; do \
	    echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package" || exit 1; done || exit 1; done

.PHONY: bench
bench: ## benchmarks of the hot paths
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: sizes
sizes: ## the longest files and the widest packages, to be read before a change is called done
	@echo "longest files"; git ls-files '*.go' | grep -v _test.go | xargs wc -l | grep -v ' total$$' | sort -rn | head -15
	@echo "exported names"; for d in $$(go list -f '{{.Dir}}' ./...); do echo "$$(go doc -short "$$d" 2>/dev/null | wc -l) $${d#$(CURDIR)/}"; done | sort -rn | head -10

# ---- clients, and Apache Kafka beside us

COMPAT := cd compat-tests && SLUICE=$(CURDIR)/bin/sluice

.PHONY: smoke
smoke: build ## start the broker and run real clients of every common library against it
	$(COMPAT) go test -count=1 -timeout 40m -v ./clients/...

.PHONY: compat
compat: build ## wire scripts, kill -9 rounds, interchange with Apache Kafka's own tools, our commands against Apache Kafka
	$(COMPAT) go test -count=1 -timeout 30m ./wire/... ./durability/... ./interchange/... ./commandline/...

.PHONY: diff
diff: build ## ask Apache Kafka and the broker the same, field by field; writes compat-tests/pending.md
	$(COMPAT) go test -count=1 -timeout 15m -parallel 8 ./diff/... -args -write-pending

.PHONY: proof-kill
proof-kill: build ## fifty kill -9 rounds (CI runs five)
	$(COMPAT) go test -count=1 -timeout 60m ./durability/... -rounds 50 -v

.PHONY: proof-hostile
proof-hostile: build ## every damaged request, each byte of every version (CI sends a sample)
	$(COMPAT) go test -count=1 -timeout 10m ./wire/... -run 'TestBadInput|TestV33' -hostile -v

.PHONY: perf
perf: ## build the load generator, compat-tests/bin/perf
	cd compat-tests && go build -o bin/perf ./perf
