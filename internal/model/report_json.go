package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// plainReport is a Report without the method's own keys.
type plainReport Report

// MarshalJSON writes the method's own keys behind those that all reports have.
func (r Report) MarshalJSON() ([]byte, error) { return JoinObjects(plainReport(r), r.Own) }

// UnmarshalJSON keeps the keys that not all reports have in Own.
func (r *Report) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, (*plainReport)(r)); err != nil {
		return err
	}
	r.Own = nil
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	for field := range reflect.TypeFor[Report]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		delete(all, name)
	}
	if len(all) > 0 {
		r.Own = all
	}
	return nil
}

// JoinObjects writes the members of values that are JSON objects as one object, in their order.
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
