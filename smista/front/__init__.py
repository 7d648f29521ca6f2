"""The HTTP front: parse, tell, relay. It holds no run and takes no decision."""
