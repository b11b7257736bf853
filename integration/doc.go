// Package integration tests the whole: nodes and clients on a real etcd and a real NATS, seen from outside only. Unless
// a fault test needs NATS, every scenario runs with NATS and with NATS absent for the whole run. Where nodes are
// processes of their own, tests are in package processes.
//
// The scenarios of the prior art in asynchronous tasks, and the test that stands for each here. What has no counterpart
// says why.
//
// Task service:
//
//	multipleRepos                          no realms; TestSubmit_SameNameUnderTwoAffinitiesIsTwoTasks
//	singleServiceSingleConsumer            TestSubmit_SecondJoinsTheRunAndALaterOneGetsTheRecordedResult
//	singleServiceSingleConsumerFailure     TestSubmit_LaterOneGetsTheRecordedFailure
//	taskReturnsIllegalNullResult           no result is a success: TestSubmit_ResultlessSuccessIsASuccess
//	runningTaskUpdateRace                  none: a shard has one writer; what comes near is
//	                                       TestSession_NodeWhoseLeaseIsGoneStartsAgainUnderANewID
//	successfulTaskUpdateRace               as above
//	failedTaskUpdateRace                   as above
//	twoServicesDistributed                 TestFuture_NodeThatOnlyObservesGetsTheEqualResult
//	singleServiceSingleConsumerRetryableError  TestRetry_FutureStaysPendingUntilTheRetrySucceeds
//	twoServicesDistributedTaskFailure      TestFuture_EveryNodeAndClientGetsTheEqualError
//	twoServicesDistributedLostTask         TestKill_TaskOfADeadNodeRunsAgainOnASurvivor
//
// Store, leases, maintenance:
//
//	conditionalObjects                     package store/storetest: each compare of an append, a take and a hand-over
//	retry loop, sleep bounds               none: a write of unknown outcome is resent until it is definite; tests of etcdstore
//	committers: no lost update             TestMerge_ConcurrentMergesLoseNone,
//	                                       TestSubmit_CrowdOnFewIDsFromNodesAndClientsRunsEachOnce
//	committers: order per thread           tests of etcdstore: an append follows exactly the entry its writer holds
//	leaseAgainAfterStalledExecutor         TestSession_NodeWhoseLeaseIsGoneStartsAgainUnderANewID
//	rescheduleWorksAfterPersistFailures    the fault tests of package engine: renewal is tried again every second
//	allocateAll, incompatible config       none: ids of sessions are random and never run out
//	overrideRuns                           package store/storetest: a shard is taken only from the owner that was seen
//
// Implied by the contract:
//
//	validity of every status               TestStatus_ShowsTheStampsThatMustBeThereAndNoOthers
//	eligible at now == stamp, never without  tests of package projection
//	unknown behavior at submit             TestBadInput_IsRefusedWithFieldAndLimitAndHarmsNobody (raw),
//	                                       TestUnknownBehavior_TypedSubmitWaitsForANodeThatHasIt (typed)
//	unknown behavior in the store          TestUnknownBehavior_TypedSubmitWaitsForANodeThatHasIt
//	concurrent submits of one id           TestSubmit_CrowdOnFewIDsFromNodesAndClientsRunsEachOnce
//	parameters combined in each status     the TestMerge tests
//	reschedule after success               the TestRepeat tests
//	reschedule after failure               the TestRetry tests
//	delay across a restart of all nodes    TestDelay_IsHonouredAcrossARestartOfAllNodes,
//	                                       TestRestart_OfEverythingKeepsTasksTimesAndOutcomes
//	created running, then a crash          TestKill_TaskOfADeadNodeRunsAgainOnASurvivor
//	limit counts matches only              TestList_LimitCountsMatchesOnly
//	zombie that finishes after a takeover  TestProcess_PausedPastItsSessionDoesNoHarmWhenItWakes
//	updater invoked twice                  none: no user code runs inside a decision
//	owner killed in the middle of its upkeep  TestProcess_KilledAtAnyWriteOfUpkeepLosesAndDoublesNothing
//	client never executes                  TestClient_NeverRunsATask
//	close does not cancel                  TestFuture_CloseDoesNotCancel
//	clock skew of a claimer                none: only the owner's entry time counts
//	unknown outcome of a write             tests of etcdstore
//
// Foreign writers have no counterpart at all: nobody but the owner can write to a journal, and verification, which
// every cluster of a test passes at its end, would find one who did.
package integration
