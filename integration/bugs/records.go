package bugs

const (
	settingsPkg   = "./projection/settings"
	journalPkg    = "./projection/journal"
	projectionPkg = "./projection"
)

// Records that are no tasks.
var records = []Bug{
	{"behavior that stays paused", "projection/settings/settings.go", []Edit{
		{"return slices.Concat(s.pauses[:at], s.pauses[at+1:]), nil", "return slices.Concat(s.pauses[:at], s.pauses[at:]), nil"},
	}, settingsPkg, "TestState_IsTheModelWhateverIsAskedAndRecorded"},
	{"pause that changes the settings others hold", "projection/settings/settings.go", []Edit{
		{"return slices.Concat(s.pauses[:at], s.pauses[at+1:]), nil", "return slices.Delete(s.pauses, at, at+1), nil"},
	}, settingsPkg, "TestState_IsTheModelWhateverIsAskedAndRecorded"},
	{"settings without a limit", "projection/settings/settings.go", []Edit{
		{"	if n := s.bytes() + bytesOf(&p) + events.MaxNameBytes; n > MaxBytes {", "	if n := 0; n > MaxBytes {"},
	}, settingsPkg, "TestState_StaysSmall"},
	{"end of a journal given up for another one", "engine/internal/shard/loader.go", []Edit{
		{" && given.Hash == l.State.Hash, err", ", err"},
	}, "./integration", "TestOwner_GivesUpNothingButTheEndThatIsNamed"},
	{"archive beyond the journal that is not seen", "engine/internal/shard/loader.go", []Edit{
		{"	if !snapshot && archived <= l.Head.Number {\n", "	if !snapshot {\n"},
	}, engine, "TestShard_WhoseArchiveGoesBeyondItsJournalWaitsForAnOperator"},
	{"archive of another history that begins anew", "engine/internal/shard/loader.go", []Edit{
		{"	return own.Hash == archived.Hash || first > 1 && own.Prev == archived.Prev, nil\n", "	return true, nil\n"},
	}, engine, "TestTrim_NoLossLetsTheArchiveOfAnotherHistoryBeginAnew"},
	{"archive that the journal does not follow goes on", "engine/internal/shard/trim.go", []Edit{
		{" || next.Prev != before.Hash {", " {"},
	}, engine, "TestTrim_AddsNothingToAnArchiveThatTheJournalDoesNotFollow"},
	{"stream that tells no cluster taken for one's own", "natsbus/archiveid.go", []Edit{
		{"	if clusterOf(info.Config) == a.cfg.Cluster {\n", "	if a.cfg.Cluster != \"\" {\n"},
	}, "./natsbus", "TestArchive_StreamThatWasMadeBeforehandIsOfWhoWritesFirst"},
	{"stream that cannot be named looked at by every call", "natsbus/archiveid.go", []Edit{
		{" || failed != nil && time.Since(*failed) < nameAgain {", " {"},
	}, "./natsbus", "TestArchive_StreamThatCannotBeNamedIsUsedAndToldOnce"},
	{"gap behind what counts taken for damage", "natsbus/archiveread.go", []Edit{
		{" && due <= of.last {", " {"},
	}, "./natsbus", "TestArchive_GapBehindWhatCountsIsNoDamage"},
	{"gap before a new beginning of an archive that hides a task", "natsbus/archiveread.go", []Edit{
		{"(!begins || due != 0 && at.first > due)", "!begins"},
	}, "./natsbus", "TestArchive_KeepsItsContract"},
	{"archive that is not compared while no owner answers", "ledger/verify.go", []Edit{
		{"(silent || !served.Drops)", "!silent && !served.Drops"},
	}, "./ledger", "TestVerify_ASilentOwnerProvesNothingOfWhatIsNotThere"},
	{"damage between the parts of an archive that hides what is before it", "natsbus/archiveread.go", []Edit{
		{"	return hidden\n}\n\n// partOf", "	return nil\n}\n\n// partOf"},
	}, "./natsbus", "TestArchive_DamageBetweenItsPartsIsNoAbsence"},
	{"damage of the archive of one shard that is told of all behind it", "ledger/repair/restored.go", []Edit{
		{"!errors.Is(silence, store.ErrUnavailable) {", "silence == nil || errors.Is(silence, store.ErrConflict) {"},
	}, "./ledger/repair", "TestRepair_TellsOfEachShardWhetherItsArchiveCanBeRead"},
	{"loss recorded whatever has become of it", "etcdstore/losses.go", []Edit{
		{"	rev, err := s.append(ctx, o, after, entry, given, also)\n", "	rev, err := s.append(ctx, o, after, entry, nil, also)\n"},
	}, store, "TestStore_KeepsTheContractInProcess/Recover/OfAnotherLossIsRefused"},
	{"command that leaves for a mailbox which nobody reads", "engine/internal/sender/lane.go", []Edit{
		{"s.cfg.Now(), needsNode && s.lookout.Doubtful()", "s.cfg.Now(), needsNode && s == nil"},
	}, engine, "TestClient_IsToldWithinThreeSecondsThatNoNodeIsAliveAndNothingWasAccepted"},
	{"removed archive taken for one that has not begun", "engine/archivewatch.go", []Edit{
		{" && is.Empty && some {", " && is.Empty && !some {"},
	}, engine, "TestRun_TellsOfAnArchiveThatWasRemoved"},
	{"claimed items counted after they are available", "projection/items/items.go", []Edit{
		{"		i.Group.free.Set(i)\n		s.claimed(i, -1)\n", "		i.Group.free.Set(i)\n"},
	}, "./projection/items", "TestStores_DoWhatTheirDescriptionSays"},
	{"event of a record with a gap before it", "projection/record/record.go", []Edit{
		{"	case ev.Seq != c.Seq+1:\n", "	case ev.Seq <= c.Seq:\n"},
	}, settingsPkg, "TestState_IsTheModelWhateverIsAskedAndRecorded"},
	{"losses that are kept for ever", "projection/journal/journal.go", []Edit{
		{"s.losses[max(0, len(s.losses)-MaxLosses+1):]", "s.losses"},
	}, journalPkg, "TestState_KeepsTheLatestLosses"},
	{"older settings that replace newer ones", "engine/settings.go", []Edit{
		{"now.Last <= old.Last", "now.Last == old.Last"},
	}, engine, "TestSettings_OlderOnesNeverReplaceNewer"},
	{"event of a record that does not name the one before", "projection/record/record.go", []Edit{
		{"	case ev.Prev != c.Last:\n", "	case false:\n"},
	}, settingsPkg, "TestState_IsTheModelWhateverIsAskedAndRecorded"},
	{"pause that a refused event leaves behind", "projection/settings/settings.go", []Edit{
		{"	if err := s.Follow(ev); err != nil {\n		return err\n	}\n	s.pauses = pauses\n	return nil\n", "	s.pauses = pauses\n	return s.Follow(ev)\n"},
	}, settingsPkg, "TestState_IsTheModelWhateverIsAskedAndRecorded"},
	{"pause told by nobody", "projection/settings/settings.go", []Edit{
		{"			By:       ev.Asker.Principal,\n", ""},
	}, settingsPkg, "TestState_IsTheModelWhateverIsAskedAndRecorded"},
	{"pause of what is paused", "projection/settings/settings.go", []Edit{
		{"	if _, paused := s.find(behavior); paused {\n		return nil, nil\n	}\n", ""},
	}, settingsPkg, "TestState_IsTheModelWhateverIsAskedAndRecorded"},
	{"settings read in any order", "projection/settings/settings.go", []Edit{
		{"s.pauses[i-1].Behavior >= p.Behavior", "s.pauses[i-1].Behavior == p.Behavior"},
	}, settingsPkg, "TestDecode_RefusesWhatIsTheFoldOfNoEvents"},
	{"loss of an entry to come", "projection/journal/journal.go", []Edit{
		{"(l.Entry == 0 || l.Entry > in)", "l.Entry == 0"},
	}, journalPkg, "TestState_IsTheModelWhateverIsRecorded"},
	{"loss read back as one of the store", "projection/journal/journal.go", []Edit{
		{"l := Loss{Kind: events.Kind(kind), Entry", "l := Loss{Kind: events.KindRecovered, Entry"},
	}, journalPkg, "TestState_IsTheModelWhateverIsRecorded"},
	{"snapshot and digest without the settings", "projection/extension/single.go", []Edit{
		{"seq == 1 {\n				return 0", "seq == 1 || of == events.OfSettings {\n				return 0"},
	}, projectionPkg, "TestRecords_HaveEveryKindOfEventFolded"},
	{"snapshot of a record as it is later", "projection/extension/single.go", []Edit{
		{"			var row wire.Writer\n			s.Encode(&row)\n", ""},
		{"w.B = append(w.B, row.B...)", "s.Encode(w)"},
	}, projectionPkg, "TestRecords_AreInASnapshotAsTheyWereWhenItBegan"},
	{"snapshot with a record of an entry to come", "projection/extension/single.go", []Edit{
		{"last.Entry() > entry {", "last.Entry() > entry+1 {"},
	}, projectionPkg, "TestRestore_RefusesARecordOfAnEntryToCome"},
	{"event of a record that is not folded", "projection/shard.go", []Edit{
		{"		return nil, s.applyRecord(ev)\n", "		return nil, nil\n"},
	}, projectionPkg, "TestRecords_HaveEveryKindOfEventFolded"},
}

// Requests with a key, and what submits that join bring.
var requests = []Bug{
	{"request whose priority is any", "events/request.go", []Edit{
		{"	w.Array(5)\n", "	w.Array(4)\n"},
		{"	w.Int(q.Priority)\n", ""},
	}, "./events", "TestRequest_IDTellsTheKeyAndEveryDifference"},
	{"task of a request of any behavior", "events/request.go", []Edit{
		{"	w.Array(3)\n", "	w.Array(2)\n"},
		{"	w.Text(behavior)\n", ""},
	}, "./events", "TestTaskOfRequest_TellsItsTextsApart"},
	{"principal of the client for that of its caller", "engine/submit.go", []Edit{
		{"		return cmp.Or(a.Principal, c.cfg.Name)\n", "		return cmp.Or(c.cfg.Name, a.Principal)\n"},
	}, engine, "TestRequest_OfAnotherPrincipalBehaviorOrKeyIsAnotherTask"},
	{"repeated request that is a further one", "engine/internal/command/submit.go", []Edit{
		{"	case t.Requests.Of(c.RequestID) != nil:\n", "	case false:\n"},
	}, commandPkg, "TestSubmit_SameRequestJoinsItself"},
	{"repeated request that gets the last run", "engine/internal/command/submit.go", []Edit{
		{"	if q.Run <= t.Runs {\n", "	if false {\n"},
	}, commandPkg, "TestSubmit_RepeatedGetsTheRunThatItWasPromised"},
	{"request that meets what has ended and is not recorded", "engine/internal/command/submit.go", []Edit{
		{"return d.Join(t, c.RequestID)", "return d.Join(t, \"\")"},
	}, commandPkg, "TestSubmit_ThatMeetsWhatHasEndedIsRememberedByItsKey"},
	{"late request that is forgotten for another", "engine/internal/command/submit.go", []Edit{
		{"return d.State.RequestsFull(t, d.Now)", "return false"},
	}, commandPkg, "TestRequests_ALateOneIsNeverForgottenForAnother"},
	{"repetition that ends with a run that failed", "engine/internal/command/complete.go", []Edit{
		{"body.Next, body.Run = d.repetition(t), t.Runs+1", "body.Run = t.Runs + 1"},
	}, commandPkg, "TestEvery_AnotherRunFollowsTheEndOfARunWhateverItWas"},
	{"losses after which nothing is waited for", "engine/internal/command/decider.go", []Edit{
		{"d.Now.Add(t.Kind.Policy.LostWait(d.losses(t)+1, t.ID, t.Started))", "d.Now"},
	}, commandPkg, "TestLose_TheTaskThatKillsItsNodeEndsAndThoseBesideItDoNot"},
	{"delay by the clock of the submitter", "engine/internal/command/submit.go", []Edit{
		{"return max(c.NotBefore, now.Add(c.Delay))", "return max(c.NotBefore, now)"},
	}, engine, "TestDelay_IsSoLongAfterTheSubmitWhateverTheClockOfTheSubmitterShows"},
	{"key that any random id may have used", "engine/internal/command/submit.go", []Edit{
		{" &&\n			events.TaskOfRequest(t.Kind.Creator, t.Kind.Behavior, events.RequestKey(c.RequestID)) == id", ""},
	}, commandPkg, "TestSubmit_TellsARequestOfManyTasksFromOneOfTheSameKey"},
	{"unknown operation that deletes", "engine/internal/command/operate.go", []Edit{
		{"	if c.Do >= task.OperationCount {\n", "	if false {\n"},
		{"	case DoDelete:\n		return &events.Deleted{}, t.Status != task.Running\n	}\n	return nil, false\n", "	}\n	return &events.Deleted{}, t.Status != task.Running\n"},
	}, commandPkg, "TestOperate_ThatThereIsNotIsRefusedByFieldAndChangesNothing"},
	{"repeated merge that is a further one", "engine/internal/command/merge.go", []Edit{
		{"	case t.Requests.Of(c.Submit.RequestID) != nil: //", "	case false: //"},
	}, commandPkg, "TestMerge_OfARequestThatWasRecordedJoins"},
	{"terms of the submit before", "engine/internal/command/submit.go", []Edit{
		{"	if t.Priority == c.Priority && t.Kind.Policy == c.Policy {\n", "	if t.Priority <= c.Priority || t.Kind.Policy == c.Policy {\n"},
	}, commandPkg, "TestSubmit_OnAnExistingTask"},
	{"priority of a join that is not folded", "projection/kinds.go", []Edit{
		{"	t.Priority = terms.Priority\n", ""},
	}, projectionPkg, "TestTerms_OfTheLastSubmitHold"},
}

// Who asked.
var callers = []Bug{
	{"sender taken for the caller before it", "engine/internal/command/asked.go", []Edit{
		{"	if is != last {\n", "	if is != last && caller != nil {\n"},
	}, commandPkg, "TestDecideBatch_EventsTellWhoAsked"},
	{"caller of all that follows in its batch", "engine/internal/command/decidebatch.go", []Edit{
		{"			d.Origin, d.caller = batch, nil\n			if asked[0]", "			if asked[0]"},
	}, commandPkg, "TestDecideBatch_EventsTellWhoAsked"},
	{"caller told without the principal of its sender", "events/origin.go", []Edit{
		{"		a.Principal = cmp.Or(a.Principal, e.Origins[o.Batch-1].Principal)\n", "		a.Principal = cmp.Or(a.Principal, \"\")\n"},
	}, "./events", "TestOrigin_CallersAreKnownBesideTheirBatch"},
}
