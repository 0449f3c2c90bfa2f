package storerpc

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	taxonv1 "taxon/proto/taxon/v1"
)

// TestHandedOver: messages that are handed over field by field lose no field, those that
// are added to the protocol later included.
func TestHandedOver(t *testing.T) {
	for _, in := range []proto.Message{
		&taxonv1.PutChunks{}, &taxonv1.PutResult{}, &taxonv1.GetChunks{}, &taxonv1.KeyInfos{}, &taxonv1.GetRequest{},
		&taxonv1.ReportRequest{}, &taxonv1.ReportResult{}, &taxonv1.CommitRequest{},
	} {
		m := in.ProtoReflect()
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			fill(m, fields.Get(i))
		}
		on, err := cloneMessage(in)
		if err != nil {
			t.Fatal(err)
		}
		out := m.New().Interface()
		if err := copyMessage(out, on); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(in, out) {
			t.Errorf("%s: sent %v, arrived %v", m.Descriptor().Name(), in, out)
		}
	}
}

// fill gives a field something else than its zero.
func fill(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	var v protoreflect.Value
	switch {
	case f.IsList():
		list := m.Mutable(f).List()
		if f.Kind() == protoreflect.MessageKind {
			list.AppendMutable()
		} else {
			list.Append(protoreflect.ValueOfUint32(7))
		}
		return
	case f.Kind() == protoreflect.MessageKind:
		m.Mutable(f)
		return
	case f.Kind() == protoreflect.StringKind:
		v = protoreflect.ValueOfString("s")
	case f.Kind() == protoreflect.BoolKind:
		v = protoreflect.ValueOfBool(true)
	case f.Kind() == protoreflect.DoubleKind:
		v = protoreflect.ValueOfFloat64(1.5)
	case f.Kind() == protoreflect.Uint32Kind:
		v = protoreflect.ValueOfUint32(3)
	default:
		v = protoreflect.ValueOfUint64(5)
	}
	m.Set(f, v)
}
