package table

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// checkParquet compares the footer's length with the file's size.
func checkParquet(in io.ReaderAt, size int64) error {
	tail := make([]byte, 8) // the footer's length, and PAR1
	if size < int64(len(tail)) {
		return io.ErrUnexpectedEOF
	}
	if _, err := in.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	if int64(binary.LittleEndian.Uint32(tail)) > size-int64(len(tail)) {
		return errLength
	}
	return nil
}

// checkPages reads the heads of a column chunk's pages and compares their lengths with what the
// chunk can hold, before the library allocates memory for them.
func checkPages(in io.ReaderAt, size int64, meta *format.ColumnMetaData) error {
	at := meta.DataPageOffset
	if meta.DictionaryPageOffset != 0 {
		at = meta.DictionaryPageOffset
	}
	if at < 0 || at > size || meta.TotalCompressedSize < 0 || meta.TotalCompressedSize > size-at {
		return errLength
	}
	end := at + meta.TotalCompressedSize
	for values := int64(0); values < meta.NumValues && at < end; {
		head, rest, err := pageHead(in, at, end)
		if err != nil {
			return err
		}
		packed, plain := int64(head.CompressedPageSize), int64(head.UncompressedPageSize)
		bound := max(smallBatch, maxRatio*size)
		if packed < 0 || packed > end-rest || plain < 0 || plain > bound {
			return errLength
		}
		n := int64(head.DataPageHeader.V.NumValues) + int64(head.DataPageHeaderV2.V.NumValues)
		if n < 0 || n > meta.NumValues-values || int64(head.DictionaryPageHeader.V.NumValues) > plain {
			return errLength
		}
		levels := int64(head.DataPageHeaderV2.V.RepetitionLevelsByteLength) + int64(head.DataPageHeaderV2.V.DefinitionLevelsByteLength)
		if meta.Codec == format.Snappy && packed > levels && levels >= 0 { // it begins with its own length, which the library believes
			own := make([]byte, min(binary.MaxVarintLen64, packed-levels))
			if _, err := in.ReadAt(own, rest+levels); err != nil {
				return err
			}
			if length, _ := binary.Uvarint(own); length > uint64(max(plain, 0)) {
				return errLength
			}
		}
		values += n
		at = rest + packed
	}
	return nil
}

// pageHead reads the head at a place, and returns where the page begins.
func pageHead(in io.ReaderAt, at, end int64) (head format.PageHeader, rest int64, err error) {
	var protocol thrift.CompactProtocol
	for window := int64(1 << 10); ; window *= 4 { // heads may hold a minimum and a maximum of any length
		b := make([]byte, min(window, end-at))
		if _, err := in.ReadAt(b, at); err != nil {
			return head, 0, err
		}
		r := protocol.NewReaderFromBytes(b)
		head = format.PageHeader{}
		if err = thrift.NewDecoder(r).Decode(&head); err == nil {
			return head, at + int64(r.BytesRead()), nil
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) || window >= end-at {
			return head, 0, err
		}
	}
}
