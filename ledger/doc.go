// Package ledger reads what happened in a cluster: the history of a task, a task as it was at a time, the events of all shards in
// the order of their commits, past (Replay) and to come (Follow), the verification of journals, snapshots and archive, exports
// that prove a history without the cluster, and checkpoints. It changes nothing, and needs three narrow ports: Journal, Snapshots
// and an archive's reading half. engine.Client.Ledger returns the ledger of a client's cluster.
package ledger
