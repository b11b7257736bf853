package bugs

// What a list tells, and how long an owner works for it.
var lists = []Bug{
	{"lists that look at all tasks in one turn", "engine/internal/shard/query.go", []Edit{
		{"	l.tasks -= tasks\n", ""},
	}, shardPkg, "TestList_LooksAtABoundedNumberOfTasksInATurn"},
	{"list that leaves out what an answer had no room for", "engine/internal/command/list.go", []Edit{
		{"			msg.Before, msg.Until, msg.Done = uint64(last.Created), int64(last.CreatedAt), false\n", "			_ = last\n"},
	}, shardPkg, "TestList_GoesOnWhereAnAnswerHadNoRoom"},
	{"cursor of another filter", "projection/listing/cursor.go", []Edit{
		{"	case digest != Digest(f):\n", "	case digest == 0:\n"},
	}, "./projection/listing", "TestCursor_OfAnotherListIsRefused"},
	{"page that does not wait for a shard", "engine/internal/paging/paging.go", []Edit{
		{"	return r.at\n}", "	return listing.Key{}\n}"},
	}, "./engine/internal/paging", "TestPage_TellsEachTaskOnceThatMatchesThroughout"},
	{"missing shard whose tasks are passed over", "engine/internal/paging/paging.go", []Edit{
		{"			r.Next[i] = s.rest()\n", ""},
	}, "./engine/internal/paging", "TestPage_TellsEachTaskOnceThatMatchesThroughout"},
	{"sums of stretches lost where they are poured together", "projection/creations.go", []Edit{
		{"		s.statuses[i] += n\n", "		_ = i + int(n)\n"},
	}, "./projection", "TestNewest_SumsUpStretchesThatArePouredTogether"},
	{"task that a snapshot has twice", "projection/snapshot.go", []Edit{
		{"		delete(sn.early, t.Created)\n		return\n", "		delete(sn.early, t.Created)\n"},
	}, "./projection", "TestSnapshot_IsTheStateAtItsEntryWhateverHappensMeanwhile"},
	{"time that is no bound", "task/filter.go", []Edit{
		{"		if events.MillisOf(*of(f)) <= 0 { // also the zero time, which would be no bound\n", "		if events.MillisOf(*of(f)) < 0 {\n"},
	}, "./task", "TestFilter_RefusesATimeThatWouldBeNoBound"},
	{"page of an ended context that asks for another one", "engine/internal/paging/shards.go", []Edit{
		{"	if ctx.Err() != nil && page.Cursor != \"\" {\n", "	if ctx.Err() != nil && len(page.Missing) > 0 {\n"},
	}, "./engine/internal/paging", "TestList_InPagesEndsWhereverItsContextEnds"},
	{"cursor of no cluster while nobody answers", "engine/internal/paging/shards.go", []Edit{
		{"	cluster := cmp.Or(s.Cluster, at.Cluster)", "	cluster := at.Cluster"},
	}, "./engine/internal/paging", "TestList_LetsABulkOperationWaitForShardsThatAreAllSilent"},
	{"bulk cancel that leaves what reports progress", "bulk/bulk.go", []Edit{
		{"|| try == cancelTries {\n", "|| try == 1 {\n"},
	}, "./bulk", "TestEach_CancelsTasksThatReportProgressAllTheTime"},
	{"bulk cancel of another life", "bulk/bulk.go", []Edit{
		{"now.Details.Life != seen.Details.Life || ", ""},
		{"!r.at.since(t.ID, t.Details.Life) && ", ""},
	}, "./bulk", "TestEach_CancelLeavesWhatMatchesNoMore"},
	{"shard without entries that counts as not heard", "engine/internal/paging/paging.go", []Edit{
		{"p.Head+1)", "p.Head)"},
	}, "./engine/internal/paging", "TestList_TellsTheNextEntryOfEachShardThatItHears"},
}
