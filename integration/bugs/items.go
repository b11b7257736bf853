package bugs

const itemsPkg = "./projection/items"

// What a store promises to its callers, and what its fold demands.
var items = []Bug{
	{"id of an item that leaves some out", "projection/items/fold.go", []Edit{
		{"id != next && !(s.some && id > next) || id > events.MaxItemNumber {", "id < next {"},
	}, itemsPkg, "TestFold_RefusesWhatTheStateDoesNotAllowAndLeavesNoTrace"},
	{"id of an item used again", "projection/items/fold.go", []Edit{
		{"	s.take(was)\n	s.prune(was.Group)\n", "	s.take(was)\n	s.prune(was.Group)\n	was.Group.Store.Last--\n"},
	}, itemsPkg, "TestUpdate_IDsGrowAndAreNeverUsedAgainAlsoAfterASnapshot"},
	{"updates that get their ids before adds", "projection/items/decide.go", []Edit{
		{"	next := s.next(store)\n	d.First = next\n", "	next := s.next(store) + uint64(len(u.Changes))\n	d.First = next\n"},
	}, itemsPkg, "TestUpdate_AddsGetTheirIDsBeforeUpdatesInTheOrderOfTheRequest"},
	{"late owner who changes what another has", "projection/items/items.go", []Edit{
		{"func (i *Item) Available(now events.Millis) bool { return i.At <= now }", "func (i *Item) Available(now events.Millis) bool { return i.At <= now || now > 0 }"},
	}, itemsPkg, "TestUpdate_OfALateOwnerIsRefusedOnceAnotherHasTheItem"},
	{"fold that does not ask whose an item is", "projection/items/fold.go", []Edit{
		{"	case !was.changeable(by, ev.At):\n", "	case false:\n"},
	}, itemsPkg, "TestFold_RefusesWhatTheStateDoesNotAllowAndLeavesNoTrace"},
	{"first problem told alone", "projection/items/decide.go", []Edit{
		{"	p.found = append(p.found, item.Problem{", "	p.found = append(p.found[:0], item.Problem{"},
	}, itemsPkg, "TestUpdate_TellsAllProblemsInOrderAndAppliesNothing"},
	{"deletes checked before depends", "projection/items/decide.go", []Edit{
		{"	p.depend(u.Depends)\n	for _, id := range u.Deletes {\n		p.changeable(\"deletes\", id)\n	}\n", "	for _, id := range u.Deletes {\n		p.changeable(\"deletes\", id)\n	}\n	p.depend(u.Depends)\n"},
	}, itemsPkg, "TestUpdate_TellsAllProblemsInOrderAndAppliesNothing"},
	{"group that an update changes", "projection/items/decide.go", []Edit{
		{"		if was != nil && c.Group != \"\" && c.Group != was.Group.Name {\n", "		if false {\n"},
	}, itemsPkg, "TestUpdate_TellsAllProblemsInOrderAndAppliesNothing"},
	{"depends that an empty group hides", "projection/items/decide.go", []Edit{
		{"	if p.depend(c.Depends); len(p.found) > 0 {", "	if p.depend(c.Depends); len(p.found) > 0 && s.Free(store, c.Group) > 0 {"},
	}, itemsPkg, "TestClaim_ChecksDependsBeforeItLooksAtTheGroup"},
	{"claim that takes the oldest alone", "projection/items/decide.go", []Edit{
		{"g.free.GetAt(int(random % uint64(min(Head, g.free.Len()))))", "g.free.GetAt(int(random % 1))"},
	}, itemsPkg, "TestClaim_ChoosesAmongTheOldest64Alike"},
	{"repeated claim that takes a second item", "projection/items/decide.go", []Edit{
		{"	k := s.find(in, request, now)\n", "	k := s.find(nil, request, now)\n"},
	}, itemsPkg, "TestKey_ARepeatedClaimIsAnsweredWithTheSameItem"},
	{"another request under a key", "projection/items/decide.go", []Edit{
		{"	case k.request != request:\n", "	case false:\n"},
	}, itemsPkg, "TestKey_ARepeatedClaimIsAnsweredWithTheSameItem"},
	{"keys that are never forgotten", "projection/items/keys.go", []Edit{
		{"len(of) > KeysPerClient {", "len(of) > 1000*KeysPerClient {"},
	}, itemsPkg, "TestKey_TheLast64OfAClientCountForAnHour"},
	{"keys that count longer than an hour", "projection/items/keys.go", []Edit{
		{"	if k == nil || s.age(k, now) > KeysLast {", "	if k == nil {"},
	}, itemsPkg, "TestKey_TheLast64OfAClientCountForAnHour"},
	{"keys that a jump of the clock forgets", "projection/steady/steady.go", []Edit{
		{"	return max(now-c.time-MaxGap, 0)\n", "	return 0\n"},
	}, itemsPkg, "TestKeys_AreKeptWhenTheClockJumps"},
	{"repetition of what may be forgotten that is done", "projection/items/decide.go", []Edit{
		{"	case k == nil && s.mayHaveForgotten(in, request, first, now):\n", "	case false:\n"},
	}, itemsPkg, "TestKeys_WhoRepeatsWhatMayBeForgottenIsTold"},
	{"repetition that was under way for longer than the time until the next key", "projection/items/keys.go", []Edit{
		{"s.age(of[0], now) <= ago {", "s.age(of[0], now) < events.Millis(first.asked.Milliseconds()) {"},
	}, itemsPkg, "TestKeys_ARepetitionIsOlderThanItsAgeByTheTimeUnderWay"},
	{"busy client whose count of its requests is not believed", "projection/items/keys.go", []Edit{
		{"first.within > 0 && first.within <= KeysPerClient", "first.within < 0"},
	}, itemsPkg, "TestKeys_ARepetitionWithinTheLast64OfItsClientIsDoneHoweverBusyThatIs"},
	{"keys of a store that those of another drive out", "projection/items/keys.go", []Edit{
		{"	for _, in := range []*Store{most, k.store} {\n", "	for _, in := range []*Store{k.store, most} {\n"},
		{"s.age(oldest, k.at) > KeysSafe {", "true {"},
	}, itemsPkg, "TestKeys_AStoreThatUsesAllOfAShardMakesNoOtherForgetAndMayNotGoOn"},
	{"ids that come again with a store", "projection/items/forget.go", []Edit{
		{"		s.gone = max(s.gone, last-s.base)\n", ""},
	}, itemsPkg, "TestStores_AreForgottenOnceTheyAreEmptyAndNoIDIsUsedTwice"},
	{"claims that are not counted", "projection/items/fold.go", []Edit{
		{"		is.Claims++\n", ""},
	}, itemsPkg, "TestClaims_AreCountedUntilTheDataAreOthers"},
	{"equal data stored again", "projection/items/decide.go", []Edit{
		{"		if data := events.Bytes(c.Data); !c.Keep && string(data) != string(was.Data) {", "		if data := events.Bytes(c.Data); !c.Keep {"},
	}, itemsPkg, "TestUpdate_OfEqualDataIsStoredAsUnchanged"},
	{"snapshot of items as they are later", "projection/items/rows.go", []Edit{
		{"	all := s.all.Copy()\n", "	all := s.all\n"},
	}, itemsPkg, "TestRows_AreThoseOfTheBeginningWhateverChanges"},
	{"item of an entry to come restored", "projection/items/rows.go", []Edit{
		{"	if s.restoring.last.Entry() > entry {", "	if false {"},
	}, itemsPkg, "TestRows_ThatContradictTheOthersAreRefused"},
	{"ids that a lost end of the journal may have used", "projection/items/fold.go", []Edit{
		{"min(in.Last+recoveredSkip, events.MaxItemNumber)", "min(in.Last, events.MaxItemNumber)"},
	}, itemsPkg, "TestRecovered_KeepsIDsFromBeingUsedTwice"},
	{"ids of a store that a lost end of the journal had made", "projection/items/fold.go", []Edit{
		{"	return min(s.base+s.gone, events.MaxItemNumber) + 1\n", "	return s.gone + 1\n"},
	}, itemsPkg, "TestFold_AfterTheEndOfAJournalWasLostUsesNoIdTwiceInAnyStore"},
	{"losses that a snapshot forgets", "projection/extensions.go", []Edit{
		{"	s.tellLosses(false)\n", ""},
	}, "./projection", "TestRecords_IdsOfItemsAreNotUsedAgainAfterALossOfTheJournal"},
	{"fold that takes a request twice", "projection/items/fold.go", []Edit{
		{"!s.some && s.find(", "false && s.find("},
	}, itemsPkg, "TestFold_RefusesARequestThatIsNotItsClientsOrWasCarriedOutWithoutATrace"},
	{"request in the name of another client", "projection/items/fold.go", []Edit{
		{"!is || client != by {", "!is || client == 0 {"},
	}, itemsPkg, "TestFold_RefusesARequestThatIsNotItsClientsOrWasCarriedOutWithoutATrace"},
	{"two items of an event restored", "projection/items/rows.go", []Edit{
		{"	case s.held != nil && s.held.Len() != s.all.Len():", "	case false:"},
	}, itemsPkg, "TestRows_ThatContradictTheOthersAreRefused"},
	{"item that a group tells of as held for ever", "projection/items/items.go", []Edit{
		{"		i, _ := s.held.PopMin()\n		i.Group.held.Delete(i)\n", "		i, _ := s.held.PopMin()\n"},
	}, itemsPkg, "TestNextOf_IsTheNextTimeOfTheGroupHoweverManyOthersThereAre"},
	{"item that stays held after its time", "projection/items/items.go", []Edit{
		{"due != 0 && due <= now; due = s.NextDue() {", "due != 0 && due < now; due = s.NextDue() {"},
	}, itemsPkg, "TestStores_DoWhatTheirDescriptionSays"},
	{"export of an item judged as that of a shard", "ledger/exportverify.go", []Edit{
		{"	if h.Task != \"\" {\n		v.state", "	if false {\n		v.state"},
	}, whole, "TestItems_HistoryAndExportsTellTheWholeLifeOfAnItem"},
}
