// Package storetest holds an implementation of store.Store to its contract. Every rule is tested against one cause
// that nothing else would catch: dropping any single compare of a write turns a test red.
package storetest

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"taskledger/internal/testkit"
)

// timeout bounds a test that waits for what never comes.
const timeout = 30 * time.Second

// Run runs the suite, in parallel subtests, each with a Fixture of its own.
func Run(t *testing.T, open func(t *testing.T) Fixture) { run(t, rules(), open) }

// RunWithoutStrays runs the suite but for the rules of Strays: for a store whose keys nobody can write by hand.
func RunWithoutStrays(t *testing.T, open func(t *testing.T) Fixture) {
	all := rules()
	for name := range strayed {
		delete(all, name)
	}
	run(t, all, open)
}

// RunSome runs all of the suite in a proof, else every nth rule of it: for a store that another test of the package
// holds to all of it, and which this one reaches in another way.
func RunSome(t *testing.T, nth int, open func(t *testing.T) Fixture) {
	all := rules()
	some := map[string]func(*world){}
	for _, name := range testkit.Some(slices.Sorted(maps.Keys(all)), nth) {
		some[name] = all[name]
	}
	run(t, some, open)
}

// rules are the tests of the suite by their names.
func rules() map[string]func(*world) {
	all := map[string]func(*world){}
	for _, group := range []map[string]func(*world){
		appends,
		reads,
		sessions,
		ownerships,
		mailboxes,
		sweeps,
		snapshots,
		trims,
		repairs,
		strayed,
		losses,
		housekeeping,
	} {
		maps.Copy(all, group)
	}
	return all
}

func run(t *testing.T, rules map[string]func(*world), open func(t *testing.T) Fixture) {
	for name, test := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			test(&world{T: t, Fixture: open(t), ctx: ctx})
		})
	}
}
