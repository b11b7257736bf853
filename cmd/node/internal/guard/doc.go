// Package guard ends the programs of a node that was killed. A process beside the node reads a pipe of which the node
// alone holds the other end, and is told there of process groups; where the pipe ends, the node has, and the process
// kills the groups that are left, then ends. It is on Linux alone: elsewhere there is none.
package guard

// Command is the argument with which this program is started as a guard.
const Command = "guard"
