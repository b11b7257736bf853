package events

import (
	"fmt"
	"math"
	"strings"

	"taskledger/internal/wire"
)

// The events of a schedule carry the TaskID that ScheduleRecord returns. Their Seq and Prev count and link what
// happened to the schedule from its first ScheduleSet on; the ScheduleSet after a ScheduleEnded begins anew with 1.
const (
	// MaxScheduleBytes bounds the name of a schedule: the ids of its runs add a word and a time.
	MaxScheduleBytes = 64
	// MaxCronBytes bounds a cron expression.
	MaxCronBytes = 512
	// MaxZoneBytes bounds the name of a time zone.
	MaxZoneBytes = 64
	// MaxScheduleParamBytes bounds the parameters of a schedule: with its other fields they are 64 KiB at most.
	MaxScheduleParamBytes = 62 << 10
	// MaxKeptRuns bounds the ended runs that a schedule keeps.
	MaxKeptRuns = 1000
	// MaxBackfill bounds the ticks of a backfill.
	MaxBackfill = 1000
	// MaxCodeBytes bounds the hash of a definition in code.
	MaxCodeBytes = 64
	// MaxTick is the last millisecond of the year 9999.
	MaxTick = MaxItemTime

	// maxOffset bounds how far the clocks of a zone differ from UTC, in seconds.
	maxOffset = 48 * 60 * 60
)

// scheduleName is the name part of the record of a schedule.
const scheduleName = "schedule:"

// ScheduleRecord returns the id that the events of a schedule carry as their task, "NAME/schedule:": it lies in the
// shard of the runs.
func ScheduleRecord(name string) TaskID { return TaskID(name + "/" + scheduleName) }

// ScheduleOf is the reverse of ScheduleRecord.
func ScheduleOf(id TaskID) (name string, err error) {
	name, rest, _ := strings.Cut(string(id), "/")
	if rest != scheduleName {
		return "", fmt.Errorf("%q is no schedule, want NAME/%s", id, scheduleName)
	}
	return name, ValidateSchedule(name)
}

// ScheduledPrefix returns the prefix by which the name part of an id is reserved for a schedule; "" = it is not.
func ScheduledPrefix(id TaskID) string {
	_, name, _ := strings.Cut(string(id), "/")
	for _, prefix := range [...]string{TickPrefix, HandPrefix, FillPrefix, scheduleName} {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}

// ValidateSchedule returns an error when name is not 1 to 64 bytes of [A-Za-z0-9._:-], or has another meaning.
func ValidateSchedule(name string) error {
	if name == "" || len(name) > MaxScheduleBytes {
		return fmt.Errorf("schedule %q: %d bytes, want 1 to %d", Head(name, MaxScheduleBytes), len(name), MaxScheduleBytes)
	}
	for i := range len(name) {
		if !inID[name[i]] {
			return fmt.Errorf("schedule %q: byte %d is %s, want [A-Za-z0-9._:-]", name, i, shown(name[i:]))
		}
	}
	switch {
	case name == "." || name == "..":
		return fmt.Errorf("schedule %q: has another meaning in a URL", name)
	case name == Settings.Affinity(), strings.HasPrefix(name, StorePrefix):
		return fmt.Errorf("schedule %q: reserved, as %s and all that begin with %s are",
			name, Settings.Affinity(), StorePrefix)
	}
	return nil
}

// Overlap says what a tick does while a run of its schedule has not ended.
type Overlap uint8

// The overlaps.
const (
	OverlapForbid  Overlap = iota // the tick is skipped
	OverlapAllow                  // another run is created
	OverlapReplace                // the run is cancelled; once it has ended, the newest tick has its run
	overlapEnd
)

// Misfire says what becomes of ticks that nobody decided in time.
type Misfire uint8

// The misfires. A tick is late that is decided more than the schedule's grace after its time.
const (
	MisfireOnce Misfire = iota // the newest one has its run, late or not; the others are missed
	MisfireSkip                // the newest one has its run unless it is late; the others are missed
	MisfireAll                 // the newest 100 have their runs, one after the other
	misfireEnd
)

// SchedulePlan says when a schedule has its runs, and which.
type SchedulePlan struct {
	Cron           string // "" = it has no ticks
	Zone           string // of the IANA database
	Behavior       string
	Policy         Policy // of the runs; complete
	Priority       int64
	Overlap        Overlap
	Misfire        Misfire
	Grace          Millis // a duration
	Jitter         Millis // a duration: a tick is due up to so long after its time
	Start, End     Millis // of the ticks, both inclusive; 0 = without
	Keep           uint32 // ended runs that are kept
	PauseOnFailure bool   // a tick's run that fails for good pauses the schedule
	Names          RunNames
}

// ScheduleSet makes a schedule, or changes it, for no reason that is told. Its plan is one that Later does not report.
type ScheduleSet struct {
	Plan   SchedulePlan
	Params Payload // of the runs; nil = none
	Next   Millis  // the first tick to come; 0 = none comes
	Offset int64   // of the zone at Next, in seconds east of UTC
	Code   string  // hash of the definition in code that it comes from; "" = none
}

// ScheduleDefined is ScheduleSet with a plan that Later reports, with a reason, or with both. It came later.
type ScheduleDefined struct {
	ScheduleSet
	Reason string // "" = none
}

// Recorded returns the body that records a definition and its reason, "" for none.
func (b *ScheduleSet) Recorded(reason string) Body {
	if b.Plan.Later() || reason != "" {
		return &ScheduleDefined{*b, reason}
	}
	return b
}

// DefinitionIn returns the definition that a body records, nil for one that records none.
func DefinitionIn(body Body) *ScheduleSet {
	switch b := body.(type) {
	case *ScheduleSet:
		return b
	case *ScheduleDefined:
		return &b.ScheduleSet
	}
	return nil
}

// TickDecision says what became of ticks.
type TickDecision uint8

// The decisions.
const (
	TickCreated   TickDecision = 1 + iota // the tick has a run, created in the same entry
	TickSkipped                           // a run was there
	TickMissed                            // nobody decided in time, or the schedule was paused
	TickCorrected                         // none was decided; the next tick is another, by other data of the time zone
	TickFilled                            // of a backfill: the tick has a run, created in the same entry
	TickNotFilled                         // of a backfill: a run of that id was there
	tickDecisionEnd
)

// TickCause says why ticks have no run.
type TickCause uint8

// The causes.
const (
	TickNoCause TickCause = iota
	TickOverlap           // skipped: a run had not ended
	TickTaken             // skipped: there is a task of the run's id
	TickTooMany           // skipped: the schedule has as many unfinished runs as it may
	TickLate              // missed: decided too late
	TickOld               // missed: a newer tick was undecided, too
	TickPaused            // missed: the schedule was paused
	tickCauseEnd
)

// Ticked decides the ticks of a schedule from one to another, both nominal instants and inclusive.
type Ticked struct {
	Decision TickDecision
	Cause    TickCause
	From, To Millis
	Run      TaskID // of created and filled
	Next     Millis // the next tick of the schedule, of filled and not filled that of the backfill; 0 = none comes
	// The offsets of the zone in seconds east of UTC, by whose data To and Next were found.
	ToOffset, NextOffset int64
}

// SchedulePaused keeps a schedule from deciding ticks.
type SchedulePaused struct {
	Reason string
	Failed TaskID // the run whose failure paused it; "" = somebody did
}

// ScheduleResumed ends SchedulePaused.
type ScheduleResumed struct{}

// BackfillSet begins a backfill: ticks of the past have runs, the oldest first, one at a time.
type BackfillSet struct {
	From, To Millis // the first tick, and the latest that may be one
	Ticks    uint32 // how many they are
}

// BackfillEnded ends a backfill whose ticks are decided, or that somebody ended.
type BackfillEnded struct{ Reason string }

// ScheduleEnded ends a schedule. Its runs go on.
type ScheduleEnded struct{}

func (*ScheduleSet) Kind() Kind     { return KindScheduleSet }
func (*Ticked) Kind() Kind          { return KindTicked }
func (*SchedulePaused) Kind() Kind  { return KindSchedulePaused }
func (*ScheduleResumed) Kind() Kind { return KindScheduleResumed }
func (*BackfillSet) Kind() Kind     { return KindBackfillSet }
func (*BackfillEnded) Kind() Kind   { return KindBackfillEnded }
func (*ScheduleEnded) Kind() Kind   { return KindScheduleEnded }
func (*ScheduleDefined) Kind() Kind { return KindScheduleDefined }

func (b *ScheduleSet) payload() Payload   { return b.Params }
func (*Ticked) payload() Payload          { return nil }
func (*SchedulePaused) payload() Payload  { return nil }
func (*ScheduleResumed) payload() Payload { return nil }
func (*BackfillSet) payload() Payload     { return nil }
func (*BackfillEnded) payload() Payload   { return nil }
func (*ScheduleEnded) payload() Payload   { return nil }

// Later reports whether the plan is one of those that came with ScheduleDefined: without a cron expression, or with
// names by another rule than the first.
func (p *SchedulePlan) Later() bool { return p.Cron == "" || p.Names != NamesByOrigin }

// Encode writes the plan as an array of its fields, times in milliseconds. Names of 0 are left out.
func (p *SchedulePlan) Encode(w *wire.Writer) {
	w.Array(13 + tail(p.Names != 0))
	w.Text(p.Cron)
	w.Text(p.Zone)
	w.Text(p.Behavior)
	p.Policy.Encode(w)
	w.Int(p.Priority)
	w.Uint(uint64(p.Overlap))
	w.Uint(uint64(p.Misfire))
	w.Int(int64(p.Grace))
	w.Int(int64(p.Jitter))
	w.Int(int64(p.Start))
	w.Int(int64(p.End))
	w.Uint(uint64(p.Keep))
	w.Bool(p.PauseOnFailure)
	if p.Names != 0 {
		w.Uint(uint64(p.Names))
	}
}

// Decode reads what Encode wrote; whether it is in range is for Check to say.
func (p *SchedulePlan) Decode(r *wire.Reader) {
	n := r.Array()
	if n > 14 {
		r.Tail(n, 14)
	}
	p.Cron, p.Zone, p.Behavior = r.Text(), r.Text(), r.Text()
	p.Policy.Decode(r)
	p.Priority = r.Int()
	p.Overlap, p.Misfire = Overlap(upTo(r, math.MaxUint8)), Misfire(upTo(r, math.MaxUint8))
	p.Grace, p.Jitter, p.Start, p.End = Millis(r.Int()), Millis(r.Int()), Millis(r.Int()), Millis(r.Int())
	p.Keep, p.PauseOnFailure = uint32(upTo(r, math.MaxUint32)), r.Bool()
	switch {
	case n == 14:
		if p.Names = RunNames(upTo(r, math.MaxUint8)); p.Names == 0 {
			r.Fail("names by no rule")
		}
	case n < 13:
		r.Fail("array of %d, want 13 or 14", n)
	}
}

func (b *ScheduleSet) encode(w *wire.Writer) {
	w.Array(4)
	b.encodeFields(w)
}

func (b *ScheduleSet) encodeFields(w *wire.Writer) {
	b.Plan.Encode(w)
	w.Int(int64(b.Next))
	w.Int(b.Offset)
	w.Text(b.Code)
}

func (b *ScheduleSet) decode(r *wire.Reader, p Payload) {
	r.ArrayOf(4)
	b.decodeFields(r, p)
}

func (b *ScheduleSet) decodeFields(r *wire.Reader, p Payload) {
	b.Plan.Decode(r)
	b.Next, b.Offset, b.Code, b.Params = Millis(r.Int()), r.Int(), r.Text(), p
}

// encode leaves out a reason of "".
func (b *ScheduleDefined) encode(w *wire.Writer) {
	w.Array(4 + tail(b.Reason != ""))
	b.encodeFields(w)
	if b.Reason != "" {
		w.Text(b.Reason)
	}
}

func (b *ScheduleDefined) decode(r *wire.Reader, p Payload) {
	n := r.Array()
	if n > 5 {
		r.Tail(n, 5)
	}
	b.decodeFields(r, p)
	switch {
	case n == 5:
		if b.Reason = r.Text(); b.Reason == "" {
			r.Fail("a reason of nothing")
		}
	case n < 4:
		r.Fail("array of %d, want 4 or 5", n)
	}
}

func (b *Ticked) encode(w *wire.Writer) {
	w.Array(8)
	w.Uint(uint64(b.Decision))
	w.Uint(uint64(b.Cause))
	w.Int(int64(b.From))
	w.Int(int64(b.To))
	w.Text(string(b.Run))
	w.Int(int64(b.Next))
	w.Int(b.ToOffset)
	w.Int(b.NextOffset)
}

func (b *Ticked) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(8)
	b.Decision, b.Cause = TickDecision(upTo(r, math.MaxUint8)), TickCause(upTo(r, math.MaxUint8))
	b.From, b.To, b.Run = Millis(r.Int()), Millis(r.Int()), TaskID(r.Text())
	b.Next, b.ToOffset, b.NextOffset = Millis(r.Int()), r.Int(), r.Int()
}

func (b *SchedulePaused) encode(w *wire.Writer) {
	w.Array(2)
	w.Text(b.Reason)
	w.Text(string(b.Failed))
}
func (*ScheduleResumed) encode(w *wire.Writer) { w.Array(0) }
func (b *BackfillEnded) encode(w *wire.Writer) { w.Array(1); w.Text(b.Reason) }
func (*ScheduleEnded) encode(w *wire.Writer)   { w.Array(0) }
func (b *BackfillSet) encode(w *wire.Writer) {
	w.Array(3)
	w.Int(int64(b.From))
	w.Int(int64(b.To))
	w.Uint(uint64(b.Ticks))
}

func (b *SchedulePaused) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(2)
	b.Reason, b.Failed = r.Text(), TaskID(r.Text())
}

func (*ScheduleResumed) decode(r *wire.Reader, _ Payload) { r.ArrayOf(0) }
func (b *BackfillEnded) decode(r *wire.Reader, _ Payload) { r.ArrayOf(1); b.Reason = r.Text() }
func (*ScheduleEnded) decode(r *wire.Reader, _ Payload)   { r.ArrayOf(0) }
func (b *BackfillSet) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(3)
	b.From, b.To, b.Ticks = Millis(r.Int()), Millis(r.Int()), uint32(upTo(r, math.MaxUint32))
}
