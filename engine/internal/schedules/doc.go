// Package schedules is the front of schedules: what a client asks of them, and what their owners decide, unasked too.
// The fold and the decisions of ticks are in projection/schedules.
package schedules
