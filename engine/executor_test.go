package engine

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/slots"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/projection/settings"
	"taskledger/store"
)

// script is a behavior that runs a function of the test.
type script struct {
	id  string
	run func(ctx context.Context, a Attempt) Outcome
}

func (s *script) ID() string                           { return s.id }
func (s *script) Types() string                        { return "" }
func (s *script) Policy() Policy                       { return Policy{} }
func (s *script) Plan([]byte, time.Time) (Plan, error) { return Plan{}, nil }
func (s *script) Run(ctx context.Context, a Attempt) Outcome {
	return s.run(ctx, a)
}

// noStore is a store that nobody asks for anything but the cluster.
type noStore struct{ store.Store }

func (noStore) Cluster() store.Cluster { return store.Cluster{Shards: 4, Key: make([]byte, 32)} }

const (
	selfID       = "n-1" // session of a post
	farID        = "far" // session of another node
	workBehavior = "work"
)

// present is a membership of the given sessions, in which the post owns shard 0.
func present(revision int64, sessions ...string) store.Membership {
	m := store.Membership{
		Revision: revision,
		Nodes:    map[string]store.NodeInfo{},
		Owners:   map[int]store.Owner{0: {Node: selfID, Revision: 1}},
	}
	for _, id := range sessions {
		m.Nodes[id] = store.NodeInfo{
			ID:    id,
			Name:  id,
			Owner: id == selfID,
			Reads: ledger.Reads(),
		}
	}
	return m
}

// post is a node in a session whose shard 0 is owned by the test: what its attempts report lies in the inbox. It has heard that
// nothing is paused.
type post struct {
	testing.TB
	*member
	inbox   *shard.Inbox
	started events.Ref
}

func newPost(t testing.TB, slots int, limits map[string]int, behaviors ...Behavior) *post {
	t.Helper()
	n, err := NewNode(NodeConfig{Store: noStore{}, Name: "post", Slots: slots, Limits: limits, Behaviors: behaviors})
	if err != nil {
		t.Fatal(err)
	}
	p := &post{TB: t, member: newMember(n), inbox: shard.NewInbox()}
	ctx, cancel := context.WithCancelCause(context.Background())
	p.end, p.session = cancel, store.Session{ID: selfID, Revision: 1}
	p.enterWith(ctx)
	p.renewed.Store(int64(time.Since(clockBase) + 24*time.Hour)) // young, whatever the time
	p.sender.ServeHere(0, p.inbox)
	p.settings.known.Store(new(settings.State))
	p.heard.Store(true)
	n.member.Store(p.member)
	t.Cleanup(func() {
		cancel(nil)
		n.stopWorkers()
	})
	return p
}

// enterWith makes ctx the one of the session and the parent of those of its attempts.
func (p *post) enterWith(ctx context.Context) {
	p.member.ctx = ctx
	for i := range p.parents {
		p.parents[i] = ctx
	}
}

// take takes a slot for whatever is ready of the behavior.
func (x *executor) take(behavior string) bool { return x.Take(nil, slots.Head{Behavior: behavior}) }

// launch makes an attempt of the behavior, for which there must be a slot.
func (p *post) launch(behavior string, policy Policy) events.Ref {
	p.Helper()
	if !p.exec.take(behavior) {
		p.Fatalf("no slot for %s", behavior)
	}
	p.started++
	p.exec.launch(p.member, 0, command.Assignment{AttemptName: command.AttemptName{Task: "a", Started: p.started}, Behavior: behavior, Number: 1, Policy: policy})
	return p.started
}

// reported takes what attempts have reported, and acknowledges it.
func (p *post) reported() (all []command.Command) {
	for again := true; again; {
		again = false
		m := p.inbox.Take(&shard.Mail{})
		for _, d := range m.Lanes[command.LaneWork] {
			all = append(all, d.Commands...)
			d.Reply(d.Batch, make([]command.Answer, len(d.Commands)), true)
			again = true
		}
	}
	return all
}

// outcome is the one outcome that was reported.
func (p *post) outcome() *command.Complete {
	p.Helper()
	all := p.reported()
	if len(all) != 1 {
		p.Fatalf("%d commands reported, want one outcome", len(all))
	}
	return all[0].(*command.Complete)
}

func (p *post) wantNothing(when string) {
	p.Helper()
	if all := p.reported(); len(all) != 0 {
		p.Fatalf("%s %+v was reported", when, all[0])
	}
}

// await waits for a signal, and ends the test when it does not come.
func await(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: not within 30s", what)
	}
}

// owned is a task of a shard.
type owned struct {
	behavior string
	node     string // that has an attempt of it; "": it waits for a slot
}

// owning makes an owner of some tasks, which serves the shard here but takes no turns.
func (p *post) owning(at int, tasks ...owned) *shard.Owner {
	p.Helper()
	policy, err := Policy{}.Complete()
	if err != nil {
		p.Fatal(err)
	}
	state := projection.NewShard(at)
	var entry events.Builder
	for some := range slices.Chunk(tasks, 1000) {
		now := p.now()
		entry.Reset(events.Entry{
			Shard:  uint16(at),
			Number: state.Number + 1,
			Epoch:  1,
			Owner:  selfID,
			Time:   now,
			Prev:   state.Hash,
		})
		for i, t := range some {
			id := events.TaskID(fmt.Sprint("t-", state.Number, "-", i))
			created := entry.Add(events.Event{
				Task: id,
				Seq:  1,
				Body: &events.Created{Behavior: t.behavior, Policy: policy, NotBefore: now},
			}).Position.Ref
			if t.node != "" {
				entry.Add(events.Event{
					Task: id,
					Seq:  2,
					Prev: created,
					Body: &events.Started{Node: t.node, Attempt: 1, Lease: 9000},
				})
			}
		}
		data, err := entry.Seal()
		if err != nil {
			p.Fatal(err)
		}
		stored, err := events.Decode(data)
		if err == nil {
			err = state.Replay(stored)
		}
		if err != nil {
			p.Fatal(err)
		}
	}
	own := shard.New(
		p.ownerConfig(),
		store.Ownership{Shard: at, Revision: 1, Session: p.session},
		&shard.Loaded{State: state, Head: store.Head{Number: state.Number, Revision: int64(state.Number)}},
		new(command.Misfits),
		func() {},
	)
	p.place.owners[at] = own
	return own
}

// An outcome is held while a worker is on its way to the next attempt. If that one takes long, nobody may wait for it.
func TestExecutor_NoOutcomeWaitsForALongAttempt(t *testing.T) {
	release := make(chan struct{})
	quick := &script{"quick", func(context.Context, Attempt) Outcome { return Outcome{} }}
	slow := &script{"slow", func(context.Context, Attempt) Outcome {
		<-release
		return Outcome{}
	}}
	p := newPost(t, 4096, nil, quick, slow)
	for round := range 200 {
		for range 3 {
			p.launch("quick", Policy{})
			p.launch("slow", Policy{})
		}
		late := time.After(30 * time.Second)
		for got := 0; got < 3; got += len(p.reported()) {
			select {
			case <-p.inbox.Woken():
			case <-late:
				t.Fatalf("round %d: %d outcomes, want 3", round, got)
			}
		}
	}
	close(release)
}

// The last attempt that waits is taken while the outcome of another is held: somebody else must let that one leave.
func TestExecutor_HeldOutcomeLeavesBesideTheLastAttempt(t *testing.T) {
	p := newPost(t, 2, nil, &script{"b", func(context.Context, Attempt) Outcome { return Outcome{} }})
	x := p.exec
	left := make(chan int, 1)
	x.flush = func(shard int) { left <- shard }
	x.queue, x.waking = append(x.queue, &attempt{}), true
	if !x.hold(3) {
		t.Fatal("an outcome is not held although a worker is on its way")
	}
	if x.next(true) == nil {
		t.Fatal("no attempt")
	}
	select {
	case shard := <-left:
		if shard != 3 {
			t.Errorf("what waits for shard %d leaves, want 3", shard)
		}
	case <-time.After(10 * time.Second):
		t.Error("the outcome is still held")
	}
}

func TestExecutor_NeverRunsMoreThanItsSlotsAndLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most [2]atomic.Int32
		behavior := func(i int) Behavior {
			return &script{fmt.Sprint("b", i), func(context.Context, Attempt) Outcome {
				n := now[i].Add(1)
				for m := most[i].Load(); n > m && !most[i].CompareAndSwap(m, n); m = most[i].Load() {
				}
				time.Sleep(time.Second)
				now[i].Add(-1)
				return Outcome{}
			}}
		}
		p := newPost(t, 5, map[string]int{"b1": 2}, behavior(0), behavior(1))
		made := 0
		for range 50 {
			for _, b := range []string{"b1", "b0"} {
				for p.exec.Free(b) {
					p.launch(b, Policy{})
					made++
				}
			}
			synctest.Wait()
			if total := now[0].Load() + now[1].Load(); total != 5 {
				t.Fatalf("%d attempts run on 5 slots", total)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if most[0].Load() > 5 || most[1].Load() != 2 {
			t.Errorf("at most %d and %d attempts ran at once, want 5 and 2", most[0].Load(), most[1].Load())
		}
		if got := len(p.reported()); got != made || made != 250 {
			t.Errorf("%d outcomes of %d attempts, want 250", got, made)
		}
	})
}

func TestExecutor_FreedSlotWakesTheFirstShardThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := newPost(t, 1, nil, &script{"b", func(context.Context, Attempt) Outcome { <-release; return Outcome{} }})
		p.launch("b", Policy{})
		heads := []slots.Head{{Behavior: "b"}}
		waiting := []*shard.Inbox{shard.NewInbox(), shard.NewInbox(), shard.NewInbox()}
		for _, i := range waiting {
			p.exec.Await(i, heads)
		}
		rung := func(i *shard.Inbox) bool {
			select {
			case <-i.Woken():
				return true
			default:
				return false
			}
		}
		synctest.Wait()
		if slices.ContainsFunc(waiting, rung) {
			t.Fatal("an owner was woken although no slot is free")
		}
		close(release)
		synctest.Wait()
		for n, i := range waiting {
			if !rung(i) {
				t.Errorf("owner %d was not woken", n)
			}
			p.exec.Leave(i)
		}
		late := shard.NewInbox()
		p.exec.Await(late, heads)
		if !rung(late) {
			t.Error("an owner that looked before the slot was freed and waits after it was not woken")
		}
	})
}

func TestExecutor_EndOfAnOfferWakesThoseWhoWaitForItsSlots(t *testing.T) {
	p := newPost(t, 3, map[string]int{"limited": 1}, &script{id: "b"}, &script{id: "limited"})
	reserved, detail := p.exec.Reserve(8, map[string]int{"limited": 8})
	if reserved != 3 || p.exec.Free("b") || p.exec.Free("limited") || p.exec.Unused() != 3 {
		t.Fatalf("reserved %d of 3 slots, detail %v", reserved, detail)
	}
	if again, _ := p.exec.Reserve(1, nil); again != 0 {
		t.Errorf("%d slots were reserved twice", again)
	}
	i := shard.NewInbox()
	p.exec.Await(i, []slots.Head{{Behavior: "b"}})
	p.exec.Unreserve(reserved, detail, []command.Assignment{{Behavior: "limited"}})
	if len(i.Woken()) == 0 {
		t.Error("the owner that waits was not woken")
	}
	if !p.exec.Free("b") || p.exec.Free("limited") || p.exec.Unused() != 2 {
		t.Error("the assigned slot is not the one that is taken")
	}
}

// Attempts that have lent their slots count among those of their behavior, also where its limit is the number of slots.
func TestReserve_CountsWhatStandsOfferedOfEveryBehavior(t *testing.T) {
	p := newPost(t, 4, nil, &script{id: "work"})
	x := p.exec
	x.Limits["work"].Used, x.Lent = 3, 3
	n, detail := x.Reserve(1, nil)
	if n != 1 {
		t.Fatalf("%d slots are set aside, want one", n)
	}
	if more, _ := x.Reserve(1, nil); more != 0 {
		t.Errorf("with three attempts that wait and one that is offered another one is offered, of four")
	}
	x.Unreserve(n, detail, nil)
	if again, _ := x.Reserve(1, nil); again != 1 {
		t.Errorf("%d slots are set aside after the offer was answered, want one", again)
	}
}

func TestExecutor_PanicAndGoexitAreFailedAttemptsWithTheirCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, 1, nil,
			&script{"panics", func(context.Context, Attempt) Outcome { panic("no such table") }},
			&script{"exits", func(context.Context, Attempt) Outcome { runtime.Goexit(); return Outcome{} }},
			&script{"rants", func(context.Context, Attempt) Outcome { panic("no such row: " + strings.Repeat("x", 1<<20)) }},
			&script{"works", func(context.Context, Attempt) Outcome { return Outcome{Result: []byte("1")} }})
		for behavior, want := range map[string]string{
			"panics": "no such table",
			"rants":  "no such row",
			"exits":  "ended its goroutine",
		} {
			p.launch(behavior, Policy{})
			synctest.Wait()
			c := p.outcome()
			if c.How != command.Failed || c.Error.Code != events.CodePanic || !c.ByPolicy || !strings.Contains(c.Error.Message, want) {
				t.Errorf("%s: %+v, %+v", behavior, c, c.Error)
			}
			if behavior != "exits" && !strings.Contains(c.Error.Message, "executor_test.go") {
				t.Errorf("no stack in %.200q", c.Error.Message)
			}
		}
		p.launch("works", Policy{}) // the slot is free again
		synctest.Wait()
		if c := p.outcome(); c.How != command.Succeeded || string(c.Result) != string(events.JSON([]byte("1"))) {
			t.Errorf("%+v", c)
		}
	})
}

// A function that returns the cause of its context tells the same as the engine does.
func TestExecutor_TimeOutIsToldOnce(t *testing.T) {
	for returned, want := range map[string]string{
		errTimeout.Error():            errTimeout.Error(),
		"copy: " + errTimeout.Error(): errTimeout.Error() + ": copy",
		"3 files are left":            errTimeout.Error() + ": 3 files are left",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPost(t, 1, nil, &script{"b", func(ctx context.Context, a Attempt) Outcome {
				<-ctx.Done()
				return Outcome{Err: &events.Error{Code: "x", Message: returned}, Next: byPolicy}
			}})
			p.launch("b", Policy{Timeout: time.Minute})
			time.Sleep(time.Minute)
			synctest.Wait()
			if c := p.outcome(); c.How != command.Failed || c.Error.Message != want {
				t.Errorf("%+v, %+v, want %s", c, c.Error, want)
			}
		})
	}
}

func TestExecutor_TimeOutIsRecordedWhenTheFunctionReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, 1, nil, &script{"b", func(ctx context.Context, a Attempt) Outcome {
			if want := time.Now().Add(time.Minute); !a.Deadline.Equal(want) {
				t.Errorf("deadline %s, want %s", a.Deadline, want)
			}
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			return Outcome{Err: &events.Error{Code: "x", Message: "gave up"}, Next: byPolicy}
		}})
		p.launch("b", Policy{Timeout: time.Minute})
		time.Sleep(time.Minute + 2*time.Second)
		p.wantNothing("before the function returned")
		time.Sleep(time.Second)
		synctest.Wait()
		c := p.outcome()
		if c.How != command.Failed || c.Error.Code != events.CodeTimeout || !strings.Contains(c.Error.Message, "gave up") || !c.ByPolicy {
			t.Errorf("%+v, %+v", c, c.Error)
		}
	})
}

func TestExecutor_SuccessAfterItsTimeOutCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, 1, nil, &script{"b", func(ctx context.Context, _ Attempt) Outcome { <-ctx.Done(); return Outcome{} }})
		p.launch("b", Policy{Timeout: time.Minute})
		time.Sleep(time.Minute)
		synctest.Wait()
		if c := p.outcome(); c.How != command.Succeeded {
			t.Errorf("%+v", c)
		}
	})
}

func TestExecutor_FunctionThatIgnoresItsEndIsOverAfterTenSecondsAndKeepsItsSlot(t *testing.T) {
	for name, end := range map[string]func(p *post, started events.Ref){
		"timeout":   func(*post, events.Ref) { time.Sleep(time.Minute) },
		"cancelled": func(p *post, started events.Ref) { p.exec.cancelAttempt(0, started, ErrCancelled) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				p := newPost(t, 1, nil, &script{"b", func(context.Context, Attempt) Outcome { <-release; return Outcome{} }})
				policy := Policy{}
				if name == "timeout" {
					policy.Timeout = time.Minute
				}
				end(p, p.launch("b", policy))
				time.Sleep(overdue - time.Millisecond)
				synctest.Wait()
				p.wantNothing("before ten seconds were over")
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if c := p.outcome(); c.How != command.Failed || name == "timeout" && c.Error.Code != events.CodeTimeout {
					t.Errorf("%+v, %+v", c, c.Error)
				}
				if p.exec.Free("b") {
					t.Error("the slot is free while the function runs")
				}
				close(release)
				synctest.Wait()
				p.wantNothing("a second time")
				if !p.exec.Free("b") {
					t.Error("the slot is not free after the function has returned")
				}
			})
		})
	}
}

// mute is a behavior that does not answer what follows a failure, until it is told to.
type mute struct {
	script
	answer chan struct{}
}

func (m *mute) Failed(Attempt, *events.Error) (Outcome, bool) {
	<-m.answer
	return Outcome{}, false
}

func TestExecutor_OutcomeDoesNotWaitForABehaviorThatDoesNotSayWhatFollows(t *testing.T) {
	release := make(chan struct{})
	for name, run := range map[string]func(context.Context, Attempt) Outcome{
		"a panic":    func(context.Context, Attempt) Outcome { panic("no") },
		"a time-out": func(context.Context, Attempt) Outcome { <-release; return Outcome{} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release = make(chan struct{})
				p := newPost(t, 1, nil, &mute{script{"b", run}, release})
				p.launch("b", Policy{Timeout: time.Minute})
				time.Sleep(time.Minute + 2*overdue)
				synctest.Wait()
				if c := p.outcome(); c.How != command.Failed {
					t.Errorf("%+v", c)
				}
				close(release)
				synctest.Wait()
				p.wantNothing("a second time")
			})
		})
	}
}

func TestProgress_IsSentOnceASecondAndTheLastOneArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, 1, nil, &script{"b", func(_ context.Context, a Attempt) Outcome {
			for i := range int64(25) {
				a.Progress(i, 25, "note")
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(2 * time.Second)
			a.Progress(99, 25, strings.Repeat("n", 1000))
			return Outcome{}
		}})
		p.launch("b", Policy{})
		var sent []int64
		for range 60 {
			synctest.Wait()
			for _, c := range p.reported() {
				if report, ok := c.(*command.Progress); ok {
					sent = append(sent, report.Progress.Done)
					if len(report.Progress.Note) > events.MaxNameBytes {
						t.Errorf("note of %d bytes", len(report.Progress.Note))
					}
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		// At a full second either the report of that moment is sent or the one before it.
		if len(sent) != 5 || !slices.IsSorted(sent) || sent[0] != 0 || sent[3] != 24 || sent[4] != 99 {
			t.Errorf("reports %v were sent, want the first, one a second, and the last before each pause", sent)
		}
	})
}

// A shard that cannot be served for long gets the first report and the latest one.
func TestProgress_OneReportWaitsUntilItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, 1, nil, &script{"b", func(ctx context.Context, a Attempt) Outcome {
			for i := range int64(1000) {
				a.Progress(i, 1000, "")
				time.Sleep(100 * time.Millisecond)
			}
			<-ctx.Done()
			return Outcome{}
		}})
		p.launch("b", Policy{})
		time.Sleep(2 * time.Minute)
		var sent []int64
		for _, c := range p.reported() {
			sent = append(sent, c.(*command.Progress).Progress.Done)
		}
		if !slices.Equal(sent, []int64{0, 999}) {
			t.Errorf("reports %v were sent, want the first and the latest", sent)
		}
	})
}

func TestProgress_NothingFollowsTheOutcome(t *testing.T) {
	for reports := range int64(3) {
		synctest.Test(t, func(t *testing.T) {
			var report func(done, total int64, note string)
			p := newPost(t, 1, nil, &script{"b", func(_ context.Context, a Attempt) Outcome {
				for i := range reports {
					a.Progress(i, 2, "")
				}
				report = a.Progress
				return Outcome{}
			}})
			p.launch("b", Policy{})
			synctest.Wait()
			all := p.reported()
			if _, ok := all[len(all)-1].(*command.Complete); !ok {
				t.Errorf("the last report is %T", all[len(all)-1])
			}
			report(3, 2, "")
			time.Sleep(time.Minute)
			p.wantNothing("after the outcome")
		})
	}
}

func TestExecutor_DrainRefusesWorkAndEndsWithTheLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, 2, nil, &script{"b", func(ctx context.Context, _ Attempt) Outcome {
			<-ctx.Done()
			return Outcome{Err: &events.Error{Code: "x"}, Next: byPolicy}
		}})
		p.launch("b", Policy{})
		idle := p.exec.drain()
		if p.exec.Free("b") || p.exec.Runs("b") || p.exec.take("b") || p.exec.Unused() != 0 {
			t.Error("a draining node takes on work")
		}
		if n, _ := p.exec.Reserve(1, nil); n != 0 {
			t.Error("a draining node offers slots")
		}
		p.exec.cancelAll(p.member, errDraining)
		synctest.Wait()
		select {
		case <-idle:
			t.Error("drained before the outcome was answered")
		default:
		}
		if c := p.outcome(); c.How != command.Released {
			t.Errorf("an attempt cut short by a drain ended as %+v", c)
		}
		synctest.Wait()
		select {
		case <-idle:
		default:
			t.Error("not drained")
		}
	})
}

func TestExecutor_FencedAttemptsReportNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, 1, nil, &script{"b", func(ctx context.Context, _ Attempt) Outcome { <-ctx.Done(); return Outcome{} }})
		p.launch("b", Policy{})
		p.exec.cancelAll(p.member, errFenced)
		synctest.Wait()
		p.wantNothing("by a fenced attempt")
		if !p.exec.Free("b") || len(p.exec.names(p.member, 0)) != 0 {
			t.Error("a fenced attempt is remembered or keeps its slot")
		}
	})
}

// The commit took so long that the session is old when the assignment reaches the executor. If it is renewed after all,
// the task must run: nobody else will ever find out that it does not.
func TestExecutor_CallsNoFunctionWhileTheSessionIsOld(t *testing.T) {
	called := make(chan struct{}, 1)
	p := newPost(t, 1, nil, &script{"b", func(context.Context, Attempt) Outcome {
		called <- struct{}{}
		return Outcome{}
	}})
	freed := make(chan struct{}, 2)
	p.exec.Freed = func() { freed <- struct{}{} }
	p.renewed.Store(int64(time.Since(clockBase) - p.ttl*3/4))
	p.launch("b", Policy{})
	await(t, freed, "the slot")
	select {
	case <-called:
		t.Fatal("the function was called")
	default:
	}
	p.renewed.Store(int64(time.Since(clockBase)))
	await(t, p.inbox.Woken(), "word that the attempt is given back")
	if c := p.outcome(); c.How != command.Released {
		t.Errorf("an attempt that was not made ended as %+v", c)
	}
	p.launch("b", Policy{})
	await(t, called, "the attempt after it")
}

// The session ends while the function runs, which then returns an error, or a result: neither counts.
func TestExecutor_ReportsNothingOfAnEndedSession(t *testing.T) {
	for name, out := range map[string]Outcome{"Success": {}, "Failure": {Err: &events.Error{Code: events.CodeFailed}}} {
		t.Run(name, func(t *testing.T) {
			running := make(chan struct{})
			p := newPost(t, 1, nil, &script{"b", func(ctx context.Context, _ Attempt) Outcome {
				close(running)
				<-ctx.Done()
				return out
			}})
			freed := make(chan struct{}, 1)
			p.exec.Freed = func() { freed <- struct{}{} }
			session, end := context.WithCancel(t.Context())
			p.enterWith(session)
			p.launch("b", Policy{})
			await(t, running, "the attempt")
			end()
			await(t, freed, "the slot")
			p.wantNothing("of an ended session")
		})
	}
}

func TestExecutor_WorkersAreReusedAndEndWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, 4, nil, &script{"b", func(context.Context, Attempt) Outcome { return Outcome{} }})
		for range 10 {
			p.launch("b", Policy{})
			synctest.Wait()
		}
		p.reported()
		begin := time.Now()
		p.exec.workers.Wait()
		if took := time.Since(begin); took != idleWorker {
			t.Errorf("the last worker ended after %s, want %s", took, idleWorker)
		}
	})
}

func TestOutcome_ResultBeyondTheLimitFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t, 1, nil, &script{"b", func(context.Context, Attempt) Outcome {
			return Outcome{Result: make([]byte, events.MaxPayloadBytes+1)}
		}})
		p.launch("b", Policy{})
		synctest.Wait()
		if c := p.outcome(); c.How != command.Failed || c.Error.Code != events.CodeRejected || c.Result != nil || c.ByPolicy || c.Next != 0 {
			t.Errorf("%+v, %+v", c, c.Error)
		}
	})
}

func TestOutcome_TellsTheOwnerOfTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			out  Outcome
			next events.Millis
			wait time.Duration
		}{
			{Outcome{}, 0, 0},
			{Outcome{Wait: -1}, 0, 0},
			{Outcome{Wait: 1}, command.AnyTime, time.Millisecond},
			{Outcome{Wait: time.Second}, command.AnyTime, time.Second},
			{Outcome{Wait: math.MaxInt64}, command.AnyTime, time.Duration(math.MaxInt64).Truncate(time.Millisecond)},
			{Outcome{Next: time.Unix(0, 0)}, command.AnyTime, 0},
			{Outcome{Next: time.Now().Add(time.Minute)}, events.MillisOf(time.Now()).Add(time.Minute), time.Minute},
			{Outcome{Next: time.Now().Add(-time.Minute)}, events.MillisOf(time.Now()).Add(-time.Minute), 0},
			{Outcome{Next: time.Now().Add(time.Minute), Wait: time.Hour}, events.MillisOf(time.Now()).Add(time.Minute), time.Hour},
		} {
			for _, err := range []*events.Error{nil, {Code: "x"}} {
				c.out.Err = err
				var got command.Complete
				if err == nil {
					reportSuccess(&got, c.out)
				} else {
					reportFailure(&got, c.out, false)
				}
				if got.Next != c.next || got.Wait != c.wait {
					t.Errorf("%+v: next run at %d, in %s; want %d, %s", c.out, got.Next, got.Wait, c.next, c.wait)
				}
			}
		}
	})
}
