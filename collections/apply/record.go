package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"taskledger/events"
	"taskledger/item"
	"taskledger/task"
)

// The record of applied files.
const (
	Store      = "sync.applied"
	Group      = "file"
	MaxApplied = 100
)

// recorder is the number by which everybody changes the record: keys of one client are told apart.
const recorder = 1

// maxBy bounds the bytes of whoever asked.
const maxBy = 256

// errOvertaken reports that a file was recorded since the collections were compared.
var errOvertaken = errors.New("a file was applied meanwhile")

// Applied tells of a file that was applied.
type Applied struct {
	Hash string        `json:"hash"` // SHA-256 of its bytes, 64 hex digits
	File string        `json:"file"` // its name
	By   string        `json:"by,omitempty"`
	At   events.Millis `json:"-"` // when it was recorded
}

// record holds the record as it was read.
type record struct {
	ids   []int64   // of all items, the oldest first
	files []Applied // which the items name, the oldest first
}

// last returns the id of the newest item, 0 if there is none.
func (r *record) last() int64 {
	if len(r.ids) == 0 {
		return 0
	}
	return r.ids[len(r.ids)-1]
}

// record reads the record. What is no file in it, since anybody may write there who may change task stores, is passed
// over.
func (a *Applier) record(ctx context.Context) (*record, error) {
	r := &record{}
	page := item.Page{Group: Group, Owned: true, Linear: true}
	for more := true; more; {
		var items []item.Item
		var err error
		if items, more, err = a.Stores.Group(ctx, Store, page); err != nil {
			return nil, fmt.Errorf("read the record of applied files: %w", err)
		}
		for i := range items {
			r.ids, page.After = append(r.ids, items[i].ID), items[i].ID
			is := Applied{At: items[i].At}
			if json.Unmarshal(items[i].Data, &is) == nil && is.Hash != "" {
				r.files = append(r.files, is)
			}
		}
		more = more && len(items) > 0
	}
	return r, nil
}

// note records a file behind the item last, under a key, unless it is the newest and nothing was changed, and reports
// whether it did. It returns errOvertaken if another item is the newest.
func (a *Applier) note(ctx context.Context, file *File, last int64, key string, changed bool) (bool, error) {
	r, err := a.record(ctx)
	if err != nil {
		return false, err
	}
	switch n := len(r.files); {
	case r.last() != last:
		return false, errOvertaken
	case !changed && n > 0 && r.files[n-1].Hash == file.Hash:
		return false, nil
	}
	data, err := json.Marshal(Applied{
		Hash: file.Hash,
		File: file.Name,
		By:   events.Head(a.By, maxBy),
	})
	if err != nil {
		return false, err
	}
	u := &item.Update{
		Client:  recorder,
		Key:     key,
		Deletes: r.ids[:max(0, min(len(r.ids)-MaxApplied+1, item.MaxIDs-1))],
		Adds:    []item.Add{{Group: Group, Data: data}},
	}
	var began time.Time
	_, err = a.repeat(ctx, func() error {
		if began.IsZero() {
			began = time.Now()
		} else {
			u.Age = max(time.Since(began), time.Millisecond)
		}
		_, err := a.Stores.Update(ctx, Store, u)
		return err
	})
	_, conflict := errors.AsType[*item.ConflictError](err)
	if conflict || errors.Is(err, task.ErrOtherRequest) {
		return false, errOvertaken
	}
	if err != nil {
		return false, fmt.Errorf("record the file, whose collections are as it says: %w", err)
	}
	return true, nil
}

// Standing says how a file stands in the record.
type Standing struct {
	Applied *Applied // the last time that it was applied; nil = it is not there
	Newest  *Applied // nil = no file is there
}

// IsNewest reports that the file was applied last.
func (s *Standing) IsNewest() bool { return s.Applied != nil && s.Applied == s.Newest }

// Standing tells how a file stands in the record, by its bytes.
func (a *Applier) Standing(ctx context.Context, file *File) (s Standing, err error) {
	r, err := a.record(ctx)
	if err != nil {
		return s, err
	}
	for i := range r.files {
		s.Newest = &r.files[i]
		if s.Newest.Hash == file.Hash {
			s.Applied = s.Newest
		}
	}
	return s, nil
}
