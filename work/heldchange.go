package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"taskledger/work/feed"
)

// heldChange is a change as a hold has it. A message that is too long to be held has its place alone.
type heldChange struct {
	Key   string          `json:"key"`
	Token string          `json:"token,omitempty"`
	Value json.RawMessage `json:"value,omitempty"` // nil = the change could not be read, or is in its message alone
	// Unread tells why the change could not be read, and Code is the code of that.
	Unread  string       `json:"unread,omitempty"`
	Code    string       `json:"code,omitempty"`
	Place   uint64       `json:"place,omitempty"`   // of the message
	Index   int          `json:"index,omitempty"`   // of the change in the message, from 0 on
	Whole   bool         `json:"whole,omitempty"`   // the message could not be read
	Message *heldMessage `json:"message,omitempty"` // of Whole
	// Taken tells, of a message that is held by its place alone, when its source took it: another message has another
	// time.
	Taken time.Time `json:"taken,omitzero"`
}

// heldMessage is a message as a hold has it.
type heldMessage struct {
	Subject string              `json:"subject"`
	Header  map[string][]string `json:"header,omitempty"`
	Data    []byte              `json:"data"`
	Time    time.Time           `json:"time"`
}

// heldTime returns the time of a message as it is held: none for one that JSON cannot tell.
func heldTime(t time.Time) time.Time {
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return time.Time{}
	}
	return t
}

// message returns the message that is held.
func (h *heldChange) message() feed.Message {
	return feed.Message{
		Place:   h.Place,
		Subject: h.Message.Subject,
		Header:  h.Message.Header,
		Data:    h.Message.Data,
		Time:    h.Message.Time,
	}
}

// holdOf returns a part as it is held.
func holdOf[C any](p *part[C]) (data []byte, err error) {
	h := heldChange{
		Key:   p.Key,
		Token: p.Token,
		Index: p.index,
	}
	if p.unread != nil {
		e := itemError(p.Key, p.unread)
		h.Unread, h.Code = e.Message, e.Code
	} else if h.Value, err = json.Marshal(p.Value); err != nil && p.whole == nil {
		return nil, refuse("change", "its value cannot be held: %v", err)
	}
	if p.whole == nil {
		return h.encode()
	}
	h.Place, h.Whole = p.whole.Place, p.unread != nil
	if h.Whole && !errors.Is(p.unread, feed.ErrTooLarge) { // else its data may not be here
		h.Message = &heldMessage{
			Subject: p.whole.Subject,
			Header:  p.whole.Header,
			Data:    p.whole.Data,
			Time:    heldTime(p.whole.Time),
		}
	}
	if err == nil && (h.Value != nil || h.Message != nil) {
		if data, err = h.encode(); err == nil {
			return data, nil
		}
	}
	if p.whole.Removed {
		return nil, placeAlone(p, err)
	}
	h.Value, h.Message, h.Taken = nil, nil, heldTime(p.whole.Time)
	return h.encode()
}

// placeAlone tells that a change would be held by the place of its message alone, where its source will not have that
// any more; err tells why it cannot be held otherwise, unless its message was too large to be read.
func placeAlone[C any](p *part[C], err error) error {
	if err == nil {
		err = p.unread
	}
	const say = "message %d cannot be held by its place alone, as its source removes what is acknowledged: %w"
	return &tooLargeError{fmt.Errorf(say, p.whole.Place, err)}
}

// encode returns the change as a hold takes it.
func (h *heldChange) encode() ([]byte, error) {
	data, err := json.Marshal(h)
	switch {
	case err != nil:
		return nil, refuse("change", "its value cannot be held: %v", err)
	case len(data) > MaxHeldBytes:
		return nil, &tooLargeError{refuse("change", "%d bytes to be held exceed the limit of %d", len(data), MaxHeldBytes)}
	}
	return data, nil
}

func decodeHeld(data []byte) (h heldChange, err error) {
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("decoding a held change: %w", err)
	}
	return h, nil
}
