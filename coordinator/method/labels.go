package method

import (
	"fmt"

	taxonv1 "taxon/proto/taxon/v1"
)

// OneLabelEach refuses data whose instances do not all have exactly one label. `what` takes no
// others, `instead` does. Descriptions of before do not count them; workers therefore ask once
// more, of the data that they see.
func OneLabelEach(d *taxonv1.Data, what, instead string) error {
	if d.GetSeveralLabels() == 0 && d.GetNoLabel() == 0 {
		return nil
	}
	first := ""
	if n := d.GetFirstNotOne(); n > 0 {
		first = fmt.Sprintf("; the first is instance %d", n)
	}
	return fmt.Errorf("%s takes instances of exactly one label; of %d, %d have several and %d none%s: leave those out, or use %s",
		what, d.GetInstances(), d.GetSeveralLabels(), d.GetNoLabel(), first, instead)
}
