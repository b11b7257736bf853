// Package processes tests clusters whose nodes are processes of their own, which are killed, paused and given other
// clocks.
package processes
