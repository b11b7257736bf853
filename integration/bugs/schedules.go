package bugs

const (
	foldSchedules = "./projection/schedules"
	ownSchedules  = "./engine/internal/schedules"
	apiSchedules  = "./api/schedules"
	decidesTicks  = "projection/schedules/decide.go"
	asksSchedules = "engine/internal/schedules/decide.go"
	ownsSchedules = "engine/internal/schedules/owner.go"
	pairs         = "TestDecide_EveryPairOfOverlapAndMisfire"
)

// What becomes of the ticks of schedules, and who may change these.
var schedules = []Bug{
	{"late tick that has its run all the same", decidesTicks, []Edit{
		{"	case s.late(a, now):\n", "	case s.Next < 0:\n"},
	}, foldSchedules, pairs},
	{"tick of a pause that has its run", decidesTicks, []Edit{
		{"	case s.inPause():\n", "	case s.Next < 0:\n"},
	}, foldSchedules, pairs},
	{"tick of a run's time that is missed and not skipped", decidesTicks, []Edit{
		{"	case s.skips():\n", "	case s.Next < 0:\n"},
	}, foldSchedules, pairs},
	{"newest tick alone of those that have their runs one after the other", decidesTicks, []Edit{
		{"	if a.older.at == 0 {\n", "	if a.older.at == 0 && a.newest.at == s.Next {\n"},
	}, foldSchedules, "TestDecide_AllRunsTheNewestHundredOneAfterTheOther"},
	{"run with the id of another task", decidesTicks, []Edit{
		{"		b.Decision, b.Cause, b.Run, id = events.TickSkipped, events.TickTaken, \"\", \"\"\n", "		_ = events.TickTaken\n"},
	}, foldSchedules, "TestDecide_ATakenIDIsSkipped"},
	{"correction once for every owner", decidesTicks, []Edit{
		{"now < s.CorrectedAt+correctEvery:", "now < s.CorrectedAt:"},
	}, ownSchedules, "TestAtOwner_CorrectsATickOfOtherZoneData"},
	{"tick that no later owner looks at", ownsSchedules, []Edit{
		{"		o.asking[s.Name] = struct{}{}\n		return true\n", "		return true\n"},
	}, ownSchedules, "TestAtOwner_CorrectsATickOfOtherZoneData"},
	{"tick that is decided while there is no room", ownsSchedules, []Edit{
		{"if o.barred = o.bars(d); o.barred != \"\" {", "if o.barred = o.bars(d); o.barred == \"-\" {"},
	}, ownSchedules, "TestAtOwner_DecidesNothingWhileThereIsNoRoom"},
	{"definition in code that counts twice", asksSchedules, []Edit{
		{"	case c.Code != \"\" && all.Knows(c.Name, c.Code):\n", "	case c.Code == \"-\":\n"},
	}, ownSchedules, "TestSet_ADefinitionInCodeCountsOnce"},
	{"run by hand of a definition that nobody has judged", asksSchedules, []Edit{
		{"	if !unchanged(of, c.Seen) {\n", "	if false {\n"},
	}, ownSchedules, "TestRunAndBackfill_OfAnotherVersionAreRefused"},
	{"list that leaves out schedules of a shard", "engine/internal/schedules/client.go", []Edit{
		{"	if upTo != \"\" {", "	if upTo == \"-\" {"},
	}, ownSchedules, "TestClientList_PagesLeaveOutNoScheduleOfAnyShard"},
	{"change of a definition that nobody has judged", "api/schedules/change.go", []Edit{
		{"		Seen:   cmp.Or(seen, judged),\n", "		Seen:   cmp.Or(seen, judged*0),\n"},
	}, apiSchedules, "TestSchedules_WhatChangesAfterItWasJudgedIsLeftAsItIs"},
	{"UUIDs that a definition takes away which does not know of them", asksSchedules, []Edit{
		{"	if of != nil && plan.Names == events.NamesByOrigin {\n", "	if of != nil && plan.Keep == 7 {\n"},
	}, ownSchedules, "TestAtOwner_NamesRunsByUUIDs"},
	{"reason of a definition that is lost", asksSchedules, []Edit{
		{"set.Recorded(c.Reason)", "set.Recorded(\"\")"},
	}, ownSchedules, "TestSet_ItsReasonStandsInItsEvent"},
	{"task of another that a run by hand shares", asksSchedules, []Edit{
		{"t != nil && t.RunOf() == 0 {\n", "t != nil && t.RunOf() > 9 {\n"},
	}, ownSchedules, "TestRun_SharesNoTaskOfAnother"},
	{"share of a run that is not remembered", asksSchedules, []Edit{
		{"shared(active, d.Join(d.State.Task(active), request))", "shared(active, command.Joined(d.State.Task(active)))"},
	}, ownSchedules, "TestRun_OfAKeyIsSharedAgainAfterTheEnd"},
	{"plan without ticks that older nodes meet", "events/schedule.go", []Edit{
		{"func (p *SchedulePlan) Later() bool { return p.Cron == \"\" || ", "func (p *SchedulePlan) Later() bool { return "},
	}, ownSchedules, "TestSet_OfALaterPlanWaitsForTheUpgradeOfEveryNode"},
	{"run with a UUID that is none once it was read from a snapshot", "projection/storedtask.go", []Edit{
		{"	t.Run = events.RunOrigin(flags >> len(t.stored()))\n", ""},
	}, foldSchedules, "TestSchedules_DecideEachTickOnceWhateverHappens"},
	{"run of a schedule that repeats", "engine/internal/command/complete.go", []Edit{
		{"	if t.Cancelled || t.RunOf() != 0 {", "	if t.Cancelled {"},
	}, "./engine/internal/command", "TestComplete_ARunOfAScheduleDoesNotRepeat"},
}
