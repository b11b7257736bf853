package stores

import (
	"fmt"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/item"
	"taskledger/projection/items"
)

// Read asks for items of a store by their ids.
type Read struct {
	Store  string
	IDs    []int64
	Linear bool // the answer waits for a proof of ownership
}

// Page asks for items of a group, by id.
type Page struct {
	Store  string
	Group  string
	After  int64 // the id before the first one
	Limit  int64
	Owned  bool // also items that are not available
	Linear bool
}

// Groups asks for the groups that have items, and their counts, in the order of their names.
type Groups struct {
	Store  string
	After  string // the name before the first one
	Linear bool
}

// Await registers a sender whose callers wait for items of a group.
type Await struct {
	Store  string
	Group  string
	Sender string // under which hints reach it
	Count  int64  // of callers; 0 = none waits any more
}

// Op implements command.Command.
func (*Read) Op() uint64   { return opRead }
func (*Page) Op() uint64   { return opPage }
func (*Groups) Op() uint64 { return opGroups }
func (*Await) Op() uint64  { return opAwait }

// Shard returns the shard of the store.
func (c *Read) Shard(count int) int   { return Shard(c.Store, count) }
func (c *Page) Shard(count int) int   { return Shard(c.Store, count) }
func (c *Groups) Shard(count int) int { return Shard(c.Store, count) }
func (c *Await) Shard(count int) int  { return Shard(c.Store, count) }

// Size implements command.Command.
func (c *Read) Size() int   { return 64 + len(c.Store) + 9*len(c.IDs) }
func (c *Page) Size() int   { return 64 + len(c.Store) + len(c.Group) }
func (c *Groups) Size() int { return 64 + len(c.Store) + len(c.After) }
func (c *Await) Size() int  { return 64 + len(c.Store) + len(c.Group) + len(c.Sender) }

// Limits of an answer to a question.
const (
	MaxItems     = 1000 // of an answer
	maxItemBytes = command.MaxAnswerBytes
)

// row is an item that travels.
type row struct {
	ID     int64
	Group  string
	At     int64
	Owner  int64
	Data   []byte
	Claims int64
}

func (r *row) bytes() int { return 48 + len(r.Group) + len(r.Data) }

// found answers a Read and a Page.
type found struct {
	Rows    []row
	Scanned int64 // of a Read: the number of ids that it has scanned
	More    bool  // of a Page: there may be others after Last
	Last    int64 // of a Page: the last id that it has scanned
}

// Check refuses more items than an answer has, before any of them is decoded.
func (f *found) Check() error {
	if len(f.Rows) > MaxItems || f.Scanned < 0 || f.Scanned > MaxItems {
		return fmt.Errorf("%d items of %d, at most %d", len(f.Rows), f.Scanned, MaxItems)
	}
	return nil
}

// rows gathers the items of an answer, as many as fit.
type rows struct {
	found
	bytes int
}

// add reports whether the item had room.
func (r *rows) add(it item.Item) bool {
	next := row{
		ID:     it.ID,
		Group:  it.Group,
		At:     int64(it.At),
		Owner:  it.Owner,
		Data:   it.Data,
		Claims: it.Claims,
	}
	if len(r.Rows) > 0 && r.bytes+next.bytes() > maxItemBytes || len(r.Rows) == MaxItems {
		return false
	}
	r.bytes += next.bytes()
	r.Rows = append(r.Rows, next)
	return true
}

// Found is the answer to a Read or a Page.
type Found struct {
	Items   []item.Item
	Scanned int   // of a Read: the number of ids that it has scanned, from the first on
	More    bool  // of a Page: there may be others after Last
	Last    int64 // of a Page: the last id that it has scanned
}

// DecodeFound reads the answer to a Read or a Page.
func DecodeFound(data []byte) (f Found, err error) {
	msg, err := command.ReadLenient[found](data)
	if err != nil {
		return f, err
	}
	f.Scanned, f.More, f.Last = int(msg.Scanned), msg.More, msg.Last
	for i := range msg.Rows {
		r := &msg.Rows[i]
		f.Items = append(f.Items, item.Item{
			ID:     r.ID,
			Group:  r.Group,
			At:     events.Millis(r.At),
			Owner:  r.Owner,
			Claims: r.Claims,
			Data:   r.Data,
		})
	}
	return f, nil
}

// groupRow is an item.Group that travels.
type groupRow struct {
	Name      string
	Available int64
	Waiting   int64
	Claimed   int64
	Bytes     int64
	Oldest    int64
}

// groupBytes bounds the bytes of a group in an answer, without its name.
const groupBytes = 48

// groups answers a Groups.
type groups struct {
	Rows []groupRow
	More bool
}

// Check refuses more groups than an answer has room for, before any of them is decoded.
func (g *groups) Check() error {
	if most := maxItemBytes / groupBytes; len(g.Rows) > most {
		return fmt.Errorf("%d groups, at most %d", len(g.Rows), most)
	}
	return nil
}

// foundGroups gathers groups, in the order of their names, as many as fit into an answer.
type foundGroups struct {
	groups
	bytes int
}

func (f *foundGroups) add(g *items.Group) bool {
	if f.bytes += groupBytes + len(g.Name); f.bytes > maxItemBytes {
		f.More = true
		return false
	}
	n := g.Counts()
	f.Rows = append(f.Rows, groupRow{
		Name:      g.Name,
		Available: int64(n.Available),
		Waiting:   int64(n.Waiting),
		Claimed:   int64(n.Claimed),
		Bytes:     g.Data(),
		Oldest:    int64(g.Oldest()),
	})
	return true
}

// DecodeGroups reads the answer to a Groups. more reports that there are others after the last one.
func DecodeGroups(data []byte) (all []item.Group, more bool, err error) {
	msg, err := command.ReadLenient[groups](data)
	if err != nil {
		return nil, false, err
	}
	for i := range msg.Rows {
		r := &msg.Rows[i]
		all = append(all, item.Group{
			Name:      r.Name,
			Available: r.Available,
			Waiting:   r.Waiting,
			Claimed:   r.Claimed,
			Bytes:     r.Bytes,
			Oldest:    events.Millis(r.Oldest),
		})
	}
	return all, msg.More, nil
}

// Awaited answers an Await.
type Awaited struct {
	Group     string
	Available int64 // items of the group
	DueIn     int64 // ms until the next one is; -1 = none waits for its time
}

// Encode writes the answer.
func (a Awaited) Encode() []byte { return message.Encode(a) }

// DecodeAwaited reads what Encode writes.
func DecodeAwaited(data []byte) (Awaited, error) { return command.ReadLenient[Awaited](data) }

// Hint notifies a sender that items of a group are there for so many of its callers.
type Hint struct {
	Store string
	Group string
	Count int64
}

// EncodeHint writes a hint, and DecodeHint reads it.
func EncodeHint(h Hint) []byte { return message.Encode(h) }

// DecodeHint reads what EncodeHint writes.
func DecodeHint(data []byte) (Hint, error) { return command.ReadLenient[Hint](data) }
