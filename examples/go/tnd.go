// tnd.go - reads TNet's dictionary dict.tnd, with nothing but the standard library.
//
//	go run tnd.go dict.tnd user 17        the vectors of sign 17 in share group "user"
//
// Bytes: docs/formats.md 6.6. The header's checksum is looked at, those of the rows are not.
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"strconv"
)

var le = binary.LittleEndian

// A Dictionary is a file in memory; a service would map it.
type Dictionary struct {
	data     []byte
	groups   int
	groupsAt uint64
	namesAt  uint64
	segments []string
}

// The key of a row is mix(sign ^ salt of its group).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Open reads a whole dictionary.
func Open(path string) (*Dictionary, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(b) < 128 || string(b[:8]) != "TND1\r\n\x1a\n" || le.Uint16(b[8:]) != 1 || le.Uint64(b[48:]) != uint64(len(b)) ||
		le.Uint32(b[124:]) != crc32.Checksum(b[:124], crc32.MakeTable(crc32.Castagnoli)) {
		return nil, errors.New(path + ": no dictionary of version 1, or damaged")
	}
	if le.Uint32(b[112:])&1 != 0 {
		return nil, errors.New(path + ": a delta, which needs the dictionary that it stands on")
	}
	var text struct{ Segments []string }
	at := le.Uint64(b[80:])
	if err := json.Unmarshal(b[at:at+uint64(le.Uint32(b[104:]))], &text); err != nil {
		return nil, err
	}
	return &Dictionary{b, int(le.Uint32(b[96:])), le.Uint64(b[64:]), le.Uint64(b[72:]), text.Segments}, nil
}

// Find returns the segments of a sign, by name; nil where there is no row.
func (d *Dictionary) Find(group string, sign uint64) map[string][]float32 {
	for g := 0; g < d.groups; g++ {
		head := d.data[d.groupsAt+uint64(g)*32:]
		name := d.data[d.namesAt+uint64(le.Uint32(head[8:])):]
		if string(name[:le.Uint16(head[12:])]) != group {
			continue
		}
		key := mix(sign ^ le.Uint64(head))
		for i := 0; i < int(head[14]); i++ {
			at := d.groupsAt + uint64(d.groups)*32 + uint64(le.Uint16(head[16+2*i:]))*320
			if row := d.findIn(d.data[at:at+320], uint16(g), key); row != nil {
				return row
			}
		}
	}
	return nil
}

func (d *Dictionary) findIn(table []byte, group uint16, key uint64) map[string][]float32 {
	base, shift := le.Uint64(table[40:]), table[56]
	bucket := (key - base) >> shift // 0 where shift is 64
	if key < base || bucket >= uint64(le.Uint32(table[48:])) {
		return nil
	}
	start := d.data[le.Uint64(table[8:])+4*bucket:]
	groupAt := le.Uint64(table[32:])
	for i := uint64(le.Uint32(start)); i < uint64(le.Uint32(start[4:])); i++ {
		if le.Uint64(d.data[le.Uint64(table[16:])+8*i:]) != key {
			continue
		}
		if groupAt == 0 || le.Uint16(d.data[groupAt+2*i:]) == group {
			return d.row(table, d.data[le.Uint64(table[24:])+i*uint64(le.Uint32(table[52:])):])
		}
	}
	return nil
}

func (d *Dictionary) row(table, row []byte) map[string][]float32 {
	out := map[string][]float32{}
	for i := 0; i < int(table[57]); i++ {
		s := table[64+16*i:]
		scale := float32(1)
		if at := le.Uint32(s[4:]); at != math.MaxUint32 {
			scale = math.Float32frombits(le.Uint32(row[at:]))
		}
		w := make([]float32, le.Uint16(s[8:]))
		for k := range w {
			w[k] = value(row[le.Uint32(s):], s[10], k, scale)
		}
		out[d.segments[s[11]]] = w
	}
	return out
}

// The k-th float of a segment: f32, bf16, fp16, int8, int4 or 1bit.
func value(b []byte, kind byte, k int, scale float32) float32 {
	switch kind {
	case 0:
		return math.Float32frombits(le.Uint32(b[4*k:]))
	case 1:
		return math.Float32frombits(uint32(le.Uint16(b[2*k:])) << 16)
	case 2:
		return half(le.Uint16(b[2*k:]))
	case 3:
		return float32(int8(b[k])) * scale
	case 4:
		return float32(int(b[k/2]>>(k%2*4)&15^8)-8) * scale
	case 5:
		return scale * float32(1-2*int(b[k/8]>>(k%8)&1))
	}
	panic("values of a kind that this reader does not know")
}

func half(h uint16) float32 {
	sign, exponent, mantissa := float64(1-2*int(h>>15)), int(h>>10&31), float64(h&1023)
	if exponent == 0 {
		return float32(sign * math.Ldexp(mantissa, -24))
	}
	return float32(sign * math.Ldexp(1024+mantissa, exponent-25))
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: tnd dict.tnd GROUP SIGN")
		os.Exit(2)
	}
	d, err := Open(os.Args[1])
	sign, notNumber := strconv.ParseUint(os.Args[3], 10, 64)
	if err == nil {
		err = notNumber
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tnd:", err)
		os.Exit(1)
	}
	row := d.Find(os.Args[2], sign)
	if row == nil {
		fmt.Fprintf(os.Stderr, "tnd: no row of sign %d in group %s\n", sign, os.Args[2])
		os.Exit(1)
	}
	for _, name := range d.segments {
		if w, there := row[name]; there {
			fmt.Print(name)
			for _, x := range w {
				fmt.Printf(" %.9g", x)
			}
			fmt.Println()
		}
	}
}
