package segment

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Suffixes of the files of a segment. The name before them is the base offset in 20 digits.
const (
	LogSuffix      = ".log"
	OffsetSuffix   = ".index"
	TimeSuffix     = ".timeindex"
	TxnSuffix      = ".txnindex"
	SnapshotSuffix = ".snapshot" // of the producers' state as it was before the offset in the name
	DeletedSuffix  = ".deleted"  // added to the name of a file that is to be removed
	CleanedSuffix  = ".cleaned"  // added to the name of a file that compaction is writing
	SwapSuffix     = ".swap"     // added to the name of a file that compaction puts in the place of others
)

const offsetDigits = 20

// FileName is the name of a segment's file.
func FileName(baseOffset int64, suffix string) string {
	return string(AppendFileName(nil, baseOffset, suffix))
}

// AppendFileName appends the name of a segment's file to dst.
func AppendFileName(dst []byte, baseOffset int64, suffix string) []byte {
	return append(fmt.Appendf(dst, "%0*d", offsetDigits, baseOffset), suffix...)
}

// ParseFileName takes a file name apart. ok is false if it does not begin with an offset; suffix is all that follows it.
func ParseFileName(name string) (offset int64, suffix string, ok bool) {
	digits, _, found := strings.Cut(name, ".")
	if !found || len(digits) != offsetDigits {
		return 0, "", false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n > math.MaxInt64 {
		return 0, "", false
	}
	return int64(n), name[len(digits):], true
}
