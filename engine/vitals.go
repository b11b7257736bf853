package engine

import (
	"time"

	"taskledger/meter"
	"taskledger/store"
)

// Vitals returns the present state of the node, for readiness and for gauges: a Meter does not receive it.
func (n *Node) Vitals() meter.Vitals {
	v := meter.Vitals{HasBus: n.cfg.Bus != nil, BusConnected: n.sender.Connected(), Slots: max(n.cfg.Slots, 0)}
	if bus, knows := n.cfg.Bus.(store.Refusing); knows {
		v.BusRefused = bus.Refused()
	}
	v.ArchiveProblem = n.archive.Problem()
	if at := n.archived.Load(); at > 0 {
		v.Archived = time.UnixMilli(at)
	}
	v.SlotsUsed, v.SlotsStuck = n.exec.Busy(), n.exec.Stuck()
	v.FuturesOpen = n.futures.Open()
	m := n.member.Load()
	if m == nil {
		return v
	}
	usage := m.admission.usage.Load()
	v.Session, v.Silent, v.Renewed = m.session.ID, m.age(), m.mayStart()
	v.Settled, v.Draining = m.place.settled.Load(), m.draining.Load()
	if why := m.silence.Load(); why != nil {
		v.Silence = *why
	}
	v.Refusing, v.StoreBytes, v.StoreQuota = *m.admission.refusal.Load(), usage.InUse, usage.Quota
	v.Nodes = len(m.view.Load().Nodes)
	v.Fronts = map[meter.Gauge]int64{}
	v.ShardsUnowned = unowned(m.view.Load(), m.shards)
	v.TasksReady = m.load.readyHere()
	for _, o := range m.place.served() {
		v.ShardsServed++
		of := o.Vitals()
		v.TasksHeld += of.Tasks
		v.TasksLive += of.Live
		for g, value := range of.Gauges {
			v.AddFront(meter.Gauge(g), value, n.now())
		}
		v.EntriesUnarchived += int64(of.Unarchived)
		if of.TrimProblem != "" {
			v.ShardsNotTrimmed++
		}
	}
	m.place.mu.Lock()
	v.ShardsQuarantined = len(m.place.broken)
	m.place.mu.Unlock()
	return v
}

// unowned returns how many of the shards have no present owner.
func unowned(view *store.Membership, shards int) int {
	for _, owner := range view.Owners {
		if _, present := view.Nodes[owner.Node]; present {
			shards--
		}
	}
	return shards
}
