//go:build mutant

package machine

// bug is the one that is planted. The build with this tag is for one test only.
var bug string

// Plant plants a bug; "": none.
func Plant(name string) { bug = name }

func planted(name string) bool { return bug == name }
