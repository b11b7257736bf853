package events

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Ref is the place of an event within its shard's journal: entry*2^20 + index. Refs of a shard order its events; the
// Ref of a Started is the fencing token of the attempt. 0 means none: entries count from 1.
type Ref uint64

const (
	indexBits      = 20
	maxEntryNumber = 1<<(64-indexBits) - 1 // what a Ref can hold
)

// RefOf returns the Ref of the index-th event, counting from 0, of an entry.
func RefOf(entry uint64, index int) Ref { return Ref(entry<<indexBits | uint64(index)) }

// Entry is the number of the entry that holds the event.
func (r Ref) Entry() uint64 { return uint64(r) >> indexBits }

// Index is the place of the event in its entry, counting from 0.
func (r Ref) Index() int { return int(r & (MaxEntryEvents - 1)) }

// Position is the place of an event in the cluster. Positions of different shards have no order.
type Position struct {
	Shard uint16
	Ref   Ref
}

// String returns "<shard>.<entry>.<index>".
func (p Position) String() string { return string(p.Append(nil)) }

// Append appends String to dst.
func (p Position) Append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, uint64(p.Shard), 10)
	dst = strconv.AppendUint(append(dst, '.'), p.Ref.Entry(), 10)
	return strconv.AppendInt(append(dst, '.'), int64(p.Ref.Index()), 10)
}

// MarshalText is String.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is ParsePosition.
func (p *Position) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePosition(string(b))
	return err
}

// ParsePosition reads what String returns.
func ParsePosition(s string) (Position, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return Position{}, fmt.Errorf("position %q: want shard.entry.index", s)
	}
	shard, err1 := strconv.ParseUint(parts[0], 10, 16)
	entry, err2 := strconv.ParseUint(parts[1], 10, 64-indexBits)
	index, err3 := strconv.ParseUint(parts[2], 10, indexBits)
	if err1 != nil || err2 != nil || err3 != nil {
		return Position{}, fmt.Errorf("position %q: want shard.entry.index", s)
	}
	return Position{uint16(shard), RefOf(entry, int(index))}, nil
}

// Millis is a point in time: milliseconds since 1970 UTC. 0 means none.
type Millis int64

// MillisOf converts t, the zero time to 0.
func MillisOf(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	return Millis(t.UnixMilli())
}

// Time converts to UTC, 0 to the zero time.
func (m Millis) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// Milliseconds returns a duration of n milliseconds; where that overflows, the longest one in whole milliseconds.
func Milliseconds(n int64) time.Duration {
	return time.Duration(min(max(n, -maxMillis), maxMillis)) * time.Millisecond
}

// maxMillis is beyond every limit, and does not overflow.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

// Add returns the time d later, rounded down to milliseconds.
func (m Millis) Add(d time.Duration) Millis { return m + Millis(d.Milliseconds()) }

// Text is MarshalText as a string.
func (m Millis) Text() string {
	text, _ := m.MarshalText()
	return string(text)
}

// MarshalText returns RFC 3339 with milliseconds, and nothing for 0.
func (m Millis) MarshalText() ([]byte, error) {
	if m == 0 {
		return nil, nil
	}
	return m.Time().AppendFormat(nil, "2006-01-02T15:04:05.000Z07:00"), nil
}

// UnmarshalText reads RFC 3339 or nothing.
func (m *Millis) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*m = 0
		return nil
	}
	t, err := time.Parse(time.RFC3339, string(b))
	*m = MillisOf(t)
	return err
}
