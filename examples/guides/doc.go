// Package guides holds the programs of the guides below docs, which its tests run.
package guides
