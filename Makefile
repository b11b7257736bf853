# `make check` is what CI runs.
.PHONY: check fmt vet staticcheck race test fuzz mutations cover tidy

check: fmt vet staticcheck race

fmt: # gofmt must have nothing to change
	@changed=$$(gofmt -l .); test -z "$$changed" || { echo "gofmt would change:"; echo "$$changed"; exit 1; }

vet:
	go vet ./...

staticcheck: # pinned in tools/go.mod, which the project's own go.mod knows nothing of
	go tool -modfile=tools/go.mod staticcheck ./...

race:
	go test -race ./...

test:
	go test ./...

FUZZTIME ?= 20s
# Go 1.26 may fail at the end of the time without a failing input (go.dev/issue/75804): such a target runs once more.
fuzz: # every target of every package for FUZZTIME, as the packages list them, one for each processor at a time
	@listed=$$(go test -list '^Fuzz' ./...) || { echo "$$listed"; exit 1; }; \
	echo "$$listed" | awk '/^Fuzz/ { names[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, names[i]; n = 0 }' | \
	xargs -L 1 -P "$$(nproc)" sh -c 'fuzz() { out=$$(go test "$$0" -run "^\$$" -fuzz "^$$1\$$" -fuzztime $(FUZZTIME) \
		-fuzzminimizetime 50x -parallel 1 </dev/null 2>&1); failed=$$?; echo "$$0 $$1"; echo "$$out"; }; fuzz "$$1"; \
		case $$failed:$$out in 0:* | *"Failing input"*) ;; *"    context deadline exceeded"*) fuzz "$$1" ;; esac; exit $$failed'

TURN ?= all
mutations: # breaks the code in every way of the table, or of a third of it, and wants one test red each time; takes minutes
	go run ./integration/mutations -turn $(TURN)

cover:
	go test -coverprofile=cover.out ./...
	go tool cover -func=cover.out | tail -n 1

tidy:
	go mod tidy
	cd tools && go mod tidy
