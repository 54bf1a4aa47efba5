package config

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"subak/allocator"
	"subak/internal/strict"
)

func TestAmountsAreReadExactly(t *testing.T) {
	const u = allocator.Unit
	cases := []struct {
		text string
		rate allocator.Rate
		unit Unit
	}{
		{"20000/s", 20000 * u, Requests},
		{"0/s", 0, Requests},
		{"0.3/s", 300_000, Requests},
		{"0.1/s", 100_000, Requests},
		{"0.000001/s", 1, Requests},
		{"1.2k/s", 1200 * u, Requests},
		{"1.2 k / s", 1200 * u, Requests},
		{"5 req/s", 5 * u, Requests},
		{"600/min", 10 * u, Requests},
		{"100/min", 1_666_666, Requests}, // rounded down: never above what was asked
		{"1/h", 277, Requests},
		{"1/d", 11, Requests},
		{"5MB/s", 5_000_000 * u, Bytes},
		{"5MiB/s", 5 << 20 * u, Bytes},
		{"1.5KiB/s", 1536 * u, Bytes},
		{"100Mbit/s", 12_500_000 * u, Bytes},
		{"1bit/s", 125_000, Bytes},
		{"8B/min", 133_333, Bytes},
		{"0.1T/s", 1e11 * u, Requests},
		{"9007199254.740993/s", 9007199254740993, Requests}, // 2^53+1: a float would lose it
	}
	for _, tc := range cases {
		got, err := ParseAmount(tc.text)
		if err != nil || got != (Amount{tc.rate, tc.unit}) {
			t.Errorf("%s: got %d %s, %v; want %d %s", tc.text, got.Rate, got.Unit, err, tc.rate, tc.unit)
		}
	}
}

func TestWrongAmountsAreRefusedWithAMend(t *testing.T) {
	cases := []struct{ text, what string }{
		{"20000", "no unit"},
		{"20000/parsec", "unknown time"},
		{"/s", "plain decimal"},
		{"-5/s", "plain decimal"},
		{"+5/s", "plain decimal"},
		{"1e3/s", "unknown unit"},
		{"1,000/s", "unknown unit"},
		{".5/s", "plain decimal"},
		{"5./s", "plain decimal"},
		{"5Mb/s", "bits or bytes"},
		{"5QB/s", "unknown unit"},
		{"0.0000001/s", "finer"},
		{"0.00001/d", "finer"},
		{"100.1G/s", "largest rate"},
		{strings.Repeat("9", 31) + "/s", "plain decimal"},
		{strings.Repeat("9", 30) + "T/s", "largest rate"},
		{"∞/s", "plain decimal"},
	}
	for _, tc := range cases {
		_, err := ParseAmount(tc.text)
		bad, ok := errors.AsType[*strict.ValueError](err)
		if !ok || !strings.Contains(bad.What, tc.what) || bad.Mend == "" {
			t.Errorf("%s: got %v, want %q and a mend", tc.text, err, tc.what)
		}
	}
}

func TestAmountsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Amount{
			allocator.Rate(rapid.Int64Range(0, int64(MaxRate)).Draw(t, "rate")),
			rapid.SampledFrom([]Unit{Requests, Bytes}).Draw(t, "unit"),
		}
		got, err := ParseAmount(a.String())
		if err != nil || got != a {
			t.Fatalf("%d %s is written %q and read %d %s, %v", a.Rate, a.Unit, a, got.Rate, got.Unit, err)
		}
	})
}

// Any decimal is read as an obviously right second implementation reads it.
func TestAmountsAgreeWithFractions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`[0-9]{1,9}(\.[0-9]{1,4})?`).Draw(t, "number")
		prefix := rapid.SampledFrom([]string{"", "k", "M", "Ki", "Mi"}).Draw(t, "prefix")
		per := rapid.SampledFrom([]string{"s", "min", "h"}).Draw(t, "per")
		x, _ := new(big.Rat).SetString(number)
		scale := map[string]int64{"": 1e6, "k": 1e9, "M": 1e12, "Ki": 1024e6, "Mi": 1048576e6}[prefix]
		x.Mul(x, big.NewRat(scale, map[string]int64{"s": 1, "min": 60, "h": 3600}[per]))
		want := new(big.Int).Quo(x.Num(), x.Denom())
		if x.Sign() != 0 && want.Sign() == 0 || want.Cmp(big.NewInt(int64(MaxRate))) > 0 {
			t.Skip("out of range")
		}
		got, err := ParseAmount(number + prefix + "/" + per)
		if err != nil || int64(got.Rate) != want.Int64() {
			t.Fatalf("%s%s/%s: got %d, %v; want %s", number, prefix, per, got.Rate, err, want)
		}
	})
}

func TestPercentagesAreReadExactly(t *testing.T) {
	cases := []struct {
		text string
		want Percent
	}{
		{"0%", 0}, {"100%", Whole}, {"70%", 700_000}, {"0.0001%", 1}, {"33.3333%", 333_333},
		{"12.50%", 125_000}, {" 5 % ", 50_000}, {"unlimited", Unlimited}, {"250%", 2_500_000}, {"0.10000000%", 1000},
	}
	for _, tc := range cases {
		if got, err := ParsePercent(tc.text); err != nil || got != tc.want {
			t.Errorf("%q: got %d, %v; want %d", tc.text, got, err, tc.want)
		}
	}
	for _, text := range []string{"", "70", "%", "-1%", "0.00001%", "1e2%", "100001%", "unlimited%", "70 percent"} {
		if got, err := ParsePercent(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestPercentagesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Percent(rapid.Int64Range(-1, 1000*int64(Whole)).Draw(t, "ppm"))
		if got, err := ParsePercent(p.String()); err != nil || got != p {
			t.Fatalf("%d is written %q and read %d, %v", int64(p), p, int64(got), err)
		}
	})
}

func TestSizesReadBackAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Size(rapid.Int64Range(0, maxSize).Draw(t, "size"))
		if got, err := ParseSize(want.String()); err != nil || got != want {
			t.Fatalf("%v reads back as %v (%v)", want, got, err)
		}
	})
	for text, want := range map[string]Size{"0B": 0, "1.5kB": 1500, "64 KiB": 65536, "1024TiB": maxSize, "10MB": 10_000_000} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%s: %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "5b", "-1B", "5 MB/s", "0.0001kB", "1e3B", "1025TiB", "5XB", "B"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
