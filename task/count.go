package task

import (
	"cmp"
	"maps"
	"slices"
)

// Counts tells how many tasks there are.
type Counts struct {
	Rows    []Count // by behavior, status and substatus, without those that nothing has
	Missing []Missing
}

// Count tells how many tasks of a behavior have a status and a substatus. The tasks of the behaviors of a shard beyond
// 500 are counted under "".
type Count struct {
	Behavior  string    `json:"behavior"`
	Status    Status    `json:"status"`
	Substatus Substatus `json:"substatus"`
	Tasks     int64     `json:"tasks"`
}

// SumCounts adds up counts of the same tasks, and orders them.
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
