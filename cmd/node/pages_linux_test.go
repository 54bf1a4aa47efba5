package main

import (
	"slices"
	"strings"
	"testing"
)

func TestOnlyPagesThatNobodyWritesToAreDropped(t *testing.T) {
	const maps = `00400000-00c5b000 r-xp 00000000 fd:00 1052 /usr/bin/subak
00c5b000-01a00000 r--p 0085b000 fd:00 1052 /usr/bin/subak
01a00000-01aa0000 rw-p 01600000 fd:00 1052 /usr/bin/subak
01aa0000-01ad0000 rw-p 00000000 00:00 0
7f00-7f10 r--p 00000000 fd:00 77 /lib/libc.so.6
zz-yy r--p 00000000 fd:00 1052 /usr/bin/subak
short
`
	got := ownPages(strings.NewReader(maps), "/usr/bin/subak")
	if want := []pages{{0x400000, 0xc5b000}, {0xc5b000, 0x1a00000}}; !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}
