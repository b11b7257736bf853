package engine

import (
	"testing"

	"taskledger/events"
	"taskledger/projection/settings"
)

// settingsOf is the settings after so many changes: the behavior is paused after the first, the third and so on.
func settingsOf(t *testing.T, behavior string, changes uint64) (s settings.State) {
	t.Helper()
	for i := uint64(1); i <= changes; i++ {
		var body events.Body = &events.Paused{Behavior: behavior}
		if i%2 == 0 {
			body = &events.Unpaused{Behavior: behavior}
		}
		ev := &events.Event{Seq: i, Prev: s.Last, Body: body, Position: events.Position{Ref: events.RefOf(i, 0)}}
		if err := s.Fold(ev); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// An owner that was replaced may tell of what was.
func TestSettings_OlderOnesNeverReplaceNewer(t *testing.T) {
	var known nodeSettings
	for _, row := range []struct {
		changes         uint64
		learned, paused bool
	}{{0, true, false}, {0, false, false}, {1, true, true}, {0, false, true}, {1, false, true}, {4, true, false}, {3, false, false}, {1, false, false}, {5, true, true}} {
		if learned := known.learn(settingsOf(t, "work", row.changes)); learned != row.learned {
			t.Errorf("after %d changes: learned %t, want %t", row.changes, learned, row.learned)
		}
		if paused := known.known.Load().Paused("work"); paused != row.paused {
			t.Errorf("after %d changes were heard it is paused: %t, want %t", row.changes, paused, row.paused)
		}
	}
}
