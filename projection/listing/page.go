package listing

import (
	"cmp"
	"iter"

	"taskledger/projection"
	"taskledger/task"
)

// Part is what the owner of a shard tells of a list from a place on.
type Part struct {
	Tasks  []projection.Task // that match, newest first
	Next   Place             // where it goes on; where it began when nothing was looked at
	Done   bool              // there is nothing to go on with
	Looked int               // as in Found
	Head   uint64            // as in Found
}

// Page is a part of a list.
type Page struct {
	Tasks   []projection.Task // newest first
	Missing []task.Missing    // shards whose tasks are not in it
	Cursor  string            // asks for the next page; "" = there is none
	Through bool              // what is missing aside, there is none
	Nexts   []uint64          // by shard, the number of its next entry when it was first asked for this page; 0 = not heard
	Cluster string            // its id; "" = nobody has told it
}

// All yields the tasks of page after page, at most f.Limit in all, and then why shards are missing in the last one. It ends with the error
// of a page, after its tasks.
func All(f task.Filter, ask func(f task.Filter, cursor string) (Page, error)) iter.Seq2[projection.Task, error] {
	return func(yield func(projection.Task, error) bool) {
		var page Page
		for left, more := cmp.Or(f.Limit, 100), true; more; more = left > 0 && page.Cursor != "" && !page.Through {
			var err error
			page, err = ask(f, page.Cursor)
			for _, t := range page.Tasks {
				if left--; !yield(t, nil) {
					return
				}
			}
			if err != nil {
				yield(projection.Task{}, err)
				return
			}
			f.Limit = max(left, 1)
		}
		for _, m := range page.Missing {
			if !yield(projection.Task{}, m.Err) {
				return
			}
		}
	}
}
