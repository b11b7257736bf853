// Package world is a cluster in one process, and a history of it: three nodes, two clients, the modelled etcd between
// them, a modelled bus and archive, traffic, faults at drawn times. All choices are drawn from one seed. It is meant
// for the machine, where they determine the history to the byte, and where time costs nothing; anywhere else it is as
// random as the order of goroutines.
package world
