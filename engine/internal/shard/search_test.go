package shard_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/outcome"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
)

// readable is a bench's journal that can be read, once it may.
type readable struct {
	*memoryStore
	reads atomic.Int64
	may   chan struct{} // nil: always
}

// Read implements Journal.
func (r *readable) Read(ctx context.Context, _ int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		r.reads.Add(1)
		if r.may != nil {
			select {
			case <-r.may:
			case <-ctx.Done():
				yield(store.Record{}, ctx.Err())
				return
			}
		}
		for i := max(from, 1); int(i) <= len(r.entries); i++ {
			if !yield(store.Record{Head: store.Head{Number: i, Revision: int64(i)}, Data: r.entries[i-1]}, nil) {
				return
			}
		}
	}
}

// readable lets the journal of the bench be read.
func (b *fixture) readable() *readable {
	r := &readable{memoryStore: b.store}
	b.cfg.Loader.Reader = ledger.NewReader(r, r, nil, false)
	return r
}

// lost makes the shard another's, which the owner does not know.
func (b *fixture) lost() {
	b.store.members.Owners[0] = store.Owner{Node: farID, Revision: b.own.Ownership().Revision + 1}
}

// promise makes task "x" promise a second run that is then cancelled, by the operator or with the attempt under way.
func (b *fixture) promise(how string) {
	b.Helper()
	p := events.Policy{Existing: events.RunAgain, RetainCount: 1}
	b.submit(p)
	b.assign()
	switch how {
	case "cancelled repetition":
		c := report(b.task(), command.Succeeded)
		c.Next = b.time.Add(time.Hour)
		b.accept(command.LaneWork, c)
		b.accept(command.LaneSubmit, operate(command.DoCancel))
	case "dropped rerun", "dropped rerun of a failure":
		t := b.task()
		merge := &command.Merge{Submit: *submitOf(p), Life: t.Created, Seq: t.Seq}
		merge.Submit.Params = events.JSON([]byte("2"))
		b.accept(command.LaneSubmit, merge)
		b.accept(command.LaneSubmit, operate(command.DoCancel))
		ends := command.Succeeded
		if how != "dropped rerun" {
			ends = command.Failed
		}
		b.accept(command.LaneWork, report(b.task(), ends))
	case "cancelled retry":
		c := report(b.task(), command.Failed)
		c.Next = b.time.Add(time.Hour)
		b.accept(command.LaneWork, c)
		b.accept(command.LaneSubmit, operate(command.DoCancel))
	default:
		b.Fatal(how)
	}
}

// evict lets another task end, which is the one that is kept.
func (b *fixture) evict() {
	b.Helper()
	c := submitOf(events.Policy{RetainCount: 1})
	c.Task = "y"
	b.time = b.time.Add(projection.RetainFailures + time.Second)
	b.accept(command.LaneSubmit, c)
	b.accept(command.LaneSubmit, &command.Operate{Task: "y", Do: command.DoCancel})
	if b.own.State().Task("x") != nil {
		b.Fatal("task x is still in memory")
	}
}

// told asks a question to its end.
func (b *fixture) told(c *command.Await) command.Answer {
	b.Helper()
	a, later := b.own.Await(c)
	if later != nil {
		a = later(b.Context())
	}
	return a
}

// says tells what an answer to a future means.
func says(t *testing.T, a command.Answer) string {
	t.Helper()
	if a.Data == nil {
		return fmt.Sprint("answer ", a.Code)
	}
	all, err := outcome.Decode(a.Data)
	if err != nil || len(all) != 1 {
		t.Fatalf("outcomes are %+v, %v", all, err)
	}
	o := &all[0]
	text := fmt.Sprint(o.Task, " run ", o.Run, " attempt ", o.Attempt, " ", o.Status)
	if o.Err != nil {
		text += " " + o.Err.Code
	}
	return text
}

// What is told of a run that will not come is the same before its task was forgotten, after that, and after its id
// has begun another life with as many runs.
func TestSearch_TellsOfAForgottenLifeWhatMemoryDid(t *testing.T) {
	for how, run := range map[string]uint32{"cancelled repetition": 2, "dropped rerun": 2,
		"dropped rerun of a failure": 2, "cancelled retry": 1} {
		t.Run(how, func(t *testing.T) {
			b := newFixture(t)
			b.readable()
			b.promise(how)
			question := &command.Await{Task: "x", Life: b.task().Created, Run: uint64(run)}
			want := says(t, b.told(question))
			b.evict()
			if got := says(t, b.told(question)); got != want {
				t.Errorf("forgotten: told %q, before %q", got, want)
			}
			for range 2 {
				b.submit(events.Policy{Existing: events.RunAgain})
				b.assign()
				b.accept(command.LaneWork, report(b.task(), command.Succeeded))
			}
			if got := says(t, b.told(question)); got != want {
				t.Errorf("in another life: told %q, before %q", got, want)
			}
		})
	}
}

// To delete a task that has ended changes nothing of how it ended.
func TestSearch_TellsOfADeletedLifeWhatMemoryDid(t *testing.T) {
	for how, run := range map[string]uint32{"cancelled repetition": 2, "dropped rerun": 2,
		"dropped rerun of a failure": 2, "cancelled retry": 1} {
		t.Run(how, func(t *testing.T) {
			b := newFixture(t)
			b.readable()
			b.promise(how)
			question := &command.Await{Task: "x", Life: b.task().Created, Run: uint64(run)}
			want := says(t, b.told(question))
			b.node.announced = nil
			b.accept(command.LaneSubmit, operate(command.DoDelete))
			if got := says(t, b.told(question)); got != want {
				t.Errorf("told %q, before %q", got, want)
			}
			for _, o := range b.node.announced {
				if !o.Elided && (o.Ends(run) || o.Ends(1)) {
					t.Errorf("the end of its life is announced as that of a run that had ended: %+v", o)
				}
			}
		})
	}
}

// Of a life without an end in the journal nobody has promised anything.
func TestSearch_FindsNoLifeThatNeverWas(t *testing.T) {
	b := newFixture(t)
	b.readable()
	b.submit(events.Policy{})
	if a := b.told(&command.Await{Task: "z", Life: b.task().Created, Run: 1}); a.Code != command.AnswerNotFound {
		t.Errorf("answer %d, want %d", a.Code, command.AnswerNotFound)
	}
}

// Another owner has decided since, and there is no proof that none has: what only the shard's owner can know is not
// told.
func TestAwait_TellsNothingOfTheFutureOfAnothersShard(t *testing.T) {
	for name, ask := range map[string]func(b *fixture) *command.Await{
		"next run of a final task": func(b *fixture) *command.Await {
			b.promise("cancelled repetition")
			return &command.Await{Task: "x", Life: b.task().Created, Run: 2}
		},
		"whichever run of a final task": func(b *fixture) *command.Await {
			b.promise("cancelled retry")
			return &command.Await{Task: "x"}
		},
		"whichever run of a live task": func(b *fixture) *command.Await {
			b.submit(events.Policy{})
			return &command.Await{Task: "x"}
		},
		"life begun since": func(b *fixture) *command.Await {
			before := b.own
			b.takeOver()
			b.submit(events.Policy{})
			life := b.task().Created
			b.own = before
			return &command.Await{Task: "x", Life: life, Run: 1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFixture(t)
				b.readable()
				question := ask(b)
				b.lost()
				began := time.Now()
				if a := b.told(question); a.Code != command.AnswerTryAgain {
					t.Errorf("told %q", says(t, a))
				}
				if time.Since(began) < shard.ReadAgain {
					t.Error("asked again at once")
				}
			})
		})
	}
}

// question delivers questions of one process and lets the owner take its turn, which does not wait for the answers.
func (b *fixture) question(commands ...command.Command) *letter {
	b.Helper()
	l := b.next("caller", command.LaneQuery, commands...)
	b.deliver(l)
	if err := b.own.Turn(b.Context()); err != nil {
		b.Fatal(err)
	}
	return l
}

// answers returns what a batch was answered with, at once or as soon as its time is over.
func (l *letter) answers(t *testing.T) []command.Answer {
	t.Helper()
	time.Sleep(shard.ReadAgain)
	synctest.Wait()
	if n := len(l.got); n == 0 || l.got[n-1] == nil {
		t.Fatal("not answered in time")
	}
	return l.got[len(l.got)-1]
}

// slow is a bench whose task "x" is forgotten and whose journal cannot be read until it may.
func slow(t *testing.T) (b *fixture, r *readable, life events.Ref) {
	b = newFixture(t)
	r = b.readable()
	b.promise("cancelled repetition")
	life = b.task().Created
	b.evict()
	r.may = make(chan struct{})
	return b, r, life
}

func TestQuery_IsNotHeldUpByASearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r, life := slow(t)
		search := &command.Await{Task: "x", Life: life, Run: 1}
		for range 5 {
			got := b.question(search, search, &command.Get{Task: "y"}, &command.Get{Task: "y", Linear: true}).answers(t)
			if got[0].Code != command.AnswerTryAgain || got[1].Code != command.AnswerTryAgain || got[2].Data == nil || got[3].Data == nil {
				t.Fatalf("answers are %+v", got)
			}
		}
		close(r.may)
		synctest.Wait()
		for _, a := range b.question(search, search).answers(t) {
			if got := says(t, a); got != "x run 1 attempt 1 SUCCESS" {
				t.Errorf("told %q", got)
			}
		}
		if n := r.reads.Load(); n != 1 {
			t.Errorf("searched %d times, want once", n)
		}
	})
}

// Whoever asked is gone, or was told: the next one has to search anew.
func TestQuery_KeepsWhatASearchFindsForAWhile(t *testing.T) {
	for name, settle := range map[string]func(b *fixture, question command.Command){
		"told": func(b *fixture, question command.Command) {
			if got := b.question(question).answers(b.T); got[0].Code != command.AnswerOK {
				b.Errorf("told %+v", got)
			}
		},
		"too late": func(*fixture, command.Command) { time.Sleep(shard.KeepFound) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, r, life := slow(t)
				question := &command.Await{Task: "x", Life: life, Run: 1}
				b.question(question).answers(t)
				close(r.may)
				settle(b, question)
				synctest.Wait()
				if n := b.own.Searching(); n != 0 || r.reads.Load() != 1 {
					t.Errorf("%d are kept after %d searches", n, r.reads.Load())
				}
				b.question(question).answers(t)
				if n := r.reads.Load(); n != 2 {
					t.Errorf("searched %d times, want twice", n)
				}
			})
		})
	}
}

func TestQuery_SearchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r, life := slow(t)
		var questions []command.Command
		for i := range 2*shard.MaxSearches + 1 {
			questions = append(questions, &command.Await{Task: "x", Life: life, Run: uint64(i + 1)})
		}
		b.question(questions...).answers(t)
		b.question(questions...).answers(t)
		if n := r.reads.Load(); n != shard.MaxSearches {
			t.Errorf("%d searches side by side, want %d", n, shard.MaxSearches)
		}
		close(r.may)
		for i, a := range b.question(questions...).answers(t) {
			if a.Code != command.AnswerOK {
				t.Errorf("run %d: told %+v", i+1, a)
			}
		}
	})
}

// The callers of all searches that fit are gone, and what they asked for takes for ever: whoever comes then is not
// held up by them.
func TestQuery_SearchesGiveWayWhenTheirCallersAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r, life := slow(t)
		var gone []command.Command
		for i := range shard.MaxSearches {
			gone = append(gone, &command.Await{Task: "x", Life: life, Run: uint64(i + 2)})
		}
		b.question(gone...).answers(t)
		time.Sleep(shard.AskedAgain)
		b.question(&command.Await{Task: "x", Life: life, Run: 1}).answers(t)
		if n := r.reads.Load(); n != shard.MaxSearches+1 {
			t.Errorf("%d searches have begun, want one more than fit", n)
		}
		close(r.may)
		if got := says(t, b.question(&command.Await{Task: "x", Life: life, Run: 1}).answers(t)[0]); got != "x run 1 attempt 1 SUCCESS" {
			t.Errorf("told %q", got)
		}
		b.node.tasks.Wait()
		if n := b.own.Searching(); n != 0 {
			t.Errorf("%d places are still taken", n)
		}
	})
}

// The journal of a shard that was lost is searched no further.
func TestQuery_SearchEndsWithTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, life := slow(t)
		b.question(&command.Await{Task: "x", Life: life, Run: 1})
		b.own.Ended()
		b.node.tasks.Wait()
		if n := b.own.Searching(); n > 0 {
			t.Errorf("%d searches remain", n)
		}
	})
}

// The owner does not turn, because the store is full, say.
func TestQuery_IsNotHeldUpByAHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, _ := slow(t)
		b.node.moves = true // it belongs there
		got := b.question(&command.HandOver{Node: farID}, &command.Get{Task: "y"}).answers(t)
		if got[0].Code != command.AnswerState || !strings.Contains(got[0].Text, "held up") || got[1].Data == nil {
			t.Errorf("answers are %+v", got)
		}
		if b.own.IsAsked() {
			t.Error("a hand-over that was given up is still asked for")
		}
	})
}

// Answers that are too large together are told one batch after the other.
func TestQuery_AnswersFitIntoAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(t)
		large := submitOf(events.Policy{})
		large.Params = payloadOf(events.MaxPayloadBytes)
		var questions []command.Command
		for i := range 5 {
			c := *large
			c.Task = events.TaskID(fmt.Sprint("large", i))
			b.accept(command.LaneSubmit, &c)
			questions = append(questions, &command.Get{Task: c.Task, Linear: i%2 == 0}, &command.List{Limit: 10})
		}
		for batches := 0; len(questions) > 0; batches++ {
			var again []command.Command
			answers := b.question(questions...).answers(t)
			size := len(command.EncodeAnswerMessage(0, &command.Batch{Number: 1}, answers, false))
			for i, a := range answers {
				if a.Code == command.AnswerTryAgain {
					again = append(again, questions[i])
				}
			}
			const frame = 4 << 10 // and subjects, at most
			if size > 1<<20-frame || len(again) == len(questions) {
				t.Fatalf("%d bytes, and %d of %d questions left after %d batches", size, len(again), len(questions), batches)
			}
			questions = again
		}
	})
}
