"""What a person reads afterwards: text, JSON, and one HTML page with pictures."""
