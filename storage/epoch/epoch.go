// Package epoch keeps the list of leader epochs of one partition's log with the offset at which each began. Followers and clients find
// with it where their log and the leader's part (KIP-101, KIP-320). It is stored in the partition's leader-epoch-checkpoint file.
package epoch

import (
	"path"
	"slices"
	"strconv"
	"sync/atomic"

	"sluice/internal/assert"
	"sluice/protocol/record"
	"sluice/storage/checkpoint"
	"sluice/storage/vfs"
)

// FileName is the name of the file in the partition's folder.
const FileName = "leader-epoch-checkpoint"

// Entry says that the log's records from StartOffset on, up to the next entry's, were appended by the leader of Epoch.
type Entry struct {
	Epoch       record.LeaderEpoch
	StartOffset int64
}

// Cache is the list, in memory. One caller at a time may change it, also in respect of Save; any number may read meanwhile.
//
// Entries are appended in memory and written by Save, which the log calls before it counts as durable what the new leader appended: what is
// missing in the file after a crash is found again in the batches. Entries that are removed are removed from the file at once, because
// those could not be told from good ones.
type Cache struct {
	fs      vfs.FS
	dir     string
	entries atomic.Pointer[[]Entry] // both fields strictly ascending; replaced, never modified
	saved   []Entry                 // what the file has
}

// Open reads the file, if there is one.
func Open(fs vfs.FS, dir string) (*Cache, error) {
	c := New(fs, dir)
	var entries []Entry
	err := checkpoint.ReadEntries(fs, c.path(), func(line string) error {
		fields, err := checkpoint.Fields(line, 2)
		if err != nil {
			return err
		}
		e, err := checkpoint.Int("leader epoch", fields[0], 32)
		if err != nil {
			return err
		}
		offset, err := checkpoint.Int("start offset", fields[1], 64)
		if err != nil {
			return err
		}
		entries = append(entries, Entry{record.LeaderEpoch(e), offset})
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Kafka sorts by epoch and lets the last of two with the same one win.
	slices.SortStableFunc(entries, func(a, b Entry) int { return int(a.Epoch) - int(b.Epoch) })
	for _, e := range entries {
		c.assign(e)
	}
	c.saved = c.Entries()
	return c, nil
}

// New makes an empty list for a folder that has no file.
func New(fs vfs.FS, dir string) *Cache { return &Cache{fs: fs, dir: dir} }

func (c *Cache) path() string { return path.Join(c.dir, FileName) }

// Entries is the list; it must not be modified.
func (c *Cache) Entries() []Entry {
	if p := c.entries.Load(); p != nil {
		return *p
	}
	return nil
}

func (c *Cache) set(entries []Entry) { c.entries.Store(&entries) }

// Latest is the last entry.
func (c *Cache) Latest() (Entry, bool) {
	entries := c.Entries()
	if len(entries) == 0 {
		return Entry{}, false
	}
	return entries[len(entries)-1], true
}

// LatestEpoch is the last epoch, or record.NoLeaderEpoch.
func (c *Cache) LatestEpoch() record.LeaderEpoch {
	if e, ok := c.Latest(); ok {
		return e.Epoch
	}
	return record.NoLeaderEpoch
}

// Assign notes that epoch begins at startOffset. Nothing changes if the list ends with that epoch already; entries that contradict the new
// one go. Neither may be negative.
func (c *Cache) Assign(epoch record.LeaderEpoch, startOffset int64) {
	assert.That(epoch >= 0 && startOffset >= 0, "leader epoch or its start offset is negative")
	c.assign(Entry{epoch, startOffset})
}

func (c *Cache) assign(e Entry) {
	entries := c.Entries()
	if n := len(entries); n > 0 && entries[n-1].Epoch == e.Epoch && entries[n-1].StartOffset <= e.StartOffset {
		return
	}
	keep := len(entries)
	for keep > 0 && (entries[keep-1].Epoch >= e.Epoch || entries[keep-1].StartOffset >= e.StartOffset) {
		keep--
	}
	c.set(append(slices.Clone(entries[:keep]), e))
}

// EndOffsetFor answers where an epoch ended: the largest epoch of the list that is not above the requested one, and the start offset of the
// one that follows it, which for the last epoch is logEndOffset (exclusive). An epoch before the list's first ends where that begins. Both
// are -1 if the epoch is above the last one, or -1.
func (c *Cache) EndOffsetFor(requested record.LeaderEpoch, logEndOffset int64) (record.LeaderEpoch, int64) {
	entries := c.Entries()
	if requested == record.NoLeaderEpoch || len(entries) == 0 {
		return record.NoLeaderEpoch, record.NoOffset
	}
	if entries[len(entries)-1].Epoch == requested {
		return requested, logEndOffset
	}
	higher := slices.IndexFunc(entries, func(e Entry) bool { return e.Epoch > requested })
	switch higher {
	case -1:
		return record.NoLeaderEpoch, record.NoOffset
	case 0:
		return requested, entries[0].StartOffset
	}
	return entries[higher-1].Epoch, entries[higher].StartOffset
}

// ForOffset is the epoch in which an offset was, or is to be, appended; record.NoLeaderEpoch if the list begins later.
func (c *Cache) ForOffset(offset int64) record.LeaderEpoch {
	for _, e := range slices.Backward(c.Entries()) {
		if e.StartOffset <= offset {
			return e.Epoch
		}
	}
	return record.NoLeaderEpoch
}

// TruncateFromEnd removes the entries that begin at endOffset or later, and writes the file if there are any.
func (c *Cache) TruncateFromEnd(endOffset int64) error {
	entries := c.Entries()
	keep := len(entries)
	for keep > 0 && entries[keep-1].StartOffset >= endOffset {
		keep--
	}
	if keep == len(entries) {
		return nil
	}
	c.set(slices.Clone(entries[:keep]))
	return c.Save(endOffset)
}

// TruncateFromStart removes the epochs that ended before startOffset and lets the one that was current there begin at it. It is not urgent to
// save that: entries of offsets that are gone do no harm.
func (c *Cache) TruncateFromStart(startOffset int64) {
	entries := c.Entries()
	gone := 0
	for gone < len(entries) && entries[gone].StartOffset <= startOffset {
		gone++
	}
	if gone == 0 || gone == 1 && entries[0].StartOffset == startOffset {
		return
	}
	entries = slices.Clone(entries[gone-1:])
	entries[0].StartOffset = startOffset
	c.set(entries)
}

// Clear removes all entries, from the file too.
func (c *Cache) Clear() error {
	c.set(nil)
	return c.Save(0)
}

// Save makes the entries durable that begin before logEndOffset, if the file does not have them yet. One that begins there, of a leader
// that has not appended anything, would not be believed when the log is opened, so that a log without records needs no file.
func (c *Cache) Save(logEndOffset int64) error {
	entries := c.Entries()
	for len(entries) > 0 && entries[len(entries)-1].StartOffset >= logEndOffset {
		entries = entries[:len(entries)-1]
	}
	if slices.Equal(entries, c.saved) {
		return nil
	}
	err := checkpoint.WriteEntries(c.fs, c.path(), len(entries), func(dst []byte, i int) []byte {
		dst = strconv.AppendInt(dst, int64(entries[i].Epoch), 10)
		dst = append(dst, ' ')
		return strconv.AppendInt(dst, entries[i].StartOffset, 10)
	})
	if err == nil {
		c.saved = entries
	}
	return err
}
