package task

import (
	"cmp"
	"maps"
	"slices"
)

// Counts tells how many tasks there are.
type Counts struct {
	Rows    []Count // ordered by behavior, status and substatus; none has 0 tasks
	Missing []Missing
}

// Count tells how many tasks of a behavior have a status and a substatus. A shard counts 500 behaviors apart, and the
// tasks of all others under the behavior "".
type Count struct {
	Behavior  string    `json:"behavior"`
	Status    Status    `json:"status"`
	Substatus Substatus `json:"substatus"`
	Tasks     int64     `json:"tasks"`
}

// SumCounts adds up the counts that have the same behavior, status and substatus, and orders the sums by these.
func SumCounts(counts []Count) []Count {
	sums := map[Count]int64{}
	for _, c := range counts {
		n := c.Tasks
		c.Tasks = 0
		sums[c] += n
	}
	all := slices.Collect(maps.Keys(sums))
	for i, c := range all {
		all[i].Tasks = sums[c]
	}
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(
			cmp.Compare(a.Behavior, b.Behavior),
			cmp.Compare(a.Status, b.Status),
			cmp.Compare(a.Substatus, b.Substatus),
		)
	})
	return all
}

// Missing names a shard that gave no answer. Silent says that nobody has answered, as after the death of a node, which
// may take some seconds more.
type Missing struct {
	Shard  int
	Err    error
	Silent bool
}
