package natsbus_test

import (
	"os"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"

	"taskledger/internal/testkit"
	"taskledger/natsbus"
)

func TestSegment_BombsCostLittle(t *testing.T) {
	text, err := os.ReadFile(goldenSegment)
	if err != nil {
		t.Fatal(err)
	}
	header, data := parse(t, text)
	decode := func(b []byte) error {
		_, err := natsbus.DecodeSegment(3, header, b)
		return err
	}
	testkit.CheckBombs(t, unpack(t, data), func(b []byte) error { return decode(s2.Encode(nil, b)) })
	bomb := s2.Encode(nil, make([]byte, 256<<20))
	for _, b := range []testkit.Bomb{
		{Name: "256 MB of zeros compressed", Data: bomb},
		{Name: "256 MB of zeros, cut", Data: bomb[:len(bomb)/2]},
		{Name: "4 GB declared", Data: []byte{0xff, 0xff, 0xff, 0xff, 0x0f}},
		{Name: "a length that does not end", Data: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
	} {
		if err := testkit.Bounded(t, b, decode); err == nil {
			t.Errorf("%s: accepted", b.Name)
		}
	}
}

func TestFrame_BombsCostLittle(t *testing.T) {
	open := natsbus.Opener(clusterKey)
	for _, size := range []int{0, 33, 1 << 20, 10 << 20} {
		err := testkit.Bounded(t, testkit.Bomb{Name: "forged frame", Data: make([]byte, size)}, func(b []byte) error {
			if _, ok := open("c.load", "", b); !ok {
				return nats.ErrAuthorization
			}
			return nil
		})
		if err == nil {
			t.Errorf("a forged frame of %d bytes was opened", size)
		}
	}
}
