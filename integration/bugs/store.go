package bugs

// The four compares of the commit hide each other easily: each has a case that the other three let pass.
var commits = []Bug{
	{"commit without the owner fence", "etcdstore/append.go", []Edit{
		{`			clientv3.Compare(clientv3.ModRevision(owner), "=", o.Revision),` + "\n", ""},
	}, store, contract + "Append/AfterHandOverIsFenced"},
	{"commit without the session fence", "etcdstore/append.go", []Edit{
		{`			clientv3.Compare(clientv3.LeaseValue(node), "=", o.Session.Lease),` + "\n", ""},
	}, store, contract + "Append/AfterEndOfSessionIsFenced"},
	{"commit without the predecessor", "etcdstore/append.go", []Edit{
		{`		return []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(before), "=", after.Revision)}` + "\n", "		return nil\n"},
	}, store, contract + "Append/LateDuplicateAfterTrimIsRefused"},
	{"commit without the compare of the next entry", "etcdstore/append.go", []Edit{
		{`			clientv3.Compare(clientv3.ModRevision(next), "=", 0),` + "\n", ""},
	}, store, contract + "Append/SecondWriterOfANumberIsRefused"},
	{"commit of the first entry without the snapshot pointer", "etcdstore/append.go", []Edit{
		{"		return s.keys.pointer(shard)\n", "		return s.keys.entry(shard, 0)\n"},
	}, store, contract + "Append/LateFirstEntryAfterTrimIsRefused"},
	{"commit decided by a plain read after a lost answer", "etcdstore/append.go", []Edit{
		{"	resp, err := s.transact(ctx,\n", "	resp, err := s.once(ctx,\n"},
		{"	if err != nil {\n		return 0, err\n	}\n	if resp.Succeeded {", `	if err != nil {
		seen, err := s.get(ctx, next)
		if err != nil || len(seen.Kvs) == 0 {
			return 0, fmt.Errorf("%w: entry is not there", store.ErrFenced)
		}
		return seen.Kvs[0].ModRevision, nil
	}
	if resp.Succeeded {`},
		{"// predecessor returns the key", `func (s *Store) once(ctx context.Context, compare []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	resp, err := s.client.Do(ctx, clientv3.OpTxn(compare, then, otherwise))
	if err != nil {
		return nil, err
	}
	return resp.Txn(), nil
}

// predecessor returns the key`},
	}, store, "TestAppend_IsCommittedOnceWhateverIsLost"},
}

var otherWrites = []Bug{
	{"take without the revision of the owner key", "etcdstore/owners.go", []Edit{
		{`		clientv3.Compare(clientv3.ModRevision(owner), "=", seen.Revision),` + "\n", ""},
	}, store, contract + "Take/OnAnOldViewIsFenced"},
	{"take by an ended session", "etcdstore/owners.go", []Edit{
		{`		clientv3.Compare(clientv3.LeaseValue(me), "=", session.Lease),` + "\n", ""},
	}, store, contract + "Take/ByAnEndedSessionIsFenced"},
	{"join of a program that cannot read what is written", "etcdstore/session.go", []Edit{
		{`if lacks := info.Reads.Lacks(written); lacks != "" {`, `if lacks := info.Reads.Lacks(store.Reads{}); lacks != "" {`},
		{"	written, revision, err := s.readWritten(ctx)\n", "	_, revision, err := s.readWritten(ctx)\n"},
	}, store, contract + "Join/OfWhoReadsLessThanIsWrittenIsRefused"},
	{"join without the revision of what is written", "etcdstore/session.go", []Edit{
		{`			clientv3.Compare(clientv3.ModRevision(s.keys.written()), "=", revision),` + "\n", ""},
		{"	written, revision, err := s.readWritten(ctx)\n", "	written, _, err := s.readWritten(ctx)\n"},
	}, store, "TestJoin_OfAnOldProgramDuringARaiseIsRefused"},
	{"what is written falls", "etcdstore/written.go", []Edit{
		{"encodeWritten(written.With(need))", "encodeWritten(need)"},
	}, store, contract + "Raise/NoNumberEverFalls"},
	{"take from a living owner", "etcdstore/owners.go", []Edit{
		{`			clientv3.Compare(clientv3.LeaseValue(s.keys.node(seen.Node)), "=", 0), // an absent key has lease 0, too` + "\n", ""},
	}, store, contract + "Take/OfALivingOwnerIsFenced"},
	{"mailbox answer without the revision of its batch", "etcdstore/mailbox.go", []Edit{
		{`append(fences, clientv3.Compare(clientv3.ModRevision(key), "=", b.Revision)),`, `fences,`},
	}, store, contract + "Answer/ToAReplacedBatchDoesNothing"},
	{"mailbox post without the revision it replaces", "etcdstore/mailbox.go", []Edit{
		{`			clientv3.Compare(clientv3.ModRevision(key), "=", seen),` + "\n", ""},
	}, store, "TestPost_EarlierBatchNeverReplacesALaterOne"},
	{"mailbox swept without the revision that was old", "etcdstore/mailbox.go", []Edit{
		{`			clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision),` + "\n", ""},
	}, store, "TestSweepMailboxes_BatchWrittenMeanwhileStays"},
}

var reads = []Bug{
	{"read without an answer that is no unavailable cluster", "etcdstore/transact.go", []Edit{
		{`	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)` + "\n", "	return err\n"},
	}, store, "TestRead_WhatEtcdDoesNotAnswerIsUnavailable"},
}
