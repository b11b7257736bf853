// Package engine runs shards, attempts and futures.
package engine
