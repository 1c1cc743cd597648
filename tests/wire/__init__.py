"""Golden transcripts of wire protocols."""
