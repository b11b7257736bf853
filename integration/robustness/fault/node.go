package fault

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync/atomic"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
)

const (
	// workWithin bounds the time until a node that will be killed has work.
	workWithin = 4 * time.Second
	// workSince is the least time that the work has gone on: it is not about to end.
	workSince = 100 * time.Millisecond
)

// killNode ends a node that has work as a crash does, and starts it again after a while. Its target names the session
// that ended.
func killNode(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	for until := time.Now().Add(workWithin); time.Now().Before(until) && ctx.Err() == nil; cluster.Sleep(ctx, 5*time.Millisecond) {
		if r.Executions.RunningOn(d.node.SessionID(), history.Since(r.Begin)-int64(workSince)) > 0 {
			break
		}
	}
	p, session := d.node.Running(), d.node.SessionID()
	target = d.node.Name + " " + session
	d.begins()
	if err := p.Kill(); err != nil {
		return target, "", err
	}
	r.Crashed(cluster.Source(d.node.Name, p.PID()))
	d.node.Calls.End()
	if functions := r.Executions.RunningOn(session, history.Since(r.Begin)); functions > 0 {
		proof = fmt.Sprintf("pid %d has ended with %d functions running: %v", p.PID(), functions, p.Err())
	}
	cluster.Sleep(ctx, d.duration)
	return target, proof, r.Restart(ctx, d.node)
}

// pauseNode lets a node stand still until its session has ended, and go on as if nothing had been.
func pauseNode(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	session := d.node.SessionID()
	target = d.node.Name + " " + session
	stood, err := d.node.Running().Pause(ctx, d.duration)
	if err == nil && stood && awaitGone(ctx, r, session) {
		proof = fmt.Sprintf("pid %d stood still for %s, and the key of its session is gone", d.node.Running().PID(), d.duration)
	}
	return target, proof, err
}

// awaitGone waits a little for the record of keys to hear that a session has ended.
func awaitGone(ctx context.Context, r *cluster.Cluster, session string) bool {
	for range 100 {
		if r.Keys.Gone(session) {
			return true
		}
		cluster.Sleep(ctx, 50*time.Millisecond)
	}
	return false
}

// pauseNodeShortly lets a node stand still again and again, each time for less than its session lives.
func pauseNodeShortly(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	pauses, total := 0, time.Duration(0)
	for end := time.Now().Add(d.duration); time.Now().Before(end) && ctx.Err() == nil; {
		pause := time.Duration(float64(cluster.TTL) * (0.1 + 0.4*d.random.Float64()))
		stood, err := d.node.Running().Pause(ctx, pause)
		if err != nil {
			return d.node.Name, "", err
		}
		if stood {
			pauses, total = pauses+1, total+pause
		}
		cluster.Sleep(ctx, pause/3)
	}
	if pauses > 0 {
		proof = fmt.Sprintf("pid %d stood still %d times, for %s in all", d.node.Running().PID(), pauses, total)
	}
	return d.node.Name, proof, nil
}

// starveNode gives a node a twentieth of a processor.
func starveNode(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	const period, share = 100 * time.Millisecond, 20
	p := d.node.Running()
	_, before, err := p.Stat()
	if err != nil {
		return d.node.Name, "", err
	}
	began := time.Now()
	stood := 0
	for time.Since(began) < d.duration && ctx.Err() == nil {
		still, err := p.Pause(ctx, period-period/share)
		if err != nil {
			return d.node.Name, "", err
		}
		if still {
			stood++
		}
		cluster.Sleep(ctx, period/share)
	}
	_, after, err := p.Stat()
	if took := time.Since(began); stood > 0 && after-before < took/share*2 {
		proof = fmt.Sprintf("pid %d got %s of processor time in %s, standing still %d times", p.PID(), after-before, took.Round(time.Millisecond), stood)
	}
	return d.node.Name, proof, err
}

// restartNodes stops every node in order, one after another, and starts it again.
func restartNodes(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	for _, n := range r.Nodes {
		old, how := n.Running().PID(), "drained"
		if err := n.Running().Stop(cluster.StopWithin); err != nil {
			how = err.Error()
			r.Crashed(cluster.Source(n.Name, old))
			if d.alone || !hindered(err) {
				r.Broken(check.Clean, "it was told to stop: %v", err)
			}
		}
		n.Calls.End()
		if err := r.Restart(ctx, n); err != nil {
			return n.Name, "", err
		}
		proof += fmt.Sprintf("%s ended as pid %d: %s; it serves as pid %d. ", n.Name, old, how, n.Running().PID())
	}
	return "all nodes", proof, nil
}

// hindered reports whether another fault may be why a node did not stop in order: it was too slow, or says itself what
// failed.
func hindered(err error) bool {
	exit, ended := errors.AsType[*exec.ExitError](err)
	return errors.Is(err, cluster.ErrTooSlow) || ended && exit.ExitCode() == cluster.ExitFailed
}

// stepClock sets the wall clock of a node an hour ahead or back, and right again.
func stepClock(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	step := time.Hour
	if d.random.IntN(2) == 0 {
		step = -step
	}
	right := time.Duration(0)
	target = fmt.Sprint(d.node.Name, " by ", step)
	if _, err := d.node.Running().Order(ctx, cluster.Order{Clock: &step}); err != nil {
		return target, "", err
	}
	cluster.Sleep(ctx, d.duration)
	asked, err := d.node.Running().Order(context.WithoutCancel(ctx), cluster.Order{Clock: &right})
	if asked > 0 {
		proof = fmt.Sprintf("the wrong clock was read %d times", asked)
	}
	return target, proof, err
}

// jumpUnseen has everybody stop asking, sets the wall clock of a node an hour ahead or back once next to nothing goes
// on, and right again before anybody asks.
func jumpUnseen(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	d.node = r.Nodes[d.random.IntN(len(r.Nodes))]
	if err := submitting(ctx, r, false); err != nil {
		return d.node.Name, "", err
	}
	_, still := until(ctx, heardWithin, func(context.Context) bool { return r.InFlight() == 0 })
	left := r.InFlight()
	target, proof, err = stepClock(ctx, r, d)
	if proof != "" {
		proof = fmt.Sprintf("%s while %d tasks were left and nobody asked (all had ended: %t)", proof, left, still)
	}
	return target, proof, errors.Join(err, submitting(context.WithoutCancel(ctx), r, true))
}

// submitting has clients, nodes and those who type stop asking, or go on.
func submitting(ctx context.Context, r *cluster.Cluster, on bool) error {
	r.Terminal.Hush(!on)
	return r.Submit(ctx, on)
}

// loseWrites makes the writes of all nodes unreliable: requests lost, replies lost after the commit, copies applied
// late.
func loseWrites(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	lost, err := orderNodes(ctx, r, d.duration, func(on bool) cluster.Order { return cluster.Order{Writes: &on} })
	if lost > 0 {
		proof = fmt.Sprintf("%d answers of etcd were lost", lost)
	}
	return "all nodes", proof, err
}

// disturbBus makes the messages of all nodes come twice or late.
func disturbBus(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	disturbed, err := orderNodes(ctx, r, d.duration, func(on bool) cluster.Order { return cluster.Order{Bus: &on} })
	if disturbed > 0 {
		proof = fmt.Sprintf("%d messages were doubled or delayed", disturbed)
	}
	return "all nodes", proof, err
}

// orderNodes switches something on at every node, and off after a while, and returns the sum of the counts told then:
// of what was felt since. A node may be replaced meanwhile, by another fault: its next process is given the order, too.
func orderNodes(ctx context.Context, r *cluster.Cluster, d time.Duration, order func(on bool) cluster.Order) (sum int64, err error) {
	on := order(true)
	err = cluster.EachOf(r.Nodes, func(n *cluster.Node) error { return n.Stand(ctx, &on) })
	cluster.Sleep(ctx, d)
	var felt atomic.Int64
	err = errors.Join(err, cluster.EachOf(r.Nodes, func(n *cluster.Node) error {
		count, err := n.Withdraw(context.WithoutCancel(ctx), &on, order(false))
		felt.Add(count)
		return err
	}))
	return felt.Load(), err
}
