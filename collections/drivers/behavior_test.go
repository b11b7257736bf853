package drivers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/collections"
	"taskledger/collections/drivers"
	"taskledger/internal/testkit"
	"taskledger/store"
)

func TestNoop_SucceedsWithALine(t *testing.T) {
	o, lines := newFixture(t).run(t.Context(), collections.Driver{Driver: collections.Noop})
	if o.Err != nil || o.Result != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], "INFO driver noop") {
		t.Errorf("outcome %+v, log %q", o, lines)
	}
}

func TestPlan_RefusesFieldsThatNoRunHas(t *testing.T) {
	b := drivers.Behavior(drivers.Options{})
	_, err := b.Plan([]byte(`{"source":"a","collection":"b","driver":"noop","x":1}`), behaviorEpoch)
	if _, is := errors.AsType[*store.InvalidError](err); !is {
		t.Errorf("error %v, want an InvalidError", err)
	}
	if _, err := b.Plan([]byte(`{"source":"a","collection":"b","driver":"noop"}`), behaviorEpoch); err != nil {
		t.Error(err)
	}
}

func TestRun_ANodeWithoutADriverIsNamed(t *testing.T) {
	f := newFixture(t)
	f.fails(inGo("stripe", nil), builtin.CodeRefused, `node "b"`, "go:stripe")
	f.fails(collections.Driver{Driver: "ftp"}, builtin.CodeRefused, `node "b"`, "ftp")
	f.fails(collections.Driver{Driver: "go:exec"}, builtin.CodeRefused, `node "b"`, "go:exec")
	f.fails(collections.Driver{}, builtin.CodeRefused, `node "b"`)
}

// driver is a Driver in Go.
type driver func(ctx context.Context, r drivers.Run) error

// Sync implements drivers.Driver.
func (d driver) Sync(ctx context.Context, r drivers.Run) error { return d(ctx, r) }

func TestGo_ADriverGetsWhatTheFileSaysAndWritesToTheLog(t *testing.T) {
	f := newFixture(t)
	f.Go = map[string]drivers.Driver{"stripe": driver(func(ctx context.Context, r drivers.Run) error {
		a, _ := behaviors.Attempt(ctx)
		fmt.Fprintln(a.Output(slog.LevelInfo, false), r.Source, r.Collection, string(r.Params))
		return nil
	})}
	if got := f.does(inGo("stripe", map[string]int{"n": 1})); got != `INFO shop orders {"n":1}` {
		t.Errorf("log %q", got)
	}
}

func TestGo_TheErrorOfADriverDecidesWhetherToRetry(t *testing.T) {
	f := newFixture(t)
	var err error
	f.Go = map[string]drivers.Driver{"stripe": driver(func(context.Context, drivers.Run) error { return err })}
	err = errors.New("rate limit")
	o, lines := f.run(t.Context(), inGo("stripe", nil))
	testkit.WantFailure(t, o, "failed", false)
	if lines[len(lines)-1] != "ERROR rate limit" {
		t.Errorf("log %q", lines)
	}
	err = behaviors.Cancel(behaviors.Code("gone", err, nil))
	f.fails(inGo("stripe", nil), "gone", "rate limit")
}
