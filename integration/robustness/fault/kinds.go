package fault

import (
	"slices"
	"time"

	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
)

// Kinds is every kind, in the order in which --all-faults takes them, two at a time.
var Kinds = []Kind{
	{history.KillKind, oneNode, 0, 0, 3 * time.Second, killNode},
	{"compaction", etcd, 0, 2 * time.Second, 4 * time.Second, compact},
	{"node-pause-long", oneNode, cluster.NeedProc, cluster.TTL + 1500*time.Millisecond, 2*cluster.TTL + time.Second, pauseNode},
	{"nats-restart", nats, cluster.NeedNATS, time.Second, 3 * time.Second, restartNATS},
	{"node-pauses-short", oneNode, cluster.NeedProc, 3 * time.Second, 5 * time.Second, pauseNodeShortly},
	{"etcd-leader-kill", etcd, 0, time.Second, 3 * time.Second, killLeader},
	{"node-starve", oneNode, cluster.NeedProc, 3 * time.Second, 5 * time.Second, starveNode},
	{"writes-lost-and-late", nothing, cluster.NeedWrites, 3 * time.Second, 6 * time.Second, loseWrites},
	{"partition-node-etcd", oneNode, 0, 2 * time.Second, 6 * time.Second, partition(toEtcd, bothWays)},
	{"nats-slow-consumer", nats, cluster.NeedTight, 3 * time.Second, 5 * time.Second, slowConsumer},
	{"partition-node-all", oneNode, 0, 2 * time.Second, 6 * time.Second, partition(toAll, bothWays)},
	{"etcd-member-restart", etcd, 0, time.Second, 2 * time.Second, restartMember},
	{"replies-lost", oneNode, 0, 2 * time.Second, 5 * time.Second, partition(toAll, repliesOnly)},
	{"defragmentation", etcd, 0, 2 * time.Second, 4 * time.Second, defragment},
	{"requests-lost", oneNode, 0, 2 * time.Second, 5 * time.Second, partition(toAll, requestsOnly)},
	{"bus-doubled-and-late", nats, cluster.NeedNATS, 3 * time.Second, 6 * time.Second, disturbBus},
	{cluster.StepKind, oneNode, 0, 2 * time.Second, 5 * time.Second, stepClock},
	{"etcd-leader-pause-short", etcd, cluster.NeedProc, 500 * time.Millisecond, 2500 * time.Millisecond, pauseLeader},
	{"partition-node-nats", oneNode, cluster.NeedNATS, 2 * time.Second, 5 * time.Second, partition(toNATS, bothWays)},
	{"etcd-leader-pause-long", etcd, cluster.NeedProc, cluster.TTL + time.Second, cluster.TTL + 3*time.Second, pauseLeader},
	{"half-open-links", oneNode, 0, 2 * time.Second, 4 * time.Second, loseConnections},
	{"etcd-majority-loss", etcd, 0, 2 * time.Second, 4 * time.Second, loseMajority},
	{"latency", oneNode, 0, 3 * time.Second, 6 * time.Second, delayLinks},
	{"etcd-minority-with-clients", etcd, cluster.NeedMembers, 2 * time.Second, 5 * time.Second, isolateMember},
	{"bus-forged", nats, cluster.NeedNATS, 2 * time.Second, 4 * time.Second, forgeMessages},
	{"etcd-full", etcd, cluster.NeedQuota, time.Second, 3 * time.Second, fillEtcd},
	{"rolling-restart", allNodes, 0, 0, 0, restartNodes},
	{"nats-absent", nats, cluster.NeedAbsent, 4 * time.Second, 6 * time.Second, noNATS},
	{"packets-lost-node-etcd", oneNode, cluster.NeedNamespace, 2 * time.Second, 6 * time.Second, losePackets(toEtcd, bothWays)},
	{"packets-lost-to-servers", oneNode, cluster.NeedNamespace, 2 * time.Second, 5 * time.Second, losePackets(toAll, requestsOnly)},
	{"packets-lost-node-all", oneNode, cluster.NeedNamespace, 2 * time.Second, 6 * time.Second, losePackets(toAll, bothWays)},
	{"packets-lost-node-nats", oneNode, cluster.NeedNamespace | cluster.NeedNATS, 3 * time.Second, 6 * time.Second, losePackets(toNATS, bothWays)},
	{"packets-lost-from-servers", oneNode, cluster.NeedNamespace, 2 * time.Second, 5 * time.Second, losePackets(toAll, repliesOnly)},
	{"client-kill", oneClient, 0, 0, 3 * time.Second, killClient},
	{history.BusAwayKind, nats, cluster.NeedNATS | cluster.NeedSmall, 65 * time.Second, 80 * time.Second, restartNATS},
	{"pause-and-restart", everything, 0, 0, 0, pauseAndRestart},
	{"limits-and-restart", everything, cluster.NeedLimits, 0, 0, limitsAndRestart},
	{"quarantine-and-restart", everything, 0, time.Second, 2 * time.Second, quarantineAndRestart},
	{cluster.UnseenKind, everything, 0, 3 * time.Second, 6 * time.Second, jumpUnseen},
	{history.QuietKind, everybody, 0, 2 * time.Minute, 2*time.Minute + 10*time.Second, beQuiet},
	{"servers-elsewhere", nothing, 0, 0, 0, moveServers},
	{"alien-entry", everything, 0, time.Second, 2 * time.Second, alienEntry},
	{"meta-removed", everything, 0, time.Second, 2 * time.Second, removeMeta},
	{"owner-key-damaged", everything, 0, time.Second, 2 * time.Second, damageOwner},
	{"node-key-damaged", everything, 0, time.Second, 2 * time.Second, damageNode},
	{"owner-key-of-no-shard", everything, 0, time.Second, 2 * time.Second, strayOwner},
	{"client-pause", oneClient, cluster.NeedProc, time.Second, cluster.TTL + time.Second, pauseClient},
}

func faultNamed(name string) (*Kind, bool) {
	i := slices.IndexFunc(Kinds, func(f Kind) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return &Kinds[i], true
}
