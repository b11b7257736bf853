package bugs

// What libraries promise: that of task stores, and those who take hints and answers to it, and the built-in behaviors.
var libraries = []Bug{
	{"etcd that is not ready, closed before it is stopped", "engine/embedded/etcd.go", []Edit{
		{"	e.Server.HardStop() // Close waits for ever for a server that does not become ready\n", ""},
	}, "./engine/embedded", "TestStartServers_EndsWithItsContextWhileEtcdIsNotReady"},
	{"group of a program released when its number may be another's", "behaviors/builtin/processgroup.go", []Edit{
		{"	release()\n", "	defer release()\n"},
	}, "./behaviors/builtin", "TestExec_AGroupIsReleasedWhenNothingOfItRunsAndBeforeItsNumberIsFree"},
	{"new guard that is not told of old groups", "cmd/node/internal/guard/guard_linux.go", []Edit{
		{"	for group := range g.groups {\n", "	for group := range map[int]struct{}{} {\n"},
	}, "./cmd/node/internal/guard", "TestGuard_AProcessThatFailsIsFollowedByOneThatKnowsAll"},
	{"refused update that keeps its turn", "taskstore/repeat.go", []Edit{
		{"			n, began = s.calls.again(n, claim), time.Now()\n", "\t\t\tbegan = time.Now()\n"},
	}, "./taskstore", "TestStore_AnUpdateThatTheBrakeRefusesHoldsUpNoDeletes"},
	{"claims that wait in all turns", "taskstore/window.go", []Edit{
		{"	if w.waits == waitsAtOnce {", "	if w.waits == claimsAtOnce {"},
	}, "./taskstore", "TestWorker_OfAnEmptyGroupHoldsUpNoneOfAFullOne"},
	{"wrong change taken for a lost item", "taskstore/held.go", []Edit{
		{"(p.Kind == item.NotThere || ", "(p.Kind != \"\" || "},
	}, "./taskstore", "TestWorker_AWrongChangeOfItsOwnItemIsRetriedAfterRetryAfter"},
	{"node that drains asked without a pause", "taskstore/worker.go", []Edit{
		{"time.Since(asked) < DefaultWait/2:", "time.Since(asked) < 0:"},
	}, "./taskstore", "TestWorker_PausesWhileClaimsThatWaitComeBackEmptyAtOnce"},
	{"claim whose answer was lost, not renewed", "taskstore/worker.go", []Edit{
		{"!late || h.kept(ctx, log)", "!late || h != nil || h.kept(ctx, log)"},
	}, "./taskstore", "TestWorker_RenewsAtOnceAClaimWhoseAnswerWasLostForLong"},
	{"update repeated when its key may be forgotten", "taskstore/repeat.go", []Edit{
		{"		case time.Since(began) > keysFor:\n", "		case false:\n"},
	}, "./taskstore", "TestStore_AnUpdateOfUnknownOutcomeIsNotRepeatedOnceItsKeyMayBeForgotten"},
	{"key of a handler for two items", "taskstore/held.go", []Edit{
		{"	u.Key = \"\"\n", ""},
	}, "./taskstore", "TestWorker_DrawsTheKeyOfItsLastUpdateItself"},
	{"worker that asks once", "taskstore/worker.go", []Edit{
		{"	repeats.once = false\n", ""},
	}, "./taskstore", "TestWorker_RepeatsAlsoWhereItsStoreAsksOnce"},
	{"hint that nobody takes", "engine/clientextension.go", []Edit{
		{"err := x.Hinted(data)", "err := error(nil)"},
	}, "./integration", "TestClaim_ThatWaitsElsewhereIsWokenByTheHintAndNotByTheNextRegistration"},
	{"store without room told as one that may have answered", "api/stores/stores.go", []Edit{
		{"	case p.Type == problem.Overloaded:", "	case false:"},
	}, "./api/stores", "TestError_HasTheStatusOfItsKind"},
}
