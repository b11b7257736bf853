package check

import (
	"sort"

	"taskledger/events"
)

// presence is when a node key was there: from its creation until before its deletion, in revisions.
type presence struct{ from, until int64 }

// ownership is the change of an owner key.
type ownership struct {
	revision int64
	owner    string
}

// checkFences holds every entry against who was present and who was the owner at its revision, and every Lost against the
// end of the session that ran the attempt.
func (c *checker) checkFences() {
	nodes, owners := c.readKeys()
	for shard, j := range c.shards {
		for _, e := range j.entries {
			c.checkFence(shard, e, nodes, owners[shard])
		}
	}
	for _, t := range c.sorted() {
		for i := range t.steps {
			if ev := t.steps[i].ev; ev != nil && ev.Kind() == events.KindLost {
				node := t.steps[i-1].state.node
				at := t.shard.entries[t.steps[i].entry-1].revision
				if p, ok := nodes[node]; !ok || p.until == 0 || p.until >= at {
					c.accuse(fenced, t, t.steps[i].entry, "Lost at revision %d, when the session of %s was not over", at, node)
				}
			}
		}
	}
}

func (c *checker) readKeys() (nodes map[string]presence, owners [][]ownership) {
	nodes, owners = map[string]presence{}, make([][]ownership, len(c.shards))
	for _, k := range c.run.Keys {
		p, seen := nodes[k.Node]
		switch {
		case k.Node == "" && (k.Shard < 0 || k.Shard >= len(owners) || k.Deleted):
			c.report(fenced, k.Shard, 0, "owner key changed at revision %d, deleted %t", k.Revision, k.Deleted)
		case k.Node == "":
			owners[k.Shard] = append(owners[k.Shard], ownership{k.Revision, k.Owner})
		case seen && p.until != 0:
			c.report(fenced, 0, 0, "the key of node %s, deleted at revision %d, is there again at %d", k.Node, p.until, k.Revision)
		case k.Deleted:
			p.until = k.Revision
			nodes[k.Node] = p
		case !seen:
			nodes[k.Node] = presence{from: k.Revision}
		}
	}
	return nodes, owners
}

func (c *checker) checkFence(shard int, e *entry, nodes map[string]presence, owners []ownership) {
	p, ok := nodes[e.Owner]
	if !ok || p.from >= e.revision || p.until != 0 && p.until <= e.revision {
		c.report(fenced, shard, e.Number, "written at revision %d by %s, whose session was there from %d until %d", e.revision, e.Owner, p.from, p.until)
		return
	}
	at := sort.Search(len(owners), func(i int) bool { return owners[i].revision >= e.revision }) - 1
	if at < 0 || owners[at].owner != e.Owner || owners[at].revision != e.Epoch {
		var now ownership
		if at >= 0 {
			now = owners[at]
		}
		c.report(fenced, shard, e.Number, "written at revision %d by %s as owner since %d; the owner was %s since %d",
			e.revision, e.Owner, e.Epoch, now.owner, now.revision)
	}
}
