package trees

import "taskledger/work"

// Sums adds up what the partitions of a run did, from the record of the work.
type Sums struct {
	Copied  int64 // files and links
	Deleted int64 // files, links and directories
	Failed  int64 // items
	// AtMost tells that items of buckets that were worked on twice may have counted twice: there were more permits than
	// are remembered.
	AtMost bool
}

// AddFollowed adds a run of the work that follows: its counters, and the number of its changes that failed.
func (s *Sums) AddFollowed(counters map[string]int64, failed int64) {
	s.Copied += counters[CounterCopies]
	s.Deleted += counters[CounterDeletes]
	s.Failed += failed
}

// Add adds a partition: its mode, its counters, and the number of its items that failed.
func (s *Sums) Add(mode work.Mode, counters map[string]int64, failed int64) {
	s.Failed += failed
	if mode != work.Full {
		return
	}
	touched := failed - counters[CounterUntouched]
	if n, counted := counters[CounterCopies]; counted {
		s.Copied += n - touched
	}
	if n, counted := counters[CounterDeletes]; counted {
		s.Deleted += n - touched
	}
}
