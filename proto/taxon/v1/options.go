package taxonv1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The first methods' options have a field each, which journals and checkpoints hold. All others
// stand in Options.own. Value and Set see no difference, but that a field of zero is unset.

// field is the one that an option has; nil: it has none.
func (o *Options) field(key string) protoreflect.FieldDescriptor {
	f := o.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(strings.ToLower(key)))
	if f == nil || f.IsList() {
		return nil
	}
	return f
}

// HasField says whether an option has a field of its own, whose zero stands for one unset.
func (o *Options) HasField(key string) bool { return o.field(key) != nil }

// Value is an option's value as text, "": it has none, or its field is zero.
func (o *Options) Value(key string) string {
	f := o.field(key)
	if f == nil {
		for _, v := range o.GetOwn() {
			if v.GetName() == key {
				return v.GetValue()
			}
		}
		return ""
	}
	m := o.ProtoReflect()
	switch v := m.Get(f); {
	case !m.Has(f):
		return ""
	case f.Kind() == protoreflect.DoubleKind:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	default:
		return v.String()
	}
}

// Set gives an option a value; "" takes it away.
func (o *Options) Set(key, value string) error {
	f := o.field(key)
	if f == nil {
		at, found := slices.BinarySearchFunc(o.Own, key,
			func(v *OptionValue, key string) int { return strings.Compare(v.GetName(), key) })
		switch {
		case found && value == "":
			o.Own = slices.Delete(slices.Clone(o.Own), at, at+1)
		case found:
			o.Own[at] = &OptionValue{Name: key, Value: value}
		case value != "":
			o.Own = slices.Insert(o.Own, at, &OptionValue{Name: key, Value: value})
		}
		return nil
	}
	o.ProtoReflect().Clear(f) // a zero is not merged
	if value == "" {
		return nil
	}
	one := &Options{}
	if err := protojson.Unmarshal(fmt.Appendf(nil, "{%q:%q}", f.Name(), value), one); err != nil {
		return fmt.Errorf("option %s: %q is no value of its field", key, value)
	}
	proto.Merge(o, one)
	return nil
}
