// Package requests keeps the submits with a request key that a task remembers: those that made, changed or joined it.
// It is pure.
package requests

import (
	"math"
	"slices"

	"taskledger/events"
	"taskledger/internal/wire"
)

// Max bounds the requests that a task remembers. An owner records no other one while that would make a late one
// forgotten.
const Max = 64

// Request is a submit with a request key that made, changed or joined a task.
type Request struct {
	ID  string        // the key and a digest: see events.Request.ID
	Run uint32        // that it was promised: 1, 2 ... within the life
	At  events.Millis // by entry time
}

// List holds the latest requests of a task, the latest last. Copies of a task share it, so it is never changed.
type List []Request

// Of returns the request of an id; nil when there is none.
func (l List) Of(id string) *Request {
	i := l.index(id)
	if i < 0 || id == "" {
		return nil
	}
	return &l[i]
}

func (l List) index(id string) int {
	return slices.IndexFunc(l, func(r Request) bool { return r.ID == id })
}

// Another reports whether another request of the key of this id is remembered.
func (l List) Another(id string) bool {
	return id != "" && slices.ContainsFunc(l, func(r Request) bool { return r.ID != id && events.RequestKey(r.ID) == events.RequestKey(id) })
}

// With returns the list with a request as it is now.
func (l List) With(r Request) List {
	if i := l.index(r.ID); i >= 0 {
		l = slices.Clone(l)
		l[i] = r
		return l
	}
	return append(l[max(0, len(l)-Max+1):len(l):len(l)], r)
}

// Latest returns when the latest request came; 0 without one.
func (l List) Latest() events.Millis {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1].At
}

// Bytes returns the bytes that their ids take.
func (l List) Bytes() (n int) {
	for i := range l {
		n += len(l[i].ID)
	}
	return n
}

// Encode writes an array of requests, each as [id, run, at].
func (l List) Encode(w *wire.Writer) {
	w.Array(len(l))
	for i := range l {
		w.Array(3)
		w.Text(l[i].ID)
		w.Uint(uint64(l[i].Run))
		w.Int(int64(l[i].At))
	}
}

// Decode reads what Encode wrote.
func Decode(r *wire.Reader) List {
	n := r.Array()
	if n > Max {
		r.Fail("%d requests", n)
	}
	if n == 0 || n > Max {
		return nil
	}
	l := make(List, n)
	for i := range l {
		r.ArrayOf(3)
		l[i].ID = r.Text()
		run := r.Uint()
		if run > math.MaxUint32 {
			r.Fail("run %d", run)
		}
		l[i].Run, l[i].At = uint32(run), events.Millis(r.Int())
	}
	return l
}
