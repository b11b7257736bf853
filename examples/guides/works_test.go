package guides_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"taskledger/engine/local"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/segmentation"
)

// Index is the parameter of the work.
type Index struct{ Name string }

// Row is an item: what Process needs of the parameters is part of it.
type Row struct {
	Index string
	ID    int64
}

// service has what belongs to the process, such as a pool of connections.
type service struct{ written atomic.Int64 }

// rows yields the rows of a bucket. A database selects them by its bounds.
func (s *service) rows(_ context.Context, p Index, b work.Bucket) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for id := b.From; id < b.To; id++ {
			if !yield(Row{Index: p.Name, ID: id}, nil) {
				return
			}
		}
	}
}

// write writes a row to its index. It may be called again for a row that was written.
func (s *service) write(_ context.Context, _ Row) error {
	s.written.Add(1)
	return nil
}

func (s *service) reindex() *work.Work[Index, Row] {
	return work.Define("reindex", nil, work.Partition[Index, Row]{
		ID:           "rows",
		Items:        s.rows,
		Process:      s.write,
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: 1000, Size: 100},
		Workers:      8,
		Threads:      4,
	})
}

// reindexPeople runs the work on a node that has it, and waits for its end.
func reindexPeople(ctx context.Context, node *local.Node, reindex *work.Work[Index, Row]) (work.Result, error) {
	run, err := reindex.Submit(ctx, node, Index{"people"}, task.SubmitOptions{ID: "reindex-2026"})
	if err != nil {
		return work.Result{}, err
	}
	return run.Wait(ctx) // of each partition: buckets, and items done, failed and skipped
}

func TestWorks_TheGuideProcessesEveryRow(t *testing.T) {
	s := &service{}
	reindex := s.reindex()
	node, err := local.Memory(t.Context(), reindex)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	result, err := reindexPeople(t.Context(), node, reindex)
	if err != nil || s.written.Load() < 1000 {
		t.Errorf("%v, %v, %d rows", result, err, s.written.Load())
	}
}

// clean removes a file of an item, as far as its threshold allows it.
func clean(ctx context.Context, remove func() error) error {
	if err := work.Permit(ctx, "deletes"); err != nil {
		return err // there were as many as allowed: nothing more is deleted
	}
	return remove()
}

func TestWorks_TheThresholdOfTheGuideStopsAtItsLimit(t *testing.T) {
	var deleted atomic.Int64
	cleaning := work.Define("clean", nil, work.Partition[Index, Row]{
		Items: new(service).rows,
		Process: func(ctx context.Context, _ Row) error {
			return clean(ctx, func() error { deleted.Add(1); return nil })
		},
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: 10, Size: 10},
		Thresholds:   []work.Threshold{{Counter: "deletes", Limit: 3}},
	})
	node, err := local.Memory(t.Context(), cleaning)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	run, err := cleaning.Submit(t.Context(), node, Index{}, task.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Wait(t.Context()); err == nil || deleted.Load() != 3 {
		t.Errorf("%v, %d deleted", err, deleted.Load())
	}
}
