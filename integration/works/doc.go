// Package works tests partitioned work as its users see it: on several nodes of a cluster with etcd and NATS.
package works
