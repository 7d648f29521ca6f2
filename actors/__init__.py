"""Everything that runs concurrently: sessions, their turns, the services around them."""
