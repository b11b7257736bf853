package check

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/item"
)

// claimed is the field of the problem of a claim that was carried out, and whose item is no longer there.
const claimed = "claim"

// judgeRefusal holds that a refusal was right. That it has left nothing is held of the events: none of them is its.
func (j *itemJudge) judgeRefusal(c *history.ItemCall) {
	switch {
	case c.OtherRequest:
		_, request := clientOf(c)
		if !slices.ContainsFunc(j.requests[request], func(first int) bool { return j.differs(first, c) != "" }) {
			j.report(0, "%s was refused as another one of its key, and the journal has none", describeCall(c))
		}
	case len(c.Problems) > 0 && c.Problems[0].Field == claimed:
		first, problem := j.find(c)
		switch is := c.Problems[0].ID; {
		case problem != "":
			j.report(0, "%s was told that it was carried out, and %s", describeCall(c), problem)
		case j.cause(first, c)[0].ID != is || j.items[is].to > j.most(c.Return):
			j.report(j.changes[first].entry, "%s was told that item %d is its own, and no longer there", describeCall(c), is)
		}
	case len(c.Problems) > 0:
		j.judgeAnswer(c)
	}
}

// judgeAnswer holds that an answer that changed nothing was right at some moment between the call and the return, or
// each of its pages, none before the page before it.
func (j *itemJudge) judgeAnswer(c *history.ItemCall) {
	least, most := j.least(c.Call), j.most(c.Return)
	var at page
	for after := least; after <= most; after++ {
		for j.right(c, at, after) {
			if at = at.next(c); at.over {
				return
			}
		}
	}
	j.report(0, "%s was told %s, which was right at no moment, from %d changes of the store to %d", describeCall(c), told(c), least, most)
}

func told(c *history.ItemCall) string {
	if len(c.Problems) > 0 {
		return fmt.Sprint(c.Problems)
	}
	return fmt.Sprintf("of %d items: %+v", len(c.Items), c.Items)
}

// least returns a lower bound of the changes that had been made at a time, and most an upper bound.
func (j *itemJudge) least(at int64) int {
	for i := len(j.changes) - 1; i >= 0; i-- {
		if c := &j.changes[i]; c.at != 0 && c.at < at {
			return i + 1
		}
	}
	return 0
}

func (j *itemJudge) most(by int64) int {
	for i := range j.changes {
		if c := &j.changes[i]; by != 0 && c.at > by {
			return i
		}
	}
	return len(j.changes)
}

// page is a part of an answer, which has one if it is no list. The zero value is the first one.
type page struct {
	number int
	from   int   // the first of its items, among those of the answer
	behind int64 // the id of the item before it
	over   bool  // there is none
}

// next returns the page behind one.
func (p page) next(c *history.ItemCall) page {
	if p.number == len(c.Pages) {
		return page{over: true}
	}
	to := p.from + c.Pages[p.number]
	return page{number: p.number + 1, from: to, behind: c.Items[to-1].ID}
}

// items returns the items of a page, and the id of the last one that it tells of; 0 = it tells of all others.
func (p page) items(c *history.ItemCall) (items []item.Item, last int64) {
	if p.number == len(c.Pages) {
		return c.Items[p.from:], 0
	}
	items = c.Items[p.from : p.from+c.Pages[p.number]]
	return items, items[len(items)-1].ID
}

// right reports whether a page of the answer of a call was right after so many changes.
func (j *itemJudge) right(c *history.ItemCall, p page, after int) bool {
	switch {
	case c.Update != nil:
		return tells(c.Problems, j.problems(c.Update.Client, c.Update, after, j.passed(c.Call, after)))
	case c.Claim != nil:
		missing := j.problems(c.Claim.Client, &item.Update{Depends: c.Claim.Depends}, after, 0)
		free := func(v *version) bool { return v.Group == c.Claim.Group && v.At <= j.passed(c.Call, after) }
		return tells(c.Problems, missing) && (len(missing) > 0 || !slices.ContainsFunc(j.all(after), free))
	}
	items, last := p.items(c)
	asked := func(v *version) bool {
		return v.ID > p.behind && (last == 0 || v.ID <= last) && (v.Group == c.Group || slices.Contains(c.Read, v.ID))
	}
	there := slices.DeleteFunc(j.all(after), func(v *version) bool { return !asked(v) })
	return slices.EqualFunc(items, there, func(told item.Item, v *version) bool {
		return told.ID == v.ID && told.Group == v.Group && told.At == v.At && told.Owner == v.Owner && told.Claims == v.Claims && bytes.Equal(told.Data, v.Data)
	})
}

// all returns the items that are there after so many changes, by id.
func (j *itemJudge) all(after int) (there []*version) {
	for _, v := range j.items {
		if v.there(after) {
			there = append(there, v)
		}
	}
	slices.SortFunc(there, func(a, b *version) int { return cmp.Compare(a.ID, b.ID) })
	return there
}

// passed is a time that the shard had reached when it decided after so many changes, and after a call: that of an entry
// before it. How far the time had gone on since, nothing tells.
func (j *itemJudge) passed(call int64, after int) (time events.Millis) {
	if after > 0 {
		time = j.changes[after-1].time
	}
	for _, e := range j.times {
		if e.at != 0 && e.at < call {
			time = max(time, e.time)
		}
	}
	return time
}

// itemProblem is a problem that an update meets, or may meet, as it depends on the time.
type itemProblem struct {
	field string
	id    int64
	kind  item.Kind
	may   bool
}

// problems returns those of an update of a client, in their order.
func (j *itemJudge) problems(client int64, u *item.Update, after int, passed events.Millis) (all []itemProblem) {
	for _, id := range u.Depends {
		if !j.items[id].there(after) {
			all = append(all, itemProblem{"depends", id, item.NotThere, false})
		}
	}
	changeable := func(field string, id int64) (v *version, always bool) {
		v = j.items[id]
		switch {
		case !v.there(after):
			all = append(all, itemProblem{field, id, item.NotThere, false})
			return nil, false
		case v.Owner != client && v.At > passed:
			all = append(all, itemProblem{field, id, item.Held, true})
			return v, false
		}
		return v, true
	}
	for _, id := range u.Deletes {
		changeable("deletes", id)
	}
	for i := range u.Changes {
		c := &u.Changes[i]
		if v, always := changeable("updates", c.ID); v != nil && c.Group != "" && c.Group != v.Group {
			all = append(all, itemProblem{"updates", c.ID, item.OtherGroup, !always})
		}
	}
	return all
}

// tells reports whether problems that a call was told are those that it met.
func tells(told []item.Problem, met []itemProblem) bool {
	for _, m := range met {
		switch {
		case len(told) > 0 && told[0].Field == m.field && told[0].ID == m.id && told[0].Kind == m.kind:
			told = told[1:]
		case !m.may:
			return false
		}
	}
	return len(told) == 0
}
