package works_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scenarios names the tests that show each scenario of midPoint's tests of buckets, workers, streams, progress and
// thresholds: the directory in the module, and the test. Those that this engine has no part for have none, and say why
// in lacks.
var scenarios = []struct {
	name  string
	tests []string // "directory.Test"
	lacks string   // "" = nothing
}{
	{"TestBucketingStatic 010 sequence of prefixes", []string{
		"work/segmentation.TestBuckets_HaveTheBoundsThatAreWrittenDown",
	}, ""},
	{"TestBucketingStatic 020 sequence of exact values", []string{
		"work/segmentation.TestBuckets_HaveTheBoundsThatAreWrittenDown",
	}, ""},
	{"TestBucketingStatic 030 sequence of intervals, estimated count", []string{
		"work/segmentation.TestBuckets_HaveTheBoundsThatAreWrittenDown",
		"work/segmentation.TestBuckets_EndWhereTheTotalSays",
	}, ""},
	{"TestBucketingStatic 040, 050 oid of depth 1 and 2", []string{
		"work/segmentation.TestBuckets_OfOIDsMeetAtEachOfTheirFirstDigits",
	}, ""},
	{"TestBucketingStatic 100 explicit numbers, four times, then none", []string{
		"engine/internal/works.TestLedger_RecordsEverySegmentation",
		"integration/works.TestLive_EachIteratorIsToldTheBoundsOfItsBucket",
	}, ""},
	{"TestBucketingStatic 110 explicit filters", []string{
		"work/segmentation.TestExplicit_IsRefusedWhereAKeyLiesInTwoBuckets",
	}, "no queries: a filter is what the iterator makes of the bounds"},
	{"TestBucketingStatic 120, 150 no definition", []string{
		"work/segmentation.TestBuckets_HaveTheBoundsThatAreWrittenDown",
	}, ""},
	{"TestBucketingStatic 130 batch of seven", nil, "no batches: a bucket is made when it is taken"},
	{"TestBucketingStatic 140 get, get again, complete", []string{
		"engine/internal/works.TestStatic140_ABucketIsAskedForTwiceAndDoneOnce",
	}, ""},
	{"TestBucketingStatic 200 delegated with its worker", []string{
		"engine/internal/works.TestStatic200_ABucketIsGivenWithTheWorkerAndTheAttemptThatHasIt",
	}, ""},
	{"TestBucketingStatic 210 coordinator and five workers", []string{
		"engine/internal/works.TestStatic210_FiveWorkersTakeReleaseAndEndFiveBuckets",
	}, ""},
	{"TestBucketingStatic 220 a foreign worker cannot complete", []string{
		"engine/internal/works.TestStatic220_AnotherWorkerCannotEndABucketAndItsOwnStillCan",
	}, ""},

	{"TestBucketingLive 100 single worker, four buckets, twice", []string{
		"integration/works.TestLive_ASingleWorkerDoesFourBucketsAndThoseOfTheNextRun",
	}, ""},
	{"TestBucketingLive, disabled: suspended worker", []string{
		"integration/works.TestLive_TheBucketOfAVictimIsDoneByOthersOnceItIsOver",
		"integration/works.TestLive_ASuspendedWorkerWhoseNodeDiesKeepsNothingBack",
	}, "one worker is not suspended alone: that is refused, and the answer names its work"},
	{"TestBucketingLive, disabled: exploding worker", []string{
		"integration/works.TestLive_AWorkerThatExplodesGivesItsBucketBack",
	}, ""},
	{"TestBucketingLive, disabled: deleted and closed victim, 97 and 4 of 107", []string{
		"integration/works.TestLive_TheBucketOfAVictimIsDoneByOthersOnceItIsOver",
	}, ""},
	{"TestBucketingLive, disabled: narrowing", []string{
		"integration/works.TestLive_EachIteratorIsToldTheBoundsOfItsBucket",
	}, ""},

	{"TestWorkerTasks 100, 110, 120, 130, 170", []string{
		"integration/works.TestWorkers_OfEachShapeProcessEachItemOnceARun",
	}, ""},
	{"TestWorkerTasks 140 broken names and flags", []string{
		"engine/internal/works.TestWork_ATaskThatHasTheIDOfAWorkerIsPassedOver",
	}, "nothing is repaired: workers have no name and no flag but their number"},
	{"TestWorkerTasks 150, 160 nodes that change", []string{
		"integration/works.TestWork_ItsWorkersStartWhereFewestOfThemRun",
		"integration/works.TestWork_NodesKilledInTurnAndRestartedLoseAndDoubleNothing",
	}, "workers belong to no node"},

	{"TestActivities 120 to 180 simple, composite, bucketed", []string{
		"integration/works.TestWork_EveryCombinationOfOneAndManyProcessesEachItemOnce",
		"integration/works.TestPartitions_CutTheSetEachInItsOwnWay",
	}, ""},
	{"TestActivities 185 bucket analysis", []string{"work.TestAttempt_NeverProcessesInADryRun"}, ""},
	{"TestActivities 190, 210 repeated failure and resume of a composite", []string{
		"integration/works.TestPartitions_FailAndGoOnWithoutThoseThatHaveEnded",
	}, ""},
	{"TestActivities 200, 220 delegation, suspension with subtasks", []string{
		"integration/works.TestWork_SuspendedTwiceInTheMiddleLosesNoItem",
	}, ""},
	{"TestActivities 300 one start of the realization for all workers", []string{
		"integration/works.TestRun_BeganAtOneTimeForAllItsWorkers",
	}, ""},
	{"TestActivities 310 frozen scavenger, still in progress", []string{
		"integration/works.TestLive_AFrozenWorkerLeavesTheWorkInProgress",
	}, ""},
	{"TestActivities 320 no work after suspend, the rest after resume", []string{
		"integration/works.TestWork_SuspendedTwiceInTheMiddleLosesNoItem",
	}, ""},
	{"TestActivities 400 throughput of a running task", []string{
		"integration/works.TestReport_OfAWorkThatRunsTellsItsThroughput",
	}, ""},
	{"TestActivitiesClustered 100 four delegated children in their order", []string{
		"integration/works.TestPartitions_CutTheSetEachInItsOwnWay",
		"integration/works.TestPartitions_FailAndGoOnWithoutThoseThatHaveEnded",
	}, ""},

	{"TestLiveSyncTask 100, 105 suspended before and while it fetches", []string{
		"work.TestLiveSync_SuspendedWhileFetchingGoesOnWhereItWas",
	}, ""},
	{"TestLiveSyncTask 110, 115 suspended while it processes, precise and imprecise", []string{
		"work.TestLiveSync_SuspendedWhileProcessingHasTheTokenOfWhatWasProcessed",
	}, ""},
	{"TestLiveSyncTask 120 batches of ten, and an error that is passed", []string{
		"work.TestLiveSync_RunsInBatchesAndPassesAnErrorThatIsIgnored",
	}, ""},
	{"TestLiveSyncTask 125 a batch of imprecise changes is refused", []string{
		"work.TestDefineStream_NamesFieldAndLimit",
	}, ""},
	{"TestLiveSyncTask 130, 135 an error at item R, twice, precise and imprecise", []string{
		"work.TestLiveSync_AnErrorStopsItBeforeTheChangeUntilThereIsARemedy",
	}, ""},
	{"TestLiveSyncTask 140, 150 dry run without and with an update of the token", []string{
		"work.TestLiveSync_ADryRunLeavesTheTokenUnlessItMovesIt",
	}, ""},
	{"TestLiveSyncTask 210 to 235 counters across failures", []string{
		"work.TestLiveSync_CountsEachChangeOnceAcrossFailures",
	}, ""},
	{"TestLiveSyncTask 240 many changes of one account in their order", []string{
		"work.TestLiveSync_KeepsTheOrderOfAKey",
		"integration/streams.TestStream_WorkersKilledInTurnKeepTheOrderAndTheTokenPassesNothing",
	}, ""},
	{"TestLiveSyncTask 300 errors that are ignored", []string{"work.TestLiveSync_IgnoredErrorsMoveTheToken"}, ""},
	{"TestLiveSyncTask 310, 320 stop on fatal, stop on any", []string{
		"work.TestLiveSync_StopsAtTheCodesThatItsRulesName",
	}, ""},
	{"TestLiveSyncTask 330 retry later, fails again, then succeeds", []string{
		"work.TestLiveSync_RetriesLaterInOrderAndGoesOnMeanwhile",
		"integration/streams.TestStream_ChangeRetriedLaterIsFollowedByThoseOfItsKey",
	}, ""},
	{"TestLiveSyncTask 340 stop after the fourth", []string{"work.TestLiveSync_StopsAtTheFourthFailure"}, ""},
	{"TestLiveSyncTask 400 two tasks on one source, what is irrelevant is skipped", []string{
		"work.TestLiveSync_TwoTasksOfOneSourceSkipWhatIsForTheOther",
	}, ""},
	{"TestAsyncUpdateTaskMechanics ten messages, ten users", []string{
		"work.TestAsyncUpdate_TenMessagesMakeTenUsers",
		"integration/streams.TestStream_PushedWorkersKilledWithUnacknowledgedMessagesKeepTheOrder",
	}, ""},

	{"TestProgressReporting plain, threads, buckets, workers, suspended twice", []string{
		"integration/works.TestProgress_NeverFallsAndFitsItsBuckets",
	}, ""},
	{"TestTaskReporting a failure of each phase, retry by filtering and fetching", []string{
		"integration/works.TestReporting_AFailureOfEachPhaseIsTold",
	}, ""},
	{"TestThresholds ten adds, threads, several nodes", []string{"integration/works.TestThresholds_OfTenAdds"}, ""},
	{"TestThresholds counters sit in the coordinator", []string{
		"engine/internal/works.TestPermits_OfAnItemThatIsProcessedAgainAfterALossCountOnce",
	}, ""},
	{"TestActivityPolicies limits of time and errors, of one task, subtasks and several nodes; unbalanced workers all stop", []string{
		"work.TestRules_StopAtTheNthFailureOfAllWorkers",
		"integration/works.TestThreshold_ThatTripsLeavesNoMoreThanItsLimitApplied",
		"engine/internal/works.TestLedger_AThresholdStopsTheAttemptAndFailsTheWork",
	}, "a policy neither skips nor restarts a partition, and its limit of time is that of an attempt"},
	{"TestActivityPolicyRuleCounters counts per evaluation", []string{
		"integration/works.TestThreshold_APermitOfANodeThatDiesCountsOnce",
	}, ""},
	{"TestNoOpTask sampling", nil, "no sampling: an iterator leaves out what it likes"},
	{"TestAutoScalingTask", nil, "no auto-scaling"},
}

func TestScenarios_EachHasTestsThatAreThere(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	for _, dir := range []string{"work", "work/segmentation", "engine/internal/works", "integration/works", "integration/streams"} {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has %d files of tests: %v", dir, len(files), err)
		}
		for _, name := range files {
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				if f, is := decl.(*ast.FuncDecl); is && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
					there[dir+"."+f.Name.Name] = true
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, s := range scenarios {
		if seen[s.name] || len(s.tests) == 0 && s.lacks == "" {
			t.Errorf("%s is there twice, or has neither a test nor a reason why it has none", s.name)
		}
		seen[s.name] = true
		for _, name := range s.tests {
			if !there[name] {
				t.Errorf("%s: there is no test %s", s.name, name)
			}
		}
	}
}
