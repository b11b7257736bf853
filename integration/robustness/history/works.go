package history

// Change tells that an item of a work has done what a counter of its partition limits, after it was permitted.
type Change struct {
	Task      string // that has the work
	Run       uint32
	Partition string // id
	Item      int64
}
