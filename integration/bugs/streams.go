package bugs

// What streams promise of order, tokens and holds.
var streams = []Bug{
	{"token past an open change", "work/internal/prefix/prefix.go", []Edit{
		{"		last, token = last+1, e.token\n", "		last, token = last+1, p.entries[len(p.entries)-1].token\n"},
	}, "./work/internal/prefix", "TestPrefix_PassesWhatHasEndedBeforeEverythingThatIsOpen"},
	{"order of messages lost at redelivery", "work/feed/inorder/queue.go", []Edit{
		{"	if missing = q.Missing(s); missing != 0 {\n", "	if missing = q.Missing(s); missing > s.Pending {\n"},
	}, "./work/feed/memfeed", "TestSource_KeepsNewMessagesBackUntilAllThatWereDeliveredCameAgain"},
	{"change that is retried later overtaken", "work/mover.go", []Edit{
		{"	return len(m.held) > 0 && m.held[keyHash(key)]\n", "	return len(m.held) > 0 && key == \"\"\n"},
	}, "./work", "TestLiveSync_RetriesLaterInOrderAndGoesOnMeanwhile"},
	{"change of a move that failed passed", "work/mover.go", []Edit{
		{"	m.reopen(batch)\n	m.wanted = append(batch, m.wanted...)\n", "	m.wanted = append(batch, m.wanted...)\n"},
	}, "./work", "TestLiveSync_AMoveWithHoldsThatFailsLosesNothing"},
	{"move after one that may be recorded", "work/mover.go", []Edit{
		{"	m.unsure = !refuses(err)\n", "	m.unsure = refuses(err)\n"},
	}, "./work", "TestLiveSync_AMoveWithHoldsThatFailsLosesNothing"},
	{"stream that stands after a long move", "work/mover.go", []Edit{
		{"		m.wake()\n", "		m.ring()\n"},
	}, "./work", "TestLiveSync_GoesOnAfterAsManyChangesAsMayBeAheadHaveEndedDuringAMove"},
	{"stream that goes on below the token of a hold", "work/mover.go", []Edit{
		{"	return m.fence\n", "	return 0\n"},
	}, "./work", "TestLiveSync_GoesOnWithATokenAboveThoseOfTheHoldThatHasEnded"},
	{"token of a hold's attempt forgotten by the owner", "engine/internal/works/streamdecide.go", []Edit{
		{" + uint64(recorded) - 1\n", "/2 + uint64(recorded)\n"},
	}, worksPkg, "TestStream_GoesOnBehindAHoldAboveTheTokensOfItsAttempts"},
	{"simulation of nothing without an end", "engine/internal/works/streamdecide.go", []Edit{
		{"body.Token == stands && !ends\n", "body.Token == stands && (!ends || true)\n"},
	}, worksPkg, "TestStream_ASimulationOfNothingHasItsEndWhereItBegan"},
	{"permits of changes that are not passed forgotten", "projection/works/stages.go", []Edit{
		{"		s.dropPermits(of, of.open[0].Bucket+is.stage-stagesKept)\n", "		s.dropPermits(of, of.open[0].Bucket+is.stage-1)\n"},
	}, worksPkg, "TestPermits_OfAStreamAreForgottenWhenItsTokenHasPassedTheirChangesForLong"},
	{"message whose acknowledgement is not confirmed stands for a missing one", "work/feed/inorder/queue.go", []Edit{
		{"		if place <= s.Place && !q.unsure[place] {\n", "		if place <= s.Place {\n"},
	}, "./natsbus", "TestUpdates_KeepTheOrderWhereOpenMessagesHaveLeftTheStream"},
	{"another message at the place of a held one taken for it", "work/arrival.go", []Edit{
		{"	if p.whole == nil || p.whole.Time.IsZero() {\n", "	if p.whole == nil || !p.whole.Time.IsZero() {\n"},
	}, "./work", "TestAsyncUpdate_AnotherMessageAtThePlaceOfAHeldOneIsHeldBesides"},
	{"stream ended by a threshold before it has told how far it is", "engine/internal/works/decide.go", []Edit{
		{"	if trips && plan.Form == events.FormBuckets {\n", "	if trips {\n"},
	}, "./engine/internal/works", "TestStream_AThresholdLeavesTheAttemptToEndIt"},
}
