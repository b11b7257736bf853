package work

import "taskledger/work/workledger"

// Result is the result of the task of a work.
type Result struct {
	Run        int64             `json:"run"`
	Partitions []PartitionResult `json:"partitions"`
}

// PartitionResult tells what became of a partition in the run.
type PartitionResult struct {
	ID      string `json:"id"`
	Mode    string `json:"mode"` // as Mode.String returns it
	Buckets int64  `json:"buckets"`
	Done    int64  `json:"items_done"`
	Failed  int64  `json:"items_failed"`
	Skipped int64  `json:"items_skipped"`
}

// result returns the result of a run that has come to its end.
func result(of *Opened, totals []workledger.Total) Result {
	r := Result{Run: of.Run}
	for i, total := range totals {
		if i == len(of.Plan.Partitions) {
			break
		}
		p := &of.Plan.Partitions[i]
		r.Partitions = append(r.Partitions, PartitionResult{
			ID:      p.ID,
			Mode:    p.Mode.String(),
			Buckets: total.Buckets,
			Done:    total.Items.Done,
			Failed:  total.Items.Failed,
			Skipped: total.Items.Skipped,
		})
	}
	return r
}
