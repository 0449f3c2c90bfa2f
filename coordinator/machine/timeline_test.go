package machine_test

// timeline says what the workers of a scenario ran.
func (s *scene) timeline() {
	for _, w := range s.machine.Timeline(s.now, 0).Workers {
		for _, p := range w.Spans {
			s.say("%s %s sweep %d %s step %d task %d of %d, %d ms %s", w.Worker, p.Job, p.Sweep, p.Phase, p.Step, p.Task,
				p.Tasks, max(0, p.EndedUnixMs-p.BegunUnixMs), p.Result)
		}
	}
}
