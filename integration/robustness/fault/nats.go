package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"taskledger/integration/robustness/cluster"
	"taskledger/internal/testcluster"
)

// restartNATS kills NATS and starts it again, on another port: the links know.
func restartNATS(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	refused := r.Refused()
	old := r.NATS.Process
	if err := old.Kill(); err != nil {
		return "nats", "", err
	}
	r.LeadNATS("")
	cluster.Sleep(ctx, d.duration)
	if refused = r.Refused() - refused; refused > 0 {
		proof = fmt.Sprintf("pid %d has ended: %v; %d connections were refused", old.PID(), old.Err(), refused)
	}
	return "nats", proof, r.StartNATS(ctx)
}

// noNATS shows that NATS is not there, as it is not in the whole history.
func noNATS(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	refused := r.Refused()
	cluster.Sleep(ctx, d.duration)
	if refused = r.Refused() - refused; refused > 0 {
		proof = fmt.Sprintf("%d connections were refused", refused)
	}
	return "nats", proof, nil
}

const (
	// floodBytes is the size of a message of a flood: less than NATS lets wait for a client.
	floodBytes = 32 << 10
	floodEvery = 2 * time.Millisecond
)

// slowConsumer lets so little pass from NATS to a client, while messages flood it, that the server drops it.
func slowConsumer(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	c := freeClient(r, d.random)
	conn, err := natsgo.Connect("nats://" + r.NATS.Address)
	if err != nil {
		return c.Name, "", err
	}
	defer conn.Close()
	before, err := r.NATS.Process.Order(ctx, cluster.Order{Count: true})
	if err != nil {
		return c.Name, "", err
	}
	c.ToNATS.Set(testcluster.Back, testcluster.Condition{Rate: 500})
	for end := time.Now().Add(d.duration); time.Now().Before(end) && ctx.Err() == nil; cluster.Sleep(ctx, floodEvery) {
		err = errors.Join(err, conn.Publish(fmt.Sprintf("taskledger.done.%d", d.random.IntN(cluster.Shards)), make([]byte, floodBytes)))
	}
	c.ToNATS.Clear()
	after, lost := r.NATS.Process.Order(context.WithoutCancel(ctx), cluster.Order{Count: true})
	if after > before {
		proof = fmt.Sprintf("NATS dropped %d clients as too slow", after-before)
	}
	return c.Name, proof, errors.Join(err, lost)
}

// forgeEvery is the time between two forged messages.
const forgeEvery = 5 * time.Millisecond

// forgeMessages publishes what no member has sent: noise, and the members' messages with a bit turned or on another subject.
// Not to the archive, for which JetStream takes whatever comes: to publish there is for NATS to permit.
func forgeMessages(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	conn, err := natsgo.Connect("nats://"+r.NATS.Address, natsgo.NoEcho()) // or it forges what it has forged
	if err != nil {
		return "nats", "", err
	}
	defer conn.Close()
	heard := make(chan *natsgo.Msg, 1)
	sub, err := conn.Subscribe("taskledger.>", func(m *natsgo.Msg) {
		if strings.HasPrefix(m.Subject, "taskledger.archive.") {
			return
		}
		select {
		case heard <- m:
		default:
		}
	})
	if err != nil {
		return "nats", "", err
	}
	before := forged(ctx, r)
	for end := time.Now().Add(d.duration); time.Now().Before(end) && ctx.Err() == nil; {
		select {
		case m := <-heard:
			err = errors.Join(err, conn.PublishMsg(forge(m, d.random)))
		case <-time.After(forgeEvery):
		}
		err = errors.Join(err, conn.Publish(fmt.Sprintf("taskledger.shard.%d", d.random.IntN(cluster.Shards)), noise(d.random)))
		cluster.Sleep(ctx, forgeEvery)
	}
	err = errors.Join(err, sub.Unsubscribe(), conn.Flush())
	dropped := int64(0)
	for p, n := range forged(context.WithoutCancel(ctx), r) {
		if n != unknown && before[p] != unknown {
			dropped += n - before[p]
		}
	}
	if dropped > 0 {
		proof = fmt.Sprintf("nodes dropped %d forged messages", dropped)
	}
	return "nats", proof, err
}

func forge(m *natsgo.Msg, random *rand.Rand) *natsgo.Msg {
	forged := &natsgo.Msg{Subject: m.Subject, Reply: m.Reply, Data: append([]byte(nil), m.Data...)}
	if len(forged.Data) == 0 || random.IntN(2) == 0 {
		forged.Subject = fmt.Sprintf("taskledger.done.%d", random.IntN(cluster.Shards))
		return forged
	}
	forged.Data[random.IntN(len(forged.Data))] ^= 1 << random.IntN(8)
	return forged
}

func noise(random *rand.Rand) []byte {
	data := make([]byte, random.IntN(300))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

// unknown is the count of a process that another fault keeps from telling.
const unknown = -1

// forged counts the messages that each process of a node has dropped.
func forged(ctx context.Context, r *cluster.Cluster) map[*cluster.Process]int64 {
	counts := map[*cluster.Process]int64{}
	for _, n := range r.Nodes {
		p := n.Running()
		count, err := p.Order(ctx, cluster.Order{Count: true})
		if err != nil {
			count = unknown
		}
		counts[p] = count
	}
	return counts
}
