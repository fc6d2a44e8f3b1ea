// SPDX-License-Identifier: MIT

// Streams of smux or yamux over a few connections, and nothing else: what these libraries cost.
//
//	muxes smux|yamux client|server LISTEN TO CONNECTIONS
package main

import (
	"io"
	"log"
	"net"
	"os"
	"strconv"

	"github.com/hashicorp/yamux"
	"github.com/xtaci/smux"
)

const buffer = 64 << 10

// What both libraries' sessions have in common.
type session struct {
	open   func() (io.ReadWriteCloser, error)
	accept func() (io.ReadWriteCloser, error)
}

func over(protocol string, conn net.Conn, client bool) session {
	if protocol == "smux" {
		config := smux.DefaultConfig()
		config.Version = 2
		config.MaxReceiveBuffer = 16 << 20
		config.MaxStreamBuffer = 4 << 20
		begin := smux.Server
		if client {
			begin = smux.Client
		}
		s, err := begin(conn, config)
		must(err)
		return session{
			func() (io.ReadWriteCloser, error) { return s.OpenStream() },
			func() (io.ReadWriteCloser, error) { return s.AcceptStream() },
		}
	}
	config := yamux.DefaultConfig()
	config.LogOutput = io.Discard
	config.AcceptBacklog = 4096
	config.MaxStreamWindowSize = 4 << 20
	begin := yamux.Server
	if client {
		begin = yamux.Client
	}
	s, err := begin(conn, config)
	must(err)
	return session{
		func() (io.ReadWriteCloser, error) { return s.Open() },
		func() (io.ReadWriteCloser, error) { return s.Accept() },
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Whichever ends first ends both.
func relay(a, b io.ReadWriteCloser) {
	pump := func(to, from io.ReadWriteCloser) {
		// As plain readers and writers, so that no shortcut is taken.
		io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, buffer))
		to.Close()
		from.Close()
	}
	go pump(a, b)
	pump(b, a)
}

func serve(s session, to string) {
	for {
		stream, err := s.accept()
		if err != nil {
			return
		}
		go func() {
			conn, err := net.Dial("tcp", to)
			if err != nil {
				stream.Close()
				return
			}
			relay(stream, conn)
		}()
	}
}

func main() {
	if len(os.Args) != 6 {
		log.Fatal("usage: muxes smux|yamux client|server LISTEN TO CONNECTIONS")
	}
	protocol, client, to := os.Args[1], os.Args[2] == "client", os.Args[4]
	count, err := strconv.Atoi(os.Args[5])
	must(err)
	sessions := make([]session, 0, count)
	for range make([]struct{}, count) {
		if client {
			conn, err := net.Dial("tcp", to)
			must(err)
			sessions = append(sessions, over(protocol, conn, true))
		}
	}
	listener, err := net.Listen("tcp", os.Args[3])
	must(err)
	for next := 0; ; next++ {
		conn, err := listener.Accept()
		must(err)
		if !client {
			go serve(over(protocol, conn, false), to)
			continue
		}
		stream, err := sessions[next%count].open()
		must(err)
		go relay(conn, stream)
	}
}
