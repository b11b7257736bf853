package etcdstore_test

import (
	"iter"
	"testing"

	"taskledger/internal/testcluster"
	"taskledger/store"
)

const sender = "s"

func (f *fixture) post(batch string) {
	f.Helper()
	f.must(f.faulty.Post(f.ctx, 0, sender, 0, []byte(batch)))
}

// batch returns the one batch that waits.
func (f *fixture) batch() store.MailboxBatch { return first(f, f.sound.Batches(f.ctx, 0)) }

func (f *fixture) reply() string {
	f.Helper()
	return string(first(f, f.sound.Answers(f.ctx, sender)).Answer)
}

func first[V any](f *fixture, seq iter.Seq2[V, error]) V {
	f.Helper()
	for v, err := range seq {
		f.must(err)
		return v
	}
	f.Fatal("nothing came")
	panic("unreachable")
}

// noBatches asserts that none waits: the marker, which is put after any other, comes first.
func (f *fixture) noBatches() {
	f.Helper()
	f.must(f.sound.Post(f.ctx, 0, "zz", 0, []byte("marker")))
	if l := f.batch(); string(l.Batch) != "marker" {
		f.Errorf("batch %q of lane %d came back", l.Batch, l.Lane)
	}
}

// The first write of a Post to an empty mailbox makes the slot, the second puts the batch.
func postFates() [][]testcluster.Fate {
	var all [][]testcluster.Fate
	for _, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		all = append(all, []testcluster.Fate{fate}, []testcluster.Fate{{}, fate}, []testcluster.Fate{fate, {}, fate})
	}
	return all
}

func TestPost_AnsweredBatchNeverComesBack(t *testing.T) {
	f := newFixture(t)
	for _, fates := range postFates() {
		f.faults.Next(fates...)
		f.post("batch")
		l := f.batch()
		if string(l.Batch) != "batch" {
			t.Fatalf("batch is %q", l.Batch)
		}
		f.must(f.sound.Answer(f.ctx, l, []byte("answer")))
		f.faults.Release(f.ctx) // may make an empty slot
		f.noBatches()
		if got := f.reply(); got != "answer" {
			t.Errorf("answer is %q", got)
		}
	}
}

func TestPost_EarlierBatchNeverReplacesALaterOne(t *testing.T) {
	f := newFixture(t)
	for _, fates := range postFates() {
		f.faults.Next(fates...)
		f.post("early")
		f.post("later")
		f.release()
		l := f.batch()
		if string(l.Batch) != "later" {
			t.Errorf("batch is %q: an earlier one came back", l.Batch)
		}
		f.must(f.sound.Answer(f.ctx, l, nil))
		f.faults.Release(f.ctx)
		f.noBatches()
		f.reply()
	}
}

func TestPost_ReplacedWhileUnknownIsPostedAgain(t *testing.T) {
	f := newFixture(t)
	f.post("early")
	late := undelivered
	late.Then = func() { f.must(f.sound.Answer(f.ctx, f.batch(), []byte("to early"))) }
	f.faults.Next(late)
	f.post("later")
	if l := f.batch(); string(l.Batch) != "later" {
		t.Errorf("batch is %q, want the later one", l.Batch)
	}
}

func TestAnswer_IsGivenOnceWhateverIsLost(t *testing.T) {
	f := newFixture(t)
	for _, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		f.post("one")
		f.faults.Next(fate)
		f.must(f.faulty.Answer(f.ctx, f.batch(), []byte("to one")))
		f.absent(f.keys.Batch(0, sender, 0))
		if got := f.reply(); got != "to one" {
			t.Errorf("answer is %q", got)
		}
		f.release()
		f.absent(f.keys.Answer(sender, 0, 0))
		f.post("two")
		f.faults.Release(f.ctx)
		if l := f.batch(); string(l.Batch) != "two" {
			t.Errorf("batch is %q", l.Batch)
		}
	}
}

func TestAnswer_LateCopyDoesNotAnswerTheNextBatch(t *testing.T) {
	f := newFixture(t)
	f.post("one")
	f.faults.Next(delayed)
	f.must(f.faulty.Answer(f.ctx, f.batch(), []byte("to one")))
	f.reply()
	f.post("two")
	f.release()
	if l := f.batch(); string(l.Batch) != "two" {
		t.Errorf("batch is %q", l.Batch)
	}
	f.absent(f.keys.Answer(sender, 0, 0))
}

func TestAnswers_LateRemovalDoesNotRemoveTheNextAnswer(t *testing.T) {
	f := newFixture(t)
	for _, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		f.post("one")
		f.must(f.sound.Answer(f.ctx, f.batch(), []byte("to one")))
		f.faults.Next(fate)
		if got := string(first(f, f.faulty.Answers(f.ctx, sender)).Answer); got != "to one" {
			t.Errorf("answer is %q", got)
		}
		f.post("two")
		f.must(f.sound.Answer(f.ctx, f.batch(), []byte("to two")))
		f.release()
		if got := f.reply(); got != "to two" {
			t.Errorf("answer is %q", got)
		}
	}
}

func TestMailbox_UnreadableValuesAreLeftAlone(t *testing.T) {
	f := newFixture(t)
	for _, key := range []string{f.keys.Batch(0, "a", 0), f.keys.Batch(0, "a", 1) + "x", f.keys.Answer(sender, 0, 0), f.keys.Answer(sender, 0, 0) + "/x"} {
		_, err := f.raw.Put(f.ctx, key, "garbage")
		f.must(err)
	}
	f.post("fine")
	l := f.batch()
	if string(l.Batch) != "fine" {
		t.Errorf("batch is %q", l.Batch)
	}
	l.Lane = 7
	f.must(f.sound.Post(f.ctx, 0, sender, 7, []byte("fine")))
	for l := range f.sound.Batches(f.ctx, 0) {
		if l.Lane == 7 {
			f.must(f.sound.Answer(f.ctx, l, []byte("fine")))
			break
		}
	}
	if got := f.reply(); got != "fine" {
		t.Errorf("answer is %q", got)
	}
}
