package generate

import (
	"strings"
	"testing"
)

func TestRequest(t *testing.T) {
	base := Request{Like: "lwiki", Scale: 0.001}
	for _, c := range []struct {
		name   string
		change func(*Request)
		want   string // part of the error; "" for none
	}{
		{"as it is", func(*Request) {}, ""},
		{"dag", func(o *Request) { o.DAG = true }, ""},
		{"counts", func(o *Request) { o.Instances, o.Classes, o.Features, o.Depth = 500, 20, 300, 4 }, ""},
		{"too few instances", func(o *Request) { o.Instances = 10 }, "each class needs one"},
		{"no scale", func(o *Request) { o.Scale = 1e-9 }, "‹scale=1e-09› leaves 1 instance for 2 classes"},
		{"too few instances, by flag", func(o *Request) { o.Instances = 10 }, "by ‹scale=0.001› (325), than instances, " +
			"by ‹instances=10›"},
		{"too many classes, by flag", func(o *Request) { o.Classes = 9999 }, "by ‹classes=9999›, than instances, by " +
			"‹scale=0.001› (2365)"},
		{"too many internals", func(o *Request) { o.Internals = 400 }, "‹internals=400›"},
		{"flat", func(o *Request) { o.Depth = 1 }, ""},
		{"flat with internals", func(o *Request) { o.Depth, o.Internals = 1, 7 }, "‹internals=7›"},
		{"too large", func(o *Request) { o.Scale = 1e9 }, "scale"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := base
			c.change(&o)
			s, err := o.Shape()
			if c.want == "" {
				if err != nil || s.DAG != o.DAG || o.Classes > 0 && (s.Classes != o.Classes || s.Internals > s.Classes) {
					t.Errorf("%+v, %v", s, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}
