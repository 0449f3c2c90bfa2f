package dataset

import (
	"bytes"
	"fmt"
	"strconv"
)

// xmcHeader is line 1 of the XMC form: the numbers of instances, features and labels. Every later
// line is an instance, even an empty one, because some writers leave an instance without labels and
// features empty.
type xmcHeader struct {
	rows, features, labels int64
}

// parseXMCHeader parses three integers. It returns nil for any other line. A libsvm line is never a
// header, because its second token is a feature.
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

// rule sets the parser's options that follow from the header.
func (h *xmcHeader) rule(p *svmParser) {
	p.zeroBased = true
	p.limit = uint32(h.features - 1)
}

// admits reports whether a row is one of the announced instances. before is the number of rows before
// it, and content the number of its labels and features. After the last announced instance, an
// empty row is ignored and any other row is an error.
func (h *xmcHeader) admits(before int64, content int) (bool, error) {
	if before >= h.rows && content > 0 {
		return false, fmt.Errorf("one instance more than the %d that the header on line 1 announces (each line "+
			"counts, an empty one too)", h.rows)
	}
	return before < h.rows, nil
}

// checkLabels checks the labels of a row against the header, and writes them without leading zeros.
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

// checkEnd compares the number of rows with the header's.
func (h *xmcHeader) checkEnd(c Counts) error {
	if c.Rows < h.rows {
		return fmt.Errorf("the header announces %d instances, the file has %d: it is incomplete", h.rows, c.Rows)
	}
	return nil
}
