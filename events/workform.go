package events

import (
	"math"

	"taskledger/internal/wire"
)

func (*WorkPlanned) Kind() Kind      { return KindWorkPlanned }
func (*PartitionStarted) Kind() Kind { return KindPartitionStarted }
func (*PartitionEnded) Kind() Kind   { return KindPartitionEnded }
func (*BucketsMoved) Kind() Kind     { return KindBucketsMoved }
func (*PermitsGranted) Kind() Kind   { return KindPermitsGranted }
func (*WorkReset) Kind() Kind        { return KindWorkReset }

func (*WorkPlanned) payload() Payload      { return nil }
func (*PartitionStarted) payload() Payload { return nil }
func (*PartitionEnded) payload() Payload   { return nil }
func (*BucketsMoved) payload() Payload     { return nil }
func (*PermitsGranted) payload() Payload   { return nil }
func (*WorkReset) payload() Payload        { return nil }

func (b *WorkPlanned) encode(w *wire.Writer) {
	w.Array(4)
	w.Uint(uint64(b.Run))
	w.Text(b.Definition)
	w.Array(len(b.Partitions))
	for i := range b.Partitions {
		b.Partitions[i].Encode(w)
	}
	w.Bool(b.Failed)
}

func (b *WorkPlanned) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(4)
	b.Run, b.Definition = uint32(upTo(r, math.MaxUint32)), r.Text()
	n := r.Array()
	if n > MaxPartitions {
		r.Fail("%d partitions, want %d at most", n, MaxPartitions)
		return
	}
	for range n {
		var p WorkPartition
		p.Decode(r)
		b.Partitions = append(b.Partitions, p)
	}
	b.Failed = r.Bool()
}

// Encode writes the partition as an array of its fields: behind the first seven those of a stream, or the rules if
// there are any. Thresholds are an array of counters and limits.
func (p *WorkPartition) Encode(w *wire.Writer) {
	ruled := p.Form == FormBuckets && len(p.Rules) > 0
	w.Array(7 + 2*tail(p.Form != FormBuckets) + tail(ruled))
	w.Text(p.ID)
	w.Uint(uint64(p.Mode))
	w.Uint(p.Buckets)
	w.Uint(uint64(p.Workers))
	w.Uint(uint64(p.Threads))
	w.Bytes(p.Segments)
	w.Array(2 * len(p.Thresholds))
	for _, t := range p.Thresholds {
		w.Text(t.Counter)
		w.Uint(t.Limit)
	}
	if p.Form != FormBuckets {
		w.Uint(uint64(p.Form))
		w.Bool(p.MovesToken)
	}
	if ruled {
		w.Bytes(p.Rules)
	}
}

// Decode reads what Encode wrote; whether it is in range is for Check to say.
func (p *WorkPartition) Decode(r *wire.Reader) {
	fields := r.Array()
	p.ID, p.Mode, p.Buckets = r.Text(), WorkMode(upTo(r, math.MaxUint8)), r.Uint()
	p.Workers, p.Threads = uint32(upTo(r, math.MaxUint32)), uint32(upTo(r, math.MaxUint32))
	p.Segments = r.Bytes()
	n := r.Array()
	if n > 2*MaxThresholds || n%2 != 0 {
		r.Fail("array of %d counters and limits", n)
		return
	}
	for range n / 2 {
		p.Thresholds = append(p.Thresholds, WorkThreshold{Counter: r.Text(), Limit: r.Uint()})
	}
	switch fields {
	case 7:
	case 8:
		if p.Rules = r.Bytes(); len(p.Rules) == 0 {
			r.Fail("rules of a partition that has none recorded")
		}
	case 9:
		p.Form, p.MovesToken = WorkForm(upTo(r, math.MaxUint8)), r.Bool()
		if p.Form == FormBuckets {
			r.Fail("form of a partition that is no stream")
		}
	default:
		r.Fail("array of %d, want 7 to 9", fields)
	}
}

func (b *PartitionStarted) encode(w *wire.Writer) {
	w.Array(2 + tail(b.Counted))
	w.Uint(uint64(b.Partition))
	w.Bool(b.Counted)
	if b.Counted {
		w.Uint(b.Expected)
	}
}

func (b *PartitionStarted) decode(r *wire.Reader, _ Payload) {
	n := r.Array()
	b.Partition, b.Counted = uint32(upTo(r, math.MaxUint32)), r.Bool()
	if want := 2 + tail(b.Counted); n != want {
		r.Fail("array of %d, want %d", n, want)
	}
	if b.Counted {
		b.Expected = r.Uint()
	}
}

func (b *PartitionEnded) encode(w *wire.Writer) { w.Array(1); w.Uint(uint64(b.Partition)) }

func (b *PartitionEnded) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(1)
	b.Partition = uint32(upTo(r, math.MaxUint32))
}

// encode leaves out counts and errors of a bucket that has not ended.
func (b *BucketsMoved) encode(w *wire.Writer) {
	w.Array(6 + 2*tail(b.Ended != 0))
	w.Uint(uint64(b.Worker))
	w.Uint(uint64(b.Attempt))
	w.Uint(b.Ended)
	w.Uint(b.Returned)
	w.Uint(uint64(b.Cause))
	w.Uint(b.Started)
	if b.Ended == 0 {
		return
	}
	b.Items.encode(w)
	EncodeItemErrors(w, b.Errors)
}

func (b *BucketsMoved) decode(r *wire.Reader, _ Payload) {
	n := r.Array()
	b.Worker, b.Attempt = uint32(upTo(r, math.MaxUint32)), Ref(r.Uint())
	b.Ended, b.Returned = r.Uint(), r.Uint()
	b.Cause, b.Started = ReturnCause(upTo(r, math.MaxUint8)), r.Uint()
	if want := 6 + 2*tail(b.Ended != 0); n != want {
		r.Fail("array of %d, want %d", n, want)
	}
	if b.Ended == 0 {
		return
	}
	b.Items.decode(r)
	b.Errors = DecodeItemErrors(r)
}

func (n *ItemCounts) encode(w *wire.Writer) {
	w.Array(3)
	w.Uint(n.Done)
	w.Uint(n.Failed)
	w.Uint(n.Skipped)
}

func (n *ItemCounts) decode(r *wire.Reader) {
	r.ArrayOf(3)
	n.Done, n.Failed, n.Skipped = r.Uint(), r.Uint(), r.Uint()
}

// EncodeItemErrors writes errors as an array of their texts, and DecodeItemErrors reads it.
func EncodeItemErrors(w *wire.Writer, all []ItemError) {
	w.Array(3 * len(all))
	for _, e := range all {
		w.Text(e.Item)
		w.Text(e.Code)
		w.Text(e.Message)
	}
}

// DecodeItemErrors reads what EncodeItemErrors wrote.
func DecodeItemErrors(r *wire.Reader) (all []ItemError) {
	n := r.Array()
	if n > 3*MaxBucketErrors || n%3 != 0 {
		r.Fail("array of %d texts of errors", n)
		return nil
	}
	for range n / 3 {
		all = append(all, ItemError{Item: r.Text(), Code: r.Text(), Message: r.Text()})
	}
	return all
}

func (b *PermitsGranted) encode(w *wire.Writer) {
	w.Array(4)
	w.Text(b.Counter)
	w.Uint(b.Bucket)
	w.Bool(b.Simulate)
	w.Array(len(b.Items))
	for _, item := range b.Items {
		w.Uint(item)
	}
}

func (b *PermitsGranted) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(4)
	b.Counter, b.Bucket, b.Simulate = r.Text(), r.Uint(), r.Bool()
	n := r.Array()
	if n > MaxPermits {
		r.Fail("%d permits, want %d at most", n, MaxPermits)
		return
	}
	for range n {
		b.Items = append(b.Items, r.Uint())
	}
}

// encode leaves out what only the scope ResetToken has.
func (b *WorkReset) encode(w *wire.Writer) {
	token := b.What == ResetToken
	w.Array(1 + 2*tail(token))
	w.Uint(uint64(b.What))
	if token {
		w.Bytes([]byte(b.Token))
		w.Text(b.Reason)
	}
}

func (b *WorkReset) decode(r *wire.Reader, _ Payload) {
	n := r.Array()
	b.What = ResetScope(upTo(r, math.MaxUint8))
	token := b.What == ResetToken
	if want := 1 + 2*tail(token); n != want {
		r.Fail("array of %d, want %d", n, want)
	}
	if token {
		b.Token, b.Reason = string(r.View()), r.Text()
	}
}
