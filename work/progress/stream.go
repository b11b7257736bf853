package progress

import "taskledger/events"

// Stream tells how far a work has come that is a stream, over all of its runs.
type Stream struct {
	// Token belongs to the last change before which none is open: they are processed, or held. It shows U+FFFD in place of
	// bytes that are no UTF-8. "" = none is recorded.
	Token   string        `json:"token"`
	MovedAt events.Millis `json:"moved_at,omitzero"` // when the token last moved, or was set
	// SimulatedTo is the token up to which the partition under way has simulated, or the one before it.
	SimulatedTo string `json:"simulated_to,omitempty"`
	// Unsimulated tells that the full partition has ended at another token than its simulation: it has taken changes that
	// were not simulated, or not all of those that were.
	Unsimulated bool `json:"unsimulated,omitempty"`
	Lag         Lag  `json:"lag"`
	// ChangesPerSecond looks back over the last half a minute to a minute in which changes came.
	ChangesPerSecond *float64 `json:"changes_per_second,omitempty"`
	Holds            Holds    `json:"holds"`
	// QuietSince tells since when no change has come to an attempt that waits for some; it is set after StallAfter.
	QuietSince events.Millis `json:"quiet_since,omitzero"`
}

// Lag tells how far a stream is behind, as its attempt last told.
type Lag struct {
	Open   uint64        `json:"open"`              // changes that are known and not processed
	Oldest events.Millis `json:"oldest,omitzero"`   // when the oldest of them came
	AgeMs  int64         `json:"age_ms,omitempty"`  // of the oldest, by the owner's clock
	ToldAt events.Millis `json:"told_at,omitempty"` // when it was told
}

// Holds counts what a stream has apart: each hold has changes of one key, and a task of its own.
type Holds struct {
	Keys    uint64 `json:"keys"`    // whose later changes wait
	Retried uint64 `json:"retried"` // holds whose task runs, or will
	Parked  uint64 `json:"parked"`  // holds whose task is suspended
	Failed  uint64 `json:"failed"`  // holds whose task has ended: retry or delete it
	Changes uint64 `json:"changes"` // of all holds
}

// follow fills in what follows from the other fields.
func (s *Stream) follow(now, from events.Millis, changes uint64) {
	if s.Lag.AgeMs = 0; s.Lag.Oldest != 0 {
		s.Lag.AgeMs = int64(max(now-s.Lag.Oldest, 0))
	}
	s.ChangesPerSecond, s.QuietSince = nil, 0
	if from != 0 {
		s.ChangesPerSecond = rate(changes, int64(now-from))
	}
}

// compare tells whether the full partition of a stream, where it has ended, has met the end of its simulation.
func (w *Work) compare() {
	s := w.Stream
	s.Unsimulated = false
	for i := range w.Partitions {
		p := &w.Partitions[i]
		if p.Mode == "full" && p.Stream == Form(events.FormPrecise) && p.EndedAt != 0 && s.SimulatedTo != "" {
			s.Unsimulated = s.Token != s.SimulatedTo
		}
	}
}
