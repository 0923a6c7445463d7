"""Many records at once from the client's C library and to it; the client's Python makes an object of each."""
