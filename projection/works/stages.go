package works

import "taskledger/events"

// A precise stream has one bucket, which never ends, so its permits are forgotten by stages: those of a stage follow
// one another until so many changes are passed as may have come behind one that is open.
const (
	stageChanges = 10_000
	stagesKept   = 3
)

// precise reports whether the partition under way is a stream whose changes have a token each.
func (w *Work) precise() bool {
	_, plan := w.Part()
	return plan != nil && plan.Form == events.FormPrecise && w.Stream != nil
}

// firstStage returns the first number under which permits of a bucket are remembered, and lastStage that of those that
// are granted now. It is the one of the bucket, but for a precise stream.
func (w *Work) firstStage(bucket uint64) uint64 {
	if !w.precise() {
		return bucket
	}
	return bucket + w.Stream.stage - min(w.Stream.stage, stagesKept-1)
}

func (w *Work) lastStage(bucket uint64) uint64 {
	if !w.precise() {
		return bucket
	}
	return bucket + w.Stream.stage
}

// Permitted reports whether an item of a bucket has been counted. Items that are not remembered have not.
func (w *Work) Permitted(counter int, bucket, item uint64) bool {
	for stage := w.firstStage(bucket); stage <= w.lastStage(bucket); stage++ {
		if _, is := w.permits.Get(permit{bucket: stage, counter: counter, item: item}); is {
			return true
		}
	}
	return false
}

// nextStage begins a stage once as many changes are passed as one has. A change whose permit was granted before the
// last two stages is passed: when the first of these began it may not have been known to the attempt, when the second
// did it was, and since then more were passed than may be ahead of one that is open.
func (s *Works) nextStage(of *Work) {
	if !of.precise() {
		return
	}
	p, _ := of.Part()
	is := of.Stream
	passed := p.Items.Done + p.Items.Failed + p.Items.Skipped
	if passed < is.staged+stageChanges {
		return
	}
	is.stage, is.staged = is.stage+1, passed
	if is.stage >= stagesKept {
		s.dropPermits(of, of.open[0].Bucket+is.stage-stagesKept)
	}
}

// dropPermits forgets the permits that are remembered under a number.
func (s *Works) dropPermits(of *Work, bucket uint64) {
	var done []permit
	of.permits.Ascend(permit{bucket: bucket, counter: -1}, func(is permit) bool {
		if is.bucket == bucket {
			done = append(done, is)
		}
		return is.bucket == bucket
	})
	for _, is := range done {
		of.permits.Delete(is)
	}
	s.permits -= len(done)
}

// clearPermits forgets all permits of a work.
func (s *Works) clearPermits(of *Work) {
	s.permits -= of.permits.Len()
	of.permits = newPermits()
	if of.Stream != nil {
		of.Stream.stage, of.Stream.staged = 0, 0
	}
}
