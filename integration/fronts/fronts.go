package fronts

import (
	"taskledger/events"
	"taskledger/item"
	"taskledger/projection/extension"
	"taskledger/projection/items"
	"taskledger/projection/journal"
	"taskledger/projection/schedules"
	"taskledger/projection/settings"
	"taskledger/projection/works"
	"taskledger/schedule"
)

// Part is one of the parts that a front has: CONTRIBUTING.md, "A new front".
type Part string

// The parts of a front.
const (
	Kinds       Part = "kinds"        // its events, with name, record and body
	Goldens     Part = "goldens"      // their stored forms
	Fold        Part = "fold"         // what they do to the state of a shard
	Section     Part = "section"      // the state in a snapshot
	Owner       Part = "owner"        // what an owner does for it beside its tasks
	Process     Part = "process"      // what it does in each process, and takes from owners there
	Commands    Part = "commands"     // what changes it
	Questions   Part = "questions"    // what reads it
	Largest     Part = "largest"      // its commands and questions in their largest form
	Size        Part = "size"         // what they take in an entry at most
	View        Part = "view"         // its events as history and exports show them
	Export      Part = "export"       // proof that an export of one record holds its whole life
	Metrics     Part = "metrics"      // its gauges
	Explain     Part = "explain"      // why a task waits for it
	Routes      Part = "routes"       // its routes, with the least role
	Scope       Part = "scope"        // what the prefix of a token means there
	CommandLine Part = "command line" // its commands on the command line
	ExitCode    Part = "exit code"    // the exit code of its refusals
	Checker     Part = "checker"      // a fold of the harnesses, which imports events alone
	Traffic     Part = "traffic"      // requests in runs of real nodes
	Simulated   Part = "simulated"    // requests in simulated histories
)

// Parts lists every part.
var Parts = []Part{Kinds, Goldens, Fold, Section, Owner, Process, Commands, Questions, Largest, Size, View, Export, Metrics, Explain, Routes, Scope,
	CommandLine, ExitCode, Checker, Traffic, Simulated}

// Place says where a part stands that no table of the program tells of, or why the front has no such part.
type Place struct {
	File string // relative to the root of the module
	Text string // which the file has
	Not  string // why there is no such part; "" = there is one
}

// Front is a front, as the tables of the program name it.
type Front struct {
	Name        string
	Records     []events.Record                           // its own; none = it adds kinds of events of tasks
	Extend      func(extension.Shard) extension.Extension // makes its state in a shard
	Commands    []string                                  // the types of those that change it
	Questions   []string                                  // the types of those that read it
	Routes      string                                    // the patterns of its routes begin so
	CommandLine []string                                  // its commands on the command line
	Refusal     error                                     // has an exit code of its own
	Places      map[Part]Place
}

// in names the place of a part.
func in(file, text string) Place { return Place{File: file, Text: text} }

// not says why a front has no such part.
func not(why string) Place { return Place{Not: why} }

// All lists the fronts. Tasks are the heart, to which fronts are added.
var All = []Front{
	{
		Name:        "task stores",
		Records:     []events.Record{events.OfItem, events.OfForgotten},
		Extend:      items.Extend,
		Commands:    []string{"stores.Update", "stores.Claim"},
		Questions:   []string{"stores.Read", "stores.Page", "stores.Groups", "stores.Await"},
		Routes:      "/store/{name}/",
		CommandLine: []string{"store"},
		Refusal:     &item.ConflictError{},
		Places: map[Part]Place{
			Owner:     in("engine/extensions.go", "stores.AtOwner("),
			Process:   in("engine/extensions.go", "Hinted: items.Hinted,"),
			Metrics:   in("engine/internal/stores/owner.go", "set(meter.ItemsAvailable,"),
			Explain:   not("no task waits for an item"),
			Checker:   in("integration/robustness/check/records.go", "j.items.Apply(ev)"),
			Traffic:   in("integration/robustness/traffic/storeclient.go", "history.ItemCall{Claim: q}"),
			Simulated: in("integration/simulation/world/scenarios.go", "w.storeClients.Keep(count, seed)"),
		},
	},
	{
		Name:        "settings",
		Records:     []events.Record{events.OfSettings},
		Extend:      settings.Extend,
		Commands:    []string{"command.Pause"},
		Questions:   []string{"command.Settings"},
		Routes:      "/v1/behaviors/{behavior}/",
		CommandLine: []string{"pause", "unpause", "settings"},
		Places: map[Part]Place{
			Owner:     in("engine/extensions.go", "pauses.AtOwner("),
			Process:   in("engine/settings.go", "bus.Subscribe(ctx, settingsSubject"),
			Export:    not("an export of one record is of a task or an item"),
			Metrics:   not("operators pause few behaviors, and list them"),
			Explain:   in("engine/ownerhost.go", "task.WhyPaused"),
			ExitCode:  not("what a pause is refused for any command is"),
			Checker:   in("integration/robustness/check/settings.go", "events.OfSettings"),
			Traffic:   in("integration/robustness/traffic/request.go", "case history.Pause:"),
			Simulated: in("integration/simulation/world/caller.go", "op.Verb, op.Reason = history.Pause, reason"),
		},
	},
	{
		Name:        "schedules",
		Records:     []events.Record{events.OfSchedule},
		Extend:      schedules.Extend,
		Commands:    []string{"schedules.Set", "schedules.Steer", "schedules.Run", "schedules.Backfill"},
		Questions:   []string{"schedules.Get", "schedules.List"},
		Routes:      "/v1/schedules",
		CommandLine: []string{"schedule"},
		Refusal:     schedule.ErrChanged,
		Places: map[Part]Place{
			Owner:     in("engine/extensions.go", "schedules.AtOwner("),
			Process:   not("no owner sends it anything, and none is told"),
			Metrics:   in("engine/internal/schedules/owner.go", "set(meter.Schedules,"),
			Explain:   in("engine/internal/schedules/owner.go", "ExplainRecord: o.explain"),
			Checker:   in("integration/robustness/check/records.go", "j.schedules.Apply(ev, there)"),
			Traffic:   in("integration/robustness/traffic/source.go", "{6, (*Source).schedule},"),
			Simulated: in("integration/simulation/world/schedules.go", "s.call(history.SetSchedule, *call, "),
		},
	},
	{
		Name:        "works",
		Extend:      works.Extend,
		Commands:    []string{"works.Plan", "works.Begin", "works.Bucket", "works.Permits", "works.Reset", "works.Rerun", "works.Move", "works.Held"},
		Questions:   []string{"works.Show", "works.Position", "works.Left"},
		Routes:      "/v1/tasks/{id}/work",
		CommandLine: []string{"work"},
		Places: map[Part]Place{
			Owner:     in("engine/extensions.go", "works.AtOwner,"),
			Process:   in("engine/node.go", "workledger.Opener(n.Client.openWork)"),
			Export:    not("its events are of the task, whose export holds them with all others"),
			Metrics:   in("engine/internal/works/gauges.go", "set(meter.StreamChangesOpen,"),
			Explain:   in("engine/internal/works/owner.go", "Explain: o.explain,"),
			ExitCode:  not("what an operation on a work is refused for any operation is"),
			Checker:   in("integration/robustness/check/works.go", "j.works.Apply(ev)"),
			Traffic:   in("integration/robustness/traffic/errands.go", "works.Define("),
			Simulated: in("integration/simulation/world/scenarios.go", "(*scenario).errand,"),
		},
	},
	{
		Name:        "losses of the journal",
		Records:     []events.Record{events.OfJournal},
		Extend:      journal.Extend,
		CommandLine: []string{"repair"},
		Places: map[Part]Place{
			Owner:     in("engine/internal/shard/recover.go", "d.Recover(&events.Recovered{"),
			Process:   not("no process follows it"),
			Commands:  not("an operator leaves a loss in the store, and the next owner records it before any command"),
			Questions: not("verify reads the losses from the journal"),
			Largest:   not("it has no command"),
			Size:      not("it stands in an entry of its own"),
			Export:    in("ledger/exportverify.go", "journal.NewChecker("),
			Metrics:   not("the loss ends a quarantine, which is counted"),
			Explain:   not("a task of a shard in quarantine is explained by the quarantine"),
			Routes:    not("repair needs the store itself"),
			Scope:     not("it has no route"),
			ExitCode:  not("repair has the exit codes of any command"),
			Checker:   in("integration/robustness/check/records.go", "case *events.Recovered:"),
			Traffic:   not("what a store loses, tests of repair lose on purpose: runs of real nodes have sound stores"),
			Simulated: not("the simulated etcd loses nothing that it acknowledged"),
		},
	},
}
