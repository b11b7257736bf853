// Package natsbus carries the cluster's hints and requests over NATS core, and keeps its archive and the logs of
// its tasks in JetStream. It implements store.Bus, store.Archive and tasklog.Store.
//
// Nothing on the bus is truth: delivery is at most once and unordered across publishers, and every message may be
// lost, delayed or, by whoever records and replays it, repeated on the subject it was sent on. What must arrive
// travels through the store, and receivers judge a message by its numbers, not by its coming; what users ask, which
// must not be done twice, by its age as well.
//
// # Subjects
//
// All subjects start with the cluster's name and a dot.
//
//	shard.<n>                       a batch of commands for the owner of shard n, with a reply subject
//	node.<id>.>                     answers to a node or client, assignments, cancels, questions; its reply subjects
//	plan.<behavior>                 queue group: plan a submit that came without the behavior's code
//	load                            every node's backlog, free slots and clock
//	done.<n>                        the outcomes that one entry of shard n committed, for waiting futures
//	settings                        cluster-wide settings have changed
//	completed.<behavior>.<status>   public: one message per outcome
//	archive.<n>                     stored: the archive of shard n
//	logs.<n>.<life>.<attempt>       stored: the log of an attempt of a task of shard n
//
// A token is 1 or more of [A-Za-z0-9_-]; whatever else stands in a subject is refused, so no id can be a wildcard
// or a separator. The server's limit (1 MiB by default) bounds a message; the engine keeps batches to 512 KiB and
// answers to 900 KiB.
//
// # Internal messages
//
// Everything but completed.>, archive.> and logs.> is authenticated with the cluster key, since a NATS account is often
// shared. The payload is
//
//	1 byte   version, 1
//	32 bytes HMAC-SHA-256 over version, subject, reply subject and body; both subjects as they stand on the wire, each
//	         preceded by its length as a uvarint, so that no byte can move from one part to the next
//	n bytes  body
//
// Forged, garbled and short messages are counted and dropped before any handler sees them. Bodies are readable by
// whoever may subscribe: use TLS and permissions where that matters. Subjects must arrive as they were sent: no
// subject mapping between members, no super-cluster gateway that rewrites replies.
//
// The server itself answers a request on whose subject nobody listens, with an empty message of header status 503 to
// the reply subject. It cannot be authenticated; it is believed on node.> alone, where a forged one only sends a batch
// the slower way, through the store. To know which request it answers, put that into the reply subject, for example
// node.<id>.<shard>.<lane>.<number>, and subscribe to node.<id>.> once: of several plain subscriptions of one
// connection that match, the server picks one.
//
// # Completed tasks, for programs in any language
//
// completed.<behavior>.<status> (status is SUCCESS or FAILURE) carries one CloudEvents JSON document per outcome
// that a future would see, without frame and without authentication. Subscribe with any NATS client, for example to
// taskledger.completed.*.FAILURE. Delivery is at most once to whoever listens at that moment; an outcome may be
// published again, with the same CloudEvents id. The data names the task, its behavior, status, run and attempt,
// and the session id of the node that made it. Results up to 64 KiB stand in the message, larger ones are read by
// position.
//
// # The archive
//
// One stream per cluster, its name in capitals and _ARCHIVE, holds what was trimmed from the journals, for ever:
// files, no limits, no age, nothing can be removed but the whole stream. It is made with the first segment; one
// that exists is used if it never loses what it acknowledged, and tells no other cluster in its metadata, under
// taskledger-cluster: it gets the id of the first one that writes to it, or finds its own entries there. It has one
// subject per shard, since every subject costs the server memory for ever. All requests go to the leader of the
// stream.
//
// A message is a segment: consecutive entries of one shard. It is published with the sequence of the shard's last
// message as a condition (Nats-Expected-Last-Subject-Sequence), so that what is sent twice, or by a former owner,
// is stored once or not at all. It never changes. Its headers are
//
//	Taskledger-First   number of its first entry, decimal
//	Taskledger-Last    number of its last entry
//	Taskledger-Begins  sequence of the segment after which the archive of the shard began anew; not there where it never did
//	Taskledger-Tasks   which tasks may have events in it: a Bloom filter in base64, with padding; 8 KiB at most
//
// and its body, a block of S2, holds the msgpack array
//
//	[1, shard, [[number, etcd revision, entry] ...]]
//
// where entry is the binary string that stood in the journal. The filter of m bytes has bit i in byte i/8, of value
// 1<<(i%8). A task has 7 bits: (a + k*b mod 2^64) mod 8m for k = 0 to 6, where a and b are the first and the second 8
// bytes of the SHA-256 of its id, big endian. m is 10 bits per task, rounded up, and 6,144 at most: one in a hundred
// tasks that are not inside looks as if it were, more of a segment of more than 4,900 tasks. A segment whose filter is
// missing or empty may hold every task.
//
// Segments carry no MAC. Entries are chained by their hashes, and whoever reads them checks that; the revisions and
// what stands around the entries are believed. Whoever may publish on archive.> can spoil the archive but not forge it
// unnoticed. A node needs the rights to publish there and on $JS.API.>, and to subscribe to its _INBOX.>; a leaf
// node between it and the stream's servers needs a max_payload of 2 MiB, since requested messages come back in
// base64.
//
// # Logs
//
// Another stream, its name in capitals and _LOGS, holds what tasks write. It is bounded, and the oldest messages go
// first: see LogsConfig. It has one subject per attempt: life is the number of the Created of the task, entry*2^20 +
// index. What is forgotten is purged by subject. All requests go to the leader of the stream, and what is published has
// the sequence of the subject's last message as a condition, as in the archive; 0 where the bounds have removed that.
//
// A message is a batch: consecutive lines of the attempt. Its headers are
//
//	Taskledger-First   number of its first line, decimal
//	Taskledger-Last    number of its last line
//	Taskledger-Since   when its first line was written, in milliseconds since 1970
//	Taskledger-Until   when its last line was written
//
// and its body, a block of S2, holds the msgpack array
//
//	[1, shard, life, attempt, first line, [[milliseconds since the line before, level, text] ...]]
//
// where the first line counts from 1970, and the levels are 0 (info) and 1 (error). Logs carry no MAC: who may publish
// on logs.> can add and spoil lines.
//
// # Updates
//
// Updates is the source of a stream of changes (package work/feed): the messages of any JetStream stream, by a durable
// pull consumer with explicit acknowledgements that nobody else reads. An acknowledgement is a request, which the
// server answers. Consumers count their deliveries, and Updates watches that count: when it begins, when the connection
// was lost, and at a gap, it asks for the state of the consumer, and hands nothing out until everything is here that
// was delivered and not acknowledged. What a worker has left that died therefore delays the next one until it is
// delivered again, after the consumer's ack wait at the latest; one that closes its source gives it back at once.
//
// While nothing comes there is a request every five seconds; while messages are missing, four a second; without a
// connection, none.
package natsbus
