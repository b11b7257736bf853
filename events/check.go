package events

import (
	"fmt"
)

// check returns an error for an event that neither Seal nor Decode accepts in an entry with that many origins.
func (e *Event) check(origins int) error {
	if err := e.checkRecord(); err != nil {
		return err
	}
	if e.Origin < 0 || e.Origin > origins {
		return fmt.Errorf("origin %d of %d", e.Origin, origins)
	}
	if n := len(e.Body.payload()); n > MaxPayloadBytes+1 {
		return fmt.Errorf("payload of %d bytes exceeds the limit of %d", n-1, MaxPayloadBytes)
	}
	return checkBody(e.Body)
}

// checkRecord returns an error for an event that does not name its task or record as it has to.
func (e *Event) checkRecord() error {
	switch of := e.Kind().Record(); of {
	case OfTask:
		return e.Task.Validate()
	case OfItem:
		return checkItem(e.Task, e.Body)
	case OfSchedule:
		return checkScheduleID(e)
	default:
		if e.Task != "" || e.RequestID != "" {
			return fmt.Errorf("task %q and request id %q in an event of the %s", e.Task, e.RequestID, of)
		}
		return nil
	}
}

// checked is a body with rules of its own.
type checked interface {
	// check returns an error for a body that neither Seal nor Decode accepts.
	check() error
}

func checkBody(body Body) error {
	if b, has := body.(checked); has {
		return b.check()
	}
	return nil
}

func (b *Created) check() error {
	if _, err := b.Policy.Complete(); err != nil {
		return err
	}
	return b.Ties.check()
}

func (b *Rescheduled) check() error {
	if err := CheckReason(b.Reason); err != nil {
		return err
	}
	return b.Terms.check()
}

func (b *Failed) check() error {
	if n := len(b.Error.Properties); n > MaxProperties {
		return fmt.Errorf("%d properties exceed the limit of %d", n, MaxProperties)
	}
	return nil
}

func (b *Described) check() error {
	if b.Deadline < 0 {
		return fmt.Errorf("deadline %d, want 0 or later", b.Deadline)
	}
	return CheckTags(b.Tags)
}

func (b *Merged) check() error       { return b.Terms.check() }
func (b *Joined) check() error       { return b.Terms.check() }
func (b *AcceptedLoss) check() error { return checkLoss(b.Entry, b.Reason) }
func (b *Recovered) check() error    { return checkLoss(b.Entry, b.Reason) }
func (b *Paused) check() error       { return CheckReason(b.Reason) }
