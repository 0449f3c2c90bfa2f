package taxonv1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Options of before 2026-12 have a field each, which journals and checkpoints hold; all others
// stand in Options.own. Value and Set see no difference, but that a field has no way to be unset.

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
		at, found := slices.BinarySearchFunc(o.Own, key, func(v *OptionValue, key string) int { return strings.Compare(v.GetName(), key) })
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
	m := o.ProtoReflect()
	if value == "" {
		m.Clear(f)
		return nil
	}
	var v protoreflect.Value
	var err error
	switch f.Kind() {
	case protoreflect.StringKind:
		v = protoreflect.ValueOfString(value)
	case protoreflect.DoubleKind:
		var x float64
		x, err = strconv.ParseFloat(value, 64)
		v = protoreflect.ValueOfFloat64(x)
	case protoreflect.Uint32Kind:
		var x uint64
		x, err = strconv.ParseUint(value, 10, 32)
		v = protoreflect.ValueOfUint32(uint32(x))
	case protoreflect.Uint64Kind:
		var x uint64
		x, err = strconv.ParseUint(value, 10, 64)
		v = protoreflect.ValueOfUint64(x)
	default:
		err = fmt.Errorf("a field of kind %s", f.Kind())
	}
	if err != nil {
		return fmt.Errorf("option %s: %w", key, err)
	}
	m.Set(f, v)
	return nil
}
