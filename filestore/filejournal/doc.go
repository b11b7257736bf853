// Package filejournal keeps a journal in the files of one directory, for one process at a time. What follows is the
// whole format, version 1. Golden files pin it.
//
// # Files
//
//	lock                      empty; locked by the process that uses the directory
//	format                    JSON {"format","version","durability","lag_ms"}, written once; lag_ms is there where an
//	                          opportunistic journal has another lag than 1 s
//	run                       JSON {"boot","clean","segment","end","lost","sum"}: the last run, see below
//	log-<16 hex digits>       a segment of the log, from 1 on
//	snapshot-<shard>-<slot>   a snapshot of a shard
//	snapshot-notes-<slot>     a snapshot of the store's own notes
//	*.new                     a file that is not whole; removed when the journal is opened
//
// All but the last segment are written as a whole: under a name that ends with .new, synced, renamed, and the directory
// synced. Nobody but their user may read them.
//
// # Records
//
// Segments and snapshots are sequences of records. All numbers are little-endian:
//
//	offset  bytes
//	     0      4  0x544c4a31
//	     4      4  CRC-32C of bytes 8 to 79
//	     8      4  length of the data, 1 at least
//	    12      4  seed of the mask, 0 = none
//	    16      4  shard, signed
//	    20      4  CRC-32C of the data as they are stored
//	    24      8  number
//	    32      8  revision, signed
//	    40      8  durable: up to this offset the file was known to be synced when the record was written
//	    48     32  SHA-256 of the data
//	    80         data, masked where the seed is not 0
//
// The first record of a segment is of the shard -2, its number is that of the segment, and its data are the text
// "taskledger journal segment\n" and a line "<shard> <number>\n" for each shard that had an entry when the segment
// began, with the number of its next one: where entries before it are neither there nor needless, a segment is missing
// or has lost its end. Segments of before these lines were written have none. Every further record is an entry: of a
// shard, with its number and revision. The entries of all shards are in the order in which they were written.
//
// The first record of a snapshot has the shard (-1 for the notes), the first entry of the shard that is needed as its
// number, the slot as its revision, and the number of parts as its data, 4 bytes. Each part is a record with a number
// from 1 on, whose data are a byte that says nothing and then those of the part, since a part may be empty.
//
// # What a crash leaves
//
// A disk writes sectors of 512 bytes, in any order, and one that was not written reads as zeros. So that a write which
// was cut short can be told from damage, no part of a sector that a record takes is all zeros, nor is it when one bit
// flips: where data would be so, they are combined by exclusive or with the sequence that a seed begins (splitmix64,
// the low byte first), of a seed that leaves no such part: the first one from 1 to 64, else one that is drawn. The same
// is done where data hold the first four bytes of a record, so that none in them is taken for one of the log.
//
// When a journal is opened that was not closed, the last segment is cut where its first broken record begins, if the
// file ends inside that record or a part of a sector of it is zeros, and no record behind it tells that more was synced
// when it was written. A last segment that is cut before its first record is removed. Everything else is damage: it is
// named by file and offset, and the journal is not opened and not changed. The same holds where the last segment ends,
// or is broken, before the place up to which the file run tells that it was synced. A gap before an entry of a shard is
// damage, too, and so is a beginning with another entry than 1, but before the first one that a snapshot says is
// needed.
//
// # Durability
//
// A strict journal answers an entry once it is synced. Entries that come while a sync is under way are written
// together and share the next one. An opportunistic journal answers once the entry is written, and syncs half the lag
// later, which is the time that may be lost, 1 s. Once an entry that is not synced is older than the lag, as while a
// sync hangs, no other is answered before it is synced. Before a snapshot is written, and before another segment
// begins, the log is synced, whatever the durability. After a sync that failed nothing more is written: nobody knows
// what the disk holds. But an opportunistic journal with entries that are not synced says in the file run that they
// may be lost, since a file system may read no more what it has failed to write. Where it cannot say so, either, nor
// when it is closed, the next run learns of that loss by another boot id alone. A system may also take for written
// from then on what is not, so after a run that did not end in order the last segment is written over itself.
//
// The file run has the boot id of the machine and says that the journal is open, and how much of the last segment was
// synced when that was written, or that it was closed and where the log ends. Where it is open and the id is another
// one, or none, the machine has stopped meanwhile; an opportunistic journal then says that entries may be lost, also
// when it is opened again, until the store has noted it. Under the same id it says so where a part of a sector of the
// last segment is zeros, which no crash of a process leaves, before that is cut off, and where it could not make
// durable what it had found. Its sum is the CRC-32C of the same JSON without it.
//
// # Making room
//
// A snapshot says which entries of its shard are still needed. When it is written, each segment but the last one goes
// of which nothing is needed, and one of which less than a quarter is needed, with its first record, is replaced by a
// file of the same name with what is. So an idle shard keeps what its last snapshot needs, and not a log. The store
// writes a snapshot without parts where entries were trimmed, which says no more than that.
package filejournal
