package gate

import (
	"context"
	"io"
	"net/http"
	"strings"

	"subak/enforce/answer"
)

// tunnel joins client and backend after a 101, until one of them ends it. The
// whole of it is one request; what flows to the client is paced by egress, if
// that has a budget.
func (x *exchange) tunnel(b *backend, res *http.Response) {
	back, ok := res.Body.(io.ReadWriteCloser)
	if !ok || !websocket(x.in) || !strings.EqualFold(res.Header.Get("Upgrade"), x.in.Header.Get("Upgrade")) {
		res.Body.Close()
		x.pool.log.Debug("backend switched protocols unasked", "listener", x.pool.gate.cfg.Name, "backend", b.name)
		answer.Problem(x.w, http.StatusBadGateway, "the backend switched to another protocol")
		return
	}
	defer back.Close()
	h := x.w.Header()
	x.copyFields(h, res.Header)
	h["Connection"] = []string{"Upgrade"}
	h["Upgrade"] = res.Header["Upgrade"]
	client, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		clear(h)
		answer.Problem(x.w, http.StatusInternalServerError, "this connection cannot be upgraded")
		return
	}
	defer client.Close()
	head := http.Response{
		StatusCode: res.StatusCode, Status: res.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
	}
	if head.Write(client) != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.in.Context()))
	defer cancel()
	done := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(back, buffered) // what came before the switch, then the rest
		done <- struct{}{}
	}()
	bye := &farewell{to: client}
	go func() {
		_ = x.downstream(ctx, bye, back)
		done <- struct{}{}
	}()
	var draining chan struct{}
	if s, ok := x.in.Context().Value(serverKey{}).(*Server); ok {
		draining = s.draining
	}
	select {
	case <-draining:
		bye.say()
		<-done
	case <-done: // either end ends both
	}
	cancel()
	client.Close()
	back.Close()
	<-done
}

// downstream copies from the backend to the client.
func (x *exchange) downstream(ctx context.Context, client io.Writer, back io.Reader) error {
	out := outlet{x: x, ctx: ctx, to: client}
	buf := x.pool.buffer()
	defer x.pool.buffers.Put(buf)
	for {
		n, err := back.Read((*buf)[:out.room()])
		if n > 0 {
			if werr := out.write((*buf)[:n]); werr != nil {
				return werr
			}
		}
		if err != nil {
			return err
		}
	}
}
