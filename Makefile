# .ci/run is the gate: fast, and the same every time. `make proof` is the rest.
.PHONY: check fmt vet staticcheck race race-short test fuzz mutations proof release release-twice image-files image cover tidy

check: fmt vet staticcheck race

# What drives a browser is a module of its own, pinned apart from what the project links.
DRIVER := integration/browser/driver

fmt: # gofmt must have nothing to change
	@changed=$$(gofmt -l .); test -z "$$changed" || { echo "gofmt would change:"; echo "$$changed"; exit 1; }

vet:
	go vet ./...
	go vet -tags faketime integration/simulation/program.go
	go -C $(DRIVER) vet ./...

staticcheck: # pinned in tools/go.mod, which the project's own go.mod knows nothing of
	go tool -modfile=tools/go.mod staticcheck ./...
	go tool -modfile=tools/go.mod staticcheck -tags faketime -tests=false ./integration/simulation
	go -C $(DRIVER) tool -modfile=$(CURDIR)/tools/go.mod staticcheck ./...

race: # the detector makes the longest package five times slower, which a busy machine may double: ten minutes are too few for it
	go test -race -timeout 30m ./...

# Tests that only run programs are left out: the detector would watch what starts them. So is a module of its own. What a debugger
# wants takes the linker a third of its time.
race-short: # fewer repetitions, and only where something runs side by side
	go test -race -short -p 2 -timeout 30m -vet=off -ldflags=-w $$(grep -rlE --include='*.go' '^\s*go |\.Go\(|sync\.|atomic\.' . | \
		xargs -n 1 dirname | sort -u | grep -vE '^\./(cmd/node|deploy/check|examples/.*|integration/(browser/driver|upgrade)|internal/archtest)$$')

test:
	go test ./...

FUZZTIME ?= 20s
# A package is built once for all of its targets. A target is interrupted when its time is over: with -fuzztime a duration, Go 1.26
# may fail at the end of the time without a failing input (go.dev/issue/75804).
fuzz: # every target of every package for FUZZTIME, one for each processor at a time
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT; \
	for pkg in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		bin=$$dir/$$(echo "$$pkg" | tr / _); go test -c -fuzz=. -o "$$bin" "$$pkg" || exit 1; \
		for target in $$("$$bin" -test.list '^Fuzz'); do echo "$$bin $$pkg $$target"; done; \
	done >"$$dir/targets" || exit 1; \
	xargs -L 1 -P "$$(nproc)" sh -c 'cd "$$1" || exit; \
		out=$$(timeout --preserve-status -s INT -k 60s $(FUZZTIME) "$$0" -test.run "^\$$" -test.fuzz "^$$2\$$" \
		-test.fuzzminimizetime 50x -test.parallel 1 -test.fuzzcachedir "$$0.cache" </dev/null 2>&1); \
		failed=$$?; echo "$$2"; echo "$$out"; exit $$failed' <"$$dir/targets"

mutations: # breaks the code in every way of the table, and wants one test red each time
	go run ./integration/mutation test

# proof is what the gate has no time for, in parts that note what they came to: see integration/proof. Any of them alone is
# proof-NAME, such as proof-faults.
proof:
	go run ./integration/proof
proof-%:
	go run ./integration/proof $*

release: # binaries for four systems in dist, with checksums and bills of materials: the same bytes for the same commit
	go run ./internal/release

SYSTEM = $(shell go env GOOS)/$(shell go env GOARCH)
# Two clones of the commit in different folders give the same bytes. The second one compiles everything anew, which takes a minute
# and a half of two processors, so it is done for one system of the four.
release-twice:
	@set -e; dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT; \
	one=$$dir/one; two=$$dir/another/folder/two; \
	git clone -q . "$$one"; git clone -q . "$$two"; go build -o "$$dir/release" ./internal/release; \
	(cd "$$one" && "$$dir/release" $(SYSTEM)); \
	(cd "$$two" && GOCACHE=$$dir/cache "$$dir/release" $(SYSTEM)); \
	cmp "$$one/dist/SHA256SUMS" "$$two/dist/SHA256SUMS"

# What deploy/Dockerfile copies, in DIR: the binary of the release for this processor, and files that an image needs.
image-files:
	@set -e; dir="$(abspath $(DIR))"; test -n "$$dir" || { echo "want DIR=folder"; exit 2; }; \
	go run ./internal/release linux/$(shell go env GOARCH); \
	mkdir -p "$$dir/tmp" "$$dir/data"; chmod 1777 "$$dir/tmp"; chmod 700 "$$dir/data"; \
	cp dist/taskledger-*-linux-$(shell go env GOARCH) "$$dir/taskledger"; \
	cp deploy/Dockerfile /etc/ssl/certs/ca-certificates.crt "$$dir"; \
	echo 'taskledger:x:65532:65532::/data:/none' >"$$dir/passwd"

# The other format of podman and buildah would leave HEALTHCHECK out.
image: # taskledger:local of the binary for this machine, by docker, podman or buildah
	@set -e; dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT; \
	$(MAKE) -s image-files DIR="$$dir"; \
	export BUILDAH_FORMAT=docker; \
	for tool in docker podman buildah; do command -v $$tool >/dev/null && $$tool build -t taskledger:local "$$dir" && exit; done; \
	echo "there is no docker, podman or buildah here that can build an image"; exit 1

cover:
	go test -coverprofile=cover.out ./...
	go tool cover -func=cover.out | tail -n 1

tidy:
	go mod tidy
	cd tools && go mod tidy
	cd tools/operator && go mod tidy
	cd $(DRIVER) && go mod tidy
