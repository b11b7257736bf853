package engine_test

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
)

// inFiles returns the tests of clusters that need neither etcd nor NATS, and remove no entry.
func inFiles() []func(*testing.T) {
	return []func(*testing.T){
		TestTrim_WaitsUntilTheArchiveHasSettled,
		TestTrim_NothingIntoAForeignArchive,
		TestTrim_ArchivesAgainWhatTheArchiveLost,
		TestTrim_GoesOnWhereOneWasCutOff,
		TestTrim_GoesOnWhenTheArchiveIsBack,
		TestAssignment_LostWithItsOwnerComesFromTheNext,
		TestAssignment_DoubledIsMadeOnce,
		TestAssignment_SlowAnswerIsWaitedFor,
		TestBus_OwnerCutOffFromItIsReachedThroughTheStore,
		TestBus_RunnerCutOffFromItIsReachedThroughTheStore,
		TestBus_LostHintsOnlyDelay,
		TestSchedules_InCodeAreSetOnceForEachDefinition,
		TestDrain_LeavesItsShardsToTheNodeOfALaterReleaseAndHandsThemNotOver,
		TestFuture_OfAForgottenTaskResolvesFromWhatIsKept,
		TestAttach_FindsHowAForgottenTaskHasEnded,
		TestTask_FinishedBeforeATrimIsServedAndRunsAgain,
		TestFailure_WithALongErrorIsToldWholeAsLongAsItIsKept,
		TestRetry_OfAForgottenTaskBeginsANewLifeWithWhatIsRecordedOfIt,
		TestRetry_TakesTheParametersAlongWhereJournalsAreDropped,
		TestSubmit_OfAFinishedTaskBringsItsParametersWhereJournalsAreDropped,
		TestKeep_ServesWhatWasArchivedBefore,
		TestFuture_OfAForgottenTaskIsAnsweredFromTheJournal,
		TestHandOver_LostAnswerLeavesNoShardUnserved,
		TestHandOver_DuringASnapshot,
		TestHandOver_LoadsAfreshWhatWasTrimmedMeanwhile,
		TestLog_PagesJoinWithoutLossOrRepetitionUnderEveryLimit,
		TestLog_FollowsAttemptsWhoseLinesComeLate,
		TestLog_FollowsAWriterWithoutLossOrRepetition,
		TestLog_TellsOfATaskThatIsNotThere,
		TestLog_OfATaskThatIsForgottenIsSearchedForOnce,
		TestLog_OfATaskThatIsForgottenIsNotGoneBehindItsLastLine,
		TestLog_HasTheNewestAttempts,
		TestLog_SaysWhetherMoreIsToCome,
		TestLog_HasTheLinesOfBothEndsOfItsTime,
		TestLog_SaysThatLinesMayBeMissingWhereAnAttemptBeganBeforeTheOldestOnes,
		TestLog_RefusesWhatBreaksARuleAndNamesIt,
		TestCare_CompactsWhenTheStoreHasGrown,
		TestMembers_ChangesThatAWatchMissesAreFoundByReading,
		TestMerge_ConcurrentSubmitsAreAllInTheSum,
		TestNode_SaysAtItsStartThatNothingIsArchivedUnlessThatIsChosen,
		TestOperate_SentAgainToTheNextOwnerIsDecidedOnce,
		TestAttempt_WhoseResultCannotBeStoredFails,
		TestShard_OfAStoreThatTakesLessRefusesWhatDoesNotFitAndServesOn,
		TestOwner_ThatCannotWriteStartsAgainAsANewNode,
		TestOwner_WithoutTheCodeRetriesAndGivesUp,
		TestPlan_ThatHangsDoesNotKeepItsNodeFromStopping,
		TestPlan_ThatHangsHoldsUpNoQuestion,
		TestAsk_IsAnsweredByTheNodeThatIsAskedAndByNoOther,
		TestAsk_TellsWhatBecameOfTheFunction,
		TestAsk_MoreQuestionsThanANodeAnswersAtOnceAreRefused,
		TestAsk_WithoutABusIsUnavailable,
		TestQuestions_OfWrongNamesAreRefused,
		TestSchedules_EachTickHasARunInItsEntry,
		TestSchedules_RunByHandIsShared,
		TestSchedules_AnEqualDefinitionWritesNothing,
		TestSchedules_BackfillRunsTicksOfThePast,
		TestSubmit_RefusesNamesOfSchedules,
		TestSchedules_WithoutTicksRunByUUIDs,
		TestSchedules_AReasonStandsInTheHistory,
		TestSchedules_GoOnWhenTheirOwnerDies,
		TestSession_EndsWithItsWatches,
		TestClient_ReadsAnswersAgainAfterARefusal,
		TestSession_FileIsReplacedAsAWhole,
		TestSubmit_LostAnswerOfRunAgainRunsOnce,
		TestSubmit_ByBusAndStoreIsDecidedOnce,
		TestTrim_ReadBackThatBreaksOffIsMadeAgain,
		TestTrim_TellsHowManyEntriesAreNotArchived,
		TestTrim_BeginsAnArchiveAnewThatTheJournalOvertookBeforeItsLossWasGivenUp,
		TestTrim_GoesOnWhereAnArchiveThatLostItsEndIsGivenUp,
		TestAdmission_RefusesOnlyNewTasksWhileTheStoreIsAlmostFull,
		TestAdmission_RefusesMoreLiveTasksThanTheStoreCanHold,
		TestAdmission_TellsTheCommandThatCompactsWhereLiveDataIsSmall,
		TestAdmission_IsLoggedWhenItBeginsAndNotForEveryByte,
		TestCare_DefragmentsAgainWhileTheStoreIsFull,
		TestRetry_OfARunOfASchedule,
		TestTask_WaitsForAnArchiveThatIsAway,
	}
}

// notInFiles returns the tests of clusters that do with servers alone: they remove keys, end leases, read what is
// stored there, cut off or fill a server, or let nodes die at writes to it.
func notInFiles() []func(*testing.T) {
	return []func(*testing.T){
		TestCompletion_HeldUpPastTheSessionIsRefused,
		TestBus_AssignmentLostOnItComesThroughTheStore,
		TestDrain_AssignmentThatNeverArrivedIsReleasedNotLost,
		TestDrain_EndsWhileTheStoreIsFull,
		TestShard_WhoseSnapshotGoesBeyondItsJournalWaitsForAnOperator,
		TestCare_MakesRoomForASessionToBegin,
		TestOffer_OfAnEndedSessionKeepsNoTask,
		TestPlan_ThatHangsDoesNotKeepItsNodeFromJoiningAgain,
		TestSession_EndedIsALossAndNoFailure,
		TestSession_OutcomeOfAnEndedOneIsRefused,
		TestSession_UnrenewedEndsItsAttemptsBeforeItsLease,
		TestSession_IsNotRenewedWhileAnOwnerHangs,
		TestSession_FileThatCannotBeWrittenLeavesOneSession,
		TestStore_FullLosesNothing,
		TestStore_FullRefusesWhatFollowsATaskThatWaitsForRoom,
		TestUpkeep_DeathAtAnyStepLosesAndDoublesNothing,
		TestFaults_WritesOfUnknownOutcomeLoseAndDoubleNothing,
	}
}

func nameOf(test func(*testing.T)) string {
	name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// leftOut returns the names of the tests that have made a cluster in this process, and of which nobody has said whether
// that may have its store in files.
func leftOut() (names []string) {
	for _, name := range testcluster.OnServers() {
		is := func(test func(*testing.T)) bool { return nameOf(test) == name }
		if !slices.ContainsFunc(inFiles(), is) && !slices.ContainsFunc(notInFiles(), is) {
			names = append(names, name)
		}
	}
	return names
}

// What holds of a cluster on etcd and NATS holds of one whose store is in files, whose directory is verified after
// each.
func TestInFiles_WhatNeedsNoServersHoldsAsWell(t *testing.T) {
	t.Parallel()
	for _, test := range testkit.Some(inFiles(), 7) {
		t.Run(nameOf(test), func(t *testing.T) {
			testcluster.OnFiles(t)
			test(t)
		})
	}
}
