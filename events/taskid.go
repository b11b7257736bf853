package events

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// TaskID names a task in the cluster: "affinity/name" or "name", 1 to 128 bytes of [A-Za-z0-9._:-] around at most one
// slash. Tasks of one affinity live in one shard and can change together.
type TaskID string

// Settings is an id that no task has: the shard that it selects holds the settings of the cluster.
const Settings TaskID = "cluster/settings"

// Validate returns an error that says which rule the id breaks.
func (id TaskID) Validate() error {
	if id == "" {
		return fmt.Errorf("task id: empty")
	}
	if len(id) > MaxIDBytes {
		return fmt.Errorf("task id: %d bytes exceed the limit of %d", len(id), MaxIDBytes)
	}
	slash := -1
	for i := range len(id) {
		switch c := id[i]; {
		case inID[c]:
		case c == '/' && slash < 0:
			slash = i
		default:
			return fmt.Errorf("task id %q: byte %d is %s, want [A-Za-z0-9._:-] and at most one slash",
				id, i, shown(string(id[i:])))
		}
	}
	if slash == 0 || slash == len(id)-1 {
		return fmt.Errorf("task id %q: nothing on one side of the slash", id)
	}
	for side := range strings.SplitSeq(string(id), "/") {
		if side == "." || side == ".." {
			return fmt.Errorf("task id %q: %s alone on one side of the slash has another meaning in a URL", id, side)
		}
	}
	return nil
}

// shown is the first character of a text, or its first byte where it is no UTF-8.
func shown(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && size <= 1 {
		return fmt.Sprintf("0x%02X", text[0])
	}
	return strconv.QuoteRune(r)
}

// inID tells which bytes a task id may have besides its slash.
var inID = func() (in [256]bool) {
	for c := range in {
		in[c] = isAlphanumeric(byte(c)) || strings.IndexByte("._:-", byte(c)) >= 0
	}
	return in
}()

// Affinity returns the part before the slash, or the whole id where there is no slash.
func (id TaskID) Affinity() string {
	affinity, _, _ := strings.Cut(string(id), "/")
	return affinity
}

// Shard returns the shard in which the task lives in a cluster of count shards: XXH64(affinity), with seed 0, modulo
// count. It is part of the stored format.
func (id TaskID) Shard(count int) int {
	return int(xxhash.Sum64String(id.Affinity()) % uint64(count))
}

// ShardOf returns the shard of every task of an affinity, in a cluster of count shards.
func ShardOf(affinity []byte, count int) int { return int(xxhash.Sum64(affinity) % uint64(count)) }

// ValidateBehavior returns an error when id is not 1 to 48 bytes of [a-z0-9-].
func ValidateBehavior(id string) error {
	if id == "" || len(id) > MaxBehaviorBytes {
		return fmt.Errorf("behavior id %q: %d bytes, want 1 to %d", id, len(id), MaxBehaviorBytes)
	}
	for i := range len(id) {
		if c := id[i]; !isAlphanumeric(c) && c != '-' || c >= 'A' && c <= 'Z' {
			return fmt.Errorf("behavior id %q: byte %d is %q, want [a-z0-9-]", id, i, c)
		}
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
