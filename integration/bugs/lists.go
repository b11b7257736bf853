package bugs

// What a list tells, and how long an owner works for it.
var lists = []Bug{
	{"lists that look at all tasks in one turn", "engine/query.go", []Edit{
		{"	o.looking.tasks -= found.Looked\n", ""},
	}, engine, "TestList_LooksAtABoundedNumberOfTasksInATurn"},
	{"list that leaves out what an answer had no room for", "engine/internal/command/list.go", []Edit{
		{"			told.Before, told.Until, told.Done = uint64(last.Created), int64(last.CreatedAt), false\n", "			_ = last\n"},
	}, engine, "TestList_GoesOnWhereAnAnswerHadNoRoom"},
	{"cursor of another filter", "projection/listing/cursor.go", []Edit{
		{"	case digest != f.Digest():\n", "	case digest == 0:\n"},
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
}
