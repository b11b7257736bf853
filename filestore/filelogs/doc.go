// Package filelogs keeps the logs of tasks in the files of a directory, for one process at a time. It implements
// tasklog.Store. What it acknowledges is synced; batches that come while a sync is under way share the next one.
//
// # Files
//
//	lock                   empty; locked by the process that uses the directory
//	logs-<16 hex digits>   a segment, from 1 on
//	*.new                  a file that is not whole; removed when the directory is opened
//
// A segment is a sequence of records as package filejournal describes them. The first one has the shard -2, the number
// of the segment as its number and the time of its beginning as its revision, and names the format and the cluster in
// its data. Each further record has the shard of a log, a number that grows from record to record over all segments
// and is the place of a batch, and as its revision the time when it was written, in milliseconds since 1970. Its data
// begin with a byte that says what it is. All numbers are unsigned varints:
//
//	1, a batch: life, attempt, first line, number of lines, and of each the milliseconds since the line before, the
//	   level, the length of its text, and that; the first line counts from 1970
//	2, a removal of the batches of an attempt: life, attempt, and the place up to which they go
//	3, a removal of the attempts of a life: life, and the attempt before which they go; 0 = all
//
// A removal counts for the records before it.
//
// # Bounds
//
// Segments have a sixteenth of the bytes that the logs may have, and 64 MiB at most, and begin anew after a sixteenth
// of the time. Beyond a bound the oldest segment goes, with all that is in it. Of one that is no more half needed,
// since logs were removed, what is needed is written anew under the same name, together with the one before where both
// are small. The last segment is open, and of the others 16 at most that were read last.
//
// # What a crash leaves
//
// The last segment is cut where its first broken record begins, if that was being written and nothing tells that it had
// been synced; package filejournal describes how that is told. Anything else that is corrupt is damage: it is named
// by file and offset, and nothing is opened. What is damaged later is left out by whoever reads it.
//
// Look finds that out, and Begin changes what is to be changed. It writes the records anew that the last one does not
// tell to have been synced: a sync of theirs may have failed, and what that leaves in memory alone looks as if it were
// on the disk.
package filelogs
