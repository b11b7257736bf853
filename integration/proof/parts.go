package main

// parts are the whole proof. Each takes less than partMost on two processors that have nothing else to do.
var parts = []part{
	{"tests", []string{
		`RAPID_CHECKS=500 PROOF=1 go test -count=1 -timeout 40m -p 1 ` +
			`$(go list ./... | grep -vE "/(engine|integration|cmd/node)(/|$)") $(go list ./cmd/node/internal/...)`,
		`go run ./integration/documents`,
		`go run ./integration/documents otheruser`,
	}},
	{"engine", []string{`RAPID_CHECKS=500 PROOF=1 go test -count=1 -timeout 40m -p 1 ./engine/...`}},
	{"integration", []string{
		`RAPID_CHECKS=500 PROOF=1 go test -count=1 -timeout 40m -p 1 ` +
			`$(go list ./integration/... | grep -vE "/integration(/processes)?$")`,
	}},
	{"restarts", []string{
		// The node that has the servers dies 20 times: who joined it works again within 5 s, and who waits has its
		// outcome.
		`PROOF=1 go test ./cmd/node -run '^TestServe_ComesBackForWhoJoinedAndWhoWaits$' -count=1`,
		// Nodes are stopped in order six times, and killed after 30 s, while a function returns 9 s late, a program
		// ignores SIGTERM and a request does not end: nothing is lost.
		`PROOF=1 go test ./cmd/node -run '^TestServe_StopsInOrderLoseNothing$' -count=1`,
		// A run of a collection whose node is killed, or stands still, is made again within the TTL and a second.
		`PROOF=1 go test ./cmd/node -run '^TestSync_' -count=1`,
		`go test ./cmd/node -count=1`,
		// Among others: owners of a store are killed under load, and nodes at every write of their upkeep.
		`PROOF=1 go test ./integration ./integration/processes -count=1 -timeout 40m -p 1`,
	}},
	{"race", []string{
		`go test -race -count=1 -timeout 40m $(go list ./... | grep -vE "/(engine|integration|cmd/node)(/|$)") ` +
			`$(go list ./cmd/node/internal/...)`,
	}},
	{"race-engine", []string{`go test -race -count=1 -timeout 40m ./engine/...`}},
	{"race-integration", []string{
		`go test -race -count=1 -timeout 40m ./cmd/node $(go list ./integration/... | grep -vE "/integration(/processes)?$")`,
	}},
	{"race-processes", []string{`go test -race -count=1 -timeout 40m ./integration ./integration/processes`}},
	{"histories", []string{`go run ./integration/simulation run --histories 2000 --seed "$SEED"`}},
	{"faults", []string{`go run ./integration/robustness run --all-faults --etcd 3 --seed "$SEED" --parallel 2 --duration 5s`}},
	{"rounds", []string{`go run ./integration/robustness rounds --rounds 100 --parallel 2 --seed "$SEED"`}},
	{"fuzz", []string{`make fuzz FUZZTIME=1m`}},
	{"mutations", []string{`go run ./integration/mutation test`}},
	{"planted-simulated", []string{`go run ./integration/mutation hunt -harness simulated -seed "$SEED"`}},
	{"planted-real", []string{`go run ./integration/mutation hunt -harness real -seed "$SEED"`}},
	// Backup, restore, and the way to own servers, as docs/backup.md has them, with the tools of etcd and NATS.
	{"backups", []string{`go run ./integration/documents backups "$DIR"`}},
	// The dashboard in a browser, and pictures of every page below DIR, which are there to be looked at: with
	// `go run ./integration/browser sheets` they are kept.
	{"browser", []string{
		`go run ./integration/browser`,
		`go run ./integration/browser sheets "$DIR/sheets"`,
	}},
	{"bench", []string{
		`go build -o "$DIR/node" ./cmd/node`,
		// Speed: half of what a quiet machine with two cores must reach.
		`"$DIR/node" bench --in-flight 1000 --duration 12s --min-ratio 1.25`,
		`"$DIR/node" bench --in-flight 64 --duration 12s --min-ratio 0.35`,
		// Each benchmark holds its bounds, beside which stands what a quiet machine reaches. Memory and open files are
		// bounded in a process that has done nothing before.
		`PROOF=1 go test ./integration/bench -run '^$' -bench Soak -benchtime 1x -count 1 -timeout 40m -p 1`,
		`PROOF=1 go test ./integration/bench -run '^$' -bench . -skip Soak -benchtime 1x -count 1 -timeout 40m -p 1`,
	}},
}
