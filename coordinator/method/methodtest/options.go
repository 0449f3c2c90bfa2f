package methodtest

import (
	"strconv"

	taxonv1 "taxon/proto/taxon/v1"
)

// Options returns options of a method. The pairs are names and values of options.
func Options(method string, pairs ...any) *taxonv1.Options {
	o := &taxonv1.Options{Method: method}
	for i := 0; i < len(pairs); i += 2 {
		o.Set(pairs[i].(string), pairs[i+1])
	}
	return o
}

// Number returns the value of an option as a number. It is 0 if the options do not name it.
func Number(o *taxonv1.Options, name string) float64 {
	x, _ := strconv.ParseFloat(o.Value(name), 64)
	return x
}
