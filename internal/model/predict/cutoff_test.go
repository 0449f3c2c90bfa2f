package predict

import (
	"strings"
	"testing"
)

func TestParseCutoff(t *testing.T) {
	for text, want := range map[string]Cutoff{
		"argmax": {kind: cutArgmax}, "zero": {kind: cutAbove}, "-0.5": {kind: cutAbove, value: -0.5},
		"instance": {kind: cutInstance},
		"scut":     {kind: cutScut}, "rcut": {kind: cutRank}, "rcut=3": {kind: cutRank, rank: 3}, "top=1": {kind: cutRank,
			rank: 1},
	} {
		if got, err := ParseCutoff(text); err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"instnace": "did you mean instance?", "rcut=0": "whole number from 1", "top=x": "whole number from 1", "top": "top=K",
		"scutt": "did you mean scut?",
		"nan":   "finite", "inf": "finite", "": "must be argmax", "everything": "must be argmax",
		"arg=3": "did you mean argmax?",
	} {
		if _, err := ParseCutoff(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
