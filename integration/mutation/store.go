package main

const contract = "TestStore_KeepsTheContractInProcess/"

// commits leave out the compares of a commit. These hide each other easily: each has a case that the other three let
// pass.
var commits = []mutation{
	{"commit without the owner fence", contract + "Append/AfterHandOverIsFenced",
		in("etcdstore/append.go", `			clientv3.Compare(clientv3.ModRevision(owner), "=", o.Revision),`+"\n", "")},
	{"commit without the session fence", contract + "Append/AfterEndOfSessionIsFenced",
		in("etcdstore/append.go", `			clientv3.Compare(clientv3.LeaseValue(node), "=", o.Session.Lease),`+"\n", "")},
	{"commit without the predecessor", contract + "Append/LateDuplicateAfterTrimIsRefused",
		in("etcdstore/append.go",
			`return []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(before), "=", after.Revision)}`, "return nil")},
	{"commit without the compare of the next entry", contract + "Append/SecondWriterOfANumberIsRefused",
		in("etcdstore/append.go", `			clientv3.Compare(clientv3.ModRevision(next), "=", 0),`+"\n", "")},
	{"commit of the first entry without the snapshot pointer", contract + "Append/LateFirstEntryAfterTrimIsRefused",
		in("etcdstore/append.go", "return s.keys.pointer(shard)", "return s.keys.entry(shard, 0)")},
	{"commit decided by a plain read after a lost answer", "TestAppend_IsCommittedOnceWhateverIsLost",
		in("etcdstore/append.go", "resp, err := s.transact(ctx,", "resp, err := s.once(ctx,").
			and("	if err != nil {\n		return 0, err\n	}\n	if resp.Succeeded {",
				`	if err != nil {
		seen, err := s.get(ctx, next)
		if err != nil || len(seen.Kvs) == 0 {
			return 0, fmt.Errorf("%w: entry is not there", store.ErrFenced)
		}
		return seen.Kvs[0].ModRevision, nil
	}
	if resp.Succeeded {`).
			and("// predecessor returns the key",
				`func (s *Store) once(
	ctx context.Context, compare []clientv3.Cmp, then, otherwise []clientv3.Op,
) (*clientv3.TxnResponse, error) {
	resp, err := s.client.Do(ctx, clientv3.OpTxn(compare, then, otherwise))
	if err != nil {
		return nil, err
	}
	return resp.Txn(), nil
}

// predecessor returns the key`)},
}

// otherWrites leave out the compares of what is written beside the journals.
var otherWrites = []mutation{
	{"take without the revision of the owner key", contract + "Take/OnAnOldViewIsFenced",
		in("etcdstore/owners.go", `		clientv3.Compare(clientv3.ModRevision(owner), "=", seen.Revision),`+"\n", "")},
	{"take by an ended session", contract + "Take/ByAnEndedSessionIsFenced",
		in("etcdstore/owners.go", `		clientv3.Compare(clientv3.LeaseValue(me), "=", session.Lease),`+"\n", "")},
	{"join of a program that cannot read what is written", contract + "Join/OfWhoReadsLessThanIsWrittenIsRefused",
		in("etcdstore/session.go", ":= info.Reads.Lacks(written); lacks !=", ":= info.Reads.Lacks(store.Reads{}); lacks !=").
			and("written, revision, err := s.readWritten(ctx)", "_, revision, err := s.readWritten(ctx)")},
	{"join without the revision of what is written", "TestJoin_OfAnOldProgramDuringARaiseIsRefused",
		in("etcdstore/session.go", `			clientv3.Compare(clientv3.ModRevision(s.keys.written()), "=", revision),`+"\n", "").
			and("written, revision, err := s.readWritten(ctx)", "written, _, err := s.readWritten(ctx)")},
	{"what is written falls", contract + "Raise/NoNumberEverFalls",
		in("etcdstore/written.go", "encodeWritten(written.With(need))", "encodeWritten(need)")},
	{"take from a living owner", contract + "Take/OfALivingOwnerIsFenced",
		in("etcdstore/owners.go",
			`			clientv3.Compare(clientv3.LeaseValue(s.keys.node(seen.Node)), "=", 0), // an absent key has lease 0, too`+"\n",
			"")},
	{"mailbox answer without the revision of its batch", contract + "Answer/ToAReplacedBatchDoesNothing",
		in("etcdstore/mailbox.go", `append(fences, clientv3.Compare(clientv3.ModRevision(key), "=", b.Revision))`, "fences")},
	{"mailbox post without the revision it replaces", "TestPost_EarlierBatchNeverReplacesALaterOne",
		in("etcdstore/mailbox.go", `			clientv3.Compare(clientv3.ModRevision(key), "=", seen),`+"\n", "")},
	{"mailbox swept without the revision that was old", "TestSweepMailboxes_BatchWrittenMeanwhileStays",
		in("etcdstore/mailbox.go",
			`			clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision),`+"\n", "")},
}

// reads take an error for another one.
var reads = []mutation{
	{"read without an answer that is no unavailable cluster", "TestRead_WhatEtcdDoesNotAnswerIsUnavailable",
		in("etcdstore/transact.go", `return fmt.Errorf("%w: %w", store.ErrUnavailable, err)`, "return err")},
}
