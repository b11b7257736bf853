// Package engine runs shards, attempts and futures: a Node owns shards and makes attempts, a Client submits and waits. It
// stands on two ports, Store and Bus, and knows neither etcd nor NATS. ARCHITECTURE.md tells how its files hang together.
package engine
