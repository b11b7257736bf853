package meter

import (
	"fmt"
	"time"
)

// Vitals describes the state of a node at a moment.
type Vitals struct {
	Readiness

	HasBus, BusConnected bool
	BusRefused           string // what NATS does not permit this node; "" = nothing is known
	ArchiveProblem       string // why the archive does not keep everything, as it was last looked at; "" = nothing is known
	Refusing             string // why no new tasks are accepted; "" = they are
	StoreBytes           int64
	StoreQuota           int64

	Nodes             int // that are present
	ShardsServed      int
	ShardsQuarantined int
	ShardsNotTrimmed  int
	ShardsUnowned     int       // of the whole cluster: they have no owner that is present
	Archived          time.Time // when this process archived last; zero = it has not
	EntriesUnarchived int64     // not read back from the archive, as far as that is known; 0 where nothing is archived
	TasksHeld         int64
	TasksLive         int64
	TasksReady        map[string]int  // by behavior
	Fronts            map[Gauge]int64 // the gauges that fronts set, over the shards served here: see AddFront
	Slots, SlotsUsed  int
	SlotsStuck        int // held by functions that were given up and have not returned
	FuturesOpen       int
}

// AddFront adds the value of a gauge that the front of a shard set. Values are summed; where the value is a time, the
// oldest counts, as its age at now.
func (v *Vitals) AddFront(g Gauge, value int64, now time.Time) {
	switch {
	case value == 0:
	case g == StreamOldestAge:
		v.Fronts[g] = max(v.Fronts[g], int64(now.Sub(time.UnixMilli(value)).Seconds()))
	default:
		v.Fronts[g] += value
	}
}

// Degraded says what does not work in a node that may be ready.
func (v *Vitals) Degraded() (all []string) {
	if v.HasBus && !v.BusConnected {
		all = append(all, "NATS is not connected: everything goes by way of the store, and is slower")
	}
	if v.BusRefused != "" {
		all = append(all, "NATS does not permit what a node needs (docs/operating.md, Your own NATS): "+v.BusRefused)
	}
	if v.Refusing != "" {
		all = append(all, "new tasks are refused: "+v.Refusing)
	}
	if v.ShardsQuarantined > 0 {
		all = append(all, fmt.Sprintf("%d shards are quarantined: the command shards says why", v.ShardsQuarantined))
	}
	if v.ShardsNotTrimmed > 0 {
		all = append(all,
			fmt.Sprintf("the journals of %d shards are not trimmed: the command shards says why", v.ShardsNotTrimmed))
	}
	if v.ArchiveProblem != "" {
		all = append(all, "the archive does not keep everything: "+v.ArchiveProblem)
	}
	if v.SlotsStuck > 0 {
		all = append(
			all,
			fmt.Sprintf(
				"%d slots are held by functions that did not return after their context had ended: the log names them",
				v.SlotsStuck,
			),
		)
	}
	return all
}

// Tell sets the gauges of a Meter. before are the Vitals that were told last: behaviors of theirs that have no
// ready task any more are set to 0.
func (v *Vitals) Tell(to Meter, before *Vitals) {
	all := [gauges]float64{
		TasksHeld: float64(v.TasksHeld), TasksLive: float64(v.TasksLive),
		ShardsServed: float64(v.ShardsServed), ShardsQuarantined: float64(v.ShardsQuarantined), ShardsNotTrimmed: float64(v.ShardsNotTrimmed),
		EntriesUnarchived: float64(v.EntriesUnarchived),
		Slots:             float64(v.Slots), SlotsUsed: float64(v.SlotsUsed), SlotsStuck: float64(v.SlotsStuck), FuturesOpen: float64(v.FuturesOpen), Nodes: float64(v.Nodes),
		BusConnected: is(v.BusConnected), BusRefused: is(v.BusRefused != ""), ArchiveUnsound: is(v.ArchiveProblem != ""),
		ShardsUnowned: float64(v.ShardsUnowned), Archived: stamp(v.Archived), Refusing: is(v.Refusing != ""), SessionAge: v.Silent.Seconds(),
		Session: is(v.Session != "" && v.Renewed), Ready: is(v.NotReady() == ""),
		StoreBytes: float64(v.StoreBytes), StoreQuota: float64(v.StoreQuota),
	}
	for g, value := range v.Fronts {
		all[g] = float64(value)
	}
	for g, value := range all {
		if Gauge(g) != TasksReady {
			to.Set(Gauge(g), "", value)
		}
	}
	for behavior := range before.TasksReady {
		if _, some := v.TasksReady[behavior]; !some {
			to.Set(TasksReady, behavior, 0)
		}
	}
	for behavior, n := range v.TasksReady {
		to.Set(TasksReady, behavior, float64(n))
	}
}

// stamp is a time in seconds since 1970, 0 for none.
func stamp(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

func is(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
