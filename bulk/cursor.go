package bulk

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"

	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
	"taskledger/projection/listing"
	"taskledger/store"
	"taskledger/task"
)

const (
	cursorVersion = 2
	// maxCursor bounds the text of a cursor: with 256 shards, and a list that goes on elsewhere in each, it is shorter.
	maxCursor = 32 << 10
)

// cursor marks the place at which a bulk operation goes on.
type cursor struct {
	Version uint64
	Cluster string // its id; "" = nobody has told it yet
	To      uint64 // the task.Operation
	DryRun  bool
	Filter  uint64   // digest of the filter, without the node
	Node    string   // session id of the filter
	Began   []uint64 // by shard, the number of its next entry when it was first heard: that and what is later came meanwhile; 0 = not heard yet
	List    string   // cursor of the list; "" = of its first page
}

// Check bounds the number of shards.
func (c *cursor) Check() error {
	if len(c.Began) > store.MaxShards {
		return fmt.Errorf("%d shards, at most %d", len(c.Began), store.MaxShards)
	}
	return nil
}

// begin returns the cursor of the first page.
func begin(f task.Filter, to task.Operation, dry bool) cursor {
	c := cursor{Version: cursorVersion, To: uint64(to), DryRun: dry, Node: f.Node}
	f.Node = ""
	c.Filter = listing.Digest(f)
	return c
}

// text returns the opaque form of the cursor: base64url of the message and its CRC-32.
func (c cursor) text() string {
	data := message.Encode(c)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data)))
}

// parse reads what text returned, and refuses what does not go on with want, the cursor of the first page.
func parse(text string, want cursor) (c cursor, err error) {
	if text == "" {
		return want, nil
	}
	if len(text) > maxCursor {
		return c, refuse("%d bytes exceed the limit of %d", len(text), maxCursor)
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(data) < crc32.Size {
		return c, refuse("it is none of a bulk operation, or was altered")
	}
	data, sum := data[:len(data)-crc32.Size], data[len(data)-crc32.Size:]
	if binary.BigEndian.Uint32(sum) != crc32.ChecksumIEEE(data) {
		return c, refuse("it is none of a bulk operation, or was altered")
	}
	r := wire.NewReader(data) // whatever another version has behind its number
	r.Array()
	if version := r.Uint(); r.Err() == nil && version != cursorVersion {
		return c, refuse("it is of version %d, this program reads %d: begin anew", version, cursorVersion)
	}
	if message.Decode(data, maxCursor, &c) != nil {
		return c, refuse("it is none of a bulk operation, or was altered")
	}
	switch {
	case c.To != want.To:
		return c, refuse("it is of another operation")
	case c.DryRun != want.DryRun:
		return c, refuse("it is of a dry run, or this is one")
	case c.Filter != want.Filter || !isSession(c.Node, want.Node):
		return c, refuse("it is of another filter")
	}
	return c, nil
}

// isSession reports whether the node of a filter, its name or a session id, is that of the cursor. The session may be
// over.
func isSession(session, node string) bool {
	if session == node {
		return true
	}
	return node != "" && strings.TrimSuffix(store.SessionID(node, ""), "-") == store.NodeName(session)
}

// hear takes in what a page tells of its cluster, and reports whether a shard was heard for the first time.
func (c *cursor) hear(page task.Page) (first bool, err error) {
	switch {
	case c.Cluster != "" && page.Cluster != "" && c.Cluster != page.Cluster:
		return false, refuse("it is of another cluster")
	case c.Began == nil:
		c.Began = make([]uint64, len(page.Nexts))
	case len(c.Began) != len(page.Nexts):
		return false, refuse("it is of a cluster of %d shards, this one has %d", len(c.Began), len(page.Nexts))
	}
	if c.Cluster == "" {
		c.Cluster = page.Cluster
	}
	for shard, next := range page.Nexts {
		if c.Began[shard] == 0 && next != 0 {
			c.Began[shard], first = next, true
		}
	}
	return first, nil
}

// since reports whether an event of a task was recorded after the operation began.
func (c *cursor) since(id events.TaskID, event events.Ref) bool {
	return event.Entry() >= c.Began[id.Shard(len(c.Began))]
}

func refuse(format string, args ...any) error {
	return &store.InvalidError{Field: "cursor", Problem: fmt.Sprintf(format, args...)}
}
