package ledger

import (
	"encoding/base64"
	"fmt"
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// A set holds item numbers.
type set struct {
	words []uint64
	size  int
}

func (s *set) add(n int) {
	w := n / 64
	for len(s.words) <= w {
		s.words = append(s.words, 0)
	}
	if bit := uint64(1) << (n % 64); s.words[w]&bit == 0 {
		s.words[w] |= bit
		s.size++
	}
}

func (s *set) remove(n int) {
	w := n / 64
	if w < len(s.words) && s.words[w]&(1<<(n%64)) != 0 {
		s.words[w] &^= 1 << (n % 64)
		s.size--
	}
}

func (s *set) clone() *set {
	return &set{words: append([]uint64(nil), s.words...), size: s.size}
}

// first returns the least number from n on, or -1.
func (s *set) first(n int) int {
	for w := n / 64; w < len(s.words); w++ {
		word := s.words[w]
		if w == n/64 {
			word &= ^uint64(0) << (n % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// gap returns the least number from n on that is not in the set.
func (s *set) gap(n int) int {
	for w := n / 64; w < len(s.words); w++ {
		word := ^s.words[w]
		if w == n/64 {
			word &= ^uint64(0) << (n % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return max(n, len(s.words)*64)
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

// text writes the set as ranges or as a bit map, whichever is shorter.
func (s *set) text() (ranges, bitmap string) {
	from := s.first(0) / 8
	to := len(s.words) * 8
	limit := base64.RawStdEncoding.EncodedLen(to-from) + 8
	var b strings.Builder
	for n := s.first(0); n >= 0; {
		if b.Len() > limit {
			return "", s.bitmap(from)
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
	return b.String(), ""
}

func (s *set) bitmap(from int) string {
	var raw []byte
	for w, word := range s.words {
		for i := range 8 {
			if w*8+i >= from {
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
