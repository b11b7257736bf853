package storetest

import (
	"errors"

	"taskledger/store"
)

var sweeps = map[string]func(*world){
	"SweepMailboxes/RemovesWhatWasNotWrittenSince": func(w *world) {
		w.post(0, "s1", 0, "batch")
		w.exchange(1, "s2", 3, "answer")
		before := w.sweep(0, 0)
		w.sweep(before, 2)
		w.wantNoBatches()
		w.wantNoAnswer("s2")
	},
	"SweepMailboxes/LeavesWhatWasWrittenLater": func(w *world) {
		w.post(0, "s1", 0, "old")
		w.post(0, "s1", 1, "old")
		before := w.sweep(0, 0)
		w.post(0, "s1", 0, "later")
		w.exchange(0, "s2", 0, "later")
		w.sweep(before, 1)
		w.wantBatch(pull(w, w.B.Batches(w.ctx, 0))(), "s1", 0, "later")
		w.wantAnswer(pull(w, w.A.Answers(w.ctx, "s2"))(), 0, 0, "later")
	},
	"SweepMailboxes/NothingWrittenBeforeNothing": func(w *world) {
		w.post(0, "s1", 0, "batch")
		w.sweep(0, 0)
		w.wantBatch(pull(w, w.B.Batches(w.ctx, 0))(), "s1", 0, "batch")
	},
	"SweepMailboxes/TouchesMailboxesAlone": func(w *world) {
		o := w.own(w.A)
		one := w.append(w.A, o, store.Head{}, "one")
		w.sweep(w.sweep(0, 0), 0)
		w.append(w.A, o, one, "two")
		if got := w.journal(1); len(got) != 2 {
			w.Errorf("journal is %q", got)
		}
	},
	"SweepMailboxes/RemovesManyPages": func(w *world) {
		const n = 100
		for lane := range uint8(n) {
			w.post(1, "s1", lane, "batch")
		}
		w.sweep(w.sweep(0, 0), n)
	},
	"SweepMailboxes/SweptBatchCanBePostedAgain": func(w *world) {
		w.post(0, "s1", 0, "batch")
		batches := pull(w, w.B.Batches(w.ctx, 0))
		old := batches()
		w.sweep(w.sweep(0, 0), 1)
		w.post(0, "s1", 0, "batch")
		w.answer(old, "to the swept one")
		w.answer(batches(), "to the new one")
		w.wantAnswer(pull(w, w.A.Answers(w.ctx, "s1"))(), 0, 0, "to the new one")
	},
	"RemoveMailboxes/RemovesBatchesAndAnswersOfOneSender": func(w *world) {
		for _, sender := range []string{"s", "s1"} {
			for shard := range w.A.Cluster().Shards + 1 {
				w.post(shard, sender, 3, "batch")
			}
			w.exchange(0, sender, 0, "answer")
		}
		if err := w.A.RemoveMailboxes(w.ctx, "s"); err != nil {
			w.Fatal(err)
		}
		w.wantNoAnswer("s")
		w.wantAnswer(pull(w, w.A.Answers(w.ctx, "s1"))(), 0, 0, "answer")
		for shard := range w.A.Cluster().Shards + 1 {
			w.wantBatch(pull(w, w.B.Batches(w.ctx, shard))(), "s1", 3, "batch")
		}
	},
	"RemoveMailboxes/LateAnswerToARemovedBatchDoesNothing": func(w *world) {
		w.post(0, "s1", 0, "question")
		b := pull(w, w.B.Batches(w.ctx, 0))()
		if err := w.A.RemoveMailboxes(w.ctx, "s1"); err != nil {
			w.Fatal(err)
		}
		w.answer(b, "late")
		w.wantNoAnswer("s1")
	},
	"RemoveMailboxes/OfNoSenderIsRefused": func(w *world) {
		w.post(0, "s1", 0, "batch")
		for _, sender := range []string{"", "s1/0", "s 1"} {
			if err := w.A.RemoveMailboxes(w.ctx, sender); !errors.Is(err, store.ErrRefused) {
				w.Errorf("sender %q: %v, want %v", sender, err, store.ErrRefused)
			}
		}
		w.wantBatch(pull(w, w.B.Batches(w.ctx, 0))(), "s1", 0, "batch")
	},
}

// sweep sweeps the mailboxes and returns the present revision.
func (w *world) sweep(before int64, want int) int64 {
	w.Helper()
	swept, revision, err := w.A.SweepMailboxes(w.ctx, before)
	if err != nil || swept != want || revision < before || revision == 0 {
		w.Fatalf("sweep up to revision %d: %d removed at revision %d, %v; want %d", before, swept, revision, err, want)
	}
	return revision
}

// wantNoAnswer asserts that no answer waits for a sender: the next one, of the highest lane, comes first.
func (w *world) wantNoAnswer(sender string) {
	w.Helper()
	w.exchange(1, sender, 255, "marker")
	w.wantAnswer(pull(w, w.A.Answers(w.ctx, sender))(), 1, 255, "marker")
}

// exchange posts a batch and answers it.
func (w *world) exchange(shard int, sender string, lane uint8, answer string) {
	w.Helper()
	w.post(shard, sender, lane, "question")
	for b, err := range w.B.Batches(w.ctx, shard) {
		if err != nil {
			w.Fatal(err)
		}
		if b.Sender == sender && b.Lane == lane {
			w.answer(b, answer)
			return
		}
	}
}
