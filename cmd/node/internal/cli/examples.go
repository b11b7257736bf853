package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// run returns an example: what it is for, and the arguments of the program.
func run(what string, args ...string) example { return example{what, args} }

// examplesOf has examples for each command, by its words; "" names the program without one.
var examplesOf = map[string][]example{
	"": {
		run("serve, in a first terminal"),
		run("then, in another one: run something and wait for its end", "submit", "sleep", `{"duration":"2s"}`, "--wait"),
		run("see what there is", "list"),
		run("see it survive a killed node", "demo"),
	},

	"serve": {
		run("a second node beside one that runs here", "serve", "--join", defaultDir, "--name", "b"),
		run("alone on this machine, without etcd and NATS", "serve", "--store", "files"),
		run("a member of a cluster elsewhere",
			"serve", "--etcd", "etcd-1:2379,etcd-2:2379", "--nats", "nats://nats:4222"),
		run("one that takes tasks while no worker is there, and runs none", "serve", "--slots", "0"),
	},
	"check": {
		run("before a node is started",
			"check", "--etcd", "etcd-1:2379,etcd-2:2379", "--nats", "nats://nats:4222"),
		run("what a file of settings says", "check", "--config", "node.yaml"),
	},
	"health": {
		run("the node on ./taskledger-data", "health"),
		run("in a container, by the variables of its node", "health", "--metrics", "127.0.0.1:9464"),
	},
	"token": {
		run("one for a service that submits", "token", "new", "billing", "--role", "submitter"),
		run("who has one", "token", "list"),
	},
	"token new": {
		run("one for a service that submits", "token", "new", "billing", "--role", "submitter"),
		run("one for a tenant, who sees its own tasks alone",
			"token", "new", "tenant-7", "--role", "operator", "--affinity-prefix", "tenant-7."),
	},
	"token list":   {run("those of a file that serve has by --api-tokens", "token", "list", "--api-tokens", "tokens.json")},
	"token revoke": {run("the one that token list shows so", "token", "revoke", "kq3vha5c")},
	"demo":         {run("the files of another directory", "demo", "/usr/share/doc")},
	"mirror": {
		run("with a limit of deletions", "mirror", "--max-deletes", "100", "/srv/photos", "/mnt/photos"),
		run("that goes on", "mirror", "--follow", "--data", "/tmp/m", "/srv/photos", "/mnt/photos"),
		run("where others find it", "mirror", "--data", "/tmp/m", "/srv/photos", "/mnt/photos"),
		run("one more process of it", "mirror", "--join", "/tmp/m", "/srv/photos", "/mnt/photos"),
	},
	"bench": {
		run("a thousand callers, for half a minute", "bench", "--in-flight", "1000", "--duration", "30s"),
		run("latency of one caller", "bench", "--in-flight", "1"),
	},
	"version": {run("what it is made of", "version", "--modules")},

	"submit": {
		run("run a program that serve --exec-allow date allows", "submit", "exec", `{"program":"date"}`, "--wait"),
		run("once, however often it is submitted",
			"submit", "http", "@request.json", "--id", "report-2026-11", "--delay", "1h"),
		run("the same, without a name of its own", "submit", "http", "@request.json", "--key", "order 4711"),
		run("a file of requests", "submit", "--batch", "requests.jsonl"),
	},
	"behaviors": {run("what submit takes", "behaviors")},
	"get":       {run("everything, for a program", "get", "report-2026-11", "-o", "json")},
	"wait":      {run("for at most a minute", "wait", "report-2026-11", "--timeout", "1m")},
	"list": {
		run("what has failed for good", "list", "--status", "FAILURE", "--substatus", "final"),
		run("what was created in the last hour", "list", "--created-from", "1h"),
		run("all that a tenant asked for", "list", "--affinity-prefix", "tenant-7.", "--limit", "0"),
	},
	"counts": {run("of one behavior", "counts", "--behavior", "http")},
	"cancel": {
		run("one task", "cancel", "report-2026-11", "--reason", "asked for by mistake"),
		run("count those of a behavior that wait, and then cancel them",
			"cancel", "--filter", "behavior=http", "--filter", "status=CREATED", "--yes"),
	},
	"suspend": {run("keep it from starting", "suspend", "report-2026-11", "--reason", "the printer is broken")},
	"resume":  {run("let it start again", "resume", "report-2026-11")},
	"retry": {
		run("one that has failed for good", "retry", "report-2026-11"),
		run("all that have, of a behavior", "retry", "--filter", "behavior=http", "--filter", "status=FAILURE", "--yes"),
	},
	"run-now": {run("do not wait for its time", "run-now", "report-2026-11")},
	"delete": {
		run("one task", "delete", "report-2026-11"),
		run("what ended a week ago and longer", "delete", "--filter", "ended-to=168h", "--yes"),
	},
	"pause":   {run("while what it asks is down", "pause", "http", "--reason", "the shop is down")},
	"unpause": {run("when it is up again", "unpause", "http")},

	"store": {
		run("add a task to the group map", "store", "update", `{"adds":[{"group":"map","data":"a.txt"}]}`),
		run("take one of them for a minute", "store", "claim", "map", "--duration", "1m"),
	},
	"store groups": {run("of another store", "store", "groups", "--store-name", "crawl")},
	"store get":    {run("two tasks", "store", "get", "7", "8")},
	"store list":   {run("also those that somebody has claimed", "store", "list", "map", "--owned")},
	"store update": {
		run("add one task and delete another, or neither",
			"store", "update", `{"adds":[{"group":"map","data":"a.txt"}],"deletes":[7]}`),
		run("what a file says, once, however often it is sent", "store", "update", "--file", "request.json", "--key", "load 12"),
	},
	"store claim": {run("wait half a minute for one", "store", "claim", "map", "--wait-for", "30s")},
	"store stats": {run("how much waits", "store", "stats")},

	"schedule": {
		run("every night at half past three",
			"schedule", "set", "nightly", "--cron", "0 30 3 * * ?", "--timezone", "Europe/Berlin", "--behavior", "noop"),
		run("when the next runs are", "schedule", "get", "nightly"),
	},
	"schedule set": {
		run("every night at half past three",
			"schedule", "set", "nightly", "--cron", "0 30 3 * * ?", "--timezone", "Europe/Berlin", "--behavior", "noop"),
		run("every 90 seconds",
			"schedule", "set", "often", "--cron", "@every 90s", "--behavior", "sleep", "--params", `{"duration":"1s"}`),
	},
	"schedule get":          {run("one schedule", "schedule", "get", "nightly")},
	"schedule list":         {run("those that are paused", "schedule", "list", "--paused")},
	"schedule next":         {run("the next ten times", "schedule", "next", "0 30 3 * * ?", "--limit", "10")},
	"schedule run":          {run("a run now", "schedule", "run", "nightly")},
	"schedule backfill":     {run("what the last two days have missed", "schedule", "backfill", "nightly", "48h", "0s")},
	"schedule pause":        {run("for a while", "schedule", "pause", "nightly", "--reason", "moving house")},
	"schedule resume":       {run("go on", "schedule", "resume", "nightly")},
	"schedule delete":       {run("end it", "schedule", "delete", "nightly")},
	"schedule end-backfill": {run("no more of these runs", "schedule", "end-backfill", "nightly")},

	"work": {
		run("how far it is", "work", "show", "reindex-2026"),
		run("what has failed", "work", "errors", "reindex-2026"),
	},
	"work show":   {run("with the buckets that are worked on", "work", "show", "reindex-2026", "--buckets")},
	"work errors": {run("all of them", "work", "errors", "reindex-2026", "--limit", "0")},
	"work reset":  {run("go on after a threshold has ended it", "work", "reset", "reindex-2026", "--thresholds")},
	"work rerun":  {run("the buckets that had failed items", "work", "rerun", "reindex-2026", "--failed")},

	"sync": {
		run("what would change", "sync", "diff", "sync.yaml"),
		run("make it so", "sync", "apply", "sync.yaml"),
	},
	"sync apply": {
		run("what would change", "sync", "diff", "sync.yaml"),
		run("make it so", "sync", "apply", "sync.yaml"),
	},
	"sync diff":   {run("for a script", "sync", "diff", "sync.yaml", "--exit-code")},
	"sync run":    {run("now, and wait for its end", "sync", "run", "shop", "orders", "--wait")},
	"sync list":   {run("those of one source", "sync", "list", "shop")},
	"sync logs":   {run("of the latest run", "sync", "logs", "shop", "orders", "--follow")},
	"sync pause":  {run("no runs at its times", "sync", "pause", "shop", "orders", "--reason", "the shop moves")},
	"sync resume": {run("go on", "sync", "resume", "shop", "orders")},

	"ui": {run("open the dashboard", "ui")},
	"history": {
		run("who asked, who ran it, what came of it", "history", "report-2026-11"),
		run("what happened last", "history", "report-2026-11", "--newest", "--limit", "20"),
	},
	"logs": {
		run("what it says now", "logs", "report-2026-11", "--follow"),
		run("what went wrong in the last ten minutes", "logs", "report-2026-11", "--level", "error", "--since", "10m"),
	},
	"state": {
		run("what was known ten minutes ago", "state", "report-2026-11", "--at", "10m"),
		run("right after it was created", "state", "report-2026-11", "--seq", "1"),
	},
	"explain": {run("why it does not run", "explain", "report-2026-11")},
	"replay": {
		run("what happened since noon", "replay", "--since", "2026-11-21T12:00:00Z"),
		run("every failure of a behavior", "replay", "--behavior", "http", "--status", "FAILURE"),
	},
	"nodes":    {run("for a program", "nodes", "-o", "json")},
	"shards":   {run("for a program", "shards", "-o", "json")},
	"stats":    {run("for a program", "stats", "-o", "json")},
	"settings": {run("what is paused, and why", "settings")},
	"repair": {
		run("look first", "repair"),
		run("then remove what was shown", "repair", "--yes"),
		run("after etcd was restored from a backup", "repair", "--restored"),
	},

	"copy": {
		run("from the servers inside a node to files", "copy", "--from", "etcd", "--data", defaultDir, "--to", "./files"),
		run("from files to servers of your own",
			"copy", "--from", "./files", "--to", "etcd", "--etcd", "etcd-1:2379", "--nats", "nats://nats-1:4222"),
	},
	"backup": {run("a new directory each time", "backup", "/var/backups/taskledger/2026-11-29")},
	"restore": {
		run("into an etcd without that cluster",
			"restore", "/var/backups/taskledger/2026-11-29", "--etcd", "etcd-1:2379"),
		run("after nodes have gone on since the backup", "restore", "/var/backups/taskledger/2026-11-29", "--restored"),
	},

	"verify": {
		run("everything", "verify", "--with-archive"),
		run("that nothing was changed since the checkpoint",
			"verify", "--checkpoint", "kept.note", "--trust", "taskledger+9a2c01f7+AWn..."),
	},
	"export": {
		run("for an auditor",
			"export", "--task", "report-2026-11", "--signing-key", "ledger.key", "--out", "report.export"),
		run("for whoever kept a checkpoint",
			"export", "--task", "report-2026-11", "--checkpoint", "kept.note", "--out", "report.export"),
		run("who checks it, on another machine", "verify", "report.export", "--trust", "ledger+9a2c01f7+AWn..."),
	},
	"checkpoint": {
		run("make a key, once; it prints the public one, which auditors trust", "checkpoint", "new-key", "ledger.key"),
		run("sign", "checkpoint", "--signing-key", "ledger.key"),
	},
	"checkpoint new-key": {run("under the name of a company", "checkpoint", "new-key", "ledger.key", "--name", "example.com")},

	"completion":            {run("for bash, to be read by it at its start", "completion", "bash")},
	"completion bash":       {run("to be read by bash at its start", "completion", "bash")},
	"completion fish":       {run("to be read by fish at its start", "completion", "fish")},
	"completion powershell": {run("to be read by PowerShell at its start", "completion", "powershell")},
	"completion zsh":        {run("to be read by zsh at its start", "completion", "zsh")},
	"help":                  {run("of a command below another one", "help", "schedule", "set")},
}

// showExamples gives each command its examples.
func (p *Program) showExamples(root *cobra.Command) {
	eachCommand(root, func(c *cobra.Command, path string) { c.Example = p.examples(examplesOf[path]...) })
}

// eachCommand calls do for a command and for all below it that help shows, with their words.
func eachCommand(root *cobra.Command, do func(c *cobra.Command, path string)) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		do(c, strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), root.CommandPath())))
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				walk(sub)
			}
		}
	}
	walk(root)
}
