package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/collections"
	"taskledger/collections/apply"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// lacking is the answer of a node that lacks these things.
func lacking(names ...string) func([]collections.Need) ([]collections.Need, error) {
	return func(question []collections.Need) (lacks []collections.Need, err error) {
		for _, n := range question {
			if slices.Contains(names, n.Name) || n.Name == "" && slices.Contains(names, string(n.Kind)) {
				lacks = append(lacks, n)
			}
		}
		return lacks, nil
	}
}

// busy is the answer of a node that is overloaded so many times.
func busy(times int) func([]collections.Need) ([]collections.Need, error) {
	return func([]collections.Need) ([]collections.Need, error) {
		if times--; times >= 0 {
			return nil, &task.OverloadError{}
		}
		return nil, nil
	}
}

const needy = `sources:
  s:
    collections:
      - {name: a, driver: exec, program: sync, env: {KEY: x}, timezone: Europe/Berlin, schedule: "@daily"}
      - {name: b, driver: exec, program: sync}
      - {name: c, driver: "go:stripe"}
      - {name: d, driver: fetch, path: x, to: y}
      - {name: e, driver: fetch, url: "http://x/", to: z}
`

func TestCompare_RefusesWhatNoNodeHasAndWarnsOfWhatSomeLack(t *testing.T) {
	f := read(t, needy)
	old := func([]collections.Need) ([]collections.Need, error) {
		return nil, errors.New("it has no such question")
	}
	for _, c := range []struct {
		nodes             nodes
		refused, warnings []string
	}{
		{nodes{"a-1": everything}, nil, nil},
		{nodes{"a-1": lacking("sync", "stripe"), "b-1": lacking("sync", "KEY", "Europe/Berlin")}, []string{
			`s_a (and another one): program: no node has the program "sync" (--exec-allow)`,
		}, nil},
		{nodes{"a-1": lacking("sync", "KEY", "stripe", "sync-root", "checksum-root", "Europe/Berlin")}, []string{
			`s_a (and another one): program: no node has the program "sync" (--exec-allow)`,
			`s_a: env: no node has the variable "KEY" (--exec-env)`,
			`s_a: timezone: no node has the time zone "Europe/Berlin"`,
			`s_c: driver: no node has the driver "go:stripe"`,
			`s_d (and another one): to: no node has the directory to fetch to (--sync-root)`,
			`s_d: path: no node has the directory to fetch from (--checksum-root)`,
		}, nil},
		{nodes{"a-1": lacking("stripe"), "b-1": everything, "c-1": lacking("stripe", "checksum-root")}, nil, []string{
			`s_d: path: no directory to fetch from (--checksum-root) on c`,
			`s_c: driver: no driver "go:stripe" on a, c`,
		}},
		{nodes{"a-1": lacking("stripe"), "b-1": nil, "c-1": old}, nil, []string{
			"node b was not asked what it has: node b-1: ",
			"node c was not asked what it has: it has no such question",
			`s_c: driver: no driver "go:stripe" on a`,
		}},
		{nodes{"a-1": busy(2)}, nil, nil},
		{nodes{"a-1": busy(3)}, nil, []string{"node a was not asked what it has: "}},
	} {
		p := &process{of: newCluster(), nodes: c.nodes}
		compared, err := p.applier().Compare(t.Context(), f)
		refused, is := errors.AsType[*apply.RefusedError](err)
		if c.refused != nil {
			if !is || !slices.Equal(refused.Problems, c.refused) {
				t.Errorf("refused %v", err)
			}
			continue
		}
		if err != nil || !slices.EqualFunc(compared.Warnings, c.warnings, strings.HasPrefix) {
			t.Errorf("%v, warnings %q, want %q", err, compared.Warnings, c.warnings)
		}
	}
}

// many are nodes of which few can be asked.
type many struct{ nodes }

// Nodes implements apply.Nodes.
func (m many) Nodes(ctx context.Context) ([]store.NodeInfo, error) {
	all, err := m.nodes.Nodes(ctx)
	for i := range all {
		switch all[i].Name {
		case "drains":
			all[i].Draining = true
		case "slotless":
			all[i].Slots = 0
		case "limited":
			all[i].Limits[collections.Behavior] = 0
		case "other":
			all[i].Behaviors = []string{"noop"}
		}
	}
	return all, err
}

func TestCompare_AsksNodesThatRunCollectionsAlone(t *testing.T) {
	c := newCluster()
	p := newProcess(c)
	fails := func([]collections.Need) ([]collections.Need, error) { panic("it is asked") }
	some := many{nodes{"drains-1": fails, "slotless-1": fails, "limited-1": fails, "other-1": fails}}
	a := p.applier()
	a.Nodes = many{nodes{}}
	_, err := a.Compare(t.Context(), read(t, needy))
	if !errors.Is(err, task.ErrNoNode) || !errors.Is(err, store.ErrUnavailable) || p.calls > 0 {
		t.Errorf("without a node: %v", err)
	}
	a.Nodes = some
	_, err = a.Compare(t.Context(), read(t, needy))
	if !errors.Is(err, task.ErrUnknownBehavior) || errors.Is(err, task.ErrNoNode) || p.calls > 0 {
		t.Errorf("with nodes of which none runs collections: %v", err)
	}
	some.nodes["a-1"] = everything
	if compared, err := a.Compare(t.Context(), read(t, needy)); err != nil || len(compared.Warnings) > 0 {
		t.Errorf("%+v, %v", compared, err)
	}
}

// A question that is too large for one message is asked in pieces.
func TestCompare_AsksInPieces(t *testing.T) {
	var text strings.Builder
	text.WriteString("sources:\n  s:\n    driver: exec\n    collections:\n")
	const n = 40
	for i := range n {
		fmt.Fprintf(&text, "    - {name: c%d, program: p%d%s}\n", i, i, strings.Repeat("x", 10_000))
	}
	asked := map[string]int{}
	pieces := 0
	p := newProcess(newCluster())
	p.nodes["a-1"] = func(question []collections.Need) ([]collections.Need, error) {
		pieces++
		for _, need := range question {
			asked[need.Name]++
		}
		return nil, nil
	}
	if _, err := p.applier().Compare(t.Context(), read(t, text.String())); err != nil || len(asked) != n || pieces < 7 {
		t.Errorf("%v, %d programs in %d pieces", err, len(asked), pieces)
	}
	for name, times := range asked {
		if times != 1 {
			t.Errorf("%s is asked %d times", events.Head(name, 20), times)
		}
	}
}
