package paging

import (
	"cmp"
	"iter"

	"taskledger/task"
)

// All yields the tasks of page after page, at most f.Limit in all, and then why shards are missing in the last one. It
// ends with the error of a page, after its tasks.
func All(
	f task.Filter, ask func(f task.Filter, cursor string) (task.Page, error),
) iter.Seq2[task.Task, error] {
	return func(yield func(task.Task, error) bool) {
		var page task.Page
		for left, more := cmp.Or(f.Limit, 100), true; more; more = left > 0 && page.Cursor != "" && !page.Through {
			var err error
			page, err = ask(f, page.Cursor)
			for _, t := range page.Tasks {
				if left--; !yield(t, nil) {
					return
				}
			}
			if err != nil {
				yield(task.Task{}, err)
				return
			}
			f.Limit = max(left, 1)
		}
		for _, m := range page.Missing {
			if !yield(task.Task{}, m.Err) {
				return
			}
		}
	}
}
