package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"taskledger/events"
	"taskledger/store"
)

// The package comment specifies the form of an export.
const (
	exportFormat  = "taskledger export"
	exportVersion = 3
)

type exportHeader struct {
	Format  string        `json:"format"`
	Version int           `json:"version"`
	Cluster string        `json:"cluster"`
	Shard   int           `json:"shard"`
	Task    events.TaskID `json:"task,omitempty"`
	From    uint64        `json:"from"`
	Prev    events.Hash   `json:"prev"`
}

type exportLine struct {
	Entry []byte `json:"entry,omitempty"`

	Head    []byte  `json:"head,omitempty"`
	Digests hashes  `json:"digests,omitempty"`
	Origins origins `json:"origins,omitempty"`
	Shown   shown   `json:"shown,omitempty"`

	Link *events.Hash `json:"link,omitempty"`

	End        uint64       `json:"end,omitempty"`
	Hash       *events.Hash `json:"hash,omitempty"`
	Checkpoint string       `json:"checkpoint,omitempty"`
}

// origins and shown are what an excerpt shows of an entry.
type (
	origins []events.ShownOrigin
	shown   []events.Shown
)

// maxShownCommas is how many commas the origins or events of the largest entry take: three each, of 8 bytes there at least.
const maxShownCommas = 3 * events.MaxEntryBytes / 8

func (all *origins) UnmarshalJSON(text []byte) error {
	return unmarshalShown(text, (*[]events.ShownOrigin)(all))
}
func (all *shown) UnmarshalJSON(text []byte) error {
	return unmarshalShown(text, (*[]events.Shown)(all))
}

func unmarshalShown(text []byte, all any) error {
	if bytes.Count(text, []byte{','}) > maxShownCommas {
		return errors.New("more than an entry holds")
	}
	return json.Unmarshal(text, all)
}

// hashes are written one after the other, as bytes.
type hashes []events.Hash

func (all hashes) MarshalJSON() ([]byte, error) {
	joined := make([]byte, 0, len(all)*len(events.Hash{}))
	for i := range all {
		joined = append(joined, all[i][:]...)
	}
	return json.Marshal(joined)
}

func (all *hashes) UnmarshalJSON(text []byte) error {
	var joined []byte
	if err := json.Unmarshal(text, &joined); err != nil {
		return err
	}
	if len(joined)%len(events.Hash{}) != 0 {
		return fmt.Errorf("digests of %d bytes", len(joined))
	}
	*all = make(hashes, 0, len(joined)/len(events.Hash{}))
	for chunk := range slices.Chunk(joined, len(events.Hash{})) {
		*all = append(*all, events.Hash(chunk))
	}
	return nil
}

// Signer signs the text of a checkpoint and returns the signed note that has it as its body.
type Signer func(text string) (note string, err error)

// ExportShard writes all entries of a shard that are left, from the archive and the journal. sign, if not nil, signs a checkpoint of
// the last one. It wraps task.ErrNotFound if the shard has no entry yet.
func (l *Ledger) ExportShard(ctx context.Context, shard int, w io.Writer, sign Signer) error {
	r, err := l.reader()
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if shard < 0 || shard >= l.cfg.Cluster.Shards {
		return &store.InvalidError{Field: "shard", Problem: fmt.Sprintf("%d, want 0 to %d", shard, l.cfg.Cluster.Shards-1)}
	}
	from := uint64(1)
	dropped, err := r.dropped(ctx, shard)
	if err == nil && dropped {
		from, err = r.Begins(ctx, shard)
	}
	if err != nil {
		return fmt.Errorf("export shard %d: %w", shard, err)
	}
	x := exporter{out: json.NewEncoder(w), header: exportHeader{Cluster: l.cfg.Cluster.ID, Shard: shard, From: from}, sign: sign}
	return x.run(ctx, r, 0, func(rec store.Record, e *events.Entry) (exportLine, error) {
		return exportLine{Entry: rec.Data}, nil
	})
}

// ExportTask writes the history of a task, as History yields it, with what an auditor needs to check that these events stand in the
// shard's chain and that none between them was left out. Of other tasks the file holds digests only: of their events, and of the
// answers to their submitters. sign, if not nil, signs a checkpoint of the last entry. The errors are those of History.
func (l *Ledger) ExportTask(ctx context.Context, id events.TaskID, w io.Writer, sign Signer) error {
	f, err := l.life(ctx, id, 0)
	var first events.Ref
	if err == nil {
		first, err = f.first(ctx)
	}
	if err != nil {
		return fmt.Errorf("export %s: %w", id, err)
	}
	last := f.last()
	x := exporter{out: json.NewEncoder(w), header: exportHeader{Cluster: l.cfg.Cluster.ID, Shard: f.shard, Task: id, From: first.Entry()}, sign: sign}
	mine := func(ev *events.Event) bool {
		return ev.Task == id && ev.Position.Ref >= first && ev.Position.Ref <= last
	}
	return x.run(ctx, f.reader, last.Entry(), func(rec store.Record, e *events.Entry) (exportLine, error) {
		excerpt, err := events.NewExcerpt(rec.Data, mine)
		if err != nil {
			return exportLine{}, err
		}
		link := excerpt.Link()
		line := exportLine{Digests: link.Digests}
		if len(excerpt.Shown) > 0 {
			line.Head, line.Origins, line.Shown = excerpt.Head, excerpt.Origins, excerpt.Shown
		} else {
			line.Link = &link.Head
		}
		return line, nil
	})
}

// exporter writes an export.
type exporter struct {
	out    *json.Encoder
	header exportHeader
	sign   Signer
}

// run writes a line for every entry from the header's From on up to last; 0 = all.
func (x *exporter) run(ctx context.Context, r *Reader, last uint64, line func(store.Record, *events.Entry) (exportLine, error)) error {
	x.header.Format, x.header.Version = exportFormat, exportVersion
	head := CheckpointHead{Shard: x.header.Shard}
	for rec, err := range r.Read(ctx, x.header.Shard, x.header.From) {
		if err == nil {
			err = x.entry(rec, &head, line)
		}
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		if rec.Number == last {
			break
		}
	}
	if head.Entry == 0 {
		return fmt.Errorf("export: %w", absent(fmt.Sprintf("shard %d has no entry yet", x.header.Shard)))
	}
	end := exportLine{End: head.Entry, Hash: &head.Hash}
	if x.sign != nil {
		var err error
		if end.Checkpoint, err = x.sign(Checkpoint{x.header.Cluster, []CheckpointHead{head}}.String()); err != nil {
			return fmt.Errorf("sign export: %w", err)
		}
	}
	return x.out.Encode(end)
}

func (x *exporter) entry(rec store.Record, head *CheckpointHead, line func(store.Record, *events.Entry) (exportLine, error)) error {
	e, err := events.Decode(rec.Data)
	if err != nil {
		return err
	}
	if head.Entry == 0 {
		x.header.Prev = e.Prev
		if err := x.out.Encode(x.header); err != nil {
			return err
		}
	}
	head.Entry, head.Hash = e.Number, e.Hash
	l, err := line(rec, e)
	if err != nil {
		return err
	}
	return x.out.Encode(l)
}
