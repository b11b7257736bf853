package etcdstore_test

import (
	"testing"

	"taskledger/internal/testcluster"
)

// present returns the revision that a sweep is told the next time.
func (f *fixture) present() int64 {
	f.Helper()
	_, revision, err := f.sound.SweepMailboxes(f.ctx, 0)
	f.must(err)
	return revision
}

func TestSweepMailboxes_LateRemovalDoesNotRemoveWhatCameLater(t *testing.T) {
	f := newFixture(t)
	for _, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		f.post("old")
		f.must(f.sound.Post(f.ctx, 0, "other", 0, []byte("question")))
		for l := range f.sound.Batches(f.ctx, 0) {
			if l.Sender == "other" {
				f.must(f.sound.Answer(f.ctx, l, []byte("old")))
				break
			}
		}
		before := f.present()
		f.faults.Next(fate, fate)
		_, _, err := f.faulty.SweepMailboxes(f.ctx, before)
		f.must(err)
		f.absent(f.keys.Batch(0, sender, 0))
		f.absent(f.keys.Answer("other", 0, 0))
		f.post("new")
		f.release()
		l := f.batch()
		if string(l.Batch) != "new" {
			t.Errorf("batch is %q", l.Batch)
		}
		f.must(f.sound.Answer(f.ctx, l, []byte("new")))
		if got := f.reply(); got != "new" {
			t.Errorf("answer is %q", got)
		}
	}
}

// The batch is posted again while it is being swept.
func TestSweepMailboxes_BatchWrittenMeanwhileStays(t *testing.T) {
	f := newFixture(t)
	f.post("old")
	before := f.present()
	late := undelivered
	late.Then = func() { f.must(f.sound.Post(f.ctx, 0, sender, 0, []byte("new"))) }
	f.faults.Next(late)
	if swept, _, err := f.faulty.SweepMailboxes(f.ctx, before); swept != 0 || err != nil {
		t.Fatalf("%d batches were swept, %v", swept, err)
	}
	if l := f.batch(); string(l.Batch) != "new" {
		t.Errorf("batch is %q", l.Batch)
	}
}

// A late copy of the first write of a Post leaves an empty slot, which nobody but the sweep removes.
func TestSweepMailboxes_RemovesTheSlotThatALateCopyMade(t *testing.T) {
	f := newFixture(t)
	f.faults.Next(delayed)
	f.post("batch")
	f.must(f.sound.RemoveMailboxes(f.ctx, sender))
	if n := f.faults.Release(f.ctx); n != 1 {
		t.Fatalf("%d late copies had an effect, want 1", n)
	}
	swept, _, err := f.sound.SweepMailboxes(f.ctx, f.present())
	if swept != 1 || err != nil {
		t.Errorf("%d keys were swept, %v; want the slot", swept, err)
	}
	f.absent(f.keys.Batch(0, sender, 0))
}

func TestRemoveMail_RemovesAllWhateverIsLost(t *testing.T) {
	f := newFixture(t)
	for _, fate := range []testcluster.Fate{undelivered, replyLost, delayed, doubled} {
		f.post("question")
		f.must(f.sound.Answer(f.ctx, f.batch(), []byte("answer")))
		f.post("batch")
		f.must(f.sound.Post(f.ctx, 3, sender, 7, []byte("batch")))
		f.faults.Next(fate)
		f.must(f.faulty.RemoveMailboxes(f.ctx, sender))
		for _, key := range []string{f.keys.Batch(0, sender, 0), f.keys.Batch(3, sender, 7), f.keys.Answer(sender, 0, 0)} {
			f.absent(key)
		}
	}
}
