package projection

import (
	"time"

	"taskledger/events"
)

const holdRequests = events.Millis(HoldRequests / time.Millisecond)

// MaxFinished bounds the finished tasks that a shard keeps, failures among them; beyond it successes are forgotten,
// those that expire first.
const MaxFinished = 100_000

// MaxFinishedBytes bounds what, as LiveBytes counts, the tasks of a shard may take that have ended with SUCCESS: as
// many as a behavior keeps by default, each with the largest result that is kept. Beyond it those that expire first
// are forgotten.
const MaxFinishedBytes = 16 << 20

// What a shard keeps of the tasks that have failed for good, whatever their policies say: beyond that the oldest
// failures are forgotten.
const (
	RetainFailures  = 14 * 24 * time.Hour
	MaxFailures     = MaxFinished / 2
	MaxFailureBytes = 16 << 20 // as LiveBytes counts
)
