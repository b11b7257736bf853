// Package meter names what a node measures, and declares the port through which the node reports it: Meter.
//
// A node counts what its shards have committed: every event is counted once, after its commit, by the owner that
// committed it. It tells a Meter the counts entry by entry, where its configuration names one; package prommeter is
// one for Prometheus. Owners also keep them, as Figures, since they took their shards over: engine.Operations.Shards
// asks all owners, so that any process sums the cluster's. Owners do not report the state of a moment: Vitals hold
// it, and are read when somebody looks.
package meter

// Meter takes the measurements of a node. Several goroutines call it, among them owners of shards for which callers
// wait: it must return at once. behavior is "" for measurements of no behavior.
type Meter interface {
	// Count adds n, 0 or more, to a counter.
	Count(c Counter, behavior string, n int64)
	// Observe adds values to a histogram, and does not keep the slice.
	Observe(h Histogram, behavior string, values []float64)
	// Set sets a gauge.
	Set(g Gauge, behavior string, value float64)
}

// MaxBehaviors bounds the behaviors that are counted separately: the first ones to come. Further ones share Other,
// because users name behaviors. An owner and a Meter each count for themselves.
const MaxBehaviors = 100

// Other stands for the behaviors that are not told apart. No behavior has this id.
const Other = "(other)"

// Counter names a count, which never falls.
type Counter uint8

// The counters. Those before TaskCounters count by behavior, and Figures holds them: each but SubmitsRefused counts
// events of one kind in the journals. The others have no behavior.
const (
	TasksCreated Counter = iota
	AttemptsStarted
	AttemptsSucceeded
	Failures      // of attempts, and of tasks that failed while they waited
	FinalFailures // those of them that are not tried again
	AttemptsLost
	AttemptsSnoozed
	AttemptsReleased
	TasksDeleted
	SubmitsRefused // by the owner, because of overload or of what the task or the submit is
	TaskCounters   // how many these are

	// Those of no behavior.

	OutcomesStale    Counter = iota - 1 // outcomes that came late, or were of another attempt
	CommandsBugs                        // commands that were refused because of a bug
	TicksDecided                        // of schedules: decisions, of which one may be about many ticks
	TicksSkipped                        // those of them by which ticks have no run, since a run was there
	TicksMissed                         // those by which they have none, since nobody decided in time, or the schedule was paused
	LogLinesKept                        // of the logs of tasks, that were stored
	LogLinesDropped                     // those that were not, and never will be
	ChangesProcessed                    // of streams, those of simulations among them
	ChangesFailed                       // those that failed, and that are held apart for that
	ChangesSkipped                      // those that were skipped, and that follow others into a hold
	counters         = iota - 1
)

// Histogram names a distribution of values, counted by size.
type Histogram uint8

// The histograms. Those before TaskHistograms count seconds by behavior, and Figures holds them. The others have no
// behavior.
const (
	Lateness       Histogram = iota // from when an attempt was due to its start
	Wait                            // from the creation of a task to its first attempt
	Duration                        // of attempts that succeeded or failed; not of those that were cancelled, lost or given back
	TaskHistograms                  // how many these are

	// Those of no behavior.

	CommitLatency Histogram = iota - 1 // seconds until an entry was committed
	EntryEvents                        // events of an entry
	TakeOver                           // seconds from the ownership of a shard until it is served
	TickLateness                       // seconds from when a tick of a schedule was due until its run was created
	histograms    = iota - 1
)

// Gauge names a value that may rise and fall.
type Gauge uint8

// The gauges.
const (
	TasksReady     Gauge = iota // by behavior: those that wait for a slot, in the shards served here; not those of paused behaviors
	TasksHeld                   // in the memory of the shards served here
	TasksLive                   // those of them that have not ended
	ItemsAvailable              // of task stores, in the shards served here: stores are named by users, and are not told apart
	ItemsWaiting                // for their time, and not claimed
	ItemsClaimed
	Schedules         // in the shards served here
	SchedulesDue      // those of them whose time has come, and nothing is decided yet
	StreamChangesOpen // known and not processed, as the streams in the shards served here told last
	StreamOldestAge   // of the oldest of those. Owners tell when that came, in milliseconds since 1970
	StreamKeysHeld    // that wait for a hold
	StreamHoldsRetried
	StreamHoldsParked
	StreamHoldsFailed
	ShardsServed
	ShardsQuarantined
	ShardsNotTrimmed
	ShardsUnowned
	EntriesUnarchived // in the shards served here: not read back from the archive
	Slots
	SlotsUsed
	SlotsStuck // held by functions that were given up and have not returned
	FuturesOpen
	Nodes
	BusConnected
	BusRefused
	ArchiveUnsound
	Archived
	Refusing
	Session
	SessionAge
	Ready
	StoreBytes
	StoreQuota
	gauges
)

// Description explains a name, in the words of Prometheus.
type Description struct {
	Name       string // without a prefix
	Help       string
	ByBehavior bool
	Bounds     []float64 // of a histogram: the upper ends of its buckets, the last of which has none
}

// Counters, Histograms and Gauges describe all that there are, each at the index of its number.
var (
	Counters = [counters]Description{
		TasksCreated:      {"tasks_created_total", "Tasks created.", true, nil},
		AttemptsStarted:   {"attempts_started_total", "Attempts started.", true, nil},
		AttemptsSucceeded: {"attempts_succeeded_total", "Attempts that succeeded.", true, nil},
		Failures:          {"failures_total", "Attempts that failed, and tasks that failed while they waited.", true, nil},
		FinalFailures:     {"failures_final_total", "Failures after which the task is not tried again and does not repeat, those of cancelled tasks among them.", true, nil},
		AttemptsLost:      {"attempts_lost_total", "Attempts lost because the session of their node ended.", true, nil},
		AttemptsSnoozed:   {"attempts_snoozed_total", "Attempts that asked for a later one.", true, nil},
		AttemptsReleased:  {"attempts_released_total", "Attempts given back by their node.", true, nil},
		TasksDeleted:      {"tasks_deleted_total", "Tasks deleted.", true, nil},
		SubmitsRefused:    {"submits_refused_total", "Submits refused by the owner of their shard.", true, nil},
		OutcomesStale:     {"outcomes_stale_total", "Outcomes refused because they came late or were of another attempt.", false, nil},
		CommandsBugs:      {"commands_bugs_total", "Commands refused because of a bug; the log tells of each.", false, nil},
		TicksDecided:      {"schedule_ticks_decided_total", "Decisions about ticks of schedules: one that many ticks have no run counts once.", false, nil},
		TicksSkipped:      {"schedule_ticks_skipped_total", "Decisions that ticks of schedules have no run, since a run was there.", false, nil},
		TicksMissed:       {"schedule_ticks_missed_total", "Decisions that ticks of schedules have no run, since nobody decided in time, or the schedule was paused.", false, nil},
		LogLinesKept:      {"log_lines_kept_total", "Lines of tasks' logs that this node has stored.", false, nil},
		ChangesProcessed:  {"stream_changes_processed_total", "Changes that streams have processed, those of simulations among them.", false, nil},
		ChangesFailed:     {"stream_changes_failed_total", "Changes of streams that failed, those among them that are held apart for that.", false, nil},
		ChangesSkipped:    {"stream_changes_skipped_total", "Changes of streams that were skipped, those among them that follow others into a hold.", false, nil},
		LogLinesDropped:   {"log_lines_dropped_total", "Lines of tasks' logs that this node has dropped, since the store of logs did not take them in time or too many attempts wrote at once.", false, nil},
	}
	Histograms = [histograms]Description{
		Lateness:      {"lateness_seconds", "Time from when an attempt was due to its start.", true, seconds(timeBounds[:])},
		Wait:          {"wait_seconds", "Time from the creation of a task to its first attempt.", true, seconds(timeBounds[:])},
		Duration:      {"attempt_duration_seconds", "Time that attempts took which succeeded or failed.", true, seconds(timeBounds[:])},
		CommitLatency: {"commit_latency_seconds", "Time until the store had committed an entry.", false, []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10}},
		EntryEvents:   {"entry_events", "Events of an entry.", false, []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}},
		TakeOver:      {"take_over_seconds", "Time from the ownership of a shard until it was served.", false, seconds(timeBounds[:])},
		TickLateness:  {"schedule_lateness_seconds", "Time from when a tick of a schedule was due until its run was created.", false, seconds(timeBounds[:])},
	}
	Gauges = [gauges]Description{
		TasksReady:         {"tasks_ready", "Tasks that wait for a slot, in the shards served here; not those of paused behaviors.", true, nil},
		TasksHeld:          {"tasks_held", "Tasks in the memory of the shards served here.", false, nil},
		TasksLive:          {"tasks_live", "Tasks in the shards served here that have not ended.", false, nil},
		ItemsAvailable:     {"items_available", "Items of all task stores, in the shards served here, that everybody may have.", false, nil},
		ItemsWaiting:       {"items_waiting", "Items of all task stores, in the shards served here, whose time has not come, and that nobody has claimed.", false, nil},
		ItemsClaimed:       {"items_claimed", "Items of all task stores, in the shards served here, that are claimed, or were and are put off.", false, nil},
		Schedules:          {"schedules", "Schedules in the shards served here.", false, nil},
		SchedulesDue:       {"schedules_due", "Schedules in the shards served here with a tick that is due and not decided.", false, nil},
		StreamChangesOpen:  {"stream_changes_open", "Changes that streams in the shards served here knew and had not processed, as they told last.", false, nil},
		StreamOldestAge:    {"stream_oldest_change_age_seconds", "Time since the oldest change came that a stream in the shards served here has not processed, as it told last; 0 = there is none.", false, nil},
		StreamKeysHeld:     {"stream_keys_held", "Keys of streams in the shards served here whose changes wait for a hold.", false, nil},
		StreamHoldsRetried: {"stream_holds_retried", "Holds of streams in the shards served here that run, or will.", false, nil},
		StreamHoldsParked:  {"stream_holds_parked", "Holds of streams in the shards served here that are suspended until somebody looks at them.", false, nil},
		StreamHoldsFailed:  {"stream_holds_failed", "Holds of streams in the shards served here that have failed for good, and keep their keys.", false, nil},
		ShardsServed:       {"shards_served", "Shards served here.", false, nil},
		ShardsQuarantined:  {"shards_quarantined", "Shards owned here that cannot be read.", false, nil},
		ShardsNotTrimmed:   {"shards_not_trimmed", "Shards served here whose journals cannot be archived or trimmed.", false, nil},
		ShardsUnowned:      {"shards_unowned", "Shards of the cluster without an owner that is present, as this node sees it.", false, nil},
		EntriesUnarchived:  {"entries_unarchived", "Entries of the shards served here that were not read back from the archive yet; 0 where nothing is archived.", false, nil},
		Slots:              {"slots", "Attempts that the node makes at once.", false, nil},
		SlotsUsed:          {"slots_used", "Slots with an attempt that runs or is about to.", false, nil},
		SlotsStuck:         {"slots_stuck", "Slots held by functions that were given up, as they did not return after their context had ended.", false, nil},
		FuturesOpen:        {"futures_open", "Futures that wait for an outcome in this process.", false, nil},
		Nodes:              {"nodes", "Nodes that are present, as this one sees it.", false, nil},
		BusConnected:       {"bus_connected", "1 while NATS is connected; 0 also where there is none.", false, nil},
		BusRefused:         {"bus_refused", "1 when NATS has not permitted a message or a subscription since it was connected.", false, nil},
		ArchiveUnsound:     {"archive_unsound", "1 while the archive may lose, or has lost, what it was given, as it was looked at within a minute; 0 also where there is none.", false, nil},
		Archived:           {"archived_timestamp_seconds", "When this process archived last, in seconds since 1970; 0 = it has not.", false, nil},
		Refusing:           {"new_tasks_refused", "1 while new tasks are refused, as the store is almost full.", false, nil},
		Session:            {"session", "1 while the node has a session that the store has renewed lately.", false, nil},
		SessionAge:         {"session_age_seconds", "Time since the store was last asked to renew the session, and did; 0 while there is no session.", false, nil},
		Ready:              {"ready", "1 while the node is ready, as /readyz says.", false, nil},
		StoreBytes:         {"store_bytes", "Bytes in use in the store.", false, nil},
		StoreQuota:         {"store_quota_bytes", "Bytes that the store takes at most.", false, nil},
	}
)
