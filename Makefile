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
FUZZ = -fuzztime $(FUZZTIME) -fuzzminimizetime 50x
TARGETS = internal/wire:FuzzScan internal/wire:FuzzReader events:FuzzDecodeEntry engine:FuzzDecodeBatch engine:FuzzDecodeAnswers \
	engine:FuzzDecodeOutcomes engine:FuzzDecodeAssignments engine:FuzzDecodeAnswerMessage \
	projection:FuzzRestorer natsbus:FuzzSegment_HostileBytesNeverPanic natsbus:FuzzFrame_OpenNeverPanicsAndTakesNothingForged etcdstore:FuzzFormat_DecodersNeverPanic
fuzz: # every target for FUZZTIME
	@for t in $(TARGETS); do go test ./$${t%:*} -run '^$$' -fuzz "^$${t#*:}$$" $(FUZZ) || exit 1; done

mutations: # breaks the code in every way of the table and wants one test red each time; takes minutes
	go run ./integration/mutations

cover:
	go test -coverprofile=cover.out ./...
	go tool cover -func=cover.out | tail -n 1

tidy:
	go mod tidy
	cd tools && go mod tidy
