package check

import (
	"time"

	"taskledger/integration/robustness/history"
)

// AllWithin is All with another limit for the search.
func AllWithin(run *history.Run, limit time.Duration) []Violation { return all(run, limit) }
