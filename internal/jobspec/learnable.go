package jobspec

import (
	"errors"
	"fmt"
	"strconv"

	taxonv1 "taxon/proto/taxon/v1"
)

// Learnable says why a training on the data would tell no two instances apart, or nil: they
// have no feature, or every instance bears every class. One class is fine where instances
// without it are its negatives. Data without any label are left to Tree, which refuses them.
func Learnable(d *taxonv1.Data, text bool) error {
	switch {
	case d.GetFeatures() == 0 && text:
		return errors.New("no word stands in two instances or more and not in all: there is nothing to learn from; give more text")
	case d.GetFeatures() == 0:
		return errors.New("no instance has a feature: there is nothing to learn from; lines are LABEL[,LABEL...] INDEX:VALUE ... (for LABEL<TAB>text add --text)")
	}
	classes, one := 0, ""
	for l, n := range d.GetLabelInstances() {
		if n == 0 {
			continue
		}
		if uint64(n) < d.GetInstances() {
			return nil
		}
		classes, one = classes+1, d.GetLabels()[l]
	}
	switch classes {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("every instance has the one label %s: there is nothing to tell apart; add instances of other classes, or some without a label", strconv.Quote(one))
	}
	return fmt.Errorf("every instance has all %d labels: there is nothing to tell apart; add instances that lack some of them", classes)
}
