package works

import (
	"cmp"
	"fmt"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/task"
)

// What a hold takes in an entry besides its texts: the change, the task that is created for it, and the suspension of
// that. Its key stands in parameters, too, where a byte of it may take six.
const (
	heldBytes    = 256
	holdBytes    = 1792
	holdKeyBytes = 8
)

// Position asks where the stream of the attempt's bucket begins.
type Position struct {
	Task    string // of the attempt
	Started uint64 // names the attempt
	Node    string
	Linear  bool // the answer waits for a proof of ownership
}

// Move reports how far a stream has come, and which changes are to be held.
type Move struct {
	Task    string
	Started uint64
	Node    string
	Token   []byte // empty = it stays
	Done    uint64 // of items since the move before
	Failed  uint64
	Skipped uint64
	Errors  []byte // as events.EncodeItemErrors writes them; empty = none
	Open    uint64 // changes that are known and not processed
	Oldest  int64  // when the oldest of them came; 0 = there is none
	Holds   []byte // as EncodeHolds writes them; empty = none
}

// Held reports how many changes of a hold its task has processed.
type Held struct {
	Task      string
	Started   uint64
	Node      string
	From      uint64 // so many were processed before, as the owner has said
	Processed uint64 // since then
}

// Left asks for the changes of a hold that are left.
type Left struct {
	Task    string
	Started uint64
	Node    string
	Linear  bool // the answer waits for a proof of ownership
}

func (*Position) Op() uint64 { return opPosition }
func (*Move) Op() uint64     { return opMove }
func (*Held) Op() uint64     { return opHeld }
func (*Left) Op() uint64     { return opLeft }

// Shard tells the shard of what the command names.
func (c *Position) Shard(count int) int { return shardOf(c.Task, count) }
func (c *Move) Shard(count int) int     { return shardOf(c.Task, count) }
func (c *Held) Shard(count int) int     { return shardOf(c.Task, count) }
func (c *Left) Shard(count int) int     { return shardOf(c.Task, count) }

// Size implements command.Command.
func (c *Position) Size() int { return commandBytes + len(c.Task) + len(c.Node) }

// Size implements command.Command.
func (c *Move) Size() int {
	n := commandBytes + failureBytes + 3*len(c.Task) + len(c.Node) + len(c.Token) + len(c.Errors)
	holds, err := decodeHolds(c.Holds)
	if err != nil {
		return n + len(c.Holds)
	}
	for i := range holds {
		n += holds[i].size()
	}
	return n
}

// Size implements command.Command.
func (c *Held) Size() int { return commandBytes + 2*len(c.Task) + len(c.Node) }

// Size implements command.Command.
func (c *Left) Size() int { return commandBytes + len(c.Task) + len(c.Node) }

// Limits implements command.Command.
func (c *Position) Limits() error { return limitAttempt(c.Task, c.Node) }

// Limits implements command.Command.
func (c *Left) Limits() error { return limitAttempt(c.Task, c.Node) }

// Limits implements command.Command.
func (c *Move) Limits() error {
	if err := cmp.Or(limitAttempt(c.Task, c.Node), limitToken(c.Token)); err != nil {
		return err
	}
	switch {
	case c.Open > 1<<53:
		return invalid("open", fmt.Sprintf("%d changes, want %d at most", c.Open, uint64(1)<<53))
	case c.Oldest < 0 || c.Oldest > int64(events.MaxItemTime):
		return invalid(
			"oldest",
			fmt.Sprintf("the oldest change came at %d, want 0 to %d, the years 1970 to 9999, in milliseconds",
				c.Oldest, events.MaxItemTime),
		)
	}
	errs, err := decodeErrors(c.Errors)
	if err == nil {
		err = events.CheckItems(c.items(), errs)
	}
	if err != nil {
		return invalid("errors", "want some that can be read, within their limits: "+err.Error())
	}
	holds, err := decodeHolds(c.Holds)
	if err != nil {
		return invalid("holds", "want some that can be read: "+err.Error())
	}
	for i := range holds {
		h := &holds[i]
		if err := events.CheckHeld(h.key, h.at, h.data, h.code, h.message); err != nil {
			return invalid("holds", err.Error())
		}
	}
	return nil
}

// Limits implements command.Command.
func (c *Held) Limits() error {
	if c.Processed > events.MaxHeldChanges {
		return &task.LimitError{Field: "processed changes", Limit: events.MaxHeldChanges, Got: int64(min(c.Processed, 1<<62))}
	}
	return limitAttempt(c.Task, c.Node)
}

func limitToken(token []byte) error {
	if n := len(token); n > events.MaxTokenBytes {
		return &task.LimitError{Field: "token", Limit: events.MaxTokenBytes, Got: int64(n)}
	}
	return nil
}

func (c *Move) items() events.ItemCounts {
	return events.ItemCounts{Done: c.Done, Failed: c.Failed, Skipped: c.Skipped}
}

func decodeErrors(data []byte) ([]events.ItemError, error) {
	if len(data) == 0 {
		return nil, nil
	}
	if err := wire.Scan(data); err != nil {
		return nil, err
	}
	r := wire.NewReader(data)
	all := events.DecodeItemErrors(r)
	return all, r.Close()
}

// held is a change that a Move holds.
type held struct {
	key     string
	appends bool // to the hold that the key has
	parked  bool
	passed  bool
	at      string
	data    []byte
	code    string
	message string
}

// size is at least what the change takes in an entry, with the hold that it may begin.
func (h *held) size() int {
	n := heldBytes + len(h.key) + len(h.at) + len(h.data) + len(h.code) + len(h.message)
	if !h.appends {
		n += holdBytes + holdKeyBytes*len(h.key)
	}
	return n
}

// encodeHolds writes changes that a Move holds as an array of the arrays of their fields.
func encodeHolds(all []held) []byte {
	var w wire.Writer
	w.Array(len(all))
	for i := range all {
		h := &all[i]
		w.Array(8)
		w.Bytes([]byte(h.key))
		w.Bool(h.appends)
		w.Bool(h.parked)
		w.Bool(h.passed)
		w.Bytes([]byte(h.at))
		w.Bytes(h.data)
		w.Text(h.code)
		w.Text(h.message)
	}
	return w.B
}

// decodeHolds reads what encodeHolds wrote.
func decodeHolds(data []byte) (all []held, err error) {
	if len(data) == 0 {
		return nil, nil
	}
	if err := wire.Scan(data); err != nil {
		return nil, err
	}
	r := wire.NewReader(data)
	for range r.Array() {
		var h held
		r.ArrayOf(8)
		h.key, h.appends, h.parked, h.passed = string(r.View()), r.Bool(), r.Bool(), r.Bool()
		h.at, h.data, h.code, h.message = string(r.View()), r.Bytes(), r.Text(), r.Text()
		if r.Err() != nil {
			break
		}
		all = append(all, h)
	}
	return all, r.Close()
}

// encodeChanges writes changes of a hold as an array of the arrays of their fields.
func encodeChanges(all []held) []byte {
	var w wire.Writer
	w.Array(len(all))
	for i := range all {
		w.Array(4)
		w.Bytes([]byte(all[i].at))
		w.Bytes(all[i].data)
		w.Text(all[i].code)
		w.Text(all[i].message)
	}
	return w.B
}

// decodeChanges reads what encodeChanges wrote.
func decodeChanges(data []byte) (all []held, err error) {
	if len(data) == 0 {
		return nil, nil
	}
	if err := wire.Scan(data); err != nil {
		return nil, err
	}
	r := wire.NewReader(data)
	for range r.Array() {
		var h held
		r.ArrayOf(4)
		h.at, h.data, h.code, h.message = string(r.View()), r.Bytes(), r.Text(), r.Text()
		if r.Err() != nil {
			break
		}
		all = append(all, h)
	}
	return all, r.Close()
}
