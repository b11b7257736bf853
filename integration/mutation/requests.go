package main

// requests break what a key of a request stands for, and what submits that join bring.
var requests = []mutation{
	{"request whose priority is any", "TestRequest_IDTellsTheKeyAndEveryDifference",
		in("events/request.go", "w.Array(5)", "w.Array(4)").
			and("	w.Int(q.Priority)\n", "")},
	{"task of a request of any behavior", "TestTaskOfRequest_TellsItsTextsApart",
		in("events/request.go", "w.Array(3)", "w.Array(2)").
			and("	w.Text(behavior)\n", "")},
	{"principal of the client for that of its caller", "TestRequest_OfAnotherPrincipalBehaviorOrKeyIsAnotherTask",
		in("engine/submit.go", "return cmp.Or(a.Principal, c.cfg.Name)", "return cmp.Or(c.cfg.Name, a.Principal)")},
	{"repeated request that is a further one", "TestSubmit_SameRequestJoinsItself",
		in("engine/internal/command/submit.go", "t.Requests.Of(c.RequestID) != nil", "false")},
	{"repeated request that gets the last run", "TestSubmit_RepeatedGetsTheRunThatItWasPromised",
		in("engine/internal/command/submit.go", "q.Run <= t.Runs", "false")},
	{"request that meets what has ended and is not recorded", "TestSubmit_ThatMeetsWhatHasEndedIsRememberedByItsKey",
		in("engine/internal/command/submit.go", "return d.Join(t, c.RequestID)", `return d.Join(t, "")`)},
	{"late request that is forgotten for another", "TestRequests_ALateOneIsNeverForgottenForAnother",
		in("engine/internal/command/submit.go", "return d.State.RequestsFull(t, d.Now)", "return false")},
	{"repetition that ends with a run that failed", "TestEvery_AnotherRunFollowsTheEndOfARunWhateverItWas",
		in("engine/internal/command/complete.go", "body.Next, body.Run = d.repetition(t), t.Runs+", "body.Run = t.Runs + ")},
	{"losses after which nothing is waited for", "TestLose_TheTaskThatKillsItsNodeEndsAndThoseBesideItDoNot",
		in("engine/internal/command/decider.go", "Now.Add(t.Kind.Policy.LostWait(d.losses(t)+1, t.ID, t.Started))", "Now")},
	{"delay by the clock of the submitter", "TestDelay_IsSoLongAfterTheSubmitWhateverTheClockOfTheSubmitterShows",
		in("engine/internal/command/submit.go", "return max(c.NotBefore, now.Add(c.Delay))", "return max(c.NotBefore, now)")},
	{"key that any random id may have used", "TestSubmit_TellsARequestOfManyTasksFromOneOfTheSameKey",
		in("engine/internal/command/submit.go",
			" &&\n			events.TaskOfRequest(t.Kind.Creator, t.Kind.Behavior, events.RequestKey(c.RequestID)) == id", "")},
	{"unknown operation that deletes", "TestOperate_ThatThereIsNotIsRefusedByFieldAndChangesNothing",
		in("engine/internal/command/operate.go", "c.Do >= task.OperationCount", "false").
			and("case DoDelete:\n		return &events.Deleted{}, t.Status != task.Running\n	}\n	return nil, false",
				"}\n	return &events.Deleted{}, t.Status != task.Running")},
	{"repeated merge that is a further one", "TestMerge_OfARequestThatWasRecordedJoins",
		in("engine/internal/command/merge.go", "t.Requests.Of(c.Submit.RequestID) != nil: //", "false: //")},
	{"terms of the submit before", "TestSubmit_OnAnExistingTask",
		in("engine/internal/command/submit.go", "== c.Priority && t.Kind.Policy ==", "<= c.Priority || t.Kind.Policy ==")},
	{"priority of a join that is not folded", "TestTerms_OfTheLastSubmitHold",
		in("projection/kinds.go", "	t.Priority = terms.Priority\n", "")},
}

// callers break what events tell of who asked.
var callers = []mutation{
	{"sender taken for the caller before it", "TestDecideBatch_EventsTellWhoAsked",
		in("engine/internal/command/asked.go", "is != last", "is != last && caller != nil")},
	{"caller of all that follows in its batch", "TestDecideBatch_EventsTellWhoAsked",
		in("engine/internal/command/decidebatch.go", "d.Origin, d.caller = batch, nil\n			if asked[0]", "if asked[0]")},
	{"caller told without the principal of its sender", "TestOrigin_CallersAreKnownBesideTheirBatch",
		in("events/origin.go", "= cmp.Or(a.Principal, e.Origins[o.Batch-1].Principal)", `= cmp.Or(a.Principal, "")`)},
}
