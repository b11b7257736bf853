// Package modeletcd is etcd as a deterministic data structure: what the requests of etcd 3.7 do to keys, leases and
// watches, without servers, disks, goroutines, clocks or random numbers. A conformance test holds it to the real one.
//
// # What it is not
//
// It is always linearizable, whatever a read asks for, and it answers at once: delays, losses and copies are the
// affair of each client's Transport. Requests that the real etcd knows and the model does not are refused with
// codes.Unimplemented and the name of the field or the method; none is answered approximately.
//
// It retains every change for History, so that checkers see what was compacted.
package modeletcd
