package engine

import (
	"context"
	"iter"

	"taskledger/engine/internal/paging"
	"taskledger/task"
)

// List yields the tasks that match, newest first by their creation, at most f.Limit in all. The tasks of shards that
// do not answer are left out, and after the tasks List yields the error of each such shard. It ends with an error
// that concerns the whole list, as task.ErrNoNode, task.ErrClosed, a *task.LimitError for f.Limit or a
// *store.InvalidError for another field of f.
func (c *Client) List(ctx context.Context, f task.Filter) iter.Seq2[task.Task, error] {
	return paging.All(f, func(f task.Filter, cursor string) (task.Page, error) {
		return c.ListPage(ctx, f, cursor)
	})
}

// ListPage returns a page of the tasks that match, newest first by their creation: at most f.Limit. The cursor of a
// page asks for the one after it; "" asks for the first. Through all pages no task comes twice, and none is left
// out that was there at the first page and still matches when its page is made.
//
// A page scans 20,000 tasks at most, and is full with 4 MiB of parameters and results, so that it may have less than
// f.Limit, or none, and a cursor. Shards that have not answered after three seconds, or half of what ctx leaves, are
// missing in it: as soon as they answer again, later pages begin with their tasks. It returns a *store.InvalidError of
// the field "cursor" for a cursor of another cluster or filter, and the page as it is with an error when ctx ends.
func (c *Client) ListPage(ctx context.Context, f task.Filter, cursor string) (task.Page, error) {
	return c.shards().List(ctx, f, cursor)
}

// Counts returns how many tasks of a behavior, or of each where that is "", have each status and substatus. It
// scans nothing. Shards that have not answered after three seconds, or half of what ctx leaves, are missing in it.
func (c *Client) Counts(ctx context.Context, behavior string) (task.Counts, error) {
	return c.shards().Counts(ctx, behavior)
}

func (c *Client) shards() paging.Shards {
	s := paging.Shards{
		Count: c.cfg.Shards,
		Now:   c.cfg.Now,
		Ready: c.gate.pass,
		Ask:   c.read,
	}
	if c.cfg.Store != nil {
		s.Cluster = c.cfg.Store.Cluster().ID
	}
	return s
}
