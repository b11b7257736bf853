package storetest

import (
	"bytes"
	"context"
	"errors"

	"taskledger/store"
)

// last is a sender that sorts after all others: its batch ends what a test has to see.
const last = "zz"

var mailboxes = map[string]func(*world){
	"Post/BatchesYieldsWhatWaitsAndWhatComes": func(w *world) {
		w.post(0, "s1", 0, "before")
		next := pull(w, w.B.Batches(w.ctx, 0))
		w.wantBatch(next(), "s1", 0, "before")
		w.post(0, "s1", 1, "after")
		w.wantBatch(next(), "s1", 1, "after")
		w.post(0, "s1", 0, "replaced")
		w.wantBatch(next(), "s1", 0, "replaced")
	},
	"Post/AgainIsYieldedAgain": func(w *world) {
		w.post(0, "s1", 0, "batch")
		next := pull(w, w.B.Batches(w.ctx, 0))
		first := next()
		w.post(0, "s1", 0, "batch")
		again := next()
		w.wantBatch(again, "s1", 0, "batch")
		w.answer(first, "to the first")
		w.answer(again, "to the second")
		w.wantAnswer(pull(w, w.A.Answers(w.ctx, "s1"))(), 0, 0, "to the second")
	},
	"Post/ReplacesTheBatchOfItsLaneOnly": func(w *world) {
		w.post(0, "s1", 0, "old")
		w.post(1, "s1", 0, "other shard")
		w.post(0, "s1", 0, "new")
		w.post(0, "s1", 255, "other lane")
		w.post(0, "s2", 0, "other sender")
		next := pull(w, w.B.Batches(w.ctx, 0))
		w.wantBatch(next(), "s1", 0, "new")
		w.wantBatch(next(), "s1", 255, "other lane")
		w.wantBatch(next(), "s2", 0, "other sender")
		w.wantBatch(pull(w, w.B.Batches(w.ctx, 1))(), "s1", 0, "other shard")
	},
	"Post/ManyLargeBatchesAllArrive": func(w *world) {
		large := bytes.Repeat([]byte("x"), 512<<10)
		for lane := range uint8(40) {
			if err := w.A.Post(w.ctx, 0, "s", lane, large); err != nil {
				w.Fatal(err)
			}
		}
		next, seen := pull(w, w.B.Batches(w.ctx, 0)), make(map[uint8]bool)
		for range 40 {
			b := next()
			if len(b.Batch) != len(large) || seen[b.Lane] {
				w.Fatalf("lane %d: %d bytes, seen before: %v", b.Lane, len(b.Batch), seen[b.Lane])
			}
			seen[b.Lane] = true
		}
	},
	"Post/WhatCannotBeAKeyIsRefused": func(w *world) {
		for _, sender := range []string{"", "a/b", "a b", string(bytes.Repeat([]byte("x"), 129))} {
			if err := w.A.Post(w.ctx, 0, sender, 0, []byte("x")); !errors.Is(err, store.ErrRefused) {
				w.Errorf("sender %q: %v, want %v", sender, err, store.ErrRefused)
			}
		}
		for _, shard := range []int{-1, w.A.Cluster().Shards + 1} {
			if err := w.A.Post(w.ctx, shard, "s", 0, []byte("x")); !errors.Is(err, store.ErrRefused) {
				w.Errorf("shard %d: %v, want %v", shard, err, store.ErrRefused)
			}
		}
	},
	"Post/ToTheBoxAfterTheLastShardArrives": func(w *world) {
		box := w.A.Cluster().Shards
		w.post(box, "s1", 2, "question")
		w.answer(pull(w, w.B.Batches(w.ctx, box))(), "answer")
		w.wantAnswer(pull(w, w.A.Answers(w.ctx, "s1"))(), box, 2, "answer")
		w.wantNoBatches()
	},
	"Answer/RemovesTheBatchAndArrives": func(w *world) {
		w.post(0, "s1", 3, "question")
		w.answer(pull(w, w.B.Batches(w.ctx, 0))(), "answer")
		w.wantAnswer(pull(w, w.A.Answers(w.ctx, "s1"))(), 0, 3, "answer")
		w.wantNoBatches()
	},
	"Answer/ToAReplacedBatchDoesNothing": func(w *world) {
		w.post(0, "s1", 0, "old")
		old := pull(w, w.B.Batches(w.ctx, 0))()
		w.post(0, "s1", 0, "new")
		w.answer(old, "to the old")
		w.post(0, last, 0, "marker") // comes in the place of a batch that is gone
		next := pull(w, w.B.Batches(w.ctx, 0))
		b := next()
		w.wantBatch(b, "s1", 0, "new")
		w.answer(b, "to the new")
		w.wantAnswer(pull(w, w.A.Answers(w.ctx, "s1"))(), 0, 0, "to the new")
	},
	"Answer/AgainDoesNothing": func(w *world) {
		w.post(0, "s1", 0, "question")
		b := pull(w, w.B.Batches(w.ctx, 0))()
		w.answer(b, "answer")
		next := pull(w, w.A.Answers(w.ctx, "s1"))
		w.wantAnswer(next(), 0, 0, "answer")
		w.answer(b, "again")
		w.post(0, "s1", 1, "marker")
		w.answer(pull(w, w.B.Batches(w.ctx, 0))(), "marker")
		w.wantAnswer(next(), 0, 1, "marker")
	},
	"AnswerAs/OwnerAnswersAndAFormerOneDoesNothing": func(w *world) {
		o := w.own(w.A)
		w.post(0, "s1", 0, "question")
		b := pull(w, w.B.Batches(w.ctx, 0))()
		now := w.handOver(w.A, o, o.Session)
		for range 2 {
			if err := w.A.AnswerAs(w.ctx, o, b, []byte("too late")); !errors.Is(err, store.ErrFenced) {
				w.Errorf("answer of a former owner: %v, want %v", err, store.ErrFenced)
			}
		}
		for range 2 {
			if err := w.A.AnswerAs(w.ctx, now, b, []byte("answer")); err != nil {
				w.Error(err)
			}
		}
		w.wantAnswer(pull(w, w.A.Answers(w.ctx, "s1"))(), 0, 0, "answer")
		w.wantNoBatches()
	},
	"Answers/SeenOnesAreRemoved": func(w *world) {
		for lane := range uint8(3) {
			w.post(0, "s1", lane, "question")
		}
		batches := pull(w, w.B.Batches(w.ctx, 0))
		for range 3 {
			w.answer(batches(), "answer")
		}
		seen := 0
		for a, err := range w.A.Answers(w.ctx, "s1") {
			if err != nil {
				w.Fatal(err)
			}
			w.wantAnswer(a, 0, uint8(seen), "answer")
			if seen++; seen == 2 {
				break
			}
		}
		w.wantAnswer(pull(w, w.A.Answers(w.ctx, "s1"))(), 0, 2, "answer")
	},
	"Answers/AreOneSendersOnly": func(w *world) {
		w.post(0, "s", 0, "question")
		w.post(1, "s1", 0, "question")
		w.answer(pull(w, w.B.Batches(w.ctx, 0))(), "for s")
		w.answer(pull(w, w.B.Batches(w.ctx, 1))(), "for s1")
		w.wantAnswer(pull(w, w.A.Answers(w.ctx, "s"))(), 0, 0, "for s")
		w.wantAnswer(pull(w, w.A.Answers(w.ctx, "s1"))(), 1, 0, "for s1")
	},
	"Batches/EndWithTheirContext": func(w *world) {
		w.post(0, "s", 0, "question")
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		for _, err := range w.B.Batches(ctx, 0) {
			if err != nil {
				w.Fatal(err)
			}
			cancel()
		}
	},
}

func (w *world) post(shard int, sender string, lane uint8, batch string) {
	w.Helper()
	if err := w.A.Post(w.ctx, shard, sender, lane, []byte(batch)); err != nil {
		w.Fatalf("post %q: %v", batch, err)
	}
}

func (w *world) answer(b store.MailboxBatch, answer string) {
	w.Helper()
	if err := w.B.Answer(w.ctx, b, []byte(answer)); err != nil {
		w.Fatalf("answer %q: %v", answer, err)
	}
}

func (w *world) wantBatch(got store.MailboxBatch, sender string, lane uint8, batch string) {
	w.Helper()
	if got.Sender != sender || got.Lane != lane || string(got.Batch) != batch || got.Revision <= 0 {
		w.Fatalf("got batch %+v %q, want lane %d of %q: %q", got, got.Batch, lane, sender, batch)
	}
}

func (w *world) wantAnswer(got store.MailboxAnswer, shard int, lane uint8, answer string) {
	w.Helper()
	if want := (store.MailboxAnswer{Shard: shard, Lane: lane}); got.Shard != want.Shard || got.Lane != want.Lane || string(got.Answer) != answer {
		w.Fatalf("got answer %+v %q, want lane %d of shard %d: %q", got, got.Answer, lane, shard, answer)
	}
}

// wantNoBatches asserts that no batch waits in shard 0.
func (w *world) wantNoBatches() {
	w.Helper()
	w.post(0, last, 0, "marker")
	w.wantBatch(pull(w, w.B.Batches(w.ctx, 0))(), last, 0, "marker")
}
