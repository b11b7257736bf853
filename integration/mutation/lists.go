package main

// lists break what a list tells, and bound the work of an owner for it.
var lists = []mutation{
	{"lists that look at all tasks in one turn", "TestList_LooksAtABoundedNumberOfTasksInATurn",
		in("engine/internal/shard/query.go", "	l.tasks -= tasks\n", "")},
	{"list that leaves out what an answer had no room for", "TestList_GoesOnWhereAnAnswerHadNoRoom",
		in("engine/internal/command/list.go",
			"msg.Before, msg.Until, msg.Done = uint64(last.Created), int64(last.CreatedAt), false", "_ = last")},
	{"cursor of another filter", "TestCursor_OfAnotherListIsRefused",
		in("projection/listing/cursor.go", "digest != Digest(f)", "digest == 0")},
	{"page that does not wait for a shard", "TestPage_TellsEachTaskOnceThatMatchesThroughout",
		in("engine/internal/paging/paging.go", "return r.at\n}", "return listing.Key{}\n}")},
	{"missing shard whose tasks are passed over", "TestPage_TellsEachTaskOnceThatMatchesThroughout",
		in("engine/internal/paging/paging.go", "			r.Next[i] = s.rest()\n", "")},
	{"sums of stretches lost where they are poured together", "TestNewest_SumsUpStretchesThatArePouredTogether",
		in("projection/creations.go", "s.statuses[i] += n", "_ = i + int(n)")},
	{"task that a snapshot has twice", "TestSnapshot_IsTheStateAtItsEntryWhateverHappensMeanwhile",
		in("projection/snapshot.go", "delete(sn.early, t.Created)\n		return", "delete(sn.early, t.Created)")},
	{"time that is no bound", "TestFilter_RefusesATimeThatWouldBeNoBound",
		in("task/filter.go", "(*of(f)) <= 0 { // also the zero time, which would be no bound", "(*of(f)) < 0 {")},
	{"page of an ended context that asks for another one", "TestList_InPagesEndsWhereverItsContextEnds",
		in("engine/internal/paging/shards.go", `Err() != nil && page.Cursor != ""`, "Err() != nil && len(page.Missing) > 0")},
	{"cursor of no cluster while nobody answers", "TestList_LetsABulkOperationWaitForShardsThatAreAllSilent",
		in("engine/internal/paging/shards.go", "cluster := cmp.Or(s.Cluster, at.Cluster)", "cluster := at.Cluster")},
	{"bulk cancel that leaves what reports progress", "TestEach_CancelsTasksThatReportProgressAllTheTime",
		in("bulk/bulk.go", "try == cancelTries {", "try == 1 {")},
	{"bulk cancel of another life", "TestEach_CancelLeavesWhatMatchesNoMore",
		in("bulk/bulk.go", "now.Details.Life != seen.Details.Life || ", "").
			and("!r.at.since(t.ID, t.Details.Life) && ", "")},
	{"shard without entries that counts as not heard", "TestList_TellsTheNextEntryOfEachShardThatItHears",
		in("engine/internal/paging/paging.go", "p.Head+1)", "p.Head)")},
}
