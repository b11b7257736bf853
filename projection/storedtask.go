package projection

import (
	"math"

	"taskledger/events"
	"taskledger/internal/wire"
)

// flags returns the task's flags in stored order.
func (t *Task) flags() [6]*bool {
	return [...]*bool{&t.Suspended, &t.Cancelled, &t.Rerun, &t.RunEnded, &t.ParamsElided, &t.ResultElided}
}

// Encode writes the task by itself: the array [kind, task] of what Snapshot describes, with 0 for the number of the kind.
func (t *Task) Encode(w *wire.Writer) {
	w.Array(2)
	t.Kind.encode(w)
	t.encode(w, 0)
}

// DecodeTask reads what Encode wrote. What it returns shares no memory with the message, and is not checked for being the
// fold of any events.
func DecodeTask(r *wire.Reader) *Task {
	r.ArrayOf(2)
	kind := new(Kind)
	kind.Behavior, kind.Policy = decodeKind(r)
	return decodeTask(r, []*Kind{kind})
}

func (k *Kind) encode(w *wire.Writer) {
	w.Array(2)
	w.Text(k.Behavior)
	k.Policy.Encode(w)
}

func decodeKind(r *wire.Reader) (behavior string, policy events.Policy) {
	r.ArrayOf(2)
	behavior = r.Text()
	policy.Decode(r)
	return behavior, policy
}

// encode writes the task as Snapshot describes it.
func (t *Task) encode(w *wire.Writer, kind uint64) {
	w.Array(14)
	w.Text(string(t.ID))
	w.Uint(kind)
	w.Uint(uint64(t.Status))
	var flags uint64
	for i, set := range t.flags() {
		if *set {
			flags |= 1 << i
		}
	}
	w.Uint(flags)
	w.Int(t.Priority)
	w.Uint(t.Seq)
	w.Uint(uint64(t.Created))
	w.Int(int64(t.CreatedAt))
	w.Uint(uint64(t.Last))
	w.Int(int64(t.Due))
	w.Bytes(t.Params)
	w.Uint(uint64(t.ParamsAt))
	w.Array(len(t.Requests))
	for _, id := range t.Requests {
		w.Text(id)
	}
	if t.Status == Created {
		w.Array(0)
	} else {
		t.encodeRun(w)
	}
}

func (t *Task) encodeRun(w *wire.Writer) {
	w.Array(14)
	for _, n := range [...]uint32{t.Attempt, t.Failures, t.Lost, t.Runs} {
		w.Uint(uint64(n))
	}
	w.Text(t.Node)
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

// decodeTask reads what encode wrote. What it returns shares no memory with the message.
func decodeTask(r *wire.Reader, kinds []*Kind) *Task {
	r.ArrayOf(14)
	t := &Task{ID: events.TaskID(r.Text())}
	if kind := r.Uint(); kind < uint64(len(kinds)) {
		t.Kind = kinds[kind]
	} else {
		r.Fail("kind %d of %d", kind, len(kinds))
	}
	t.Status = Status(upTo(r, uint64(Failure)))
	flags := upTo(r, 1<<len(t.flags())-1)
	for i, set := range t.flags() {
		*set = flags>>i&1 != 0
	}
	t.Priority, t.Seq = r.Int(), r.Uint()
	t.Created, t.CreatedAt, t.Last, t.Due = events.Ref(r.Uint()), events.Millis(r.Int()), events.Ref(r.Uint()), events.Millis(r.Int())
	t.Params, t.ParamsAt = r.Bytes(), events.Ref(r.Uint())
	if n := r.Array(); n > MaxRequests {
		r.Fail("%d request ids", n)
	} else if n > 0 {
		t.Requests = make([]string, n)
		for i := range t.Requests {
			t.Requests[i] = r.Text()
		}
	}
	if n := r.Array(); n == 14 && t.Status != Created {
		t.decodeRun(r)
	} else if n != 0 || t.Status != Created {
		r.Fail("%s task with a run of %d values", t.Status, n)
	}
	return t
}

func (t *Task) decodeRun(r *wire.Reader) {
	for _, n := range [...]*uint32{&t.Attempt, &t.Failures, &t.Lost, &t.Runs} {
		*n = uint32(upTo(r, math.MaxUint32))
	}
	t.Node, t.Offer, t.Lease = r.Name(), r.Uint(), events.Millis(r.Int())
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
