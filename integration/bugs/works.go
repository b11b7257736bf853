package bugs

const worksPkg = "./engine/internal/works"

// What works promise of buckets, permits and workers.
var works = []Bug{
	{"bucket given twice after a loss", "projection/works/fold.go", []Edit{
		{"		of.close(b.Returned)\n", "		if b.Cause != events.ReturnedLost {\n			of.close(b.Returned)\n		}\n"},
	}, worksPkg, "TestWork_WhateverEndsAnAttemptReturnsItsBucketInTheSameEntry"},
	{"failure that gives a bucket up", "projection/works/workers.go", []Edit{
		{"		return events.ReturnedFailed\n", "		return events.ReturnedGivenUp\n"},
	}, worksPkg, "TestWork_ABucketThatFailsInEveryAttemptFailsTheWorkByItsName"},
	{"permits of a returned bucket that are forgotten", "projection/works/fold.go", []Edit{
		{"		p.taken.Remove(b.Returned)\n", "		p.taken.Remove(b.Returned)\n		s.clearPermits(of)\n"},
	}, worksPkg, "TestPermits_OfAnItemThatIsProcessedAgainAfterALossCountOnce"},
	{"worker counted after its end", "projection/works/workers.go", []Edit{
		{"	w.Active, w.bytes = !t.Final, t.Bytes\n", "	w.bytes = t.Bytes\n"},
	}, worksPkg, "TestWork_AWorkerThatEndedForGoodIsReplacedByOneOfAnotherNumber"},
	{"bucket that starts while the work is suspended", "engine/internal/works/decide.go", []Edit{
		{"	case a.parent.Suspended:\n", "	case false:\n"},
	}, worksPkg, "TestWork_SuspendedStartsNoBucketAndResumedGoesOnWhereItWas"},
	{"suspension of a work of which a node is told once", "engine/internal/command/reconcile.go", []Edit{
		{"	return t != nil && t.Suspended\n", "	return t == nil\n"},
	}, worksPkg, "TestReconcile_NamesTheAttemptsOfAWorkThatIsSuspended"},
	{"bucket of an attempt that runs elsewhere", "engine/internal/works/decide.go", []Edit{
		{"	if t == nil || t.ID != events.TaskID(id) || t.Node != node {\n", "	if t == nil || t.ID != events.TaskID(id) {\n"},
	}, worksPkg, "TestWork_AttemptThatIsOverIsRefused"},
	{"losses of a hold that its progress does not forgive", "projection/works/streamfold.go", []Edit{
		{"		h.forgive()\n", "		h.Failed = 0\n"},
	}, "./engine/internal/works", "TestStream_TriesOfAHoldCountAnewWithEachChangeThatIsProcessed"},
	{"losses that the end of a bucket does not forgive", "projection/works/fold.go", []Edit{
		{"		w.forgive()\n", "		_ = w\n"},
	}, worksPkg, "TestWork_LossesCountAnewWhenABucketEnds"},
	{"work that leaves its workers at its end", "engine/internal/works/follow.go", []Edit{
		{"		if !t.Cancelled {\n", "		if t == nil {\n"},
	}, worksPkg, "TestWork_CancelAndDeleteEndTheWorkersInTheSameEntry"},
	{"items that count again after a trip", "engine/internal/works/decide.go", []Edit{
		{"		failWork(d, a.of, tripped(plan, counter, c.Reason))\n", "		_ = tripped(plan, counter, c.Reason)\n"},
	}, worksPkg, "TestPermits_AtTheLimitNPassAndTheNextFailsTheWork"},
	{"permit of a work that stops taken for a trip", "engine/internal/works/ledger.go", []Edit{
		{"	if l.tripped.Load() {\n", "	if l.tripped.Load() || why != \"\" {\n"},
	}, worksPkg, "TestLedger_APermitWhileTheWorkIsSuspendedIsNoTrip"},
	{"reset of counters that forgets permits", "projection/works/fold.go", []Edit{
		{"	if what != events.ResetCounts {\n", "	if what != 0 {\n"},
	}, worksPkg, "TestReset_OfThresholdsLetsAsManyNewItemsOfAnOpenBucketPass"},
	{"run over failed buckets that has all of them", "projection/works/fold.go", []Edit{
		{"			p.taken = before[i].failed.Complement(buckets)\n", "			p.Total = buckets\n"},
	}, worksPkg, "TestRerun_HasTheBucketsWithFailedItemsAlone"},
}
