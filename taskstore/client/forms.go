package client

import (
	"net/http"
	"time"

	"taskledger/api/stores/form"
	"taskledger/events"
	"taskledger/taskstore"
	"unicode/utf8"
)

// transport keeps as many connections as there are calls under way.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	t.IdleConnTimeout = 30 * time.Second
	return t
}

func itemOf(t *form.Task) taskstore.Item {
	it := taskstore.Item{ID: t.ID, Group: t.Group, At: events.Millis(t.Timespec), Owner: t.OwnerID, Data: t.Data64}
	if t.Data != nil {
		it.Data = []byte(*t.Data)
	}
	return it
}

// updateOf is the form of an update.
func updateOf(u *taskstore.Update) *form.Update {
	is := &form.Update{ClientID: u.Client, Deletes: u.Deletes, Depends: u.Depends, Adds: make([]form.Add, len(u.Adds)), Updates: make([]form.Change, len(u.Changes))}
	for i := range u.Adds {
		a := &u.Adds[i]
		is.Adds[i] = form.Add{Group: form.Text(a.Group), Timespec: int64(a.At)}
		is.Adds[i].Data, is.Adds[i].Data64 = dataOf(a.Data)
	}
	for i := range u.Changes {
		c := &u.Changes[i]
		is.Updates[i] = form.Change{ID: c.ID, Group: form.Text(c.Group), Keep: c.Keep, Timespec: int64(c.At)}
		if !c.Keep {
			is.Updates[i].Data, is.Updates[i].Data64 = dataOf(c.Data)
		}
	}
	return is
}

// dataOf is the form of data, as text if it is one.
func dataOf(data []byte) (*form.Text, *form.Bytes) {
	switch {
	case len(data) == 0:
		return nil, nil
	case utf8.Valid(data):
		text := form.Text(data)
		return &text, nil
	}
	raw := form.Bytes(data)
	return nil, &raw
}
