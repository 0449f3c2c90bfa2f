package machine

import (
	"errors"
	"testing"
)

// Two processes that say they are the same shard are told apart from one that has moved.
func TestTwins(t *testing.T) {
	m := New(Limits{Lease: 9 * second})
	join := func(at Tick, addr string) error {
		for _, a := range m.Step(at, JoinShard{ID: "s", Addr: addr}) {
			if r, ok := a.(Refused); ok {
				return r.Err
			}
		}
		return nil
	}
	at := func(addr string) bool { return m.shard("s").addr == addr }
	if err := join(1*second, "a:1"); err != nil {
		t.Fatal(err)
	}
	if err := join(2*second, "b:1"); err == nil || errors.Is(err, ErrDuplicateShard) || !at("a:1") {
		t.Errorf("a rival was not told to wait: %v", err)
	}
	if err := join(4*second, "a:1"); err != nil {
		t.Error(err)
	}
	if err := join(5*second, "b:1"); !errors.Is(err, ErrDuplicateShard) || !at("a:1") {
		t.Errorf("a twin was not refused: %v", err)
	}
	if err := join(5*second, "c:1"); err == nil || errors.Is(err, ErrDuplicateShard) {
		t.Errorf("a third one: %v", err)
	}
	if err := join(8*second, "c:1"); err != nil || !at("c:1") { // a was killed
		t.Errorf("a shard that moved was not let in: %v", err)
	}
	m.Step(9*second, LeaveShard{ID: "s"})
	if err := join(9*second, "d:1"); err != nil || !at("d:1") {
		t.Errorf("a shard that left was not let in elsewhere: %v", err)
	}
}
