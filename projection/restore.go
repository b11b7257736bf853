package projection

import (
	"errors"
	"fmt"
	"math"

	"taskledger/events"
	"taskledger/internal/wire"
)

// ErrSnapshot is wrapped when the parts of a snapshot are not what Snapshot wrote, or not all of it.
var ErrSnapshot = errors.New("damaged snapshot")

// maxStoredPart bounds a part: a task with the largest texts and payloads, or a sender with the largest answers, fits.
const maxStoredPart = 1 << 20

// Restorer makes a shard of the parts of a snapshot.
type Restorer struct {
	shard *Shard
	head  snapshotHead
	parts uint64
	kinds []*Kind
	err   error
}

// NewRestorer returns a restorer of a snapshot of the shard.
func NewRestorer(shard int) *Restorer { return &Restorer{shard: NewShard(shard)} }

// Add takes the next part, of which it keeps nothing. Its first error, which wraps ErrSnapshot, is that of all later calls.
func (r *Restorer) Add(part []byte) error {
	if r.err == nil {
		r.fail(r.add(part))
	}
	r.parts++
	return r.err
}

func (r *Restorer) fail(err error) {
	if err != nil {
		r.err = fmt.Errorf("%w: part %d of shard %d: %w", ErrSnapshot, r.parts, r.shard.id, err)
	}
}

func (r *Restorer) add(part []byte) error {
	if len(part) > maxStoredPart {
		return fmt.Errorf("%d bytes exceed the limit of %d", len(part), maxStoredPart)
	}
	if n := len(part) - sumBytes; n < 0 || string(appendSum(part[:n:n])[n:]) != string(part[n:]) {
		return errors.New("the sum is not that of the content")
	}
	if err := wire.Scan(part); err != nil {
		return err
	}
	in := wire.NewReader(part)
	if err := r.addHead(in); err != nil {
		return err
	}
	r.addKinds(in)
	r.addTasks(in)
	r.addSenders(in)
	in.Uint()
	return in.Close()
}

func (r *Restorer) addHead(in *wire.Reader) error {
	in.ArrayOf(12)
	version, shard := in.Uint(), in.Uint()
	head := snapshotHead{entry: in.Uint()}
	hash := in.View()
	head.time, head.tasks, head.senders = events.Millis(in.Int()), in.Uint(), in.Uint()
	part := in.Uint()
	switch {
	case in.Err() != nil:
		return in.Err()
	case version != snapshotVersion:
		return fmt.Errorf("version %d, this program reads %d", version, snapshotVersion)
	case shard != uint64(r.shard.id) || part != r.parts:
		return fmt.Errorf("it is part %d of shard %d", part, shard)
	case copy(head.hash[:], hash) != len(hash) || len(hash) != len(head.hash):
		return fmt.Errorf("hash of %d bytes", len(hash))
	case part == 0:
		r.head = head
	case head != r.head:
		return fmt.Errorf("it is of another snapshot, of entry %d, not %d", head.entry, r.head.entry)
	}
	return nil
}

func (r *Restorer) addKinds(in *wire.Reader) {
	for range in.Array() {
		behavior, policy := decodeKind(in)
		if in.Err() != nil {
			return
		}
		if err := events.ValidateBehavior(behavior); err != nil {
			in.Fail("%v", err)
			return
		}
		if _, err := policy.Complete(); err != nil {
			in.Fail("%v", err)
			return
		}
		r.kinds = append(r.kinds, r.shard.kind(kindKey{behavior, policy}))
	}
}

func (r *Restorer) addTasks(in *wire.Reader) {
	n := in.Array()
	if uint64(len(r.shard.rows)+n) > r.head.tasks {
		in.Fail("task %d of %d", len(r.shard.rows)+n, r.head.tasks)
	}
	for i := 0; i < n && in.Err() == nil; i++ {
		t := decodeTask(in, r.kinds)
		if in.Err() != nil {
			return
		}
		if problem := t.problem(r.head.entry); problem != "" {
			in.Fail("task %q: %s", t.ID, problem)
			return
		}
		r.shard.enlist(t)
	}
}

func (r *Restorer) addSenders(in *wire.Reader) {
	all := &r.shard.senders
	n := in.Array()
	if uint64(all.order.Len()+n) > r.head.senders {
		in.Fail("sender %d of %d", all.order.Len()+n, r.head.senders)
	}
	for i := 0; i < n && in.Err() == nil; i++ {
		in.ArrayOf(5)
		d := &Decided{SenderLane{in.Text(), uint8(upTo(in, math.MaxUint8))}, in.Uint(), in.Bytes(), events.Millis(in.Int())}
		if all.get(d.SenderLane) != nil {
			in.Fail("sender %q, lane %d, is there twice", d.Sender, d.Lane)
		}
		if in.Err() == nil {
			all.add(d)
		}
	}
}

// Done returns the shard, which from here on is as the one that the snapshot is of; which of the waiting tasks are ready is
// for Ripen to say. It wraps ErrSnapshot when a part is missing or what they say does not fit. The restorer must not be used
// again.
func (r *Restorer) Done() (*Shard, error) {
	if r.err == nil {
		r.fail(r.complete())
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.shard, nil
}

func (r *Restorer) complete() error {
	s := r.shard
	tasks, senders := uint64(len(s.rows)), uint64(s.senders.order.Len())
	if r.parts == 0 || tasks != r.head.tasks || senders != r.head.senders {
		return fmt.Errorf("missing, after %d tasks of %d and %d senders of %d", tasks, r.head.tasks, senders, r.head.senders)
	}
	for _, k := range r.kinds {
		if k.tasks == 0 {
			return fmt.Errorf("nothing is of kind %s", k.Behavior)
		}
	}
	s.Number, s.Hash, s.Time = r.head.entry, r.head.hash, r.head.time
	s.senders.time = s.Time
	s.tasks = make(map[events.TaskID]*Task, len(s.rows))
	for i, t := range s.rows {
		s.tasks[t.ID] = t
		if len(s.tasks) != i+1 {
			return fmt.Errorf("task %q is there twice", t.ID)
		}
		s.weigh(t, 1)
		s.place(t, s.Time)
	}
	return nil
}

// problem says what keeps the task from being the fold of events up to the entry, "" if nothing does.
func (t *Task) problem(entry uint64) string {
	if err := t.ID.Validate(); err != nil {
		return err.Error()
	}
	switch running := t.Status == Running; {
	case t.Status == 0:
		return "no status"
	case t.Seq == 0 || t.Created == 0 || t.Last < t.Created || t.Last.Entry() > entry:
		return "it begins or ends outside of the journal"
	case max(t.ParamsAt, t.Started, t.Outcome) > t.Last || t.ParamsAt < t.Created:
		return "it names an event after its last or before its first one"
	case !running && (t.OnNode() || t.Cancelled):
		return "runs or is cancelled without being RUNNING"
	case t.Rerun && t.RunEnded:
		return "the further run of a run that is over"
	case running && (t.Attempt == 0 || t.Started == 0 || t.OnNode() != (t.Due == 0)):
		return "RUNNING without an attempt or a time"
	case t.Status == Created && t.Due == 0:
		return "CREATED without a time"
	case (t.Result != nil || t.ResultElided) && t.Status != Success:
		return "a result without SUCCESS"
	case (t.Error != nil) != (t.Status == Failure):
		return "an error without FAILURE, or none with it"
	case (t.Status == Success || t.Status == Failure) && t.Outcome == 0:
		return "an end without an outcome"
	case t.Final() && (!t.RunEnded || t.Params != nil || len(t.Result) > MaxKeptResult):
		return "a finished task that holds on to its run"
	}
	return ""
}
