package history

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"taskledger/internal/wire"
)

// Key is a key of etcd, as package etcdstore specifies it.
type Key struct {
	Kind   string // "meta", "nodes", "node", "owner", "journal", "snapshot", "mailbox", "answer", or one that nobody specifies
	Shard  int    // of owner, journal, snapshot, mailbox and answer
	Number uint64 // of journal: of the entry
	Sender string // of node: the session id; of mailbox and answer: who sends
}

// KeyOf reads a key, without the name of the cluster and the slash after it.
func KeyOf(path string) (k Key, err error) {
	parts := strings.Split(path, "/")
	k.Kind = parts[0]
	switch {
	case k.Kind == "node" && len(parts) == 2:
		k.Sender = parts[1]
	case k.Kind == "owner" && len(parts) == 2, k.Kind == "snapshot" && len(parts) >= 2:
		k.Shard, err = strconv.Atoi(parts[1])
	case k.Kind == "journal" && len(parts) == 3:
		if k.Shard, err = strconv.Atoi(parts[1]); err == nil {
			k.Number, err = strconv.ParseUint(parts[2], 16, 64)
		}
	case k.Kind == "mailbox" && len(parts) == 4:
		k.Sender = parts[2]
		k.Shard, err = strconv.Atoi(parts[1])
	case k.Kind == "answer" && len(parts) == 4:
		k.Sender = parts[1]
		k.Shard, err = strconv.Atoi(parts[2])
	case slices.Contains([]string{"node", "owner", "snapshot", "journal", "mailbox", "answer"}, k.Kind):
		err = fmt.Errorf("%d parts", len(parts))
	}
	if err != nil {
		err = fmt.Errorf("key %s: %w", path, err)
	}
	return k, err
}

// Outlives reports whether the key is of those that are there when all processes have stopped.
func (k Key) Outlives() bool {
	return slices.Contains([]string{"meta", "nodes", "owner", "journal", "snapshot"}, k.Kind)
}

// Change is the change of a node or owner key at a revision; of is false for other keys.
func (k Key) Change(value []byte, revision int64, deleted bool) (c KeyChange, of bool, err error) {
	c = KeyChange{Revision: revision, Deleted: deleted}
	switch k.Kind {
	case "node":
		c.Node = k.Sender
		if !deleted {
			err = c.readNode(value)
		}
		return c, true, err
	case "owner":
		c.Shard = k.Shard
		if !deleted {
			c.Owner, err = ownerOf(value)
		}
		return c, true, err
	}
	return c, false, nil
}

// readNode reads what the value of a node key says of its slots.
func (c *KeyChange) readNode(value []byte) error {
	err := wire.Scan(value)
	if err == nil {
		r := wire.NewReader(value)
		r.Array()
		r.Uint() // version
		for range 3 {
			r.Text() // name, version, address
		}
		behaviors := make([]string, r.Array())
		for i := range behaviors {
			behaviors[i] = r.Text()
		}
		r.Text() // types
		c.Slots, c.Behaviors = int(r.Int()), strings.Join(behaviors, " ")
		r.Bool() // owner
		c.Draining, err = r.Bool(), r.Err()
	}
	if err != nil {
		return fmt.Errorf("node key: %w", err)
	}
	return nil
}

// ownerOf reads the value of an owner key.
func ownerOf(value []byte) (session string, err error) {
	if err = wire.Scan(value); err == nil {
		r := wire.NewReader(value)
		r.Array()
		r.Uint() // version
		session, err = r.Text(), r.Err()
	}
	if err != nil {
		return "", fmt.Errorf("owner key: %w", err)
	}
	return session, nil
}

// IsSlot reports whether the value of a mailbox key is an empty slot: a late copy of what made it, which a sweep removes.
func IsSlot(value []byte) bool {
	if wire.Scan(value) != nil {
		return false
	}
	r := wire.NewReader(value)
	r.Array()
	r.Uint() // version
	return len(r.Bytes()) == 0 && r.Err() == nil
}
