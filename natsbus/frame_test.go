package natsbus_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"taskledger/natsbus"
)

var clusterKey = bytes.Repeat([]byte{7}, natsbus.KeyBytes)

func TestFrame_OpensForItsSubjectReplyAndKeyOnly(t *testing.T) {
	frame := natsbus.Seal(clusterKey, "c.node.a", "c.node.b", []byte("body"))
	flipped := bytes.Clone(frame)
	flipped[len(flipped)-1] ^= 1
	version := bytes.Clone(frame)
	version[0]++
	otherKey := bytes.Repeat([]byte{8}, natsbus.KeyBytes)
	for _, c := range []struct {
		name           string
		key            []byte
		subject, reply string
		frame          []byte
		want           bool
	}{
		{"as sealed", clusterKey, "c.node.a", "c.node.b", frame, true},
		{"other subject", clusterKey, "c.node.x", "c.node.b", frame, false},
		{"other reply", clusterKey, "c.node.a", "c.node.x", frame, false},
		{"reply shifted into the subject", clusterKey, "c.node.ac.node.b", "", frame, false},
		{"subject shifted into the reply", clusterKey, "c.node.", "ac.node.b", frame, false},
		{"other key", otherKey, "c.node.a", "c.node.b", frame, false},
		{"flipped bit", clusterKey, "c.node.a", "c.node.b", flipped, false},
		{"other version", clusterKey, "c.node.a", "c.node.b", version, false},
		{"cut short", clusterKey, "c.node.a", "c.node.b", frame[:len(frame)-1], false},
		{"header cut short", clusterKey, "c.node.a", "c.node.b", frame[:20], false},
		{"empty", clusterKey, "c.node.a", "c.node.b", nil, false},
	} {
		body, ok := natsbus.Opener(c.key)(c.subject, c.reply, c.frame)
		if ok != c.want || ok && string(body) != "body" {
			t.Errorf("%s: opened = %v with body %q, want %v", c.name, ok, body, c.want)
		}
	}
}

func TestFrame_FormatIsPinned(t *testing.T) {
	const want = "01" + "3d4aee33068f9528739ce37008633a1ac2353e5ed2c02aa4faea909b9b53ace1" + "68656c6c6f"
	frame := natsbus.Seal(clusterKey, "taskledger.shard.3", "taskledger.node.a.1", []byte("hello"))
	if got := hex.EncodeToString(frame); got != want {
		t.Errorf("frame is %s, want %s", got, want)
	}
}

func FuzzFrame_OpenNeverPanicsAndTakesNothingForged(f *testing.F) {
	f.Add("c.load", "", []byte{})
	f.Add("c.load", "", bytes.Repeat([]byte{1}, 33))
	f.Add("c.node.a", "c.node.b", natsbus.Seal(clusterKey, "c.node.a", "", []byte("x")))
	open := natsbus.Opener(clusterKey)
	f.Fuzz(func(t *testing.T, subject, reply string, frame []byte) {
		if body, ok := open(subject, reply, frame); ok && !bytes.Equal(frame, natsbus.Seal(clusterKey, subject, reply, body)) {
			t.Errorf("opened a frame that nobody sealed: %x", frame)
		}
		sealed := natsbus.Seal(clusterKey, subject, reply, frame)
		if body, ok := open(subject, reply, sealed); !ok || !bytes.Equal(body, frame) {
			t.Errorf("a sealed body of %d bytes did not open", len(frame))
		}
	})
}

func BenchmarkSeal80Bytes(b *testing.B) {
	seal, body := natsbus.Sealer(clusterKey), make([]byte, 80)
	b.ReportAllocs()
	for b.Loop() {
		seal("taskledger.shard.12", "taskledger.node.k3j2h4.12.1.93", body)
	}
}

func BenchmarkOpen80Bytes(b *testing.B) {
	open := natsbus.Opener(clusterKey)
	frame := natsbus.Seal(clusterKey, "taskledger.shard.12", "taskledger.node.k3j2h4.12.1.93", make([]byte, 80))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := open("taskledger.shard.12", "taskledger.node.k3j2h4.12.1.93", frame); !ok {
			b.Fatal("own frame refused")
		}
	}
}
