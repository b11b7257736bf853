package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"taskledger/events"
	"taskledger/ledger/exportform"
	"taskledger/ledger/internal/earlier"
	"taskledger/projection"
	"taskledger/projection/journal"
	"taskledger/store"
)

// ExportVerification holds the findings of VerifyExport about a file.
type ExportVerification struct {
	Verification
	Cluster    string        `json:"cluster"`
	Task       events.TaskID `json:"task,omitempty"`       // the task whose history it is; "" = it is a whole shard
	Checkpoint string        `json:"checkpoint,omitempty"` // signed note of its last entry; the caller has to check the signatures
}

// VerifyExport checks a file that ExportShard or ExportTask wrote, without a cluster: that its entries and events agree
// with their hashes, that none is missing between the first and the last one, that they contradict no loss which is
// recorded, and that every transition is legal, unless the file is of a shard and does not begin with its first entry.
// Only a comparison with kept checkpoints shows whether the chain is the right one; heads of entries that are not in
// the file are left out, and Heads counts the others.
//
// A file without damage proves of a task that these events happened in this order, and that nothing else happened to it
// between them; it does not prove that nothing happened after the last one. No entry names its cluster: Cluster is what
// the file says, which a checkpoint alone proves. Damage is part of the result; an error means that the file is no
// export or cannot be read.
func VerifyExport(file io.Reader, against ...Checkpoint) (ExportVerification, error) {
	return ReadExport(file, nil, against...)
}

// ReadExport is VerifyExport, and shows the events of the lines before the first damage, in order. What an Event says
// of its task beside the event itself is known where the file has what came before, unless 32,768 other tasks were
// met since. An error of show ends ReadExport, which returns it.
func ReadExport(file io.Reader, show func(Event) error, against ...Checkpoint) (ExportVerification, error) {
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, exportform.MaxLine)
	v := exportVerifier{against: against, show: show}
	if err := v.header(lines); err != nil {
		return v.ExportVerification, err
	}
	for v.Damage == "" && !v.ended && v.unshown == nil && lines.Scan() {
		v.line(lines.Bytes())
	}
	switch err := lines.Err(); {
	case v.unshown != nil:
		return v.ExportVerification, v.unshown
	case errors.Is(err, bufio.ErrTooLong):
		v.damaged(unread(err), v.next, "%v", err)
	case err != nil:
		return v.ExportVerification, fmt.Errorf("read export: %w", err)
	case v.Damage == "" && (!v.ended || lines.Scan()):
		v.damaged(DamageMissing, v.next, "the file does not end with its last line")
	}
	return v.ExportVerification, nil
}

// exportVerifier reads an export line by line.
type exportVerifier struct {
	ExportVerification
	against []Checkpoint
	heads   headsByEntry
	next    uint64 // number of the entry that the next line must be of
	state   *projection.Shard
	lost    *journal.Checker
	task    *projection.Task // of the export of a task
	ended   bool
	show    func(Event) error // nil = nobody wants to see them
	met     earlier.Memory
	unshown error // of show
}

func (v *exportVerifier) header(lines *bufio.Scanner) error {
	var h exportform.Header
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &h) != nil || h.Format != exportform.Format {
		return &store.InvalidError{Field: "file", Problem: "not an export of taskledger"}
	}
	if h.Version != exportform.Version {
		return &store.InvalidError{
			Field:   "file",
			Problem: fmt.Sprintf("export version %d, this program reads %d", h.Version, exportform.Version),
		}
	}
	if h.From == 0 {
		return &store.InvalidError{Field: "file", Problem: "export from entry 0, want 1 or more"}
	}
	v.Cluster, v.Shard, v.Task, v.From, v.Hash, v.next = h.Cluster, h.Shard, h.Task, h.From, h.Prev, h.From
	v.state, v.lost = projection.NewShard(h.Shard), journal.NewChecker(h.From, h.Prev)
	if h.Task != "" {
		v.state.OnlySome()
	}
	heads, err := headsOf(v.against, store.Cluster{ID: h.Cluster, Shards: store.MaxShards})
	v.heads = heads[h.Shard]
	if err == nil && !exportform.AsWritten(&h, lines.Bytes()) {
		v.damaged(DamageGarbled, v.next, "the first line is not as it was written")
	}
	return err
}

// line checks a line after the header.
func (v *exportVerifier) line(text []byte) {
	var l exportform.Line
	var e *events.Entry
	err := exportform.Parse(text, &l)
	switch {
	case err != nil:
	case l.End != 0:
		v.end(&l)
		return
	case l.Entry != nil && v.Task == "":
		e, err = v.entry(l.Entry)
	case l.Head != nil && v.Task != "":
		e, err = v.excerpt(&events.Excerpt{Head: l.Head, Digests: l.Digests, Origins: l.Origins, Shown: l.Shown})
	case l.Link != nil && v.Task != "":
		e = &events.Entry{Hash: events.Link{Head: *l.Link, Digests: l.Digests}.After(v.Hash)}
	default:
		err = fmt.Errorf("%w: a line of no known kind", events.ErrDamaged)
	}
	if err != nil {
		v.damaged(DamageGarbled, v.next, "%v", err)
		return
	}
	if v.Damage != "" {
		return
	}
	v.Hash, v.Entries = e.Hash, v.next
	if want, kept := v.heads[v.next]; kept {
		v.Heads++
		if want.Hash != e.Hash {
			v.damaged(DamageCheckpoint, v.next, replaced, e.Hash, want.Hash)
		} else {
			v.ProvedTo = v.next
		}
	}
	v.next++
	v.showAll(e.Events)
}

// entry checks a whole entry.
func (v *exportVerifier) entry(data []byte) (*events.Entry, error) {
	e, err := events.Decode(data)
	if err != nil {
		return nil, err
	}
	if !v.follows(e) {
		return e, nil
	}
	v.Events += uint64(len(e.Events))
	lost, problem := v.lost.Read(e)
	if v.Losses = append(v.Losses, lost...); len(v.Losses) > journal.MaxLosses {
		v.Losses = slices.Clone(v.Losses[len(v.Losses)-journal.MaxLosses:])
	}
	if v.From == 1 {
		if err := v.state.Replay(e); errors.Is(err, projection.ErrChain) {
			v.damaged(DamageChain, e.Number, "%v", err)
		} else if err != nil {
			v.damaged(DamageTransition, e.Number, "%v", err)
		}
		v.Tasks = v.state.Len()
	}
	if problem != "" {
		v.damaged(DamageLoss, e.Number, "%s", problem)
	}
	return e, nil
}

// excerpt checks an entry of which the events of the task are shown.
func (v *exportVerifier) excerpt(x *events.Excerpt) (*events.Entry, error) {
	e, err := x.Open()
	if err != nil {
		return nil, err
	}
	if !v.follows(e) {
		return e, nil
	}
	for i := range e.Events {
		ev := &e.Events[i]
		if ev.Task != v.Task {
			return nil, fmt.Errorf("%w: an event of %s", events.ErrDamaged, ev.Task)
		}
		if v.task, err = v.state.Apply(v.task, ev); err != nil {
			v.damaged(DamageTransition, e.Number, "%v", err)
			return e, nil
		}
		v.Events++
	}
	v.Tasks = 1
	return e, nil
}

// showAll shows the events of a line in which no damage was found.
func (v *exportVerifier) showAll(all []events.Event) {
	for i := range all {
		if v.show == nil || v.Damage != "" || v.unshown != nil {
			break
		}
		ev := &all[i]
		k, _ := v.met.Of(ev.Task)
		v.unshown = v.show(tell(&k, ev))
		v.met.Keep(ev.Task, k)
	}
}

// follows notes damage unless the entry is the next one.
func (v *exportVerifier) follows(e *events.Entry) bool {
	switch {
	case int(e.Shard) != v.Shard || e.Number < v.next:
		v.damaged(DamageOrder, v.next, "entry %d of shard %d stands in its place", e.Number, e.Shard)
	case e.Number > v.next:
		v.damaged(DamageMissing, v.next, "entry %d stands in its place", e.Number)
	case e.Prev != v.Hash:
		v.damaged(DamageChain, e.Number, "it follows hash %s, the entries before have %s", e.Prev, v.Hash)
	default:
		return true
	}
	return false
}

// end checks the last line.
func (v *exportVerifier) end(l *exportform.Line) {
	v.ended, v.Checkpoint = true, l.Checkpoint
	switch {
	case l.End >= v.next:
		v.damaged(DamageMissing, v.next, "the file should end with entry %d", l.End)
	case l.End != v.Entries || l.Hash == nil || *l.Hash != v.Hash:
		v.damaged(DamageChain, v.Entries, "the last line is of another entry")
	}
}
