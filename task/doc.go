// Package task is what the implementer of a behavior sees: Behavior and its optional Merger, the Plan of a submit, the Attempt
// that a node makes, its Outcome, the Policy that is recorded with every task, and the errors that submitters and those who wait
// get. Package behaviors implements Behavior for functions of any parameter and result types; package engine runs it.
package task
