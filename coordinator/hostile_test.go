package coordinator_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"taxon/coordinator"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"
)

// hostileMessage fills a message: numbers with the largest of their kind, texts with a text, lists
// with so many elements.
func hostileMessage(d protoreflect.MessageDescriptor, text string, elements, depth int) *dynamicpb.Message {
	m := dynamicpb.NewMessage(d)
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		value := func() (protoreflect.Value, bool) {
			switch f.Kind() {
			case protoreflect.BoolKind:
				return protoreflect.ValueOfBool(true), true
			case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
				return protoreflect.ValueOfUint32(^uint32(0)), true
			case protoreflect.Uint64Kind:
				return protoreflect.ValueOfUint64(^uint64(0)), true
			case protoreflect.Int64Kind:
				return protoreflect.ValueOfInt64(-1 << 63), true
			case protoreflect.DoubleKind:
				return protoreflect.ValueOfFloat64(1e308), true
			case protoreflect.EnumKind:
				return protoreflect.ValueOfEnum(1 << 30), true
			case protoreflect.StringKind:
				return protoreflect.ValueOfString(text), true
			case protoreflect.BytesKind:
				return protoreflect.ValueOfBytes([]byte(text)), true
			case protoreflect.MessageKind:
				if depth == 0 {
					return protoreflect.Value{}, false
				}
				return protoreflect.ValueOfMessage(hostileMessage(f.Message(), text, elements, depth-1)), true
			}
			return protoreflect.Value{}, false
		}
		switch {
		case f.IsMap():
		case f.IsList():
			list := m.Mutable(f).List()
			for range elements {
				if v, ok := value(); ok {
					list.Append(v)
				}
			}
		default:
			if v, ok := value(); ok {
				m.Set(f, v)
			}
		}
	}
	return m
}

// TestHostileRequests: whatever the numbers and lists of a call say, of any call, the coordinator
// takes little memory for it, and goes on with its job.
func TestHostileRequests(t *testing.T) {
	c := newCluster(t, coordinator.Config{Store: newToyStore()})
	if _, err := c.stores.JoinStore(t.Context(), &taxonv1.JoinStoreRequest{Id: "s", Addr: "s:1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Job: "good", Spec: machinetest.Spec("twoblock",
		0)}); err != nil {
		t.Fatal(err)
	}
	worker, err := c.tasks.Register(t.Context(), &taxonv1.RegisterRequest{Name: "w", Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("taxon.v1", func(f protoreflect.FileDescriptor) bool {
		for s := range f.Services().Len() {
			service := f.Services().Get(s)
			if !slices.Contains([]protoreflect.Name{"Jobs", "Tasks", "Members"}, service.Name()) {
				continue
			}
			for n := range service.Methods().Len() {
				method := service.Methods().Get(n)
				for _, text := range []string{"", "good", worker.GetWorker(), "s", strings.Repeat("x", 1000), "\x1b[2J"} {
					for _, elements := range []int{0, 1, 30} {
						c.hostileCall(t, "/"+string(service.FullName())+"/"+string(method.Name()), hostileMessage(method.Input(), text,
							elements, 2), method)
						calls++
					}
				}
			}
		}
		return true
	})
	if calls < 300 {
		t.Errorf("only %d calls were made", calls)
	}
	st, err := c.jobs.Status(t.Context(), &taxonv1.StatusRequest{Job: "good"})
	if err != nil || st.GetJob() != "good" {
		t.Errorf("%v, %v", st, err)
	}
}

// hostileCall makes a call and checks what it takes.
func (c *cluster) hostileCall(t *testing.T, name string, in *dynamicpb.Message, method protoreflect.MethodDescriptor) {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer done()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out := dynamicpb.NewMessage(method.Output())
	if method.IsStreamingServer() {
		stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, name)
		if err == nil && stream.SendMsg(in) == nil && stream.CloseSend() == nil {
			for range 3 {
				if stream.RecvMsg(out) != nil {
					break
				}
			}
		}
	} else {
		_ = c.conn.Invoke(ctx, name, in, out)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%s of %d bytes: %d bytes were allocated", name, proto.Size(in), took)
	}
}
