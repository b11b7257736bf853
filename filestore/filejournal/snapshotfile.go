package filejournal

import (
	"encoding/binary"
	"fmt"

	"taskledger/filestore/internal/frame"
	"taskledger/filestore/journal"
)

// encodeSnapshot returns the records of a snapshot. The first one has First as its number, and the number of parts as
// its data; the others have the number of their part, from 1 on, and a byte before it, since a part may be empty.
func encodeSnapshot(k journal.Key, s journal.Snapshot) ([]byte, error) {
	count := binary.LittleEndian.AppendUint32(nil, uint32(len(s.Parts)))
	file, err := frame.Append(nil, 0, frame.Frame{
		Shard:    k.Shard,
		Number:   s.First,
		Revision: int64(k.Slot),
		Data:     count,
	})
	for i, part := range s.Parts {
		if err != nil {
			return nil, err
		}
		data := append([]byte{'.'}, part...)
		file, err = frame.Append(file, 0, frame.Frame{Shard: k.Shard, Number: uint64(i) + 1, Data: data})
	}
	return file, err
}

// decodeSnapshot reads what encodeSnapshot returned.
func decodeSnapshot(k journal.Key, file []byte) (s journal.Snapshot, err error) {
	name := snapshotName(k)
	damaged := func(at int64, problem string) (journal.Snapshot, error) {
		return journal.Snapshot{}, &DamagedError{name, at, problem}
	}
	head, at, err := frame.Read(file, 0)
	switch {
	case err != nil:
		return damaged(0, err.Error())
	case head.Shard != k.Shard || head.Revision != int64(k.Slot) || len(head.Data) != 4:
		return damaged(0, "it begins as another snapshot")
	}
	s.First = head.Number
	parts := binary.LittleEndian.Uint32(head.Data)
	for n := uint32(1); n <= parts; n++ {
		part, next, err := frame.Read(file, at)
		switch {
		case err != nil:
			return damaged(at, err.Error())
		case part.Shard != k.Shard || part.Number != uint64(n):
			return damaged(at, fmt.Sprintf("it holds part %d of shard %d instead of part %d", part.Number, part.Shard, n))
		}
		s.Parts = append(s.Parts, part.Data[1:])
		at = next
	}
	if at != int64(len(file)) {
		return damaged(at, "the last part ends before the file")
	}
	return s, nil
}
