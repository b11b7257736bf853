// Package command defines the commands and questions to a shard with their forms on the wire, the batches that
// carry them, the answers, and the Decider, which turns commands into events against the state of the shard. It is
// pure: it reads no clock, does no I/O, starts no goroutine and calls no user code, so the same state, commands and
// time lead to the same events on any node.
//
// A command is a file: its fields, its form if it has one of its own, and its decision. Its number is a row of the
// table in engine/internal/commands. Commands of LaneQuery and LaneOffer decide nothing here: the owner answers them,
// a question by a case in engine/internal/shard/query.go.
package command
