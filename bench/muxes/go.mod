module tm3/bench/muxes

go 1.21

require (
	github.com/hashicorp/yamux v0.1.2
	github.com/xtaci/smux v1.5.34
)
