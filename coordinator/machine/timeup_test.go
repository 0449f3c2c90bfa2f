package machine

import (
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	rr "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
)

// A task that only priced is made again as such.
func TestTimeUpIsRemade(t *testing.T) {
	j, err := newJob("j", mustPrepare(t))
	if err != nil {
		t.Fatal(err)
	}
	j.StepNo = 1
	next, _ := j.driver.Next()
	for k := range next.Tasks {
		next.Tasks[k].Late = method.Encode(rr.Map{Price: true})
	}
	s := new(Machine).newStep(j, next)
	if len(s.tasks) < 2 {
		t.Fatalf("%d tasks", len(s.tasks))
	}
	attempts := make([]uint32, len(s.tasks))
	for n := range s.tasks {
		attempts[n], s.tasks[n].attempt, s.tasks[n].committed = 1, 1, 1
	}
	s.tasks[1].late = true
	j.Values = j.published(s, method.Outcome{}, s.place) // for nothing is kept of a step that nobody refers to
	j.keepPast(s, attempts)
	again := j.past(1).step()
	for n := range uint32(len(s.tasks)) {
		var was, now rr.Map
		for l, m := range map[*taxonv1.Lease]*rr.Map{s.lease(j, n): &was, again.lease(j, n): &now} {
			if err := method.Decode(l.Params, m); err != nil {
				t.Fatal(err)
			}
		}
		if was != now || (now.Epochs == 0) != (n == 1) {
			t.Errorf("task %d: %+v, first %+v", n, now, was)
		}
	}
}

func mustPrepare(t *testing.T) *prepared {
	t.Helper()
	p, err := prepare(methodtest.WordNetLike(200, 50))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
