package store

// Store joins all ports that a node needs of etcd. etcdstore implements it, and store/storetest holds any
// implementation to it.
type Store interface {
	Journal
	Sessions
	Members
	Owners
	Mailbox
	Sweeper
	Snapshots
	Trimmer
	Repairer
	Losses
	Housekeeping
	Cluster() Cluster
}

// MaxShards is the most shards of a cluster.
const MaxShards = 256

// Cluster holds the properties of a cluster that never change after its creation.
type Cluster struct {
	ID     string // random
	Shards int    // at most MaxShards
	Key    []byte // 32 bytes; authenticates messages between members
}
