package shard_test

import (
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// apart is an owner of whose tasks "x" and "y" a front says how many of their like run on which node.
type apart struct {
	*fixture
	offers map[string]*letter // by node
}

func newApart(t *testing.T, own int, nodes []string, running map[events.TaskID]map[string]int) *apart {
	a := &apart{fixture: newWorker(t, own, benchBehavior), offers: map[string]*letter{}}
	a.store.members = present(1, append([]string{selfID}, nodes...)...)
	a.cfg.Extensions = append(a.cfg.Extensions, func(*projection.Shard) shard.Extension {
		return shard.Extension{Beside: func(t *projection.Task) map[string]int { return running[t.ID] }}
	})
	a.takeOver()
	return a
}

// offer delivers the offer of a node for one attempt.
func (a *apart) offer(node string) {
	a.Helper()
	a.offers[node] = a.next("sender of "+node, command.LaneOffer, &command.Offer{
		Node:      node,
		Lease:     3000,
		Slots:     1,
		Behaviors: []command.OfferedBehavior{{Behavior: benchBehavior, Slots: 1}},
	})
	a.deliver(a.offers[node])
	a.turn()
}

// change changes what the view shows of a node.
func (a *apart) change(node string, change func(*store.NodeInfo)) {
	n := a.store.members.Nodes[node]
	change(&n)
	a.store.members.Nodes[node] = n
}

// starts submits a task and returns the node where it starts; "" = it waits.
func (a *apart) starts(id events.TaskID) string {
	a.Helper()
	c := submitOf(events.Policy{})
	c.Task = id
	a.accept(command.LaneSubmit, c)
	return a.at(id)
}

func (a *apart) at(id events.TaskID) string {
	a.Helper()
	t := a.own.State().Task(id)
	if l := a.offers[t.Node]; l != nil {
		if given := a.given(l.got[len(l.got)-1]); len(given) != 1 || given[0].Task != id {
			a.Errorf("the offer of %s is answered with %+v, want %s", t.Node, given, id)
		}
	}
	if t.OnNode() != (t.Status == task.Running) {
		a.Errorf("task %s is %s on %q", id, t.Status, t.Node)
	}
	return t.Node
}

func TestStart_GoesToTheOfferOfTheNodeWhereFewestOfItsLikeRun(t *testing.T) {
	type counts = map[string]int
	for _, c := range []struct {
		name   string
		own    int      // slots of the owner's node
		nodes  []string // they offer in this order
		counts counts
		want   string
	}{
		{"the last offer", 0, []string{"a", "b", "c"}, counts{"a": 3, "b": 2, "c": 1}, "c"},
		{"the offer in the middle", 0, []string{"a", "b", "c"}, counts{"a": 2, "b": 1, "c": 3}, "b"},
		{"the first offer", 0, []string{"a", "b", "c"}, counts{"a": 1, "b": 2, "c": 3}, "a"},
		{"a node where none runs", 0, []string{"a", "b", "c"}, counts{"a": 1, "b": 1}, "c"},
		{"the first of as many", 0, []string{"a", "b", "c"}, counts{"a": 2, "b": 1, "c": 1}, "b"},
		{"the own node where it has fewest", 1, []string{"a", "b"}, counts{selfID: 1, "a": 2, "b": 3}, selfID},
		{"the own node of as many", 1, []string{"a", "b"}, counts{selfID: 2, "a": 2, "b": 2}, selfID},
		{"another one than the own node", 1, []string{"a", "b"}, counts{selfID: 2, "a": 2, "b": 1}, "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newApart(t, c.own, c.nodes, map[events.TaskID]counts{"x": c.counts})
			for _, node := range c.nodes {
				a.offer(node)
			}
			if got := a.starts("x"); got != c.want {
				t.Errorf("it starts on %q, want %q", got, c.want)
			}
		})
	}
}

// Tasks of two parents are ready together: each one goes where fewest of its own run.
func TestStart_CountsTheLikeOfItsOwnParentAlone(t *testing.T) {
	a := newApart(t, 0, []string{"a", "b"}, map[events.TaskID]map[string]int{
		"x": {"a": 9, "b": 1},
		"y": {"a": 1, "b": 9},
	})
	a.offer("a")
	a.offer("b")
	if x, y := a.starts("x"), a.starts("y"); x != "b" || y != "a" {
		t.Errorf("they start on %q and %q, want b and a", x, y)
	}
}

func TestStart_PassesOverOffersThatItMayNotTake(t *testing.T) {
	running := map[events.TaskID]map[string]int{"x": {"a": 3, "b": 2, "c": 1}}
	for name, change := range map[string]func(a *apart){
		"of a node that drains":   func(a *apart) { a.change("c", func(n *store.NodeInfo) { n.Draining = true }) },
		"of a node that has gone": func(a *apart) { delete(a.store.members.Nodes, "c") },
	} {
		a := newApart(t, 0, []string{"a", "b", "c"}, running)
		for _, node := range []string{"a", "b", "c"} {
			a.offer(node)
		}
		change(a)
		if got := a.starts("x"); got != "b" {
			t.Errorf("%s: it starts on %q, want b", name, got)
		}
	}
}

// Node b has a free slot, fewer of the task's like, and has not offered yet. The task waits for it for half a second.
func TestStart_WaitsAMomentForTheOfferOfTheNodeWhereFewestRun(t *testing.T) {
	for name, c := range map[string]struct {
		slots  int
		offers bool
		first  string
		then   string
	}{
		"it offers":       {slots: 4, offers: true, then: "b"},
		"it never offers": {slots: 4, then: "a"},
		"it has no slot":  {slots: 1, first: "a", then: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApart(t, 0, []string{"a", "b"}, map[events.TaskID]map[string]int{"x": {"a": 2, "b": 1}})
			a.change("b", func(n *store.NodeInfo) { n.Slots, n.Behaviors = c.slots, []string{benchBehavior} })
			a.offer("a")
			if got := a.starts("x"); got != c.first {
				t.Fatalf("it starts on %q at first, want %q", got, c.first)
			}
			if c.offers {
				a.offer("b")
			} else if a.time += 499; c.first == "" {
				if a.turn(); a.at("x") != "" {
					t.Fatalf("it starts on %q after 499 ms", a.at("x"))
				}
				a.time++
				a.turn()
			}
			if got := a.at("x"); got != c.then {
				t.Errorf("it starts on %q, want %q", got, c.then)
			}
		})
	}
}
