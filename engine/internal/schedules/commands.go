package schedules

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/store"
	"taskledger/task"
)

// The numbers of the commands and questions of schedules.
const (
	opSet uint64 = iota + 25
	opSteer
	opRun
	opBackfill
	opGet
	opList
)

// commandBytes bounds the bytes of a command without its texts, with its events and its answer.
const commandBytes = 512

// planBytes bounds the encoded plan of a schedule.
const planBytes = events.MaxCronBytes + events.MaxZoneBytes + events.MaxBehaviorBytes + 256

// Set makes a schedule, or changes it.
type Set struct {
	Name   string
	Plan   []byte // as events.SchedulePlan encodes itself
	Params []byte // a payload
	Next   int64
	Offset int64
	Code   string
	Seen   uint64 // the version of the definition that the caller has seen; 0 = any
	Reason string // "" = none
}

// Optional implements message.Optional.
func (*Set) Optional() int { return 1 }

// Verb says what a Steer does.
type Verb int64

// The verbs.
const (
	Pause Verb = iota
	Resume
	Delete
	EndBackfill
	verbCount int64 = iota
)

// Steer pauses a schedule, resumes it, deletes it, or ends its backfill.
type Steer struct {
	Name   string
	Verb   int64
	Reason string
	Seen   uint64 // as of Set
}

// Run makes a run of a schedule now.
type Run struct {
	Name     string
	ID       string // of the run, where the schedule names its runs by what made them
	Seen     uint64 // as of Set
	Priority int64  // of the run; 0 = the schedule's
	Keyed    bool   // ID is made of a key: the same request may come again
}

// Optional implements message.Optional.
func (*Run) Optional() int { return 2 }

// request identifies a request with a key in the events and the memory of the run that it shares; "" = it has none.
func (c *Run) request() string {
	if !c.Keyed {
		return ""
	}
	_, of, _ := strings.Cut(c.ID, events.HandPrefix)
	return of
}

// Backfill begins a backfill.
type Backfill struct {
	Name     string
	From, To int64
	Ticks    int64
	Seen     uint64 // as of Set
}

// Get asks for a schedule.
type Get struct {
	Name   string
	Linear bool // the answer waits for a proof of ownership
}

// List asks for the schedules of a shard.
type List struct {
	After    string // their names come after this one
	Limit    int64
	Prefix   string // of their names
	Behavior string // "" = any
	Paused   bool   // only those that are
}

// MaxListed bounds the schedules of an answer.
const MaxListed = 100

// Shard returns the shard of a schedule among count.
func Shard(name string, count int) int { return events.ScheduleRecord(name).Shard(count) }

func (*Set) Op() uint64      { return opSet }
func (*Steer) Op() uint64    { return opSteer }
func (*Run) Op() uint64      { return opRun }
func (*Backfill) Op() uint64 { return opBackfill }
func (*Get) Op() uint64      { return opGet }
func (*List) Op() uint64     { return opList }

// Shard tells the shard of what the command names.
func (c *Set) Shard(count int) int      { return Shard(c.Name, count) }
func (c *Steer) Shard(count int) int    { return Shard(c.Name, count) }
func (c *Run) Shard(count int) int      { return Shard(c.Name, count) }
func (c *Backfill) Shard(count int) int { return Shard(c.Name, count) }
func (c *Get) Shard(count int) int      { return Shard(c.Name, count) }

// Size implements command.Command.
func (c *Set) Size() int {
	return commandBytes + 2*len(c.Name) + len(c.Plan) + len(c.Params) + len(c.Code) + len(c.Reason)
}
func (c *Steer) Size() int { return commandBytes + 2*len(c.Name) + len(c.Reason) }

// Size counts the parameters of the schedule at their largest: they stand in the run that is created.
func (c *Run) Size() int {
	return commandBytes + planBytes + 4*len(c.Name) + len(c.ID) + events.MaxScheduleParamBytes
}
func (c *Backfill) Size() int { return commandBytes + 2*len(c.Name) }
func (c *Get) Size() int      { return commandBytes + len(c.Name) }
func (c *List) Size() int     { return commandBytes + len(c.After) + len(c.Prefix) + len(c.Behavior) }

// Limits implements command.Command.
func (c *Set) Limits() error {
	if err := cmp.Or(
		limitName(c.Name),
		limitText("code", c.Code, events.MaxCodeBytes),
		limitText("reason", c.Reason, events.MaxNameBytes),
	); err != nil {
		return err
	}
	if n := len(c.Plan); n > planBytes {
		return &task.LimitError{Field: "plan", Limit: planBytes, Got: int64(n)}
	}
	if n := len(c.Params) - 1; n > events.MaxScheduleParamBytes {
		return &task.LimitError{Field: "params", Limit: events.MaxScheduleParamBytes, Got: int64(n)}
	}
	if _, err := events.Payload(c.Params).JSON(); err != nil {
		return invalid("params", err.Error())
	}
	if _, err := c.plan(); err != nil {
		return invalid("plan", "want one that can be read: "+err.Error())
	}
	return nil
}

// plan reads the plan.
func (c *Set) plan() (p events.SchedulePlan, err error) {
	r := wire.NewReader(c.Plan)
	if p.Decode(r); r.Close() != nil {
		return p, r.Err()
	}
	return p, p.Check()
}

// Limits implements command.Command.
func (c *Steer) Limits() error {
	if c.Verb < 0 || c.Verb >= verbCount {
		return invalid("verb", "want a verb that this release knows")
	}
	return cmp.Or(limitName(c.Name), limitText("reason", c.Reason, events.MaxNameBytes))
}

// Limits implements command.Command.
func (c *Run) Limits() error {
	if err := limitName(c.Name); err != nil {
		return err
	}
	id := events.TaskID(c.ID)
	if err := id.Validate(); err != nil || id.Affinity() != c.Name || events.ScheduledPrefix(id) != events.HandPrefix {
		return invalid("id", "want NAME/"+events.HandPrefix+"... of the schedule")
	}
	if c.Priority < 0 || c.Priority > events.MaxPriority {
		return &task.LimitError{Field: "priority", Limit: events.MaxPriority, Got: c.Priority}
	}
	return nil
}

// Limits implements command.Command.
func (c *Backfill) Limits() error {
	if c.Ticks < 1 || c.Ticks > events.MaxBackfill {
		return &task.LimitError{Field: "ticks", Limit: events.MaxBackfill, Got: c.Ticks}
	}
	if c.From < 0 || c.From > c.To || c.To > int64(events.MaxTick) {
		return invalid("from", "want a time of the years 1970 to 9999 that is not after to")
	}
	return limitName(c.Name)
}

// Limits implements command.Command.
func (c *Get) Limits() error { return limitName(c.Name) }

// Limits implements command.Command.
func (c *List) Limits() error {
	if c.Limit < 1 || c.Limit > MaxListed {
		return &task.LimitError{Field: "limit", Limit: MaxListed, Got: c.Limit}
	}
	return cmp.Or(
		limitText("after", c.After, events.MaxScheduleBytes),
		limitText("prefix", c.Prefix, events.MaxScheduleBytes),
		limitText("behavior", c.Behavior, events.MaxBehaviorBytes),
	)
}

func invalid(field, problem string) error { return &store.InvalidError{Field: field, Problem: problem} }

func limitName(name string) error {
	if err := events.ValidateSchedule(name); err != nil {
		return invalid("name", err.Error())
	}
	return nil
}

func limitText(field, text string, limit int) error {
	if !utf8.ValidString(text) {
		return invalid(field, "want UTF-8")
	}
	if len(text) > limit {
		return &task.LimitError{Field: field, Limit: int64(limit), Got: int64(len(text))}
	}
	return nil
}

// EncodePlan writes a plan as a Set has it.
func EncodePlan(p *events.SchedulePlan) []byte {
	var w wire.Writer
	p.Encode(&w)
	return w.B
}
