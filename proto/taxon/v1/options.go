package taxonv1

import (
	"fmt"
	"slices"
	"strings"
)

// Value returns an option's value as text. It is empty if the options do not name it. The case of the
// key's letters does not matter.
func (o *Options) Value(key string) string {
	key = strings.ToLower(key)
	for _, v := range o.GetOwn() {
		if v.GetName() == key {
			return v.GetValue()
		}
	}
	return ""
}

// Set gives an option a value, which is written as fmt.Sprint writes it. An empty text takes the option
// away.
func (o *Options) Set(key string, value any) {
	key = strings.ToLower(key)
	own := slices.DeleteFunc(slices.Clone(o.Own), func(v *OptionValue) bool { return v.GetName() == key })
	if text := fmt.Sprint(value); text != "" {
		own = append(own, &OptionValue{Name: key, Value: text})
		slices.SortFunc(own, func(a, b *OptionValue) int { return strings.Compare(a.GetName(), b.GetName()) })
	}
	o.Own = own
}
