package text

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Lines writes the terms of each line of in to out as a line, separated by tabs. What is written is
// flushed before a read that may wait.
func (a *Analyser) Lines(out io.Writer, in io.Reader) error {
	r, w := bufio.NewReaderSize(in, 1<<16), bufio.NewWriterSize(out, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) == 0 {
			return w.Flush()
		}
		separator := ""
		a.Each(bytes.TrimSuffix(line, []byte{'\n'}), func(word *Word) {
			for _, term := range word.Terms {
				_, _ = w.WriteString(separator + term) // Flush has the error
				separator = "\t"
			}
		})
		_ = w.WriteByte('\n')
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
}
