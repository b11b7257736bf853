// Package store declares the ports through which the engine reaches the outside: the store (etcd), the bus (NATS) and the
// archive (JetStream), with the errors that they return. It implements none of them. Package etcdstore implements Store,
// package natsbus implements Bus and Archive; storetest and archivetest hold any implementation to the contracts below.
//
// Store is a union, for configurations. Who needs a part of it takes that part: Journal, Sessions, Members and so on.
package store
