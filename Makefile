# Interlock. `make help` lists what there is.
GO      ?= go
BIN     := bin
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
# Without tables for debuggers, which are a third of the files.
LDFLAGS := -s -w -X github.com/interlock-prover/interlock/shared.Version=$(VERSION)

# Pinned, run straight from the module cache: nothing to install.
STATICCHECK := $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOLANGCI    := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help build demo test test-client test-browser soak conformance bench cuda cuda-toolchain cuda-release gpu-tests bench-gpu lint vuln generate fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/interlock and bin/interlock-prover, without cgo
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/interlock ./host/interlock
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/interlock-prover ./plugin

demo: build ## prove and verify real inputs of test size, from nothing
	./examples/demo.sh

test: ## unit and integration tests, small circuits; concurrent packages under -race
	$(GO) test ./...
	$(GO) test -race ./shared/... ./host/... ./prover/interlock/... ./prover/pipeline/... ./prover/witness/... ./prover/constraint/...

test-client: build ## an independent cuzk.v1 client in Python against `interlock serve`
	test -x build/pyclient/bin/pytest || python3 -m venv build/pyclient
	build/pyclient/bin/pip install -q --disable-pip-version-check -r host/gateway/pyclient/requirements.txt
	cd host/gateway/pyclient && ../../../build/pyclient/bin/pytest -q -p no:cacheprovider --durations=5

soak: build ## 200 requests with plugins and hosts killed, by library and gateway; 2,000 window partitions; slow
	INTERLOCK_CHAOS_REQUESTS=200 $(GO) test -race -timeout 30m -run TestChaos ./host
	INTERLOCK_CHAOS_REQUESTS=200 $(GO) test -tags soak -timeout 60m -run TestChaosSoak ./host
	INTERLOCK_WINDOW_PARTITIONS=2000 $(GO) test -tags soak -timeout 120m -v -run WindowSoak ./host
	test -x build/pyclient/bin/pytest || python3 -m venv build/pyclient
	build/pyclient/bin/pip install -q --disable-pip-version-check -r host/gateway/pyclient/requirements.txt
	cd host/gateway/pyclient && INTERLOCK_SOAK=200 ../../../build/pyclient/bin/pytest -q -s -p no:cacheprovider test_soak.py

test-browser: ## the status page in headless Chromium; screenshots go to artifacts/
	$(GO) test -tags browser -count 1 -run Browser ./host/gateway

conformance: ## mainnet shapes and every reference case; slow
	$(GO) test -tags conformance -timeout 40m -run Conformance ./...

bench: build ## the benchmarks; ORACLE=PROGRAM times the Rust originals in the same run
	$(BIN)/interlock bench all $(if $(ORACLE),--oracle $(ORACLE))

# All architectures that CUDA 13 and the kernels serve: Ampere to Blackwell.
CUDA_RELEASE := 80 86 89 90 100 120
CUDA_LIBRARY := libinterlock_cuda.so
CUDA_BENCH   := interlock-cuda-bench

cuda: ## bin/libinterlock_cuda.so for sm_90, or ARCHS="80 89 ..."; needs nvcc
	$(MAKE) -C cuda -j $(shell nproc) all bench
	install -d $(BIN)
	install -m 755 build/cuda/$(CUDA_LIBRARY) build/cuda/$(CUDA_BENCH) $(BIN)/

cuda-toolchain: ## nvcc from Python wheels into build/cuda-toolchain, where none is installed
	$(MAKE) -C cuda toolchain

cuda-release: ## bin/libinterlock_cuda.so for every card
	$(MAKE) -C cuda -j $(shell nproc) all BUILD=../build/cuda-release ARCHS="$(CUDA_RELEASE)"
	install -d $(BIN)
	install -m 755 build/cuda-release/$(CUDA_LIBRARY) $(BIN)/

gpu-tests: build cuda ## bin/*-gpu.test, the tests that need a card, for a machine without Go; PARTS="tests" of bench-gpu runs them
	$(MAKE) -C cuda faults
	install -m 755 build/cuda/libinterlock_cuda_faults.so $(BIN)/
	CGO_ENABLED=0 $(GO) test -c -tags gpu -trimpath -ldflags '-s -w' -o $(BIN)/cuda-gpu.test ./prover/cuda
	CGO_ENABLED=0 $(GO) test -c -tags gpu -trimpath -ldflags '-s -w' -o $(BIN)/prover-gpu.test ./prover
	CGO_ENABLED=0 $(GO) test -c -tags gpu -trimpath -ldflags '-s -w' -o $(BIN)/host-gpu.test ./host

# Everything it runs is in bin/ already, so that the machine with the card needs no compiler.
bench-gpu: ## checks and measures cards with what is in bin/; PARTS="..." chooses
	./cuda/bench-gpu.sh $(PARTS)

lint: ## gofmt, go vet, staticcheck, golangci-lint
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(STATICCHECK) ./...
	$(GOLANGCI) run ./...

fuzz: ## every fuzz target for FUZZTIME, 30 s unless told
	.ci/fuzz $(or $(FUZZTIME),30s)

vuln: ## known vulnerabilities that the code calls
	.ci/vulncheck

generate: ## protobuf code and other generated files
	$(GO) generate ./...

clean: ## remove what was built
	rm -rf $(BIN)
