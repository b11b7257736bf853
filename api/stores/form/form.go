// Package form has the JSON forms of tasks in a task store, and of what changes them: between a server and whoever asks
// it.
package form

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"taskledger/item"
	"taskledger/store"
)

// Task is an item as it is served, which can be sent back in adds and updates. Of data, data64 and keep it has one.
type Task struct {
	ID       int64   `json:"id"`
	Group    string  `json:"group"`
	Data     *string `json:"data,omitempty"`
	Data64   []byte  `json:"data64,omitempty"` // data that are no UTF-8
	Keep     bool    `json:"keep,omitempty"`   // the data did not change, and this answer does not repeat them
	Timespec int64   `json:"timespec"`
	OwnerID  int64   `json:"ownerid"`
	Claims   int64   `json:"claims,omitempty"` // how often it was claimed since it was added, or got other data
}

// Kept returns the form of an item whose data an update has kept.
func Kept(it *item.Item) Task {
	return Task{
		ID:       it.ID,
		Group:    it.Group,
		Keep:     true,
		Timespec: int64(it.At),
		OwnerID:  it.Owner,
	}
}

// Tasks is the answer to an update and to a claim.
type Tasks struct {
	Tasks []Task `json:"tasks"`
}

// TaskOf returns the form of an item.
func TaskOf(it *item.Item) Task {
	t := Task{
		ID:       it.ID,
		Group:    it.Group,
		Timespec: int64(it.At),
		OwnerID:  it.Owner,
		Claims:   it.Claims,
	}
	if utf8.Valid(it.Data) {
		data := string(it.Data)
		t.Data = &data
	} else {
		t.Data64 = it.Data
	}
	return t
}

// Group counts the tasks of a group.
type Group struct {
	Group     string `json:"group"`
	Tasks     int64  `json:"tasks"`
	Available int64  `json:"available"`
	Waiting   int64  `json:"waiting"`          // for their timespec, and not claimed
	Claimed   int64  `json:"claimed"`          // or put off since they were
	Bytes     int64  `json:"bytes"`            // of data
	Oldest    int64  `json:"oldest,omitempty"` // since when the first available one is, in milliseconds
}

// GroupOf returns the form of the counts of a group.
func GroupOf(g *item.Group) Group {
	return Group{
		Group:     g.Name,
		Tasks:     g.Available + g.Waiting + g.Claimed,
		Available: g.Available,
		Waiting:   g.Waiting,
		Claimed:   g.Claimed,
		Bytes:     g.Bytes,
		Oldest:    int64(g.Oldest),
	}
}

// Update is the body of an update.
type Update struct {
	ClientID int64    `json:"clientid"`
	Adds     []Add    `json:"adds,omitempty"`
	Updates  []Change `json:"updates,omitempty"`
	Deletes  []int64  `json:"deletes,omitempty"`
	Depends  []int64  `json:"depends,omitempty"`
}

// Add is a task to be added.
type Add struct {
	ID       int64  `json:"id,omitempty"` // ignored: what was served can be sent back
	Group    Text   `json:"group"`
	Data     *Text  `json:"data,omitempty"`   // default: empty
	Data64   *Bytes `json:"data64,omitempty"` // instead of data
	Timespec int64  `json:"timespec,omitempty"`
	OwnerID  int64  `json:"ownerid,omitempty"` // ignored
	Claims   int64  `json:"claims,omitempty"`  // ignored
}

// Change is a task to be changed.
type Change struct {
	ID       int64  `json:"id"`
	Group    Text   `json:"group,omitempty"` // that of the task, if at all
	Data     *Text  `json:"data,omitempty"`  // default: empty
	Data64   *Bytes `json:"data64,omitempty"`
	Keep     bool   `json:"keep,omitempty"` // instead of data: they stay as they are
	Timespec int64  `json:"timespec,omitempty"`
	OwnerID  int64  `json:"ownerid,omitempty"` // ignored
	Claims   int64  `json:"claims,omitempty"`  // ignored
}

// Claim is the body of a claim.
type Claim struct {
	ClientID int64   `json:"clientid"`
	Group    Text    `json:"group"`
	Duration int64   `json:"duration,omitempty"` // in milliseconds; default 30,000
	Wait     int64   `json:"wait,omitempty"`     // in milliseconds, 60,000 at most
	Depends  []int64 `json:"depends,omitempty"`
}

// Request makes an update of it, which package item has to validate.
func (u *Update) Request() (*item.Update, error) {
	is := &item.Update{
		Client:  u.ClientID,
		Depends: u.Depends,
		Deletes: u.Deletes,
		Changes: make([]item.Change, len(u.Updates)),
		Adds:    make([]item.Add, len(u.Adds)),
	}
	for i := range u.Adds {
		a := &u.Adds[i]
		data, err := oneOf("adds", i, a.Data, a.Data64)
		if err != nil {
			return nil, err
		}
		is.Adds[i] = item.Add{Group: string(a.Group), At: item.When(a.Timespec), Data: data}
	}
	for i := range u.Updates {
		c := &u.Updates[i]
		data, err := oneOf("updates", i, c.Data, c.Data64)
		if err != nil {
			return nil, err
		}
		if c.Keep && (c.Data != nil || c.Data64 != nil) {
			return nil, invalid(fmt.Sprintf("updates[%d].keep", i), "with data: want one of them")
		}
		is.Changes[i] = item.Change{
			ID:    c.ID,
			Group: string(c.Group),
			At:    item.When(c.Timespec),
			Data:  data,
			Keep:  c.Keep,
		}
	}
	return is, nil
}

// Request makes a claim of it, which package item has to validate.
func (c *Claim) Request() (*item.Claim, error) {
	is := &item.Claim{Client: c.ClientID, Group: string(c.Group), Depends: c.Depends}
	duration := cmp.Or(c.Duration, item.DefaultDuration.Milliseconds())
	var err error
	if is.Duration, err = Millis("duration", duration, item.MinDuration, item.MaxDuration); err == nil {
		is.Wait, err = Millis("wait", c.Wait, 0, item.MaxWait)
	}
	return is, err
}

// Millis converts milliseconds to a duration, and refuses those beyond the bounds.
func Millis(field string, n int64, least, most time.Duration) (time.Duration, error) {
	if n < least.Milliseconds() || n > most.Milliseconds() {
		return 0, invalid(field, "%d: want %d to %d, in milliseconds", n, least.Milliseconds(), most.Milliseconds())
	}
	return time.Duration(n) * time.Millisecond, nil
}

// Errors is the answer to a request that was refused.
type Errors struct {
	Errors   []string  `json:"errors"`
	Problems []Problem `json:"problems,omitempty"` // the same for programs, of a conflict
}

// Problem is why the tasks of a store do not allow what was asked.
type Problem struct {
	Field string `json:"field"`        // depends, deletes, updates, or claim for what was claimed and has gone
	ID    int64  `json:"id,omitempty"` // of the task
	Kind  string `json:"kind"`         // not-there, held or other-group; there may be others
	Text  string `json:"text"`
}

// ErrorsOf returns the form of a conflict.
func ErrorsOf(e *item.ConflictError) Errors {
	var all Errors
	for _, p := range e.Problems {
		all.Errors = append(all.Errors, p.String())
		all.Problems = append(all.Problems, Problem{
			Field: p.Field,
			ID:    p.ID,
			Kind:  string(p.Kind),
			Text:  p.Text,
		})
	}
	return all
}

// Conflict returns the error of a store that has the form e.
func (e *Errors) Conflict(store string) *item.ConflictError {
	c := &item.ConflictError{Store: store}
	for _, p := range e.Problems {
		c.Problems = append(c.Problems, item.Problem{
			Field: p.Field,
			ID:    p.ID,
			Kind:  item.Kind(p.Kind),
			Text:  p.Text,
		})
	}
	for _, text := range e.Errors[min(len(e.Problems), len(e.Errors)):] {
		c.Problems = append(c.Problems, item.Problem{Text: text})
	}
	return c
}

func oneOf(field string, i int, data *Text, other *Bytes) ([]byte, error) {
	switch {
	case data != nil && other != nil:
		return nil, invalid(fmt.Sprintf("%s[%d].data64", field, i), "with data: want one of them")
	case data != nil:
		return []byte(*data), nil
	case other != nil:
		return *other, nil
	}
	return nil, nil
}

// Text is a JSON text that means what it says: encoding/json takes half of a surrogate pair for U+FFFD.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		if string(data) == "null" {
			return nil
		}
		return invalid("text", "%.32s: want a text", data)
	}
	if bytes.IndexByte(data, '\\') < 0 && utf8.Valid(data) { // most are as they are written
		*t = Text(data[1 : len(data)-1])
		return nil
	}
	if at := loneSurrogate(data); at >= 0 {
		return invalid("text", "%s is half of a pair: want UTF-8, or data64", data[at:at+6])
	}
	return json.Unmarshal(data, (*string)(t))
}

// loneSurrogate returns the place of half of a surrogate pair in a JSON text, -1 for none.
func loneSurrogate(data []byte) int {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		switch unit := unitAt(data, i); {
		case unit < 0:
			i++ // an escape of one character
		case unit >= 0xd800 && unit < 0xdc00:
			if low := unitAt(data, i+6); low < 0xdc00 || low > 0xdfff {
				return i
			}
			i += 11
		case unit >= 0xdc00 && unit <= 0xdfff:
			return i
		default:
			i += 5
		}
	}
	return -1
}

// unitAt returns the number of a \u escape, -1 where there is none.
func unitAt(data []byte, i int) int64 {
	if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(data[i+2:i+6]), 16, 16)
	if err != nil {
		return -1
	}
	return int64(n)
}

// Bytes is data in base64.
type Bytes []byte

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var is string
	if err := json.Unmarshal(data, &is); err != nil {
		return invalid("data64", "want a text in base64")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(is)
	if err != nil {
		return invalid("data64", "%s", err)
	}
	*b = raw
	return nil
}

const (
	// scanned is the size above which the elements of a body are counted before each takes many times the memory of its
	// text.
	scanned = 64 << 10
	// maxMarks are the commas of 1,000 elements with 7 fields each, and more.
	maxMarks = 10 * item.MaxIDs
)

// invalid returns the error of a request with a wrong field.
func invalid(field, format string, args ...any) error {
	return &store.InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Few refuses a body with more elements than any request may have.
func Few(body []byte) error {
	if len(body) <= scanned {
		return nil
	}
	marks, inText := 0, false
	for i := 0; i < len(body); i++ {
		switch {
		case inText && body[i] == '\\':
			i++
		case body[i] == '"':
			inText = !inText
		case !inText && body[i] == ',':
			marks++
		}
	}
	if marks > maxMarks {
		return invalid("body", "want at most %d ids and adds together", item.MaxIDs)
	}
	return nil
}
