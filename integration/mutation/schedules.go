package main

const (
	decidesTicks  = "projection/schedules/decide.go"
	asksSchedules = "engine/internal/schedules/decide.go"
	ownsSchedules = "engine/internal/schedules/owner.go"
	pairs         = "TestDecide_EveryPairOfOverlapAndMisfire"
)

// schedules break what becomes of ticks, and who may change a schedule.
var schedules = []mutation{
	{"late tick that has its run all the same", pairs, in(decidesTicks, "s.late(a, now)", "s.Next < 0")},
	{"tick of a pause that has its run", pairs, in(decidesTicks, "s.inPause()", "s.Next < 0")},
	{"tick of a run's time that is missed and not skipped", pairs, in(decidesTicks, "s.skips():", "s.Next < 0:")},
	{"newest tick alone of those that have their runs one after the other",
		"TestDecide_AllRunsTheNewestHundredOneAfterTheOther",
		in(decidesTicks, "a.older.at == 0", "a.older.at == 0 && a.newest.at == s.Next")},
	{"run with the id of another task", "TestDecide_ATakenIDIsSkipped",
		in(decidesTicks,
			`b.Decision, b.Cause, b.Run, id = events.TickSkipped, events.TickTaken, "", ""`, "_ = events.TickTaken")},
	{"correction once for every owner", "TestAtOwner_CorrectsATickOfOtherZoneData",
		in(decidesTicks, "now < s.CorrectedAt+correctEvery", "now < s.CorrectedAt")},
	{"tick that no later owner looks at", "TestAtOwner_CorrectsATickOfOtherZoneData",
		in(ownsSchedules, "o.asking[s.Name] = struct{}{}\n		return true", "return true")},
	{"tick that is decided while there is no room", "TestAtOwner_DecidesNothingWhileThereIsNoRoom",
		in(ownsSchedules, `o.barred = o.bars(d); o.barred != ""`, `o.barred = o.bars(d); o.barred == "-"`)},
	{"definition in code that counts twice", "TestSet_ADefinitionInCodeCountsOnce",
		in(asksSchedules, `c.Code != "" && all.Knows(c.Name, c.Code)`, `c.Code == "-"`)},
	{"run by hand of a definition that nobody has judged", "TestRunAndBackfill_OfAnotherVersionAreRefused",
		in(asksSchedules, "!unchanged(of, c.Seen) {", "false {")},
	{"list that leaves out schedules of a shard", "TestClientList_PagesLeaveOutNoScheduleOfAnyShard",
		in("engine/internal/schedules/client.go", `upTo != ""`, `upTo == "-"`)},
	{"change of a definition that nobody has judged", "TestSchedules_WhatChangesAfterItWasJudgedIsLeftAsItIs",
		in("api/schedules/change.go", "Seen:   cmp.Or(seen, judged),", "Seen:   cmp.Or(seen, judged*0),")},
	{"UUIDs that a definition takes away which does not know of them", "TestAtOwner_NamesRunsByUUIDs",
		in(asksSchedules, "of != nil && plan.Names == events.NamesByOrigin", "of != nil && plan.Keep == 7")},
	{"reason of a definition that is lost", "TestSet_ItsReasonStandsInItsEvent",
		in(asksSchedules, "set.Recorded(c.Reason)", `set.Recorded("")`)},
	{"task of another that a run by hand shares", "TestRun_SharesNoTaskOfAnother",
		in(asksSchedules, "t != nil && t.RunOf() == 0", "t != nil && t.RunOf() > 9")},
	{"share of a run that is not remembered", "TestRun_OfAKeyIsSharedAgainAfterTheEnd",
		in(asksSchedules, "(active, d.Join(d.State.Task(active), request)", "(active, command.Joined(d.State.Task(active))")},
	{"plan without ticks that older nodes meet", "TestSet_OfALaterPlanWaitsForTheUpgradeOfEveryNode",
		in("events/schedule.go",
			`func (p *SchedulePlan) Later() bool { return p.Cron == "" || `, "func (p *SchedulePlan) Later() bool { return ")},
	{"run with a UUID that is none once it was read from a snapshot", "TestSchedules_DecideEachTickOnceWhateverHappens",
		in("projection/storedtask.go", "	t.Run = events.RunOrigin(flags >> len(t.stored()))\n", "")},
	{"run of a schedule that repeats", "TestComplete_ARunOfAScheduleDoesNotRepeat",
		in("engine/internal/command/complete.go", "t.Cancelled || t.RunOf() != 0", "t.Cancelled")},
}
