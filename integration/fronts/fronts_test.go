package fronts_test

import (
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/schedules"
	"taskledger/api/stores"
	"taskledger/api/token"
	"taskledger/api/view"
	"taskledger/api/works"
	"taskledger/events"
	"taskledger/integration/fronts"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/projection/extension"
	"taskledger/projection/steady"
)

func read(file string) (string, error) {
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	return string(text), err
}

// golden reads the event in the golden file of its kind.
func golden(kind events.Kind) (events.Event, error) {
	text, err := read("events/testdata/" + strings.ToLower(kind.String()) + ".golden")
	if err != nil {
		return events.Event{}, err
	}
	stored, err := hex.DecodeString(strings.ReplaceAll(text, "\n", ""))
	if err != nil {
		return events.Event{}, err
	}
	entry, err := events.Decode(stored)
	if err != nil {
		return events.Event{}, err
	}
	if ev := entry.Events[0]; ev.Kind() == kind {
		return ev, nil
	}
	return events.Event{}, errors.New("its golden file is of another kind")
}

type nobody struct{}

func (nobody) Find(string) *token.Token { return nil }

// tables returns those of the program.
func tables(t *testing.T) fronts.Tables {
	t.Helper()
	a, err := api.New(api.Config{Client: operations.Direct{}, Tokens: nobody{}, Routes: slices.Concat(stores.Routes(nil), schedules.Routes(nil, nil), works.Routes(nil))})
	if err != nil {
		t.Fatal(err)
	}
	return fronts.Tables{
		Read:   read,
		Kinds:  events.Kinds(),
		Golden: golden,
		State:  projection.NewShard(0).State,
		View:   func(ev events.Event) any { return view.OfEvent(ledger.Event{Event: ev}).Data },
		Routes: a.Routes(),
	}
}

func TestFronts_HaveAllTheirParts(t *testing.T) {
	is := tables(t)
	for _, problem := range fronts.Check(fronts.All, &is) {
		t.Error(problem)
	}
}

func TestFronts_HaveAGoldenOfEachKindAndAStateOfEachRecord(t *testing.T) {
	is := tables(t)
	for _, kind := range is.Kinds {
		if _, err := is.Golden(kind); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, of := range events.Records() {
		if of != events.OfTask && is.State(of) == nil {
			t.Errorf("record %s has no state", of)
		}
	}
}

// takeOut takes a part of a front out of the tables, or of the state that the front makes.
func takeOut(part fronts.Part, f *fronts.Front, t *fronts.Tables) {
	extend := f.Extend
	extendWith := func(change func(*extension.Extension)) {
		f.Extend = func(s extension.Shard) extension.Extension {
			x := extend(s)
			change(&x)
			return x
		}
	}
	routesWith := func(change func(*api.Route)) {
		t.Routes = slices.Clone(t.Routes)
		for i, r := range t.Routes {
			changed := *r
			change(&changed)
			t.Routes[i] = &changed
		}
	}
	switch part {
	case fronts.Kinds:
		t.Kinds = slices.DeleteFunc(slices.Clone(t.Kinds), func(k events.Kind) bool {
			return slices.Contains(f.Records, k.Record()) || slices.Contains(extend(extension.Shard{Clock: new(steady.Clock)}).Kinds, k)
		})
	case fronts.Goldens:
		t.Golden = func(events.Kind) (events.Event, error) { return events.Event{}, os.ErrNotExist }
	case fronts.View:
		t.View = func(events.Event) any { return nil }
	case fronts.Fold:
		t.State = func(events.Record) any { return nil }
	case fronts.Section:
		extendWith(func(x *extension.Extension) { x.Sections = nil })
	case fronts.Export:
		extendWith(func(x *extension.Extension) { x.Partial = nil })
	case fronts.Commands:
		f.Commands = nil
	case fronts.Questions:
		f.Questions = nil
	case fronts.Largest, fronts.Size:
		f.Commands, f.Questions = nil, nil
	case fronts.CommandLine:
		f.CommandLine = nil
	case fronts.ExitCode:
		f.Refusal = nil
	case fronts.Routes:
		t.Routes = nil
	case fronts.Scope:
		routesWith(func(r *api.Route) { r.Scope = api.None })
	}
	if place, has := f.Places[part]; has {
		t.Read = func(file string) (string, error) {
			text, err := read(file)
			if file == place.File {
				text = strings.ReplaceAll(text, place.Text, "")
			}
			return text, err
		}
	}
}

// A part that is taken out of its file or table, and a row that is taken out of the list, are each told by front and
// part.
func TestCheck_TellsEachPartThatIsMissing(t *testing.T) {
	is := tables(t)
	told := func(f fronts.Front, without fronts.Tables, part fronts.Part) bool {
		return slices.ContainsFunc(fronts.Check([]fronts.Front{f}, &without), func(p string) bool {
			return strings.HasPrefix(p, f.Name+": "+string(part)+": ")
		})
	}
	for _, f := range fronts.All {
		for _, part := range fronts.Parts {
			place, has := f.Places[part]
			if place.Not == "" {
				changed, without := f, is
				takeOut(part, &changed, &without)
				if !told(changed, without, part) {
					t.Errorf("%s: %s is taken out, and nothing is told", f.Name, part)
				}
			}
			if has {
				changed := f
				changed.Places = maps.Clone(f.Places)
				delete(changed.Places, part)
				if !told(changed, is, part) {
					t.Errorf("%s: the row of %s is taken out, and nothing is told", f.Name, part)
				}
			}
		}
	}
}

func TestCheck_TellsAReasonAgainstAPartThatIsThere(t *testing.T) {
	is := tables(t)
	f := fronts.All[0]
	f.Places = maps.Clone(f.Places)
	f.Places[fronts.View] = fronts.Place{Not: "nobody looks"}
	problems := fronts.Check([]fronts.Front{f}, &is)
	if !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, f.Name+": view: ") }) {
		t.Errorf("problems are %q", problems)
	}
}

func TestCheck_TellsARecordOfNoFrontAndOneOfTwo(t *testing.T) {
	is := tables(t)
	without := slices.Clone(fronts.All)
	without[0].Records = []events.Record{events.OfItem, events.OfSettings}
	problems := strings.Join(fronts.Check(without, &is), "\n")
	for _, want := range []string{"record forgotten is of no front", "record settings is of task stores and of settings"} {
		if !strings.Contains(problems, want) {
			t.Errorf("problems are %q, want %q", problems, want)
		}
	}
}
