package workcli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
	"taskledger/work/progress"
)

func (t *Terminal) errors() *cobra.Command {
	var cursor string
	var limit int
	c := t.of("errors", "Show the failed items of the last run of a work",
		`Errors tells the first failed items of each bucket, up to 20 and 8 KiB, the bucket that ended last first, and
how many there are. A run that has told 64 MiB of them counts further ones alone. Items of earlier runs are in the
history.`,
		func(ctx context.Context, works operations.Works, id events.TaskID) error {
			if limit < 0 {
				return &exitcode.UsageError{Problem: fmt.Sprintf("--limit %d: want 0 or more", limit)}
			}
			return t.failures(ctx, works, id, cursor, limit)
		})
	c.Flags().IntVar(&limit, "limit", 20, "most buckets; 0 = all")
	c.Flags().StringVar(&cursor, "cursor", "", "the `text` that an earlier call printed last: go on there")
	return c
}

// failures prints pages of failures, until there is none, or the limit is reached.
func (t *Terminal) failures(
	ctx context.Context, works operations.Works, id events.TaskID, cursor string, limit int,
) error {
	p := t.Print("ENDED", "PARTITION", "BUCKET", "ITEM", "CODE", "MESSAGE")
	flush := func() error { return nil } // without a row the heading is not printed
	for left := limit; ; {
		size := progress.MaxPage
		if limit > 0 {
			size = min(left, size)
		}
		page, err := works.WorkFailures(ctx, id, cursor, size)
		if err != nil {
			return errors.Join(flush(), err)
		}
		for i := range page.Buckets {
			if err := rows(p, &page.Buckets[i]); err != nil {
				return err
			}
			flush = p.Flush
		}
		left -= len(page.Buckets)
		if cursor = page.Cursor; cursor != "" && (limit == 0 || left > 0) {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
		if !p.IsJSON() {
			const said = "run %d: %d items have failed, in %d buckets\n"
			fmt.Fprintf(t.Err, said, page.Run, page.FailedItems, page.FailedBuckets)
		}
		if cursor != "" {
			fmt.Fprintf(t.Err, "there may be more: go on with --cursor %s\n", cursor)
		}
		return nil
	}
}

// rows prints the failed items of a bucket, and how many are not told.
func rows(p *output.Printer, f *progress.Failures) error {
	if p.IsJSON() {
		return p.Row(f)
	}
	at := output.Time(f.EndedAt)
	for _, e := range f.Errors {
		if err := p.Row(nil, at, f.Partition, f.Bucket, e.Item, e.Code, e.Message); err != nil {
			return err
		}
	}
	if more := f.Failed - min(uint64(len(f.Errors)), f.Failed); more > 0 {
		return p.Row(nil, at, f.Partition, f.Bucket, "-", "-", fmt.Sprintf("%d more", more))
	}
	return nil
}
