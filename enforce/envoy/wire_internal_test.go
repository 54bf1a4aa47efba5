package envoy

import (
	"testing"

	ratelimitcommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"
)

func drawRequest(t *rapid.T) *ratelimitv3.RateLimitRequest {
	r := &ratelimitv3.RateLimitRequest{
		Domain: rapid.String().Draw(t, "domain"), HitsAddend: rapid.Uint32().Draw(t, "hits"),
	}
	for range rapid.IntRange(0, maxDescriptors+2).Draw(t, "descriptors") {
		d := &ratelimitcommon.RateLimitDescriptor{IsNegativeHits: rapid.Bool().Draw(t, "negative")}
		if rapid.Bool().Draw(t, "own hits") {
			d.HitsAddend = wrapperspb.UInt64(rapid.Uint64().Draw(t, "own hits"))
		}
		if rapid.Bool().Draw(t, "limit") {
			d.Limit = &ratelimitcommon.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 3}
		}
		for range rapid.IntRange(0, 4).Draw(t, "entries") {
			d.Entries = append(d.Entries, &ratelimitcommon.RateLimitDescriptor_Entry{
				Key: rapid.String().Draw(t, "key"), Value: rapid.String().Draw(t, "value"),
			})
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

func TestDecodeReadsWhatProtobufReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawRequest(t)
		b, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		// Fields of later versions, and fields in pieces, as protobuf allows.
		b = protowire.AppendVarint(protowire.AppendTag(b, 99, protowire.VarintType), 1)
		b = protowire.AppendFixed64(protowire.AppendTag(b, 98, protowire.Fixed64Type), 1)
		if rapid.Bool().Draw(t, "twice") {
			b = append(b, b...)
			want.Descriptors = append(want.Descriptors, want.Descriptors...)
		}
		var q request
		q.raw = b
		if err := q.decode(); err != nil {
			t.Fatal(err)
		}
		sameRequest(t, &q, want)
	})
}

// sameRequest compares a decoded request with protobuf's reading of it.
func sameRequest(t interface {
	Helper()
	Fatalf(string, ...any)
}, q *request, want *ratelimitv3.RateLimitRequest) {
	t.Helper()
	ds := want.GetDescriptors()
	if q.domain != want.GetDomain() || q.hits != uint64(want.GetHitsAddend()) || q.count != len(ds) {
		t.Fatalf("domain %q, hits %d, %d descriptors; want %v", q.domain, q.hits, q.count, want)
	}
	for i, d := range q.descriptors {
		w := ds[i]
		if d.set != (w.GetHitsAddend() != nil) || d.hits != w.GetHitsAddend().GetValue() ||
			d.negative != w.GetIsNegativeHits() || d.limit != (w.GetLimit() != nil) || d.to-d.from != len(w.GetEntries()) {
			t.Fatalf("descriptor %d: %+v, want %v", i, d, w)
		}
		for k, e := range w.GetEntries() {
			if p := q.pairs[d.from+k]; p.Key != e.GetKey() || p.Value != e.GetValue() {
				t.Fatalf("descriptor %d: %+v, want %v", i, p, e)
			}
		}
	}
}

func TestDecodeTakesClientsBytesThatAreNoUTF8(t *testing.T) {
	e := protowire.AppendString(protowire.AppendTag(nil, entryKey, protowire.BytesType), "path")
	e = protowire.AppendString(protowire.AppendTag(e, entryValue, protowire.BytesType), "/\xff\xfe")
	d := protowire.AppendBytes(protowire.AppendTag(nil, descriptorEntries, protowire.BytesType), e)
	var q request
	q.raw = protowire.AppendBytes(protowire.AppendTag(nil, requestDescriptors, protowire.BytesType), d)
	if err := proto.Unmarshal(q.raw, &ratelimitv3.RateLimitRequest{}); err == nil {
		t.Error("protobuf takes it too: this test is for nothing")
	}
	if err := q.decode(); err != nil || q.pairs[0].Value != "/\xff\xfe" {
		t.Errorf("%v, %+v", err, q.pairs)
	}
}

func TestALengthThatNeedsMoreBytesMovesWhatItIsFor(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 129, 16383, 16384, 100_000} {
		var o out
		at := o.begin(responseHeaders)
		o.bytes(headerValue, make([]byte, n))
		o.end(at)
		o.varint(responseCode, 2)
		var res ratelimitv3.RateLimitResponse
		if err := proto.Unmarshal(o, &res); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if got := len(res.GetResponseHeadersToAdd()[0].GetValue()); got != n || res.GetOverallCode() != 2 {
			t.Errorf("%d bytes came as %d, code %v", n, got, res.GetOverallCode())
		}
	}
}
