package ledger

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// A set holds item numbers. What it takes does not depend on how large they are.
type set struct {
	from  int // the place of the first word
	words []uint64
	size  int
}

func (s *set) add(n int) {
	w := n / 64
	switch {
	case len(s.words) == 0:
		s.from, s.words = w, append(s.words, 0)
	case w < s.from:
		s.words = append(make([]uint64, s.from-w, s.from-w+len(s.words)), s.words...)
		s.from = w
	}
	for len(s.words) <= w-s.from {
		s.words = append(s.words, 0)
	}
	if bit := uint64(1) << (n % 64); s.words[w-s.from]&bit == 0 {
		s.words[w-s.from] |= bit
		s.size++
	}
}

func (s *set) remove(n int) {
	w := n/64 - s.from
	if w >= 0 && w < len(s.words) && s.words[w]&(1<<(n%64)) != 0 {
		s.words[w] &^= 1 << (n % 64)
		s.size--
	}
}

func (s *set) clone() *set {
	return &set{from: s.from, words: append([]uint64(nil), s.words...), size: s.size}
}

// first returns the least number from n on, or -1.
func (s *set) first(n int) int {
	n = max(n, 64*s.from)
	for w := n / 64; w < s.from+len(s.words); w++ {
		word := s.words[w-s.from]
		if w == n/64 {
			word &= ^uint64(0) << (n % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// last returns the greatest number, or -1.
func (s *set) last() int {
	for w, word := range slices.Backward(s.words) {
		if word != 0 {
			return (s.from+w)*64 + bits.Len64(word) - 1
		}
	}
	return -1
}

// gap returns the least number from n on that is not in the set.
func (s *set) gap(n int) int {
	if n < 64*s.from {
		return n
	}
	for w := n / 64; w < s.from+len(s.words); w++ {
		word := ^s.words[w-s.from]
		if w == n/64 {
			word &= ^uint64(0) << (n % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return max(n, (s.from+len(s.words))*64)
}

// all yields the numbers in ascending order.
func (s *set) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := s.first(0); n >= 0; n = s.first(n + 1) {
			if !yield(n) {
				return
			}
		}
	}
}

// readable is how long ranges may be though another form is shorter.
const readable = 64

// text writes the set as ranges, as a bit map or as gaps, whichever is shortest, and says which.
func (s *set) text() (form, text string) {
	from := s.first(0) / 8
	least := base64.RawStdEncoding.EncodedLen(s.last()/8+1-from) + 8 // of a bit map
	ranges, whole := s.ranges(least)
	if whole && len(ranges) <= readable {
		return "items", ranges
	}
	if whole {
		least = len(ranges)
	}
	if gaps, short := s.gaps(least); short {
		return "gaps", gaps
	}
	if whole {
		return "items", ranges
	}
	return "bits", s.bitmap(from)
}

// ranges are the numbers as FormatRange writes them, unless that takes more than so many bytes.
func (s *set) ranges(most int) (text string, whole bool) {
	var b strings.Builder
	for n := s.first(0); n >= 0; {
		if b.Len() > most {
			return "", false
		}
		end := s.gap(n) - 1
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(n))
		if end > n {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(end))
		}
		n = s.first(end + 1)
	}
	return b.String(), b.Len() <= most
}

// gaps are how many numbers lie before each and the one before it, in varints: what is shortest for
// few numbers among many. They are not written unless they take less than so many bytes.
func (s *set) gaps(most int) (text string, short bool) {
	var raw []byte
	next := 0
	for n := range s.all() {
		if raw = binary.AppendUvarint(raw, uint64(n-next)); base64.RawStdEncoding.EncodedLen(len(raw)) >= most { //nolint:gosec // ascending
			return "", false
		}
		next = n + 1
	}
	return base64.RawStdEncoding.EncodeToString(raw), true
}

func (s *set) bitmap(from int) string {
	var raw []byte
	for w, word := range s.words {
		for i := range 8 {
			if (s.from+w)*8+i >= from {
				raw = append(raw, byte(word>>(8*i)&0xff))
			}
		}
	}
	for len(raw) > 0 && raw[len(raw)-1] == 0 {
		raw = raw[:len(raw)-1]
	}
	return strconv.Itoa(from*8) + ":" + base64.RawStdEncoding.EncodeToString(raw)
}

// parseBitmap reads what bitmap writes; every number is below total.
func parseBitmap(text string, total int) ([]int, error) {
	start, encoded, found := strings.Cut(text, ":")
	from, ok := number(start)
	raw, err := base64.RawStdEncoding.DecodeString(encoded)
	if !found || !ok || from < 0 || from%8 != 0 || err != nil {
		return nil, fmt.Errorf("%.40q is not a bit map such as 64:AQ", text)
	}
	if from >= total { // and no sum overflows
		return nil, fmt.Errorf("%d is not below the total %d", from, total)
	}
	var numbers []int
	for i, b := range raw {
		for ; b != 0; b &= b - 1 {
			n := from + 8*i + bits.TrailingZeros8(b)
			if n >= total {
				return nil, fmt.Errorf("%d is not below the total %d", n, total)
			}
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// parseGaps reads what gaps writes; every number is below total.
func parseGaps(text string, total int) ([]int, error) {
	raw, err := base64.RawStdEncoding.DecodeString(text)
	var numbers []int
	for next := 0; err == nil && len(raw) > 0; {
		gap, size := binary.Uvarint(raw)
		if size <= 0 {
			return nil, fmt.Errorf("%.40q are no gaps such as AAID", text)
		}
		if raw = raw[size:]; gap >= uint64(total) || next+int(gap) >= total { //nolint:gosec // the first says that it fits
			return nil, fmt.Errorf("%d after %d numbers is not below the total %d", gap, next, total)
		}
		next += int(gap) + 1 //nolint:gosec // as above
		numbers = append(numbers, next-1)
	}
	if err != nil || len(numbers) == 0 {
		return nil, fmt.Errorf("%.40q are no gaps such as AAID", text)
	}
	return numbers, nil
}
