package apply

import (
	"context"
	"fmt"
	"slices"

	"taskledger/events"
)

// checkRoom refuses a file of which one shard would get more schedules than it holds. Other schedules of the shard are
// not counted.
func (a *Applier) checkRoom(ctx context.Context, file *File) error {
	if a.Shards == nil || len(file.Collections) <= events.MaxSchedules {
		return nil
	}
	count, err := a.Shards(ctx)
	if err != nil {
		return fmt.Errorf("ask how many shards the cluster has: %w", err)
	}
	wanted, beyond := map[int]int{}, map[int]string{} // by shards: how many, and the first id for which there is no room
	for i := range file.Collections {
		id := file.Collections[i].ID()
		shard := events.TaskID(id).Shard(count)
		if wanted[shard]++; wanted[shard] == events.MaxSchedules+1 {
			beyond[shard] = id
		}
	}
	refused := &RefusedError{}
	for shard, id := range beyond {
		const problem = "%s: shard %d would get %d collections, and holds %d schedules at most"
		refused.Problems = append(refused.Problems, fmt.Sprintf(problem, id, shard, wanted[shard], events.MaxSchedules))
	}
	if len(refused.Problems) > 0 {
		slices.Sort(refused.Problems)
		return refused
	}
	return nil
}
