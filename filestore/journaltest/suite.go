// Package journaltest holds an implementation of journal.Journaler to its contract:
//
//	func TestJournal(t *testing.T) {
//		journaltest.Run(t, journaltest.Subject{Open: func(t *testing.T) journal.Journaler { ... }})
//	}
//
// Run it with the race detector, too: what is read and written at once without a lock shows there for certain.
package journaltest

import (
	"maps"
	"testing"

	"taskledger/filestore/journal"
)

// Subject describes a journaler that the suite tests.
type Subject struct {
	// Open opens an empty one. The suite closes it.
	Open func(t *testing.T) journal.Journaler
	// Again opens what a journaler of Open has kept, which is closed. Nil: it keeps nothing.
	Again func(t *testing.T, closed journal.Journaler) journal.Journaler
	// Crash opens what is left of a journaler that is in use by a crash which takes all that it may lose. The suite closes
	// both. Nil: no crash is tested. It wants Again, and is required to test a journaler that is Lossy.
	Crash func(t *testing.T, used journal.Journaler) journal.Journaler
	// Fill leaves no room for any write, until the function is called that it returns. Nil: there is always room.
	Fill func(t *testing.T, j journal.Journaler) (empty func())
}

// Run runs the suite, in parallel subtests, each with a journaler of its own.
func Run(t *testing.T, s Subject) {
	all := map[string]func(*world){}
	for _, group := range []map[string]func(*world){entries, snapshots, together} {
		maps.Copy(all, group)
	}
	if s.Again != nil {
		maps.Copy(all, reopenings)
	}
	if s.Again != nil && s.Crash != nil {
		maps.Copy(all, crashes)
	}
	if s.Fill != nil {
		maps.Copy(all, full)
	}
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{
				T:           t,
				Journaler:   s.Open(t),
				again:       s.Again,
				afterwards:  s.Crash,
				withoutRoom: s.Fill,
			}
			t.Cleanup(w.end)
			test(w)
		})
	}
}
