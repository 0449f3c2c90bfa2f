package machine

import (
	"testing"

	"taxon/coordinator/method"
)

// Workers get runs of the plan's order, by their slots and the tasks' costs. A long task stays with
// the worker that had its item. A worker that has nothing left helps those after it.
func TestRunsOfWorkers(t *testing.T) {
	const tasks = 120
	plan := &method.Plan{Items: []method.Items{{Count: tasks, Cost: make([]float64, tasks)}}}
	for i := range plan.Items[0].Cost {
		plan.Items[0].Cost[i] = 1
	}
	plan.Items[0].Cost[50], plan.Items[0].Cost[110] = 30, 30
	j := &job{prepared: &prepared{plan: plan}, lastRuns: [][]history{make([]history, tasks)}}
	j.lastRuns[0][110].worker = "a"
	workers := []*workerState{{id: "a", slots: 2}, {id: "b", slots: 1}, {id: "c", slots: 3}}
	s := &step{tasks: make([]task, tasks), parts: []part{{Tasks: &method.Tasks{Count: tasks}}}}
	s.cost = s.costs(j)
	long := longFrom(s.cost, 6)
	homes := s.homes(j, workers, long)
	if homes[50] != -1 || homes[110] != 0 {
		t.Errorf("the long tasks are meant for %d and %d", homes[50], homes[110])
	}
	last, shares := 0, make([]float64, len(workers))
	for n, w := range homes {
		if n == 50 || n == 110 {
			continue
		}
		if w < last {
			t.Fatalf("task %d is of worker %d, one before it of %d", n, w, last)
		}
		last = w
		shares[w] += s.cost[n]
	}
	for k, w := range workers {
		if want := 118 * float64(w.slots) / 6; shares[k] < want-1 || shares[k] > want+1 {
			t.Errorf("worker %s has tasks of cost %g, its share is %g", w.id, shares[k], want)
		}
	}

	q := newQueue(s.cost, long, homes, workers)
	given := make([]bool, tasks)
	fresh := func(n uint32) bool { return !given[n] }
	var order []int
	for {
		n, ok := q.popFresh("b", fresh)
		if !ok {
			break
		}
		given[n] = true
		if w := homes[n]; len(order) == 0 || order[len(order)-1] != w {
			order = append(order, w)
		}
	}
	if want := []int{-1, 1, 2, 0}; len(order) != 4 || [4]int(order) != [4]int(want) {
		t.Errorf("worker b takes the tasks of workers %v, want %v", order, want)
	}
	for n := range given {
		if !given[n] {
			t.Errorf("task %d was left", n)
		}
	}
}
