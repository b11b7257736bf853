package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync/atomic"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/process"
	"taskledger/integration/robustness/role"
)

const (
	// workWithin is how long a node that is to be killed may take to have work.
	workWithin = 4 * time.Second
	// workSince is how long that has gone on: it is not about to end.
	workSince = 100 * time.Millisecond
)

// killNode ends a node that has work as a crash does, and starts it again after a while. Its target names the session that
// ended.
func killNode(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	for until := time.Now().Add(workWithin); time.Now().Before(until) && ctx.Err() == nil; clock.Sleep(ctx, 5*time.Millisecond) {
		if r.oracle.RunningOn(d.node.sessionID(), clock.Since(r.begin)-int64(workSince)) > 0 {
			break
		}
	}
	p, session := d.node.running(), d.node.sessionID()
	target = d.node.Name + " " + session
	d.begins()
	if err := p.Kill(); err != nil {
		return target, "", err
	}
	r.crashed(role.Source(d.node.Name, p.PID()))
	d.node.calls.End()
	if functions := r.oracle.RunningOn(session, clock.Since(r.begin)); functions > 0 {
		proof = fmt.Sprintf("pid %d has ended with %d functions running: %v", p.PID(), functions, p.Err())
	}
	clock.Sleep(ctx, d.duration)
	return target, proof, r.restart(ctx, d.node)
}

// crashed notes that the process of a source could not clean up.
func (r *run) crashed(source string) {
	r.notes.Lock()
	defer r.notes.Unlock()
	r.killed = append(r.killed, source)
}

// pauseNode lets a node stand still until its session has ended, and go on as if nothing had been.
func pauseNode(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	session := d.node.sessionID()
	target = d.node.Name + " " + session
	stood, err := d.node.running().Pause(ctx, d.duration)
	if err == nil && stood && r.awaitGone(ctx, session) {
		proof = fmt.Sprintf("pid %d stood still for %s, and the key of its session is gone", d.node.running().PID(), d.duration)
	}
	return target, proof, err
}

// awaitGone waits a little for the recorder to hear that a session has ended.
func (r *run) awaitGone(ctx context.Context, session string) bool {
	for range 100 {
		if r.recorder.Gone(session) {
			return true
		}
		clock.Sleep(ctx, 50*time.Millisecond)
	}
	return false
}

// pauseNodeShortly lets a node stand still again and again, each time for less than its session lives.
func pauseNodeShortly(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	pauses, total := 0, time.Duration(0)
	for end := time.Now().Add(d.duration); time.Now().Before(end) && ctx.Err() == nil; {
		pause := time.Duration(float64(ttl) * (0.1 + 0.4*d.random.Float64()))
		stood, err := d.node.running().Pause(ctx, pause)
		if err != nil {
			return d.node.Name, "", err
		}
		if stood {
			pauses, total = pauses+1, total+pause
		}
		clock.Sleep(ctx, pause/3)
	}
	if pauses > 0 {
		proof = fmt.Sprintf("pid %d stood still %d times, for %s in all", d.node.running().PID(), pauses, total)
	}
	return d.node.Name, proof, nil
}

// starveNode gives a node a twentieth of a processor.
func starveNode(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	const period, share = 100 * time.Millisecond, 20
	p := d.node.running()
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
		clock.Sleep(ctx, period/share)
	}
	_, after, err := p.Stat()
	if took := time.Since(began); stood > 0 && after-before < took/share*2 {
		proof = fmt.Sprintf("pid %d got %s of processor time in %s, standing still %d times", p.PID(), after-before, took.Round(time.Millisecond), stood)
	}
	return d.node.Name, proof, err
}

// restartNodes stops every node in order, one after another, and starts it again.
func restartNodes(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	for _, n := range r.nodes {
		old, how := n.running().PID(), "drained"
		if err := n.running().Stop(stopWithin); err != nil {
			how = err.Error()
			r.crashed(role.Source(n.Name, old))
			if d.alone || !hindered(err) {
				r.broken(check.Clean, "it was told to stop: %v", err)
			}
		}
		n.calls.End()
		if err := r.restart(ctx, n); err != nil {
			return n.Name, "", err
		}
		proof += fmt.Sprintf("%s ended as pid %d: %s; it serves as pid %d. ", n.Name, old, how, n.running().PID())
	}
	return "all nodes", proof, nil
}

// hindered reports whether another fault may be why a node did not stop in order: it was too slow, or says itself what failed.
func hindered(err error) bool {
	exit, ended := errors.AsType[*exec.ExitError](err)
	return errors.Is(err, process.ErrTooSlow) || ended && exit.ExitCode() == role.ExitFailed
}

// stepKind is the fault after which times do not compare.
const stepKind = "clock-step"

// stepClock sets the wall clock of a node an hour ahead or back, and right again.
func stepClock(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	step := time.Hour
	if d.random.IntN(2) == 0 {
		step = -step
	}
	right := time.Duration(0)
	target = fmt.Sprint(d.node.Name, " by ", step)
	if _, err := d.node.running().Order(ctx, role.Order{Clock: &step}); err != nil {
		return target, "", err
	}
	clock.Sleep(ctx, d.duration)
	asked, err := d.node.running().Order(context.WithoutCancel(ctx), role.Order{Clock: &right})
	if asked > 0 {
		proof = fmt.Sprintf("the wrong clock was read %d times", asked)
	}
	return target, proof, err
}

// unseenKind is another one.
const unseenKind = "clock-jump-unseen"

// jumpUnseen has everybody stop asking, sets the wall clock of a node an hour ahead or back once next to nothing goes on, and right again
// before anybody asks.
func jumpUnseen(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	d.node = r.nodes[d.random.IntN(len(r.nodes))]
	if err := r.submitting(ctx, false); err != nil {
		return d.node.Name, "", err
	}
	_, still := until(ctx, heardWithin, func(context.Context) bool { return r.inFlight() == 0 })
	left := r.inFlight()
	target, proof, err = stepClock(ctx, r, d)
	if proof != "" {
		proof = fmt.Sprintf("%s while %d tasks were left and nobody asked (all had ended: %t)", proof, left, still)
	}
	return target, proof, errors.Join(err, r.submitting(context.WithoutCancel(ctx), true))
}

// stepsClock reports whether a fault sets a node's clock wrong.
func stepsClock(f history.Fault) bool { return f.Kind == stepKind || f.Kind == unseenKind }

// submitting has clients, nodes and those who type stop asking, or go on.
func (r *run) submitting(ctx context.Context, on bool) error {
	r.terminal.hushed.Store(!on)
	if !on {
		return r.endRequests(ctx)
	}
	err := eachOf(r.clients, func(c *client) error {
		_, err := c.process.Order(ctx, role.Order{Submit: &on})
		return unlessReplaced(err)
	})
	return errors.Join(err, eachOf(r.nodes, func(n *node) error {
		_, err := n.running().Order(ctx, role.Order{Submit: &on})
		return unlessReplaced(err)
	}))
}

// loseWrites makes the writes of all nodes unreliable: requests lost, replies lost after the commit, copies applied late.
func loseWrites(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	lost, err := r.orderNodes(ctx, d.duration, func(on bool) role.Order { return role.Order{Writes: &on} })
	if lost > 0 {
		proof = fmt.Sprintf("%d answers of etcd were lost", lost)
	}
	return "all nodes", proof, err
}

// disturbBus makes the messages of all nodes come twice or late.
func disturbBus(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	disturbed, err := r.orderNodes(ctx, d.duration, func(on bool) role.Order { return role.Order{Bus: &on} })
	if disturbed > 0 {
		proof = fmt.Sprintf("%d messages were doubled or delayed", disturbed)
	}
	return "all nodes", proof, err
}

// orderNodes switches something on at every node, and off after a while, and returns the sum of the counts told then: of what
// was felt since. A node may be replaced meanwhile, by another fault: its next process is given the order, too.
func (r *run) orderNodes(ctx context.Context, d time.Duration, order func(on bool) role.Order) (sum int64, err error) {
	on := order(true)
	err = eachOf(r.nodes, func(n *node) error { return n.stand(ctx, &on) })
	clock.Sleep(ctx, d)
	var felt atomic.Int64
	err = errors.Join(err, eachOf(r.nodes, func(n *node) error {
		count, err := n.withdraw(context.WithoutCancel(ctx), &on, order(false))
		felt.Add(count)
		return err
	}))
	return felt.Load(), err
}
