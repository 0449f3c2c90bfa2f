package machine_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"taxon/coordinator/machine"
	rr "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expectations in testdata")

// TestScenarios runs the text scenarios of testdata. A file is a list of commands, each
// followed by a line of four dashes and the actions that the machine answers with, up to
// an empty line. Lines that begin with # are comments. Commands (L is a lease's epoch):
//
//	limits lease=D backoff=D losses=N errors=N running=N checkpoints=D evaluations=1 digests=1   before all others
//	submit JOB [tree=tiny] schedule=S [max_sweeps=N] [max_seconds=X] [gap=X] [eval_every=N]
//	register | ask W | leave W | renew W L... | cancel JOB [BY]
//	restart [+D]         kills the coordinator; D is the time that it is down
//	report W L ok | report W L returned | report W L error TEXT | report W L deterministic TEXT
//	report W L next      reports success and asks for another task in one call
//	time +D              lets D pass and the clock strike
//	saved JOB [final] [error TEXT]
//	evaluated JOB [error TEXT]
//	digested JOB SUM | digested JOB later TEXT | digested JOB error TEXT
//	weights JOB TEXT     the job's weights are lost
//	resume JOB [max_sweeps=N] [max_seconds=X] [gap=X]
//	discard JOB [BY] | drain W | shard ID ADDR [empty|full] | unshard ID | forget ID [force] | loaded JOB [error TEXT]
//	report W L unfit TEXT
//	report W L lost STEP/TASK/ATTEMPT... | report W L away TEXT
//	jobs | workers | shards | log JOB
//	finish JOB W [N]     does all tasks of the job's next N steps, says how they were committed
//	status JOB
//	events               the notices since the last time
//	worse X              adds X to the objective that `finish` reports from now on
//
// Run with -rewrite to write what the machine answers.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScenario(t, string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if line, a, b := firstDifference(got, string(text)); line > 0 {
				t.Errorf("%s:%d: the machine says\n\t%s\nthe file\n\t%s", file, line, a, b)
			}
		})
	}
}

func firstDifference(got, want string) (line int, a, b string) {
	x, y := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(x), len(y)) {
		a, b = "(end)", "(end)"
		if i < len(x) {
			a = x[i]
		}
		if i < len(y) {
			b = y[i]
		}
		if a != b {
			return i + 1, a, b
		}
	}
	return 0, "", ""
}

const ms = machine.Tick(1e6)

// scene is the state of a scenario.
type scene struct {
	t       *testing.T
	limits  machine.Limits
	machine *machine.Machine
	records [][]byte
	now     machine.Tick
	leases  map[uint64]*taxonv1.Lease
	saved   map[string][]byte // last checkpoint's state by job
	worse   float64
	notices []machine.Notice
	out     bytes.Buffer
}

// runScenario returns the scenario's text with the machine's answers in place.
func runScenario(t *testing.T, text string) string {
	s := &scene{t: t, leases: map[uint64]*taxonv1.Lease{}, saved: map[string][]byte{}, now: 1000 * ms}
	var out strings.Builder
	skipping := false // the old answers
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "----":
			skipping = true
		case trimmed == "":
			if skipping {
				skipping = false
			}
			out.WriteString("\n")
		case skipping:
		case strings.HasPrefix(trimmed, "#"):
			out.WriteString(line)
		default:
			s.out.Reset()
			s.command(strings.Fields(trimmed))
			out.WriteString(trimmed + "\n----\n" + s.out.String())
		}
	}
	return out.String()
}

func (s *scene) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *scene) command(words []string) {
	if s.machine == nil && words[0] != "limits" {
		s.machine = machine.New(s.limits)
	}
	args := words[1:]
	switch words[0] {
	case "limits":
		s.setLimits(args)
	case "submit":
		s.do(machine.Submit{ID: args[0], Owner: owner(args), Spec: s.spec(args[1:])})
	case "register":
		e := machine.Register{Name: "worker", Slots: 1}
		if len(args) > 0 {
			e.Memory = uint64(s.number(args[0]))
		}
		s.do(e)
	case "resume":
		s.do(machine.Resume{Job: args[0], Criteria: s.caps(args[1:])})
	case "discard":
		s.do(machine.Cancel{Job: args[0], Discard: true, By: strings.Join(args[1:], " ")})
	case "kept":
		for _, j := range s.machine.Jobs(s.now) {
			if k := j.Kept; k.GetUntilUnixMs() > 0 {
				s.say("%s for %v, or %d more jobs", j.Job, time.Duration(k.UntilUnixMs-s.now.Milliseconds())*time.Millisecond,
					k.Jobs)
			} else {
				s.say("%s dropped %v", j.Job, k.GetDropped())
			}
		}
	case "drain":
		s.do(machine.Drain{Worker: args[0]})
	case "unshard":
		s.do(machine.LeaveShard{ID: args[0]})
	case "forget":
		s.do(machine.ForgetShard{ID: args[0], Force: len(args) > 1})
	case "shard":
		e := machine.JoinShard{ID: args[0], Addr: args[1], Empty: len(args) > 2 && args[2] == "empty"}
		if len(args) > 2 && args[2] == "full" {
			e.Free, e.Reserve = 1<<20, 1<<30
		}
		s.do(e)
	case "loaded":
		e := machine.Loaded{Job: args[0], State: s.saved[args[0]]}
		if len(args) > 1 {
			e.Err = strings.Join(args[2:], " ")
		}
		s.do(e)
	case "jobs":
		for _, j := range s.machine.Jobs(s.now) {
			s.say("%s %s sweep %d queue %d resumable %v exportable %v", j.Job, stateName(j.State), j.Sweep, j.QueuePosition,
				j.Resumable, j.Exportable)
		}
	case "workers":
		for _, w := range s.machine.Workers() {
			s.say("%s %s slots %d running %d done %d %s", w.Worker, w.Name, w.Slots, w.Running, w.TasksDone,
				strings.ToLower(strings.TrimPrefix(w.State.String(), "MEMBER_STATE_")))
		}
	case "timeline":
		s.timeline()
	case "shards":
		list, _ := s.machine.Shards()
		for _, h := range list {
			s.say("%s at %s %s empty %v", h.Id, h.Addr, strings.ToLower(strings.TrimPrefix(h.State.String(), "MEMBER_STATE_")),
				h.Empty)
		}
	case "log":
		lines, err := s.machine.Log(args[0], 0, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, l := range lines {
			s.say("%d %s sweep %d: %s", l.Number, l.Level, l.Sweep, l.Text)
		}
	case "leave":
		s.do(machine.Leave{Worker: args[0]})
	case "ask":
		s.do(machine.RequestTask{Worker: args[0]})
	case "renew":
		e := machine.Renew{Worker: args[0]}
		for _, l := range args[1:] {
			e.Leases = append(e.Leases, s.lease(l))
		}
		s.do(e)
	case "report":
		s.report(args)
	case "time":
		s.now += s.duration(strings.TrimPrefix(args[0], "+"))
		s.do(machine.Time{})
	case "cancel":
		s.do(machine.Cancel{Job: args[0], By: strings.Join(args[1:], " ")})
	case "saved":
		e := machine.Saved{Job: args[0]}
		if len(args) > 1 && args[1] != "error" {
			e.Final, e.OlderKept = args[1] == "final", args[1] == "older"
			args = args[1:]
		}
		if len(args) > 1 {
			e.Err = strings.Join(args[2:], " ")
		}
		s.do(e)
	case "evaluated":
		e := machine.Evaluated{Job: args[0]}
		if len(args) > 1 {
			e.Stop = args[1] == "stop"
			e.Err = strings.Join(args[2:], " ")
		}
		s.do(e)
	case "digested":
		e := machine.Digested{Job: args[0], Digest: machine.Digest{WeightsSHA256: args[1]}}
		if args[1] == "later" || args[1] == "error" {
			e.Digest, e.Later, e.Err = machine.Digest{}, args[1] == "later", strings.Join(args[2:], " ")
		}
		s.do(e)
	case "weights":
		s.do(machine.WeightsLost{Job: args[0], Reason: strings.Join(args[1:], " ")})
	case "finish":
		s.finish(args)
	case "status":
		s.status(args[0])
	case "restart":
		if len(args) > 0 {
			s.now += s.duration(strings.TrimPrefix(args[0], "+"))
		}
		s.restart()
	case "events":
		for _, n := range s.notices {
			s.say("%s", describeNotice(n))
		}
		s.notices = nil
	case "worse":
		s.worse = s.number(args[0])
	default:
		s.t.Fatalf("unknown command %q", words)
	}
}

func (s *scene) duration(text string) machine.Tick {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return machine.Tick(d)
}

func (s *scene) number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *scene) setLimits(args []string) {
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "lease":
			s.limits.Lease = s.duration(value)
		case "backoff":
			s.limits.Backoff = s.duration(value)
		case "losses":
			s.limits.MaxLosses = uint32(s.number(value))
		case "errors":
			s.limits.MaxErrors = uint32(s.number(value))
		case "running":
			s.limits.MaxRunning = int(s.number(value))
		case "checkpoints":
			s.limits.Checkpoints, s.limits.CheckpointEvery = true, s.duration(value)
		case "straggler":
			s.limits.Straggler = s.duration(value)
		case "outage":
			s.limits.MaxOutage = s.duration(value)
		case "rollbacks":
			s.limits.MaxRollbacks = uint32(s.number(value))
		case "queued":
			s.limits.MaxQueued = int(s.number(value))
		case "keepjobs":
			s.limits.KeepJobs = int(s.number(value))
		case "keepinputs":
			s.limits.KeepInputs = true
		case "durable":
			s.limits.Durable = true
		case "needshards":
			s.limits.NeedShards = true
		case "digests":
			s.limits.Digests = true
		case "evaluations":
			s.limits.Evaluations = true
		default:
			s.t.Fatalf("unknown limit %q", key)
		}
	}
}

func (s *scene) caps(args []string) (c machine.StopCriteria) {
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		x := s.number(value)
		switch sweeps := uint32(x); key {
		case "max_sweeps":
			c.MaxSweeps = &sweeps
		case "max_seconds":
			c.MaxSeconds = &x
		case "gap":
			c.Gap = &x
		default:
			s.t.Fatalf("unknown cap %q", key)
		}
	}
	return c
}

func (s *scene) lease(epoch string) *taxonv1.LeaseId {
	l := s.leases[uint64(s.number(epoch))]
	if l == nil {
		s.t.Fatalf("no lease %s was granted", epoch)
	}
	return machinetest.LeaseID(l)
}

func (s *scene) report(args []string) {
	e := machine.Report{Worker: args[0], Lease: s.lease(args[1]), CPUSeconds: 0.5}
	sums := machinetest.Sums(s.leases[e.Lease.Epoch])
	switch args[2] {
	case "ok", "next":
		e.Sums = sums
		e.Next = args[2] == "next"
	case "returned":
		e.Returned = true
	case "lost":
		e.Error = "the store has lost it"
		for _, text := range args[3:] {
			var p taxonv1.Place
			if _, err := fmt.Sscanf(text, "%d/%d/%d", &p.Step, &p.Task, &p.Attempt); err != nil {
				s.t.Fatal(err)
			}
			e.Lost = append(e.Lost, p)
		}
	case "unfit":
		e.Error, e.Unfit = strings.Join(args[3:], " "), true
	case "away":
		e.Error, e.Unavailable = strings.Join(args[3:], " "), true
	case "error", "deterministic":
		e.Error, e.Deterministic = strings.Join(args[3:], " "), args[2] == "deterministic"
	default:
		s.t.Fatalf("unknown outcome %q", args[2])
	}
	s.do(e)
}

// do gives the machine an event and writes its actions.
func (s *scene) do(e machine.Event) {
	for _, a := range s.machine.Step(s.now, e) {
		s.note(a)
		if text := describe(a); text != "" {
			s.say("%s", text)
		}
	}
}

// note keeps what later commands refer to.
func (s *scene) note(a machine.Action) {
	switch a := a.(type) {
	case machine.Persist:
		data, err := json.Marshal(&a.Record)
		if err != nil {
			s.t.Fatal(err)
		}
		s.records = append(s.records, data)
	case machine.Grant:
		s.leases[a.Lease.Epoch] = a.Lease
	case machine.SaveJob:
		s.saved[a.Job] = a.State
	case machine.Notice:
		s.notices = append(s.notices, a)
	}
}

// finish does the tasks of a job's next steps, quietly but for the commits.
func (s *scene) finish(args []string) {
	steps := 1
	if len(args) > 2 {
		steps = int(s.number(args[2]))
	}
	for steps > 0 {
		var lease *taxonv1.Lease
		for _, a := range s.machine.Step(s.now, machine.RequestTask{Worker: args[1]}) {
			s.note(a)
			if g, ok := a.(machine.Grant); ok {
				lease = g.Lease
			}
		}
		if lease == nil || lease.Job != args[0] {
			s.t.Fatalf("job %s has no task for worker %s", args[0], args[1])
		}
		sums := machinetest.Sums(lease)
		e := machine.Report{Worker: args[1], Lease: machinetest.LeaseID(lease), Sums: sums}
		if sums[rr.SumPrimal] != 0 {
			e.Sums[rr.SumPrimal] += s.worse
		}
		ended := false
		for _, a := range s.machine.Step(s.now, e) {
			s.note(a)
			switch a := a.(type) {
			case machine.CommitStep:
				steps--
				s.say("%s", describeStep(lease, a))
			case machine.SaveJob:
				s.say("%s", describe(a))
			case machine.EvaluateWeights, machine.DigestWeights, machine.Ended:
				s.say("%s", describe(a))
				ended = true
			}
		}
		if ended {
			return
		}
	}
}

func (s *scene) status(job string) {
	st, err := s.machine.Status(job, s.now, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	name := strings.TrimPrefix(st.State.String(), "JOB_STATE_")
	s.say("%s phase %s sweep %d tasks %d/%d/%d retried %d lost %d seconds %g", strings.ToLower(name), st.Phase, st.Sweep,
		st.Tasks.Done, st.Tasks.Running, st.Tasks.Waiting, st.Tasks.Retried, st.WorkersLost, st.Seconds)
	if st.Speculated+st.Remade+st.Rollbacks > 0 {
		s.say("speculated %d remade %d rollbacks %d", st.Speculated, st.Remade, st.Rollbacks)
	}
	if b := st.Better; b != nil {
		s.say("better at sweep %d: gap %.3g, not %.3g", b.Sweep, b.Certificate.Gap, st.Certificate.Gap)
	}
	for _, c := range st.CapsBefore {
		s.say("up to sweep %d: gap %g max_sweeps %d max_seconds %g", c.Sweep, c.Gap, c.MaxSweeps, c.MaxSeconds)
	}
	if f := st.Failed; f != nil {
		s.say("failed at sweep %d step %d task %d attempt %d of %s: %v", f.Sweep, f.Step, f.Task, f.Attempt, f.Worker,
			f.Nodes)
	}
	if st.WeightsSha256 != "" {
		s.say("weights %s", st.WeightsSha256)
	}
	if st.Phase == machine.PhaseDigest && st.WaitsFor != "" {
		s.say("waits for %s", st.WaitsFor)
	}
	if st.StoppedBy != "" || st.Error != "" {
		s.say("stopped by %q error %q", st.StoppedBy, st.Error)
	}
}

// restart rebuilds the machine from its records.
func (s *scene) restart() {
	s.machine = machine.New(s.limits)
	for _, data := range s.records {
		var r machine.Record
		if err := json.Unmarshal(data, &r); err != nil {
			s.t.Fatal(err)
		}
		if err := s.machine.Replay(r); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, a := range s.machine.Recover(s.now) {
		s.note(a)
		if text := describe(a); text != "" {
			s.say("%s", text)
		}
	}
}
