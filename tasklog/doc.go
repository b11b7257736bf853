// Package tasklog keeps what tasks write while they run: the output of programs, and what functions log.
//
// A log belongs to one attempt, and one Writer writes it. It consists of lines, numbered 1, 2, 3 ... in the order
// in which they were written. A line that could not be kept leaves its number out: nothing else has to be stored
// for a reader to know how many lines are missing, and where. ReadTask makes a line of level Error for each such gap.
//
// A log is no record of the journal. It is bounded, it may be lost with the disk of its store, and no decision
// depends on it.
//
// # Bounds
//
//	a line       16 KiB of text; more is cut off, with a mark
//	a batch      64 KiB of text, 500 lines
//	an attempt   10 MiB of text, 100,000 lines; then its oldest lines go
//	a task       the newest 10 attempts
//	the store    as it is set up; then the oldest batches of all attempts go
//
// # Writing
//
// Lines leave in batches, of which one at most is under way: at 64 KiB or 500 lines, or 200 ms after the first
// line. A batch whose outcome is unknown is sent again as it is, and the Store takes it once. While no batch is
// acknowledged 1,000 lines or 1 MiB wait, and then the oldest of them go. A program is held before that, as long as
// the store answers: its output is read as fast as batches are acknowledged. After 5 s without an acknowledgement
// the store counts as away, and nobody is held.
//
// Lines that are lost behind the last one that is stored leave no gap. Writer.Mark stores a line behind them, once the
// store takes it.
//
// # Another implementation
//
// Package tasklogtest holds a Store to its contract, package memlog is the smallest one.
package tasklog
