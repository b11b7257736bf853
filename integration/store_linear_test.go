package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/item"
	"taskledger/ledger"
	"taskledger/store"
)

// itemCall records a request about an item of a store, and its answer.
type itemCall struct {
	what string // "add", "claim", "change", "delete" or "get"
	id   int64  // that was asked for; of a claim it is found in the journal
	made int64  // the id of the item after it; 0 = it has none
	done bool   // the item was changed; of a get: it was there
	held bool   // refused since it is another's
}

// The states of an item, besides the id that it has.
const (
	unborn  = int64(-1)
	removed = int64(0)
)

// itemModel is an item of a store: whatever changes it gives it another id, and who names an old one is told that it is
// not there.
var itemModel = porcupine.Model{
	Init: func() any { return unborn },
	Step: func(state, input, _ any) (bool, any) {
		now, c := state.(int64), input.(itemCall)
		switch {
		case c.what == "add":
			return now == unborn, c.made
		case c.what == "get":
			return c.done == (now == c.id), now
		case c.done:
			return now == c.id, c.made
		}
		return c.held == (now == c.id), now
	},
}

// itemHistory is the calls of several clients of a store.
type itemHistory struct {
	t     *testing.T
	mu    sync.Mutex
	calls []porcupine.Operation
	lost  []porcupine.Operation // claims whose clients were not told which item they got
	known []int64               // ids that a client was told
	began time.Time
}

// operation returns a call that began then and has ended now.
func (h *itemHistory) operation(client int, began time.Time, c itemCall) porcupine.Operation {
	return porcupine.Operation{
		ClientId: client,
		Input:    c,
		Call:     int64(began.Sub(h.began)),
		Return:   int64(time.Since(h.began)),
	}
}

func (h *itemHistory) note(client int, began time.Time, c itemCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, h.operation(client, began, c))
	if c.made > 0 {
		h.known = append(h.known, c.made)
	}
}

// some returns an id that somebody was told of, lately in most cases.
func (h *itemHistory) some(random *rand.Rand) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.known) == 0 {
		return 1
	}
	return h.known[len(h.known)-1-random.IntN(min(len(h.known), 8))]
}

// call does one thing by a client, and in one of three cases sends it again under its key.
func (h *itemHistory) call(at *engine.Client, random *rand.Rand, client, n int) {
	ctx, began := within(h.t, soon), time.Now()
	key, by, id := fmt.Sprint(n), int64(client+1), h.some(random)
	ask := func(u *item.Update) (got []item.Item, err error) {
		u.Client, u.Key = by, key
		do := func(ctx context.Context) (err error) { got, err = at.Stores().Update(ctx, "linear", u); return err }
		err = testcluster.UntilAnswered(ctx, do)
		if first := slices.Clone(got); err == nil && random.IntN(3) == 0 {
			if err := testcluster.UntilAnswered(ctx, do); err != nil || !slices.EqualFunc(first, got, func(a, b item.Item) bool { return a.ID == b.ID && a.At == b.At }) {
				h.t.Errorf("repeated, an update is answered with %+v, %v; first %+v", got, err, first)
			}
		}
		return got, err
	}
	switch what := random.IntN(10); {
	case what == 0:
		if got, err := ask(&item.Update{Adds: []item.Add{{Group: "g", Data: []byte(key)}}}); h.done(err, itemCall{}, client, began) {
			h.note(client, began, itemCall{what: "add", made: got[0].ID, done: true})
		}
	case what < 4:
		var got *item.Item
		err := testcluster.UntilAnswered(ctx, func(ctx context.Context) (err error) {
			got, err = at.Stores().Claim(ctx, "linear", &item.Claim{Client: by, Key: key, Group: "g", Duration: 20 * time.Millisecond})
			return err
		})
		if lost := (*item.ConflictError)(nil); errors.As(err, &lost) {
			h.mu.Lock() // the answer was lost, and the claim has ended since: which item it was the journal alone tells
			h.lost = append(h.lost, h.operation(client, began, itemCall{what: "claim", done: true}))
			h.mu.Unlock()
			return
		}
		if h.done(err, itemCall{}, client, began) && got != nil {
			h.note(client, began, itemCall{what: "claim", made: got.ID, done: true})
		}
	case what < 7:
		c := itemCall{what: "change", id: id, done: true}
		if got, err := ask(&item.Update{Changes: []item.Change{{ID: id, Keep: true, At: item.When(-random.Int64N(30))}}}); h.done(err, c, client, began) {
			c.made = got[0].ID
			h.note(client, began, c)
		}
	case what == 7:
		c := itemCall{what: "delete", id: id, done: true}
		if _, err := ask(&item.Update{Deletes: []int64{id}}); h.done(err, c, client, began) {
			h.note(client, began, c)
		}
	default:
		got, err := at.Stores().Items(ctx, "linear", []int64{id}, true)
		if errors.Is(err, store.ErrUnavailable) {
			return
		}
		ok(h.t, err)
		h.note(client, began, itemCall{what: "get", id: id, done: got[0] != nil})
	}
}

// done reports whether a call was carried out; it notes one that was refused.
func (h *itemHistory) done(err error, c itemCall, client int, began time.Time) bool {
	conflict := (*item.ConflictError)(nil)
	if errors.As(err, &conflict) {
		c.done, c.held = false, conflict.Problems[0].Kind == item.Held
		h.note(client, began, c)
		return false
	}
	if err != nil {
		h.t.Errorf("%s of %d: %v", c.what, c.id, err)
	}
	return err == nil
}

// await returns when so many calls have ended, and two seconds have passed.
func (h *itemHistory) await(calls int) {
	h.t.Helper()
	time.Sleep(2 * time.Second)
	for until := time.Now().Add(soon); ; time.Sleep(10 * time.Millisecond) {
		h.mu.Lock()
		n := len(h.calls)
		h.mu.Unlock()
		if n >= calls {
			return
		}
		if time.Now().After(until) {
			h.t.Fatalf("%d calls have ended, want %d", n, calls)
		}
	}
}

// judge looks for an order of the calls of each item.
func (h *itemHistory) judge(c *engine.Client) (judged int) {
	lineage, from := map[int64]int64{}, map[int64]int64{}
	for ev, err := range c.Ledger().Replay(within(h.t, soon), ledger.ReplayOptions{}) {
		ok(h.t, err)
		switch b := ev.Body.(type) {
		case *events.ItemAdded:
			lineage[int64(b.ID)] = int64(b.ID)
		case *events.ItemReplaced:
			lineage[int64(b.To)], from[int64(b.To)] = lineage[int64(b.From)], int64(b.From)
		}
	}
	found, err := withLost(h.calls, h.lost, from)
	if err != nil {
		h.t.Error(err)
	}
	items := map[int64][]porcupine.Operation{}
	for _, op := range found {
		call := op.Input.(itemCall)
		if call.what == "claim" {
			call.id = from[call.made]
			op.Input = call
		}
		of := lineage[max(call.id, call.made)]
		if of == 0 && call.done {
			h.t.Errorf("%s of %d, which made %d, was done, and the journal knows nothing of it", call.what, call.id, call.made)
		}
		items[of] = append(items[of], op)
	}
	for of, calls := range items {
		if len(calls) == 0 || of == 0 {
			continue
		}
		if result := porcupine.CheckOperationsTimeout(itemModel, calls, 20*time.Second); result == porcupine.Illegal {
			h.t.Errorf("no order of the calls of item %d explains what clients were told: %+v", of, calls)
		} else if result == porcupine.Ok {
			judged += len(calls)
		}
	}
	return judged
}

// withLost adds a claim to the calls for each change that no client was told of. Any of the lost claims may have made
// such a change. The map from leads from the id of a changed item to the id that the item had before.
func withLost(calls, lost []porcupine.Operation, from map[int64]int64) ([]porcupine.Operation, error) {
	told := map[int64]bool{}
	for _, op := range calls {
		told[op.Input.(itemCall).made] = true
	}
	someone := porcupine.Operation{Call: math.MaxInt64}
	for _, op := range lost {
		someone.Call, someone.Return = min(someone.Call, op.Call), max(someone.Return, op.Return)
	}
	calls, left := slices.Clone(calls), len(lost)
	for made, id := range from {
		if told[made] {
			continue
		}
		if left--; left < 0 {
			return calls, fmt.Errorf("nobody was told of the change of item %d to %d, and no claim of it was lost", id, made)
		}
		someone.Input = itemCall{what: "claim", id: id, made: made, done: true}
		calls = append(calls, someone)
	}
	return calls, nil
}

// On three nodes, whose owners are killed and started again, what six clients are told of the items of a store has an
// order, item by item; a repeated key is answered as before.
func TestStore_IsLinearizableItemByItemWhileOwnersDie(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		testkit.Busy(t)
		nodes := map[string]*testcluster.Node{}
		for _, name := range []string{"a", "b", "c"} {
			nodes[name] = c.StartNode(name, nil)
		}
		clients := []*testcluster.Client{c.StartClient("one", nil), c.StartClient("two", nil), c.StartClient("three", nil)}
		h, seeds := &itemHistory{t: t, began: time.Now()}, testkit.Rand(t)
		stop := make(chan struct{})
		var all sync.WaitGroup
		for i := range 6 {
			random := rand.New(rand.NewPCG(seeds.Uint64(), 0)) // of the one client: it draws beside the others
			all.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
						h.call(clients[i%len(clients)].Client, random, i, n)
						time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
					}
				}
			})
		}
		shard := events.StoreItem("linear", 1).Shard(c.Shards())
		for n := range 2 {
			h.await(100 * (n + 1))
			shards := testcluster.AwaitShards(t, clients[0].Client, "owners", func(i engine.ShardInfo) bool {
				return i.Owner != "" && i.Problem == ""
			})
			nodes[store.NodeName(shards[shard].Owner)].Kill()
			name := fmt.Sprint("again-", n)
			nodes[name] = c.StartNode(name, nil)
		}
		h.await(300)
		close(stop)
		all.Wait()
		judged := h.judge(clients[0].Client)
		t.Logf("%d calls, %d judged", len(h.calls), judged)
		if judged < 200 {
			t.Errorf("%d calls were judged: the test shows nothing", judged)
		}
	})
}

func TestItemModel_ExplainsNoContradiction(t *testing.T) {
	for name, calls := range map[string][]itemCall{
		"removed twice":            {{what: "add", made: 1, done: true}, {what: "delete", id: 1, done: true}, {what: "delete", id: 1, done: true}},
		"an old id is changed":     {{what: "add", made: 1, done: true}, {what: "claim", id: 1, made: 2, done: true}, {what: "change", id: 1, made: 3, done: true}},
		"an old id is there":       {{what: "add", made: 1, done: true}, {what: "claim", id: 1, made: 2, done: true}, {what: "get", id: 1, done: true}},
		"what is there is missing": {{what: "add", made: 1, done: true}, {what: "get", id: 1}},
		"an old id is held":        {{what: "add", made: 1, done: true}, {what: "claim", id: 1, made: 2, done: true}, {what: "delete", id: 1, held: true}},
	} {
		var all []porcupine.Operation
		for i, c := range calls {
			all = append(all, porcupine.Operation{Input: c, Call: int64(2 * i), Return: int64(2*i + 1)})
		}
		if porcupine.CheckOperations(itemModel, all) || !porcupine.CheckOperations(itemModel, all[:len(all)-1]) {
			t.Errorf("%s is explained, or what was before it is not", name)
		}
	}
}

func TestItemHistory_AChangeOfWhichNobodyWasToldWasMadeByALostClaim(t *testing.T) {
	call := func(c itemCall, began, ended int64) porcupine.Operation {
		return porcupine.Operation{Input: c, Call: began, Return: ended}
	}
	calls := []porcupine.Operation{
		call(itemCall{what: "add", made: 1, done: true}, 0, 1),
		call(itemCall{what: "claim", id: 2, made: 3, done: true}, 6, 7),
	}
	from := map[int64]int64{2: 1, 3: 2}
	for what, one := range map[string]struct {
		lost []porcupine.Operation
		good bool
	}{
		"none was lost":          {nil, false},
		"one was lost, in time":  {[]porcupine.Operation{call(itemCall{}, 2, 3)}, true},
		"one was lost, too late": {[]porcupine.Operation{call(itemCall{}, 8, 9)}, false},
	} {
		all, err := withLost(calls, one.lost, from)
		if good := err == nil && porcupine.CheckOperations(itemModel, all); good != one.good {
			t.Errorf("%s: explained %v, %v", what, good, err)
		}
	}
}
