package etcdstore

import (
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/events"
)

// keys makes the keys of one cluster. Its value is their prefix, with the slash.
type keys string

func (k keys) meta() string           { return string(k) + "meta" }
func (k keys) copying() string        { return string(k) + "copying" }
func (k keys) nodes() string          { return string(k) + "node/" }
func (k keys) node(id string) string  { return k.nodes() + id }
func (k keys) written() string        { return string(k) + "nodes" } // in the range of the members
func (k keys) owners() string         { return string(k) + "owner/" }
func (k keys) owner(shard int) string { return k.owners() + strconv.Itoa(shard) }

func (k keys) journals() string         { return string(k) + "journal/" }
func (k keys) journal(shard int) string { return fmt.Sprintf("%s%d/", k.journals(), shard) }
func (k keys) entry(shard int, number uint64) string {
	return fmt.Sprintf("%s%016x", k.journal(shard), number)
}

func (k keys) snapshots() string        { return string(k) + "snapshot/" }
func (k keys) pointer(shard int) string { return fmt.Sprintf("%s%d", k.snapshots(), shard) }
func (k keys) parts(shard int) string   { return k.pointer(shard) + "/" }
func (k keys) part(shard int, entry uint64, epoch int64, part int) string {
	return fmt.Sprintf("%s%016x-%d/%08x", k.parts(shard), entry, epoch, part)
}

func (k keys) losses() string        { return string(k) + "lost/" }
func (k keys) loss(shard int) string { return k.losses() + strconv.Itoa(shard) }

func (k keys) mailbox() string            { return string(k) + "mailbox/" }
func (k keys) mailboxOf(shard int) string { return fmt.Sprintf("%s%d/", k.mailbox(), shard) }
func (k keys) lanes(shard int, sender string) string {
	return k.mailboxOf(shard) + sender + "/"
}
func (k keys) batch(shard int, sender string, lane uint8) string {
	return k.lanes(shard, sender) + strconv.Itoa(int(lane))
}
func (k keys) allAnswers() string           { return string(k) + "answer/" }
func (k keys) answers(sender string) string { return k.allAnswers() + sender + "/" }
func (k keys) answer(sender string, shard int, lane uint8) string {
	return fmt.Sprintf("%s%d/%d", k.answers(sender), shard, lane)
}

// end is the first key after all that start with prefix.
func end(prefix string) string { return clientv3.GetPrefixRangeEnd(prefix) }

// number reads the entry's number from its key.
func number(key []byte) (uint64, error) {
	name := string(key[strings.LastIndexByte(string(key), '/')+1:])
	n, err := strconv.ParseUint(name, 16, 64)
	if err != nil || fmt.Sprintf("%016x", n) != name {
		return 0, fmt.Errorf("%w: journal key %q: want 16 hexadecimal digits", events.ErrDamaged, key)
	}
	return n, nil
}

// laned splits "<name>/<lane>", what follows the prefix of batches and of answers.
func laned(key []byte, prefix string) (name string, lane uint8, err error) {
	name, last, _ := strings.Cut(strings.TrimPrefix(string(key), prefix), "/")
	n, err := strconv.ParseUint(last, 10, 8)
	if err != nil || name == "" {
		return "", 0, fmt.Errorf("key %q: want %s<name>/<lane>", key, prefix)
	}
	return name, uint8(n), nil
}

// validSender reports whether a sender's id can be part of a key.
func validSender(id string) bool {
	return id != "" && len(id) <= 128 &&
		strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-") == ""
}
