package stores_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/stores"
	"taskledger/events"
	"taskledger/item"
	"taskledger/projection"
	"taskledger/projection/items"
	"taskledger/task"
)

// owner decides commands at once, as the owner of the only shard, and sends no hints.
type owner struct {
	mu       sync.Mutex
	state    *projection.Shard
	builder  events.Builder
	asked    []command.Command
	lost     int   // so many answers to commands are lost
	fails    error // of registrations
	awaiting int64
}

func newOwner() *owner { return &owner{state: projection.NewShard(0)} }

func (o *owner) client() *stores.Client {
	return stores.New(stores.Config{Ask: o.ask, Read: o.read, Shards: 1, Sender: "c-1", Random: rand.Uint64, Log: slog.New(slog.DiscardHandler)})
}

func (o *owner) now() events.Millis { return max(events.MillisOf(time.Now()), o.state.Time) }

func (o *owner) ask(_ context.Context, _ int, c command.Command) (command.Answer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, c)
	items.Of(o.state).MakeDue(o.now(), nil)
	o.builder.Reset(events.Entry{Number: o.state.Number + 1, Epoch: 1, Owner: "owner", Time: o.now(), Prev: o.state.Hash})
	d := &command.Decider{State: o.state, Entry: &o.builder, Now: o.now(), Note: func(*projection.Task, *events.Event) {}}
	a := d.Decide(c)
	if d.Err != nil {
		return a, d.Err
	}
	if len(o.builder.Entry.Events) > 0 {
		if _, err := o.builder.Seal(); err != nil {
			return a, err
		}
		o.state.Seal(&o.builder.Entry)
	}
	if o.lost > 0 {
		o.lost--
		return command.Answer{}, task.ErrUnknown
	}
	return stores.WithData(items.Of(o.state), []command.Command{c}, []command.Answer{a}, func(*stores.Claim) {})[0], nil
}

func (o *owner) read(_ context.Context, _ int, c command.Command) (command.Answer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q, is := c.(*stores.Await); is {
		if o.fails != nil {
			return command.Answer{}, o.fails
		}
		o.awaiting = q.Count
	}
	items.Of(o.state).MakeDue(o.now(), nil)
	all := command.Budget{Items: math.MaxInt, Over: func() bool { return false }}
	return stores.Find(items.Of(o.state), c, o.now(), all).Answer(), nil
}

// claims returns how many claims have come.
func (o *owner) claims() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.asked {
		if _, is := c.(*stores.Claim); is {
			n++
		}
	}
	return n
}

// waiting returns how many callers were last registered.
func (o *owner) waiting() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.awaiting
}

func add(t *testing.T, c *stores.Client, at item.When) item.Item {
	t.Helper()
	made, err := c.Update(t.Context(), "s", &item.Update{Client: 1, Adds: []item.Add{{Group: "g", At: at, Data: []byte("x")}}})
	if err != nil {
		t.Fatal(err)
	}
	return made[0]
}

// end is the result of a claim.
type end struct {
	it  *item.Item
	err error
}

func claim(c *stores.Client, q item.Claim) chan end {
	done := make(chan end, 1)
	go func() {
		it, err := c.Claim(context.Background(), "s", &q)
		done <- end{it, err}
	}()
	return done
}

var waits = item.Claim{Client: 2, Group: "g", Duration: time.Hour, Wait: time.Minute}

func ended(done chan end) bool {
	select {
	case e := <-done:
		done <- e
		return true
	default:
		return false
	}
}

func TestClaim_IsTheSameWhenItsAnswerWasLost(t *testing.T) {
	o := newOwner()
	c := o.client()
	defer c.Close()
	add(t, c, 0)
	add(t, c, 0)
	q := item.Claim{Client: 2, Key: "k", Group: "g", Duration: time.Hour}
	o.lost = 1
	if _, err := c.Claim(t.Context(), "s", &q); !errors.Is(err, task.ErrUnknown) {
		t.Fatalf("answered %v", err)
	}
	first, err := c.Claim(t.Context(), "s", &q)
	if err != nil || first == nil || string(first.Data) != "x" {
		t.Fatalf("claimed %+v, %v", first, err)
	}
	again, err := c.Claim(t.Context(), "s", &q)
	if err != nil || fmt.Sprint(*again) != fmt.Sprint(*first) {
		t.Errorf("claimed %+v, %v; before %+v", again, err, first)
	}
	q.Key = "other"
	if other, err := c.Claim(t.Context(), "s", &q); err != nil || other == nil || other.ID == first.ID {
		t.Errorf("with another key %+v, %v", other, err)
	}
}

func TestClaim_ThatWaitsAsksOnceForAHintAndOnceAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner()
		c := o.client()
		defer c.Close()
		done := claim(c, waits)
		synctest.Wait()
		if ended(done) || o.claims() != 1 || o.waiting() != 1 {
			t.Errorf("%d claims, %d registered", o.claims(), o.waiting())
		}
		c.Hinted(stores.EncodeHint(stores.Hint{Store: "s", Group: "g", Count: 1})) // in vain
		synctest.Wait()
		if ended(done) || o.claims() != 2 {
			t.Errorf("%d claims after a hint", o.claims())
		}
		if e := <-done; e.it != nil || e.err != nil || o.claims() != 3 {
			t.Errorf("%+v after %d claims", e, o.claims())
		}
		synctest.Wait()
		if o.waiting() != 0 {
			t.Errorf("the owner still knows of %d that wait", o.waiting())
		}
	})
}

// Nobody tells this process anything.
func TestClaim_ThatWaitsFindsWhatFallsDueAndByRegisteringWhatCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner()
		c := o.client()
		defer c.Close()
		ctx, stop := context.WithCancel(t.Context())
		var sweeping sync.WaitGroup
		sweeping.Go(func() { _ = c.Sweep(ctx) })
		defer sweeping.Wait()
		defer stop()

		add(t, c, -1500)
		began := time.Now()
		if e := <-claim(c, waits); e.it == nil || e.err != nil || time.Since(began) != 1500*time.Millisecond {
			t.Errorf("%+v after %s, want what falls due", e, time.Since(began))
		}
		began = time.Now()
		done := claim(c, waits)
		time.Sleep(100 * time.Millisecond)
		add(t, c, 0)
		if e := <-done; e.it == nil || e.err != nil || time.Since(began) > time.Second {
			t.Errorf("%+v after %s, want what was added", e, time.Since(began))
		}
		o.mu.Lock()
		o.fails = errors.New("the owner is away")
		o.mu.Unlock()
		done = claim(c, waits)
		time.Sleep(5 * time.Second)
		add(t, c, 0)
		o.mu.Lock()
		o.fails = nil
		o.mu.Unlock()
		if e := <-done; e.it == nil || e.err != nil {
			t.Errorf("%+v, want it registered again", e)
		}
	})
}

// An item of the far future is the usual way to say never.
func TestClaim_ThatWaitsForAnItemOfTheFarFutureDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner()
		c := o.client()
		defer c.Close()
		add(t, c, item.MaxTime)
		if e := <-claim(c, waits); e.it != nil || e.err != nil || o.claims() > 3 {
			t.Errorf("%+v after %d claims, want one at the beginning and one at the end", e, o.claims())
		}
	})
}

// A notified caller that goes without the item leaves it to the next.
func TestClaim_ThatGivesUpPassesAHintOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 { // which of the two the first one sees is a matter of chance
			o := newOwner()
			c := o.client()
			ctx, cancel := context.WithCancel(t.Context())
			first := make(chan end, 1)
			go func() {
				it, err := c.Claim(ctx, "s", &waits)
				first <- end{it, err}
			}()
			synctest.Wait()
			second := claim(c, waits)
			synctest.Wait()
			add(t, c, 0)
			cancel()
			c.Hinted(stores.EncodeHint(stores.Hint{Store: "s", Group: "g", Count: 1}))
			began := time.Now()
			one := <-first
			if one.it != nil { // it was served before it gave up
				add(t, c, 0)
				c.Hinted(stores.EncodeHint(stores.Hint{Store: "s", Group: "g", Count: 1}))
			}
			if e := <-second; e.it == nil || e.err != nil || time.Since(began) != 0 {
				t.Fatalf("the first ends with %+v, the second with %+v after %s", one, e, time.Since(began))
			}
			c.Close()
		}
	})
}

// claimThatDepends has a claim wait that depends on an item of another group, and returns the id of that.
func claimThatDepends(t *testing.T, c *stores.Client) (ends <-chan end, on []int64) {
	t.Helper()
	made, err := c.Update(t.Context(), "s", &item.Update{Client: 1, Adds: []item.Add{{Group: "other"}}})
	if err != nil {
		t.Fatal(err)
	}
	depends := waits
	depends.Depends = []int64{made[0].ID}
	ends = claim(c, depends)
	synctest.Wait()
	return ends, depends.Depends
}

// So does who is refused: what it depends on goes away with the update that adds the item.
func TestClaim_ThatIsRefusedWhenItIsWokenPassesAHintOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner()
		c := o.client()
		defer c.Close()
		first, on := claimThatDepends(t, c)
		second := claim(c, waits)
		synctest.Wait()
		if _, err := c.Update(t.Context(), "s", &item.Update{Client: 1, Deletes: on, Adds: []item.Add{{Group: "g"}}}); err != nil {
			t.Fatal(err)
		}
		c.Hinted(stores.EncodeHint(stores.Hint{Store: "s", Group: "g", Count: 1}))
		began := time.Now()
		if e := <-first; e.it != nil || e.err == nil {
			t.Errorf("the first ends with %+v", e)
		}
		if e := <-second; e.it == nil || e.err != nil || time.Since(began) != 0 {
			t.Errorf("the second ends with %+v after %s", e, time.Since(began))
		}
	})
}

func TestClaim_ThatWaitsLearnsWithinSecondsThatWhatItDependsOnHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner()
		c := o.client()
		defer c.Close()
		waiting, on := claimThatDepends(t, c)
		if _, err := c.Update(t.Context(), "s", &item.Update{Client: 1, Deletes: on}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		e := <-waiting
		conflict, is := errors.AsType[*item.ConflictError](e.err)
		if took := time.Since(began); !is || conflict.Problems[0].Kind != item.NotThere || took > 5*time.Second {
			t.Errorf("it ends with %+v after %s, want a conflict within seconds", e, took)
		}
	})
}

func TestClaim_ThatWaitsEndsWithItsProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOwner()
		c := o.client()
		done := claim(c, waits)
		synctest.Wait()
		c.Drain()
		if e := <-done; e.it != nil || e.err != nil {
			t.Errorf("drained: %+v", e)
		}
		began := time.Now()
		if e := <-claim(c, waits); e.it != nil || e.err != nil || time.Since(began) != 0 {
			t.Errorf("begun after that: %+v after %s", e, time.Since(began))
		}
		c.Close()

		c = o.client()
		done = claim(c, waits)
		synctest.Wait()
		c.Close()
		if e := <-done; !errors.Is(e.err, task.ErrClosed) {
			t.Errorf("closed: %+v", e)
		}
	})
}

func TestUpdate_NamesTheGroupsThatItsRequestLeftOut(t *testing.T) {
	o := newOwner()
	c := o.client()
	defer c.Close()
	u := &item.Update{Client: 1, Key: "k"}
	for i, group := range []string{"a", "b", "a"} {
		made, err := c.Update(t.Context(), "s", &item.Update{Client: 1, Adds: []item.Add{{Group: group}}})
		if err != nil {
			t.Fatal(err)
		}
		u.Changes = append(u.Changes, item.Change{ID: made[0].ID, Data: []byte{byte(i)}})
	}
	for range 2 {
		made, err := c.Update(t.Context(), "s", u)
		if err != nil || len(made) != 3 || made[0].Group != "a" || made[1].Group != "b" || made[2].Group != "a" || made[2].ID != 6 || made[2].Data[0] != 2 {
			t.Errorf("made %+v, %v", made, err)
		}
	}
}

// What has no room in an answer is asked for.
func TestItems_AreAskedForUntilAllAreThere(t *testing.T) {
	o := newOwner()
	c := o.client()
	defer c.Close()
	var ids []int64
	for range 3 {
		u := &item.Update{Client: 1}
		for range 900 {
			u.Adds = append(u.Adds, item.Add{Group: "g"})
		}
		made, err := c.Update(t.Context(), "s", u)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range made {
			ids = append(ids, it.ID, it.ID, -1)
		}
	}
	found, err := c.Items(t.Context(), "s", ids, false)
	if err != nil || len(found) != len(ids) {
		t.Fatalf("%d of %d, %v", len(found), len(ids), err)
	}
	for i, it := range found {
		if missing := ids[i] < 0; missing != (it == nil) || it != nil && it.ID != ids[i] {
			t.Fatalf("item %d of id %d is %+v", i, ids[i], it)
		}
	}
}
