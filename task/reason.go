package task

// Reason says why a task does not run: engine.Client.Explain returns it.
type Reason string

// The reasons.
const (
	WhyScheduled   Reason = "scheduled"   // its time has not come
	WhyWaiting     Reason = "waiting"     // ready, and waits for a slot
	WhyNoNode      Reason = "no-node"     // no live node may run its behavior
	WhyNoOwner     Reason = "no-owner"    // no node serves its shard at the moment
	WhySuspended   Reason = "suspended"   // an operator suspended it
	WhyPaused      Reason = "paused"      // an operator paused its behavior
	WhySettings    Reason = "settings"    // what operators paused is not known yet, so nothing starts
	WhyQuarantined Reason = "quarantined" // its shard cannot be read
	WhyStoreFull   Reason = "store-full"  // it is repeated, or a schedule, which wait while the store is almost full
	WhyNoZone      Reason = "no-zone"     // the node that decides the ticks of the schedule does not know its time zone
	WhyByHand      Reason = "by-hand"     // a schedule without ticks, which runs when somebody asks
	WhyWorkers     Reason = "workers"     // the workers of its work have the buckets, and none is left for it
	WhyRunning     Reason = "running"     // it runs
	WhyFinished    Reason = "finished"    // it has ended
)
