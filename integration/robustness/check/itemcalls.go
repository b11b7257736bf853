package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/item"
)

// ItemViolation describes a contradiction between a call, or an event, and the rules.
type ItemViolation struct {
	Shard int
	Entry uint64 // 0 = of no single entry
	Text  string
}

// JudgeItems holds calls against the journals of all shards.
func JudgeItems(calls []history.ItemCall, shards []*ItemJournal) (found []ItemViolation) {
	of := map[string][]*history.ItemCall{}
	for _, s := range shards {
		for name := range s.stores {
			of[name] = nil // without a call its events have come from nowhere
		}
	}
	for i := range calls {
		of[calls[i].Store] = append(of[calls[i].Store], &calls[i])
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		shard := events.StoreItem(name, 1).Shard(len(shards))
		s := shards[shard]
		l := s.stores[name]
		if l == nil {
			l = &ledger{}
		}
		if !s.Broken && !s.lost && !l.broken {
			j := &itemJudge{ledger: l, times: s.times, store: name, number: shard, calls: of[name]}
			j.judge()
			found = append(found, j.found...)
		}
	}
	return found
}

// itemJudge is the judgement of a store in the making.
type itemJudge struct {
	*ledger
	times  []moment // of the entries of the shard
	store  string
	number int // of the shard
	calls  []*history.ItemCall
	found  []ItemViolation
}

func (j *itemJudge) report(entry uint64, format string, args ...any) {
	j.found = append(j.found, ItemViolation{j.number, entry, "store " + j.store + ": " + fmt.Sprintf(format, args...)})
}

func (j *itemJudge) judge() {
	for _, c := range j.calls {
		switch {
		case c.Answer == history.Refused:
			j.judgeRefusal(c)
		case c.Answer != history.OK:
		case c.Update != nil && !c.Changes(), c.Claim != nil && len(c.Items) == 0, len(c.Read) > 0, c.Group != "":
			j.judgeAnswer(c)
		default:
			j.judgeChanges(c)
		}
	}
	for _, c := range j.calls {
		if c.Answer == history.Unknown && c.Changes() {
			j.mayHave(c)
		}
	}
	for i := range j.changes {
		if c := &j.changes[i]; !c.caused {
			j.report(c.entry, "client %d changed item %s, and no call that was recorded, and may have been carried out, asks for it", c.by, c)
		}
	}
}

// String says what the change is.
func (c *itemChange) String() string {
	show := func(v *version) string {
		if v == nil {
			return "none"
		}
		return fmt.Sprint(v.ID)
	}
	return show(c.was) + " to " + show(c.is)
}

// clientOf returns the client of a call that may change something, and "CLIENT/KEY" of one with a key.
func clientOf(c *history.ItemCall) (client int64, request string) {
	key := ""
	if c.Update != nil {
		client, key = c.Update.Client, c.Update.Key
	} else {
		client, key = c.Claim.Client, c.Claim.Key
	}
	if key != "" {
		request = fmt.Sprintf("%d/%s", client, key)
	}
	return client, request
}

// judgeChanges finds the events of a call that was acknowledged.
func (j *itemJudge) judgeChanges(c *history.ItemCall) {
	first, problem := j.find(c)
	if problem != "" {
		j.report(0, "%s was acknowledged, and %s", describeCall(c), problem)
		return
	}
	made, told := j.cause(first, c), c.Items
	entry := j.changes[first].entry
	if c.Return != 0 && j.changes[first].at > c.Return {
		j.report(entry, "%s was acknowledged before its entry was there", describeCall(c))
	}
	if len(told) != len(made) {
		j.report(entry, "%s was told of %d items, and made %d", describeCall(c), len(told), len(made))
		return
	}
	for i := range told {
		if problem := contradicts(c, i, &told[i], &made[i].Item); problem != "" {
			j.report(entry, "%s was told of item %+v, and made %+v: %s", describeCall(c), told[i], made[i].Item, problem)
		}
	}
}

// contradicts says what is wrong with an item that a call was told it made.
func contradicts(c *history.ItemCall, i int, told, made *item.Item) string {
	keeps := c.Update != nil && i >= len(c.Update.Adds) && c.Update.Changes[i-len(c.Update.Adds)].Keep
	unnamed := told.Group == "" && c.Update != nil && i >= len(c.Update.Adds) // answered again, it need not say
	switch {
	case told.ID != made.ID || told.At != made.At || told.Owner != made.Owner:
		return "another id, time or owner"
	case c.Claim != nil && told.Claims != made.Claims:
		return "another number of claims"
	case told.Group != made.Group && !unnamed:
		return "another group"
	case keeps && len(told.Data) > 0 || !keeps && !bytes.Equal(told.Data, made.Data):
		return "other data"
	}
	return ""
}

// find returns the first change of a call that was carried out, or says why it is not there.
func (j *itemJudge) find(c *history.ItemCall) (first int, problem string) {
	_, request := clientOf(c)
	switch {
	case request != "":
		all := j.requests[request]
		if len(all) == 0 {
			return 0, "its request is not in the journal"
		}
		for _, first = range all {
			if problem = j.differs(first, c); problem == "" {
				break
			}
		}
	case len(c.Items)+len(c.Problems) > 0:
		id := firstOf(c)
		made := j.items[id]
		if made == nil {
			return 0, fmt.Sprintf("there never was an item %d", id)
		}
		first = made.from - 1
		if c.Update != nil {
			first -= len(c.Update.Deletes)
		}
		problem = j.differs(first, c)
	default:
		gone := j.items[c.Update.Deletes[0]]
		if gone == nil || gone.to > len(j.changes) {
			return 0, fmt.Sprintf("item %d was not removed", c.Update.Deletes[0])
		}
		first = gone.to - 1
		problem = j.differs(first, c)
	}
	if problem == "" && request == "" && j.changes[first].caused {
		problem = "what it asks for was done once, for another call"
	}
	if at := j.changes[max(first, 0)].at; problem == "" && at != 0 && at < j.began(c, request) {
		problem = "its events were there before it was called"
	}
	return first, problem
}

// firstOf is the id of the first item that a call was told it made.
func firstOf(c *history.ItemCall) int64 {
	if len(c.Items) > 0 {
		return c.Items[0].ID
	}
	return c.Problems[0].ID // of a claim that was carried out, and whose item has gone since
}

// began returns when a call was made, or the first one of its request.
func (j *itemJudge) began(c *history.ItemCall, request string) int64 {
	began := c.Call
	for _, other := range j.calls {
		if request == "" || !other.Changes() {
			continue
		}
		if _, same := clientOf(other); same == request {
			began = min(began, other.Call)
		}
	}
	return began
}

// mayHave looks for the events of a call of which nobody knows whether it was carried out.
func (j *itemJudge) mayHave(c *history.ItemCall) {
	_, request := clientOf(c)
	for i := range j.changes {
		if is := &j.changes[i]; !is.caused && is.request == request && (is.at == 0 || is.at >= c.Call) && j.differs(i, c) == "" {
			j.cause(i, c)
			return
		}
	}
}

// cause takes down that a call caused the changes from the first one on, and returns the items that these made.
func (j *itemJudge) cause(first int, c *history.ItemCall) (made []*version) {
	for i := first; i < first+itemChangesOf(c); i++ {
		j.changes[i].caused = true
		if is := j.changes[i].is; is != nil {
			made = append(made, is)
		}
	}
	return made
}

// itemChangesOf returns the number of events of a call that was carried out.
func itemChangesOf(c *history.ItemCall) int {
	if c.Claim != nil {
		return 1
	}
	return len(c.Update.Deletes) + len(c.Update.Adds) + len(c.Update.Changes)
}

// differs says in what the changes from the first one on are not what a call asks for, "" for nothing. They are judged
// by the state that they met and by the time of their entry.
func (j *itemJudge) differs(first int, c *history.ItemCall) string {
	n := itemChangesOf(c)
	if first < 0 || first+n > len(j.changes) {
		return "its events are not in the journal"
	}
	all := j.changes[first : first+n]
	client, request := clientOf(c)
	for i := range all {
		is := &all[i]
		if is.by != client || is.entry != all[0].entry || i == 0 && is.request != request || i > 0 && is.request != "" {
			return fmt.Sprintf("event %d of it is of another request", i+1)
		}
	}
	depends := c.Claim != nil && !j.allThere(c.Claim.Depends, first) || c.Update != nil && !j.allThere(c.Update.Depends, first)
	if depends {
		return "something that it depends on was not there"
	}
	if c.Claim != nil {
		return all[0].differsFromClaim(c.Claim)
	}
	if problem := differFromUpdate(all, c.Update); problem != "" || c.MaxClaims == 0 {
		return problem
	}
	return givenUpWrongly(all, c)
}

// givenUpSuffix is the suffix of the group of items that a worker has given up.
const givenUpSuffix = "/err"

// givenUpWrongly says what is wrong with an item that a worker has given up, "" for nothing and where it has not.
func givenUpWrongly(all []itemChange, c *history.ItemCall) string {
	i := slices.IndexFunc(all, func(c itemChange) bool { return c.was == nil && strings.HasSuffix(c.is.Group, givenUpSuffix) })
	if i < 0 {
		return ""
	}
	line, data, _ := bytes.Cut(all[i].is.Data, []byte("\n"))
	var told struct {
		Group  string
		Claims int64
	}
	was := all[0].was
	switch err := json.Unmarshal(line, &told); {
	case err != nil || was == nil || len(all) != 2:
		return "what is given up is not one item"
	case told.Group != was.Group || !bytes.Equal(data, was.Data):
		return fmt.Sprintf("item %d is given up as another one", was.ID)
	case told.Claims > was.Claims || told.Claims < c.MaxClaims:
		return fmt.Sprintf("item %d is given up after %d claims, it has %d, and the worker allows %d", was.ID, told.Claims, was.Claims, c.MaxClaims)
	}
	return ""
}

func (j *itemJudge) allThere(ids []int64, after int) bool {
	return !slices.ContainsFunc(ids, func(id int64) bool { return !j.items[id].there(after) })
}

func (c *itemChange) differsFromClaim(q *item.Claim) string {
	switch {
	case c.was == nil || c.is == nil:
		return "it has another event"
	case c.was.Group != q.Group || !bytes.Equal(c.is.Data, c.was.Data):
		return fmt.Sprintf("item %d of group %q was taken, or its data were changed", c.was.ID, c.was.Group)
	case c.was.At > c.time:
		return fmt.Sprintf("item %d was claimed at %d, and is of %d until %d", c.was.ID, c.time, c.was.Owner, c.was.At)
	case c.is.At != c.time.Add(q.Duration):
		return fmt.Sprintf("item %d is claimed until %d, at %d", c.was.ID, c.is.At, c.time)
	}
	return ""
}

func differFromUpdate(all []itemChange, u *item.Update) string {
	for i := range all {
		c := &all[i]
		if problem := c.differsFrom(u, i); problem != "" {
			return fmt.Sprintf("event %d of it, %s, %s", i+1, c, problem)
		}
	}
	return ""
}

// differsFrom says in what a change is not the one of that number of an update.
func (c *itemChange) differsFrom(u *item.Update, i int) string {
	at := func(w item.When) events.Millis {
		if w > 0 {
			return events.Millis(w)
		}
		return c.time - events.Millis(w)
	}
	if i < len(u.Deletes) {
		if c.is != nil || c.was.ID != u.Deletes[i] {
			return fmt.Sprintf("does not remove %d", u.Deletes[i])
		}
		return ""
	}
	if i -= len(u.Deletes); i < len(u.Adds) {
		a := &u.Adds[i]
		if c.was != nil || c.is.Group != a.Group || c.is.At != at(a.At) || !bytes.Equal(c.is.Data, a.Data) {
			return fmt.Sprintf("does not add %+v", *a)
		}
		return ""
	}
	want := &u.Changes[i-len(u.Adds)]
	if c.was == nil || c.is == nil || c.was.ID != want.ID || want.Group != "" && want.Group != c.was.Group || c.is.At != at(want.At) {
		return fmt.Sprintf("does not change %+v", *want)
	}
	data := want.Data
	if want.Keep {
		data = c.was.Data
	}
	if !bytes.Equal(c.is.Data, data) {
		return fmt.Sprintf("has other data than %+v", *want)
	}
	return ""
}

// describeCall says who asked for what.
func describeCall(c *history.ItemCall) string {
	var b strings.Builder
	switch {
	case c.Update != nil:
		fmt.Fprintf(&b, "an update %+v", *c.Update)
	case c.Claim != nil:
		fmt.Fprintf(&b, "a claim %+v", *c.Claim)
	case c.Group != "":
		fmt.Fprintf(&b, "a question for group %q", c.Group)
	default:
		fmt.Fprintf(&b, "a question for items %d", c.Read)
	}
	fmt.Fprintf(&b, " [%d, %d]", c.Call, c.Return)
	return b.String()
}
