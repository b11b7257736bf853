package main

// futures resolve by another outcome than the one that was committed.
var futures = []mutation{
	{"future resolved by an earlier run", "TestFutures_OutcomesOfEarlierRunsAndLivesAreNotTheirs",
		in("engine/internal/futures/registry.go",
			" ||\n					o.Life == f.run.Life && (o.Ref < f.run.Since || o.Run < f.run.Number && !o.Rest))", ")").
			and("!o.Elided && o.Ends(f.run.Number)", "!o.Elided && o.Run <= f.run.Number")},
	{"future resolved by the cancelled repetition that had its number",
		"TestFutures_CancelledRepetitionIsNotTheRunThatFollows",
		in("engine/internal/futures/registry.go",
			"(o.Ref < f.run.Since || o.Run < f.run.Number && !o.Rest)", "o.Run < f.run.Number && !o.Rest")},
	{"future resolved by an earlier life", "TestFutures_OutcomesOfEarlierRunsAndLivesAreNotTheirs",
		in("engine/internal/futures/registry.go", "< f.run.Life ||\n					o.Life == f.run.Life &&", "== f.run.Life &&").
			and("Number != 0 && o.Life == f.run.Life && !o.Elided && o.Ends(f.run", "Number != 0 && !o.Elided && o.Ends(f.run")},
	{"future of an earlier run resolved by the end of the life", "TestFutures_DeletedResolvesOnlyTheRunsThatItEnds",
		in("engine/internal/futures/registry.go",
			"!o.Elided && o.Ends(f.run.Number)", "(o.Run == f.run.Number && !o.Elided || o.Status == 0)")},
	{"future of a run that was promised and taken away waits", "TestOutcome_OfWhatIsTakenAwayEndsEveryRunThatWasPromised",
		in("engine/internal/outcome/outcome.go", "Err, o.Rest, o.Elided = t.Error, true, t.ErrorElided", "Err = t.Error")},
	{"future of a forgotten task that asks its owner alone", "TestAttach_FindsHowAForgottenTaskHasEnded",
		in("engine/client.go", "waiting.Journal, waiting.Recall = cfg.Store, c.getForgotten", "waiting.Journal = cfg.Store")},
}

// times believe a clock that is wrong.
var times = []mutation{
	{"forgetting by the local clock", "TestForgetting_FollowsEntryTimeNotTheClock",
		in("projection/retention.go", `"container/heap"`, "\"container/heap\"\n	\"time\"").
			and("t.keepUntil() < now || r.count", "t.keepUntil() < events.MillisOf(time.Now()) || r.count")},
	{"entry time that runs back", "TestTime_NeverRunsBackWithinAShard",
		in("engine/internal/shard/turn.go", "now := o.clock.Now(o.wall(), began)", "now := o.wall()")},
	{"ready by a clock that was set back", "TestTime_WhatIsReadyStaysSoWhenTheClockIsSetBack",
		in("engine/internal/shard/turn.go", "o.ring(o.extensions.tasks, now, began)", "o.state.MakeDue(now)")},
	{"time of a shard that stands still after a jump", "TestShardTime_RetryAfterAnEntryAheadComesInTwiceItsBackOff",
		in("engine/internal/shard/clock.go", "c.latest.Add((mono - c.since) / 2)", "c.latest")},
	{"wait that is a time of the worker's clock", "TestOutcome_TellsTheOwnerOfTheNextRun",
		in("engine/internal/worker/report.go", " = command.AnyTime", ", wait = events.MillisOf(time.Now().Add(wait)), 0")},
	{"load heard anew whenever its node key is read", "TestLoad_KeyThatIsReadAgainIsNotHeardAgain",
		in("engine/load.go", "m.Count <= p.count", "m.Count < p.count")},
	{"load of sessions that are over", "TestLoad_OfSessionsThatAreNotPresentCountsForNothing",
		in("engine/clock.go", "p.present && p.clock != 0", "p.clock != 0")},
	{"clock that an idle node without a bus keeps to itself", "TestClock_AnHourOffIsFound",
		in("engine/load.go", "changed || time.Since(l.keyed) >= clockEvery", "changed")},
	{"bus that is taken to reach everybody", "TestLoad_ReachesWhoAloneHasNoBus/begun_without",
		in("engine/load.go", "p.present && (byKeyOnly || silent)", "p.present && byKeyOnly && !silent")},
	{"clock that stands still since it was heard", "TestClock_OfOthersGoesOnSinceItWasHeard",
		in("engine/clock.go", "*time.Millisecond+heard)", "*time.Millisecond)")},
	{"process that takes shards before it has heard a clock", "TestClock_WrongAtTheStartTakesNoShard",
		in("engine/clock.go", "return !c.off && (c.all || time.Since(l.m.node.joined) >= hearClocksFor)", "return !c.off")},
	{"process that is greeted by nobody", "TestClock_FreshProcessesDoNotWaitForEachOther",
		in("engine/load.go", "p.present = true\n			l.greet()", "p.present = true")},
	{"load that takes a drain back", "TestDrain_IsNotTakenBackByALoad",
		in("engine/member.go",
			"return m.sessions.Update(ctx, m.session, m.key)",
			"info := m.key(); return m.sessions.Update(ctx, m.session, func() store.NodeInfo { return info })")},
}

// sessions break what a session keeps in memory, and what it believes of others. Histories cannot find the last three:
// they have one user, bound no memory, and nobody types shards in them.
var sessions = []mutation{
	{"what is paused starts in a process that does not know it",
		"TestPause_ThatCannotBeReadLetsNothingStartAndIsExplained",
		in("engine/settings.go", "!m.heard.Load() || m.settings", "m.settings.known.Load() != nil && m.settings")},
	{"what was paused between two sessions of a process starts in the second",
		"TestPause_HoldsInTheNextSessionOfWhoWasCutOff",
		in("engine/settings.go", "!m.heard.Load() || m.settings", "m.settings.known.Load() == nil || m.settings")},
	{"slot for whoever comes first", "TestSlots_AFreeOneIsForTheFirstByPriorityThenReadyTimeThenCreation",
		in("engine/internal/slots/queue.go", "first == nil || !first.before(&heads[i])", "first == nil || first != nil")},
	{"a slot that is kept for another one is taken", "TestSlots_AFreeOneIsForTheFirstByPriorityThenReadyTimeThenCreation",
		in("engine/internal/slots/slots.go", "first != nil && first.before(&h)", `first == nil && h.Behavior == ""`)},
	{"a freed slot wakes whoever waited longest", "TestSlots_AFreedOneWakesTheOwnerThatComesNextAndNoOther",
		in("engine/internal/slots/queue.go", "before(&other.Head) || !other.before(&s.Head) && s.of.order <", "of.order <")},
	{"a slot that an owner leaves free stays free", "TestSlots_EveryFreeOneIsTaken",
		in("engine/internal/slots/queue.go", "delete(x.queue.waiting, w)\n		x.wakeLocked()", "delete(x.queue.waiting, w)")},
	{"slots of offers that are never given back", "TestSlots_ReturnWhenTheNodeTheyWereOfferedToLeaves",
		in("engine/internal/worker/offersizing.go", "of.reclaim(session, missing, scarce, now)", "sender.BusTimeout").
			and("int { return max(fair/4, min(s.want, fair)) }", "int { return max(1, fair/4, min(s.want, fair)) }")},
	{"plan asked of owners alone", "TestSubmitRaw_ReachesAWorkerThatOwnsNothing",
		in("engine/plan.go",
			"	planners := plannersOf(&members, cmd.Behavior)\n",
			`	var planners []string
	for _, o := range members.Owners {
		if _, alive := members.Nodes[o.Node]; alive {
			planners = append(planners, o.Node)
		}
	}
`)},
	{"session given up over a file", "TestSession_FileThatCannotBeWrittenLeavesOneSession",
		in("engine/member.go",
			`m.log.WarnContext(ctx, "session is not remembered: a restart waits for its TTL", "err", err)`, "return err")},
	{"address of NATS that is read once", "TestOpen_OnADirectoryFindsServersThatComeBackElsewhere",
		in("cluster/dir.go",
			"bus.NKey, bus.Dial = []string{found.NATS}, found.NKey, d.dialNATS", "bus.NKey = []string{found.NATS}, found.NKey")},
	{"address of etcd that is read once", "TestOpen_OnADirectoryFindsServersThatComeBackElsewhere",
		in("cluster/dir.go",
			`etcd.Dial, etcd.DialName = logRefused(etcd.Log, d.dialEtcd), found.Etcd[0]+", the etcd of the node on "+dir+","`,
			"etcd.Dial = func(ctx context.Context) (net.Conn, error) {\n"+
				`		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(found.Etcd[0], "unix:"))`+"\n	}")},
	{"unreadable owner key that nobody can take", "TestMembers_UnreadableKeysAreShownAsFarAsPossible",
		in("etcdstore/owners.go", `seen.Node != "" && seen.Revision == 0`, `(seen.Node == "") != (seen.Revision == 0)`)},
	{"owner key of no shard", "TestMembers_UnreadableKeysAreShownAsFarAsPossible",
		in("etcdstore/store.go", "err == nil && s.checkShard(shard) == nil && strconv.Itoa(shard) == text", "err == nil")},
	{"etcd's socket where every user may enter", "TestServers_SocketIsInADirectoryThatNoOtherUserEnters",
		in("internal/advertised/socket.go", "os.Mkdir(dir, 0o700)", "os.Mkdir(dir, 0o755)")},
	{"watch that holds any number of entries", "TestFollow_KeepsNoMoreThanAFewEntriesForASlowConsumer",
		in("etcdstore/journal.go", "default:\n			return errBehind", "case <-ctx.Done():\n			return ctx.Err()").
			and("held > watchBytes && held > int64(len(r.Data))", "held < 0")},
	{"names of nodes asked for when a silent shard has taken the time",
		"TestShards_ThatAnswerAreShownWithTheirOwnersBesideOneThatDoesNot",
		in("cmd/node/internal/cli/look.go",
			"nodes, err := client.Nodes(ask)\n	stop()\n	if err != nil {\n"+
				`		fmt.Fprintf(a.Err, "the names of nodes are not known: %v\n", err)`+"\n	}",
			"stop()\n	shards, err := client.Shards(ctx)\n	if err != nil {\n		return err\n	}\n"+
				"	nodes, err := client.Nodes(ctx)\n	if err != nil {\n		return err\n	}").
			and(
				"ask, stop = context.WithTimeout(ctx, silentAfter(ctx, time.Now()))\n	defer stop()\n"+
					"	shards, err := client.Shards(ask)\n	if err != nil {\n		return err\n	}", "_ = ask")},
}

// subtle are mutations that tests seemed to look at and looked past, for a while.
var subtle = []mutation{
	{"what is archived and not yet trimmed counts as not archived",
		"TestTrim_CountsAsUnarchivedWhatIsNeitherArchivedNorTrimmed",
		in("engine/internal/shard/trim.go", "max(t.archived.Load(), first-1)", "first-1")},
	{"offer that stands though its node has given it up", "TestReconcile_ClosesTheLastOfferThatItCountsAsAnswered",
		in("engine/internal/shard/assign.go", "p.Sender == sender && p.Number <=", "p.Sender == sender && p.Number <")},
	{"attempts that start for a session that is over", "TestOffer_AnsweredAfterItsSessionStartsNothing",
		in("engine/internal/worker/offers.go", "assigned = nil // attempts", "// attempts")},
	{"items that are no longer available when the clock is set back",
		"TestItems_ThatWereAvailableStaySoWhenTheClockIsSetBack",
		in("engine/internal/shard/extensions.go", "o.ring(a, now, at)", "a.ring(now)")},
	{"repair that removes what was written over", "TestRepair_KeepsWhatMayHaveTakenThePlaceOfAnEntry",
		in("ledger/repair/repair.go", "		s.Keep = KeepReplaced\n", "")},
}
