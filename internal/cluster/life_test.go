package cluster

import "testing"

func TestLife(t *testing.T) {
	dir := t.TempDir()
	take := func(name string) *WorkerName {
		t.Helper()
		l, err := ReserveName(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := take("host/a")
	if first.Previous != "" {
		t.Errorf("a new name has the past %q", first.Previous)
	}
	if err := first.SaveID("w1"); err != nil {
		t.Fatal(err)
	}
	if twin := take("host/a"); twin.Previous != "" || twin.SaveID("w2") != nil {
		t.Errorf("a second process of the name took up %q", twin.Previous)
	}
	first.lock.Close() // it is killed
	second := take("host/a")
	if second.Previous != "w1" {
		t.Errorf("past %q, want w1", second.Previous)
	}
	if other := take("b"); other.Previous != "" {
		t.Errorf("another name has the past %q", other.Previous)
	}
	second.Close() // in good order
	if third := take("host/a"); third.Previous != "" {
		t.Errorf("after a good end the past is %q", third.Previous)
	}
}
