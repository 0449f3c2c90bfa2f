package measure_test

import (
	"fmt"
	"strings"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model/measure"
)

// Two rows: one right, one that takes the sister class.
func ExampleAccumulator() {
	s, _, err := taxonomy.Read(strings.NewReader("animal bird\nanimal fish\nbird owl\nbird wren\n"), "animals.txt")
	if err != nil {
		fmt.Println(err)
		return
	}
	structure, err := taxonomy.NewClosure(s)
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := measure.NewAccumulator(measure.Options{Classes: []string{"owl", "wren", "fish"}, Structure: structure})
	if err != nil {
		fmt.Println(err)
		return
	}
	a.AddNames([]string{"owl"}, []string{"owl"}, nil)
	a.AddNames([]string{"owl"}, []string{"wren"}, nil)
	r := a.Result()
	fmt.Printf("micro-F1 %.3f, macro-F1 %.3f over %d classes\n", r.MicroF1, r.MacroF1, r.Classes)
	fmt.Printf("tree loss %.1f, hierarchical F1 %.2f\n", r.TreeLoss, r.Hierarchy.F1)
	// Output:
	// micro-F1 0.500, macro-F1 0.222 over 3 classes
	// tree loss 0.5, hierarchical F1 0.75
}
