package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/integration/robustness/cluster"
	"taskledger/internal/testcluster"
)

// killLeader ends the leader as a crash does, and starts it again after a while.
func killLeader(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	m, err := r.Leader(ctx)
	if err != nil {
		return "etcd", "", err
	}
	before, err := term(ctx, r)
	if err != nil {
		return m.Name, "", err
	}
	if err := r.Down(m, (*cluster.Process).Kill); err != nil {
		return m.Name, "", err
	}
	cluster.Sleep(ctx, d.duration)
	if err := r.StartMember(ctx, m); err != nil {
		return m.Name, "", err
	}
	after, err := term(ctx, r)
	if after > before {
		proof = fmt.Sprintf("it led in term %d, term %d followed", before, after)
	}
	return m.Name, proof, err
}

// term returns the term of the present leader.
func term(ctx context.Context, r *cluster.Cluster) (uint64, error) {
	m, err := r.Leader(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.RequestWithin)
	defer cancel()
	status, err := m.Client.Status(ctx, m.Direct.Address)
	if err != nil {
		return 0, err
	}
	return status.RaftTerm, nil
}

// pauseLeader lets the leader stand still.
func pauseLeader(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	m, err := r.Leader(ctx)
	if err != nil {
		return "etcd", "", err
	}
	stood, err := m.Process.Pause(ctx, d.duration)
	if stood {
		proof = fmt.Sprintf("the leader, pid %d, stood still for %s", m.Process.PID(), d.duration)
	}
	return m.Name, proof, err
}

// restartMember stops a member that does not lead, where there is one, in order, and starts it again.
func restartMember(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	m, err := r.Leader(ctx)
	if err != nil {
		return "etcd", "", err
	}
	if others := r.Others(m); len(others) > 0 {
		m = others[d.random.IntN(len(others))]
	}
	old := m.Process.PID()
	if err := r.Down(m, func(p *cluster.Process) error { return p.Stop(cluster.StopWithin) }); err != nil {
		return m.Name, "", err
	}
	cluster.Sleep(ctx, d.duration)
	if err := r.StartMember(ctx, m); err != nil {
		return m.Name, "", err
	}
	return m.Name, fmt.Sprintf("pid %d has ended in order, pid %d serves", old, m.Process.PID()), nil
}

// loseMajority ends so many members that the others, if any, can commit nothing.
func loseMajority(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	leader, err := r.Leader(ctx)
	if err != nil {
		return "etcd", "", err
	}
	lost := []*cluster.Member{leader}
	rest := r.Others(leader)
	for len(lost) <= len(r.Members)/2 {
		lost, rest = append(lost, rest[0]), rest[1:]
	}
	asked := leader
	if len(rest) > 0 {
		asked = rest[0]
	}
	if err := cluster.EachOf(lost, func(m *cluster.Member) error { return r.Down(m, (*cluster.Process).Kill) }); err != nil {
		return "etcd", "", err
	}
	if err := probe(ctx, asked); err != nil {
		proof = fmt.Sprintf("without %d of %d members a linearizable read at %s fails: %v", len(lost), len(r.Members), asked.Name, err)
	}
	cluster.Sleep(ctx, d.duration)
	return fmt.Sprint(len(lost), " members of etcd"), proof, cluster.EachOf(lost, func(m *cluster.Member) error { return r.StartMember(ctx, m) })
}

// probe makes a linearizable read at the member.
func probe(ctx context.Context, m *cluster.Member) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := m.Client.Get(ctx, cluster.MarkKey)
	return err
}

// isolateMember cuts a member off from the others, while nodes and clients reach it.
func isolateMember(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	m := r.Members[d.random.IntN(len(r.Members))]
	held := testcluster.Condition{Hold: true}
	for _, way := range bothWays {
		m.PeerLink.Set(way, held)
		for _, other := range r.Others(m) {
			other.PeerLink.SetPeer(m.ID, way, held)
		}
	}
	cluster.Sleep(ctx, d.duration/2)
	if err := probe(ctx, m); err != nil && probe(ctx, r.Others(m)[0]) == nil { // not that the machine is slow
		proof = fmt.Sprintf("a linearizable read at it fails: %v, one at another member does not", err)
	}
	cluster.Sleep(ctx, d.duration/2)
	for _, other := range r.Members {
		other.PeerLink.Clear()
	}
	return m.Name, proof, nil
}

// compactEvery is the time between two compactions.
const compactEvery = 150 * time.Millisecond

// compact forgets all replaced values up to now, again and again, but for those that the record of keys has not seen.
func compact(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	done, last := 0, int64(0)
	for end := time.Now().Add(d.duration); time.Now().Before(end) && ctx.Err() == nil; cluster.Sleep(ctx, compactEvery) {
		seen := r.Keys.Seen()
		if seen == last {
			continue
		}
		ask, cancel := context.WithTimeout(ctx, cluster.RequestWithin)
		_, err := r.Members[done%len(r.Members)].Client.Compact(ask, seen)
		cancel()
		if err == nil {
			done, last = done+1, seen
		} else if !errors.Is(err, rpctypes.ErrCompacted) && !transient(err) {
			return "etcd", "", err
		}
	}
	if done > 0 {
		proof = fmt.Sprintf("%d compactions, up to revision %d", done, last)
	}
	return "etcd", proof, nil
}

// transient reports whether an error says nothing but that etcd is slow.
func transient(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// defragment defragments one member after another, again and again; each stands still meanwhile.
func defragment(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	done, took := 0, time.Duration(0)
	for end := time.Now().Add(d.duration); time.Now().Before(end) && ctx.Err() == nil; cluster.Sleep(ctx, compactEvery) {
		began := time.Now()
		if err := defragmentMember(ctx, r.Members[done%len(r.Members)]); err != nil {
			return "etcd", "", err
		}
		done, took = done+1, took+time.Since(began)
	}
	return "etcd", fmt.Sprintf("%d defragmentations took %s in all", done, took.Round(time.Millisecond)), nil
}

func defragmentMember(ctx context.Context, m *cluster.Member) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.StartWithin)
	defer cancel()
	_, err := m.Client.Defragment(ctx, m.Direct.Address)
	return err
}

const (
	junk       = "junk/"                    // keys outside the cluster
	junkMark   = cluster.WatchedKeys + "-x" // tells the record of keys that the junk is gone
	junkBytes  = 1 << 20
	fillWithin = 20 * time.Second
)

// fillEtcd fills etcd until it takes no more writes, and makes space again after a while.
func fillEtcd(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	c := r.Members[0].Client
	if _, err := c.Put(ctx, junkMark, ""); err != nil {
		return "etcd", "", err
	}
	if err := fill(ctx, c); err != nil {
		return "etcd", "", errors.Join(err, makeSpace(ctx, r))
	}
	alarms, err := c.AlarmList(ctx)
	if err == nil && len(alarms.Alarms) > 0 {
		proof = fmt.Sprintf("etcd raised the alarm %s", alarms.Alarms[0].Alarm)
	}
	cluster.Sleep(ctx, d.duration)
	return "etcd", proof, errors.Join(err, makeSpace(ctx, r))
}

func fill(ctx context.Context, c *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, fillWithin)
	defer cancel()
	value := string(make([]byte, junkBytes))
	for i := 0; ; i++ {
		_, err := c.Put(ctx, fmt.Sprint(junk, i), value)
		switch {
		case errors.Is(err, rpctypes.ErrNoSpace):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("etcd is not full after %s", fillWithin)
		}
	}
}

// makeSpace does what an operator does: delete, compact, defragment, disarm.
func makeSpace(ctx context.Context, r *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.StartWithin)
	defer cancel()
	c := r.Members[0].Client
	if _, err := c.Delete(ctx, junk, clientv3.WithPrefix()); err != nil {
		return err
	}
	gone, err := c.Delete(ctx, junkMark)
	if err != nil {
		return err
	}
	if _, err := r.Keys.Until(ctx, gone.Header.Revision); err != nil {
		return err
	}
	if _, err := c.Compact(ctx, gone.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	for _, m := range r.Members {
		if err := defragmentMember(ctx, m); err != nil {
			return err
		}
	}
	_, err = c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	return err
}
