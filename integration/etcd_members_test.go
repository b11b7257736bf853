package integration_test

import (
	"testing"

	"taskledger/behaviors"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
)

func TestEtcdMembers_EachStoppedAndStartedAgainInMidRunNothingFailsOrRunsTwice(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	etcd := testcluster.StartEtcdMembers(t, 3)
	f := startFlowOn(t, etcd)
	for _, m := range leaderFirst(etcd) {
		etcd.Stop(m)
		f.await(t, 50)
		etcd.Start(m)
		f.await(t, 50)
	}
	f.wantOnce(t)
}

func TestEtcdMembers_LeaderThatNoLongerAnswersItsClientsHoldsUpNobodyForLong(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	etcd := testcluster.StartEtcdMembers(t, 3)
	f := startFlowOn(t, etcd)
	leader := etcd.Leader()
	etcd.Hold(leader) // the client drops such a member after 13s; until then it costs every third request its time-out
	f.await(t, 20)
	etcd.Release(leader)
	f.await(t, 50)
	f.wantOnce(t)
}

// memberFlow is a flow of submits to a node and a client that reach all members of an etcd.
type memberFlow struct {
	*flow
	tally  *tally
	client *testcluster.Client
}

func startFlowOn(t *testing.T, etcd *testcluster.EtcdMembers) *memberFlow {
	t.Helper()
	// No session ends, however many renewals in a row meet the lost member.
	c := testcluster.New(t, testcluster.Options{Etcd: etcd})
	f := &memberFlow{tally: defineTally(&behaviors.Rules[string, string]{TaskID: idFromParams})}
	nodes := c.StartNodes(nil, f.tally.on, "a", "b")
	f.client = c.StartClient("caller", nil)
	f.flow = startFlow(t, f.tally, nodes[0], f.client)
	f.await(t, 50)
	return f
}

// wantOnce ends the flow and asserts that every task was kept and ran once.
func (f *memberFlow) wantOnce(t *testing.T) {
	t.Helper()
	f.tally.wantOnce(t, f.client.Client, f.end())
}

// leaderFirst returns the numbers of the three members.
func leaderFirst(etcd *testcluster.EtcdMembers) []int {
	leader := etcd.Leader()
	return []int{leader, (leader + 1) % 3, (leader + 2) % 3}
}
