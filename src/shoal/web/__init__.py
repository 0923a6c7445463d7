"""Pages in a browser: the studio, where a release is made by hand, and the live page of a running stream."""
