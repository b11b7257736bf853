package events

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Check returns an error for a plan that no schedule may have. Whether Cron and Zone have a meaning is for those to
// say who know the syntax and the zones.
func (p *SchedulePlan) Check() error {
	switch {
	case len(p.Cron) > MaxCronBytes:
		return fmt.Errorf("cron: %d bytes, want %d at most", len(p.Cron), MaxCronBytes)
	case p.Cron == "" && p.OfTicks() != "":
		return fmt.Errorf("%s: it means nothing without cron", p.OfTicks())
	case p.Zone == "" || len(p.Zone) > MaxZoneBytes:
		return fmt.Errorf("timezone: %d bytes, want 1 to %d", len(p.Zone), MaxZoneBytes)
	case !utf8.ValidString(p.Cron) || !utf8.ValidString(p.Zone):
		return errors.New("cron or timezone: want UTF-8")
	case p.Priority < 0 || p.Priority > MaxPriority:
		return fmt.Errorf("priority: %d, want 0 to %d", p.Priority, MaxPriority)
	case p.Overlap >= overlapEnd:
		return fmt.Errorf("overlap: %d, want less than %d", p.Overlap, overlapEnd)
	case p.Misfire >= misfireEnd:
		return fmt.Errorf("misfire: %d, want less than %d", p.Misfire, misfireEnd)
	case p.Names >= runNamesEnd:
		return fmt.Errorf("names: %d, want less than %d", p.Names, runNamesEnd)
	case p.Keep > MaxKeptRuns:
		return fmt.Errorf("keep: %d, want 0 to %d", p.Keep, MaxKeptRuns)
	case !p.Policy.IsComplete():
		return errors.New("policy: a field is missing or out of range")
	}
	const longest = Millis(MaxDelay / 1e6)
	for _, f := range [...]struct {
		name     string
		is, most Millis
	}{{"grace", p.Grace, longest}, {"jitter", p.Jitter, longest}, {"start", p.Start, MaxTick}, {"end", p.End, MaxTick}} {
		if f.is < 0 || f.is > f.most {
			return fmt.Errorf("%s: %d ms, want 0 to %d", f.name, f.is, f.most)
		}
	}
	return ValidateBehavior(p.Behavior)
}

// OfTicks names a field that says something of ticks alone, "" if none does. Zone and Grace, which every plan
// has, do not count.
func (p *SchedulePlan) OfTicks() string {
	switch {
	case p.Misfire != MisfireOnce:
		return "misfire"
	case p.Jitter != 0:
		return "jitter"
	case p.Start != 0:
		return "start"
	case p.End != 0:
		return "end"
	case p.PauseOnFailure:
		return "pause_on_failure"
	}
	return ""
}

func (b *ScheduleSet) check() error {
	if b.Plan.Later() {
		return errors.New("plan without cron, or with names of a later rule, want ScheduleDefined")
	}
	return b.checkDefinition()
}

func (b *ScheduleDefined) check() error {
	switch {
	case !b.Plan.Later() && b.Reason == "":
		return errors.New("plan with cron, and names of the first rule, without a reason, want ScheduleSet")
	case b.Plan.Cron == "" && (b.Next != 0 || b.Offset != 0):
		return fmt.Errorf("next tick %d without cron", b.Next)
	}
	if err := CheckReason(b.Reason); err != nil {
		return err
	}
	return b.checkDefinition()
}

func (b *ScheduleSet) checkDefinition() error {
	if err := b.Plan.Check(); err != nil {
		return err
	}
	if n := len(b.Params); n > MaxScheduleParamBytes+1 {
		return fmt.Errorf("params: %d bytes exceed the limit of %d", n-1, MaxScheduleParamBytes)
	}
	if n := len(b.Code); n > MaxCodeBytes || !utf8.ValidString(b.Code) {
		return fmt.Errorf("code: %d bytes, want %d at most, of UTF-8", n, MaxCodeBytes)
	}
	return checkTicks([]Millis{b.Next}, b.Offset)
}

func (b *Ticked) check() error {
	ran := b.Decision == TickCreated || b.Decision == TickFilled
	switch {
	case b.Decision == 0 || b.Decision >= tickDecisionEnd:
		return fmt.Errorf("decision %d, want 1 to %d", b.Decision, tickDecisionEnd-1)
	case b.Cause >= tickCauseEnd:
		return fmt.Errorf("cause %d, want less than %d", b.Cause, tickCauseEnd)
	case b.From > b.To:
		return fmt.Errorf("ticks from %d to %d", b.From, b.To)
	case ran != (b.Run != ""):
		return errors.New("a tick with a run that has none, or one without")
	case ran && b.From != b.To:
		return fmt.Errorf("one run for ticks from %d to %d", b.From, b.To)
	case ran:
		if err := b.Run.Validate(); err != nil {
			return err
		}
	}
	return checkTicks([]Millis{b.From, b.To, b.Next}, b.ToOffset, b.NextOffset)
}

func (b *SchedulePaused) check() error {
	if b.Failed != "" {
		if err := b.Failed.Validate(); err != nil {
			return err
		}
	}
	return CheckReason(b.Reason)
}

func (b *BackfillEnded) check() error { return CheckReason(b.Reason) }

func (b *BackfillSet) check() error {
	if b.Ticks == 0 || b.Ticks > MaxBackfill || b.From > b.To {
		return fmt.Errorf("backfill of %d ticks from %d to %d, want 1 to %d", b.Ticks, b.From, b.To, MaxBackfill)
	}
	return checkTicks([]Millis{b.From, b.To})
}

func checkTicks(at []Millis, offsets ...int64) error {
	for _, tick := range at {
		if tick < 0 || tick > MaxTick {
			return fmt.Errorf("tick %d, want 0 to %d", tick, MaxTick)
		}
	}
	for _, offset := range offsets {
		if offset < -maxOffset || offset > maxOffset {
			return fmt.Errorf("offset of %d seconds, want %d at most", offset, maxOffset)
		}
	}
	return nil
}

// checkScheduleID returns an error for an event of a schedule that names its record or a request wrongly.
func checkScheduleID(e *Event) error {
	if e.RequestID != "" {
		return fmt.Errorf("request id %q in an event of a schedule", e.RequestID)
	}
	_, err := ScheduleOf(e.Task)
	return err
}
