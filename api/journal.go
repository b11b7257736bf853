package api

import (
	"errors"
	"iter"
	"math"
	"net/http"

	"taskledger/events"
	"taskledger/store"
)

// JournalPage holds entries of a shard in their stored form, and what a client needs to read them as a ledger.
type JournalPage struct {
	Cluster  string         `json:"cluster"` // its id
	Shards   int            `json:"shards"`  // of the cluster
	Shard    int            `json:"shard"`
	Begins   uint64         `json:"begins"`   // number of the first entry that can be read
	Revision int64          `json:"revision"` // the present one of the store
	Entries  []JournalEntry `json:"entries"`  // one after the other
	More     bool           `json:"more,omitempty"`
	// NoArchive says of a page of the archive that there is none.
	NoArchive bool         `json:"no_archive,omitempty"`
	Task      *JournalTask `json:"task,omitempty"` // where it was asked for
	Head      *JournalHead `json:"head,omitempty"` // where it was asked for
}

// JournalEntry is an entry as it was committed.
type JournalEntry struct {
	Number   uint64 `json:"number"`
	Revision int64  `json:"revision"` // of its write
	Data     []byte `json:"data"`
}

// JournalTask tells where events of a task are, as its owner knows it; 0 = there is no such event.
type JournalTask struct {
	Behavior  string        `json:"behavior"`
	CreatedAt events.Millis `json:"created_at"`
	Created   events.Ref    `json:"created"`
	Started   events.Ref    `json:"started"` // begins the last attempt
	Last      events.Ref    `json:"last"`
}

// JournalHead is the end of a journal as its owner has committed it.
type JournalHead struct {
	Entry   uint64      `json:"entry"`
	Hash    events.Hash `json:"hash"`
	Digest  events.Hash `json:"digest"` // of the state after the entry
	Drops   bool        `json:"drops,omitempty"`
	Problem string      `json:"problem,omitempty"` // why the shard is not served; "" = it is
}

const (
	// maxEntries bounds the entries of a page.
	maxEntries = 1000
	// entriesBytes ends a page early: it has the entry that reaches so many bytes, and none after it.
	entriesBytes = 512 << 10
)

// page answers with entries, and with what is asked for beside them.
func (s journals) page(c *Call) error {
	id, head, shard, err := s.place(c)
	if err != nil {
		return err
	}
	from, err := c.Number("from", 1, 1, math.MaxInt)
	if err != nil {
		return err
	}
	limit, err := c.Number("limit", maxEntries, 0, maxEntries)
	if err != nil {
		return err
	}
	l := s.historian.Ledger()
	place, err := l.Place(c.ctx, shard)
	if err != nil {
		return err
	}
	page := JournalPage{
		Cluster:  place.Cluster,
		Shards:   place.Shards,
		Shard:    shard,
		Begins:   place.Begins,
		Revision: place.Revision,
		Entries:  []JournalEntry{},
	}
	if id != "" {
		t, err := s.reader.Get(c.ctx, id)
		if err != nil {
			return err
		}
		page.Task = &JournalTask{
			Behavior:  t.Behavior,
			CreatedAt: t.CreatedAt,
			Created:   t.Details.Life,
			Started:   t.Details.Started,
			Last:      t.Version.Ref,
		}
	}
	if head {
		h, err := l.Head(c.ctx, shard)
		if err != nil {
			return err
		}
		page.Head = &JournalHead{
			Entry:   h.Entry,
			Hash:    h.Hash,
			Digest:  h.Digest,
			Drops:   h.Drops,
			Problem: h.Problem,
		}
	}
	archive, err := c.Flag("archive")
	if err != nil {
		return err
	}
	entries := l.Entries
	if archive {
		entries = l.Archived
	}
	if err := page.read(limit, entries(c.ctx, shard, uint64(from))); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, page)
}

// place reads of which shard the page is, and what it has beside entries.
func (s journals) place(c *Call) (id events.TaskID, head bool, shard int, err error) {
	id = idOf(c.Param("task"))
	if (id == "") == (c.Param("shard") == "") {
		return "", false, 0, invalid("task", "want it or shard")
	}
	if head, err = c.Flag("head"); err != nil {
		return "", false, 0, err
	}
	if id == "" {
		shard, err = c.Number("shard", 0, 0, math.MaxUint16)
		return "", head, shard, err
	}
	if err := checkID("task", id); err != nil {
		return "", false, 0, err
	}
	return id, head, s.historian.Ledger().ShardOf(id), nil
}

// read adds entries up to the limit.
func (p *JournalPage) read(limit int, entries iter.Seq2[store.Record, error]) error {
	if limit == 0 {
		return nil
	}
	size := 0
	for rec, err := range entries {
		switch {
		case errors.Is(err, store.ErrNoArchive):
			p.NoArchive = true
			return nil
		case err != nil && len(p.Entries) > 0:
			p.More = true // the next page meets it
			return nil
		case err != nil:
			return err
		case len(p.Entries) == limit || size >= entriesBytes:
			p.More = true
			return nil
		}
		p.Entries = append(p.Entries, JournalEntry{
			Number:   rec.Number,
			Revision: rec.Revision,
			Data:     rec.Data,
		})
		size += len(rec.Data)
	}
	return nil
}
