package dataset

import (
	"bytes"
	"fmt"
	"strconv"
)

// xmcHeader is line 1 of the XMC form: the numbers of instances, features and labels. Every line
// after it is an instance, even an empty one: some writers leave an instance without label and
// feature empty.
type xmcHeader struct {
	rows, features, labels int64
}

// parseXMCHeader returns nil if the line is not three integers. No libsvm line is: its second
// token would be a feature.
func parseXMCHeader(line []byte) (*xmcHeader, error) {
	fields := bytes.Fields(line)
	if len(fields) != 3 {
		return nil, nil
	}
	var n [3]int64
	for i, f := range fields {
		if !isInteger(f) {
			return nil, nil
		}
		v, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil || v < 0 {
			return nil, fmt.Errorf("header %s: want the numbers of instances, features and labels", show(line))
		}
		n[i] = v
	}
	h := &xmcHeader{rows: n[0], features: n[1], labels: n[2]}
	if h.features == 0 || h.features > maxIndex+1 {
		return nil, fmt.Errorf("header %s: the number of features must be 1 to %d", show(line), int64(maxIndex)+1)
	}
	return h, nil
}

// rule sets what the header says about the lines.
func (h *xmcHeader) rule(p *svmParser) {
	p.zeroBased = true
	p.limit = uint32(h.features - 1)
}

// take says whether a row is one of the announced instances, given the number of rows before it
// and of its labels and features together. After the last announced instance, an empty row is
// ignored and any other is an error.
func (h *xmcHeader) take(before int64, content int) (bool, error) {
	if before >= h.rows && content > 0 {
		return false, fmt.Errorf("one instance more than the %d that the header on line 1 announces (each line "+
			"counts, an empty one too)", h.rows)
	}
	return before < h.rows, nil
}

// checkLabels checks a row against the header, and writes its labels in their shortest form.
func (h *xmcHeader) checkLabels(row *Row) error {
	for i, name := range row.Labels {
		v, err := strconv.ParseInt(string(name), 10, 64)
		if err != nil || v < 0 || v >= h.labels {
			return fmt.Errorf("label %s: the header on line 1 announces %d labels, numbered from 0", show(name), h.labels)
		}
		if name[0] == '+' || name[0] == '-' || name[0] == '0' && len(name) > 1 {
			row.Labels[i] = strconv.AppendInt(nil, v, 10)
		}
	}
	return nil
}

// checkEnd compares the number of instances.
func (h *xmcHeader) checkEnd(c Counts) error {
	if c.Rows < h.rows {
		return fmt.Errorf("the header announces %d instances, the file has %d: it is incomplete", h.rows, c.Rows)
	}
	return nil
}
