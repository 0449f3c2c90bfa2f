package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// The same types without the methods below.
type (
	plainReport  Report
	plainOptions Options
)

// MarshalJSON writes the method's own keys after those that all reports have.
func (r Report) MarshalJSON() ([]byte, error) { return JoinObjects(plainReport(r), r.Own) }

// UnmarshalJSON puts the keys that not all reports have into Own.
func (r *Report) UnmarshalJSON(b []byte) (err error) {
	r.Own, err = splitObject(b, (*plainReport)(r))
	return err
}

// MarshalJSON writes the method's own keys after the others.
func (o Options) MarshalJSON() ([]byte, error) { return JoinObjects(plainOptions(o), o.Own) }

// UnmarshalJSON puts the keys that not all models have into Own.
func (o *Options) UnmarshalJSON(b []byte) (err error) {
	o.Own, err = splitObject(b, (*plainOptions)(o))
	return err
}

// splitObject reads an object into a struct, and returns the members that are none of its fields.
func splitObject[T any](b []byte, into *T) (own map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(b, into); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &own); err != nil {
		return nil, err
	}
	for field := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		delete(own, name)
	}
	if len(own) == 0 {
		return nil, nil
	}
	return own, nil
}

// JoinObjects writes the members of several JSON objects as one object, in their order.
func JoinObjects(values ...any) ([]byte, error) {
	out := []byte{'{'}
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if b = bytes.TrimSpace(b); bytes.Equal(b, []byte("null")) {
			continue
		}
		if len(b) < 2 || b[0] != '{' {
			return nil, fmt.Errorf("%T is no JSON object", v)
		}
		if b = b[1 : len(b)-1]; len(b) > 0 && len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, b...)
	}
	return append(out, '}'), nil
}
