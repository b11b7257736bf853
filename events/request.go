package events

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
	"time"

	"taskledger/internal/wire"
)

const (
	// MaxKeyBytes bounds the key of a request: its id, which is the key and a digest, has at most MaxNameBytes.
	MaxKeyBytes = MaxNameBytes - 1 - digestChars
	// MaxRequestTasks bounds the tasks that one request makes together.
	MaxRequestTasks = 1000

	digestMark  = "#"
	digestBytes = 10 // of a sum
	digestChars = digestBytes * 8 / 5

	derivedBytes = 16 // of a sum
	derivedChars = (derivedBytes*8 + 4) / 5
)

// IDEncoding writes ids that are drawn or derived: base32 with small letters, not padded.
var IDEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// TaskOfRequest returns the id of the task of a request that has a key and no id: the first 16 bytes of the SHA-256
// sum of the three, each a text of msgpack, in IDEncoding. Whoever repeats the request, in any process and release,
// names the same task.
func TaskOfRequest(principal, behavior, key string) TaskID {
	var w wire.Writer
	w.Array(3)
	w.Text(principal)
	w.Text(behavior)
	w.Text(key)
	sum := sha256.Sum256(w.B)
	return TaskID(IDEncoding.EncodeToString(sum[:derivedBytes]))
}

// DerivedFrom returns the id from which TaskOfRequest or TaskInRequest may have made another one: that id itself,
// or its part before the slash. Random ids look the same. It reports false for an id that neither of them makes.
func DerivedFrom(id TaskID) (of TaskID, ok bool) {
	text, number, many := strings.Cut(string(id), "/")
	if len(text) != derivedChars {
		return "", false
	}
	if many {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= MaxRequestTasks || strconv.Itoa(n) != number {
			return "", false
		}
	}
	for i := range len(text) {
		if c := text[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return "", false
		}
	}
	return TaskID(text), true
}

// TaskInRequest returns the id of the task with an index, 0 to MaxRequestTasks-1, of a request that makes many
// together: "id/index", where id is what TaskOfRequest derives of the request. So the tasks of a request have one
// affinity and are in one shard, which is that of id itself.
func TaskInRequest(id TaskID, index int) (TaskID, error) {
	if index < 0 || index >= MaxRequestTasks {
		return "", fmt.Errorf("task %d of request %s: want 0 to %d", index, id, MaxRequestTasks-1)
	}
	if strings.Contains(string(id), "/") {
		return "", fmt.Errorf("task %d of request %s: the id has an affinity", index, id)
	}
	of := id + "/" + TaskID(strconv.Itoa(index))
	return of, of.Validate()
}

// Request holds the request of a caller under a key. Two requests of one key are the same if all fields are equal, the
// parameters byte by byte.
type Request struct {
	Behavior  string
	Params    Payload
	NotBefore Millis        // 0 = not given
	Delay     time.Duration // 0 = not given
	Priority  int64         // 0 = not given
	Overrides
	Tags     []string
	Deadline Millis // 0 = not given
}

// Overrides stand in place of what the policy of a behavior says, for one task. A zero field overrides nothing.
type Overrides struct {
	MaxAttempts int           // 1 to MaxPolicyCount
	Timeout     time.Duration // of an attempt, up to ten years
	Retain      time.Duration // after SUCCESS, up to ten years
}

// Of returns a policy with what is overridden of it. It may have to be completed.
func (o *Overrides) Of(p Policy) Policy {
	p.MaxAttempts = cmp.Or(o.MaxAttempts, p.MaxAttempts)
	p.Timeout, p.Retain = cmp.Or(o.Timeout, p.Timeout), cmp.Or(o.Retain, p.Retain)
	return p
}

// ID identifies the request in events and tasks: the key, a "#", and the first 10 bytes of a SHA-256 sum of the rest.
func (q *Request) ID(key string) string {
	var w wire.Writer
	q.encode(&w)
	return idOf(key, &w)
}

func (q *Request) encode(w *wire.Writer) {
	described := len(q.Tags) > 0 || q.Deadline != 0
	overrides := described || q.Overrides != Overrides{}
	switch { // what a request has not is left out, as before it could: a key stays that of its request
	case described:
		w.Array(10)
	case overrides:
		w.Array(8)
	default:
		w.Array(5)
	}
	w.Text(q.Behavior)
	w.Bytes(q.Params)
	w.Int(int64(q.NotBefore))
	w.Int(int64(q.Delay))
	w.Int(q.Priority)
	if overrides {
		w.Int(int64(q.MaxAttempts))
		w.Int(int64(q.Timeout))
		w.Int(int64(q.Retain))
	}
	if described {
		EncodeTags(w, q.Tags)
		w.Int(int64(q.Deadline))
	}
}

func idOf(key string, asked *wire.Writer) string {
	sum := sha256.Sum256(asked.B)
	return key + digestMark + IDEncoding.EncodeToString(sum[:digestBytes])
}

// RequestsID returns the ID, in the form of Request.ID, of requests that make their tasks together under one key.
func RequestsID(key string, all []Request) string {
	var w wire.Writer
	w.Array(len(all))
	for i := range all {
		all[i].encode(&w)
	}
	return idOf(key, &w)
}

// RequestKey returns the key in the id of a request, and a text that is no such id unchanged.
func RequestKey(id string) string {
	if at := len(id) - digestChars - len(digestMark); at >= 0 && id[at:at+len(digestMark)] == digestMark {
		return id[:at]
	}
	return id
}
