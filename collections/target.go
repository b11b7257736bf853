package collections

import (
	"cmp"
	"slices"
	"strings"

	"taskledger/events"
)

// target is a place that a collection is fetched to.
type target struct {
	to    string
	id    string // of the collection
	at    *place
	nr    int    // in the order of the file
	order string // its place with "/" as the least byte: what lies in a place follows it, before all others
}

// target refuses a file that two collections are fetched to: each run would undo the other's.
func (p *parser) target(c *Collection, l level, at *place) {
	to := c.Driver.To
	if to == "" {
		return
	}
	at = l.place("to", at)
	other, taken := p.targets[to]
	if taken && other != c.ID() { // whose name is there twice, which was told
		const want = "%q: collections %s and %s are fetched to it, want a file for each"
		p.problem(at, want, events.Head(to, shownKey), other, c.ID())
	}
	p.targets[to] = c.ID()
	p.fetched = append(p.fetched, target{
		to:    to,
		id:    c.ID(),
		at:    at,
		nr:    len(p.fetched),
		order: strings.ReplaceAll(to, "/", "\x00"),
	})
}

// nested refuses a file that is fetched to a place in another one, which would have to be a folder. It is told where
// the latter of the two stands.
func (p *parser) nested() {
	slices.SortFunc(p.fetched, func(a, b target) int { return cmp.Or(cmp.Compare(a.order, b.order), a.nr-b.nr) })
	var outer []target // each lies in the one before
	for _, t := range p.fetched {
		n := len(outer)
		for n > 0 && !strings.HasPrefix(t.to, outer[n-1].to+"/") {
			n--
		}
		outer = append(outer[:n], t)
		if n == 0 {
			continue
		}
		last, other := t, outer[n-1]
		if other.nr > last.nr {
			last, other = other, last
		}
		p.problem(last.at, "%q: it and %q of collection %s lie in one another, want places apart",
			events.Head(last.to, shownKey), events.Head(other.to, shownKey), other.id)
	}
}
