package fronts

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"taskledger/api"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/projection/extension"
	"taskledger/projection/steady"
)

// Tables hold what the program says of itself.
type Tables struct {
	Read   func(file string) (string, error) // returns the text of a file of the module
	Kinds  []events.Kind
	Golden func(events.Kind) (events.Event, error) // reads the stored form of an event
	State  func(events.Record) any                 // returns the state of a record in a shard
	View   func(events.Event) any                  // returns what history shows of an event beside its kind
	Routes []*api.Route
}

// asked returns, by part, what the tables lack of a front; "" stands for nothing. The tables of commands, of the
// command line and of exit codes are internal to the engine and to the program: tests there ask them for those that a
// front names, and for the largest forms and sizes of its commands.
var asked = map[Part]func(t *Tables, f *Front) string{
	Kinds: func(t *Tables, f *Front) string {
		for _, of := range f.Records {
			if !slices.ContainsFunc(t.Kinds, func(k events.Kind) bool { return k.Record() == of }) {
				return fmt.Sprintf("record %s has no kind of event", of)
			}
		}
		for _, k := range f.extension().Kinds {
			if !slices.Contains(t.Kinds, k) {
				return fmt.Sprintf("kind %s is in no table", k)
			}
		}
		return ""
	},
	Goldens: func(t *Tables, f *Front) string {
		return t.eachKind(f, func(k events.Kind) error {
			_, err := t.Golden(k)
			return err
		})
	},
	View: func(t *Tables, f *Front) string {
		return t.eachKind(f, func(k events.Kind) error {
			if ev, err := t.Golden(k); err == nil && t.View(ev) == nil {
				return fmt.Errorf("history shows nothing of it")
			}
			return nil
		})
	},
	Fold: func(t *Tables, f *Front) string {
		x := f.extension()
		for _, of := range f.states() {
			state := t.State(of)
			if !slices.Contains(x.Records, of) || reflect.TypeOf(state) != reflect.TypeOf(x.State) {
				return fmt.Sprintf("record %s has the state %T in a shard, want %T", of, state, x.State)
			}
		}
		return ""
	},
	Section: func(_ *Tables, f *Front) string {
		if len(f.extension().Sections) == 0 {
			return "its state has no section in a snapshot"
		}
		return ""
	},
	Export: func(_ *Tables, f *Front) string {
		if f.extension().Partial == nil {
			return "its state cannot follow from an export of one record"
		}
		return ""
	},
	Commands:    func(_ *Tables, f *Front) string { return named(f.Commands) },
	Questions:   func(_ *Tables, f *Front) string { return named(f.Questions) },
	Largest:     func(_ *Tables, f *Front) string { return named(f.Commands, f.Questions) },
	Size:        func(_ *Tables, f *Front) string { return named(f.Commands, f.Questions) },
	CommandLine: func(_ *Tables, f *Front) string { return named(f.CommandLine) },
	ExitCode: func(_ *Tables, f *Front) string {
		if f.Refusal == nil {
			return "no refusal is named"
		}
		return ""
	},
	Routes: func(t *Tables, f *Front) string {
		return t.eachRoute(f, func(r *api.Route) bool { return r.Role != token.Nobody })
	},
	Scope: func(t *Tables, f *Front) string {
		return t.eachRoute(f, func(r *api.Route) bool { return r.Scope != api.None })
	},
}

// extension returns the state of the front before its first event.
func (f *Front) extension() extension.Extension {
	return f.Extend(extension.Shard{Clock: new(steady.Clock)})
}

// states returns the records whose state in a shard is that of the front: its own, or tasks, if it adds kinds of their
// events.
func (f *Front) states() []events.Record {
	if len(f.extension().Kinds) > 0 {
		return append(slices.Clone(f.Records), events.OfTask)
	}
	return f.Records
}

// has reports whether events of a kind are of the front.
func (f *Front) has(k events.Kind) bool {
	return slices.Contains(f.Records, k.Record()) || slices.Contains(f.extension().Kinds, k)
}

// named says that the front names none in any list.
func named(lists ...[]string) string {
	if len(slices.Concat(lists...)) == 0 {
		return "none is named"
	}
	return ""
}

// eachKind returns the first error that check has of a kind of the front, as text.
func (t *Tables) eachKind(f *Front, check func(events.Kind) error) string {
	for _, k := range t.Kinds {
		if f.has(k) {
			if err := check(k); err != nil {
				return fmt.Sprintf("%s: %v", k, err)
			}
		}
	}
	return ""
}

// eachRoute says which route of the front does not fit, or that there is none.
func (t *Tables) eachRoute(f *Front, fits func(*api.Route) bool) string {
	found := false
	for _, r := range t.Routes {
		if f.Routes != "" && strings.HasPrefix(r.Pattern, f.Routes) {
			if found = true; !fits(r) {
				return fmt.Sprintf("%s %s has none", r.Method, r.Pattern)
			}
		}
	}
	if !found {
		return "no route"
	}
	return ""
}

// lack returns what is missing of a part; "" stands for nothing. A row of the front goes before the tables.
func (t *Tables) lack(f *Front, part Part) string {
	place, has := f.Places[part]
	ask := asked[part]
	switch {
	case !has && ask == nil:
		return "no row"
	case !has:
		return ask(t, f)
	case place.Not != "" && ask != nil && ask(t, f) == "":
		return "a row says why there is none, and there is one"
	case place.Not != "":
		return ""
	}
	text, err := t.Read(place.File)
	switch {
	case err != nil:
		return err.Error()
	case !strings.Contains(text, place.Text):
		return fmt.Sprintf("%s does not have %q", place.File, place.Text)
	}
	return ""
}

// Check returns what is missing of the fronts.
func Check(all []Front, t *Tables) (problems []string) {
	owners := map[events.Record]string{events.OfTask: "tasks"}
	for i := range all {
		f := &all[i]
		for _, of := range f.Records {
			if other := owners[of]; other != "" {
				problems = append(problems, fmt.Sprintf("record %s is of %s and of %s", of, other, f.Name))
			}
			owners[of] = f.Name
		}
		for _, part := range Parts {
			if problem := t.lack(f, part); problem != "" {
				problems = append(problems, fmt.Sprintf("%s: %s: %s", f.Name, part, problem))
			}
		}
	}
	for _, of := range events.Records() {
		if owners[of] == "" {
			problems = append(problems, fmt.Sprintf("record %s is of no front", of))
		}
	}
	return problems
}
