package ledger

import (
	"fmt"
	"strconv"
	"strings"
)

// FormatRange writes ascending numbers as "0-3,7".
func FormatRange(numbers []int) string {
	var b strings.Builder
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(numbers[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(numbers[j]))
		}
		i = j + 1
	}
	return b.String()
}

// ParseRange reads what FormatRange writes; every number is below total, and below MaxTotal: a total that was read may
// be anybody's.
func ParseRange(s string, total int) ([]int, error) {
	total = min(total, MaxTotal)
	var numbers []int
	last := -1
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		lo, ok := number(from)
		hi, also := number(to)
		if !ok || !also {
			return nil, fmt.Errorf("%.40q is not a range such as 0-3,7", s)
		}
		if lo <= last || hi < lo || hi >= total {
			return nil, fmt.Errorf("%.40q is not ascending below the total %d", s, total)
		}
		for n := lo; n <= hi; n++ {
			numbers = append(numbers, n)
		}
		last = hi
	}
	return numbers, nil
}

// number reads what strconv.Itoa writes.
func number(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && strconv.Itoa(n) == s
}
