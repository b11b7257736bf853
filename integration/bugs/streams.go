package bugs

// What streams promise of order, tokens and holds.
var streams = []Bug{
	{"token past an open change", "work/internal/prefix/prefix.go", []Edit{
		{"		last, token = last+1, e.token\n", "		last, token = last+1, p.entries[len(p.entries)-1].token\n"},
	}, "./work/internal/prefix", "TestPrefix_PassesWhatHasEndedBeforeEverythingThatIsOpen"},
	{"order of messages lost at redelivery", "work/feed/inorder/queue.go", []Edit{
		{"	if missing = s.Pending - here; missing > 0 {\n", "	if missing = s.Pending - here; missing > s.Pending {\n"},
	}, "./work/feed/memfeed", "TestSource_KeepsNewMessagesBackUntilAllThatWereDeliveredCameAgain"},
	{"change that is retried later overtaken", "work/mover.go", []Edit{
		{"	return len(m.held) > 0 && m.held[keyHash(key)]\n", "	return len(m.held) > 0 && key == \"\"\n"},
	}, "./work", "TestLiveSync_RetriesLaterInOrderAndGoesOnMeanwhile"},
}
