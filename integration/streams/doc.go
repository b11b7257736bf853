// Package streams tests streams of changes as their users see them: on several nodes of a cluster with etcd and NATS.
package streams
