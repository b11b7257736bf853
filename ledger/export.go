package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"taskledger/events"
	"taskledger/ledger/exportform"
	"taskledger/store"
)

// Signer signs the text of a checkpoint and returns the signed note that has it as its body.
type Signer func(text string) (note string, err error)

// ExportShard writes all entries of a shard that are left, from the archive and the journal. sign, if not nil, signs a
// checkpoint of the last one. It wraps task.ErrNotFound if the shard has no entry yet.
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
	x := exporter{
		out:    json.NewEncoder(w),
		header: exportform.Header{Cluster: l.cfg.Cluster.ID, Shard: shard, From: from},
		sign:   sign,
	}
	return x.run(ctx, r, 0, func(rec store.Record, e *events.Entry) (exportform.Line, error) {
		return exportform.Line{Entry: rec.Data}, nil
	})
}

// ExportTask writes the history of a task, as History yields it, with everything that an auditor needs to check that
// these events stand in the shard's chain and that none between them was left out. Of other tasks the file holds
// digests only: of their events, and of the answers to their submitters. sign, if not nil, signs a checkpoint of the
// last entry. It fails as History does.
//
// The file ends with the last event of the task, or, where a kept checkpoint names a later entry, with the last of
// those: VerifyExport can then compare the file with the checkpoint. When an entry that a checkpoint names was
// replaced, the error wraps store.ErrConflict.
func (l *Ledger) ExportTask(ctx context.Context, id events.TaskID, w io.Writer, sign Signer, upTo ...Checkpoint) error {
	all, err := headsOf(upTo, l.cfg.Cluster)
	if err != nil {
		return err
	}
	f, err := l.life(ctx, id, 0)
	var first events.Ref
	if err == nil {
		first, err = f.first(ctx)
	}
	if err != nil {
		return fmt.Errorf("export %s: %w", id, err)
	}
	last := f.last()
	x := exporter{
		out:    json.NewEncoder(w),
		header: exportform.Header{Cluster: l.cfg.Cluster.ID, Shard: f.shard, Task: id, From: first.Entry()},
		sign:   sign,
	}
	mine := func(ev *events.Event) bool {
		return ev.Task == id && ev.Position.Ref >= first && ev.Position.Ref <= last
	}
	end, heads := last.Entry(), all[f.shard]
	for number := range heads {
		end = max(end, number)
	}
	return x.run(ctx, f.reader, end, func(rec store.Record, e *events.Entry) (exportform.Line, error) {
		excerpt, err := events.NewExcerpt(rec.Data, mine)
		if head, named := heads[e.Number]; err == nil && named && head.Hash != e.Hash {
			err = fmt.Errorf("%w: entry %d: %s", store.ErrConflict, e.Number, fmt.Sprintf(replaced, e.Hash, head.Hash))
		}
		if err != nil {
			return exportform.Line{}, err
		}
		link := excerpt.Link()
		line := exportform.Line{Digests: link.Digests}
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
	header exportform.Header
	sign   Signer
}

// run writes a line for every entry from the header's From on up to last; 0 = all.
func (x *exporter) run(
	ctx context.Context,
	r *Reader,
	last uint64,
	line func(store.Record, *events.Entry) (exportform.Line, error),
) error {
	x.header.Format, x.header.Version = exportform.Format, exportform.Version
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
	end := exportform.Line{End: head.Entry, Hash: &head.Hash}
	if x.sign != nil {
		var err error
		if end.Checkpoint, err = x.sign(newCheckpoint(x.header.Cluster, head).String()); err != nil {
			return fmt.Errorf("sign export: %w", err)
		}
	}
	return x.out.Encode(end)
}

func (x *exporter) entry(
	rec store.Record,
	head *CheckpointHead,
	line func(store.Record, *events.Entry) (exportform.Line, error),
) error {
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
