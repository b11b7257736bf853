// Package settings keeps the record of the settings that operators made for the whole cluster: which behaviors are
// paused, why, by whom and since when. One shard holds it, that of the id events.Settings. The package is pure: state
// follows from events, and events from state and request.
package settings

import (
	"cmp"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/extension"
	"taskledger/projection/record"
	"taskledger/task"
)

// MaxBytes bounds the settings in all: every session reads them at once.
const MaxBytes = 32 << 10

// pauseBytes counts the bytes of a pause besides its texts, rounded up.
const pauseBytes = 32

// bytesOf returns how much a pause takes.
func bytesOf(p *task.Pause) int { return pauseBytes + len(p.Behavior) + len(p.Reason) + len(p.By) }

// check says what keeps a pause from being one.
func check(p *task.Pause) error {
	if err := events.ValidateBehavior(p.Behavior); err != nil {
		return err
	}
	return events.CheckReason(p.Reason)
}

// State is the settings: the fold of their events. A copy keeps its value. The zero value is that without events.
type State struct {
	record.Chain
	pauses []task.Pause // by behavior; copies share it, so it is never changed
}

// Extend returns the settings of a shard before their first event.
func Extend(extension.Shard) extension.Extension {
	return extension.OfSingle(events.OfSettings, new(State))
}

// Of returns the settings of a shard. They are the shard's own: read only, until its next event; a copy keeps its
// value.
func Of(in extension.Holder) *State { return in.State(events.OfSettings).(*State) }

// Pauses returns every pause by behavior. The slice must not be changed.
func (s *State) Pauses() []task.Pause { return s.pauses }

// Pause returns the pause of a behavior; false if it is not paused.
func (s *State) Pause(behavior string) (task.Pause, bool) {
	if at, paused := s.find(behavior); paused {
		return s.pauses[at], true
	}
	return task.Pause{}, false
}

// Paused reports whether a behavior must not start.
func (s *State) Paused(behavior string) bool {
	_, paused := s.find(behavior)
	return paused
}

func (s *State) find(behavior string) (at int, paused bool) {
	return slices.BinarySearchFunc(s.pauses,
		behavior, func(p task.Pause, behavior string) int { return cmp.Compare(p.Behavior, behavior) })
}

// bytes returns how much the settings take.
func (s *State) bytes() (n int) {
	for i := range s.pauses {
		n += bytesOf(&s.pauses[i])
	}
	return n
}

// DecidePause returns the event that pauses a behavior, nil if it is paused. An error names what is wrong with the
// request, and the limit.
func (s *State) DecidePause(behavior, reason string) (events.Body, error) {
	p := task.Pause{Behavior: behavior, Reason: reason}
	if err := check(&p); err != nil {
		return nil, err
	}
	if _, paused := s.find(behavior); paused {
		return nil, nil
	}
	if n := s.bytes() + bytesOf(&p) + events.MaxNameBytes; n > MaxBytes { // whoever asks may have the longest name
		return nil, fmt.Errorf("settings: %d bytes exceed the limit of %d", n, MaxBytes)
	}
	return &events.Paused{Behavior: behavior, Reason: reason}, nil
}

// DecideUnpause returns the event that ends the pause of a behavior, nil if it is not paused.
func (s *State) DecideUnpause(behavior string) (events.Body, error) {
	if err := events.ValidateBehavior(behavior); err != nil {
		return nil, err
	}
	if _, paused := s.find(behavior); !paused {
		return nil, nil
	}
	return &events.Unpaused{Behavior: behavior}, nil
}

// Fold applies the next event. An error says why the state does not allow it; the state is then as it was.
func (s *State) Fold(ev *events.Event) error {
	pauses, err := s.after(ev)
	if err != nil {
		return err
	}
	if err := s.Follow(ev); err != nil {
		return err
	}
	s.pauses = pauses
	return nil
}

// after returns the pauses after an event.
func (s *State) after(ev *events.Event) ([]task.Pause, error) {
	switch b := ev.Body.(type) {
	case *events.Paused:
		p := task.Pause{
			Behavior: b.Behavior,
			Reason:   b.Reason,
			By:       ev.Caller.Principal,
			Since:    ev.At,
		}
		if err := check(&p); err != nil {
			return nil, err
		}
		at, paused := s.find(p.Behavior)
		if paused {
			return nil, fmt.Errorf("behavior %s is paused already", p.Behavior)
		}
		if n := s.bytes() + bytesOf(&p); n > MaxBytes {
			return nil, fmt.Errorf("%d bytes exceed the limit of %d", n, MaxBytes)
		}
		return slices.Concat(s.pauses[:at], []task.Pause{p}, s.pauses[at:]), nil
	case *events.Unpaused:
		at, paused := s.find(b.Behavior)
		if !paused {
			return nil, fmt.Errorf("behavior %q is not paused", b.Behavior)
		}
		return slices.Concat(s.pauses[:at], s.pauses[at+1:]), nil
	}
	return nil, fmt.Errorf("%s is no event of the settings", ev.Kind())
}

// Encode writes the array [seq, last, [pause ...]] by behavior, a pause as [behavior, reason, by, since].
func (s *State) Encode(w *wire.Writer) {
	w.Array(3)
	s.Chain.Encode(w)
	w.Array(len(s.pauses))
	for i := range s.pauses {
		p := &s.pauses[i]
		w.Array(4)
		w.Text(p.Behavior)
		w.Text(p.Reason)
		w.Text(p.By)
		w.Int(int64(p.Since))
	}
}

// Decode reads what Encode wrote. It fails the reader when that is the fold of no events.
func (s *State) Decode(r *wire.Reader) {
	*s = State{}
	r.ArrayOf(3)
	s.Chain.Decode(r)
	n := r.Array()
	if n > MaxBytes/pauseBytes || n > 0 && s.Seq == 0 {
		r.Fail("%d pauses after %d events", n, s.Seq)
	}
	for i := 0; i < n && r.Err() == nil; i++ {
		r.ArrayOf(4)
		p := task.Pause{
			Behavior: r.Text(),
			Reason:   r.Text(),
			By:       r.Text(),
			Since:    events.Millis(r.Int()),
		}
		if err := check(&p); err != nil {
			r.Fail("%v", err)
		}
		if i > 0 && s.pauses[i-1].Behavior >= p.Behavior {
			r.Fail("pause of %s after that of %s", p.Behavior, s.pauses[i-1].Behavior)
		}
		s.pauses = append(s.pauses, p)
	}
	if size := s.bytes(); size > MaxBytes {
		r.Fail("settings of %d bytes", size)
	}
}
