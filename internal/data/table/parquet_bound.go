package table

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// checkParquet compares the footer's length with the file's size.
func checkParquet(in io.ReaderAt, size int64) error {
	tail := make([]byte, 8) // the footer's length, then PAR1
	if size < int64(len(tail)) {
		return io.ErrUnexpectedEOF
	}
	if _, err := in.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	if string(tail[4:]) != "PAR1" {
		return errors.New("it does not end as one: it is cut off or damaged, fetch or make it again")
	}
	if int64(binary.LittleEndian.Uint32(tail)) > size-int64(len(tail)) {
		return errLength
	}
	return nil
}

// smallPage is a page size in bytes that any file may use. Most pages have 1 MiB.
const smallPage = 64 << 20

// checkPages reads the headers of a column chunk's pages. It compares their lengths with the bound
// for the chunk, before the library allocates memory for them.
func checkPages(in io.ReaderAt, size int64, meta *format.ColumnMetaData, codec format.CompressionCodec) error {
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
		bound := max(smallPage, maxRatio*size)
		if packed < 0 || packed > end-rest || plain < 0 || plain > bound {
			return errLength
		}
		n := int64(head.DataPageHeader.V.NumValues) + int64(head.DataPageHeaderV2.V.NumValues)
		if n < 0 || n > meta.NumValues-values || int64(head.DictionaryPageHeader.V.NumValues) > plain {
			return errLength
		}
		if err := checkPacked(in, rest, packed, plain, &head, codec); err != nil {
			return err
		}
		values += n
		at = rest + packed
	}
	return nil
}

// checkPacked checks the compressed bytes of a page. Some of the library's decompressors trust the
// length that is stored there; that of LZ4 allocates twice the memory whenever the bytes are
// damaged.
func checkPacked(in io.ReaderAt, at, packed, plain int64, head *format.PageHeader,
	codec format.CompressionCodec) error {
	v2 := &head.DataPageHeaderV2.V
	levels := int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength) // these are not compressed
	if levels < 0 || levels > min(packed, plain) {
		return errLength
	}
	at, packed, plain = at+levels, packed-levels, plain-levels
	if packed == 0 || v2.IsCompressed.Valid && !v2.IsCompressed.V {
		return nil
	}
	switch codec {
	case format.Snappy:
		own := make([]byte, min(binary.MaxVarintLen64, packed))
		if _, err := in.ReadAt(own, at); err != nil {
			return err
		}
		if length, _ := binary.Uvarint(own); length > uint64(plain) {
			return errLength
		}
	case format.Lz4Raw:
		src, dst := make([]byte, packed), make([]byte, plain)
		if _, err := in.ReadAt(src, at); err != nil {
			return err
		}
		if n, err := lz4.UncompressBlock(src, dst); err != nil || int64(n) != plain {
			return errors.New("a page in LZ4 can't be decompressed")
		}
	}
	return nil
}

// pageHead reads the page header at an offset, and returns the offset of the page's data.
func pageHead(in io.ReaderAt, at, end int64) (head format.PageHeader, rest int64, err error) {
	var protocol thrift.CompactProtocol
	for window := int64(1 << 10); ; window *= 4 { // a header may hold a minimum and a maximum of any length
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
