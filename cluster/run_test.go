package cluster_test

import (
	"context"
	"errors"
	"testing"

	"taskledger/behaviors/builtin"
	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

func TestRun_ANodeServesWhatRunsBesideItAndEndsWithIt(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	servers := cluster.Config{Shards: 2, Etcd: []string{endpoint}, NATS: []string{testcluster.StartNATS(t).URL}}
	cfg := engine.NodeConfig{Behaviors: []task.Behavior{builtin.Noop()}, TTL: engineTTL}
	other := make(chan error, 1)
	err := servers.Run(t.Context(), cfg, func(ctx context.Context, node *engine.Node) error {
		f, err := node.Submit(ctx, builtin.Noop(), nil, task.SubmitOptions{})
		if err == nil {
			_, err = f.Wait(ctx)
		}
		return err
	}, func(ctx context.Context, _ *engine.Node) error {
		<-ctx.Done()
		other <- ctx.Err()
		return errors.New("it was closed")
	})
	if err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := <-other; !errors.Is(err, context.Canceled) {
		t.Errorf("the other function: %v", err)
	}
}

func TestRun_AFunctionThatFailsBesideANodeEndsItWithItsError(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	taken := errors.New("the port is taken")
	servers := cluster.Config{Shards: 2, Etcd: []string{endpoint}}
	err := servers.Run(t.Context(), engine.NodeConfig{TTL: engineTTL}, func(context.Context, *engine.Node) error { return taken })
	if !errors.Is(err, taken) {
		t.Errorf("Run: %v", err)
	}
}

func TestRun_EndsInOrderWithItsContextAndCallsNothingBesideANodeThatIsNotReady(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	servers := cluster.Config{Shards: 2, Etcd: []string{endpoint}}
	ctx, stop := context.WithCancel(t.Context())
	err := servers.Run(ctx, engine.NodeConfig{TTL: engineTTL}, func(ctx context.Context, _ *engine.Node) error {
		stop()
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil {
		t.Errorf("Run: %v", err)
	}
}

// A node that cannot be made leaves no cluster behind.
func TestRun_CreatesNoClusterForANodeThatCannotBeMade(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	servers := cluster.Config{Shards: 2, Etcd: []string{endpoint}}
	twice := []task.Behavior{builtin.Noop(), builtin.Noop()}
	if err := servers.Run(t.Context(), engine.NodeConfig{Behaviors: twice}); !invalid(err, "behaviors") {
		t.Errorf("Run: %v", err)
	}
	servers.Existing = true
	if _, err := cluster.Open(t.Context(), servers); !errors.Is(err, etcdstore.ErrNoCluster) {
		t.Errorf("there is a cluster: %v", err)
	}
}
