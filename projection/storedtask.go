package projection

import (
	"math"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/name"
	"taskledger/projection/requests"
	"taskledger/task"
)

// Encode writes the task by itself: the array [kind, node, task] of what Snapshot describes, with 0 for the numbers
// of kind and node. What made a run of a schedule, or 0, and the description follow at the end, and not within the
// task, so that a program which does not know of them reads the rest.
func (t *Task) Encode(w *wire.Writer) {
	plain, fields := t, 3
	if t.Run != 0 {
		fields++
	}
	if t.About != nil {
		fields = 5
		bare := *t
		bare.About = nil
		plain = &bare
	}
	w.Array(fields)
	t.Kind.encode(w)
	w.Text(t.LastNode.String())
	plain.encode(w, 0, 0, 0)
	if fields > 3 {
		w.Uint(uint64(t.Run))
	}
	if fields > 4 {
		t.About.encode(w)
	}
}

// DecodeTask reads what Encode wrote. What it returns shares no memory with the message, and is not checked for
// being the fold of any events.
func DecodeTask(r *wire.Reader) *Task {
	fields := r.Array()
	if fields > 5 {
		r.Tail(fields, 5)
	} else if fields < 3 {
		r.Fail("array of %d, want 3 to 5", fields)
	}
	k := decodeKind(r)
	node := name.Of(r.Text())
	t := decodeTask(r, []*Kind{{Behavior: k.behavior, Policy: k.policy, Creator: k.creator}}, []name.Name{node})
	if fields > 3 {
		t.Run = events.RunOrigin(upTo(r, math.MaxUint8))
	}
	if fields > 4 {
		t.About = decodeDescription(r)
	}
	return t
}

func (k *Kind) encode(w *wire.Writer) {
	if k.Creator == "" {
		w.Array(2)
	} else {
		w.Array(3)
	}
	w.Text(k.Behavior)
	k.Policy.Encode(w)
	if k.Creator != "" {
		w.Text(k.Creator)
	}
}

func decodeKind(r *wire.Reader) (k kindKey) {
	values := r.Array()
	if values > 3 {
		r.Tail(values, 3)
	}
	k.behavior = r.Text()
	k.policy.Decode(r)
	if values == 3 {
		k.creator = r.Text()
	}
	if values < 2 || values == 3 && k.creator == "" {
		r.Fail("kind of %d values", values)
	}
	return k
}

// The values of a task: those that each has, and with those that may be left out at its end.
const (
	leastValues = 12
	withWait    = 15
	mostValues  = 16
)

// values returns how many values a task has: what is left out at the end is empty.
func (t *Task) values() int {
	switch {
	case t.About != nil:
		return mostValues
	case t.Wait != nil:
		return withWait
	case t.Status != task.Created:
		return leastValues + 2
	case len(t.Requests) > 0:
		return leastValues + 1
	}
	return leastValues
}

// encode writes the task as Snapshot describes it, with the numbers of its kind and of its last node, and with what
// made it as a run of a schedule among the flags.
func (t *Task) encode(w *wire.Writer, kind, node uint64, made events.RunOrigin) {
	values := t.values()
	w.Array(values)
	w.Text(string(t.ID))
	w.Uint(kind)
	w.Uint(uint64(t.Status))
	var flags uint64
	for i, set := range t.stored() {
		if *set {
			flags |= 1 << i
		}
	}
	w.Uint(flags | uint64(made)<<len(t.stored()))
	w.Int(t.Priority)
	w.Uint(t.Seq)
	w.Uint(uint64(t.Created))
	w.Int(int64(t.CreatedAt))
	w.Uint(uint64(t.Last))
	w.Int(int64(t.Due))
	w.Bytes(t.Params)
	w.Uint(uint64(t.ParamsAt))
	if values > leastValues {
		t.Requests.Encode(w)
	}
	switch {
	case t.Status != task.Created:
		t.encodeRun(w, node)
	case values > leastValues+1:
		w.Array(0)
	}
	if values >= withWait {
		t.encodeWait(w)
	}
	if values == mostValues {
		t.About.encode(w)
	}
}

func (t *Task) encodeWait(w *wire.Writer) {
	if t.Wait == nil {
		w.Array(0)
		return
	}
	w.Array(7)
	w.Uint(uint64(t.Wait.Cause))
	w.Int(int64(t.Wait.Since))
	w.Int(int64(t.Wait.SuspendedAt))
	w.Text(t.Wait.By)
	w.Text(t.Wait.Reason)
	w.Text(t.Wait.SuspendedBy)
	w.Text(t.Wait.SuspendedFor)
}

func (t *Task) encodeRun(w *wire.Writer, node uint64) {
	w.Array(14)
	for _, n := range [...]uint32{t.Attempt, t.Failures, t.Lost, t.Runs} {
		w.Uint(uint64(n))
	}
	if t.LastNode == (name.Name{}) {
		w.Bytes(nil)
	} else {
		w.Uint(node)
	}
	w.Uint(t.Offer)
	w.Int(int64(t.Lease))
	w.Uint(uint64(t.Started))
	w.Int(int64(t.StartedAt))
	w.Uint(uint64(t.Outcome))
	w.Int(int64(t.EndedAt))
	w.Bytes(t.Result)
	if t.Error == nil {
		w.Array(0)
	} else {
		w.Array(1)
		t.Error.Encode(w)
	}
	if t.Progress == nil {
		w.Array(0)
	} else {
		w.Array(3)
		w.Int(t.Progress.Done)
		w.Int(t.Progress.Total)
		w.Text(t.Progress.Note)
	}
}

// originBits are the bits behind those of the flags that tell what made a run of a schedule.
const originBits = 2

// decodeTask reads what encode wrote. What it returns shares no memory with the message.
func decodeTask(r *wire.Reader, kinds []*Kind, nodes []name.Name) *Task {
	values := r.Array()
	if values < leastValues {
		r.Fail("task of %d values", values)
	} else if values > mostValues {
		r.Tail(values, mostValues)
	}
	t := &Task{ID: events.TaskID(r.Text())}
	if kind := r.Uint(); kind < uint64(len(kinds)) {
		t.Kind = kinds[kind]
	} else {
		r.Fail("kind %d of %d", kind, len(kinds))
	}
	t.Status = task.Status(upTo(r, uint64(task.Failure)))
	flags := upTo(r, 1<<(len(t.stored())+originBits)-1)
	for i, set := range t.stored() {
		*set = flags>>i&1 != 0
	}
	t.Run = events.RunOrigin(flags >> len(t.stored()))
	t.Priority, t.Seq = r.Int(), r.Uint()
	t.Created, t.CreatedAt, t.Last, t.Due = events.Ref(r.Uint()), events.Millis(r.Int()), events.Ref(r.Uint()), events.Millis(r.Int())
	t.Params, t.ParamsAt = r.Bytes(), events.Ref(r.Uint())
	if values > leastValues {
		t.Requests = requests.Decode(r)
	}
	if values > leastValues+1 {
		if n := r.Array(); n > 14 {
			r.Tail(n, 14)
		} else if n == 14 && t.Status != task.Created {
			t.decodeRun(r, nodes)
		} else if n != 0 || t.Status != task.Created {
			r.Fail("%s task with a run of %d values", t.Status, n)
		}
	}
	if values >= withWait {
		t.decodeWait(r, values > withWait)
	}
	if values == mostValues {
		t.About = decodeDescription(r)
	}
	if values != t.values() {
		r.Fail("task of %d values, the last ones are empty or missing", values)
	}
	return t
}

// decodeWait reads what encodeWait wrote. may says that nothing may be there, since something follows.
func (t *Task) decodeWait(r *wire.Reader, may bool) {
	switch n := r.Array(); {
	case n == 0 && may:
	case n == 7:
		t.setWait(Wait{
			Cause:        events.Kind(upTo(r, math.MaxUint8)),
			Since:        events.Millis(r.Int()),
			SuspendedAt:  events.Millis(r.Int()),
			By:           r.Text(),
			Reason:       r.Text(),
			SuspendedBy:  r.Text(),
			SuspendedFor: r.Text(),
		})
	case n > 7:
		r.Tail(n, 7)
	default:
		r.Fail("wait of %d values", n)
	}
}

func (t *Task) decodeRun(r *wire.Reader, nodes []name.Name) {
	for _, n := range [...]*uint32{&t.Attempt, &t.Failures, &t.Lost, &t.Runs} {
		*n = uint32(upTo(r, math.MaxUint32))
	}
	if r.NextNil() {
		r.Bytes()
	} else if node := r.Uint(); node < uint64(len(nodes)) {
		t.LastNode = nodes[node]
	} else {
		r.Fail("node %d of %d", node, len(nodes))
	}
	if t.Status == task.Running && t.Due == 0 {
		t.Node = t.LastNode.String()
	}
	t.Offer, t.Lease = r.Uint(), events.Millis(r.Int())
	t.Started, t.StartedAt = events.Ref(r.Uint()), events.Millis(r.Int())
	t.Outcome, t.EndedAt = events.Ref(r.Uint()), events.Millis(r.Int())
	t.Result = r.Bytes()
	switch n := r.Array(); n {
	case 0:
	case 1:
		t.Error = new(events.Error)
		t.Error.Decode(r)
	default:
		r.Fail("%d errors", n)
	}
	switch n := r.Array(); n {
	case 0:
	case 3:
		t.Progress = &events.Progressed{Done: r.Int(), Total: r.Int(), Note: r.Text()}
	default:
		if n > 3 {
			r.Tail(n, 3)
		}
		r.Fail("progress of %d values", n)
	}
}

// upTo reads a number that must not exceed limit.
func upTo(r *wire.Reader, limit uint64) uint64 {
	v := r.Uint()
	if v > limit {
		r.Fail("number %d exceeds %d", v, limit)
	}
	return v
}
