// Package schedule is the vocabulary of schedules: when a behavior has its runs, and what becomes of times that pass
// meanwhile. engine.Schedules sets and reads them.
//
// A schedule is a record of the cluster with a name. It lies beside its runs in one shard, whose owner decides each
// tick once: the tick and the run that it creates stand in one entry of the journal, so that no tick is lost, and none
// has two runs, whatever dies and whatever clocks show. A tick is the instant that the cron expression names, in UTC.
package schedule

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"taskledger/cron"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// Overlap says what a tick does while a run of its schedule has not ended. A run that was retried counts, too.
type Overlap string

// The overlaps. "" is Forbid.
const (
	Forbid  Overlap = "forbid"  // the tick is skipped
	Allow   Overlap = "allow"   // another run is created, up to 1,000
	Replace Overlap = "replace" // the run is cancelled; once it has ended the newest tick has its run
)

// Misfire says what becomes of ticks that nobody decided in time, since no node was alive, say. A tick is late that is
// decided more than Grace after its time.
type Misfire string

// The misfires. "" is Once.
const (
	Once Misfire = "once" // the newest tick has its run, late or not; the others are missed
	Skip Misfire = "skip" // the newest tick has its run unless it is late; the others are missed
	All  Misfire = "all"  // the newest 100 ticks have their runs, one after the other; the others are missed
)

var (
	overlaps = []Overlap{events.OverlapForbid: Forbid, events.OverlapAllow: Allow, events.OverlapReplace: Replace}
	misfires = []Misfire{events.MisfireOnce: Once, events.MisfireSkip: Skip, events.MisfireAll: All}
)

// The defaults of a Definition.
const (
	DefaultZone  = "UTC"
	DefaultGrace = time.Hour
	DefaultKeep  = 100
)

// Definition says when a behavior has its runs. A zero field stands for its default.
type Definition struct {
	Cron     string          // a cron expression of package cron; "" = no tick: it runs when somebody asks
	Timezone string          // name in the IANA database; "" = UTC
	Behavior string          // required
	Params   json.RawMessage // JSON text of the parameters of each run, at most 62 KiB; nil = none
	Overlap  Overlap         // default Forbid
	Misfire  Misfire         // default Once
	Grace    time.Duration   // up to ten years, rounded up to milliseconds; 0 = 1h, negative = none
	Jitter   time.Duration   // a tick is due up to so long after its time, always as long for one name; default 0
	Start    time.Time       // no tick is before it; zero = without
	End      time.Time       // no tick is after it; zero = without
	Priority int64           // priority of the runs, 0 to 9,223,371; 0 = the behavior's
	Timeout  time.Duration   // longest time of an attempt; 0 = the behavior's
	Attempts int             // failed attempts of a run before its failure is final; 0 = the behavior's
	Keep     int             // ended runs that are kept, 1 to 1,000; 0 = 100, negative = none
	// PauseOnFailure pauses the schedule in the entry in which a tick's run fails for good. Cancelled runs, backfills
	// and runs by hand do not pause it.
	PauseOnFailure bool
	// UUIDs names the runs by UUIDs, NAME/UUID, and not by what made them. It is for fronts in code, and has no member
	// in JSON. A schedule that has it keeps it until it is deleted. Rules of a behavior are asked when such a run shall
	// repeat, and what they say is not followed.
	UUIDs bool
}

func invalid(field, format string, args ...any) error {
	return &store.InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Plan returns the definition as a journal has it, with every default filled in: policy is that of the behavior. It
// returns a *store.InvalidError, or a *task.LimitError, that names the field.
func (d *Definition) Plan(policy events.Policy) (events.SchedulePlan, error) {
	p := events.SchedulePlan{
		Cron:           d.Cron,
		Zone:           d.Timezone,
		Behavior:       d.Behavior,
		Priority:       d.Priority,
		PauseOnFailure: d.PauseOnFailure,
	}
	if d.UUIDs {
		p.Names = events.NamesByUUID
	}
	if p.Zone == "" {
		p.Zone = DefaultZone
	}
	if d.Cron != "" {
		expression, err := cron.Parse(d.Cron)
		if err != nil {
			return p, invalid("cron", "%v", err)
		}
		p.Cron = expression.String()
	}
	if err := events.ValidateBehavior(d.Behavior); err != nil {
		return p, invalid("behavior", "%s", strings.TrimPrefix(err.Error(), "behavior "))
	}
	if err := d.choices(&p); err != nil {
		return p, err
	}
	if err := d.spans(&p); err != nil {
		return p, err
	}
	if err := d.limits(&p, policy); err != nil {
		return p, err
	}
	if field := p.OfTicks(); p.Cron == "" && field != "" {
		return p, invalid(field, "it is about ticks, and without cron there are none")
	}
	ticks, err := TicksOf(&p)
	if err == nil && p.Cron != "" && ticks.expression.Never() {
		return p, invalid("cron", "%q never fires", p.Cron)
	}
	return p, err
}

// choices takes over what is one of few words.
func (d *Definition) choices(p *events.SchedulePlan) error {
	overlap, known := at(overlaps, d.Overlap)
	if !known {
		return invalid("overlap", "%q, want %s, %s or %s", d.Overlap, Forbid, Allow, Replace)
	}
	misfire, known := at(misfires, d.Misfire)
	if !known {
		return invalid("misfire", "%q, want %s, %s or %s", d.Misfire, Once, Skip, All)
	}
	p.Overlap, p.Misfire = events.Overlap(overlap), events.Misfire(misfire)
	return nil
}

// at returns the place of a word in a list; that of "" is 0.
func at[T ~string](list []T, word T) (int, bool) {
	for i, is := range list {
		if is == word {
			return i, true
		}
	}
	return 0, word == ""
}

// spans takes over times and durations.
func (d *Definition) spans(p *events.SchedulePlan) error {
	grace := d.Grace
	switch {
	case grace == 0:
		grace = DefaultGrace
	case grace < 0:
		grace = 0
	}
	for _, f := range [...]struct {
		name string
		is   time.Duration
		to   *events.Millis
	}{{"grace", grace, &p.Grace}, {"jitter", d.Jitter, &p.Jitter}} {
		if f.is < 0 || f.is > events.MaxDelay {
			return invalid(f.name, "%s, want 0 to ten years", f.is)
		}
		*f.to = events.Millis((f.is + time.Millisecond - 1).Milliseconds())
	}
	for _, f := range [...]struct {
		name string
		is   time.Time
		to   *events.Millis
	}{{"start", d.Start, &p.Start}, {"end", d.End, &p.End}} {
		if *f.to = events.MillisOf(f.is); f.is.IsZero() {
			*f.to = 0
		} else if *f.to <= 0 || *f.to > events.MaxTick {
			return invalid(f.name, "%s, want a time of the years 1970 to 9999", f.is.UTC().Format(time.RFC3339))
		}
	}
	if p.End != 0 && p.End < p.Start {
		return invalid("end", "it is before start")
	}
	return nil
}

// limits takes over numbers, and completes the policy.
func (d *Definition) limits(p *events.SchedulePlan, policy events.Policy) error {
	keep := d.Keep
	switch {
	case keep == 0:
		keep = DefaultKeep
	case keep < 0:
		keep = 0
	case keep > events.MaxKeptRuns:
		return &task.LimitError{Field: "keep", Limit: events.MaxKeptRuns, Got: int64(keep)}
	}
	p.Keep = uint32(keep)
	if d.Priority < 0 || d.Priority > events.MaxPriority {
		return &task.LimitError{Field: "priority", Limit: events.MaxPriority, Got: d.Priority}
	}
	if p.Priority == 0 {
		p.Priority = policy.Priority
	}
	for _, f := range [...]struct {
		name, says string
		is         events.Policy
	}{
		{"timeout", "policy: timeout ", events.Policy{Timeout: d.Timeout}},
		{"attempts", "policy: max attempts ", events.Policy{MaxAttempts: d.Attempts}},
	} {
		if _, err := f.is.Complete(); err != nil {
			return invalid(f.name, "%s", strings.TrimPrefix(err.Error(), f.says))
		}
	}
	policy.Every = 0 // runs come by the ticks alone
	if d.Timeout != 0 {
		policy.Timeout = d.Timeout
	}
	if d.Attempts != 0 {
		policy.MaxAttempts = d.Attempts
	}
	var err error
	if p.Policy, err = policy.Complete(); err != nil {
		return invalid("policy", "%s", strings.TrimPrefix(err.Error(), "policy: "))
	}
	if len(d.Params) > events.MaxScheduleParamBytes {
		return &task.LimitError{Field: "params", Limit: events.MaxScheduleParamBytes, Got: int64(len(d.Params))}
	}
	if len(d.Params) > 0 && (!utf8.Valid(d.Params) || !json.Valid(d.Params)) {
		return invalid("params", "no JSON text")
	}
	return nil
}

// Of returns the definition that a plan came from, with every default filled in.
func Of(p *events.SchedulePlan, params events.Payload) Definition {
	d := Definition{
		Cron:           p.Cron,
		Timezone:       p.Zone,
		Behavior:       p.Behavior,
		Overlap:        overlaps[p.Overlap],
		Misfire:        misfires[p.Misfire],
		Grace:          events.Milliseconds(int64(p.Grace)),
		Jitter:         events.Milliseconds(int64(p.Jitter)),
		Priority:       p.Priority,
		Timeout:        p.Policy.Timeout,
		Attempts:       p.Policy.MaxAttempts,
		Keep:           int(p.Keep),
		PauseOnFailure: p.PauseOnFailure,
		UUIDs:          p.Names == events.NamesByUUID,
	}
	if p.Grace == 0 {
		d.Grace = -1
	}
	if p.Keep == 0 {
		d.Keep = -1
	}
	if p.Start != 0 {
		d.Start = p.Start.Time().UTC()
	}
	if p.End != 0 {
		d.End = p.End.Time().UTC()
	}
	if text, err := params.JSON(); err == nil && len(text) > 0 {
		d.Params = text
	}
	return d
}
