package scan

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"taxon/coordinator/method/methodtest"
	"taxon/internal/cluster/secure"
	taxonv1 "taxon/proto/taxon/v1"
)

// patience bounds a call with an arbitrary message, because some methods wait by design.
const patience = 150 * time.Millisecond

// heapBound bounds the memory of the server and the test during the attack, in bytes.
const heapBound = 1 << 30

// texts lists strings that often break programs.
var texts = []string{"", "a", "../../etc/passwd", "/", "\x00", "store:", "a/b//c", "%s%n", "..", "job-1",
	strings.Repeat("x", 5000), strings.Repeat("é", 40), "rr-svm", "hinge", "twoblock", "colour", "\u202e", "'; --"}

// fill sets random fields of a message, including nested ones.
func fill(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if r.IntN(3) == 0 {
			continue
		}
		switch {
		case f.IsMap():
		case f.IsList():
			list := m.Mutable(f).List()
			most := []int{2000, 40, 4, 4}[min(depth, 3)] // nested lists multiply
			for range min([]int{0, 1, 2, 3, 40, 2000}[r.IntN(6)], most) {
				if f.Message() == nil {
					list.Append(value(r, f))
				} else if depth < 4 && list.Len() < 40 {
					e := list.NewElement()
					fill(r, e.Message(), depth+1)
					list.Append(e)
				}
			}
		case f.Message() != nil:
			if depth < 6 {
				fill(r, m.Mutable(f).Message(), depth+1)
			}
		default:
			m.Set(f, value(r, f))
		}
	}
}

// value returns an extreme or a small value of a field's type.
func value(r *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	whole := []uint64{0, 1, 2, 3, 16, 17, 1000, 1 << 20, math.MaxInt32, math.MaxInt32 + 1, math.MaxUint32, math.MaxInt64,
		math.MaxUint64}[r.IntN(13)]
	float := []float64{0, 1, -1, 0.5, 1e-3, 1e300, -1e300, math.Inf(1), math.Inf(-1), math.NaN(), 5e-324, 3}[r.IntN(12)]
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(r.IntN(2) == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(whole)))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(whole))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(whole))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(whole))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(whole)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(float))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(texts[r.IntN(len(texts))]))
	default:
		return protoreflect.ValueOfString(texts[r.IntN(len(texts))])
	}
}

// input returns the descriptor of a method's request.
func input(t *testing.T, full string) protoreflect.MessageDescriptor {
	t.Helper()
	name := strings.ReplaceAll(strings.TrimPrefix(full, "/"), "/", ".")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatal(err)
	}
	return d.(protoreflect.MethodDescriptor).Input()
}

// heapStays checks until the end of the test that memory stays within its bound.
func heapStays(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if m.HeapSys-m.HeapReleased > heapBound {
			t.Errorf("the heap has grown to %d MiB", (m.HeapSys-m.HeapReleased)>>20)
		}
	})
}

// TestAnyMessage sends arbitrary messages, well-formed and not, to every method.
func TestAnyMessage(t *testing.T) {
	heapStays(t)
	s := start(t, secure.Options{})
	conn := dial(t, secure.Options{}, s.addr)
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	var all sync.WaitGroup
	for i, m := range s.methods {
		in := input(t, m.full)
		all.Go(func() {
			r := seeded(uint64(i) + 100)
			for range rounds {
				var messages [][]byte
				for range 1 + r.IntN(3) {
					d := dynamicpb.NewMessage(in)
					fill(r, d, 0)
					data, err := proto.MarshalOptions{AllowPartial: true}.Marshal(d)
					if err != nil {
						data = []byte("\xff\xff\xff") // invalid UTF-8
					}
					switch r.IntN(8) {
					case 0: // truncated
						data = data[:r.IntN(len(data)+1)]
					case 1: // corrupted
						for range 1 + len(data)/100 {
							if len(data) > 0 {
								data[r.IntN(len(data))] ^= byte(1 << r.IntN(8))
							}
						}
					}
					messages = append(messages, data)
				}
				switch got := call(t, conn, m, patience, messages...); got {
				case codes.Internal, codes.DataLoss:
					// grpc's own code for what does not parse; a panic would have ended the test.
				case codes.Unauthenticated, codes.PermissionDenied:
					t.Errorf("%s refuses where no identity is asked for", m.full)
				}
			}
		})
	}
	all.Wait()
	alive(t, conn)
}

// TestTooLarge checks that a message above the bound is refused before it is stored.
func TestTooLarge(t *testing.T) {
	heapStays(t)
	s := start(t, secure.Options{})
	conn := dial(t, secure.Options{}, s.addr)
	if got := call(t, conn, method{full: "/taxon.v1.Jobs/Submit"}, quick,
		make([]byte, secure.MaxMessageBytes+1)); got != codes.ResourceExhausted {
		t.Errorf("%v", got)
	}
	alive(t, conn)
}

// spec returns a valid job.
func spec() *taxonv1.JobSpec {
	s := &taxonv1.JobSpec{
		Options: methodtest.Options("rr-svm", "loss", "hinge", "schedule", "twoblock", "c", 1, "bias", 1, "gap", 1e-3,
			"max_sweeps", 3, "seed", 7),
		Data: &taxonv1.Data{Path: "store:" + strings.Repeat("ab", 32), Fingerprint: strings.Repeat("ab", 32),
			Instances: 500, Features: 3000, Nonzeros: 60_000},
		Structure: &taxonv1.Structure{Names: []string{"root"}},
	}
	for i := range uint32(40) {
		name := "c" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		s.Structure.Names = append(s.Structure.Names, name)
		s.Structure.Parents, s.Structure.Children = append(s.Structure.Parents, 0), append(s.Structure.Children, i+1)
		s.Data.Labels, s.Data.LabelInstances = append(s.Data.Labels, name), append(s.Data.LabelInstances, 10+i)
	}
	return s
}

// twist changes one field somewhere in a message.
func twist(r *rand.Rand, m protoreflect.Message) {
	for {
		fields := m.Descriptor().Fields()
		f := fields.Get(r.IntN(fields.Len()))
		switch {
		case f.IsList():
			list := m.Mutable(f).List()
			switch {
			case list.Len() == 0 || f.Message() != nil:
				continue
			case r.IntN(3) == 0:
				list.Truncate(r.IntN(list.Len()))
			default:
				list.Set(r.IntN(list.Len()), value(r, f))
			}
		case f.Message() != nil:
			m = m.Mutable(f).Message()
			continue
		default:
			m.Set(f, value(r, f))
		}
		return
	}
}

// TestTwistedJobs submits jobs that are almost valid.
func TestTwistedJobs(t *testing.T) {
	heapStays(t)
	s := start(t, secure.Options{})
	conn := dial(t, secure.Options{}, s.addr)
	jobs := taxonv1.NewJobsClient(conn)
	if _, err := jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Spec: spec()}); err != nil {
		t.Fatalf("the job that the others are made from: %v", err)
	}
	r := seeded(2)
	taken := 0
	for range 200 {
		m := spec()
		for range 1 + r.IntN(2) {
			twist(r, m.ProtoReflect())
		}
		before := time.Now()
		reply, err := jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Spec: m})
		if took := time.Since(before); took > quick {
			t.Errorf("a job takes %v to be looked at: %v", took, m)
		}
		if err != nil {
			continue
		}
		taken++
		if _, err := jobs.Cancel(t.Context(), &taxonv1.CancelRequest{Job: reply.Job, Discard: true}); err != nil {
			t.Errorf("cancel: %v", err)
		}
	}
	if taken < 20 || taken > 180 {
		t.Errorf("%d of 200 jobs were taken: the twists are too strong or too weak to find anything", taken)
	}
	alive(t, conn)
}

// TestLyingWorker registers, takes tasks and reports false results: figures that are not numbers,
// leases of others, endless errors. The states of other jobs must stay readable.
func TestLyingWorker(t *testing.T) {
	heapStays(t)
	s := start(t, secure.Options{})
	conn := dial(t, secure.Options{}, s.addr)
	jobs, tasks := taxonv1.NewJobsClient(conn), taxonv1.NewTasksClient(conn)
	r := seeded(3)
	taken := 0
	for range 4 {
		if _, err := jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Spec: spec()}); err != nil {
			t.Fatal(err)
		}
		registered, err := tasks.Register(t.Context(), &taxonv1.RegisterRequest{Name: "liar", Slots: 4})
		if err != nil {
			t.Fatal(err)
		}
		taken += lie(t, r, tasks, registered.Worker)
	}
	if taken < 5 {
		// about 20 are; on a busy machine most calls for a lease time out
		t.Errorf("%d reports were taken: the lies are too crude to find anything", taken)
	}
	list, err := jobs.ListJobs(t.Context(), &taxonv1.ListJobsRequest{})
	if err != nil || len(list.Jobs) != 4 {
		t.Fatalf("%d jobs, %v", len(list.GetJobs()), err)
	}
	for _, j := range list.Jobs {
		if _, err := jobs.Status(t.Context(), &taxonv1.StatusRequest{Job: j.Job}); err != nil {
			t.Errorf("status: %v", err)
		}
	}
	alive(t, conn)
}

// lie sends false reports and returns the number of those accepted.
func lie(t *testing.T, r *rand.Rand, tasks taxonv1.TasksClient, worker string) (taken int) {
	t.Helper()
	var held []*taxonv1.Lease
	for range 60 {
		m := &taxonv1.ReportRequest{}
		fill(r, m.ProtoReflect(), 0)
		m.Worker = worker
		if r.IntN(4) > 0 {
			m.More = nil
		}
		if len(held) > 0 {
			l := held[r.IntN(len(held))]
			m.Lease = &taxonv1.LeaseId{Job: l.Job, Step: l.Step, Task: l.Task, Attempt: l.Attempt, Epoch: l.Epoch}
			m.Deterministic = m.Deterministic && r.IntN(20) == 0 // it would end the job too soon
			if r.IntN(2) == 0 {
				m.Error = ""
			}
		}
		m.Next = true
		reply, err := tasks.Report(t.Context(), m)
		if err != nil {
			if isDown(err) {
				t.Fatal(err)
			}
			continue
		}
		if reply.Accepted {
			taken++
		}
		if reply.Lease != nil {
			held = append(append(held, reply.Lease), reply.More...)
		} else if l, err := lease(t, tasks, worker); err == nil && l != nil {
			held = append(held, l)
		}
	}
	return taken
}

func lease(t *testing.T, tasks taxonv1.TasksClient, worker string) (*taxonv1.Lease, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	l, err := tasks.Lease(ctx, &taxonv1.LeaseRequest{Worker: worker})
	return l.GetLease(), err
}

// isDown reports whether an error means that the coordinator no longer answers.
func isDown(err error) bool {
	return strings.Contains(err.Error(), "journal") || strings.Contains(err.Error(), "closing")
}
