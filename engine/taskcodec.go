package engine

import (
	"crypto/sha256"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
)

// encodeTask writes a task as served.
func encodeTask(w *wire.Writer, t *projection.Task) {
	w.Array(31)
	w.Text(string(t.ID))
	w.Text(t.Kind.Behavior)
	t.Kind.Policy.Encode(w)
	w.Int(t.Priority)
	w.Bytes(t.Params)
	w.Uint(uint64(t.ParamsAt))
	w.Uint(uint64(t.Status))
	for _, b := range [...]bool{t.Suspended, t.Cancelled, t.Rerun, t.RunEnded, t.ParamsElided, t.ResultElided} {
		w.Bool(b)
	}
	for _, n := range [...]uint64{t.Seq, uint64(t.Created), uint64(t.Last), uint64(t.Started), uint64(t.Outcome), uint64(t.Attempt),
		uint64(t.Failures), uint64(t.Lost), uint64(t.Runs), t.Offer} {
		w.Uint(n)
	}
	w.Text(t.Node)
	for _, at := range [...]events.Millis{t.Lease, t.CreatedAt, t.StartedAt, t.EndedAt, t.Due} {
		w.Int(int64(at))
	}
	w.Bytes(t.Result)
	encodeDetails(w, t)
}

// encodeDetails writes what most tasks do not have: error, progress and request ids.
func encodeDetails(w *wire.Writer, t *projection.Task) {
	w.Array(3)
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
	w.Array(len(t.Requests))
	for _, id := range t.Requests {
		w.Text(id)
	}
}

// leastTaskBytes is what the smallest task takes encoded.
const leastTaskBytes = 47

// decodeServed reads a task as encodeTask wrote it.
func decodeServed(data []byte) (t projection.Task, err error) {
	r, err := scanned(data)
	if err != nil {
		return t, err
	}
	t = decodeTask(r)
	return t, r.Close()
}

func decodeTask(r *wire.Reader) (t projection.Task) {
	r.ArrayOf(31)
	t.ID, t.Kind = events.TaskID(r.Text()), &projection.Kind{Behavior: r.Text()}
	t.Kind.Policy.Decode(r)
	t.Priority, t.Params, t.ParamsAt, t.Status = r.Int(), r.Bytes(), events.Ref(r.Uint()), projection.Status(r.Uint())
	for _, b := range [...]*bool{&t.Suspended, &t.Cancelled, &t.Rerun, &t.RunEnded, &t.ParamsElided, &t.ResultElided} {
		*b = r.Bool()
	}
	t.Seq, t.Created, t.Last, t.Started = r.Uint(), events.Ref(r.Uint()), events.Ref(r.Uint()), events.Ref(r.Uint())
	t.Outcome, t.Attempt, t.Failures, t.Lost = events.Ref(r.Uint()), uint32(r.Uint()), uint32(r.Uint()), uint32(r.Uint())
	t.Runs, t.Offer, t.Node = uint32(r.Uint()), r.Uint(), r.Text()
	for _, at := range [...]*events.Millis{&t.Lease, &t.CreatedAt, &t.StartedAt, &t.EndedAt, &t.Due} {
		*at = events.Millis(r.Int())
	}
	t.Result = r.Bytes()
	decodeDetails(r, &t)
	return t
}

func decodeDetails(r *wire.Reader, t *projection.Task) {
	r.ArrayOf(3)
	if r.Array() > 0 {
		t.Error = new(events.Error)
		t.Error.Decode(r)
	}
	if r.Array() > 0 {
		t.Progress = &events.Progressed{Done: r.Int(), Total: r.Int(), Note: r.Text()}
	}
	n := r.Array()
	if n > projection.MaxRequests {
		r.Fail("%d request ids", n)
		return
	}
	for range n {
		t.Requests = append(t.Requests, r.Text())
	}
}

// stateDigest is the sum of the hashes of all tasks and all decided batches, so that two folds can be compared without sorting
// either. It calls step, unless that is nil, every few milliseconds.
func stateDigest(s *projection.Shard, step func()) (sum events.Hash) {
	const each = 4096
	var w wire.Writer
	sums := 0
	add := func() {
		if sums++; sums%each == 0 && step != nil {
			step()
		}
		h := sha256.Sum256(w.B)
		carry := 0
		for i := len(sum) - 1; i >= 0; i-- {
			carry += int(sum[i]) + int(h[i])
			sum[i] = byte(carry)
			carry >>= 8
		}
		w.B = w.B[:0]
	}
	w.Int(int64(s.Time))
	add()
	for t := range s.Tasks() {
		encodeTask(&w, t)
		add()
	}
	for d := range s.AllDecided() {
		w.Text(d.Sender)
		w.Uint(uint64(d.Lane))
		w.Uint(d.Number)
		w.Bytes(d.Answers)
		add()
	}
	return sum
}
