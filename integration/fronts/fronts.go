package fronts

import (
	"fmt"
	"strings"

	"taskledger/events"
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
var Parts = []Part{Kinds, Goldens, Fold, Section, Owner, Commands, Questions, Largest, Size, View, Export, Metrics, Explain, Routes, Scope,
	CommandLine, ExitCode, Checker, Traffic, Simulated}

// Place says where a part of a front stands, or why the front has none.
type Place struct {
	File string // relative to the root of the module
	Text string // which the file has
	Not  string // why there is no such part; "" = there is one
}

// Front is a front with the records of its events.
type Front struct {
	Name    string
	Records []events.Record
	Places  map[Part]Place
}

// in names the place of a part.
func in(file, text string) Place { return Place{File: file, Text: text} }

// not says why a front has no such part.
func not(why string) Place { return Place{Not: why} }

// All lists the fronts. Tasks are the heart, to which fronts are added.
var All = []Front{
	{
		Name:    "task stores",
		Records: []events.Record{events.OfItem, events.OfForgotten},
		Places: map[Part]Place{
			Kinds:       in("events/kinds.go", `KindItemAdded:       {"ItemAdded", OfItem, empty[ItemAdded]}`),
			Goldens:     in("events/sample_test.go", "&events.ItemAdded{"),
			Fold:        in("projection/extensions.go", "	items.Extend,\n"),
			Section:     in("projection/items/extend.go", "for _, of := range Sections {"),
			Owner:       in("engine/extensions.go", "stores.AtOwner("),
			Commands:    in("engine/internal/commands/commands.go", "command.Empty[stores.Update]"),
			Questions:   in("engine/internal/commands/commands.go", "command.Empty[stores.Page]"),
			Largest:     in("engine/internal/command/commandtest/items.go", "case *stores.Claim:"),
			Size:        in("engine/internal/stores/update.go", "func (c *Update) Size() int {"),
			View:        in("api/view/event.go", "case *events.ItemAdded:"),
			Export:      in("projection/items/extend.go", "Partial: s.OnlySome,"),
			Metrics:     in("engine/internal/stores/owner.go", "set(meter.ItemsAvailable,"),
			Explain:     not("no task waits for an item"),
			Routes:      in("api/stores/stores.go", "Role:    token.Submitter,"),
			Scope:       in("api/stores/stores.go", "Scope:   api.OneStore"),
			CommandLine: in("cmd/node/internal/storecli/storecli.go", `Use:   "store"`),
			ExitCode:    in("cmd/node/internal/exitcode/exitcode.go", "is[*item.ConflictError](err)"),
			Checker:     in("integration/robustness/check/records.go", "j.items.Apply(ev)"),
			Traffic:     in("integration/robustness/keepers/keeper.go", "history.ItemCall{Claim: q}"),
			Simulated:   in("integration/simulation/world/scenarios.go", "w.keepers.Keep(count, seed)"),
		},
	},
	{
		Name:    "settings",
		Records: []events.Record{events.OfSettings},
		Places: map[Part]Place{
			Kinds:       in("events/kinds.go", `{"Paused", OfSettings, empty[Paused]}`),
			Goldens:     in("events/sample_test.go", "&events.Paused{"),
			Fold:        in("projection/extensions.go", "	settings.Extend,\n"),
			Section:     in("projection/settings/settings.go", "extension.OfSingle(events.OfSettings"),
			Owner:       in("engine/extensions.go", "pauses.AtOwner("),
			Commands:    in("engine/internal/commands/commands.go", "command.Empty[command.Pause]"),
			Questions:   in("engine/internal/commands/commands.go", "command.Empty[command.Settings]"),
			Largest:     in("engine/internal/command/commandtest/commandtest.go", "case *command.Pause:"),
			Size:        in("engine/internal/command/pause.go", "func (c *Pause) Size() int {"),
			View:        in("api/view/event.go", "case *events.Paused:"),
			Export:      not("an export of one record is of a task or an item"),
			Metrics:     not("operators pause few behaviors, and list them"),
			Explain:     in("engine/ownerhost.go", "task.WhyPaused"),
			Routes:      in("api/routes.go", "/v1/behaviors/{behavior}/pause"),
			Scope:       in("api/routes.go", "Scope:   Everything"),
			CommandLine: in("cmd/node/internal/cli/operate.go", "{operations.Pause, "),
			ExitCode:    not("what a pause is refused for any command is"),
			Checker:     in("integration/robustness/check/settings.go", "events.OfSettings"),
			Traffic:     in("integration/robustness/traffic/request.go", "case history.Pause:"),
			Simulated:   in("integration/simulation/world/caller.go", "op.Verb, op.Reason = history.Pause, reason"),
		},
	},
	{
		Name:    "losses of the journal",
		Records: []events.Record{events.OfJournal},
		Places: map[Part]Place{
			Kinds:       in("events/kinds.go", `{"Recovered", OfJournal, empty[Recovered]}`),
			Goldens:     in("events/sample_test.go", "&events.AcceptedLoss{"),
			Fold:        in("projection/extensions.go", "	journal.Extend,\n"),
			Section:     in("projection/journal/journal.go", "extension.OfSingle(events.OfJournal"),
			Owner:       in("engine/internal/shard/recover.go", "d.Recover(&events.Recovered{"),
			Commands:    not("an operator leaves a loss in the store, and the next owner records it before any command"),
			Questions:   not("verify reads the losses from the journal"),
			Largest:     not("it has no command"),
			Size:        not("it stands in an entry of its own"),
			View:        in("api/view/event.go", "case *events.Recovered:"),
			Export:      in("ledger/exportverify.go", "journal.NewChecker("),
			Metrics:     not("the loss ends a quarantine, which is counted"),
			Explain:     not("a task of a shard in quarantine is explained by the quarantine"),
			Routes:      not("repair needs the store itself"),
			Scope:       not("it has no route"),
			CommandLine: in("cmd/node/internal/cli/repair.go", "--restored"),
			ExitCode:    not("repair has the exit codes of any command"),
			Checker:     in("integration/robustness/check/records.go", "case *events.Recovered:"),
			Traffic:     not("what a store loses, tests of repair lose on purpose: runs of real nodes have sound stores"),
			Simulated:   not("the simulated etcd loses nothing that it acknowledged"),
		},
	},
}

// Check returns what is missing of the fronts. read returns the text of a file.
func Check(all []Front, read func(file string) (string, error)) (problems []string) {
	missing := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	owners := map[events.Record]string{events.OfTask: "tasks"}
	for i := range all {
		f := &all[i]
		for _, of := range f.Records {
			if other := owners[of]; other != "" {
				missing("record %s is of %s and of %s", of, other, f.Name)
			}
			owners[of] = f.Name
		}
		for _, part := range Parts {
			place, has := f.Places[part]
			switch {
			case !has:
				missing("%s: no row for %s", f.Name, part)
				continue
			case place.Not != "":
				continue
			}
			text, err := read(place.File)
			if err != nil {
				missing("%s: %s: %v", f.Name, part, err)
			} else if !strings.Contains(text, place.Text) {
				missing("%s: %s: %s does not have %q", f.Name, part, place.File, place.Text)
			}
		}
	}
	for _, of := range events.Records() {
		if owners[of] == "" {
			missing("record %s is of no front", of)
		}
	}
	return problems
}
