// Package bill is a behavior that an API submits and a worker runs.
package bill

import (
	"os"

	"taskledger/behaviors"
	"taskledger/cluster"
	"taskledger/events"
)

// Order is an order that a bill is made of.
type Order struct{ Number string }

// Make makes the bill of an order, and returns its number. However often it is submitted, an order has one task.
var Make = behaviors.Define("bill", &behaviors.Rules[Order, string]{
	TaskID: func(o Order) events.TaskID { return behaviors.HashID("", "bill", o.Number) },
})

// Servers names the etcd and the NATS of both programs, by their environment.
var Servers = cluster.Config{Etcd: []string{os.Getenv("ETCD")}, NATS: []string{os.Getenv("NATS")}}
