package trees

import "taskledger/work"

// WorkID is the id of the work, and of its behavior.
const WorkID = "mirror"

// PartitionLimit is the id of the partition that counts deletions before anything is changed.
const PartitionLimit = "limit"

// Validate returns a *store.InvalidError for limits with which no work can be defined.
func (l Limits) Validate() error { return new(Pair).Work(l).Validate() }

// Work defines the work that makes the target equal to the source. Its partitions follow one another:
//
//	limit               only with MaxDeletes: counts what would be deleted, and changes nothing
//	parts               completes or removes the parts that an earlier run has left behind
//	clear               deletes what has the place of a directory, or a directory that has the place of a file
//	copy                copies the files and links that differ
//	delete              deletes files and links that the source does not have, and parts that this run has left behind
//	delete-directories  deletes directories that the source does not have
//	directories         makes directories that are missing, and gives all their modes and times
//
// Where the order of the items does not matter, a partition is cut by the first hexadecimal digits of the SHA-256 of
// the path. So buckets are about equal whatever the names are, for the price of a walk over the tree for each bucket. A
// partition in which children come before their parents has one bucket and one thread.
func (p *Pair) Work(l Limits) *work.Work[Params, Item] {
	l = l.complete()
	steps := []step{{
		id:      "parts",
		tree:    p.target,
		wants:   isPart,
		fates:   []fate{gone, inTheWay},
		process: p.finish,
		counter: CounterCopies,
	}, {
		id:            "clear",
		tree:          p.target,
		wants:         isEntry,
		fates:         []fate{inTheWay},
		childrenFirst: true,
		process:       p.delete,
		counter:       CounterDeletes,
		limit:         l.MaxDeletes,
	}, {
		id:         "copy",
		tree:       p.source,
		wants:      isFile,
		unreadable: true,
		process:    p.copy,
		counter:    CounterCopies,
	}, {
		id:         "delete",
		tree:       p.target,
		wants:      isFile,
		fates:      []fate{gone},
		unreadable: true,
		process:    p.delete,
		counter:    CounterDeletes,
		limit:      l.MaxDeletes,
	}, {
		id:            "delete-directories",
		tree:          p.target,
		wants:         isDirectory,
		fates:         []fate{gone},
		childrenFirst: true,
		process:       p.delete,
		counter:       CounterDeletes,
		limit:         l.MaxDeletes,
	}, {
		id:            "directories",
		tree:          p.source,
		wants:         isDirectory,
		childrenFirst: true,
		process:       p.directory,
	}}
	if l.MaxDeletes != nil {
		steps = append([]step{{
			id:      PartitionLimit,
			mode:    work.Simulate,
			tree:    p.target,
			wants:   isNoPart,
			fates:   []fate{gone, inTheWay},
			process: count,
			counter: CounterDeletes,
			limit:   l.MaxDeletes,
		}}, steps...)
	}
	var all []work.Partition[Params, Item]
	for _, s := range steps {
		all = append(all, p.partition(s, l))
	}
	return work.Define(WorkID, nil, all...)
}
