package main

// parts are the whole proof. Each takes less than partMost on two processors that have nothing else to do.
var parts = []part{
	{"tests", []string{
		`RAPID_CHECKS=500 PROOF=1 go test -count=1 -timeout 40m -p 1 ` +
			`$(go list ./... | grep -vE "/(engine|integration|cmd/node)(/|$)") $(go list ./cmd/node/internal/...)`,
		`go run ./integration/documents`,
		`go run ./integration/otheruser`,
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
	{"mutations", []string{`go run ./integration/mutations`}},
	{"planted-simulated", []string{`go run ./integration/planted -harness simulated -seed "$SEED"`}},
	{"planted-real", []string{`go run ./integration/planted -harness real -seed "$SEED"`}},
	// Backup, restore, and the way to own servers, as docs/backup.md has them, with the tools of etcd and NATS.
	{"backups", []string{`go run ./integration/backups "$DIR"`}},
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
		// Few slots are used while work waits for them: 0.93 and 0.6 on a quiet machine.
		`"$DIR/node" bench utilization --task-time 50ms --duration 6s --min 0.8`,
		`"$DIR/node" bench utilization --task-time 5ms --duration 6s --min 0.4`,
		// Journals are trimmed at full speed: without that etcd would hold every entry. Memory is bounded, also while
		// they cannot be.
		`"$DIR/node" bench soak --tasks 2000000 --duration 45s --max-kept 0.9 --max-heap 400 --max-open-files 40`,
		`"$DIR/node" bench soak --archive-away --duration 30s --max-heap 400 --max-open-files 40`,
		// Snapshots, archive and trims may cost 15 % on a quiet machine.
		`"$DIR/node" bench upkeep --duration 20s --min-ratio 0.6`,
		// Beside snapshots the p99 of the turns of a shard of 100,000 waiting tasks is 10 ms at most, and such a
		// shard is taken over within 3 s.
		`"$DIR/node" bench scale --delayed 100000 --waiting 1000 --due 100 --duration 5s --max-turn 10ms --max-take-over 3s`,
		// Beside lists the p99 of the turns of a shard of 100,000 waiting tasks is 10 ms at most; a page of 100 tasks
		// among 110,000 takes 50 ms on a quiet machine, and a load keeps 0.8 of its speed there.
		`"$DIR/node" bench lists --finished 100000 --waiting 10000 --duration 6s --max-page 250ms --max-turn 10ms --min-load 0.6`,
		// Tasks that are submitted together are made as fast as single ones, or faster; a meter costs 2 % of CPU per
		// task.
		`"$DIR/node" bench shards --duration 12s --min-ratio 0.5`,
		`"$DIR/node" bench many --duration 12s --min-ratio 0.8`,
		`"$DIR/node" bench figures --duration 24s --max-cost 10`,
		// A task over HTTP beside one in the process, and batches of 1,000: 0.4 and 0.7 of the rate on a quiet machine.
		`"$DIR/node" bench http --duration 12s --idle 2000 --min-ratio 0.2 --max-idle 4`,
		// A task store at its owner's node: 0.9 cycles a task on a quiet machine, and 0.9 of the speed of a store of
		// 1,000 items. Over HTTP 0.4 of the cycles.
		`"$DIR/node" bench store --duration 24s --min-ratio 0.45 --min-depth-ratio 0.6 --max-wake 100ms`,
		`"$DIR/node" bench store-http --duration 12s --min-ratio 0.15`,
		// Tasks whose functions log a line each keep four fifths of the rate of those that log nothing, on a quiet
		// machine, and every line is counted as kept or as dropped.
		`"$DIR/node" bench logs --duration 24s --min-ratio 0.8`,
		// Entries of journals in files: strict is as fast as the etcd inside on a quiet machine, opportunistic twice so.
		`"$DIR/node" bench appends --duration 24s --min-strict 1 --min-strict-alone 1 --min-opportunistic 2 ` +
			`--min-opportunistic-alone 2`,
		// A thousand schedules fire at one instant: each has its run within 2 s, none early, and other tasks go on. While
		// none fires nothing is written.
		`"$DIR/node" bench schedules --schedules 1000 --ticks 5 --idle 5s --max-late 2s --min-ratio 0.5`,
		// Workers end empty buckets half as fast as so many noop tasks of one shard end, or faster, and spend nine tenths
		// of their time on items: 1.5 and 1 on a quiet machine.
		`"$DIR/node" bench works --workers 32 --duration 12s --min-ratio 0.5 --min-on-items 0.9`,
		`"$DIR/node" bench works --workers 4 --duration 12s --min-ratio 0.5 --min-on-items 0.9`,
		// Ten viewers of the dashboard, with 1,100,000 tasks to list: a load keeps four fifths of its rate, and the p99 of
		// pages is at most ten times that of the idle cluster.
		`"$DIR/node" bench dashboard --finished 1000000 --waiting 100000 --viewers 10 --duration 30s --min-load 0.8 --max-page-ratio 10`,
	}},
}
