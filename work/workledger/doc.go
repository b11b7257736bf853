// Package workledger is the port by which an attempt of a work reaches the record of the work: Ledger. Package work
// asks it, the engine implements it, and finds it for an attempt by the context: Key.
package workledger
