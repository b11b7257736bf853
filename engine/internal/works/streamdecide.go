package works

import (
	"fmt"
	"strconv"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/projection"
	"taskledger/projection/works"
	"taskledger/work/workledger"
)

// streamed answers the commands and questions of streams.
type streamed struct {
	Freed   [][]byte // of Move: keys without a hold
	Token   []byte   // of Position
	Until   []byte   // of Position
	Held    []uint64 // of Position: the hashes of keys that holds block
	From    uint64   // of Left: changes that were processed so far
	Changes []byte   // of Left: as encodeChanges writes them; empty = none is left
	Fence   uint64   // of Position, and with Freed: above the position of each Started so far
	Open    uint64   // of Position
	Counted uint64   // of Position: changes of the run
}

// Optional implements message.Optional.
func (*streamed) Optional() int { return 3 }

func (s *streamed) answer() command.Answer { return command.Answer{Data: message.Encode(s)} }

// streams returns an attempt that has the bucket of a stream; false = it does not.
func streams(d *command.Decider, id string, started uint64, node string) (a asked, is bool) {
	a, is = attempt(d, id, started, node)
	if !is {
		return a, false
	}
	if a.of == nil || a.parent == nil || !a.of.IsStream(a.t.Started) {
		d.Stale++
		return a, false
	}
	return a, true
}

// Decide records how far the stream has come, with the changes that are held, or nothing of it. Where there is no room
// for these it is refused, unless it tells nothing else: then it ends the stream.
func (c *Move) Decide(d *command.Decider) command.Answer {
	a, is := streams(d, c.Task, c.Started, c.Node)
	if !is {
		return stale()
	}
	holds, err := decodeHolds(c.Holds)
	if err != nil {
		return command.Refused(command.AnswerInvalid, "%v", invalid("holds", err.Error()))
	}
	errs, err := decodeErrors(c.Errors)
	if err != nil {
		return command.Refused(command.AnswerInvalid, "%v", invalid("errors", err.Error()))
	}
	if freed := a.freed(holds); len(freed) > 0 {
		return (&streamed{Freed: freed, Fence: fence(d.State, len(d.Entry.Entry.Events))}).answer()
	}
	todo, over := a.sort(holds)
	switch _, plan := a.of.Part(); {
	case over.problem != "" && plan.Form == events.FormPrecise && (len(c.Token) > 0 || c.items() != events.ItemCounts{}):
		return command.Refused(command.AnswerInvalid, "%v", invalid(workledger.FieldHolds, over.problem)) // the rest comes alone
	case over.problem != "":
		failWork(d, a.of, a.full(over))
		return stale()
	}
	if refusal, refused := d.Grows(0); refused {
		return refusal
	}
	for i := range todo {
		if h := &todo[i]; h.number == 0 {
			if refusal, refused := d.MayCreate(len(a.holdParams(0, h.key))); refused {
				return refusal
			}
		}
	}
	for i := range todo {
		a.hold(&todo[i])
	}
	if body := a.moves(c, errs); body != nil && d.Err == nil {
		d.Emit(a.d.State.Task(a.of.ID), body)
	}
	return (&streamed{}).answer()
}

// fence returns a fencing token that is above those of all attempts which have begun in a shard, with so many events of
// the entry that is being made, and below those of all that begin later: the position of the last event, or one between
// that and the next. So an attempt of a stream that goes on with a key behind a hold is above every attempt of that,
// however it ended, and neither need be remembered.
func fence(state *projection.Shard, recorded int) uint64 {
	return uint64(events.RefOf(state.Number+1, 0)) + uint64(recorded) - 1
}

// freed returns the keys of changes to append that have no hold, neither in the state nor by a change before them.
func (a *asked) freed(holds []held) (keys [][]byte) {
	begun := map[string]bool{}
	for i := range holds {
		switch h := &holds[i]; {
		case !h.appends:
			begun[h.key] = true
		case begun[h.key] || a.of.Stream != nil && a.of.Stream.Blocks(h.key) != nil:
		default:
			keys = append(keys, []byte(h.key))
			begun[h.key] = true
		}
	}
	return keys
}

// todo is a change that goes into a hold.
type todo struct {
	*held
	number uint32 // of the hold; 0 = a change before it, or itself, begins one
}

// sorted sorts out the changes of a Move.
type sorted struct {
	todo    []todo
	keys    map[string]*sum
	begins  int   // holds
	bytes   int64 // that all take
	exceeds excess
}

// excess is a limit that a Move exceeds.
type excess struct {
	problem string // "" = none
	hold    uint32 // whose limit it is; 0 = that of all, or of a hold that has not begun
}

// sum counts the changes of the hold of a key, with those that a Move would add.
type sum struct {
	has     *works.Hold // nil = a change of the Move begins it
	changes int
	data    int64
	added   map[string]bool // names of changes of the Move
}

// sort returns the changes that are to be added to holds, without those that are there, and which limit they exceed.
func (a *asked) sort(holds []held) (all []todo, over excess) {
	s := sorted{keys: map[string]*sum{}}
	for i := range holds {
		if s.take(a, &holds[i]); s.exceeds.problem != "" {
			return nil, s.exceeds
		}
	}
	has := 0
	if a.of.Stream != nil {
		has = a.of.Stream.Len()
	}
	switch {
	case has+s.begins > events.MaxHolds:
		over.problem = fmt.Sprintf("more than %d keys or changes are held apart", events.MaxHolds)
	case s.bytes > 0 && works.Of(a.d.State).Bytes()+s.bytes > works.MaxBytes:
		over.problem = fmt.Sprintf("works of the shard, with what they hold, take more than %d bytes", works.MaxBytes)
	}
	return s.todo, over
}

// take sorts out a change.
func (s *sorted) take(a *asked, h *held) {
	is := s.sum(a, h)
	switch {
	case is.added[h.at]:
		return
	case is.has != nil && is.has.Has(h.at, a.t.Started, len(is.added) > 0):
		return
	case is.changes == 0 && h.passed && a.of.Stream != nil && a.of.Stream.PassedBy(h.key, h.at) != nil:
		return
	}
	next := todo{held: h}
	switch {
	case is.has != nil:
		next.number = is.has.Number
	case is.changes == 0:
		s.begins++
		s.bytes += works.HoldBytes(h.key)
	}
	s.todo = append(s.todo, next)
	s.bytes += works.HeldBytes(h.at, len(h.data), h.code, h.message)
	is.changes++
	is.data += int64(len(h.data))
	if h.at != "" {
		is.added[h.at] = true
	}
	key := strconv.QuoteToASCII(events.Head(h.key, 64))
	s.exceeds.hold = next.number
	switch {
	case is.changes > events.MaxHeldChanges:
		s.exceeds.problem = fmt.Sprintf("key %s has more than %d changes that are held", key, events.MaxHeldChanges)
	case is.data > events.MaxHeldBytes:
		s.exceeds.problem = fmt.Sprintf("changes of key %s that are held take more than %d bytes", key, events.MaxHeldBytes)
	}
}

// sum returns what the hold has into which a change goes. One that later changes pass has it for itself.
func (s *sorted) sum(a *asked, h *held) *sum {
	if is := s.keys[h.key]; is != nil {
		return is
	}
	is := &sum{added: map[string]bool{}}
	if stream := a.of.Stream; stream != nil {
		is.has = stream.Blocks(h.key)
	}
	if is.has != nil {
		is.changes, is.data = len(is.has.Changes), is.has.Data()
	}
	if is.has != nil || !h.passed {
		s.keys[h.key] = is
	}
	return is
}

// full returns the failure of a stream that a limit stops.
func (a *asked) full(over excess) events.Error {
	_, plan := a.of.Part()
	is := events.Error{
		Code:       events.CodeHolds,
		Message:    events.Head("partition "+plan.ID+": "+over.problem, failureBytes/2),
		Properties: map[string]string{"partition": plan.ID},
	}
	if over.hold != 0 {
		is.Properties["hold"] = string(events.HoldID(a.of.ID, over.hold))
	}
	return is
}

// hold adds a change to its hold, or begins one with its task.
func (a *asked) hold(c *todo) {
	d, parent := a.d, a.d.State.Task(a.of.ID)
	stream := a.of.Stream
	body := &events.ChangeHeld{
		Attempt:   a.t.Started,
		Hold:      c.number,
		Partition: uint32(a.of.Current),
		Key:       c.key,
		At:        c.at,
		Data:      c.data,
		Code:      c.code,
		Message:   c.message,
	}
	if stream != nil && stream.Blocks(c.key) != nil {
		body.Hold = stream.Blocks(c.key).Number
	}
	if body.Hold != 0 {
		d.Emit(parent, body)
		return
	}
	body.Hold, body.Passed = nextHold(d.State, a.of), c.passed
	if d.Emit(parent, body); d.Err != nil || a.of.Stream == nil || a.of.Stream.Hold(body.Hold) == nil {
		return
	}
	policy := parent.Kind.Policy
	policy.Every = 0
	due := d.Now
	if !c.parked {
		due = d.Now.Add(policy.Backoff.Delay(1, 1))
	}
	t := d.Create(events.HoldID(a.of.ID, body.Hold), &events.Created{
		Behavior:  parent.Kind.Behavior,
		Policy:    policy,
		Priority:  parent.Priority,
		NotBefore: due,
		Params:    a.holdParams(body.Hold, c.key),
		Ties: events.Ties{
			Parent: a.of.ID,
			Group:  string(a.of.ID),
			By:     parent.Kind.Creator,
		},
	})
	if c.parked && t != nil && d.Err == nil {
		reason := c.code
		if c.message != "" {
			reason += ": " + c.message
		}
		d.Emit(t, &events.Suspended{Reason: events.Head(reason, events.MaxNameBytes)})
	}
}

// nextHold returns the number of a further hold, whose id no task has.
func nextHold(state *projection.Shard, of *works.Work) uint32 {
	number := uint32(1)
	if of.Stream != nil {
		number = of.Stream.Last() + 1
	}
	for state.Task(events.HoldID(of.ID, number)) != nil {
		number++
	}
	return number
}

// moves returns the event of a Move; nil = it tells nothing that is not known.
func (a *asked) moves(c *Move, errs []events.ItemError) events.Body {
	part, plan := a.of.Part()
	body := &events.TokenMoved{
		Attempt: a.t.Started,
		Token:   string(c.Token),
		Items:   c.items(),
		Open:    c.Open,
		Oldest:  events.Millis(c.Oldest),
	}
	body.Simulated = body.Token != "" && plan.Mode != events.ModeFull && !plan.MovesToken
	if a.of.ErrorsTold(a.d.Now)+works.TextBytes(errs) <= works.MaxErrorBytes {
		body.Errors = errs
	}
	var is works.Stream
	if a.of.Stream != nil {
		is = *a.of.Stream
	}
	stands, _ := a.of.Position()
	ends := body.Simulated && part.Simulated == "" // it has simulated nothing: that is its end, too
	still := body.Token == "" || body.Token == stands && !ends
	if still && body.Items == (events.ItemCounts{}) && body.Open == is.Open && body.Oldest == is.Oldest {
		return nil
	}
	return body
}

// holdParams returns the parameters of the task of a hold.
func (a *asked) holdParams(number uint32, key string) events.Payload {
	_, plan := a.of.Part()
	return works.HoldTask{
		HoldOf:    a.of.ID,
		Hold:      number,
		Partition: a.of.Current,
		Stream:    plan.ID,
		Key:       key,
	}.Params()
}

// HoldOf returns the task whose stream parameters say that a task processes a hold of, and the id of the partition, ""
// standing for the full one. They say none if there is no task.
func HoldOf(params []byte, id events.TaskID) (of events.TaskID, stream string) {
	p, _ := works.TaskOfHold(params, id)
	return p.HoldOf, p.Stream
}

// Decide takes away what was processed.
func (c *Held) Decide(d *command.Decider) command.Answer {
	a, is := attempt(d, c.Task, c.Started, c.Node)
	if !is {
		return stale()
	}
	all := works.Of(d.State)
	of, h := all.HoldOf(a.t.ID)
	switch {
	case h == nil && all.IsHold(a.t.ID):
		return (&streamed{}).answer()
	case h == nil:
		return command.Refused(command.AnswerState, "it is the task of no hold")
	}
	if done := min(int(c.Processed), len(h.Changes)); done > 0 && c.From == h.Done {
		body := &events.HoldMoved{Hold: h.Number, Done: uint32(done), Ended: done == len(h.Changes)}
		d.Emit(d.State.Task(of.ID), body)
	}
	return (&streamed{}).answer()
}
